//! Paths to the rows of a table: by primary key, or over an interval of it or of an index.
//!
//! This is the choice, made while planning. What the parts of a path evaluate to is asked when a statement runs
//! ([`resolve_key`](super::resolve_key), [`Interval::resolve`]).

use crate::computed_index::ComputedIndex;
use crate::expression::{Expression, Kind};
use crate::implied::is_implied;
use crate::table::TablePlan;
use std::sync::Arc;
use types::{DataType, Index, IndexMethod};
use values::Comparison;
use values::inverted::{Search, search_of};

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
    /// Of an inverted index, which has no interval: what is looked for.
    pub parts: Option<PartsAccess>,
}

/// What is looked for in an inverted index.
#[derive(Clone, Debug, PartialEq)]
pub struct PartsAccess {
    /// What is asked.
    pub search: Search,
    /// What the index's values are held against; the same for every row.
    pub operand: KeyPart,
}

/// What a column of the key is compared with.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyPart {
    /// The value; the same for every row.
    pub value: Expression,
    /// Type of the column.
    pub data_type: DataType,
}

impl IndexAccess {
    /// In words, for EXPLAIN.
    pub fn shown(&self) -> String {
        let range = match (&self.parts, self.interval.is_whole()) {
            (Some(_), _) => "parts in ",
            (None, true) => "",
            (None, false) => "a range of ",
        };
        format!("{range}the index {}", self.index.name)
    }
}

