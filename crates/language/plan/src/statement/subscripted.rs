//! `SET column[1].field = value`: a new value of the column, with another one where the subscripts and fields lead to.

use crate::expression::{
    Binder, Expression, FieldOwner, Subscripts, element_of, field_path, hstore_assigned, json_assigned,
    one_subscript, part_assigned,
};
use sqlparser::ast::{Expr, Ident, Spanned};
use syntax::names::name_of;
use syntax::parse::subscripts::{Subscript, is_subscript, subscript_of};
use types::{DataType, ExecutionVersion, SqlError, SqlState, json_too_deep, limits};

/// What is assigned, and to which column.
pub(super) struct Subscripted<'a, 'b> {
    pub binder: &'a Binder<'b>,
    /// The column, which errors name.
    pub column: &'a str,
    /// The value.
    pub value: &'a Expr,
}

impl Subscripted<'_, '_> {
    /// A value with another one where the path leads to. `declared`: its type, with the digits of a second that it keeps.
    ///
    /// # Errors
    /// `42804` for what has no elements or fields; `0A000` for a subscript that runs a query or a function.
    pub fn replaced(
        &self,
        (current, declared): (Expression, DataType),
        path: &[Ident],
    ) -> Result<Expression, SqlError> {
        let data_type = current.data_type;
        let Some((step, rest)) = path.split_first() else {
            return self.assigned(declared);
        };
        if !is_subscript(step) {
            let name = name_of(step)?;
            let types = self.binder.types();
            if types.of(data_type).is_none() {
                return Err(self.no_fields(&name, &types.name_of(data_type)));
            }
            let steps = field_path(types, FieldOwner::Column(self.column), data_type, &[&name])?;
            let Some(step) = steps.last() else { return Ok(current) };
            let inner = Expression::field(current.clone(), step.position, step.data_type);
            let value = self.replaced((inner, step.data_type), rest)?;
            return Ok(Expression::with_field(current, &steps, value));
        }
        if data_type == DataType::Jsonb {
            return self.json_replaced(current, path);
        }
        if data_type == DataType::Hstore {
            return self.hstore_replaced(current, path);
        }
        if data_type.element().is_none() {
            let shown = self.binder.types().name_of(data_type);
            let message = format!("cannot subscript type {shown} because it does not support subscripting");
            return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
        }
        // Those of all dimensions belong together; before version 16 there is one.
        let together = match self.binder.scope().version() >= ExecutionVersion::V16 {
            true => path.iter().take_while(|step| is_subscript(step)).count(),
            false => 1,
        };
        let (steps, rest) = path.split_at(together);
        let version = self.binder.scope().version();
        let steps = steps.iter().map(|step| subscript_of(step, version)).collect::<Result<Vec<_>, _>>()?;
        if steps.iter().any(|step| matches!(step, Subscript::Slice(..))) {
            match rest.first() {
                Some(part) if is_subscript(part) => {
                    return Err(
                        SqlError::unsupported("an array of more than one dimension").hint("Use a table.")
                    );
                }
                Some(part) => {
                    let shown = self.binder.types().name_of(data_type);
                    return Err(self.no_fields(&name_of(part)?, &shown));
                }
                None => {}
            }
            let value = self.assigned(declared)?;
            return Ok(part_assigned(current, self.subscripts(steps)?, value));
        }
        let subscripts = self.subscripts(steps)?;
        let Subscripts::Element(places) = &subscripts else { return Ok(current) };
        let inner = element_of(current.clone(), places.clone());
        let declared = match declared {
            DataType::Array(element) => element.data_type(),
            other => other,
        };
        let value = self.replaced((inner, declared), rest)?;
        Ok(part_assigned(current, subscripts, value))
    }

    /// What stands in brackets, bound.
    fn subscripts(&self, steps: Vec<Subscript>) -> Result<Subscripts, SqlError> {
        let bound = |bound: Option<Box<Expr>>| bound.map(|bound| self.subscript(&bound)).transpose();
        let written = steps.into_iter().map(|step| match step {
            Subscript::Element(subscript) => Ok((Some(self.subscript(&subscript)?), None, false)),
            Subscript::Slice(from, to) => Ok((bound(from)?, bound(to)?, true)),
        });
        Subscripts::new(written.collect::<Result<_, SqlError>>()?)
    }

    /// The value, as one of this type.
    fn assigned(&self, data_type: DataType) -> Result<Expression, SqlError> {
        let bound = self.binder.in_clause(Some("UPDATE")).bind_towards(self.value, data_type)?;
        let assigned = self.binder.assign_to_column(bound, self.column, data_type);
        assigned.map_err(|error| self.binder.at(error, self.value.span()))
    }

    fn subscript(&self, subscript: &Expr) -> Result<Expression, SqlError> {
        let bound = self.binder.bind(subscript)?;
        self.refuse_run(&bound)?;
        let assigned = self.binder.assign_to_column(bound, "subscript", DataType::Integer);
        assigned.map_err(|error| match error.state {
            SqlState::DATATYPE_MISMATCH => {
                SqlError::new(SqlState::DATATYPE_MISMATCH, "array subscript must have type integer")
            }
            _ => error,
        })
    }

    /// A `jsonb` with the value at `['key'][0]…`.
    fn json_replaced(&self, json: Expression, path: &[Ident]) -> Result<Expression, SqlError> {
        if path.len() > limits::JSON_NESTING_MAX {
            return Err(json_too_deep());
        }
        let mut keys = Vec::with_capacity(path.len());
        let mut starts_with_index = false;
        for step in path {
            if !is_subscript(step) {
                return Err(self.no_fields(&name_of(step)?, "jsonb"));
            }
            let Subscript::Element(subscript) = subscript_of(step, self.binder.scope().version())? else {
                let message = "jsonb subscript does not support slices";
                return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
            };
            let bound = self.binder.bind(&subscript)?;
            self.refuse_run(&bound)?;
            starts_with_index |= keys.is_empty() && bound.data_type.is_integer();
            keys.push(self.binder.assign_to_column(bound, "subscript", DataType::Text(None))?);
        }
        let value = self.assigned(DataType::Jsonb)?;
        Ok(json_assigned(json, keys, starts_with_index, value))
    }

    /// An `hstore` with the value for a key.
    fn hstore_replaced(&self, store: Expression, path: &[Ident]) -> Result<Expression, SqlError> {
        let [step] = path else { return Err(one_subscript()) };
        let Subscript::Element(key) = subscript_of(step, self.binder.scope().version())? else {
            return Err(one_subscript());
        };
        let key = self.binder.bind(&key)?;
        self.refuse_run(&key)?;
        let key = self.binder.hstore_key(key)?;
        let value = self.assigned(DataType::Text(None))?;
        Ok(hstore_assigned(store, key, value))
    }

    fn refuse_run(&self, subscript: &Expression) -> Result<(), SqlError> {
        match subscript.runs_anything() {
            false => Ok(()),
            true => Err(SqlError::unsupported("a subscript in SET that runs a query or a function")
                .hint("Compute it in FROM.")),
        }
    }

    fn no_fields(&self, field: &str, data_type: &str) -> SqlError {
        let message = format!(
            "cannot assign to field \"{field}\" of column \"{}\" because its type {data_type} is not a composite type",
            self.column
        );
        SqlError::new(SqlState::DATATYPE_MISMATCH, message)
    }
}
