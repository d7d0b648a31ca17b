//! Functions in FROM that give rows: `generate_series`, `unnest`, and those that take JSON apart.

use crate::expression::{Binder, Expression, Kind, Relations, Source};
use crate::logical::LogicalPlan;
use crate::row_functions::{
    HstoreRows, SLICES, gives_rows_in_from, hstore_rows, is_row_function, json_arguments, json_rows,
    json_type_of,
};
use crate::statement::level::Level;
use crate::statement::query_scope::QueryScope;
use crate::statement::record_columns::listed_columns;
use crate::statement::relation_names::{add_relation, set_row_type};
use crate::statement::row_function::{JsonCall, RowFunction, RowKind};
use sqlparser::ast::{Expr, FunctionArg, FunctionArgExpr, ObjectName, TableAlias};
use sqlparser::tokenizer::Span;
use types::{DataType, ExecutionVersion, OutputColumn, SqlError, SqlState, Value, limits};
use values::functions::JsonRows;

/// A call in FROM.
pub(super) struct Call<'a> {
    pub name: String,
    pub arguments: Vec<&'a Expr>,
    pub with_ordinality: bool,
}

/// The arguments, in their order.
///
/// # Errors
/// `0A000` where they have names.
pub(super) fn plain_arguments(arguments: &[FunctionArg]) -> Result<Vec<&Expr>, SqlError> {
    fn plain(argument: &FunctionArg) -> Result<&Expr, SqlError> {
        match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)) => Ok(argument),
            _ => Err(SqlError::unsupported("this form of an argument")),
        }
    }
    arguments.iter().map(plain).collect()
}

/// Whether a function that is built in gives rows.
pub(super) fn gives_rows(name: &ObjectName, version: ExecutionVersion) -> bool {
    let name = name.to_string().to_ascii_lowercase();
    is_row_function(name.strip_prefix("pg_catalog.").unwrap_or(&name), version)
}

/// Whether a function that is built in gives rows in FROM.
pub(super) fn gives_rows_here(name: &ObjectName, version: ExecutionVersion) -> bool {
    let name = name.to_string().to_ascii_lowercase();
    gives_rows_in_from(name.strip_prefix("pg_catalog.").unwrap_or(&name), version)
}

/// Whether a function of this name that is built in makes rows of JSON, of so many arguments, and comes in front of those of the ledger:
/// from execution version 8 on.
pub(super) fn takes_json(name: &ObjectName, version: ExecutionVersion, arguments: usize) -> bool {
    let name = name.to_string().to_ascii_lowercase();
    let name = name.strip_prefix("pg_catalog.").unwrap_or(&name);
    version >= ExecutionVersion::V8 && json_arguments(name) == Some(arguments)
}

/// Whether the rows of a function that is built in have several columns.
pub(super) fn gives_many_columns(name: &str) -> bool {
    name == "each"
        || matches!(json_rows(name), Some(JsonRows::Members(_) | JsonRows::Record(_) | JsonRows::Records(_)))
}

