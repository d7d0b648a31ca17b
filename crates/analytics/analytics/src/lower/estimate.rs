//! About how many rows there are, and what is known of their keys: what the order of joins is chosen by.

use plan::expression::{Expression, Kind};
use std::collections::{BTreeMap, BTreeSet};

/// What is known of the rows of a relation without reading all of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Estimate {
    /// How many.
    pub(crate) rows: f64,
    /// Columns of which no two rows have the same values, and how many values there were before rows were left out.
    pub(crate) unique: Vec<(BTreeSet<usize>, f64)>,
    /// How many different values a column has.
    pub(crate) distinct: BTreeMap<usize, f64>,
}

impl Estimate {
    /// The rows of which so many stay.
    pub(crate) fn scaled(mut self, share: f64) -> Estimate {
        self.rows = (self.rows * share).max(1.0);
        self
    }

    /// The rows of both with equal keys, inner rows only.
    pub(crate) fn joined(&self, other: &Estimate, equal: &[(&Expression, &Expression)]) -> Estimate {
        let keys = |side: fn(&(&Expression, &Expression)) -> Option<usize>| {
            equal.iter().filter_map(side).collect::<BTreeSet<usize>>()
        };
        let (own, others) = (keys(|(own, _)| column(own)), keys(|(_, other)| column(other)));
        let (own_values, own_unique) = self.values(&own);
        let (other_values, other_unique) = other.values(&others);
        let mut rows = self.rows * other.rows / own_values.max(other_values).max(1.0);
        if other_unique {
            rows = rows.min(self.rows);
        }
        if own_unique {
            rows = rows.min(other.rows);
        }
        let mut unique = Vec::new();
        if other_unique {
            unique.extend(self.unique.iter().cloned());
        }
        if own_unique {
            unique.extend(other.unique.iter().cloned());
        }
        let mut distinct = self.distinct.clone();
        distinct.extend(other.distinct.iter().map(|(column, values)| (*column, *values)));
        Estimate { rows: rows.max(1.0), unique, distinct }
    }

    /// How many different values these columns have together, and whether each row has values of its own.
    fn values(&self, columns: &BTreeSet<usize>) -> (f64, bool) {
        if let Some((_, values)) = self.unique.iter().find(|(unique, _)| unique.is_subset(columns)) {
            return (*values, true);
        }
        let of_column = |column: &usize| self.distinct.get(column).copied().unwrap_or(self.rows.sqrt());
        (columns.iter().map(of_column).product::<f64>().max(1.0).min(self.rows.max(1.0)), false)
    }

    /// How many groups by these keys there are.
    pub(crate) fn groups(&self, keys: &[Expression]) -> f64 {
        let columns: BTreeSet<usize> = keys.iter().filter_map(column).collect();
        match keys.is_empty() {
            true => 1.0,
            false => self.values(&columns).0.min(self.rows).max(1.0),
        }
    }
}

fn column(expression: &Expression) -> Option<usize> {
    match expression.kind {
        Kind::Column(ordinal) => Some(usize::from(ordinal)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::DataType;

    fn table(first: usize, rows: f64) -> Estimate {
        Estimate { rows, unique: vec![(BTreeSet::from([first]), rows)], distinct: BTreeMap::new() }
    }

    #[test]
    fn a_row_that_refers_to_a_key_has_at_most_one_partner() {
        let (facts, mut names) = (table(0, 1_000_000.0), table(10, 1_000.0));
        let [reference, key] = [1, 10].map(|column| Expression::column(column, DataType::BigInt));
        assert_eq!(facts.joined(&names, &[(&reference, &key)]).rows, 1_000_000.0);
        // A tenth of the names are wanted: so are a tenth of the facts.
        names.rows = 100.0;
        let joined = facts.joined(&names, &[(&reference, &key)]);
        assert_eq!(joined.rows, 100_000.0);
        assert_eq!(joined.unique, facts.unique, "a fact stays alone");
    }
}
