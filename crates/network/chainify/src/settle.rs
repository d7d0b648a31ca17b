//! Makes a copy fit: the tables are there and have the ledger's shape, triggers guard them, and their rows are those of one height.

use crate::bookkeeping::{self, Position, StrangeRow};
use crate::compare::{StateRows, compare};
use crate::dialect::Dialect;
use crate::error::ErrorKind;
use crate::session::Session;
use crate::shared_table::SharedTable;
use crate::write::{Writer, Written, begin};
use crate::{DatabaseError, guard, plan, recorder, render};
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
    /// Scripts are executed there: the tables have the ledger's CHECK constraints, and what scripts do is recorded.
    pub(crate) executes: bool,
    /// Rows of copies that are found to be others are kept aside, too.
    pub(crate) keeps_strange: bool,
}

/// How rows are taken that the database has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Existing {
    /// All of them are those of an earlier height: they are brought up by comparing all rows.
    BroughtUp,
    /// What is missing in them is known row by row.
    Known,
}

/// Whose rows count in a table that was never a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Differing {
    /// Rows that differ are listed, and nothing is changed.
    Listed,
    /// The organisation has said that the ledger's do.
    Replaced,
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
    differing: Differing,
) -> Result<Settled, DatabaseError> {
    let tables = shared_tables(&wanted.tables, dialect)?;
    let executes = wanted.executes;
    let copies = bookkeeping::tables(session, dialect)?;
    let mut is_whole = true;
    for table in &tables {
        match plan::check(session, table)? {
            None => create(session, table, executes)?,
            Some(problems) if problems.is_empty() => {
                is_whole &= copies.contains_key(&table.table.name);
                continue;
            }
            Some(problems) => {
                let problems = problems.join("; ");
                let message = format!("table {} in the database does not fit: {problems}", table.table.name);
                return Err(DatabaseError::new(ErrorKind::Unfit, message));
            }
        }
        is_whole = false;
    }
    let mut written = Written::default();
    if existing == Existing::BroughtUp || !is_whole {
        let rows = Rows { dialect, wanted, tables: &tables, copies: &copies, differing };
        written = rows.write(session)?;
    }
    let guards = guarded(session, dialect, &tables, &copies, executes)?;
    Ok(Settled { tables, guards, written })
}

/// The tables as both have them; no two may be one in the database.
fn shared_tables(tables: &[Arc<Table>], dialect: Dialect) -> Result<Vec<SharedTable>, DatabaseError> {
    let mut shared: Vec<SharedTable> = Vec::new();
    for table in tables {
        let table = SharedTable::new(table.clone(), dialect)?;
        if let Some(other) = shared.iter().find(|other| other.name == table.name) {
            let (one, other, name) = (&table.table.name, &other.table.name, &table.name);
            let message =
                format!("tables {other} and {one} would both be {name} in MariaDB; keep one of them");
            return Err(DatabaseError::new(ErrorKind::Unfit, message));
        }
        shared.push(table);
    }
    Ok(shared)
}

/// Makes the triggers that are not as they were made: taking a table's lock delays its readers.
fn guarded(
    session: &mut dyn Session,
    dialect: Dialect,
    tables: &[SharedTable],
    copies: &guard::Fingerprint,
    executes: bool,
) -> Result<guard::Fingerprint, DatabaseError> {
    let found = guard::fingerprint(session, dialect, tables)?;
    let is_right = |name: &String| {
        let made = copies.get(name).filter(|made| !made.is_empty());
        made.is_some() && made == found.get(name)
    };
    for table in tables.iter().filter(|table| !is_right(&table.table.name)) {
        let made = guard::create(session, table);
        let made = made.and_then(|()| if executes { recorder::create(session, table) } else { Ok(()) });
        made.map_err(|error| error.during(format!("triggers of {}", table.table.name)))?;
    }
    let guards = guard::fingerprint(session, dialect, tables)?;
    for table in tables {
        let name = &table.table.name;
        let guard = guards.get(name).map_or("", String::as_str);
        if copies.get(name).map(String::as_str) != Some(guard) {
            bookkeeping::set_table(session, dialect, name, guard)?;
        }
    }
    Ok(guards)
}

