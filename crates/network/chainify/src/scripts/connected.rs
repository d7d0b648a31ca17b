//! One life of the connections to a database that executes scripts.

use super::ScriptDatabaseOptions;
use super::defence::{Defence, Undefended};
use super::effects::{self, Effects};
use super::graph::{Graph, Schedule};
use super::sets::sets;
use crate::bookkeeping::{self, Position};
use crate::dialect::Dialect;
use crate::error::ErrorKind;
use crate::postgres::RUN_SCRIPTS;
use crate::session::{self, ScriptEnd, Session, WrittenScript, met_rows};
use crate::settle::{Differing, Existing, Wanted, settle};
use crate::shared_table::SharedTable;
use crate::status::Status;
use crate::write::{Written, begin};
use crate::{DatabaseError, guard, inspect, plan, recorder, render};
use engine::{BlockScripts, RanScripts};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use types::Catalog;

/// What so many of the last blocks did is kept in the database.
const KEPT_BLOCKS: u64 = 1_000;
/// Bytes of scripts that are sent together, about.
const TOGETHER_BYTES: usize = 512 * 1024;
/// Where sets have failed the next blocks do without.
const ONE_BY_ONE_BLOCKS: u32 = 8;
/// How often a block begins anew because rows were not what the state says.
const TRIES: usize = 3;

pub(super) struct Connected {
    session: Box<dyn Session>,
    dialect: Dialect,
    /// Those that run scripts.
    workers: Vec<Box<dyn Session>>,
    /// So many blocks run script by script: some scripts fail, which sets cannot.
    one_by_one: u32,
    /// Which block was executed last, if the database says it.
    height: Option<u64>,
    tables: Vec<SharedTable>,
    guards: guard::Fingerprint,
    /// What the tables were made fit for.
    catalog: Option<Arc<Catalog>>,
    undefended: Arc<Undefended>,
}

impl Connected {
    /// Connects, and finds out where the database stands.
    pub(super) fn new(
        options: &ScriptDatabaseOptions,
        block: &BlockScripts,
        status: &Status,
        undefended: Arc<Undefended>,
    ) -> Result<Connected, DatabaseError> {
        let ScriptDatabaseOptions { address, node, .. } = options;
        let dialect = Dialect::from(address.kind);
        status.state("connecting");
        let mut session = connect(options, dialect)?;
        inspect::check_server(&mut *session, address.kind)?;
        bookkeeping::lock(&mut *session, address.kind, &address.database)?;
        bookkeeping::create(&mut *session, dialect)?;
        recorder::create_tables(&mut *session, dialect)?;
        if dialect == Dialect::Postgres {
            session.execute(RUN_SCRIPTS)?;
        }
        let found = bookkeeping::position(&mut *session, dialect, false)?;
        if let Some(found) = &found {
            bookkeeping::check_owner(found, &block.ledger.to_string(), &node.to_string(), dialect)?;
        }
        Ok(Connected {
            session,
            dialect,
            workers: Vec::new(),
            one_by_one: 0,
            height: found.map(|found| found.height),
            tables: Vec::new(),
            guards: guard::Fingerprint::new(),
            catalog: None,
            undefended,
        })
    }

    /// Executes the block, or says what it came to when it was executed.
    pub(super) fn execute(
        &mut self,
        options: &ScriptDatabaseOptions,
        block: &BlockScripts,
        (status, distrusted): (&Status, &AtomicBool),
    ) -> Result<RanScripts, DatabaseError> {
        let before = block.height - 1;
        if distrusted.load(Ordering::Acquire) {
            self.reset(options, block, status, "other nodes came to something else")?;
            distrusted.store(false, Ordering::Release);
        }
        match self.height {
            Some(height) if height > before => {
                self.know(block)?;
                if let Some(ran) = self.remembered(block)? {
                    return Ok(ran);
                }
                self.reset(options, block, status, "the node goes on from an older state")?;
            }
            Some(height) if height == before || self.undefended.lacks(Defence::Height) => {}
            _ => self.reset(options, block, status, "the database is not at the height before the block")?,
        }
        self.fit(options, block, status)?;
        if block.scripts.is_empty() {
            self.end(options, block)?;
            status.reach(block.height, 0);
            status.follows(None);
            return Ok(RanScripts::default());
        }
        for _ in 0..TRIES {
            if !self.undefended.lacks(Defence::Triggers)
                && guard::fingerprint(&mut *self.session, self.dialect, &self.tables)? != self.guards
            {
                self.reset(options, block, status, "triggers were changed, switched off or dropped")?;
            }
            let ends = self.run(options, block)?;
            let Effects { changes, strange } = effects::read(
                &mut *self.session,
                &self.tables,
                &*block.before,
                block.height,
                &self.undefended,
            )?;
            if strange.is_empty() {
                self.end(options, block)?;
                status.reach(block.height, changes.len() as u64);
                status.follows(None);
                return Ok(RanScripts { ends, changes });
            }
            bookkeeping::keep_strange(&mut *self.session, self.dialect, before, &strange)?;
            status.strange(&strange);
            // What the block's scripts have made of rows is no news.
            self.height = None;
            self.reset(options, block, status, "rows were changed behind the ledger's back")?;
        }
        Err(DatabaseError::new(
            ErrorKind::Other,
            "somebody changes rows again and again while scripts run; find out who may write to the tables, and take that away",
        ))
    }

