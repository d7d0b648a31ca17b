//! What a part that is not decided keeps others from.

use crate::conflict::reads_before_image_of;
use state::Effects;
use types::Catalog;

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
