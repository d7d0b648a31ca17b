//! What partitions have, as conditions over their table's row, in SQL.
//!
//! Every condition is true or false and never NULL, so that NOT of it is what a DEFAULT has. Partitions whose ranges follow one another
//! are one range in the conditions of all of them together, and lists are one list.

use std::collections::{BTreeMap, BTreeSet};
use types::{
    CompositeTypes, DataType, Partition, PartitionBound, PartitionKey, Partitioning, RangeDatum, Table,
    quoted_catalog_name,
};

/// Writes conditions over the rows of a partitioned table.
pub struct PartitionConditions<'t> {
    table: &'t Table,
    partitioning: &'t Partitioning,
    types: &'t CompositeTypes,
}

impl<'t> PartitionConditions<'t> {
    /// Of a table; `None` where it is not partitioned.
    pub fn new(table: &'t Table, types: &'t CompositeTypes) -> Option<PartitionConditions<'t>> {
        let partitioning = table.partitioning.as_deref()?;
        Some(PartitionConditions { table, partitioning, types })
    }

    /// What is true of the rows of a partition.
    pub fn of(&self, name: &str) -> String {
        let mut all = Vec::new();
        let mut next = Some(name);
        while let Some(name) = next {
            let Some(partition) = self.partitioning.partitions.get(name) else { break };
            all.insert(0, self.own(partition));
            next = partition.parent.as_deref();
        }
        joined(all, "AND")
    }

    /// What is true of the rows that the table takes: some partition has them. `None`: it takes all.
    pub fn accepted(&self) -> Option<String> {
        self.accepted_by(None)
    }

    /// The query whose rows a partition has.
    pub fn query(&self, name: &str) -> String {
        let columns: Vec<String> = self.table.columns.iter().map(|column| quoted(&column.name)).collect();
        let relation = quoted_catalog_name(&self.table.name);
        format!("SELECT {} FROM {relation} WHERE {}", columns.join(", "), self.of(name))
    }

    /// A value of a bound as SQL.
    pub fn literal(&self, text: &str, ordinal: u16) -> String {
        let data_type = self.table.columns.get(usize::from(ordinal)).map(|column| column.data_type);
        let data_type = self.types.base_of(data_type.unwrap_or(DataType::Text(None)));
        format!("'{}'::{}", text.replace('\'', "''"), type_text(self.types, data_type))
    }

    fn accepted_by(&self, parent: Option<&str>) -> Option<String> {
        let mut simple = Vec::new();
        let mut parts = Vec::new();
        for (name, partition) in self.partitioning.partitions_of(parent) {
            let inner = match partition.key {
                Some(_) => self.accepted_by(Some(name)),
                None => None,
            };
            match inner {
                None => simple.push(partition),
                Some(inner) => parts.push(format!("({} AND {inner})", self.own(partition))),
            }
        }
        let takes_rest = simple.iter().any(|partition| partition.bound == PartitionBound::Default);
        if takes_rest && parts.is_empty() {
            return None;
        }
        if let Some(key) = self.partitioning.key_of(parent) {
            parts.extend(self.union(key, &simple));
        }
        parts.extend(
            simple.iter().filter(|one| one.bound == PartitionBound::Default).map(|one| self.own(one)),
        );
        Some(if parts.is_empty() { "false".to_string() } else { joined(parts, "OR") })
    }

    /// What is true of the rows of a partition among those of what it is a partition of.
    fn own(&self, partition: &Partition) -> String {
        let parent = partition.parent.as_deref();
        let Some(key) = self.partitioning.key_of(parent) else { return "false".to_string() };
        if partition.bound != PartitionBound::Default {
            return joined(self.union(key, &[partition]), "OR");
        }
        let others = self.partitioning.partitions_of(parent).map(|(_, other)| other);
        let others: Vec<&Partition> = others.filter(|other| other.bound != PartitionBound::Default).collect();
        match self.union(key, &others).as_slice() {
            [] => "true".to_string(),
            some => format!("(NOT {})", joined(some.to_vec(), "OR")),
        }
    }

    /// Conditions of which one is true of each row that one of these partitions has; a DEFAULT is left out.
    fn union(&self, key: &PartitionKey, partitions: &[&Partition]) -> Vec<String> {
        let mut parts = Vec::new();
        let (mut values, mut has_null) = (Vec::new(), false);
        let mut ranges: BTreeMap<&[RangeDatum], &[RangeDatum]> = BTreeMap::new();
        for partition in partitions {
            match &partition.bound {
                PartitionBound::Default => {}
                PartitionBound::List(list) => {
                    has_null |= list.contains(&None);
                    values.extend(list.iter().flatten());
                }
                PartitionBound::Range { from, to } => drop(ranges.insert(from, to)),
            }
        }
        let (column, ordinal) = (self.column(key, 0), key.columns.first().copied().unwrap_or_default());
        if !values.is_empty() {
            let values: Vec<String> = values.iter().map(|value| self.literal(value, ordinal)).collect();
            parts.push(format!("({column} IS NOT NULL AND {column} IN ({}))", values.join(", ")));
        }
        if has_null {
            parts.push(format!("({column} IS NULL)"));
        }
        let ends: BTreeSet<&[RangeDatum]> = ranges.values().copied().collect();
        let starts: Vec<&[RangeDatum]> = ranges.keys().copied().filter(|from| !ends.contains(from)).collect();
        for from in starts {
            let mut to = from;
            while let Some(next) = ranges.get(to) {
                to = next;
            }
            parts.push(self.range(key, from, to));
        }
        parts
    }

    fn range(&self, key: &PartitionKey, from: &[RangeDatum], to: &[RangeDatum]) -> String {
        let mut parts: Vec<String> =
            (0..key.columns.len()).map(|place| format!("{} IS NOT NULL", self.column(key, place))).collect();
        parts.extend(self.beyond(key, from, (">", ">="), (true, false)));
        parts.extend(self.beyond(key, to, ("<", "<"), (false, true)));
        joined(parts, "AND")
    }

    /// The key is on one side of a bound. `strict` and `last`: how the columns compare, and the last one; `at_smallest` and `at_largest`:
    /// whether it is at MINVALUE and at MAXVALUE. `None`: it always is.
    fn beyond(
        &self,
        key: &PartitionKey,
        bound: &[RangeDatum],
        (strict, last): (&str, &str),
        (at_smallest, at_largest): (bool, bool),
    ) -> Option<String> {
        let mut text: Option<String> = Some("false".to_string());
        for (place, datum) in bound.iter().enumerate().rev() {
            let constant = |is: bool| if is { None } else { Some("false".to_string()) };
            let value = match datum {
                RangeDatum::MinValue => {
                    text = constant(at_smallest);
                    continue;
                }
                RangeDatum::MaxValue => {
                    text = constant(at_largest);
                    continue;
                }
                RangeDatum::Value(value) => self.literal(value, key.columns[place]),
            };
            let column = self.column(key, place);
            if place + 1 == bound.len() {
                text = Some(format!("({column} {last} {value})"));
                continue;
            }
            text = Some(match text {
                // Whatever the columns behind it are.
                None => format!("({column} {strict}= {value})"),
                Some(rest) if rest == "false" => format!("({column} {strict} {value})"),
                Some(rest) => format!("({column} {strict} {value} OR ({column} = {value} AND {rest}))"),
            });
        }
        text
    }

    fn column(&self, key: &PartitionKey, place: usize) -> String {
        let column = key.columns.get(place).and_then(|ordinal| self.table.columns.get(usize::from(*ordinal)));
        column.map(|column| quoted(&column.name)).unwrap_or_default()
    }
}

fn joined(mut parts: Vec<String>, with: &str) -> String {
    match parts.len() {
        0 => "true".to_string(),
        1 => parts.remove(0),
        _ => format!("({})", parts.join(&format!(" {with} "))),
    }
}

/// A type as SQL names it whatever the search path.
fn type_text(types: &CompositeTypes, data_type: DataType) -> String {
    match data_type {
        DataType::Composite(_) | DataType::Enum(_) | DataType::Domain(_) => {
            quoted_catalog_name(&types.name_of(data_type))
        }
        DataType::Array(element) => format!("{}[]", type_text(types, element.data_type())),
        other => other.to_string(),
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
