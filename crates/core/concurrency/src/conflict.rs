//! What conflicts, for one pair of transactions: the definition that faster decisions are compared with.
//!
//! `T → u`: T read a before-image of what u wrote, so T must come before u (`protocols.md`, sections 1 and 2).

use crate::execution::{Step, step};
use smallvec::{SmallVec, smallvec};
use state::{Command, CommandKind, Effects, RowId, Scan};
use types::{Catalog, ColumnSet, Row, TableId, Value};

/// Ways in which several commands of one transaction on one row can turn out; beyond this, nothing is known.
const OUTCOMES_MAX: usize = 16;

/// One way in which a transaction may leave a row, as far as that is known before its turn comes.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct RowOutcome {
    /// Columns that it writes.
    pub(crate) writes: ColumnSet,
    /// The row may be there where it was not before.
    pub(crate) creates: bool,
    /// Values by column; `None`: may be anything.
    pub(crate) known: Vec<Option<Value>>,
}

impl RowOutcome {
    /// Whether a row that is not in the scan's result may be in it after this.
    pub(crate) fn may_enter(&self, scan: &Scan) -> bool {
        match &scan.predicate {
            None => self.creates,
            Some(predicate) => {
                (self.creates || self.writes.intersects(scan.predicate_columns))
                    && predicate.may_match(&self.known)
            }
        }
    }
}

/// The row between two commands of one transaction, seen from before its turn.
#[derive(Clone)]
enum Partial {
    /// No command has matched.
    Untouched,
    /// Some update has: columns written, and their values where they are known.
    Updated(ColumnSet, SmallVec<[(u16, Value); 4]>),
    /// The transaction has made the row itself: everything is known.
    Created(Row),
    /// The transaction has removed it.
    Gone,
}

/// The ways in which the commands of one transaction on one row may turn out, without those that leave nothing a scan
/// could find. A command whose WHERE may or may not hold at its place counts both ways, because a row may match with
/// one of two updates alone. `width`: columns of the table.
pub(crate) fn row_outcomes<'a>(
    commands: impl Iterator<Item = &'a Command> + Clone,
    width: usize,
) -> SmallVec<[RowOutcome; 1]> {
    let mut partials: SmallVec<[Partial; 2]> = smallvec![Partial::Untouched];
    for command in commands.clone() {
        partials = partials.into_iter().flat_map(|partial| after(partial, command)).collect();
        if partials.len() > OUTCOMES_MAX {
            let writes = commands.fold(ColumnSet::EMPTY, |writes, command| writes | command.writes);
            return smallvec![RowOutcome { writes, creates: true, known: vec![None; width] }];
        }
    }
    partials
        .into_iter()
        .filter_map(|partial| match partial {
            Partial::Untouched | Partial::Gone => None,
            Partial::Created(row) => Some(RowOutcome {
                writes: ColumnSet::ALL,
                creates: true,
                known: row.iter().map(|value| Some(value.clone())).collect(),
            }),
            Partial::Updated(writes, values) => {
                let mut known = vec![None; width];
                for (column, value) in values {
                    let column = usize::from(column);
                    known.resize(known.len().max(column + 1), None);
                    known[column] = Some(value);
                }
                Some(RowOutcome { writes, creates: false, known })
            }
        })
        .collect()
}

/// What one command may make of a row.
fn after(partial: Partial, command: &Command) -> SmallVec<[Partial; 2]> {
    if let Partial::Created(row) = &partial {
        // Nobody else can have touched it: this is what will happen. An error aborts the whole transaction.
        return match (step(command, Some(row)), &command.kind) {
            (_, CommandKind::Insert(_)) | (Step::Again | Step::Error(_), _) => smallvec![],
            (Step::Unchanged, _) => smallvec![partial],
            (Step::Changed(Some(row)), _) => smallvec![Partial::Created(row)],
            (Step::Changed(None), _) => smallvec![Partial::Gone],
        };
    }
    let certain = command.guard == Some(true);
    match (&command.kind, partial) {
        (CommandKind::Insert(row), _) => smallvec![Partial::Created(row.clone())],
        (_, Partial::Gone) => smallvec![Partial::Gone],
        (CommandKind::Delete, partial) if !certain => smallvec![partial, Partial::Gone],
        (CommandKind::Delete, _) => smallvec![Partial::Gone],
        (CommandKind::Update { known }, partial) => {
            let (writes, mut values) = match &partial {
                Partial::Updated(writes, values) => (*writes, values.clone()),
                _ => (ColumnSet::EMPTY, SmallVec::new()),
            };
            values.retain(|(column, _)| !command.writes.intersects(ColumnSet::column(usize::from(*column))));
            values.extend(known.iter().cloned());
            let updated = Partial::Updated(writes | command.writes, values);
            if certain { smallvec![updated] } else { smallvec![partial, updated] }
        }
    }
}

/// Columns of `table`; 0 where the catalog does not know it.
pub(crate) fn width(catalog: &Catalog, table: TableId) -> usize {
    catalog.table(table).map_or(0, |table| table.columns.len())
}

/// Whether a scan read the before-image of what the commands of another transaction on one row write.
fn scan_reads(scan: &Scan, row: &RowId, other: &Effects, catalog: &Catalog) -> bool {
    if row.table != scan.table || !scan.range.contains(&row.key) {
        return false;
    }
    let commands = other.commands.iter().filter(|command| command.row == *row);
    if scan.result.binary_search(&row.key).is_ok() {
        return commands.clone().any(|command| command.writes.intersects(scan.columns));
    }
    row_outcomes(commands, width(catalog, row.table)).iter().any(|outcome| outcome.may_enter(scan))
}

/// `transaction → other`: whether the first read a before-image of what the second wrote. Both ran on one snapshot
/// with this catalog.
pub(crate) fn reads_before_image_of(transaction: &Effects, other: &Effects, catalog: &Catalog) -> bool {
    other.commands.iter().any(|command| {
        transaction
            .reads
            .iter()
            .any(|read| read.row == command.row && read.columns.intersects(command.writes))
            || transaction.scans.iter().any(|scan| scan_reads(scan, &command.row, other, catalog))
    })
}