/// Binds a call in FROM.
///
/// # Errors
/// `42883` where there is no such function.
pub(super) fn bind_row_function(
    query: QueryScope<'_>,
    level: &Level<'_>,
    names: &mut Relations,
    call: Call<'_>,
    alias: Option<&TableAlias>,
    span: Span,
) -> Result<LogicalPlan, SqlError> {
    let name = call.name.to_ascii_lowercase();
    let name = name.strip_prefix("pg_catalog.").unwrap_or(&name);
    let visible = names.between(0);
    let binder = query.binder(level, Source::Relations(&visible));
    binder.in_clause(Some("functions in FROM"));
    let mut arguments =
        call.arguments.iter().map(|argument| binder.bind(argument)).collect::<Result<Vec<_>, _>>()?;
    let located = |error| query.variables.located(error, span);
    let (found, hint) = match name {
        "generate_series" => (series(&binder, name, &mut arguments)?, SERIES_HINT),
        "regexp_split_to_table" => {
            let split = binder.call_by_name("regexp_split_to_array", std::mem::take(&mut arguments))?;
            arguments.push(split);
            let columns = vec![(name.to_string(), DataType::Text(None))];
            (Some(RowsOfFunction { rows: RowKind::Elements(vec![None]), columns, row_type: None }), "")
        }
        "generate_subscripts" if query.variables.version() >= ExecutionVersion::V16 => {
            (subscripts(&binder, name, &mut arguments)?, SUBSCRIPTS_HINT)
        }
        SLICES => (slices(&mut arguments), ""),
        "unnest" if !arguments.is_empty() => {
            arguments = arguments.into_iter().map(ranges_of_multirange).collect();
            (elements(&binder, name, &arguments).map_err(located)?, "It takes arrays.")
        }
        _ if query.variables.version() >= ExecutionVersion::V16 && hstore_rows(name).is_some() => {
            (pairs(query, &binder, name, &mut arguments, alias).map_err(located)?, HSTORE_HINT)
        }
        _ => match json_rows(name).filter(|_| query.variables.version() >= ExecutionVersion::V7) {
            Some(rows) => {
                let found =
                    json_call(query, &binder, (name, rows), &mut arguments, alias).map_err(located)?;
                (found, JSON_HINT)
            }
            None => {
                let error = SqlError::unsupported(format_args!("the function {name} in FROM"));
                return Err(located(error));
            }
        },
    };
    let Some(RowsOfFunction { rows, mut columns, row_type }) = found else {
        let types: Vec<String> =
            arguments.iter().map(|argument| argument.data_type.family().to_string()).collect();
        let message = format!("function {name}({}) does not exist", types.join(", "));
        return Err(located(SqlError::new(SqlState::UNDEFINED_FUNCTION, message).hint(hint)));
    };
    // The only column of these has a name of its own, and what is named like the relation is its value.
    let is_value = matches!(&rows, RowKind::Json(call) if matches!(call.rows, JsonRows::Elements(_)));
    let is_row = row_type.is_some() && query.variables.version() >= ExecutionVersion::V7;
    let single = columns.len() == 1 && !is_value && !is_row;
    if call.with_ordinality {
        columns.push(("ordinality".to_string(), DataType::BigInt));
    }
    let types = columns.iter().map(|(_, data_type)| *data_type).collect();
    add_relation(query, names, name, alias, columns)?;
    set_row_type(names, row_type.filter(|_| !call.with_ordinality));
    if let (Some(alias), Some(relation), true) = (alias, names.relations.last_mut(), single)
        && alias.columns.is_empty()
    {
        // A function's only column has the name of its alias.
        relation.columns[0].0 = relation.name.clone();
    }
    let function = Box::new(RowFunction { rows, with_ordinality: call.with_ordinality });
    Ok(LogicalPlan::Function { function, arguments, types })
}

const JSON_HINT: &str = "It takes a value of type json or jsonb, as its name says.";

const SUBSCRIPTS_HINT: &str =
    "It takes an array, the number of a dimension, and perhaps whether it counts down.";

const HSTORE_HINT: &str = "It takes a value of type hstore.";

const SERIES_HINT: &str =
    "It takes start, stop and perhaps a step: integers, numerics, or timestamps with an interval.";

/// What rows a function gives.
struct RowsOfFunction {
    rows: RowKind,
    columns: Vec<(String, DataType)>,
    /// The composite type of the rows.
    row_type: Option<DataType>,
}

/// `generate_series` of these arguments, which are cast; `None` where there is none.
fn series(
    binder: &Binder<'_>,
    name: &str,
    arguments: &mut Vec<Expression>,
) -> Result<Option<RowsOfFunction>, SqlError> {
    let Some((data_type, step)) = series_types(arguments) else { return Ok(None) };
    if arguments.len() == 2 {
        arguments.push(Expression::constant(Value::Integer(1), DataType::Integer));
    }
    let targets = [data_type, data_type, step];
    let given = std::mem::take(arguments).into_iter().zip(targets);
    *arguments = given.map(|(bound, target)| binder.cast_to(bound, target)).collect::<Result<_, _>>()?;
    let columns = vec![(name.to_string(), data_type)];
    Ok(Some(RowsOfFunction { rows: RowKind::Series(data_type), columns, row_type: None }))
}

/// `generate_subscripts` of these arguments: a series from the first subscript to the last one, or back; `None` where they are none for it.
fn subscripts(
    binder: &Binder<'_>,
    name: &str,
    arguments: &mut Vec<Expression>,
) -> Result<Option<RowsOfFunction>, SqlError> {
    let (array, dimension, down) = match arguments.as_slice() {
        [array, dimension] => (array, dimension, None),
        [array, dimension, down] => (array, dimension, Some(down)),
        _ => return Ok(None),
    };
    if array.data_type.element().is_none() {
        return Ok(None);
    }
    let Some(dimension) = binder.argument(dimension.clone(), DataType::Integer) else { return Ok(None) };
    let end = |function: &str| binder.call_by_name(function, vec![array.clone(), dimension.clone()]);
    let (lower, upper) = (end("array_lower")?, end("array_upper")?);
    let number = |number| Expression::constant(Value::Integer(number), DataType::Integer);
    *arguments = match down {
        None => vec![lower, upper],
        Some(down) => {
            let Some(down) = binder.argument(down.clone(), DataType::Boolean) else { return Ok(None) };
            let either = |yes: Expression, no: Expression| Expression {
                kind: Kind::Case(vec![(down.clone(), yes)], Box::new(no)),
                data_type: DataType::Integer,
            };
            vec![either(upper.clone(), lower.clone()), either(lower, upper), either(number(-1), number(1))]
        }
    };
    series(binder, name, arguments)
}

