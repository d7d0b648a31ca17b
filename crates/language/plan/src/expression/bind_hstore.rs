//! Binding of what values of type hstore have beside functions and operators of the table: subscripts, and what is made of rows.

use crate::expression::refusals::no_function;
use crate::expression::{Binder, Expression, Kind};
use sqlparser::ast::Subscript;
use std::sync::Arc;
use types::{Array, DataType, ElementType, ExecutionVersion, SqlError, SqlState, Value};
use values::functions;

impl Binder<'_> {
    /// `hstore(record)`: the names of its fields and their values as texts; `None` for other arguments.
    ///
    /// # Errors
    /// `0A000` where nothing tells the names of the fields, and for what fills a record from an hstore.
    pub(super) fn bind_hstore_call(
        &self,
        name: &str,
        arguments: &[Expression],
    ) -> Result<Option<Expression>, SqlError> {
        if self.scope().version() < ExecutionVersion::V16 {
            return Ok(None);
        }
        match (name, arguments) {
            ("hstore", [row]) if row.data_type.is_composite() => {
                let missing = || no_function(name, &[row.data_type]);
                let fields = self.fields_of(row).ok_or_else(missing)?;
                let names = fields.iter().map(|field| Value::text(field.name.as_str())).collect();
                let names = Value::Array(Arc::new(Array::new(ElementType::TEXT, names)?));
                let names = Expression::constant(names, DataType::Array(ElementType::TEXT));
                let kind = Kind::Function(&functions::HSTORE_OF_ROW, vec![names, row.clone()]);
                Ok(Some(Expression { kind, data_type: DataType::Hstore }))
            }
            ("populate_record", [_, store]) if store.data_type == DataType::Hstore => {
                Err(SqlError::unsupported("populate_record() of an hstore")
                    .hint("Use jsonb_populate_record() of hstore_to_jsonb()."))
            }
            ("set_limit", [_]) => Err(SqlError::unsupported("the function set_limit()")
                .hint("Compare similarity() with a limit of your own.")),
            _ => Ok(None),
        }
    }

    /// `store['key']`
    ///
    /// # Errors
    /// `0A000` for a slice, `42804` for a subscript that is no text.
    pub(super) fn hstore_subscript(
        &self,
        store: Expression,
        subscript: &Subscript,
    ) -> Result<Expression, SqlError> {
        let Subscript::Index { index } = subscript else { return Err(one_subscript()) };
        let key = self.hstore_key(self.bind(index)?)?;
        self.call_by_name("->", vec![store, key])
    }

    /// A subscript, as a text.
    ///
    /// # Errors
    /// `42804` where it is none.
    pub(crate) fn hstore_key(&self, key: Expression) -> Result<Expression, SqlError> {
        self.argument(key, DataType::Text(None))
            .ok_or_else(|| SqlError::new(SqlState::DATATYPE_MISMATCH, "hstore subscript must have type text"))
    }
}

/// The words for a slice, and for a second subscript.
#[cold]
pub fn one_subscript() -> SqlError {
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "hstore allows only one subscript")
}

/// The value of a column or variable with another one for a key.
pub fn hstore_assigned(store: Expression, key: Expression, value: Expression) -> Expression {
    let kind = Kind::Function(&functions::HSTORE_ASSIGN, vec![store, key, value]);
    Expression { kind, data_type: DataType::Hstore }
}