    /// The tables as they are in the state before the block, whatever the database has: enough to read what it has written down.
    fn know(&mut self, block: &BlockScripts) -> Result<(), DatabaseError> {
        let catalog = block.before.catalog();
        let tables = catalog.tables.values().map(|table| SharedTable::new(table.clone(), self.dialect));
        self.tables = tables.collect::<Result<_, _>>()?;
        // What executes a block makes them fit.
        self.catalog = None;
        Ok(())
    }

    /// Makes tables and triggers those of the state before the block, where another catalog holds than for the last one.
    fn fit(
        &mut self,
        options: &ScriptDatabaseOptions,
        block: &BlockScripts,
        status: &Status,
    ) -> Result<(), DatabaseError> {
        let catalog = block.before.catalog();
        if self.catalog.as_ref().is_some_and(|known| Arc::ptr_eq(known, catalog)) {
            return Ok(());
        }
        let (session, dialect) = (&mut *self.session, self.dialect);
        let copies = bookkeeping::tables(session, dialect)?;
        for gone in copies.keys().filter(|name| !catalog.tables.contains_key(*name)) {
            guard::remove(session, dialect, gone)?;
            recorder::remove(session, dialect, gone)?;
            bookkeeping::forget_table(session, dialect, gone)?;
        }
        let mut is_whole = true;
        for table in catalog.tables.values() {
            let shared = SharedTable::new(table.clone(), dialect)?;
            match plan::check(session, &shared)? {
                Some(problems) if problems.is_empty() => is_whole &= copies.contains_key(&table.name),
                Some(_) if copies.contains_key(&table.name) => {
                    // The ledger has changed its columns: the rows come from the state.
                    session.execute(&format!("DROP TABLE {}", shared.name))?;
                    bookkeeping::forget_table(session, dialect, &table.name)?;
                    is_whole = false;
                }
                _ => is_whole = false,
            }
        }
        match is_whole {
            true => self.settle(options, block, Existing::Known, false).map(drop)?,
            false => self.reset(options, block, status, "the ledger has tables that the database has not")?,
        }
        status.tables(catalog.tables.keys().cloned().collect());
        Ok(())
    }

    fn settle(
        &mut self,
        options: &ScriptDatabaseOptions,
        block: &BlockScripts,
        existing: Existing,
        keeps_strange: bool,
    ) -> Result<Written, DatabaseError> {
        let catalog = block.before.catalog();
        self.make_room(options, catalog)?;
        let wanted = Wanted {
            agreed: &*block.before,
            tables: catalog.tables.values().cloned().collect(),
            position: position(options, block, block.height - 1),
            executes: true,
            keeps_strange,
        };
        let settled = settle(&mut *self.session, self.dialect, &wanted, existing, Differing::Listed)?;
        (self.tables, self.guards) = (settled.tables, settled.guards);
        self.catalog = Some(catalog.clone());
        Ok(settled.written)
    }

    /// Tables that the database has and that are not the ledger's have constraints of their own, with which scripts would come to
    /// something else than everywhere.
    fn make_room(&mut self, options: &ScriptDatabaseOptions, catalog: &Catalog) -> Result<(), DatabaseError> {
        let session = &mut *self.session;
        let copies = bookkeeping::tables(session, self.dialect)?;
        for table in catalog.tables.values().filter(|table| !copies.contains_key(&table.name)) {
            let shared = SharedTable::new(table.clone(), self.dialect)?;
            let Some(problems) = plan::check(session, &shared)? else { continue };
            // One that was just made, when the node ended.
            let is_ours = problems.is_empty()
                && session.query(&format!("SELECT 1 FROM {} LIMIT 1", shared.name))?.is_empty();
            if !options.takes_ledger_rows && !is_ours {
                let message = format!(
                    "the database has a table {} already, and a database that executes scripts makes the ledger's tables itself, with \
                     their constraints: rename or drop that one, or say that the ledger's counts: entente chainify … \
                     --take-ledger-rows",
                    shared.name
                );
                return Err(DatabaseError::new(ErrorKind::Unfit, message));
            }
            session.execute(&format!("DROP TABLE {}", shared.name))?;
        }
        Ok(())
    }

