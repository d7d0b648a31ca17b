//! Compiling what is done with variables of composite types: their fields assigned, rows stored into them.

use crate::coercion::{coerce, coercion};
use crate::compile::compiler::Compiler;
use crate::position::or_at;
use crate::program::Instruction;
use crate::target::{RowTarget, Store};
use plan::expression::{self, Binder, RowForm, RowOperation, Source};
use syntax::plpgsql::ast::{Expression, Target};
use types::{DataType, SqlError, SqlState};

/// Where the columns go, and their types.
type PackedTarget = (RowTarget, Box<[DataType]>);

impl Compiler<'_> {
    /// A value as one of this type, as an assignment makes it; `what` is assigned.
    ///
    /// # Errors
    /// `42804` where there is no such assignment.
    pub(crate) fn converted(
        &self,
        value: expression::Expression,
        data_type: DataType,
        what: &str,
    ) -> Result<expression::Expression, SqlError> {
        if matches!(data_type, DataType::Domain(_)) {
            let value = self.converted(value, self.tables.routines().types().base_of(data_type), what)?;
            return Ok(self.held_against(value, Some(data_type)));
        }
        if let Some(types::Value::Text(text)) =
            value.as_constant().filter(|_| value.data_type == DataType::Unknown)
            && let Some(moment) =
                Binder::new(self.variables.scope(), Source::Nothing).clock_literal(text, data_type)
        {
            return Ok(moment);
        }
        let of_rows = data_type.needs_catalog();
        if !of_rows {
            return coerce(value, data_type, what);
        }
        let binder = Binder::new(self.variables.scope(), Source::Nothing);
        match (value.data_type, data_type) {
            (DataType::Unknown, _) => binder.assign_to_column(value, what, data_type),
            (found, DataType::Record) if found.is_composite() => binder.known_fields(value),
            (DataType::Text(_), _) => binder.convert_row(value, data_type, false),
            (DataType::Record, _) => {
                // What is missing is NULL, and what is too much is left out.
                let count =
                    self.tables.routines().types().of(data_type).map_or(0, |known| known.fields.len());
                binder.assign_to_column(value.with_fields(count), what, data_type)
            }
            (found, _) if data_type.is_composite() && !found.is_composite() => {
                let text = coerce(value, DataType::Text(None), what)?;
                binder.convert_row(text, data_type, false)
            }
            _ => binder.assign_to_column(value, what, data_type),
        }
    }

    /// A value, held against the domain of its variable.
    pub(crate) fn held_against(
        &self,
        value: expression::Expression,
        domain: Option<DataType>,
    ) -> expression::Expression {
        match domain {
            Some(domain) => Binder::new(self.variables.scope(), Source::Nothing).checked(value, domain),
            None => value,
        }
    }

    /// A value as what a function of a composite type or of `record` returns.
    ///
    /// # Errors
    /// `42804` where it is no row, or has fields of other types.
    pub(crate) fn returned(
        &self,
        value: expression::Expression,
        data_type: DataType,
        what: &str,
    ) -> Result<expression::Expression, SqlError> {
        let types = self.tables.routines().types();
        if value.as_constant().is_some_and(types::Value::is_null) {
            return Ok(expression::Expression { data_type, ..value });
        }
        if !value.data_type.is_composite() {
            let message = "cannot return non-composite value from function returning composite type";
            return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
        }
        let binder = Binder::new(self.variables.scope(), Source::Nothing);
        let Some(known) = types.of(data_type).filter(|_| value.data_type != data_type) else {
            return self.converted(value, data_type, what);
        };
        if let Some(found) = binder.fields_of(&value) {
            let mismatch = |detail: String| {
                let message = "returned record type does not match expected record type";
                SqlError::new(SqlState::DATATYPE_MISMATCH, message).detail(detail)
            };
            if found.len() != known.fields.len() {
                return Err(mismatch(format!(
                    "Number of returned columns ({}) does not match expected column count ({}).",
                    found.len(),
                    known.fields.len()
                )));
            }
            for (position, (found, expected)) in found.iter().zip(&known.fields).enumerate() {
                let (found, expected) = (found.data_type.family(), expected.data_type.family());
                if found != expected {
                    return Err(mismatch(format!(
                        "Returned type {} does not match expected type {} in column {}.",
                        types.name_of(found),
                        types.name_of(expected),
                        position + 1
                    )));
                }
            }
        }
        binder.convert_row(value, data_type, false)
    }

    /// `variable.field := value`, where the variable is of a composite type; false where it is none.
    pub(crate) fn field_assignment(&mut self, target: &Target, value: &Expression) -> Result<bool, SqlError> {
        let types = self.tables.routines().types();
        let found = self.variables.composite_field(types, target);
        let Some((variable, path)) = found.map_err(|error| or_at(error, target.position()))? else {
            return Ok(false);
        };
        let Some(last) = path.last() else { return Ok(false) };
        let what = format!("field \"{}\"", target.text());
        let value = self.expression_of(value, last.data_type, &what)?;
        let row = expression::Expression::slot(usize::from(variable.slot), variable.data_type);
        let value = expression::Expression::with_field(row, &path, value);
        let value = self.held_against(value, variable.domain);
        self.emit(Instruction::Assign { slot: variable.slot, value });
        Ok(true)
    }

    /// Where the columns of a row go that become a value of a composite type: into variables of their own, of which the
    /// value is made by [`Compiler::emit_packed`]. `None` where the only target is no variable of such a type.
    pub(crate) fn packed_target(
        &mut self,
        targets: &[Target],
        columns: Option<&[DataType]>,
        strict: bool,
    ) -> Result<Option<PackedTarget>, SqlError> {
        let [target] = targets else { return Ok(None) };
        if self.variables.is_record(target) {
            return Ok(None);
        }
        let Ok(variable) = self.variables.assignable(target) else { return Ok(None) };
        let Some(known) = self.tables.routines().types().of(variable.data_type).cloned() else {
            return Ok(None);
        };
        let mut stores = Vec::with_capacity(known.fields.len());
        let mut parts = Vec::with_capacity(known.fields.len());
        for (position, field) in known.fields.iter().enumerate() {
            let name = format!("__column_{}_{position}__", self.here());
            let slot = self.variables.declare_plain(&name, field.data_type)?;
            let from = match columns {
                // A column that is not there is NULL, whatever its type.
                Some(columns) => columns.get(position).copied().unwrap_or(DataType::Unknown),
                None => field.data_type,
            };
            let what = format!("field \"{}\" of \"{}\"", field.name, variable.name);
            let coercion =
                coercion(from, field.data_type, &what).map_err(|error| or_at(error, target.position()))?;
            stores.push(Store { slot, coercion, not_null: None, domain: None });
            parts.push(expression::Expression::slot(usize::from(slot), field.data_type));
        }
        let operation = RowOperation::Build(RowForm::default());
        let row = expression::Expression::row(operation, parts, variable.data_type);
        let row = self.held_against(row, variable.domain);
        self.packed.push((variable.slot, row));
        let types = known.fields.iter().map(|field| field.data_type).collect();
        Ok(Some((RowTarget { stores: stores.into(), flag: None, strict, record: None }, types)))
    }

    /// Makes values of the columns that [`Compiler::packed_target`] has stored.
    pub(crate) fn emit_packed(&mut self) {
        for (slot, value) in std::mem::take(&mut self.packed) {
            self.emit(Instruction::Assign { slot, value });
        }
    }
}
