//! Partitioned tables: which rows each partition has.
//!
//! A partition is a slice of its table: rows, keys and constraints are the table's, and a partition is a name for those of its rows that
//! are within a bound. A partition may be partitioned itself; its own partitions are slices of it.

use crate::DataType;
use borsh::{BorshDeserialize, BorshSerialize};
use std::collections::BTreeMap;

/// How the rows of a table, or of a partition, are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum PartitionStrategy {
    /// `PARTITION BY RANGE`: from one key on up to another one.
    Range,
    /// `PARTITION BY LIST`: by the values of a column.
    List,
}

impl PartitionStrategy {
    /// As SQL says it.
    pub fn name(self) -> &'static str {
        match self {
            PartitionStrategy::Range => "RANGE",
            PartitionStrategy::List => "LIST",
        }
    }
}

/// PARTITION BY.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct PartitionKey {
    /// What it says of the columns.
    pub strategy: PartitionStrategy,
    /// Ordinals of the columns, in order.
    pub columns: Vec<u16>,
}

/// A value of a range's bound. The order is none of the values'.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub enum RangeDatum {
    /// `MINVALUE`: below all values.
    MinValue,
    /// A value, as text of the column's type.
    Value(String),
    /// `MAXVALUE`: above all values.
    MaxValue,
}

/// The rows that a partition has.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum PartitionBound {
    /// `DEFAULT`: what no other partition has.
    Default,
    /// `IN`: values as texts of the column's type; `None` is NULL.
    List(Vec<Option<String>>),
    /// `FROM … TO …`: the lower bound is within, the upper one is not.
    Range {
        /// A value for each column.
        from: Vec<RangeDatum>,
        /// A value for each column.
        to: Vec<RangeDatum>,
    },
}

impl PartitionBound {
    /// How many values it has.
    pub fn values(&self) -> usize {
        match self {
            PartitionBound::Default => 0,
            PartitionBound::List(values) => values.len(),
            PartitionBound::Range { from, to } => from.len() + to.len(),
        }
    }

    /// As PostgreSQL shows it. `types`: those of the key's columns, without domains.
    pub fn shown(&self, types: &[DataType]) -> String {
        match self {
            PartitionBound::Default => "DEFAULT".to_string(),
            PartitionBound::List(values) => {
                let data_type = types.first().copied().unwrap_or(DataType::Text(None));
                let shown = |value: &Option<String>| match value {
                    Some(text) => shown_value(text, data_type),
                    None => "NULL".to_string(),
                };
                let values: Vec<String> = values.iter().map(shown).collect();
                format!("FOR VALUES IN ({})", values.join(", "))
            }
            PartitionBound::Range { from, to } => {
                format!("FOR VALUES FROM {} TO {}", shown_datums(from, types), shown_datums(to, types))
            }
        }
    }
}

/// One side of a range as PostgreSQL shows it.
pub fn shown_datums(datums: &[RangeDatum], types: &[DataType]) -> String {
    let shown = |(place, datum): (usize, &RangeDatum)| match datum {
        RangeDatum::MinValue => "MINVALUE".to_string(),
        RangeDatum::MaxValue => "MAXVALUE".to_string(),
        RangeDatum::Value(text) => {
            shown_value(text, types.get(place).copied().unwrap_or(DataType::Text(None)))
        }
    };
    format!("({})", datums.iter().enumerate().map(shown).collect::<Vec<_>>().join(", "))
}

/// A value as PostgreSQL shows constants whose type is known.
fn shown_value(text: &str, data_type: DataType) -> String {
    let plain = match data_type {
        DataType::Integer => !text.starts_with('-'),
        DataType::Numeric(_) => {
            text.starts_with(|first: char| first.is_ascii_digit()) && text.contains(['e', 'E', '.'])
        }
        DataType::Boolean => return if text == "t" { "true".to_string() } else { "false".to_string() },
        _ => false,
    };
    let escaped = text.replace('\'', "''");
    match plain {
        true => text.to_string(),
        false if text.contains('\\') => format!("E'{}'", escaped.replace('\\', "\\\\")),
        false => format!("'{escaped}'"),
    }
}

/// A partition.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Partition {
    /// The partition that it is one of; `None`: it is one of the table.
    pub parent: Option<String>,
    /// The rows that it has.
    pub bound: PartitionBound,
    /// How it is partitioned itself, if it is.
    pub key: Option<PartitionKey>,
}

