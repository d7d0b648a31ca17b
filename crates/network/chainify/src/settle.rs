//! Makes a copy fit: the tables are there and have the ledger's shape, triggers guard them, and their rows are those of one height.

use crate::bookkeeping::{self, Position, StrangeRow};
use crate::compare::{RowAt, StateRows, compare};
use crate::dialect::Dialect;
use crate::error::ErrorKind;
use crate::session::Session;
use crate::shared_table::SharedTable;
use crate::write::{Writer, Written};
use crate::{DatabaseError, guard, plan};
use state::Snapshot;
use std::ops::ControlFlow;
use std::sync::Arc;
use types::Table;

/// A state that the copy is to be made of.
pub(crate) struct Wanted<'a> {
    pub(crate) agreed: &'a dyn Snapshot,
    /// The tables, as they are in that state.
    pub(crate) tables: Vec<Arc<Table>>,
    pub(crate) position: Position,
}

/// How what is there already is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Existing {
    /// It was never a copy: rows that differ are listed, and nothing is changed.
    Compared,
    /// It was never a copy, and the organisation has said that the ledger's rows count.
    Replaced,
    /// It is a copy of an earlier height, or of another shape: it is brought up by comparing all rows.
    BroughtUp,
    /// It is a copy, and what is missing is known row by row.
    Known,
}

/// The tables of a copy that fits.
pub(crate) struct Settled {
    pub(crate) tables: Vec<SharedTable>,
    pub(crate) guards: guard::Fingerprint,
    pub(crate) written: Written,
}

/// Makes it fit.
pub(crate) fn settle(
    session: &mut dyn Session,
    dialect: Dialect,
    wanted: &Wanted<'_>,
    existing: Existing,
) -> Result<Settled, DatabaseError> {
    let mut tables = Vec::new();
    for table in &wanted.tables {
        tables.push(SharedTable::new(table.clone(), dialect)?);
    }
    let mut new = Vec::new();
    for table in &tables {
        let problems = plan::check(session, table)?;
        match problems {
            None => {
                create(session, table)?;
                new.push(table.clone());
            }
            Some(problems) if problems.is_empty() => {}
            Some(problems) => {
                let problems = problems.join("; ");
                let message = format!("table {} in the database does not fit: {problems}", table.table.name);
                return Err(DatabaseError::new(ErrorKind::Unfit, message));
            }
        }
    }
    let mut written = Written::default();
    if existing != Existing::Known || !new.is_empty() {
        written = rows(session, dialect, wanted, &tables, existing)?;
    }
    for table in &tables {
        guard::create(session, table)
            .map_err(|error| error.during(format!("triggers of {}", table.table.name)))?;
    }
    let guards = guard::fingerprint(session, dialect, &tables)?;
    Ok(Settled { tables, guards, written })
}

fn create(session: &mut dyn Session, table: &SharedTable) -> Result<(), DatabaseError> {
    if table.dialect == Dialect::Postgres {
        session.execute(&format!("CREATE SCHEMA IF NOT EXISTS {}", table.dialect.quoted(&table.parts.0)))?;
    }
    session.execute(&table.create()).map_err(|error| error.during(format!("table {}", table.table.name)))?;
    Ok(())
}

/// Makes the rows those of the state, in one transaction with the height.
fn rows(
    session: &mut dyn Session,
    dialect: Dialect,
    wanted: &Wanted<'_>,
    tables: &[SharedTable],
    existing: Existing,
) -> Result<Written, DatabaseError> {
    session.execute("BEGIN")?;
    let mut work = || {
        let (mut written, mut differing) = (Written::default(), 0);
        for table in tables {
            let is_empty = session.query(&format!("SELECT 1 FROM {} LIMIT 1", table.name))?.is_empty();
            if is_empty {
                let columns = table.columns.clone();
                let mut rows = StateRows::new(table, wanted.agreed);
                let loaded = session.load(&table.name, &columns, &mut rows);
                if let Some(failure) = rows.failure {
                    return Err(failure);
                }
                written.rows += loaded?;
                continue;
            }
            compare(session, table, wanted.agreed, &mut |session, rows| {
                differing += rows.len() as u64;
                let mut writer = Writer { session, dialect, tables, guards: &guard::Fingerprint::new() };
                if existing == Existing::Compared {
                    return listed(&mut writer, table, &rows, &mut written);
                }
                let mut found = Written::default();
                writer.put_right(table, &rows, &mut found)?;
                written.rows += found.rows;
                if existing == Existing::Replaced {
                    written.strange.extend(found.strange);
                }
                Ok(ControlFlow::Continue(()))
            })?;
        }
        if existing == Existing::Compared && differing > 0 {
            return Ok(written);
        }
        bookkeeping::keep_strange(session, dialect, wanted.position.height, &written.strange)?;
        bookkeeping::set_position(session, dialect, &wanted.position)?;
        Ok(written)
    };
    match work() {
        Ok(written) if existing == Existing::Compared && !written.strange.is_empty() => {
            session.execute("ROLLBACK")?;
            session.execute(&format!("DELETE FROM {}", bookkeeping::strange_table(dialect)))?;
            bookkeeping::keep_strange(session, dialect, wanted.position.height, &written.strange)?;
            Err(differs(dialect, &written.strange))
        }
        Ok(written) => {
            session.execute("COMMIT")?;
            Ok(written)
        }
        Err(error) => {
            // Where the connection is gone the database does it by itself.
            let _ = session.execute("ROLLBACK");
            Err(error)
        }
    }
}

/// Lists rows that the database has otherwise, and changes nothing.
fn listed(
    writer: &mut Writer<'_>,
    table: &SharedTable,
    rows: &[RowAt],
    written: &mut Written,
) -> Result<ControlFlow<()>, DatabaseError> {
    let mut found = Written::default();
    writer.look_at(table, rows, &mut found)?;
    written.strange.extend(found.strange);
    Ok(match written.strange.len() < bookkeeping::STRANGE_ROWS_MAX {
        true => ControlFlow::Continue(()),
        false => ControlFlow::Break(()),
    })
}

fn differs(dialect: Dialect, rows: &[StrangeRow]) -> DatabaseError {
    let count = match rows.len() {
        count if count >= bookkeeping::STRANGE_ROWS_MAX => format!("{count} rows or more differ"),
        1 => "1 row differs".to_string(),
        count => format!("{count} rows differ"),
    };
    let first = rows.first().map(StrangeRow::shown).unwrap_or_default();
    let list = bookkeeping::strange_table(dialect);
    DatabaseError::new(
        ErrorKind::Unfit,
        format!(
            "{count} from the ledger's, the first: {first}; all are listed in {list}. Nothing was changed: change the ledger or the \
             database so that both agree, or say that the ledger's rows count: entente chainify … --take-ledger-rows"
        ),
    )
}