/// The parts of an array, the number of whose dimensions is the second argument.
fn slices(arguments: &mut Vec<Expression>) -> Option<RowsOfFunction> {
    let [array, dimensions] = arguments.as_slice() else { return None };
    let dimensions = match dimensions.as_constant() {
        Some(Value::Integer(dimensions)) => usize::try_from(*dimensions).ok()?,
        _ => return None,
    };
    let columns = vec![("x".to_string(), array.data_type)];
    arguments.truncate(1);
    Some(RowsOfFunction { rows: RowKind::Slices(dimensions), columns, row_type: None })
}

/// A multirange as an array of its ranges; others as they are.
fn ranges_of_multirange(value: Expression) -> Expression {
    let ranges = match value.data_type {
        DataType::Multirange(of) => DataType::Range(of).array(),
        _ => None,
    };
    match ranges {
        Some(data_type) => Expression {
            kind: Kind::Function(&values::functions::RANGES_OF_MULTIRANGE, vec![value]),
            data_type,
        },
        None => value,
    }
}

/// `unnest` of these arguments; `None` where one is no array.
fn elements(
    binder: &Binder<'_>,
    name: &str,
    arguments: &[Expression],
) -> Result<Option<RowsOfFunction>, SqlError> {
    let elements: Option<Vec<DataType>> = arguments.iter().map(|array| array.data_type.element()).collect();
    let Some(elements) = elements else { return Ok(None) };
    let row_type = match elements.as_slice() {
        [only] => binder.types().of(*only).map(|_| *only),
        _ => None,
    };
    let mut columns: Vec<(String, DataType)> = Vec::new();
    let mut widths = Vec::with_capacity(elements.len());
    for element in elements {
        // The rows of an array of rows have their fields as columns.
        match binder.types().of(element) {
            Some(known) => {
                widths.push(Some(known.fields.len()));
                let fields = known.fields.iter();
                columns.extend(fields.map(|field| (field.name.clone(), field.data_type)));
            }
            None if element == DataType::Record => {
                let message = "a column definition list is required for functions returning \"record\"";
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
            }
            None => {
                widths.push(None);
                columns.push((name.to_string(), element));
            }
        }
    }
    Ok(Some(RowsOfFunction { rows: RowKind::Elements(widths), columns, row_type }))
}

/// A function that takes an hstore apart, of this argument, which is cast; `None` where it is none for it. As `jsonb` it has its keys in the
/// same order.
fn pairs(
    query: QueryScope<'_>,
    binder: &Binder<'_>,
    name: &str,
    arguments: &mut Vec<Expression>,
    alias: Option<&TableAlias>,
) -> Result<Option<RowsOfFunction>, SqlError> {
    let [store] = arguments.as_slice() else { return Ok(None) };
    let Some(store) = binder.argument(store.clone(), DataType::Hstore) else { return Ok(None) };
    let array = match hstore_rows(name) {
        Some(HstoreRows::Keys) => "akeys",
        Some(HstoreRows::Values) => "avals",
        _ => {
            *arguments = vec![binder.call_by_name("hstore_to_jsonb", vec![store])?];
            let each = ("jsonb_each_text", JsonRows::Members(true));
            return json_call(query, binder, each, arguments, alias);
        }
    };
    *arguments = vec![binder.call_by_name(array, vec![store])?];
    let columns = vec![(name.to_string(), DataType::Text(None))];
    Ok(Some(RowsOfFunction { rows: RowKind::Elements(vec![None]), columns, row_type: None }))
}