    /// Makes all rows those of the state before the block, whatever stands there; nothing of the block was executed then.
    fn reset(
        &mut self,
        options: &ScriptDatabaseOptions,
        block: &BlockScripts,
        status: &Status,
        why: &str,
    ) -> Result<(), DatabaseError> {
        tracing::warn!(height = block.height, why, "all rows are made those of the state before the block");
        status.state("filling");
        // Where it is not at the height before the block, rows differ from the state as they have to.
        let at_height = self.height == Some(block.height - 1);
        // Whoever is killed in between begins here again.
        self.height = None;
        begin(&mut *self.session, self.dialect)?;
        let all = [
            recorder::executed_table(self.dialect),
            recorder::changes_table(self.dialect),
            bookkeeping::position_table(self.dialect),
        ];
        for table in all {
            self.session.execute(&format!("DELETE FROM {table}"))?;
        }
        self.session.execute("COMMIT")?;
        let written = self.settle(options, block, Existing::BroughtUp, at_height)?;
        status.strange(&written.strange);
        self.height = Some(block.height - 1);
        Ok(())
    }

    /// How scripts of the block have ended that were executed before.
    fn executed(&mut self, height: u64) -> Result<BTreeMap<u32, Option<Vec<u64>>>, DatabaseError> {
        let place = match self.dialect {
            Dialect::Postgres => "place::text",
            Dialect::MariaDb => "CAST(place AS CHAR)",
        };
        let executed = recorder::executed_table(self.dialect);
        let rows =
            self.session.query(&format!("SELECT {place}, met FROM {executed} WHERE height = {height}"))?;
        let ended = |row: Vec<Option<String>>| {
            let place = row.first()?.as_ref()?.parse().ok()?;
            Some((place, row.get(1)?.as_deref().map(met_rows)))
        };
        Ok(rows.into_iter().filter_map(ended).collect())
    }

    /// What a block came to that was executed before, if the database has all of that.
    fn remembered(&mut self, block: &BlockScripts) -> Result<Option<RanScripts>, DatabaseError> {
        let executed = self.executed(block.height)?;
        let ends: Option<Vec<_>> =
            block.scripts.iter().map(|(place, _)| executed.get(place).cloned()).collect();
        let Some(ends) = ends.filter(|ends| ends.len() == executed.len()) else { return Ok(None) };
        let session = &mut *self.session;
        let effects = effects::read(session, &self.tables, &*block.before, block.height, &self.undefended);
        // The tables may have been others then.
        let Ok(Effects { changes, strange }) = effects else { return Ok(None) };
        Ok(strange.is_empty().then_some(RanScripts { ends, changes }))
    }

    /// Runs the scripts that were not executed before.
    fn run(
        &mut self,
        options: &ScriptDatabaseOptions,
        block: &BlockScripts,
    ) -> Result<Vec<Option<Vec<u64>>>, DatabaseError> {
        let mut ended = self.executed(block.height)?;
        let left: Vec<_> = block.scripts.iter().filter(|(place, _)| !ended.contains_key(place)).collect();
        if options.as_sets
            && ended.is_empty()
            && let Some(ends) = self.run_as_sets(options, block.height, &left)?
        {
            return Ok(ends.into_iter().map(|end| end.met).collect());
        }
        let written = left.iter().map(|(place, script)| self.written(*place, script));
        let written = written.collect::<Result<Vec<_>, _>>()?;
        let graph = Graph::of(&left.iter().map(|(_, script)| script).collect::<Vec<_>>());
        let workers = options.connections.clamp(1, left.len().max(1));
        self.have_workers(options, workers)?;
        let (schedule, outcome) = (Schedule::new(graph, workers), Mutex::new(Ok(Vec::new())));
        std::thread::scope(|scope| {
            for worker in self.workers.iter_mut().take(workers) {
                scope.spawn(|| work(&mut **worker, block.height, &written, &schedule, &outcome));
            }
        });
        ended.extend(outcome.into_inner()?.into_iter().map(|end| (end.place, end.met)));
        let end = |(place, _): &(u32, _)| {
            ended.remove(place).ok_or_else(|| {
                DatabaseError::new(ErrorKind::Other, format!("script {place} of the block was not executed"))
            })
        };
        block.scripts.iter().map(end).collect()
    }

