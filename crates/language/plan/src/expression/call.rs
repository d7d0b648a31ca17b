//! Binding of functions and aggregates.

use crate::advisory::AdvisoryFunction;
use crate::aggregate::{AggregateFunction, OrderedSet};
use crate::assets::AssetFunction;
use crate::expression::build::fold;
use crate::expression::enum_call::EnumCall;
use crate::expression::names::is_newer_than;
use crate::expression::refusals::{no_function, no_operator, unsupported_expression};
use crate::expression::written::{is_window_function, plain_argument, variadic_operand};
use crate::expression::{Binder, Expression, Kind, NamedArgument};
use crate::in_execution::draws_or_asks;
use crate::row_functions::{is_row_function, json_arguments, json_type_of};
use sqlparser::ast::{self, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Spanned};
use sqlparser::tokenizer::Span;
use syntax::names::{name_of, table_name};
use types::{ArithmeticOperator, DataType, ExecutionVersion, RangeType, SqlError, SqlState, TimeType, Value};
use values::Comparison;
use values::functions::{self, Function, Signature, refused, resolve, takes_as_doubles};

impl Binder<'_> {
    pub(super) fn bind_function(&self, function: &ast::Function) -> Result<Expression, SqlError> {
        let span = function.name.span();
        let is_in = |schema: &str| function.name.0[0].to_string().eq_ignore_ascii_case(schema);
        let name = match function.name.0.as_slice() {
            [name] => name.as_ident().map(name_of),
            [_, name] if is_in("pg_catalog") => name.as_ident().map(name_of),
            [_, _] if !is_in("entente") => Some(table_name(&function.name)),
            _ => None,
        };
        let Some(name) = name else {
            if self.scope().version() >= ExecutionVersion::V6
                && let Some(asset) = AssetFunction::called(function)
            {
                return self.bind_asset_call(asset, function).map_err(|error| self.at(error, span));
            }
            if let Some(own) = AdvisoryFunction::own(function, self.scope().version())
                && let Some(call) = self.advisory_call(own, &[])
            {
                return Ok(call);
            }
            if function.name.to_string().eq_ignore_ascii_case("entente.oracle") {
                let error = SqlError::unsupported("entente.oracle() here")
                    .hint("Assign it to a variable of a procedure first: rate := entente.oracle('eur_usd');");
                return Err(self.at(error, span));
            }
            let what = format_args!("the qualified function name {}", function.name);
            return Err(self.at(SqlError::unsupported(what), span));
        };
        let name = name.map_err(|error| self.at(error, span))?;
        if function.null_treatment.is_some() || !matches!(function.parameters, FunctionArguments::None) {
            return Err(
                self.at(SqlError::unsupported(format_args!("this form of the function {name}")), span)
            );
        }
        if let Some(window) = &function.over {
            return self.bind_window(&name, function, window).map_err(|error| self.at(error, span));
        }
        let aggregate = match OrderedSet::named(&name) {
            // Some have the name of a window function, which takes nothing.
            Some(ordered) if !function.within_group.is_empty() || !is_window_function(&name) => {
                Some(AggregateFunction::OrderedSet(ordered))
            }
            _ => AggregateFunction::named(&name, self.scope().version())
                .or_else(|| self.scope().routines().aggregate(&name).map(|_| AggregateFunction::User)),
        };
        let bound = match aggregate {
            Some(aggregate) => self.bind_aggregate(aggregate, &name, function, span),
            None if !function.within_group.is_empty() => Err(self.no_ordered_set(&name, function)?),
            None => self.bind_scalar(&name, function, span),
        };
        bound.map_err(|error| self.at(error, span))
    }

    fn bind_scalar(&self, name: &str, function: &ast::Function, span: Span) -> Result<Expression, SqlError> {
        if is_window_function(name) {
            let message = format!("window function {name} requires an OVER clause");
            return Err(SqlError::new(SqlState(*b"42809"), message));
        }
        // Before version 7 no function of the ledger has such a name here.
        let is_own =
            self.scope().version() >= ExecutionVersion::V7 && self.scope().routines().get(name).is_some();
        if is_row_function(name, self.scope().version()) && !is_own {
            return Err(self.no_rows_here());
        }
        if name == "row" && self.scope().routines().get(name).is_none() {
            return match &function.args {
                FunctionArguments::List(list) => self.bind_row_arguments(&list.args),
                _ => Err(SqlError::unsupported("this form of ROW(…)")),
            };
        }
        // There may be functions of these names on the ledger, in the place of PostgreSQL's.
        let is_replaced = name.contains("json") && self.scope().routines().get(name).is_some();
        if let Some(hint) = refused(name, self.scope().version()).filter(|_| !is_replaced) {
            return Err(SqlError::unsupported(format_args!("the function {name}()")).hint(hint));
        }
        let arguments: Vec<NamedArgument> = match &function.args {
            FunctionArguments::None => Vec::new(),
            FunctionArguments::Subquery(query) if name == "array" => return self.array_subquery(query),
            FunctionArguments::Subquery(_) => {
                return Err(SqlError::unsupported("a subquery as an argument"));
            }
            FunctionArguments::List(list) if name == "make_interval" => {
                let parts = self.bind_interval_parts(&list.args)?;
                parts.into_iter().map(NamedArgument::positional).collect()
            }
            FunctionArguments::List(list)
                if is_variadic(&list.args) && matches!(name, "concat" | "concat_ws" | "format") =>
            {
                return self.bind_variadic(name, &list.args, span);
            }
            FunctionArguments::List(list)
                if is_variadic(&list.args)
                    && self.scope().version() >= ExecutionVersion::V10
                    && RangeType::ALL.iter().any(|range| range.multirange().1 == name) =>
            {
                return self.bind_multirange_of_array(name, &list.args);
            }
            FunctionArguments::List(list) => {
                if function.filter.is_some() || list.duplicate_treatment.is_some() {
                    let message =
                        format!("DISTINCT or FILTER specified, but {name} is not an aggregate function");
                    return Err(SqlError::new(SqlState(*b"42809"), message));
                }
                if !list.clauses.is_empty() {
                    return Err(SqlError::unsupported(format_args!("this form of the function {name}")));
                }
                self.bind_arguments(&list.args)?
            }
        };
        let named = arguments.iter().any(|argument| argument.name.is_some() || argument.is_variadic);
        if is_own && !named {
            self.refuse_rows(name, &arguments)?;
        }
        if self.scope().routines().get(name).is_none() && !named {
            return self.call(name, arguments.into_iter().map(|argument| argument.value).collect(), span);
        }
        if arguments.iter().any(|argument| argument.is_variadic)
            && matches!(name, "coalesce" | "greatest" | "least" | "nullif")
        {
            return Err(SqlError::unsupported(format_args!("VARIADIC in a call of {name}()")));
        }
        // As in PostgreSQL, a function of the ledger does not hide one of the system.
        if !named && let Some(found) = self.bind_before_routines(name, &arguments, span) {
            return found;
        }
        let missing = self.no_routine(name, &arguments, span);
        self.bind_routine(name, arguments)?.ok_or(missing)
    }

    /// What a call means in front of the functions of the ledger that have its name, if anything. One of these that takes numerics comes
    /// in front of the system's which takes them as doubles.
    fn bind_before_routines(
        &self,
        name: &str,
        arguments: &[NamedArgument],
        span: Span,
    ) -> Option<Result<Expression, SqlError>> {
        let values: Vec<Expression> = arguments.iter().map(|argument| argument.value.clone()).collect();
        let given: Vec<DataType> = values.iter().map(Expression::data_type).collect();
        if takes_as_doubles(name, &given, self.scope().version()) {
            let own = self.bind_routine(name, arguments.to_vec()).transpose();
            return own.or_else(|| Some(self.call(name, values, span)));
        }
        match self.call(name, values, span) {
            Err(error) if error.state == SqlState::UNDEFINED_FUNCTION => None,
            known => Some(known),
        }
    }

    #[cold]
    fn no_rows_here(&self) -> SqlError {
        let place = self.no_aggregates_in.get().unwrap_or("this place");
        let message = format!("set-returning functions are not allowed in {place}");
        SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
    }

    /// Where the ledger has a function of this name, too: that of the system comes first where it takes the arguments, from
    /// execution version 8 on.
    fn refuse_rows(&self, name: &str, arguments: &[NamedArgument]) -> Result<(), SqlError> {
        let is_one = self.scope().version() >= ExecutionVersion::V8
            && is_row_function(name, self.scope().version())
            && json_arguments(name) == Some(arguments.len());
        let json = arguments.last().filter(|_| is_one).map(|argument| argument.value.clone());
        match json.and_then(|json| self.argument(json, json_type_of(name))) {
            Some(_) => Err(self.no_rows_here()),
            None => Ok(()),
        }
    }

    /// A call by name: what has a form of its own, then the functions of the table.
    pub(super) fn call(
        &self,
        name: &str,
        arguments: Vec<Expression>,
        span: Span,
    ) -> Result<Expression, SqlError> {
        if let Some(call) = self.bind_special_call(name, &arguments).map_err(|error| self.at(error, span))? {
            return Ok(call);
        }
        match (name, arguments.len()) {
            ("age", 1) => {
                let mut arguments = arguments;
                match arguments.pop() {
                    Some(since) => self.bind_age(since),
                    None => Err(no_function(name, &[])),
                }
            }
            ("format", 1..) => {
                let operands = arguments.into_iter().map(|argument| self.known(argument));
                let mut operands = operands.collect::<Result<Vec<_>, _>>()?;
                let format = operands.remove(0);
                let missing = no_function(name, &[format.data_type]);
                operands.insert(0, self.argument(format, DataType::Text(None)).ok_or(missing)?);
                Ok(Expression { kind: Kind::Format(operands), data_type: DataType::Text(None) })
            }
            ("quote_literal" | "quote_nullable", 1) => self.bind_quoted(name, arguments),
            ("pg_typeof", 1) => {
                let named = self.types().name_of(arguments[0].data_type.family());
                Ok(type_name(arguments, named))
            }
            ("current_timestamp" | "localtimestamp" | "current_time" | "localtime", 1)
                if self.scope().version() >= ExecutionVersion::V10 =>
            {
                self.rounded_clock(name, &arguments[0])
            }
            ("current_timestamp", 1) => Err(SqlError::unsupported("current_timestamp with a precision")),
            ("coalesce", 1..) => {
                let (operands, data_type) = self.unify(arguments, "COALESCE")?;
                Ok(Expression { kind: Kind::Coalesce(operands), data_type })
            }
            ("greatest" | "least", 1..) => {
                self.check_comparable(&arguments)?;
                let (operands, data_type) = self.unify(arguments, &name.to_ascii_uppercase())?;
                Ok(Expression { kind: Kind::Extreme(name == "greatest", operands), data_type })
            }
            ("nullif", 2) => self.bind_nullif(arguments),
            ("mod", 2) => {
                let types: Vec<DataType> = arguments.iter().map(Expression::data_type).collect();
                let mut arguments = arguments.into_iter();
                match (arguments.next(), arguments.next()) {
                    (Some(left), Some(right)) if !types.contains(&DataType::Double) => {
                        self.arithmetic(ArithmeticOperator::Remainder, left, right)
                    }
                    _ => Err(no_function(name, &types)),
                }
            }
            ("concat", 1..) => self.bind_concat(&functions::CONCATENATE, arguments),
            ("concat_ws", 2..) => {
                let types: Vec<DataType> = arguments.iter().map(Expression::data_type).collect();
                let missing = no_function(name, &types);
                let mut arguments = arguments;
                let separator = self.known(arguments.remove(0))?;
                arguments.insert(0, self.argument(separator, DataType::Text(None)).ok_or(missing)?);
                self.bind_concat(&functions::JOIN, arguments)
            }
            ("lpad" | "rpad", 2) => {
                let types: Vec<DataType> = arguments.iter().map(Expression::data_type).collect();
                let space = Expression::constant(Value::text(" "), DataType::Text(None));
                let arguments = arguments.into_iter().chain([space]).collect();
                self.call_resolved(name, arguments, span).map_err(|error| match error.state {
                    SqlState::UNDEFINED_FUNCTION => self.at(no_function(name, &types), span),
                    _ => error,
                })
            }
            _ => self.call_or_cast(name, arguments, span),
        }
    }

    /// `current_timestamp(3)` and its kind.
    fn rounded_clock(&self, name: &str, digits: &Expression) -> Result<Expression, SqlError> {
        let known = digits.as_constant().and_then(Value::as_integer);
        let (Some(clock), Some(digits)) = (self.bind_clock(name), known) else {
            return Err(no_function(name, &[digits.data_type]));
        };
        let Ok(digits) = u8::try_from(digits) else {
            let shown = name.to_ascii_uppercase();
            let message = format!("{shown}({digits}) precision must not be negative");
            return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
        };
        let of = match clock.data_type {
            DataType::TimestampTz => TimeType::TimestampTz,
            DataType::Timestamp => TimeType::Timestamp,
            DataType::TimeTz => TimeType::TimeTz,
            _ => TimeType::Time,
        };
        self.explicit_cast(clock, of.rounded(digits))
    }

    /// A call of what is no function of values: it draws something, tells the time, or takes rows or types.
    fn bind_special_call(
        &self,
        name: &str,
        arguments: &[Expression],
    ) -> Result<Option<Expression>, SqlError> {
        if let Some(call) = self.bind_sequence_call(name, arguments)? {
            return Ok(Some(call));
        }
        if let Some(call) = self.bind_serial_sequence(name, arguments)? {
            return Ok(Some(call));
        }
        if let Some(call) = self.bind_random_call(name, arguments) {
            return Ok(Some(call));
        }
        if let Some(call) = self.bind_notify_call(name, arguments) {
            return Ok(Some(call));
        }
        if let Some(call) = self.bind_advisory_call(name, arguments) {
            return Ok(Some(call));
        }
        if let Some(told) = self.bind_session_call(name, arguments)? {
            return Ok(Some(told));
        }
        if let Some(now) = self.bind_clock(name).filter(|_| arguments.is_empty()) {
            return Ok(Some(now));
        }
        if let Some(call) = self.bind_json_call(name, arguments)? {
            return Ok(Some(call));
        }
        if let Some(call) = self.bind_hstore_call(name, arguments)? {
            return Ok(Some(call));
        }
        let call = EnumCall::named(name, self.scope().version());
        call.map(|call| self.bind_enum_call(call, arguments.to_vec())).transpose()
    }

    /// A function of the table. As in PostgreSQL, the name of a type is a cast where there is no such function.
    fn call_or_cast(
        &self,
        name: &str,
        arguments: Vec<Expression>,
        span: Span,
    ) -> Result<Expression, SqlError> {
        let single = match arguments.as_slice() {
            [value] => type_of_cast(name)
                .filter(|target| !is_newer_than(self.scope().version(), *target))
                .map(|target| (value.clone(), target)),
            _ => None,
        };
        match (self.call_resolved(name, arguments, span), single) {
            (Err(error), Some((value, target))) if error.state == SqlState::UNDEFINED_FUNCTION => {
                self.explicit_cast(value, target).map_err(|cast| match cast.state.0 {
                    // There is no such cast.
                    state if state == *b"42846" => error,
                    _ => cast,
                })
            }
            (called, _) => called,
        }
    }

    /// A call of a function of the table, without a place in the source.
    pub fn call_by_name(&self, name: &str, arguments: Vec<Expression>) -> Result<Expression, SqlError> {
        self.call_resolved(name, arguments, Span::empty())
    }

    fn call_resolved(
        &self,
        name: &str,
        arguments: Vec<Expression>,
        span: Span,
    ) -> Result<Expression, SqlError> {
        let types: Vec<DataType> = arguments.iter().map(Expression::data_type).collect();
        let missing = || self.at(no_function(name, &types), span);
        if let ("array_position" | "array_positions" | "array_remove" | "array_replace", Some(array)) =
            (name, types.first())
        {
            self.check_compared_elements(*array).map_err(|error| self.at(error, span))?;
        }
        let Signature { function, arguments: targets, result } =
            resolve(name, &types, self.scope().version())?.ok_or_else(missing)?;
        if targets.len() != arguments.len() {
            return Err(missing());
        }
        let mut cast = Vec::with_capacity(arguments.len());
        for (argument, target) in arguments.into_iter().zip(targets) {
            if argument.data_type == DataType::Unknown {
                cast.push(self.cast_to(argument, target)?);
            } else {
                cast.push(self.argument(argument, target).ok_or_else(missing)?);
            }
        }
        Ok(Expression { kind: Kind::Function(function, cast), data_type: result })
    }

    /// An operator that is a function by the name of its symbol.
    pub(super) fn bind_operator(
        &self,
        symbol: &str,
        operands: Vec<Expression>,
        span: Span,
    ) -> Result<Expression, SqlError> {
        let types: Vec<String> =
            operands.iter().map(|operand| operand.data_type.family().to_string()).collect();
        self.call_resolved(symbol, operands, span).map_err(|error| match error.state {
            SqlState::UNDEFINED_FUNCTION => {
                let form = match types.as_slice() {
                    [left, right] => format!("{left} {symbol} {right}"),
                    types => format!("{symbol} {}", types.join(", ")),
                };
                self.at(no_operator(&form), span)
            }
            _ => error,
        })
    }

    /// `NULLIF(a, b)` is `CASE WHEN a = b THEN NULL ELSE a END`.
    fn bind_nullif(&self, arguments: Vec<Expression>) -> Result<Expression, SqlError> {
        let mut arguments = arguments.into_iter().map(|argument| {
            if argument.data_type == DataType::Unknown && argument.as_constant().is_none() {
                self.known(argument)
            } else {
                Ok(argument)
            }
        });
        let (Some(value), Some(other)) = (arguments.next(), arguments.next()) else {
            return Err(no_function("nullif", &[]));
        };
        let (value, other) = (value?, other?);
        let equal = self.compare(Comparison::Equal, value.clone(), other)?;
        let value = self.known(value)?;
        let data_type = value.data_type;
        let null = Expression::constant(Value::Null, data_type);
        Ok(Expression { kind: Kind::Case(vec![(equal, null)], Box::new(value)), data_type })
    }

    /// Both take values of every type; `quote_nullable` gives the text NULL for NULL.
    fn bind_quoted(&self, name: &str, arguments: Vec<Expression>) -> Result<Expression, SqlError> {
        let text = DataType::Text(None);
        let values = arguments.into_iter().map(|value| self.cast_to(value, text));
        let values = values.collect::<Result<Vec<_>, _>>()?;
        let quoted = Expression { kind: Kind::Function(&functions::QUOTE_LITERAL, values), data_type: text };
        if name == "quote_literal" {
            return Ok(quoted);
        }
        let null = Expression::constant(Value::text("NULL"), text);
        Ok(Expression { kind: Kind::Coalesce(vec![fold(quoted), null]), data_type: text })
    }

    /// `concat(values)` and `concat_ws(separator, values)`, of any types.
    fn bind_concat(
        &self,
        function: &'static Function,
        arguments: Vec<Expression>,
    ) -> Result<Expression, SqlError> {
        let operands = arguments.into_iter().map(|argument| self.known(argument));
        let operands = operands.collect::<Result<Vec<_>, _>>()?;
        Ok(Expression { kind: Kind::Function(function, operands), data_type: DataType::Text(None) })
    }

    /// `int4multirange(VARIADIC ranges)`
    fn bind_multirange_of_array(&self, name: &str, list: &[FunctionArg]) -> Result<Expression, SqlError> {
        let of = RangeType::ALL.into_iter().find(|range| range.multirange().1 == name);
        let [only] = list else { return Err(no_function(name, &[])) };
        let argument = plain_argument(only)?;
        let ranges = self.bind(variadic_operand(argument).unwrap_or(argument))?;
        let missing = no_function(name, &[ranges.data_type]);
        let array = of.and_then(|of| Some((of, DataType::Range(of).array()?)));
        let Some((of, array)) = array else { return Err(missing) };
        let ranges = self.argument(ranges, array).ok_or(missing)?;
        let kind = Kind::Function(&functions::MULTIRANGE_OF_ARRAY, vec![ranges]);
        Ok(Expression { kind, data_type: DataType::Multirange(of) })
    }

    /// A call whose last argument is an array in place of the rest.
    fn bind_variadic(&self, name: &str, list: &[FunctionArg], span: Span) -> Result<Expression, SqlError> {
        let mut arguments = Vec::with_capacity(list.len());
        for argument in list {
            let argument = plain_argument(argument)?;
            arguments.push(self.bind(variadic_operand(argument).unwrap_or(argument))?);
        }
        let types: Vec<DataType> = arguments.iter().map(Expression::data_type).collect();
        let text = DataType::Text(None);
        let function = match (name, arguments.len()) {
            ("concat", 1) => &functions::CONCATENATE_ARRAY,
            ("concat_ws", 2) => &functions::JOIN_ARRAY,
            ("format", 2) => &functions::FORMAT_ARRAY,
            _ => return Err(no_function(name, &types)),
        };
        if types.last().is_some_and(|last| last.element().is_none()) {
            let error = SqlError::new(SqlState::DATATYPE_MISMATCH, "VARIADIC argument must be an array");
            return Err(self.at(error, span));
        }
        if arguments.len() == 2 {
            let first = arguments.remove(0);
            arguments.insert(0, self.argument(first, text).ok_or_else(|| no_function(name, &types))?);
        }
        Ok(Expression { kind: Kind::Function(function, arguments), data_type: text })
    }

    /// Functions for which SQL has a syntax of their own.
    pub(super) fn bind_syntax_function(&self, expr: &Expr) -> Result<Expression, SqlError> {
        let span = expr.span();
        match expr {
            Expr::Ceil {
                expr: operand,
                field: ast::CeilFloorKind::DateTimeField(ast::DateTimeField::NoDateTime),
            } => self.call("ceil", vec![self.bind(operand)?], span),
            Expr::Floor {
                expr: operand,
                field: ast::CeilFloorKind::DateTimeField(ast::DateTimeField::NoDateTime),
            } => self.call("floor", vec![self.bind(operand)?], span),
            Expr::Position { expr: part, r#in: text } => {
                let arguments = vec![self.bind(text)?, self.bind(part)?];
                self.call("strpos", arguments, span)
            }
            Expr::Substring { expr: text, substring_from, substring_for, .. } => {
                let from = match substring_from {
                    Some(from) => self.bind(from)?,
                    None => Expression::constant(Value::Integer(1), DataType::Integer),
                };
                let mut arguments = vec![self.bind(text)?, from];
                if let Some(count) = substring_for {
                    arguments.push(self.bind(count)?);
                }
                if arguments.len() == 3
                    && arguments[1..]
                        .iter()
                        .all(|argument| matches!(argument.data_type, DataType::Text(_) | DataType::Unknown))
                {
                    return Err(SqlError::unsupported("SUBSTRING with a pattern and an escape")
                        .hint("Use a regular expression: substring(text from pattern)."));
                }
                self.call("substring", arguments, span)
            }
            Expr::Trim { trim_where, trim_what, expr: text, trim_characters } => {
                let name = match trim_where {
                    Some(ast::TrimWhereField::Leading) => "ltrim",
                    Some(ast::TrimWhereField::Trailing) => "rtrim",
                    _ => "btrim",
                };
                let mut arguments = vec![self.bind(text)?];
                if let Some(what) = trim_what {
                    arguments.push(self.bind(what)?);
                }
                for characters in trim_characters.iter().flatten() {
                    arguments.push(self.bind(characters)?);
                }
                self.call(name, arguments, span)
            }
            Expr::Overlay { expr: text, overlay_what, overlay_from, overlay_for } => {
                let mut arguments =
                    vec![self.bind(text)?, self.bind(overlay_what)?, self.bind(overlay_from)?];
                if let Some(count) = overlay_for {
                    arguments.push(self.bind(count)?);
                }
                self.call("overlay", arguments, span)
            }
            Expr::Extract { field, expr: instant, .. } => {
                let field = field.to_string().trim_matches('\'').to_ascii_lowercase();
                let field = Expression::constant(Value::text(field), DataType::Text(None));
                self.call("extract", vec![field, self.bind(instant)?], span)
            }
            other => Err(unsupported_expression(other)),
        }
    }
}

