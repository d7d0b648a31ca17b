//! Binding of aggregates.

use crate::aggregate::{Aggregate, AggregateFunction, AggregateOrder, JsonAggregate};
use crate::expression::refusals::no_function;
use crate::expression::routine::whole_row_of;
use crate::expression::written::plain_argument;
use crate::expression::{Binder, Expression, Kind};
use sqlparser::ast::{self, Expr, FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArguments};
use sqlparser::tokenizer::Span;
use types::{DataType, ExecutionVersion, SqlError, SqlState};
use values::functions;

impl Binder<'_> {
    pub(super) fn bind_aggregate(
        &self,
        function: AggregateFunction,
        name: &str,
        call: &ast::Function,
        span: Span,
    ) -> Result<Expression, SqlError> {
        let enclosing = self.query.and_then(|(_, level)| Some((level, level.parent?, level.handed())));
        let clause = self.no_aggregates_in.replace(Some("aggregate"));
        let own = self.aggregate(function, name, call);
        self.no_aggregates_in.set(clause);
        if let (Some((level, parent, handed)), Ok(aggregate)) = (enclosing, &own)
            && is_of_enclosing(aggregate)
        {
            level.forget_since(&handed);
            let found = parent.bind_aggregate(function, name, call, span)?;
            return Ok(level.argument(found));
        }
        if let Some(clause) = self.no_aggregates_in.get() {
            let message = match clause {
                "aggregate" => "aggregate function calls cannot be nested".to_string(),
                clause => format!("aggregate functions are not allowed in {clause}"),
            };
            return Err(self.at(SqlError::new(SqlState::GROUPING_ERROR, message), span));
        }
        let aggregate = own?;
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
        if let AggregateFunction::OrderedSet(ordered) = function {
            return self.ordered_set(ordered, name, call, list);
        }
        if !call.within_group.is_empty() {
            return Err(self.no_ordered_set(name, call)?);
        }
        let mut order = self.aggregate_order(name, list)?;
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
            let (argument, data_type) = (None, DataType::BigInt);
            let plain =
                Aggregate { argument, distinct, order, filter, ..Aggregate::plain(function, data_type) };
            return Ok(plain);
        }
        let definition = match function {
            AggregateFunction::User => self.scope().routines().aggregate(name).cloned(),
            _ => None,
        };
        if let Some(definition) = &definition
            && (wildcard || (list.args.is_empty() && !definition.arguments.is_empty()))
        {
            return self.user_aggregate(definition, Vec::new(), (distinct, order, filter));
        }
        if list.args.is_empty() {
            let message = format!("{name}(*) must be used to call a parameterless aggregate function");
            return Err(SqlError::new(SqlState(*b"42809"), message));
        }
        let arguments = list.args.iter().map(|argument| match argument {
            FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(name)) => self.bind(&whole_row_of(name)),
            argument => self.bind(plain_argument(argument)?),
        });
        let arguments = arguments.collect::<Result<Vec<_>, _>>()?;
        if let Some(definition) = &definition {
            return self.user_aggregate(definition, arguments, (distinct, order, filter));
        }
        let written = arguments.clone();
        let (argument, second, data_type) = match function {
            AggregateFunction::Json(of) => self.json_aggregate_arguments(of, name, arguments)?,
            _ => self.aggregate_arguments(function, name, arguments)?,
        };
        let mut function = with_lines(function, argument.data_type);
        let listed = |key: &AggregateOrder| {
            let key = &key.expression;
            written.contains(key) || (written[0].data_type == DataType::Unknown && *key == argument)
        };
        if distinct {
            self.check_sortable(&argument, "equality")?;
        }
        if distinct && !order.iter().all(listed) {
            let message = "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list";
            return Err(SqlError::new(SqlState(*b"42P10"), message));
        }
        if let AggregateFunction::Json(of) = &mut function
            && distinct
            && self.scope().version() >= ExecutionVersion::V8
        {
            of.tells_by_order = true;
            order.extend(self.told_apart(written)?);
        }
        let (argument, direct) = (Some(argument), Vec::new());
        let user = None;
        Ok(Aggregate { function, argument, second, direct, distinct, order, filter, data_type, user })
    }

    /// What DISTINCT sorts by, behind what ORDER BY says: all arguments.
    fn told_apart(&self, arguments: Vec<Expression>) -> Result<Vec<AggregateOrder>, SqlError> {
        let key = |argument| {
            let expression = self.known(argument)?;
            self.check_sortable(&expression, "equality")?;
            Ok(AggregateOrder { expression, descending: false, nulls_first: false })
        };
        arguments.into_iter().map(key).collect()
    }

    /// ORDER BY inside of the call.
    fn aggregate_order(
        &self,
        name: &str,
        list: &ast::FunctionArgumentList,
    ) -> Result<Vec<AggregateOrder>, SqlError> {
        let mut order = Vec::new();
        for clause in &list.clauses {
            match clause {
                FunctionArgumentClause::OrderBy(keys) => order.extend(self.bind_keys(keys)?),
                _ => return Err(SqlError::unsupported(format_args!("this form of the function {name}"))),
            }
        }
        Ok(order)
    }

    /// The argument, the second one where there are two, and the type of the result.
    fn aggregate_arguments(
        &self,
        function: AggregateFunction,
        name: &str,
        arguments: Vec<Expression>,
    ) -> Result<(Expression, Option<Expression>, DataType), SqlError> {
        let types: Vec<DataType> = arguments.iter().map(Expression::data_type).collect();
        let missing = || no_function(name, &types);
        let mut arguments = arguments.into_iter();
        let (Some(argument), second, None) = (arguments.next(), arguments.next(), arguments.next()) else {
            return Err(missing());
        };
        let two = matches!(function, AggregateFunction::Join | AggregateFunction::Regression(_));
        if second.is_some() != two {
            return Err(missing());
        }
        let argument = match (argument.data_type, function) {
            (DataType::Unknown, AggregateFunction::And | AggregateFunction::Or) => {
                self.cast_to(argument, DataType::Boolean)?
            }
            _ => self.known(argument)?,
        };
        let is_older = self.scope.version() < ExecutionVersion::V16;
        if function == AggregateFunction::Array && argument.data_type.element().is_some() && is_older {
            return Err(SqlError::unsupported("array_agg() of arrays"));
        }
        let Some((operand, result)) = function.types(argument.data_type) else { return Err(missing()) };
        let argument =
            if function == AggregateFunction::Count { argument } else { self.cast_to(argument, operand)? };
        let second_type = if function == AggregateFunction::Join { result } else { operand };
        let second = match second {
            Some(second) => Some(self.argument(second, second_type).ok_or_else(missing)?),
            None => None,
        };
        Ok((argument, second, result))
    }

    /// What an aggregate of JSON sorts and tells apart by, its values as JSON, and its type. Where it makes an object the first is the
    /// key.
    fn json_aggregate_arguments(
        &self,
        of: JsonAggregate,
        name: &str,
        arguments: Vec<Expression>,
    ) -> Result<(Expression, Option<Expression>, DataType), SqlError> {
        let types: Vec<DataType> = arguments.iter().map(Expression::data_type).collect();
        let data_type = if of.is_binary { DataType::Jsonb } else { DataType::Json };
        let (first, value) = match (of.has_keys, arguments.as_slice()) {
            (false, [value]) => {
                let value = self.known(value.clone())?;
                (value.clone(), value)
            }
            (true, [key, value]) => {
                let text = DataType::Text(None);
                let kind = Kind::Function(&functions::JSON_KEY, vec![self.known(key.clone())?]);
                (Expression { kind, data_type: text }, self.known(value.clone())?)
            }
            _ => return Err(no_function(name, &types)),
        };
        let value = self.json_of(&value, of.is_binary)?;
        Ok((first, Some(value), data_type))
    }

    /// The keys of an ORDER BY inside of a call or a window.
    pub(super) fn bind_keys(&self, keys: &[ast::OrderByExpr]) -> Result<Vec<AggregateOrder>, SqlError> {
        let bind = |key: &ast::OrderByExpr| {
            if key.with_fill.is_some() {
                return Err(SqlError::unsupported("WITH FILL"));
            }
            let descending = key.options.asc == Some(false);
            let nulls_first = key.options.nulls_first.unwrap_or(descending);
            let expression = self.bind_known(&key.expr)?;
            self.check_sortable(&expression, "ordering")?;
            Ok(AggregateOrder { expression, descending, nulls_first })
        };
        keys.iter().map(bind).collect()
    }

    /// Binds expressions of known types.
    pub(super) fn bind_all_known(&self, expressions: &[Expr]) -> Result<Vec<Expression>, SqlError> {
        expressions.iter().map(|expression| self.bind_known(expression)).collect()
    }
}

/// An aggregate of JSON has lines where its elements are arrays or rows.
fn with_lines(function: AggregateFunction, argument: DataType) -> AggregateFunction {
    match function {
        AggregateFunction::Json(of) => {
            let has_lines = !of.has_keys && (argument.is_composite() || argument.element().is_some());
            AggregateFunction::Json(JsonAggregate { has_lines, ..of })
        }
        other => other,
    }
}

/// Whether it belongs to a query around the one that it stands in: its arguments, its order and its filter name columns,
/// and none of this query.
fn is_of_enclosing(aggregate: &Aggregate) -> bool {
    let (mut of_this, mut of_another) = (false, false);
    for expression in aggregate.expressions() {
        expression.any(&mut |inner| {
            of_this |= matches!(inner.kind, Kind::Column(_) | Kind::Left(_));
            of_another |= matches!(inner.kind, Kind::Argument(_));
            false
        });
    }
    of_another && !of_this
}
