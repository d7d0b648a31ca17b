//! What a part that is not decided keeps others from.

use crate::conflict::reads_before_image_of;
use state::{Effects, Footprint, KeyRange, Region, RowId};
use types::{Catalog, ColumnSet};

/// Whether two simulations may not stand beside one another while one of them is undecided: one has read what the other writes, or
/// both write a row. Reads are shared; an interval that was read excludes what would come into it.
pub(super) fn meet(one: &Effects, other: &Effects, catalog: &Catalog) -> bool {
    meet_writes(one, other, catalog) || reads_before_image_of(other, one, catalog)
}

/// Whether the first meets what the other writes.
pub(super) fn meet_writes(one: &Effects, other: &Effects, catalog: &Catalog) -> bool {
    writes_a_row_of(one, other) || reads_before_image_of(one, other, catalog)
}

fn writes_a_row_of(one: &Effects, other: &Effects) -> bool {
    one.commands.iter().any(|mine| other.commands.iter().any(|theirs| mine.row == theirs.row))
}

/// Whether a simulation may meet what a part can come to that has this footprint, whatever it finds.
pub(super) fn may_meet(effects: &Effects, footprint: Option<&Footprint>) -> bool {
    let Some(Footprint { reads, writes }) = footprint else { return true };
    let touches = |regions: &[Region], row: &RowId, columns: ColumnSet| {
        let has = |region: &Region| {
            region.table == row.table && region.columns.intersects(columns) && region.range.contains(&row.key)
        };
        regions.iter().any(has)
    };
    let scanned = |table, range: &KeyRange, columns: ColumnSet| {
        let has = |region: &Region| {
            region.table == table && region.columns.intersects(columns) && region.range.meets(range)
        };
        writes.iter().any(has)
    };
    effects.commands.iter().any(|command| {
        touches(reads, &command.row, command.writes) || touches(writes, &command.row, ColumnSet::ALL)
    }) || effects.reads.iter().any(|read| touches(writes, &read.row, read.columns))
        || effects.scans.iter().any(|scan| {
            scanned(scan.table, &scan.range, scan.columns | scan.predicate_columns | ColumnSet::EXISTS)
        })
}