impl AccessPath {
    /// Chooses a path for conditions, all of which must be true of a row. Gives it with the positions of the conditions that
    /// it fulfils itself: for [`AccessPath::Key`] those that the key says.
    pub fn choose(table: &TablePlan, conditions: &[Expression]) -> (AccessPath, Vec<usize>) {
        let mut equal = Vec::new();
        let mut fulfilled = Vec::new();
        for column in columns_of_table(table, &table.key) {
            let found = conditions.iter().enumerate().find_map(|(index, condition)| {
                match column.comparison(condition) {
                    Some((Comparison::Equal, value)) => Some((index, value)),
                    _ => None,
                }
            });
            let Some((index, value)) = found else { break };
            fulfilled.push(index);
            equal.push(KeyPart { value: value.clone(), data_type: column.data_type });
        }
        if !table.key.is_empty() && equal.len() == table.key.len() {
            return (AccessPath::Key(equal), fulfilled);
        }
        let within = Interval::of_conditions(table, &table.key, conditions);
        let mut best: Option<(&Arc<Index>, Interval)> = None;
        let mut than = (false, within.narrowness());
        let may_serve = |computed: &&Arc<ComputedIndex>| {
            computed.predicate.as_ref().is_none_or(|predicate| is_implied(predicate, conditions))
        };
        let ordered = |computed: &&Arc<ComputedIndex>| computed.index.method == IndexMethod::Ordered;
        let computed = table.computed.iter().filter(ordered).filter(may_serve);
        let computed = computed.map(|computed| (&computed.index, columns_of_keys(table, &computed.keys)));
        let plain = table.indexes.iter().map(|index| (index, columns_of_table(table, &index.columns)));
        for (index, columns) in plain.chain(computed) {
            let interval = Interval::of_columns(&columns, conditions);
            let finds_one = index.unique && interval.equal.len() == columns.len();
            // Fewer rows have entries in an index with a predicate.
            let partly = usize::from(index.details.predicate.is_some());
            let narrowness = (finds_one, interval.narrowness() + partly);
            if narrowness > than {
                than = narrowness;
                best = Some((index, interval));
            }
        }
        let mut inverted = table.computed.iter().filter(|computed| !ordered(computed)).filter(may_serve);
        // It promises as much as one equality.
        if than < (false, 2)
            && let Some((index, parts)) =
                inverted.find_map(|one| Some((&one.index, parts_of(table, one, conditions)?)))
        {
            let access = IndexAccess {
                index: index.clone(),
                interval: Interval::default(),
                within,
                in_order: false,
                parts: Some(parts),
            };
            return (AccessPath::Index(Box::new(access)), Vec::new());
        }
        let path = match best {
            None => AccessPath::Range(within),
            Some((index, interval)) => AccessPath::Index(Box::new(IndexAccess {
                index: index.clone(),
                interval,
                within,
                in_order: false,
                parts: None,
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
        let (equal, interval, index) = match self {
            AccessPath::Key(parts) => (parts.as_slice(), None, None),
            AccessPath::Range(interval) => (&[][..], Some(interval), None),
            AccessPath::Index(access) => (&[][..], None, Some(access)),
        };
        parts_of_access(equal, interval, index.map(Box::as_ref))
    }

    /// The order in which rows can be read: columns of which the first so many are the same for all rows found.
    pub fn order(&self, table: &TablePlan) -> (Vec<u16>, usize) {
        let columns = match self {
            AccessPath::Key(_) | AccessPath::Range(_) => table.key.clone(),
            // Its entries are looked at first, all of them.
            AccessPath::Index(access) if access.index.is_computed() => return (Vec::new(), 0),
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
        Interval::of_columns(&columns_of_table(table, columns), conditions)
    }

    fn of_columns(columns: &[Ordered<'_>], conditions: &[Expression]) -> Interval {
        let mut equal = Vec::new();
        for column in columns {
            let found = conditions.iter().find_map(|condition| match column.comparison(condition) {
                Some((Comparison::Equal, value)) => Some(value),
                _ => None,
            });
            let Some(value) = found else { break };
            equal.push(KeyPart { value: value.clone(), data_type: column.data_type });
        }
        let (mut lower, mut upper) = (None, None);
        if let Some(column) = columns.get(equal.len()).filter(|column| column.is_in_order) {
            for condition in conditions {
                let Some((comparison, value)) = column.comparison(condition) else { continue };
                let part = || KeyPart { value: value.clone(), data_type: column.data_type };
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

/// What an access compares columns with: those of a whole key, or those of an interval or index.
pub(super) fn parts_of_access<'a>(
    equal: &'a [KeyPart],
    interval: Option<&'a Interval>,
    index: Option<&'a IndexAccess>,
) -> impl Iterator<Item = &'a KeyPart> {
    let intervals = index.into_iter().flat_map(|access| [&access.interval, &access.within]).chain(interval);
    let looked_for = index.and_then(|access| access.parts.as_ref()).map(|parts| &parts.operand);
    equal.iter().chain(intervals.flat_map(Interval::parts)).chain(looked_for)
}

/// What conditions, all of which must be true, look for in an inverted index.
fn parts_of(table: &TablePlan, computed: &ComputedIndex, conditions: &[Expression]) -> Option<PartsAccess> {
    let columns = columns_of_keys(table, &computed.keys);
    let column = columns.first()?;
    conditions.iter().find_map(|condition| {
        let Kind::Function(function, operands) = &condition.kind else { return None };
        let (search, place) = search_of(function)?;
        let [left, right] = operands.as_slice() else { return None };
        let (indexed, operand) = if place == 0 { (left, right) } else { (right, left) };
        let operand = KeyPart { value: operand.clone(), data_type: operand.data_type };
        let is_found = column.is_meant(indexed) && operand.value.is_row_independent();
        is_found.then_some(PartsAccess { search, operand })
    })
}

/// What rows are ordered by: a column, or what an index has of a row.
struct Ordered<'a> {
    part: Part<'a>,
    data_type: DataType,
    /// Keys stand in the order of its values.
    is_in_order: bool,
}

enum Part<'a> {
    Column(u16),
    Expression(&'a Expression),
}

fn columns_of_table(table: &TablePlan, columns: &[u16]) -> Vec<Ordered<'static>> {
    let data_type = |ordinal: u16| table.columns[usize::from(ordinal)].data_type;
    columns
        .iter()
        .map(|ordinal| {
            let data_type = data_type(*ordinal);
            let is_in_order = table.has_in_order(data_type);
            Ordered { part: Part::Column(*ordinal), data_type, is_in_order }
        })
        .collect()
}

fn columns_of_keys<'a>(table: &TablePlan, keys: &'a [Expression]) -> Vec<Ordered<'a>> {
    let ordered = |key: &'a Expression| {
        let is_in_order = table.has_in_order(key.data_type);
        Ordered { part: Part::Expression(key), data_type: key.data_type, is_in_order }
    };
    keys.iter().map(ordered).collect()
}

impl Ordered<'_> {
    /// `column op value` or `value op column` with a value that is the same for every row. The column may have been cast
    /// to a wider exact type, which keeps order and equality.
    fn comparison<'c>(&self, condition: &'c Expression) -> Option<(Comparison, &'c Expression)> {
        match &condition.kind {
            Kind::Compare(comparison, operands) => {
                let [left, right] = operands.as_ref();
                if self.is_meant(left) && right.is_row_independent() {
                    Some((*comparison, right))
                } else if self.is_meant(right) && left.is_row_independent() {
                    Some((comparison.mirrored(), left))
                } else {
                    None
                }
            }
            _ => None,
        }
    }

    fn is_meant(&self, expression: &Expression) -> bool {
        let is_part = |expression: &Expression| match self.part {
            Part::Column(ordinal) => matches!(expression.kind, Kind::Column(column) if column == ordinal),
            Part::Expression(part) => expression == part,
        };
        let widened = |operand: &Expression| {
            (operand.data_type.is_integer() || matches!(operand.data_type, DataType::Numeric(_)))
                && matches!(expression.data_type, DataType::BigInt | DataType::Numeric(None))
        };
        match &expression.kind {
            _ if is_part(expression) => true,
            Kind::Cast(operand) => is_part(operand) && widened(operand),
            _ => false,
        }
    }
}
