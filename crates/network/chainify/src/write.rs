//! Writes what blocks did, in one transaction with the height: each row once, and only where it is as it was.

use crate::bookkeeping::{self, Position, StrangeRow};
use crate::compare::RowAt;
use crate::dialect::Dialect;
use crate::error::ErrorKind;
use crate::session::{Session, TextRow};
use crate::shared_table::SharedTable;
use crate::{DatabaseError, guard};
use ledger::BlockNetChanges;
use std::collections::BTreeMap;
use types::{Key, Row, TableId};

/// What a row was before several blocks and is behind them.
pub(crate) struct Change {
    pub(crate) old: Option<Row>,
    pub(crate) new: Option<Row>,
}

/// One change per row and table.
pub(crate) type Group = BTreeMap<TableId, BTreeMap<Key, Change>>;

/// Several blocks' changes as one: what was before the first and is behind the last.
pub(crate) fn group(blocks: Vec<BlockNetChanges>) -> Group {
    let mut group = Group::new();
    for change in blocks.into_iter().flat_map(|block| block.changes) {
        let rows = group.entry(change.table).or_default();
        match rows.entry(change.key) {
            std::collections::btree_map::Entry::Vacant(vacant) => {
                vacant.insert(Change { old: change.old, new: change.new });
            }
            std::collections::btree_map::Entry::Occupied(mut known) => known.get_mut().new = change.new,
        }
    }
    for rows in group.values_mut() {
        rows.retain(|_, change| change.old != change.new);
    }
    group.retain(|_, rows| !rows.is_empty());
    group
}

/// What writing came to.
#[derive(Default, Debug)]
pub(crate) struct Written {
    pub(crate) rows: u64,
    /// Rows that were not what they had to be, as they were found; they are what they must be now.
    pub(crate) strange: Vec<StrangeRow>,
    /// Triggers that are not what they were.
    pub(crate) guards_changed: bool,
}

/// The connection that alone writes.
pub(crate) struct Writer<'a> {
    pub(crate) session: &'a mut dyn Session,
    pub(crate) dialect: Dialect,
    pub(crate) tables: &'a [SharedTable],
    /// What the triggers must be.
    pub(crate) guards: &'a guard::Fingerprint,
}

