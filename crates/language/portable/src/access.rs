//! Which rows a statement can touch.

use crate::expression::{Expression, Term};
use crate::statement::Access;
use types::{Key, Table, Value};
use values::Comparison;

/// The rows that a condition can be true for.
pub(crate) fn access_of(table: &Table, condition: Option<&Expression>) -> Access {
    let Some(condition) = condition else { return Access::Table };
    let parts = match &condition.term {
        Term::And(parts) => parts.as_slice(),
        _ => std::slice::from_ref(condition),
    };
    let keys = whole_key(table, parts).map(|key| vec![key]).or_else(|| listed_keys(table, parts));
    keys.map_or(Access::Table, Access::Keys)
}

/// Whether a condition is that a column of the key has one value.
pub(crate) fn is_key_equality(table: &Table, condition: &Expression) -> bool {
    table.primary_key.iter().any(|ordinal| equal_value(table, usize::from(*ordinal), condition).is_some())
}

/// `key = 1 AND other_key = 2`
fn whole_key(table: &Table, parts: &[Expression]) -> Option<Key> {
    if table.primary_key.is_empty() {
        return None;
    }
    let value = |ordinal: &u16| parts.iter().find_map(|part| equal_value(table, usize::from(*ordinal), part));
    let values: Vec<&Value> = table.primary_key.iter().map(value).collect::<Option<_>>()?;
    // What is longer than a key can be is no row's.
    Key::encode(values).ok()
}

/// `key IN (1, 2)`
fn listed_keys(table: &Table, parts: &[Expression]) -> Option<Vec<Key>> {
    let (_, values) = listed_values(table, parts)?;
    values.into_iter().map(|value| Key::encode([value]).ok()).collect()
}

/// The only column of the key and the values that are listed for it.
pub(crate) fn listed_values<'e>(table: &Table, parts: &'e [Expression]) -> Option<(usize, Vec<&'e Value>)> {
    let [ordinal] = table.primary_key.as_slice() else { return None };
    let ordinal = usize::from(*ordinal);
    let values = parts.iter().find_map(|part| {
        let Term::In(of, list) = &part.term else { return None };
        if !is_column(table, ordinal, of) {
            return None;
        }
        list.iter().map(|element| key_value(table, ordinal, element)).collect()
    });
    values.map(|values| (ordinal, values))
}

/// The value that a column must have for a condition to be true.
pub(crate) fn equal_value<'e>(table: &Table, ordinal: usize, condition: &'e Expression) -> Option<&'e Value> {
    let Term::Compared(Comparison::Equal, left, right) = &condition.term else { return None };
    match (is_column(table, ordinal, left), is_column(table, ordinal, right)) {
        (true, _) => key_value(table, ordinal, right),
        (_, true) => key_value(table, ordinal, left),
        _ => None,
    }
}

fn is_column(table: &Table, ordinal: usize, of: &Expression) -> bool {
    of.term == Term::Column(ordinal) && of.data_type == table.columns[ordinal].data_type
}

/// A constant of a column's own type, which therefore has the key that the row has.
fn key_value<'e>(table: &Table, ordinal: usize, of: &'e Expression) -> Option<&'e Value> {
    let family = table.columns[ordinal].data_type.family();
    match &of.term {
        Term::Constant(value) if value.data_type() == family => Some(value),
        _ => None,
    }
}
