//! Assignments: to variables, and to what is in them.

use crate::compile::compiler::Compiler;
use crate::position::or_at;
use crate::program::Instruction;
use crate::variables::VariableInfo;
use plan::expression::{self, FieldOwner, Subscripts, field_path};
use syntax::plpgsql::ast::{Expression, PathStep, Target};
use types::{DataType, ExecutionVersion, SqlError, SqlState, json_too_deep, limits};

/// Where an assignment ends: in which variable, and which element or field of it, as it is written.
struct Place<'a> {
    variable: &'a VariableInfo,
    target: &'a Target,
}

impl Compiler<'_> {
    /// `target := value`, `target[1].field := value`
    pub(super) fn assign(
        &mut self,
        target: &Target,
        path: &[PathStep],
        value: &Expression,
    ) -> Result<(), SqlError> {
        let start = self.code.len();
        let assigned = match path {
            [] => self.assignment(target, value),
            path => self.assignment_inside(target, path, value),
        };
        // Before version 10 an assignment to an element was refused when the routine was made.
        let may_wait = path.is_empty() || self.tables.version() >= ExecutionVersion::V10;
        match may_wait {
            true => assigned.or_else(|error| self.fail_when_run(start, error)),
            false => assigned,
        }
    }

    fn assignment(&mut self, target: &Target, value: &Expression) -> Result<(), SqlError> {
        if self.variables.is_record(target) {
            return self.record_assignment(target, value);
        }
        if self.field_assignment(target, value)? {
            return Ok(());
        }
        let variable = self.variables.assignable(target)?;
        let value =
            self.expression_of(value, variable.assigned_type(), &format!("variable \"{}\"", variable.name))?;
        let (slot, not_null) = (variable.slot, variable.not_null);
        self.emit(Instruction::Assign { slot, value });
        if not_null {
            self.emit(Instruction::RefuseNull { slot, variable: target.text().into() });
        }
        self.record_has_row(target);
        Ok(())
    }

    /// `variable[1].field := value`: a new value of the variable, with another one at the end of the path.
    fn assignment_inside(
        &mut self,
        target: &Target,
        path: &[PathStep],
        value: &Expression,
    ) -> Result<(), SqlError> {
        let types = self.tables.routines().types();
        // The first steps may be fields of a variable of a composite type.
        let found = match self.tables.version() >= ExecutionVersion::V10 {
            true => self.variables.composite_field(types, target),
            false => Ok(None),
        };
        let (variable, fields) = match found.map_err(|error| or_at(error, target.position()))? {
            Some(found) => found,
            None => (self.variables.assignable(target)?, Vec::new()),
        };
        let whole = expression::Expression::slot(usize::from(variable.slot), variable.data_type);
        let mut inner = whole.clone();
        for step in &fields {
            inner = expression::Expression::field(inner, step.position, step.data_type);
        }
        let place = Place { variable: &variable, target };
        let declared = fields.last().map_or(variable.data_type, |step| step.data_type);
        let value = self.replaced((inner, declared), path, value, &place)?;
        let value = expression::Expression::with_field(whole, &fields, value);
        let value = self.held_against(value, variable.domain);
        self.emit(Instruction::Assign { slot: variable.slot, value });
        Ok(())
    }

    /// A value with another one where the path leads to. `declared`: its type, with the digits of a second that it keeps.
    fn replaced(
        &mut self,
        (current, declared): (expression::Expression, DataType),
        path: &[PathStep],
        value: &Expression,
        place: &Place<'_>,
    ) -> Result<expression::Expression, SqlError> {
        let data_type = current.data_type;
        let what = || format!("an element of \"{}\"", place.variable.name);
        // Before version 11 elements and fields kept all digits.
        let declared = if self.tables.version() < ExecutionVersion::V11 { data_type } else { declared };
        let Some((step, rest)) = path.split_first() else {
            return self.expression_of(value, declared, &what());
        };
        match step {
            PathStep::Field(name) => {
                let types = self.tables.routines().types();
                let owner = FieldOwner::Variable(&place.variable.name);
                let steps = match types.of(data_type) {
                    Some(_) => field_path(types, owner, data_type, &[&name.text]),
                    None => Err(no_fields(&name.text, &place.variable.name, &types.name_of(data_type))),
                };
                let steps = steps.map_err(|error| or_at(error, name.position))?;
                let Some(step) = steps.last() else { return Ok(current) };
                let inner = expression::Expression::field(current.clone(), step.position, step.data_type);
                let value = self.replaced((inner, step.data_type), rest, value, place)?;
                Ok(expression::Expression::with_field(current, &steps, value))
            }
            _ if data_type == DataType::Jsonb => self.json_replaced(current, path, value, &what()),
            PathStep::Element(key) if data_type == DataType::Hstore && rest.is_empty() => {
                let bound = self.expression(key)?;
                let key = self.converted(bound, DataType::Text(None), "a subscript");
                let key = key.map_err(|error| or_at(error, place.target.position()))?;
                let value = self.expression_of(value, DataType::Text(None), &what())?;
                Ok(expression::hstore_assigned(current, key, value))
            }
            _ if data_type.element().is_none() => {
                let message =
                    format!("cannot subscript type {data_type} because it does not support subscripting");
                Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message).at(place.target.position()))
            }
            PathStep::Element(_) | PathStep::Slice(..) => {
                // Those of all dimensions belong together; before version 16 there is one.
                let is_subscript = |step: &&PathStep| !matches!(step, PathStep::Field(_));
                let together = match self.tables.version() >= ExecutionVersion::V16 {
                    true => path.iter().take_while(is_subscript).count(),
                    false => 1,
                };
                let (steps, rest) = path.split_at(together);
                if steps.iter().any(|step| matches!(step, PathStep::Slice(..))) {
                    return self.slice_replaced((current, declared), steps, rest, value, place);
                }
                let mut written = Vec::with_capacity(steps.len());
                for step in steps {
                    if let PathStep::Element(subscript) = step {
                        written.push((Some(self.subscript(subscript, !rest.is_empty())?), None, false));
                    }
                }
                let subscripts = Subscripts::new(written)?;
                let Subscripts::Element(places) = &subscripts else { return Ok(current) };
                let inner = expression::element_of(current.clone(), places.clone());
                let declared = match declared {
                    DataType::Array(element) => element.data_type(),
                    other => other,
                };
                let value = self.replaced((inner, declared), rest, value, place)?;
                Ok(expression::part_assigned(current, subscripts, value))
            }
        }
    }

    /// The array with the elements of another one in a slice.
    fn slice_replaced(
        &mut self,
        (current, declared): (expression::Expression, DataType),
        steps: &[PathStep],
        rest: &[PathStep],
        value: &Expression,
        place: &Place<'_>,
    ) -> Result<expression::Expression, SqlError> {
        match rest.first() {
            Some(PathStep::Field(name)) => {
                let shown = self.tables.routines().types().name_of(current.data_type);
                return Err(no_fields(&name.text, &place.variable.name, &shown).at(name.position));
            }
            Some(_) => {
                return Err(SqlError::unsupported("an array of more than one dimension")
                    .hint("Use a table.")
                    .at(place.target.position()));
            }
            None => {}
        }
        let value =
            self.expression_of(value, declared, &format!("an element of \"{}\"", place.variable.name))?;
        let mut written = Vec::with_capacity(steps.len());
        for step in steps {
            let mut bound = |bound: &Expression| self.subscript(bound, false);
            written.push(match step {
                PathStep::Element(subscript) => (Some(bound(subscript)?), None, false),
                PathStep::Slice(from, to) => {
                    let from = from.as_deref().map(&mut bound).transpose()?;
                    (from, to.as_deref().map(bound).transpose()?, true)
                }
                PathStep::Field(_) => continue,
            });
        }
        Ok(expression::part_assigned(current, Subscripts::new(written)?, value))
    }

    /// A subscript; one that is used twice is computed once, into a variable of its own.
    fn subscript(
        &mut self,
        subscript: &Expression,
        is_used_twice: bool,
    ) -> Result<expression::Expression, SqlError> {
        let value = self.expression_of(subscript, DataType::Integer, "a subscript")?;
        if !is_used_twice || value.as_constant().is_some() {
            return Ok(value);
        }
        // The place in the code may be taken back, and the variable stays. Version 10 had it named by that place.
        let name = match self.tables.version() < ExecutionVersion::V11 {
            true => format!("__subscript_{}__", self.here()),
            false => format!("__subscript_{}__", self.variables.slots()?),
        };
        let slot = self.variables.declare_plain(&name, DataType::Integer)?;
        self.emit(Instruction::Assign { slot, value });
        Ok(expression::Expression::slot(usize::from(slot), DataType::Integer))
    }

    /// A `jsonb` with a value at `['key'][0]…`.
    fn json_replaced(
        &mut self,
        json: expression::Expression,
        path: &[PathStep],
        value: &Expression,
        what: &str,
    ) -> Result<expression::Expression, SqlError> {
        if path.len() > limits::JSON_NESTING_MAX && self.tables.version() >= ExecutionVersion::V11 {
            return Err(json_too_deep());
        }
        let mut keys = Vec::with_capacity(path.len());
        let mut starts_with_index = false;
        for step in path {
            let subscript = match step {
                PathStep::Element(subscript) => subscript,
                PathStep::Slice(..) => {
                    let message = "jsonb subscript does not support slices";
                    return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
                }
                PathStep::Field(name) => {
                    return Err(no_fields(&name.text, what, "jsonb").at(name.position));
                }
            };
            let bound = self.expression(subscript)?;
            starts_with_index |= keys.is_empty() && bound.data_type.is_integer();
            let key = self.converted(bound, DataType::Text(None), "a subscript");
            keys.push(key.map_err(|error| or_at(error, subscript.position))?);
        }
        let value = self.expression_of(value, DataType::Jsonb, what)?;
        Ok(expression::json_assigned(json, keys, starts_with_index, value))
    }
}

fn no_fields(field: &str, of: &str, data_type: &str) -> SqlError {
    let message = format!(
        "cannot assign to field \"{field}\" of column \"{of}\" because its type {data_type} is not a composite type"
    );
    SqlError::new(SqlState::DATATYPE_MISMATCH, message)
}
