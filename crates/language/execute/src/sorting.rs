//! The order of rows: by the keys of an ORDER BY, and as SQL groups them.

use plan::aggregate::AggregateOrder;
use std::cmp::Ordering;
use types::Value;

/// Compares two rows by the keys of an ORDER BY.
pub fn compare_by(order: &[AggregateOrder], left: &[Value], right: &[Value]) -> Ordering {
    let keys = order.iter().zip(left.iter().zip(right));
    keys.map(|(key, (left, right))| compare_key(key.descending, key.nulls_first, left, right))
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

/// Compares two values of one key of an ORDER BY.
pub fn compare_key(descending: bool, nulls_first: bool, left: &Value, right: &Value) -> Ordering {
    match (left.is_null(), right.is_null()) {
        (true, true) => Ordering::Equal,
        (true, false) if nulls_first => Ordering::Less,
        (true, false) => Ordering::Greater,
        (false, true) if nulls_first => Ordering::Greater,
        (false, true) => Ordering::Less,
        (false, false) if descending => right.sort_compare(left),
        (false, false) => left.sort_compare(right),
    }
}

/// Values that sort and compare as SQL groups them: NULL equals NULL, `1.0` equals `1.00`.
#[derive(Clone, Debug)]
pub struct Sortable(pub Vec<Value>);

/// Compares values as SQL groups them, one behind the other.
pub(super) fn compare_values(left: &[Value], right: &[Value]) -> Ordering {
    let pairs = left.iter().zip(right);
    pairs
        .map(|(left, right)| left.sort_compare(right))
        .find(|order| order.is_ne())
        .unwrap_or_else(|| left.len().cmp(&right.len()))
}

impl Ord for Sortable {
    fn cmp(&self, other: &Sortable) -> Ordering {
        compare_values(&self.0, &other.0)
    }
}

impl PartialOrd for Sortable {
    fn partial_cmp(&self, other: &Sortable) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Sortable {
    fn eq(&self, other: &Sortable) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Sortable {}
