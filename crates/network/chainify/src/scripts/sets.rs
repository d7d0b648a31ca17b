//! The scripts of a block as sets: statements of one shape that touch rows of their own run as one statement.
//!
//! ```text
//!  scripts ─▶ layers: a statement stands behind all earlier ones that touch its row ─▶ in each layer one statement per shape
//! ```
//!
//! This is the block's order, as far as it can be told apart: every statement touches one row that it names. One that fails would
//! have to be taken back alone: then nothing of it stays, and the scripts run one by one.

use crate::DatabaseError;
use crate::render::{self, Shape};
use crate::session::{SetScript, SetStatement, Sets};
use crate::shared_table::SharedTable;
use portable::{Access, Action, Script};
use std::collections::{BTreeMap, HashMap};
use types::{Key, TableId};

/// So many statements must run as one, on average, to be worth it.
const TOGETHER_MIN: usize = 2;
/// Rows of one statement.
const ROWS_MAX: usize = 2_000;
/// Bytes of all statements, which are sent together: MariaDB ends connections that send more than 16 MB if nobody has said more.
const BYTES_MAX: usize = 4 * 1024 * 1024;

/// The scripts as sets; nothing where some cannot be, or where it does not pay.
pub(super) fn sets(
    tables: &[SharedTable],
    scripts: &[&(u32, Script)],
) -> Result<Option<Sets>, DatabaseError> {
    let Some(dialect) = tables.first().map(|table| table.dialect) else { return Ok(None) };
    let mut shapes: HashMap<Shape, usize> = HashMap::new();
    let mut groups: BTreeMap<(usize, usize), Vec<(usize, String)>> = BTreeMap::new();
    let mut layers: HashMap<(TableId, &Key), usize> = HashMap::new();
    let mut sets =
        Sets { statements: Vec::new(), scripts: Vec::with_capacity(scripts.len()), met: Vec::new() };
    for (place, script) in scripts {
        let first = sets.met.len();
        for statement in &script.statements {
            let Access::Keys(keys) = &statement.access else { return Ok(None) };
            let table = tables.iter().find(|table| table.table.id == statement.table.id);
            let shape = table.map(|table| render::shape(table, statement)).transpose()?.flatten();
            let Some((shape, own)) =
                shape.filter(|_| keys.len() == 1 || matches!(statement.action, Action::Insert(_)))
            else {
                return Ok(None);
            };
            let rows = keys.iter().map(|key| (statement.table.id, key));
            let layer = rows.clone().filter_map(|row| layers.get(&row)).max().map_or(0, |last| last + 1);
            layers.extend(rows.map(|row| (row, layer)));
            let next = shapes.len();
            let shape = *shapes.entry(shape).or_insert(next);
            groups.entry((layer, shape)).or_default().push((sets.met.len(), own));
            sets.met.push(match &statement.action {
                Action::Insert(rows) => rows.len() as u64,
                _ => 1,
            });
        }
        sets.scripts.push(SetScript { place: *place, statements: first..sets.met.len() });
    }
    if groups.len() * TOGETHER_MIN > sets.met.len() {
        return Ok(None);
    }
    let shapes: BTreeMap<usize, Shape> = shapes.into_iter().map(|(shape, number)| (number, shape)).collect();
    for ((_, shape), own) in &groups {
        let shape = &shapes[shape];
        for some in own.chunks(ROWS_MAX) {
            sets.statements.push(SetStatement {
                sql: render::together(dialect, shape, some),
                numbers: some.iter().map(|(number, _)| *number).collect(),
                updates: matches!(shape, Shape::Update { .. }),
            });
        }
    }
    let bytes: usize = sets.statements.iter().map(|statement| statement.sql.len()).sum();
    Ok((bytes <= BYTES_MAX).then_some(sets))
}