/// How a table is partitioned.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Partitioning {
    /// What tells the rows of its own partitions apart.
    pub key: PartitionKey,
    /// Its partitions and theirs, by their names in the catalog.
    pub partitions: BTreeMap<String, Partition>,
}

impl Partitioning {
    /// What tells the rows of the table apart (`None`), or of a partition of this name that is partitioned.
    pub fn key_of(&self, partition: Option<&str>) -> Option<&PartitionKey> {
        match partition {
            None => Some(&self.key),
            Some(name) => self.partitions.get(name)?.key.as_ref(),
        }
    }

    /// The partitions of the table, or of a partition of it.
    pub fn partitions_of<'p>(
        &'p self,
        parent: Option<&'p str>,
    ) -> impl Iterator<Item = (&'p String, &'p Partition)> + 'p {
        self.partitions.iter().filter(move |(_, partition)| partition.parent.as_deref() == parent)
    }

    /// A partition and all those inside of it, from the top.
    pub fn with_inner(&self, name: &str) -> Vec<String> {
        let mut found = vec![name.to_string()];
        let mut next = 0;
        while let Some(outer) = found.get(next).cloned() {
            found.extend(self.partitions_of(Some(&outer)).map(|(inner, _)| inner.clone()));
            next += 1;
        }
        found
    }

    /// All of its keys, those of partitions among them.
    pub fn keys(&self) -> impl Iterator<Item = &PartitionKey> {
        std::iter::once(&self.key).chain(self.partitions.values().filter_map(|one| one.key.as_ref()))
    }

    /// The same, to be changed.
    pub fn keys_mut(&mut self) -> impl Iterator<Item = &mut PartitionKey> {
        let inner = self.partitions.values_mut().filter_map(|one| one.key.as_mut());
        std::iter::once(&mut self.key).chain(inner)
    }

    /// The same with other names of partitions.
    #[must_use]
    pub fn renamed(&self, renamed: &dyn Fn(&str) -> String) -> Partitioning {
        let moved = |(name, partition): (&String, &Partition)| {
            let parent = partition.parent.as_deref().map(renamed);
            (renamed(name), Partition { parent, ..partition.clone() })
        };
        Partitioning { key: self.key.clone(), partitions: self.partitions.iter().map(moved).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Table, TableId, decode_exactly, encode};
    use std::sync::Arc;

    fn table(partitioning: Option<Arc<Partitioning>>) -> Table {
        Table {
            id: TableId(7),
            name: "t".to_string(),
            columns: Vec::new(),
            primary_key: Vec::new(),
            primary_key_name: "t_pkey".to_string(),
            checks: Vec::new(),
            endorsement: None,
            row_security: crate::RowSecurity::default(),
            partitioning,
            materialized: None,
        }
    }

    fn partitioning() -> Partitioning {
        let key = |strategy| PartitionKey { strategy, columns: vec![0] };
        let range = PartitionBound::Range {
            from: vec![RangeDatum::MinValue],
            to: vec![RangeDatum::Value("7".to_string())],
        };
        let list = PartitionBound::List(vec![None, Some("a".to_string())]);
        let outer = Partition { parent: None, bound: range, key: Some(key(PartitionStrategy::List)) };
        let inner = Partition { parent: Some("p".to_string()), bound: list, key: None };
        let partitions = [("p".to_string(), outer), ("q".to_string(), inner)].into();
        Partitioning { key: key(PartitionStrategy::Range), partitions }
    }

    #[test]
    fn tables_without_partitions_are_encoded_as_before_there_were_any() {
        let plain = encode(&table(None));
        assert_eq!(plain.last(), Some(&0));
        let partitioned = table(Some(Arc::new(partitioning())));
        let bytes = encode(&partitioned);
        assert_eq!(bytes[..plain.len() - 1], plain[..plain.len() - 1]);
        assert_eq!(decode_exactly::<Table>(&bytes).expect("it round-trips"), partitioned);
        assert!((0..bytes.len()).all(|length| decode_exactly::<Table>(&bytes[..length]).is_err()));
    }

    #[test]
    fn partitions_stand_inside_of_partitions() {
        let partitioning = partitioning();
        assert_eq!(partitioning.with_inner("p"), ["p", "q"]);
        assert_eq!(partitioning.key_of(Some("p")).map(|key| key.strategy), Some(PartitionStrategy::List));
        assert_eq!(partitioning.key_of(Some("q")), None);
        let moved = partitioning.renamed(&|name| format!("s.{name}"));
        assert_eq!(moved.partitions["s.q"].parent.as_deref(), Some("s.p"));
    }
}
