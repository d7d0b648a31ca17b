//! Paths to the rows of a table: by primary key, or over an interval of it or of an index.
//!
//! This is the choice, made while planning. What the parts of a path evaluate to is asked when a statement runs
//! ([`resolve_key`](super::resolve_key), [`Interval::resolve`]).

use crate::expression::{Expression, Kind};
use crate::table::TablePlan;
use std::sync::Arc;
use types::{DataType, Index};
use values::Comparison;

/// How the rows of a table are found that conditions ask for.
#[derive(Clone, Debug, PartialEq)]
pub enum AccessPath {
    /// At most one row: every column of the key equals a value.
    Key(Vec<KeyPart>),
    /// The rows in an interval of the primary key.
    Range(Interval),
    /// The rows in an interval of an index.
    Index(Box<IndexAccess>),
}

/// An interval of ordered columns: the first ones equal values, the next one lies between bounds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Interval {
    /// Values of the first columns.
    pub equal: Vec<KeyPart>,
    /// Of the next column; the flag: inclusive.
    pub lower: Option<(KeyPart, bool)>,
    /// Of the next column; the flag: inclusive.
    pub upper: Option<(KeyPart, bool)>,
}

/// An interval of an index.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexAccess {
    /// Which.
    pub index: Arc<Index>,
    /// Over its columns.
    pub interval: Interval,
    /// What the same conditions say of the primary key: no row outside of it is looked for.
    pub within: Interval,
    /// The rows are wanted in the order of the index. Otherwise they come in that of the primary key.
    pub in_order: bool,
}

/// What a column of the key is compared with.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyPart {
    /// The value; the same for every row.
    pub value: Expression,
    /// Type of the column.
    pub data_type: DataType,
}

impl AccessPath {
    /// Chooses a path for conditions, all of which must be true of a row. Gives it with the positions of the conditions that
    /// it fulfils itself: for [`AccessPath::Key`] those that the key says.
    pub fn choose(table: &TablePlan, conditions: &[Expression]) -> (AccessPath, Vec<usize>) {
        let mut equal = Vec::new();
        let mut fulfilled = Vec::new();
        for ordinal in &table.key {
            let found = conditions.iter().enumerate().find_map(|(index, condition)| {
                match comparison_with_column(condition, *ordinal) {
                    Some((Comparison::Equal, value)) => Some((index, value)),
                    _ => None,
                }
            });
            let Some((index, value)) = found else { break };
            fulfilled.push(index);
            let data_type = table.columns[usize::from(*ordinal)].data_type;
            equal.push(KeyPart { value: value.clone(), data_type });
        }
        if !table.key.is_empty() && equal.len() == table.key.len() {
            return (AccessPath::Key(equal), fulfilled);
        }
        let within = Interval::of_conditions(table, &table.key, conditions);
        let mut best: Option<(&Arc<Index>, Interval)> = None;
        for index in &table.indexes {
            let interval = Interval::of_conditions(table, &index.columns, conditions);
            let finds_one = |interval: &Interval, index: &Index| {
                index.unique && interval.equal.len() == index.columns.len()
            };
            let (than, one) = match &best {
                None => (within.narrowness(), false),
                Some((index, interval)) => (interval.narrowness(), finds_one(interval, index)),
            };
            if (finds_one(&interval, index), interval.narrowness()) > (one, than) {
                best = Some((index, interval));
            }
        }
        let path = match best {
            None => AccessPath::Range(within),
            Some((index, interval)) => AccessPath::Index(Box::new(IndexAccess {
                index: index.clone(),
                interval,
                within,
                in_order: false,
            })),
        };
        (path, Vec::new())
    }

    /// What the columns that it finds rows by must be equal to.
    pub fn equal(&self) -> &[KeyPart] {
        match self {
            AccessPath::Key(parts) => parts,
            AccessPath::Range(interval) => &interval.equal,
            AccessPath::Index(access) => &access.interval.equal,
        }
    }

