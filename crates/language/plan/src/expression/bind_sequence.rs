//! Calls of `nextval`, `setval`, `currval` and `lastval`.

use crate::expression::bind::Binder;
use crate::expression::{Expression, Kind, RoutineCall};
use crate::polymorphic::Callee;
use crate::routines::CallForm;
use crate::sequence::{CURRENT_VALUE, LAST_VALUE, NEXT_VALUE, SET_VALUE, no_sequence, sequence_name};
use types::{DataType, SqlError, Value, quoted_catalog_name};

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
        let callee = Callee::named(name);
        self.scope().note_call(&callee);
        let call = RoutineCall {
            callee,
            is_volatile: true,
            is_strict: true,
            arguments: cast,
            form: CallForm::Value,
            columns: None,
            columns_are_asked: false,
        };
        Ok(Some(Expression { kind: Kind::Call(Box::new(call)), data_type: DataType::BigInt }))
    }
}
