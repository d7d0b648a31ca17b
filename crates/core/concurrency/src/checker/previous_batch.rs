use super::Fate;
use crate::conflict::reads_before_image_of;
use state::Effects;
use types::Catalog;

/// The edges that [`false_aborts`](super::false_aborts) takes as `fixed`, for a batch that was simulated without seeing
/// the one before it: between its transactions and the committed ones of that batch, and among the latter. Transaction
/// k of `previous` has the number `block.len() + k`; `placed` are those of them in the order in which they took
/// effect.
///
/// A transaction of `block` comes before whom it did not see; everybody else in `previous` who touched what it writes
/// or uses comes before it, because the commands of a batch take effect behind those of the batch before.
pub fn fixed_edges(
    block: &[(&Effects, Fate)],
    previous: &[(&Effects, Fate)],
    placed: &[u32],
    catalog: &Catalog,
) -> Vec<(usize, usize)> {
    let mut edges = Vec::new();
    let committed = |(_, (_, fate)): &(usize, &(&Effects, Fate))| *fate == Fate::Committed;
    for (number, (earlier, _)) in previous.iter().enumerate().filter(committed) {
        let earlier_node = block.len() + number;
        for (node, (later, _)) in block.iter().enumerate() {
            if reads_before_image_of(later, earlier, catalog) {
                edges.push((node, earlier_node));
            }
            if reads_before_image_of(earlier, later, catalog) || command_follows(earlier, later) {
                edges.push((earlier_node, node));
            }
        }
        for (other, (after, _)) in previous.iter().enumerate().filter(committed) {
            if other != number && reads_before_image_of(earlier, after, catalog) {
                edges.push((earlier_node, block.len() + other));
            }
        }
    }
    let committed = |number: &usize| previous[*number].1 == Fate::Committed;
    let placed: Vec<usize> = placed.iter().map(|number| *number as usize).filter(committed).collect();
    for (place, first) in placed.iter().copied().enumerate() {
        for second in placed[place + 1..].iter().copied() {
            if command_follows(previous[first].0, previous[second].0) {
                edges.push((block.len() + first, block.len() + second));
            }
        }
    }
    edges
}

/// Whether a command of `later` uses or writes what a command of `earlier` wrote, or writes what one used.
fn command_follows(earlier: &Effects, later: &Effects) -> bool {
    earlier.commands.iter().any(|first| {
        later.commands.iter().any(|second| {
            first.row == second.row
                && (first.writes.intersects(second.writes | second.uses)
                    || first.uses.intersects(second.writes))
        })
    })
}
