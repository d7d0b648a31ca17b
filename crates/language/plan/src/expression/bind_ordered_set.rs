//! Binding of aggregates with WITHIN GROUP.

use crate::aggregate::{Aggregate, AggregateFunction, AggregateOrder, OrderedSet};
use crate::expression::refusals::no_function;
use crate::expression::written::plain_argument;
use crate::expression::{Binder, Expression};
use sqlparser::ast;
use types::{DataType, SqlError, SqlState, common_type};

impl Binder<'_> {
    /// That a function has no WITHIN GROUP: PostgreSQL looks for one with the sort keys as further arguments.
    pub(super) fn no_ordered_set(&self, name: &str, call: &ast::Function) -> Result<SqlError, SqlError> {
        let mut types = Vec::new();
        if let ast::FunctionArguments::List(list) = &call.args {
            for argument in &list.args {
                types.push(self.bind(plain_argument(argument)?)?.data_type);
            }
        }
        for key in &call.within_group {
            types.push(self.bind(&key.expr)?.data_type);
        }
        Ok(no_function(name, &types).hint("It is no ordered-set aggregate, so it cannot have WITHIN GROUP."))
    }

    pub(super) fn ordered_set(
        &self,
        function: OrderedSet,
        name: &str,
        call: &ast::Function,
        list: &ast::FunctionArgumentList,
    ) -> Result<Aggregate, SqlError> {
        self.check_ordered_set(function, name, call, list)?;
        let filter = match call.filter.as_deref() {
            Some(filter) => Some(self.bind_condition(filter, "FILTER")?),
            None => None,
        };
        let arguments = list.args.iter().map(|argument| self.bind(plain_argument(argument)?));
        let mut direct = arguments.collect::<Result<Vec<_>, _>>()?;
        let mut order = self.bind_keys(&call.within_group)?;
        let data_type = match function.is_hypothetical() {
            true => self.hypothetical_type(function, name, &mut direct, &mut order)?,
            false => self.ordered_type(function, name, &mut direct, &mut order)?,
        };
        let function = AggregateFunction::OrderedSet(function);
        Ok(Aggregate {
            function,
            argument: None,
            second: None,
            direct,
            distinct: false,
            order,
            filter,
            data_type,
            user: None,
        })
    }

    fn check_ordered_set(
        &self,
        function: OrderedSet,
        name: &str,
        call: &ast::Function,
        list: &ast::FunctionArgumentList,
    ) -> Result<(), SqlError> {
        if call.within_group.is_empty() && !function.is_hypothetical() {
            let arguments = list.args.iter().map(|argument| self.bind(plain_argument(argument)?));
            let arguments = arguments.collect::<Result<Vec<_>, _>>()?;
            let types: Vec<DataType> = arguments.iter().map(Expression::data_type).collect();
            return Err(no_function(name, &types).hint("It takes its values behind WITHIN GROUP."));
        }
        if call.within_group.is_empty() {
            let message = format!("WITHIN GROUP is required for ordered-set aggregate {name}");
            return Err(SqlError::new(SqlState(*b"42809"), message));
        }
        if list.duplicate_treatment.is_some() || !list.clauses.is_empty() {
            let what = if list.clauses.is_empty() { "DISTINCT" } else { "multiple ORDER BY clauses" };
            let message = format!("cannot use {what} with WITHIN GROUP");
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
        }
        Ok(())
    }

    /// The type of where a row of the direct arguments would stand, which get the types of the sorted columns.
    fn hypothetical_type(
        &self,
        function: OrderedSet,
        name: &str,
        direct: &mut [Expression],
        order: &mut [AggregateOrder],
    ) -> Result<DataType, SqlError> {
        if direct.len() != order.len() {
            let hint = format!(
                "To use the hypothetical-set aggregate {name}, the number of hypothetical direct arguments \
                 (here {}) must match the number of ordering columns (here {}).",
                direct.len(),
                order.len()
            );
            return Err(no_ordered_function(name, direct, order).hint(hint));
        }
        for (value, key) in direct.iter_mut().zip(order) {
            let (given, wanted) = (value.data_type, key.expression.data_type);
            let Some(common) = common_type([wanted, given]) else {
                let (wanted, given) = (wanted.family(), given.family());
                let message = format!("WITHIN GROUP types {wanted} and {given} cannot be matched");
                return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
            };
            for side in [value, &mut key.expression] {
                *side = self.cast_to(side.clone(), common.family())?;
            }
        }
        Ok(match function {
            OrderedSet::PercentRank | OrderedSet::CumulativeShare => DataType::Double,
            _ => DataType::BigInt,
        })
    }

    /// The type of a value among the sorted ones: of the most frequent, or of those at fractions.
    fn ordered_type(
        &self,
        function: OrderedSet,
        name: &str,
        direct: &mut Vec<Expression>,
        order: &mut [AggregateOrder],
    ) -> Result<DataType, SqlError> {
        let missing = no_ordered_function(name, direct, order);
        let [key] = order else { return Err(missing) };
        if let (OrderedSet::Mode, []) = (function, direct.as_slice()) {
            return Ok(key.expression.data_type);
        }
        let [fraction] = direct.as_slice() else { return Err(missing) };
        if function == OrderedSet::Mode {
            return Err(missing);
        }
        let wanted = match fraction.data_type.element() {
            Some(_) => DataType::Double.array(),
            None => Some(DataType::Double),
        };
        let bound = wanted.and_then(|wanted| self.argument(fraction.clone(), wanted));
        let Some(fraction) = bound else { return Err(missing) };
        let many = fraction.data_type.element().is_some();
        if function == OrderedSet::Continuous && key.expression.data_type != DataType::Interval {
            let double = self.argument(key.expression.clone(), DataType::Double);
            key.expression = double.ok_or(missing)?;
        }
        *direct = vec![fraction];
        let one = key.expression.data_type.family();
        Ok(if many { one.array().unwrap_or(one) } else { one })
    }
}

/// There is no such function of these direct arguments and sorted columns.
fn no_ordered_function(name: &str, direct: &[Expression], order: &[AggregateOrder]) -> SqlError {
    let sorted = order.iter().map(|key| &key.expression);
    let types: Vec<DataType> = direct.iter().chain(sorted).map(Expression::data_type).collect();
    no_function(name, &types)
}