/// Whether the system has a function or an aggregate of this name.
pub fn is_system_function(name: &str, version: ExecutionVersion) -> bool {
    let takes = |count: usize| resolve(name, &vec![DataType::Unknown; count], version);
    AggregateFunction::named(name, version).is_some()
        || version >= ExecutionVersion::V7 && is_row_function(name, version)
        || EnumCall::named(name, version).is_some()
        || crate::sequence::draws_value(name)
        || draws_or_asks(name, version)
        || (0..=4).any(|count| takes(count).map_or(true, |found| found.is_some()))
}

/// `pg_typeof(value)`: the name of its type, as text. The value is evaluated all the same.
fn type_name(arguments: Vec<Expression>, named: String) -> Expression {
    let text = DataType::Text(None);
    let name = arguments.first().map_or(DataType::Unknown, Expression::data_type);
    let name = match name {
        DataType::NAME | DataType::LETTER => name.to_string(),
        DataType::Text(Some(_)) => "character varying".to_string(),
        known if matches!(known.element().unwrap_or(known), DataType::Enum(_)) => named,
        known => known.family().to_string(),
    };
    let name = Expression::constant(Value::text(name), text);
    let mut cases = Vec::new();
    for value in arguments.into_iter().filter(|value| value.as_constant().is_none()) {
        let is_null = Expression { kind: Kind::IsNull(false, Box::new(value)), data_type: DataType::Boolean };
        cases.push((is_null, name.clone()));
    }
    match cases.is_empty() {
        true => name,
        false => Expression { kind: Kind::Case(cases, Box::new(name)), data_type: text },
    }
}

/// The type that a function of this name casts to.
fn type_of_cast(name: &str) -> Option<DataType> {
    const TYPES: [DataType; 25] = [
        DataType::Boolean,
        DataType::SmallInt,
        DataType::Integer,
        DataType::BigInt,
        DataType::Real,
        DataType::Double,
        DataType::Text(None),
        DataType::Char(None),
        DataType::Date,
        DataType::TimestampTz,
        DataType::Bytea,
        DataType::Uuid,
        DataType::Json,
        DataType::Jsonb,
        DataType::Inet,
        DataType::Cidr,
        DataType::MacAddr,
        DataType::Bit(None),
        DataType::VarBit(None),
        DataType::TimeTz,
        DataType::TsVector,
        DataType::TsQuery,
        DataType::Hstore,
        DataType::Citext,
        DataType::Oid,
    ];
    TYPES.into_iter().find(|data_type| data_type.internal_name() == name)
}

/// Whether the last argument is an array in place of further ones.
fn is_variadic(arguments: &[FunctionArg]) -> bool {
    match arguments.last() {
        Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(last))) => variadic_operand(last).is_some(),
        _ => false,
    }
}