fn create(session: &mut dyn Session, table: &SharedTable, executes: bool) -> Result<(), DatabaseError> {
    if table.dialect == Dialect::Postgres {
        session.execute(&format!("CREATE SCHEMA IF NOT EXISTS {}", table.dialect.quoted(&table.parts.0)))?;
    }
    let checks = if executes { render::checks(table)? } else { Vec::new() };
    session
        .execute(&table.create(&checks))
        .map_err(|error| error.during(format!("table {}", table.table.name)))?;
    Ok(())
}

/// Makes the rows of all tables those of the state.
struct Rows<'a> {
    dialect: Dialect,
    wanted: &'a Wanted<'a>,
    tables: &'a [SharedTable],
    /// Those that are copies already.
    copies: &'a guard::Fingerprint,
    differing: Differing,
}

impl Rows<'_> {
    /// In one transaction with the height.
    fn write(&self, session: &mut dyn Session) -> Result<Written, DatabaseError> {
        begin(session, self.dialect)?;
        let (mut written, mut refused) = (Written::default(), Vec::new());
        match self.all(session, &mut written, &mut refused) {
            Ok(()) if refused.is_empty() => {
                session.execute("COMMIT")?;
                Ok(written)
            }
            Ok(()) => {
                session.execute("ROLLBACK")?;
                session.execute(&format!("DELETE FROM {}", bookkeeping::strange_table(self.dialect)))?;
                bookkeeping::keep_strange(session, self.dialect, self.wanted.position.height, &refused)?;
                Err(differs(self.dialect, &refused))
            }
            Err(error) => {
                // Where the connection is gone the database does it by itself.
                let _ = session.execute("ROLLBACK");
                Err(error)
            }
        }
    }

    fn all(
        &self,
        session: &mut dyn Session,
        written: &mut Written,
        refused: &mut Vec<StrangeRow>,
    ) -> Result<(), DatabaseError> {
        let Rows { dialect, wanted, tables, copies, .. } = *self;
        if dialect == Dialect::Postgres {
            // However long the first filling takes.
            session.execute("SET LOCAL statement_timeout = 0")?;
        }
        for table in tables {
            let is_empty = session.query(&format!("SELECT 1 FROM {} LIMIT 1", table.name))?.is_empty();
            match is_empty {
                true => self.fill(session, table, written)?,
                false => self.compare(session, table, written, refused)?,
            }
            let name = &table.table.name;
            bookkeeping::set_table(session, dialect, name, copies.get(name).map_or("", String::as_str))?;
        }
        bookkeeping::keep_strange(session, dialect, wanted.position.height, &written.strange)?;
        bookkeeping::set_position(session, dialect, &wanted.position)
    }

    fn fill(
        &self,
        session: &mut dyn Session,
        table: &SharedTable,
        written: &mut Written,
    ) -> Result<(), DatabaseError> {
        let mut rows = StateRows::new(table, self.wanted.agreed);
        let loaded = session.load(&table.name, &table.columns, &mut rows);
        if let Some(failure) = rows.failure {
            return Err(failure);
        }
        written.rows += loaded?;
        Ok(())
    }

    fn compare(
        &self,
        session: &mut dyn Session,
        table: &SharedTable,
        written: &mut Written,
        refused: &mut Vec<StrangeRow>,
    ) -> Result<(), DatabaseError> {
        let Rows { dialect, wanted, tables, copies, differing } = *self;
        let is_copy = copies.contains_key(&table.table.name);
        let no_guards = guard::Fingerprint::new();
        compare(session, table, wanted.agreed, &|| false, &mut |session, rows| {
            let mut writer = Writer { session, dialect, tables, guards: &no_guards };
            let mut found = Written::default();
            if !is_copy && differing == Differing::Listed {
                writer.look_at(table, &rows, &mut found)?;
                refused.extend(found.strange);
                return Ok(match refused.len() < bookkeeping::STRANGE_ROWS_MAX {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                });
            }
            writer.put_right(table, &rows, &mut found)?;
            written.rows += found.rows;
            if !is_copy || wanted.keeps_strange {
                written.strange.extend(found.strange);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(())
    }
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
