//! How sequences count: what START, INCREMENT and their kind come to.
//!
//! A sequence counts where one of them is said, or where its values must fit into `integer` or `smallint`. Otherwise its values
//! are made of the place where they are drawn, and nobody waits for anybody.
//!
//! The last value of a sequence that counts is a row under a number of its own, in the digest and in checkpoints like
//! any row. A draw reads and writes it beside the running statement (`execute::counter`), so every protocol sees
//! the conflict, and endorsers can draw too. RESTART gives the counter another number, because a schema change never
//! changes rows that stay.

use crate::ddl::relations::take_number;
use crate::ddl::rows::Rows;
use plan::expression::bind_data_type;
use plan::sequence::counter_key;
use syntax::parse::sequence::CountingOptions;
use types::{Catalog, CompositeTypes, Counter, DataType, ExecutionVersion, SqlError, SqlState, TableId};

/// The type of a sequence's values: what AS says.
///
/// # Errors
/// `22023` for what is no integer.
pub(super) fn sequence_type(
    catalog: &Catalog,
    rules: ExecutionVersion,
    options: &CountingOptions,
) -> Result<Option<DataType>, SqlError> {
    let Some(data_type) = &options.data_type else { return Ok(None) };
    let data_type = bind_data_type(&CompositeTypes::new(catalog).with_rules(rules), data_type)?;
    if !data_type.is_integer() {
        return Err(invalid("sequence type must be smallint, integer, or bigint".to_string()));
    }
    Ok(Some(data_type))
}

/// How a sequence counts whose values are of this type; `None`: it does not. `before`: how it has counted so far.
///
/// # Errors
/// Bounds that hold no value, or not the first one.
pub(super) fn counter(
    catalog: &mut Catalog,
    data_type: DataType,
    options: &CountingOptions,
    before: Option<&Counter>,
) -> Result<Option<Counter>, SqlError> {
    if before.is_none() && data_type == DataType::BigInt && !options.count() {
        return Ok(None);
    }
    let (least, greatest) = data_type.integer_range().unwrap_or((i64::MIN, i64::MAX));
    let increment = options.increment.or(before.map(|before| before.increment)).unwrap_or(1);
    if increment == 0 {
        return Err(invalid("INCREMENT must not be zero".to_string()));
    }
    let same_type = before.filter(|before| before.data_type == data_type);
    let bound = |said: Option<Option<i64>>, known: Option<i64>, unsaid: i64| match said {
        Some(Some(value)) => value,
        Some(None) => unsaid,
        None => known.unwrap_or(unsaid),
    };
    let largest = if increment > 0 { greatest } else { -1 };
    let largest = bound(options.largest, same_type.map(|before| before.largest), largest);
    let smallest = if increment > 0 { 1 } else { least };
    let smallest = bound(options.smallest, same_type.map(|before| before.smallest), smallest);
    for (name, value) in [("MAXVALUE", largest), ("MINVALUE", smallest)] {
        if !(least..=greatest).contains(&value) {
            let message = format!("{name} ({value}) is out of range for sequence data type {data_type}");
            return Err(invalid(message));
        }
    }
    if smallest >= largest {
        return Err(invalid(format!("MINVALUE ({smallest}) must be less than MAXVALUE ({largest})")));
    }
    let first = if increment > 0 { smallest } else { largest };
    let start = options.start.or(before.map(|before| before.start)).unwrap_or(first);
    if start < smallest {
        return Err(invalid(format!("START value ({start}) cannot be less than MINVALUE ({smallest})")));
    }
    if start > largest {
        return Err(invalid(format!("START value ({start}) cannot be greater than MAXVALUE ({largest})")));
    }
    let cycles = options.cycles.or(before.map(|before| before.cycles)).unwrap_or(false);
    let table = match before {
        Some(before) => before.table,
        None => TableId(take_number(catalog)?),
    };
    Ok(Some(Counter { table, data_type, start, increment, smallest, largest, cycles }))
}

/// What CACHE says, which changes nothing: no session keeps values for itself. `before`: what it has said so far. Before version 13 it was
/// forgotten.
///
/// # Errors
/// `22023` for less than 1, `42601` where it is said twice.
pub(super) fn cache(
    rules: ExecutionVersion,
    options: &CountingOptions,
    before: i64,
) -> Result<i64, SqlError> {
    match options.cache.as_slice() {
        _ if rules < ExecutionVersion::V13 => Ok(before),
        [] => Ok(before),
        [cache] if *cache >= 1 => Ok(*cache),
        [cache] => Err(invalid(format!("CACHE ({cache}) must be greater than zero"))),
        _ => Err(SqlError::new(SqlState::SYNTAX_ERROR, "conflicting or redundant options")),
    }
}

/// RESTART: the counter goes on from this value. Its row stands under another number then, because rows that stay are never
/// changed by a schema change.
///
/// # Errors
/// A value beyond its bounds.
pub(super) fn restart(
    catalog: &mut Catalog,
    counter: Counter,
    value: Option<i64>,
    rows: &mut Rows<'_, '_>,
) -> Result<Counter, SqlError> {
    let value = value.unwrap_or(counter.start);
    if value < counter.smallest {
        let smallest = counter.smallest;
        return Err(invalid(format!("RESTART value ({value}) cannot be less than MINVALUE ({smallest})")));
    }
    if value > counter.largest {
        let largest = counter.largest;
        return Err(invalid(format!("RESTART value ({value}) cannot be greater than MAXVALUE ({largest})")));
    }
    let counter = Counter { table: TableId(take_number(catalog)?), ..counter };
    rows.put(counter.table, counter_key(), Counter::row(value, false))?;
    Ok(counter)
}

fn invalid(message: String) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}
