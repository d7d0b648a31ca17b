//! Calls of functions about assets.

use crate::assets::AssetFunction;
use crate::expression::bind::Binder;
use crate::expression::refusals::no_function;
use crate::expression::{Expression, Kind, RoutineCall};
use sqlparser::ast::{self, FunctionArguments};
use types::{DataType, ElementType, SqlError};

fn types_of(arguments: &[Expression]) -> Vec<DataType> {
    arguments.iter().map(Expression::data_type).collect()
}

impl Binder<'_> {
    /// A call of one of these functions.
    ///
    /// # Errors
    /// `42883` for other arguments.
    pub(super) fn bind_asset_call(
        &self,
        asset: AssetFunction,
        function: &ast::Function,
    ) -> Result<Expression, SqlError> {
        let given = match &function.args {
            FunctionArguments::None => Vec::new(),
            FunctionArguments::List(list) => self.bind_arguments(&list.args)?,
            FunctionArguments::Subquery(_) => {
                return Err(SqlError::unsupported("a subquery as an argument"));
            }
        };
        let given: Vec<Expression> = given.into_iter().map(|argument| argument.value).collect();
        let text = DataType::Text(None);
        let other = || no_function(asset.name(), &types_of(&given));
        let cast = |argument: &Expression| self.argument(argument.clone(), text);
        let (arguments, data_type) = match (asset, given.as_slice()) {
            (AssetFunction::Signers, []) => {
                (Vec::new(), ElementType::new(text).map_or(text, DataType::Array))
            }
            (AssetFunction::HandOver | AssetFunction::TakeOver, [schema, what]) => {
                let what = match what.data_type() {
                    DataType::Unknown => cast(what).ok_or_else(other)?,
                    _ => what.clone(),
                };
                (vec![cast(schema).ok_or_else(other)?, what], text)
            }
            (AssetFunction::Offer(_), [given]) => (vec![cast(given).ok_or_else(other)?], text),
            _ => return Err(other()),
        };
        let call = RoutineCall { is_strict: false, ..RoutineCall::in_execution(asset.name(), arguments) };
        self.scope().note_call(&call.callee);
        Ok(Expression { kind: Kind::Call(Box::new(call)), data_type })
    }
}
