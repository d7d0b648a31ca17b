//! Functions in FROM that give rows: `generate_series` and `unnest`.

use crate::expression::{Expression, Relations, Source};
use crate::statement::from::{Item, add_relation};
use crate::statement::past::HISTORY_COLUMNS;
use crate::statement::query::{Level, QueryScope};
use crate::table::TablePlan;
use sqlparser::ast::{Expr, FunctionArg, FunctionArgExpr, ObjectName, TableAlias};
use sqlparser::tokenizer::Span;
use std::sync::Arc;
use types::{DataType, Interval, SqlError, SqlState, Value};

/// A function that gives rows.
#[derive(Debug)]
pub struct RowFunction {
    /// What it gives.
    pub rows: RowKind,
    /// A last column has their numbers, from 1.
    pub with_ordinality: bool,
}

/// What rows a function gives.
#[derive(Debug)]
pub enum RowKind {
    /// `generate_series(start, stop, step)` over values of this type: integers, numerics or timestamps.
    Series(DataType),
    /// `unnest(array, …)`: the elements of arrays, side by side; of rows their fields, so many.
    Elements(Vec<Option<usize>>),
    /// `entente.history('table', key, …)`: the changes of a row.
    History(Arc<TablePlan>),
}

impl RowFunction {
    /// How many columns its rows have.
    pub fn width(&self) -> usize {
        let columns = match &self.rows {
            RowKind::Series(_) => 1,
            RowKind::Elements(arrays) => arrays.iter().map(|fields| fields.unwrap_or(1)).sum(),
            RowKind::History(table) => HISTORY_COLUMNS.len() + table.columns.len(),
        };
        columns + usize::from(self.with_ordinality)
    }

    /// What EXPLAIN says.
    pub fn explanation(&self) -> &'static str {
        match &self.rows {
            RowKind::Series(DataType::Timestamp | DataType::TimestampTz) => "Timestamps of generate_series",
            RowKind::Series(_) => "Numbers of generate_series",
            RowKind::Elements(_) => "Elements of unnest",
            RowKind::History(_) => "Changes of a row; registers nothing",
        }
    }
}

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
pub(super) fn gives_rows(name: &ObjectName) -> bool {
    let name = name.to_string().to_ascii_lowercase();
    matches!(
        name.strip_prefix("pg_catalog.").unwrap_or(&name),
        "generate_series" | "unnest" | "regexp_split_to_table"
    )
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
) -> Result<Item, SqlError> {
    let name = call.name.to_ascii_lowercase();
    let name = name.strip_prefix("pg_catalog.").unwrap_or(&name);
    let visible = names.between(0);
    let binder = query.binder(level, Source::Relations(&visible));
    binder.in_clause(Some("functions in FROM"));
    let mut arguments =
        call.arguments.iter().map(|argument| binder.bind(argument)).collect::<Result<Vec<_>, _>>()?;
    let missing = |arguments: &[Expression], hint: &str| {
        let types: Vec<String> =
            arguments.iter().map(|argument| argument.data_type.family().to_string()).collect();
        let message = format!("function {name}({}) does not exist", types.join(", "));
        let error = SqlError::new(SqlState::UNDEFINED_FUNCTION, message).hint(hint);
        query.variables.located(error, span)
    };
    let mut row_type = None;
    let (rows, mut columns) = match name {
        "generate_series" => {
            let Some((data_type, step)) = series_types(&arguments) else {
                return Err(missing(
                    &arguments,
                    "It takes start, stop and perhaps a step: integers, numerics, or timestamps with an interval.",
                ));
            };
            if arguments.len() == 2 {
                arguments.push(Expression::constant(Value::Integer(1), DataType::Integer));
            }
            let targets = [data_type, data_type, step];
            let cast =
                arguments.into_iter().zip(targets).map(|(bound, target)| binder.cast_to(bound, target));
            arguments = cast.collect::<Result<_, _>>()?;
            (RowKind::Series(data_type), vec![(name.to_string(), data_type)])
        }
        "regexp_split_to_table" => {
            let split = binder.call_by_name("regexp_split_to_array", std::mem::take(&mut arguments))?;
            arguments.push(split);
            (RowKind::Elements(vec![None]), vec![(name.to_string(), DataType::Text(None))])
        }
        "unnest" if !arguments.is_empty() => {
            let elements: Option<Vec<DataType>> =
                arguments.iter().map(|array| array.data_type.element()).collect();
            let Some(elements) = elements else {
                return Err(missing(&arguments, "It takes arrays."));
            };
            if let [only] = elements.as_slice()
                && binder.types().of(*only).is_some()
            {
                row_type = Some(*only);
            }
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
                        let message =
                            "a column definition list is required for functions returning \"record\"";
                        let error = SqlError::new(SqlState::SYNTAX_ERROR, message);
                        return Err(query.variables.located(error, span));
                    }
                    None => {
                        widths.push(None);
                        columns.push((name.to_string(), element));
                    }
                }
            }
            (RowKind::Elements(widths), columns)
        }
        _ => {
            let error = SqlError::unsupported(format_args!("the function {name} in FROM"));
            return Err(query.variables.located(error, span));
        }
    };
    let single = columns.len() == 1;
    if call.with_ordinality {
        columns.push(("ordinality".to_string(), DataType::BigInt));
    }
    add_relation(query, names, name, alias, columns)?;
    crate::statement::from::set_row_type(names, row_type.filter(|_| !call.with_ordinality));
    if let (Some(alias), Some(relation), true) = (alias, names.relations.last_mut(), single)
        && alias.columns.is_empty()
    {
        // A function's only column has the name of its alias.
        relation.columns[0].0 = relation.name.clone();
    }
    let function = RowFunction { rows, with_ordinality: call.with_ordinality };
    Ok(Item::Function { function, arguments })
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

/// Whether a step goes up; `None` where it does not go anywhere.
///
/// # Errors
/// `22023` for a step of zero.
pub fn goes_up(step: &Value) -> Result<bool, SqlError> {
    let zero = match step {
        Value::Interval(_) => Value::Interval(Interval::default()),
        Value::Numeric(_) => Value::Numeric(types::Numeric::ZERO),
        _ => Value::Integer(0),
    };
    match step.compare(&zero) {
        Some(std::cmp::Ordering::Greater) => Ok(true),
        Some(std::cmp::Ordering::Less) => Ok(false),
        _ => Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, "step size cannot equal zero")),
    }
}
