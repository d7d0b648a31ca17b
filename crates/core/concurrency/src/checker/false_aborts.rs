use crate::conflict::reads_before_image_of;
use state::Effects;
use types::Catalog;

/// How a transaction of a block ended, as the count of false aborts sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It committed.
    Committed,
    /// It was given up, or run again, because of a conflict.
    Conflict,
    /// The contract said no: it has no part in the count.
    Business,
}

/// The transactions of one block that were given up without need: with the committed ones alone, each would leave
/// the graph of rw edges without a cycle (`protocols.md`, section 4).
///
/// `block`: effects on one snapshot with this catalog, and how they ended, in order. `fixed`: edges to and from
/// committed transactions of the block before, which count from `block.len()` upwards.
pub fn false_aborts(block: &[(&Effects, Fate)], catalog: &Catalog, fixed: &[(usize, usize)]) -> Vec<u32> {
    let nodes = fixed.iter().flat_map(|(from, to)| [*from, *to]).chain([block.len().saturating_sub(1)]);
    let nodes = nodes.max().unwrap_or(0) + 1;
    let mut edges: Vec<Vec<usize>> = vec![Vec::new(); nodes];
    for (from, (reader, _)) in block.iter().enumerate() {
        for (to, (writer, _)) in block.iter().enumerate() {
            if from != to && reads_before_image_of(reader, writer, catalog) {
                edges[from].push(to);
            }
        }
    }
    for (from, to) in fixed {
        edges[*from].push(*to);
    }
    let committed: Vec<bool> =
        (0..nodes).map(|node| block.get(node).is_none_or(|(_, fate)| *fate == Fate::Committed)).collect();
    let aborted = (0..block.len()).filter(|node| block[*node].1 == Fate::Conflict);
    aborted.filter(|node| !closes_a_cycle(*node, &edges, &committed)).map(|node| node as u32).collect()
}

/// Whether a path leads from the node through committed ones back to it.
fn closes_a_cycle(node: usize, edges: &[Vec<usize>], committed: &[bool]) -> bool {
    let mut visited = vec![false; edges.len()];
    let mut waiting = vec![node];
    while let Some(at) = waiting.pop() {
        for to in &edges[at] {
            if *to == node {
                return true;
            }
            if committed[*to] && !visited[*to] {
                visited[*to] = true;
                waiting.push(*to);
            }
        }
    }
    false
}