impl Writer<'_> {
    /// Brings the database from one position to another.
    pub(crate) fn write(
        &mut self,
        from: &Position,
        to: &Position,
        group: &Group,
    ) -> Result<Written, DatabaseError> {
        self.in_transaction(from, |writer| {
            let mut written = Written::default();
            for (table, rows) in group {
                let Some(table) = writer.tables.iter().find(|known| known.table.id == *table) else {
                    continue;
                };
                writer.write_table(table, rows, &mut written)?;
            }
            let guards = guard::fingerprint(writer.session, writer.dialect, writer.tables)?;
            written.guards_changed = guards != *writer.guards;
            bookkeeping::keep_strange(writer.session, writer.dialect, from.height, &written.strange)?;
            bookkeeping::set_position(writer.session, writer.dialect, to)?;
            Ok(written)
        })
    }

    /// Makes rows what they have to be at the position, and keeps aside what they were.
    pub(crate) fn repair(
        &mut self,
        at: &Position,
        table: &SharedTable,
        rows: &[RowAt],
    ) -> Result<Written, DatabaseError> {
        self.in_transaction(at, |writer| {
            let mut written = Written::default();
            writer.put_right(table, rows, &mut written)?;
            bookkeeping::keep_strange(writer.session, writer.dialect, at.height, &written.strange)?;
            Ok(written)
        })
    }

    /// Finds out what rows are that have to be something else, inside a transaction.
    pub(crate) fn look_at(
        &mut self,
        table: &SharedTable,
        rows: &[RowAt],
        written: &mut Written,
    ) -> Result<(), DatabaseError> {
        self.stage_all(table, rows, written)?;
        self.session.execute(&table.clear_stage()).map(drop)
    }

    /// Makes rows what they have to be, inside a transaction.
    pub(crate) fn put_right(
        &mut self,
        table: &SharedTable,
        rows: &[RowAt],
        written: &mut Written,
    ) -> Result<(), DatabaseError> {
        self.stage_all(table, rows, written)?;
        self.force(table)?;
        written.rows += rows.len() as u64;
        self.session.execute(&table.clear_stage()).map(drop)
    }

    /// Stages rows that have to be something, and finds out what they are.
    fn stage_all(
        &mut self,
        table: &SharedTable,
        rows: &[RowAt],
        written: &mut Written,
    ) -> Result<(), DatabaseError> {
        self.stage(table, rows.iter().map(|RowAt { key, row }| (key.clone(), row.as_ref(), None)))?;
        self.look_into(table, written)
    }

    /// Runs a transaction that begins at a position; everything is undone where it fails, or where the position is another one.
    pub(crate) fn in_transaction<T>(
        &mut self,
        from: &Position,
        work: impl FnOnce(&mut Self) -> Result<T, DatabaseError>,
    ) -> Result<T, DatabaseError> {
        begin(self.session, self.dialect)?;
        let done = self.expect(from).and_then(|()| work(self));
        match done {
            Ok(done) => {
                self.session.execute("COMMIT")?;
                Ok(done)
            }
            Err(error) => {
                // Where the connection is gone the database does it by itself.
                let _ = self.session.execute("ROLLBACK");
                Err(error)
            }
        }
    }

    fn expect(&mut self, from: &Position) -> Result<(), DatabaseError> {
        let found = bookkeeping::position(self.session, self.dialect, true)?;
        let heights = (found.as_ref().map(|found| found.height), found.as_ref().map(|found| &found.node));
        if heights == (Some(from.height), Some(&from.node)) {
            return Ok(());
        }
        let found = heights.0.map_or("none".to_string(), |height| height.to_string());
        Err(DatabaseError::new(
            ErrorKind::Away,
            format!("the database's height was {} and is {found}: somebody has restored it", from.height),
        ))
    }

    fn write_table(
        &mut self,
        table: &SharedTable,
        rows: &BTreeMap<Key, Change>,
        written: &mut Written,
    ) -> Result<(), DatabaseError> {
        let counted =
            |wanted: fn(&Change) -> bool| rows.values().filter(|change| wanted(change)).count() as u64;
        let deletes = counted(|change| change.new.is_none());
        let inserts = counted(|change| change.old.is_none());
        let updates = rows.len() as u64 - deletes - inserts;
        let staged = rows.values().filter_map(|Change { old, new }| {
            let key = table.key_of(&table.texts(old.as_ref().or(new.as_ref())?));
            Some((key, new.as_ref(), Some(old.as_ref())))
        });
        self.stage(table, staged)?;
        self.session.execute("SAVEPOINT entente_guarded")?;
        let as_expected = self.guarded(deletes, &table.guarded_delete())?
            && self.guarded(updates, &table.guarded_update())?
            && self.guarded(inserts, &table.guarded_insert())?;
        if !as_expected {
            self.session.execute("ROLLBACK TO SAVEPOINT entente_guarded")?;
            self.look_into(table, written)?;
            self.force(table)?;
        }
        written.rows += rows.len() as u64;
        self.session.execute(&table.clear_stage()).map(drop)
    }

    /// Whether a statement has met as many rows as it had to.
    fn guarded(&mut self, expected: u64, sql: &str) -> Result<bool, DatabaseError> {
        if expected == 0 {
            return Ok(true);
        }
        match self.session.execute(sql) {
            Ok(rows) => Ok(rows == expected),
            Err(error) if error.kind == ErrorKind::Duplicate => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Stages rows: keys, what they must become, and what they must have been where that is known.
    fn stage<'r>(
        &mut self,
        table: &SharedTable,
        rows: impl Iterator<Item = (TextRow, Option<&'r Row>, Option<Option<&'r Row>>)>,
    ) -> Result<(), DatabaseError> {
        self.session.execute(&table.create_stage())?;
        let (stage, columns) = table.stage_columns();
        let mut unfit = None;
        let mut rows = rows.map(|(key, new, old)| {
            let new = new.map(|row| table.texts(row));
            if unfit.is_none() {
                unfit = new.as_ref().and_then(|row| table.unfit(row));
            }
            // Where it is not known what was there the row must be the new one already.
            let old = old.map_or_else(|| new.clone(), |old| old.map(|row| table.texts(row)));
            table.staged(key, old, new)
        });
        let loaded = self.session.load(&stage, &columns, &mut rows);
        match unfit {
            // What the database says of such a row does not name it.
            Some(unfit) => Err(DatabaseError::new(ErrorKind::Value, unfit)),
            None => loaded.map(drop),
        }
    }

    /// Finds the rows that are not what they had to be.
    fn look_into(&mut self, table: &SharedTable, written: &mut Written) -> Result<(), DatabaseError> {
        for row in self.session.query(&table.select_found())? {
            let found = table.found(row);
            if found.row != found.old {
                written.strange.push(StrangeRow {
                    table: table.table.name.clone(),
                    key: table.shown_key(&found.key),
                    found: found.row.map(|row| table.shown_row(&row)),
                    agreed: found.old.map(|row| table.shown_row(&row)),
                });
            }
        }
        Ok(())
    }

    /// Makes all staged rows what they must become, whatever they are. Rows that stay are not taken away in between: somebody's
    /// private rows may refer to them.
    fn force(&mut self, table: &SharedTable) -> Result<(), DatabaseError> {
        self.session.execute(&table.forced_delete())?;
        self.session.execute(&table.forced_update())?;
        self.session.execute(&table.forced_insert()).map(drop)
    }
}

