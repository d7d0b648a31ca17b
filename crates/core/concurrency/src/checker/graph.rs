//! The dependency graph over all batches.

use super::versions::{Node, Version, Versions};
use state::Scan;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::ops::Bound;
use types::{ColumnSet, Row, Value};

/// By node, the nodes that must come after it.
pub(super) type Edges = Vec<BTreeSet<usize>>;

/// Something that happened to a row. Versions of node n stand at moment 2n + 1, what was read from the state after
/// the nodes below s at moment 2s.
struct Event {
    moment: usize,
    node: usize,
    uses: ColumnSet,
    writes: ColumnSet,
}

/// ww, wr and rw edges.
pub(super) fn edges(nodes: &[Node<'_>], versions: &Versions) -> Edges {
    let mut edges: Edges = vec![BTreeSet::new(); nodes.len()];
    let mut events: BTreeMap<_, Vec<Event>> = BTreeMap::new();
    for (row, versions) in versions {
        let of_row = events.entry(row.clone()).or_default();
        of_row.extend(versions.iter().map(|Version { node, uses, writes, .. }| Event {
            moment: 2 * node + 1,
            node: *node,
            uses: *uses,
            writes: *writes,
        }));
    }
    for (number, node) in nodes.iter().enumerate() {
        for read in &node.execution.effects.reads {
            if let Some(of_row) = events.get_mut(&read.row) {
                let (moment, writes) = (2 * node.seen, ColumnSet::EMPTY);
                of_row.push(Event { moment, node: number, uses: read.columns, writes });
            }
        }
        for scan in &node.execution.effects.scans {
            add_scan(number, node.seen, scan, versions, &mut edges);
        }
    }
    for of_row in events.values_mut() {
        of_row.sort_by_key(|event| event.moment);
        add_row(of_row, &mut edges);
    }
    for (node, to) in edges.iter_mut().enumerate() {
        to.remove(&node);
    }
    edges
}

/// Goes through what happened to a row, column by column.
fn add_row(events: &[Event], edges: &mut Edges) {
    #[derive(Default)]
    struct Column {
        writer: Option<usize>,
        readers: Vec<usize>,
    }
    let mut columns: Vec<Column> = Vec::new();
    columns.resize_with(ColumnSet::WIDTH, Column::default);
    for event in events {
        for bit in (event.uses | event.writes).bits() {
            if let Some(writer) = columns[bit].writer {
                edges[writer].insert(event.node);
            }
        }
        for bit in event.writes.bits() {
            for reader in columns[bit].readers.drain(..) {
                edges[reader].insert(event.node);
            }
            columns[bit].writer = Some(event.node);
        }
        for bit in event.uses.without(event.writes).bits() {
            columns[bit].readers.push(event.node);
        }
    }
}

/// Edges between a scan and every version that changed what it found or could find. Rows that it found are read; for
/// others the real images count, so that this does not repeat the rules by which protocols decide.
fn add_scan(number: usize, seen: usize, scan: &Scan, versions: &Versions, edges: &mut Edges) {
    let from = state::RowId { table: scan.table, key: types::Key::default() };
    for (row, versions) in versions.range((Bound::Included(from), Bound::Unbounded)) {
        if row.table != scan.table {
            break;
        }
        if !scan.range.contains(&row.key) {
            continue;
        }
        let found = scan.result.binary_search(&row.key).is_ok();
        let matters =
            |version: &&Version| changes(scan, version) || (found && version.writes.intersects(scan.columns));
        for version in versions.iter().filter(matters) {
            if version.node < seen {
                edges[version.node].insert(number);
            } else {
                edges[number].insert(version.node);
            }
        }
    }
}

/// Adds edges that let the writers of rows that a scan looked at stand in the protocol's order. False where there are
/// none to add.
pub(super) fn keep_images_of_scanned_rows(
    nodes: &[Node<'_>],
    versions: &Versions,
    edges: &mut Edges,
) -> bool {
    let mut added = false;
    for scan in nodes.iter().flat_map(|node| &node.execution.effects.scans) {
        let columns = scan.columns | scan.predicate_columns;
        let rows =
            versions.iter().filter(|(row, _)| row.table == scan.table && scan.range.contains(&row.key));
        for (_, versions) in rows {
            let writers = versions.iter().filter(|version| version.writes.intersects(columns));
            let writers: Vec<usize> = writers.map(|version| version.node).collect();
            for pair in writers.windows(2) {
                added |= edges[pair[0]].insert(pair[1]);
            }
        }
    }
    added
}

/// Whether the version changes whether the row is in the result, or what the scan sees of it.
fn changes(scan: &Scan, version: &Version) -> bool {
    let found =
        |row: &Option<Row>| row.as_ref().filter(|row| matches(scan, row)).map(|row| seen(row, scan.columns));
    found(&version.before) != found(&version.after)
}

fn matches(scan: &Scan, row: &Row) -> bool {
    let known: Vec<Option<Value>> = row.iter().cloned().map(Some).collect();
    scan.predicate.as_ref().is_none_or(|predicate| predicate.may_match(&known))
}

/// The values in these columns.
pub(super) fn seen(row: &Row, columns: ColumnSet) -> Vec<(usize, Value)> {
    let ordinals = 0..row.len();
    let in_columns = ordinals.filter(|ordinal| columns.intersects(ColumnSet::column(*ordinal)));
    in_columns.map(|ordinal| (ordinal, row[ordinal].clone())).collect()
}

/// The nodes so that every edge points forward, otherwise as near to the protocol's order as possible.
///
/// # Errors
/// A cycle.
pub(super) fn sort(edges: &Edges) -> Result<Vec<usize>, Vec<usize>> {
    let mut waits_for = vec![0; edges.len()];
    for to in edges.iter().flatten() {
        waits_for[*to] += 1;
    }
    let mut ready: BinaryHeap<Reverse<usize>> =
        (0..edges.len()).filter(|node| waits_for[*node] == 0).map(Reverse).collect();
    let mut order = Vec::with_capacity(edges.len());
    while let Some(Reverse(node)) = ready.pop() {
        order.push(node);
        for to in &edges[node] {
            waits_for[*to] -= 1;
            if waits_for[*to] == 0 {
                ready.push(Reverse(*to));
            }
        }
    }
    if order.len() == edges.len() { Ok(order) } else { Err(cycle(edges, &waits_for)) }
}

/// A cycle among the nodes that wait for others: each of them has a predecessor that waits as well.
fn cycle(edges: &Edges, waits_for: &[usize]) -> Vec<usize> {
    let waiting = |node: &usize| waits_for[*node] > 0;
    let mut before = vec![usize::MAX; edges.len()];
    for from in (0..edges.len()).filter(waiting) {
        for to in edges[from].iter().filter(|to| waiting(to)) {
            before[*to] = from;
        }
    }
    let Some(mut node) = (0..edges.len()).find(waiting) else { return Vec::new() };
    for _ in 0..edges.len() {
        node = before[node];
    }
    let mut cycle = vec![node];
    let mut at = before[node];
    while at != node {
        cycle.push(at);
        at = before[at];
    }
    cycle.reverse();
    let first = (0..cycle.len()).min_by_key(|position| cycle[*position]).unwrap_or(0);
    cycle.rotate_left(first);
    cycle.push(cycle[0]);
    cycle
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cycle_is_reported_with_its_nodes_in_order() {
        let edges: Edges =
            [vec![1], vec![2, 4], vec![3], vec![1], vec![]].map(|to| to.into_iter().collect()).into();
        assert_eq!(sort(&edges), Err(vec![1, 2, 3, 1]));
    }

    #[test]
    fn without_edges_the_order_stays() {
        assert_eq!(sort(&vec![BTreeSet::new(); 3]), Ok(vec![0, 1, 2]));
        let backward: Edges = [vec![], vec![], vec![0]].map(|to| to.into_iter().collect()).into();
        assert_eq!(sort(&backward), Ok(vec![1, 2, 0]));
    }
}