    /// Runs all scripts of the block as sets, in one transaction, where that can be.
    fn run_as_sets(
        &mut self,
        options: &ScriptDatabaseOptions,
        height: u64,
        scripts: &[&(u32, portable::Script)],
    ) -> Result<Option<Vec<ScriptEnd>>, DatabaseError> {
        if self.one_by_one > 0 {
            self.one_by_one -= 1;
            return Ok(None);
        }
        let Some(sets) = sets(&self.tables, scripts)? else { return Ok(None) };
        self.have_workers(options, 1)?;
        let ended = self.workers[0].run_sets(height, &sets)?;
        if ended.is_none() {
            self.one_by_one = ONE_BY_ONE_BLOCKS;
        }
        Ok(ended)
    }

    /// Whether the scripts of a block like this run as sets now.
    #[cfg(test)]
    pub(super) fn runs_as_sets(&self, block: &BlockScripts) -> bool {
        let scripts: Vec<_> = block.scripts.iter().collect();
        self.one_by_one == 0 && sets(&self.tables, &scripts).is_ok_and(|sets| sets.is_some())
    }

    fn have_workers(&mut self, options: &ScriptDatabaseOptions, count: usize) -> Result<(), DatabaseError> {
        while self.workers.len() < count {
            let mut worker = connect(options, self.dialect)?;
            if self.dialect == Dialect::Postgres {
                // What the server loses when it ends at once, it loses from the end: the height says so.
                worker.execute("SET synchronous_commit = off")?;
            }
            self.workers.push(worker);
        }
        Ok(())
    }

    fn written(&self, place: u32, script: &portable::Script) -> Result<WrittenScript, DatabaseError> {
        let statement = |statement: &portable::Statement| {
            let table = self.tables.iter().find(|table| table.table.id == statement.table.id);
            let table = table.ok_or_else(|| {
                DatabaseError::new(ErrorKind::Other, format!("table {} is not there", statement.table.name))
            })?;
            render::statement(table, statement)
        };
        let statements = script.statements.iter().map(statement).collect::<Result<_, _>>()?;
        Ok(WrittenScript { place, statements })
    }

    /// The block was executed.
    fn end(&mut self, options: &ScriptDatabaseOptions, block: &BlockScripts) -> Result<(), DatabaseError> {
        let session = &mut *self.session;
        begin(session, self.dialect)?;
        bookkeeping::set_position(session, self.dialect, &position(options, block, block.height))?;
        let last = block.height.saturating_sub(KEPT_BLOCKS);
        for table in [recorder::executed_table(self.dialect), recorder::changes_table(self.dialect)] {
            session.execute(&format!("DELETE FROM {table} WHERE height <= {last}"))?;
        }
        session.execute("COMMIT")?;
        self.height = Some(block.height);
        Ok(())
    }
}

fn position(options: &ScriptDatabaseOptions, block: &BlockScripts, height: u64) -> Position {
    let (ledger, node) = (block.ledger.to_string(), options.node.to_string());
    Position { ledger, node, height, state_digest: String::new() }
}

fn connect(options: &ScriptDatabaseOptions, dialect: Dialect) -> Result<Box<dyn Session>, DatabaseError> {
    let mut session = session::connect(&options.address)?;
    guard::let_write(&mut *session, dialect)?;
    Ok(session)
}

/// Runs scripts until there are none.
fn work(
    session: &mut dyn Session,
    height: u64,
    written: &[WrittenScript],
    schedule: &Schedule,
    outcome: &Mutex<Result<Vec<ScriptEnd>, DatabaseError>>,
) {
    while let Some(numbers) = schedule.take() {
        let mut from = 0;
        while from < numbers.len() {
            let mut bytes = 0;
            let fits = |number: &&usize| {
                let length: usize = written[**number].statements.iter().map(String::len).sum();
                bytes += length;
                bytes == length || bytes <= TOGETHER_BYTES
            };
            let count = numbers[from..].iter().take_while(fits).count();
            let some = &numbers[from..from + count];
            let scripts: Vec<WrittenScript> = some.iter().map(|number| written[*number].clone()).collect();
            let ran = session.run_scripts(height, &scripts);
            let mut outcome = outcome.lock();
            match (&mut *outcome, ran) {
                (Ok(ends), Ok(ran)) => ends.extend(ran),
                (_, Err(error)) => {
                    *outcome = Err(error);
                    return schedule.fail();
                }
                (Err(_), Ok(_)) => return,
            }
            from += count;
        }
        schedule.ended(&numbers);
    }
}