    /// What columns are compared with.
    pub fn parts(&self) -> impl Iterator<Item = &KeyPart> {
        let (equal, intervals) = match self {
            AccessPath::Key(parts) => (parts.as_slice(), [None, None]),
            AccessPath::Range(interval) => (&[][..], [Some(interval), None]),
            AccessPath::Index(access) => (&[][..], [Some(&access.interval), Some(&access.within)]),
        };
        equal.iter().chain(intervals.into_iter().flatten().flat_map(Interval::parts))
    }

    /// The order in which rows can be read: columns of which the first so many are the same for all rows found.
    pub fn order(&self, table: &TablePlan) -> (Vec<u16>, usize) {
        let columns = match self {
            AccessPath::Key(_) | AccessPath::Range(_) => table.key.clone(),
            AccessPath::Index(access) => {
                let rest = table.key.iter().filter(|ordinal| !access.index.columns.contains(ordinal));
                access.index.columns.iter().chain(rest).copied().collect()
            }
        };
        (columns, self.equal().len())
    }
}

impl Interval {
    /// What conditions, all of which must be true, say of ordered columns of a table.
    fn of_conditions(table: &TablePlan, columns: &[u16], conditions: &[Expression]) -> Interval {
        let mut equal = Vec::new();
        for ordinal in columns {
            let found =
                conditions.iter().find_map(|condition| match comparison_with_column(condition, *ordinal) {
                    Some((Comparison::Equal, value)) => Some(value),
                    _ => None,
                });
            let Some(value) = found else { break };
            let data_type = table.columns[usize::from(*ordinal)].data_type;
            equal.push(KeyPart { value: value.clone(), data_type });
        }
        let (mut lower, mut upper) = (None, None);
        if let Some(ordinal) = columns.get(equal.len()) {
            let data_type = table.columns[usize::from(*ordinal)].data_type;
            for condition in conditions {
                let Some((comparison, value)) = comparison_with_column(condition, *ordinal) else { continue };
                let part = || KeyPart { value: value.clone(), data_type };
                match comparison {
                    Comparison::Greater if lower.is_none() => lower = Some((part(), false)),
                    Comparison::GreaterOrEqual if lower.is_none() => lower = Some((part(), true)),
                    Comparison::Less if upper.is_none() => upper = Some((part(), false)),
                    Comparison::LessOrEqual if upper.is_none() => upper = Some((part(), true)),
                    _ => {}
                }
            }
        }
        Interval { equal, lower, upper }
    }

    /// True where it holds every row.
    pub fn is_whole(&self) -> bool {
        self.parts().next().is_none()
    }

    /// How few rows it promises to hold, without statistics: equalities, then bounds.
    fn narrowness(&self) -> usize {
        2 * self.equal.len() + usize::from(self.lower.is_some() || self.upper.is_some())
    }

    /// What columns are compared with.
    pub fn parts(&self) -> impl Iterator<Item = &KeyPart> {
        let bounds = [&self.lower, &self.upper].into_iter().flatten().map(|(part, _)| part);
        self.equal.iter().chain(bounds)
    }
}

/// `column op value` or `value op column` with a value that is the same for every row. The column may have been cast
/// to a wider exact type, which keeps order and equality.
fn comparison_with_column(condition: &Expression, ordinal: u16) -> Option<(Comparison, &Expression)> {
    let Kind::Compare(comparison, operands) = &condition.kind else { return None };
    let [left, right] = operands.as_ref();
    if is_column(left, ordinal) && right.is_row_independent() {
        Some((*comparison, right))
    } else if is_column(right, ordinal) && left.is_row_independent() {
        Some((comparison.mirrored(), left))
    } else {
        None
    }
}

fn is_column(expression: &Expression, ordinal: u16) -> bool {
    match &expression.kind {
        Kind::Column(column) => *column == ordinal,
        Kind::Cast(operand) => {
            matches!(operand.kind, Kind::Column(column) if column == ordinal)
                && (operand.data_type.is_integer() || matches!(operand.data_type, DataType::Numeric(_)))
                && matches!(expression.data_type, DataType::BigInt | DataType::Numeric(None))
        }
        _ => false,
    }
}
