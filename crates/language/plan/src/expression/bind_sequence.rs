//! Calls of `nextval`, `setval`, `currval` and `lastval`, and of `pg_get_serial_sequence`.

use crate::expression::bind::Binder;
use crate::expression::{Expression, Kind, RoutineCall};
use crate::sequence::{
    CURRENT_VALUE, LAST_VALUE, NEXT_VALUE, SERIAL_SEQUENCE, SET_VALUE, STANDING_IS_DRAWN, STANDING_VALUE,
    asks_for_sequence, looks_at_sequence, no_sequence, sequence_name,
};
use types::{DataType, ExecutionVersion, SqlError, Value, quoted_catalog_name};

impl Binder<'_> {
    /// A call of one of these functions; `None` where it is none.
    ///
    /// # Errors
    /// `42P01` for a sequence that is not there.
    pub fn bind_sequence_call(
        &self,
        name: &str,
        arguments: &[Expression],
    ) -> Result<Option<Expression>, SqlError> {
        let name = match (name, arguments.len()) {
            ("nextval", 1) => NEXT_VALUE,
            ("currval", 1) => CURRENT_VALUE,
            ("lastval", 0) => LAST_VALUE,
            ("setval", 2 | 3) => SET_VALUE,
            // Only queries of our own have these names.
            (STANDING_VALUE, 1) if self.scope().version() >= ExecutionVersion::V16 => STANDING_VALUE,
            (STANDING_IS_DRAWN, 1) if self.scope().version() >= ExecutionVersion::V16 => STANDING_IS_DRAWN,
            _ => return Ok(None),
        };
        let mut cast = Vec::with_capacity(arguments.len());
        for (position, argument) in arguments.iter().enumerate() {
            let expected = match position {
                0 => DataType::Text(None),
                1 => DataType::BigInt,
                _ => DataType::Boolean,
            };
            let Some(mut argument) = self.argument(argument.clone(), expected) else {
                return Ok(None);
            };
            if let Kind::Constant(Value::Text(text)) = &argument.kind {
                let sequence = sequence_name(text)?;
                let routines = self.scope().routines();
                let found = routines.find_sequence(&sequence).ok_or_else(|| no_sequence(&sequence))?;
                if found != sequence {
                    // The name in the catalog is the same under every search path.
                    argument.kind = Kind::Constant(Value::text(quoted_catalog_name(&found)));
                }
            }
            cast.push(argument);
        }
        let data_type = if name == STANDING_IS_DRAWN { DataType::Boolean } else { DataType::BigInt };
        Ok(Some(self.call_in_execution(name, !looks_at_sequence(name), cast, data_type)))
    }

    /// `pg_get_serial_sequence(relation, column)`; `None` where it is not that, or before version 13.
    ///
    /// # Errors
    /// `42602` for what is no name of a relation.
    pub(super) fn bind_serial_sequence(
        &self,
        name: &str,
        arguments: &[Expression],
    ) -> Result<Option<Expression>, SqlError> {
        // Queries of the catalog have a function of this name, which looks at its relations.
        let is_known = self.scope().routines().get(name).is_none();
        let is_known = is_known && asks_for_sequence(name, self.scope().version());
        let ([relation, column], true) = (arguments, is_known) else { return Ok(None) };
        let text = DataType::Text(None);
        let taken = [relation, column].map(|argument| self.argument(argument.clone(), text));
        let [Some(mut relation), Some(column)] = taken else { return Ok(None) };
        if let Kind::Constant(Value::Text(named)) = &relation.kind {
            let routines = self.scope().routines();
            let is_there = |found: &str| routines.types().named(found).is_some();
            if let Some(found) = routines.search_path().find(&sequence_name(named)?, is_there) {
                // The name in the catalog is the same under every search path.
                relation.kind = Kind::Constant(Value::text(quoted_catalog_name(&found)));
            }
        }
        Ok(Some(self.call_in_execution(SERIAL_SEQUENCE, false, vec![relation, column], text)))
    }

    /// A call of a function that runs in the execution of its statement.
    fn call_in_execution(
        &self,
        name: &str,
        is_volatile: bool,
        arguments: Vec<Expression>,
        data_type: DataType,
    ) -> Expression {
        let call = RoutineCall { is_volatile, ..RoutineCall::in_execution(name, arguments) };
        self.scope().note_call(&call.callee);
        Expression { kind: Kind::Call(Box::new(call)), data_type }
    }
}