/// A function that takes JSON apart, of these arguments, which are cast; `None` where they are none for it.
fn json_call(
    query: QueryScope<'_>,
    binder: &Binder<'_>,
    (name, rows): (&str, JsonRows),
    arguments: &mut Vec<Expression>,
    alias: Option<&TableAlias>,
) -> Result<Option<RowsOfFunction>, SqlError> {
    let wanted = json_type_of(name);
    let given = std::mem::take(arguments);
    let types = binder.types().clone();
    let has_base = name.contains("_populate_");
    let (base, json) = match given.as_slice() {
        [json] if !has_base => (Expression::constant(Value::Null, DataType::Record), json),
        [base, json] if has_base && types.of(base.data_type).is_some() => (base.clone(), json),
        _ => {
            *arguments = given;
            return Ok(None);
        }
    };
    let Some(json) = binder.argument(json.clone(), wanted) else {
        *arguments = given;
        return Ok(None);
    };
    let asked = || {
        let columns = listed_columns(query, alias)?.ok_or_else(|| {
            let message = "a column definition list is required for functions returning \"record\"";
            SqlError::new(SqlState::SYNTAX_ERROR, message)
        })?;
        let has_limit = query.variables.version() >= ExecutionVersion::V8;
        if has_limit && columns.len() > limits::LISTED_COLUMNS_MAX {
            let message = format!(
                "column definition lists can have at most {} entries (LISTED_COLUMNS_MAX)",
                limits::LISTED_COLUMNS_MAX
            );
            return Err(SqlError::new(SqlState(*b"54011"), message));
        }
        Ok(columns)
    };
    let of_base = || types.of(base.data_type).map(|known| known.fields.clone()).unwrap_or_default();
    let text = DataType::Text(None);
    let column = |name: &str, data_type| vec![(name.to_string(), data_type)];
    let member = |data_type| vec![("key".to_string(), text), ("value".to_string(), data_type)];
    let (rows, columns) = match rows {
        JsonRows::Elements(true) => (rows, column("value", text)),
        JsonRows::Elements(false) => (rows, column("value", wanted)),
        JsonRows::Members(true) => (rows, member(text)),
        JsonRows::Members(false) => (rows, member(wanted)),
        JsonRows::Keys => (rows, column(name, text)),
        JsonRows::Record(_) => {
            let fields = if has_base { of_base() } else { asked()? };
            (JsonRows::Record(fields.clone()), named(fields))
        }
        JsonRows::Records(_) => {
            let fields = if has_base { of_base() } else { asked()? };
            (JsonRows::Records(fields.clone()), named(fields))
        }
    };
    let row_type = match &rows {
        // Its only value stands for the row.
        JsonRows::Elements(_) => Some(columns[0].1),
        _ => Some(base.data_type).filter(|_| has_base),
    };
    *arguments = vec![base, json];
    let call = JsonCall { name: name.to_string(), rows, types };
    Ok(Some(RowsOfFunction { rows: RowKind::Json(Box::new(call)), columns, row_type }))
}

fn named(fields: Vec<OutputColumn>) -> Vec<(String, DataType)> {
    fields.into_iter().map(|field| (field.name, field.data_type)).collect()
}

/// The type of the values of a series, and of its step.
fn series_types(arguments: &[Expression]) -> Option<(DataType, DataType)> {
    use DataType::{BigInt, Date, Interval, Numeric, Timestamp, TimestampTz, Unknown};
    let types: Vec<DataType> = arguments.iter().map(|argument| argument.data_type.family()).collect();
    match types.as_slice() {
        [start, stop, Interval | Unknown] if [*start, *stop].iter().any(is_point_in_time) => {
            let allowed = |data_type: &DataType| is_point_in_time(data_type) || *data_type == Unknown;
            if !allowed(start) || !allowed(stop) {
                return None;
            }
            let zoned = [*start, *stop].iter().any(|data_type| matches!(data_type, TimestampTz));
            let dates = [*start, *stop].iter().all(|data_type| matches!(data_type, Date | Unknown));
            Some((if zoned || dates { TimestampTz } else { Timestamp }, Interval))
        }
        [_, _] | [_, _, _] => {
            let known = || types.iter().filter(|data_type| **data_type != Unknown);
            let all = |allowed: fn(&DataType) -> bool| known().count() > 0 && known().all(allowed);
            if all(|data_type| data_type.is_integer()) {
                let big = known().any(|data_type| *data_type == BigInt);
                let number = if big { BigInt } else { DataType::Integer };
                Some((number, number))
            } else if all(|data_type| data_type.is_integer() || matches!(data_type, Numeric(_))) {
                Some((Numeric(None), Numeric(None)))
            } else {
                None
            }
        }
        _ => None,
    }
}

fn is_point_in_time(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Date | DataType::Timestamp | DataType::TimestampTz)
}