/// Begins a transaction of the writer. Rows come by table and key, and not in an order that constraints could follow.
pub(crate) fn begin(session: &mut dyn Session, dialect: Dialect) -> Result<(), DatabaseError> {
    let sql = match dialect {
        Dialect::Postgres => "BEGIN; SET CONSTRAINTS ALL DEFERRED",
        Dialect::MariaDb => "BEGIN",
    };
    session.execute(sql).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{Servers, key, row, table};
    use crate::{bookkeeping, session};
    use ledger::NetChange;
    use rand::{RngExt, SeedableRng, rngs::StdRng};
    use std::time::Instant;

    fn position(height: u64) -> Position {
        Position { ledger: "l".to_string(), node: "n".to_string(), height, state_digest: String::new() }
    }

    #[test]
    fn what_several_blocks_did_to_a_row_is_one_change() {
        let change = |id, old: Option<i64>, new: Option<i64>| NetChange {
            table: TableId(7),
            key: key(id),
            old: old.map(|balance| row(id, balance)),
            new: new.map(|balance| row(id, balance)),
        };
        let block = |height, changes| BlockNetChanges { height, reshaped: false, changes };
        let blocks = vec![
            block(1, vec![change(1, Some(5), Some(6)), change(2, None, Some(1)), change(3, Some(9), None)]),
            block(2, vec![change(1, Some(6), Some(7)), change(2, Some(1), None), change(3, None, Some(9))]),
        ];
        let group = group(blocks);
        let rows: Vec<_> =
            group[&TableId(7)].iter().map(|(key, change)| (key.clone(), &change.old, &change.new)).collect();
        assert_eq!(rows, [(key(1), &Some(row(1, 5)), &Some(row(1, 7)))], "what is as it was does not count");
    }

    /// How fast the writer alone is: Smallbank's payments, two rows each, on 100,000 accounts.
    #[test]
    #[ignore = "measures: cargo test -p chainify writer_alone -- --ignored --nocapture"]
    fn writer_alone() {
        const ACCOUNTS: i64 = 100_000;
        let servers = Servers::start();
        for address in servers.addresses() {
            let dialect = Dialect::from(address.kind);
            let mut session = session::connect(&address).expect("it answers");
            bookkeeping::create(&mut *session, dialect).expect("made");
            let shared = SharedTable::new(table(), dialect).expect("fits");
            session.execute(&shared.create(&[])).expect("made");
            guard::let_write(&mut *session, dialect).expect("may write");
            guard::create(&mut *session, &shared).expect("made");
            let mut rows = (0..ACCOUNTS).map(|id| shared.texts(&row(id, 1000)));
            session.load(&shared.name, &shared.columns.clone(), &mut rows).expect("loaded");
            bookkeeping::set_position(&mut *session, dialect, &position(0)).expect("set");
            let tables = [shared];
            let guards = guard::fingerprint(&mut *session, dialect, &tables).expect("read");
            for per_transaction in [500_usize, 2_000, 8_000] {
                let mut random = StdRng::seed_from_u64(per_transaction as u64);
                let mut balances = read_balances(&mut *session, &tables[0]);
                let mut height =
                    bookkeeping::position(&mut *session, dialect, false).expect("read").expect("set").height;
                let mut writer = Writer { session: &mut *session, dialect, tables: &tables, guards: &guards };
                let (start, mut payments) = (Instant::now(), 0);
                while start.elapsed().as_secs_f64() < 5.0 {
                    let mut changes = Group::new();
                    let changed = changes.entry(TableId(7)).or_default();
                    for _ in 0..per_transaction {
                        for (id, amount) in
                            [(random.random_range(0..ACCOUNTS), -1), (random.random_range(0..ACCOUNTS), 1)]
                        {
                            let balance = &mut balances[id as usize];
                            let old = Some(row(id, *balance));
                            *balance += amount;
                            let new = Some(row(id, *balance));
                            changed.entry(key(id)).or_insert(Change { old, new: None }).new = new;
                        }
                    }
                    let written =
                        writer.write(&position(height), &position(height + 1), &changes).expect("written");
                    assert!(written.strange.is_empty() && !written.guards_changed, "{written:?}");
                    (height, payments) = (height + 1, payments + per_transaction);
                }
                let per_second = payments as f64 / start.elapsed().as_secs_f64();
                println!(
                    "{}: {per_second:.0} payments per second, {per_transaction} to a transaction",
                    address.kind.name()
                );
            }
        }
    }

    fn read_balances(session: &mut dyn Session, table: &SharedTable) -> Vec<i64> {
        let rows = session.query(&table.select_rows(None, None, 1_000_000)).expect("read");
        rows.iter().map(|row| row[1].as_deref().expect("not null").parse().expect("a number")).collect()
    }
}
