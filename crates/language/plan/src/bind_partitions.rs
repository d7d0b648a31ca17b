//! Binding what the partitions of a table have.

use crate::expression::Expression;
use crate::partition_conditions::PartitionConditions;
use crate::partitions::{CHECK_NAME, PartitionedLevel, PartitionsPlan};
use crate::table::CheckPlan;
use types::{CompositeTypes, PartitionKey, SqlError, Table};

/// Binds a condition over the table's row.
pub(crate) type BindCondition<'a> = dyn Fn(&str) -> Result<Expression, SqlError> + 'a;

/// What a table is partitioned by, and the check that some partition takes a row, unless all rows are taken. `None`: it is not partitioned.
///
/// # Errors
/// What is wrong with a bound.
pub(crate) fn bind_partitions(
    table: &Table,
    types: &CompositeTypes,
    bind: &BindCondition<'_>,
) -> Result<Option<(PartitionsPlan, Option<CheckPlan>)>, SqlError> {
    let (Some(partitioning), Some(conditions)) =
        (table.partitioning.as_deref(), PartitionConditions::new(table, types))
    else {
        return Ok(None);
    };
    let level = |relation: &str, key: &PartitionKey, condition| {
        let names = key.columns.iter().filter_map(|ordinal| table.columns.get(usize::from(*ordinal)));
        let listed = names.map(|column| column.name.as_str()).collect::<Vec<_>>().join(", ");
        PartitionedLevel { relation: relation.to_string(), columns: key.columns.clone(), listed, condition }
    };
    let mut levels = vec![level(&table.name, &partitioning.key, None)];
    let mut next = 0;
    while let Some(outer) = levels.get(next) {
        let parent = (next > 0).then(|| outer.relation.clone());
        for (name, partition) in partitioning.partitions_of(parent.as_deref()) {
            if let Some(key) = &partition.key {
                levels.push(level(name, key, Some(bind(&conditions.of(name))?)));
            }
        }
        next += 1;
    }
    let check = conditions.accepted().map(|sql| bind(&sql)).transpose()?;
    let check = check.map(|condition| CheckPlan { name: CHECK_NAME.to_string(), condition, valid: true });
    Ok(Some((PartitionsPlan { levels }, check)))
}
