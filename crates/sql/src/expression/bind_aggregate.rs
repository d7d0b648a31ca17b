//! Binding of aggregates.

use super::call::{no_function, plain_argument};
use super::{Binder, Expression, Kind};
use crate::aggregate::{Aggregate, AggregateFunction, AggregateOrder};
use sqlparser::ast::{self, Expr, FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArguments};
use sqlparser::tokenizer::Span;
use types::{DataType, SqlError, SqlState};

impl Binder<'_> {
    pub(super) fn bind_aggregate(
        &self,
        function: AggregateFunction,
        name: &str,
        call: &ast::Function,
        span: Span,
    ) -> Result<Expression, SqlError> {
        if let Some(clause) = self.no_aggregates_in.get() {
            let message = match clause {
                "aggregate" => "aggregate function calls cannot be nested".to_string(),
                clause => format!("aggregate functions are not allowed in {clause}"),
            };
            return Err(self.at(SqlError::new(SqlState::GROUPING_ERROR, message), span));
        }
        self.no_aggregates_in.set(Some("aggregate"));
        let aggregate = self.aggregate(function, name, call);
        self.no_aggregates_in.set(None);
        let aggregate = aggregate?;
        let data_type = aggregate.data_type;
        let mut aggregates = self.aggregates.borrow_mut();
        let number = aggregates.iter().position(|known| *known == aggregate).unwrap_or_else(|| {
            aggregates.push(aggregate);
            aggregates.len() - 1
        });
        Ok(Expression { kind: Kind::Aggregate(number as u16), data_type })
    }

    /// The aggregate that a call is, over the rows that are grouped or of a window.
    pub(super) fn aggregate(
        &self,
        function: AggregateFunction,
        name: &str,
        call: &ast::Function,
    ) -> Result<Aggregate, SqlError> {
        let FunctionArguments::List(list) = &call.args else {
            return Err(no_function(name, &[]));
        };
        let mut order = Vec::new();
        for clause in &list.clauses {
            match clause {
                FunctionArgumentClause::OrderBy(keys) => order.extend(self.bind_keys(keys)?),
                _ => return Err(SqlError::unsupported(format_args!("this form of the function {name}"))),
            }
        }
        let filter = match call.filter.as_deref() {
            Some(filter) => Some(self.bind_condition(filter, "FILTER")?),
            None => None,
        };
        let distinct = list.duplicate_treatment == Some(ast::DuplicateTreatment::Distinct);
        let wildcard = matches!(list.args.as_slice(), [FunctionArg::Unnamed(FunctionArgExpr::Wildcard)]);
        if wildcard && list.duplicate_treatment.is_some() {
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, "syntax error at or near \"*\""));
        }
        if wildcard && function == AggregateFunction::Count {
            let (argument, delimiter, data_type) = (None, None, DataType::BigInt);
            return Ok(Aggregate { function, argument, delimiter, distinct, order, filter, data_type });
        }
        if list.args.is_empty() {
            let message = format!("{name}(*) must be used to call a parameterless aggregate function");
            return Err(SqlError::new(SqlState(*b"42809"), message));
        }
        let arguments = list.args.iter().map(|argument| self.bind(plain_argument(argument)?));
        let (argument, delimiter, data_type) =
            self.aggregate_arguments(function, name, arguments.collect::<Result<_, _>>()?)?;
        if distinct && order.iter().any(|key| key.expression != argument) {
            let message = "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list";
            return Err(SqlError::new(SqlState(*b"42P10"), message));
        }
        let argument = Some(argument);
        Ok(Aggregate { function, argument, delimiter, distinct, order, filter, data_type })
    }

    /// The argument, the delimiter of `string_agg`, and the type of the result.
    fn aggregate_arguments(
        &self,
        function: AggregateFunction,
        name: &str,
        arguments: Vec<Expression>,
    ) -> Result<(Expression, Option<Expression>, DataType), SqlError> {
        let types: Vec<DataType> = arguments.iter().map(Expression::data_type).collect();
        let missing = || no_function(name, &types);
        let mut arguments = arguments.into_iter();
        let (Some(argument), delimiter, None) = (arguments.next(), arguments.next(), arguments.next()) else {
            return Err(missing());
        };
        if delimiter.is_some() != (function == AggregateFunction::Join) {
            return Err(missing());
        }
        let argument = match (argument.data_type, function) {
            (DataType::Unknown, AggregateFunction::And | AggregateFunction::Or) => {
                self.cast_to(argument, DataType::Boolean)?
            }
            _ => self.known(argument)?,
        };
        if function == AggregateFunction::Array && argument.data_type.element().is_some() {
            return Err(SqlError::unsupported("array_agg() of arrays"));
        }
        let Some((operand, result)) = function.types(argument.data_type) else { return Err(missing()) };
        let argument =
            if function == AggregateFunction::Count { argument } else { self.cast_to(argument, operand)? };
        let delimiter = match delimiter {
            Some(delimiter) => Some(self.argument(delimiter, result).ok_or_else(missing)?),
            None => None,
        };
        Ok((argument, delimiter, result))
    }

    /// The keys of an ORDER BY inside of a call or a window.
    pub(super) fn bind_keys(&self, keys: &[ast::OrderByExpr]) -> Result<Vec<AggregateOrder>, SqlError> {
        let bind = |key: &ast::OrderByExpr| {
            if key.with_fill.is_some() {
                return Err(SqlError::unsupported("WITH FILL"));
            }
            let descending = key.options.asc == Some(false);
            let nulls_first = key.options.nulls_first.unwrap_or(descending);
            Ok(AggregateOrder { expression: self.bind_known(&key.expr)?, descending, nulls_first })
        };
        keys.iter().map(bind).collect()
    }

    /// Binds expressions of known types.
    pub(super) fn bind_all_known(&self, expressions: &[Expr]) -> Result<Vec<Expression>, SqlError> {
        expressions.iter().map(|expression| self.bind_known(expression)).collect()
    }
}
