//! Keeps the copy: connects, makes the tables fit, and writes what is agreed, again and again.

use crate::address::Address;
use crate::bookkeeping::{self, Position, hexadecimal};
use crate::compare::RowAt;
use crate::dialect::Dialect;
use crate::error::ErrorKind;
use crate::locks;
use crate::scan::{Scan, Suspects};
use crate::session::{self, Session};
use crate::settle::{Differing, Existing, Settled, Wanted, settle};
use crate::shared_table::SharedTable;
use crate::status::Status;
use crate::write::{Writer, Written, group};
use crate::{DatabaseError, guard, inspect};
use crypto::Digest;
use gateway::OwnDatabaseStatus;
use node::{Agreed, KeepOwnDatabase};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::time::{Duration, Instant};
use types::{Catalog, Key, PUBLIC_SCHEMA, Table, parse_value, split_catalog_name};

/// Bytes of changes that one transaction takes, about.
const GROUP_BYTES: u64 = 4 * 1024 * 1024;
/// How often it is looked for new blocks.
const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// How long it waits before it connects again.
const AGAIN_MIN: Duration = Duration::from_millis(200);
const AGAIN_MAX: Duration = Duration::from_secs(5);
/// Where nothing else is said.
const SCAN_SECONDS: u64 = 60;
/// Parcels of suspicious rows that may wait; whoever finds more waits.
const SUSPECTS_MAX: usize = 16;
/// How long a connection may say nothing: MariaDB ends it after a minute.
const IDLE_MAX: Duration = Duration::from_secs(20);
/// Whoever has written so many rows at once gathers the next ones for a moment: a row costs a half of what it costs alone.
const BUSY_ROWS: u64 = 500;
const GATHER: Duration = Duration::from_millis(200);
/// Rows that are put right in one transaction.
const REPAIR_ROWS: usize = 2_000;

/// What is to be kept, and where.
#[derive(Clone, Debug)]
pub struct OwnDatabaseOptions {
    /// Where the database is, and as whom.
    pub address: Address,
    /// The tables: names, or `schema.*`.
    pub tables: Vec<String>,
    /// Seconds from the begin of one comparison of all rows to that of the next; 0: at the start only.
    pub scan_seconds: Option<u64>,
    /// Rows that the database had before the ledger did, and that differ, are replaced by the ledger's.
    pub takes_ledger_rows: bool,
}

/// Keeps tables of the ledger in a database.
pub struct OwnDatabase {
    options: OwnDatabaseOptions,
    status: Status,
    /// Row by row it cannot go on: the next connection compares all rows.
    compares: AtomicBool,
}

impl OwnDatabase {
    /// Nothing is connected before the node starts it.
    pub fn new(options: OwnDatabaseOptions) -> OwnDatabase {
        let status = OwnDatabaseStatus {
            kind: options.address.kind.name().to_string(),
            address: options.address.to_string(),
            state: "connecting".to_string(),
            ..OwnDatabaseStatus::default()
        };
        OwnDatabase { options, status: Status::new(status), compares: AtomicBool::new(false) }
    }

    /// How a table was asked for, if it was.
    fn asked(&self, table: &str) -> Option<Asked> {
        let (schema, object) = split_catalog_name(table);
        let asked = |wanted: &String| match wanted.split_once('.') {
            Some((of_schema, "*")) => (of_schema == schema).then_some(Asked::WithItsSchema),
            Some((PUBLIC_SCHEMA, name)) => {
                (schema == PUBLIC_SCHEMA && name == object).then_some(Asked::ByName)
            }
            _ => (wanted == table).then_some(Asked::ByName),
        };
        // A name counts for more than a schema.
        self.options.tables.iter().filter_map(asked).min()
    }

    /// What there is to be said of the tables that were asked for and are not kept.
    fn missing(&self, catalog: &Catalog) -> Option<String> {
        let tables = self.tables(catalog);
        let is_there = |wanted: &&String| {
            let public = wanted.strip_prefix("public.").unwrap_or(wanted);
            wanted.ends_with(".*") || tables.iter().any(|table| table.name == public)
        };
        let missing: Vec<&str> =
            self.options.tables.iter().filter(|wanted| !is_there(wanted)).map(String::as_str).collect();
        let mut said = Vec::new();
        if !missing.is_empty() {
            let names = missing.join(", ");
            said.push(format!("the ledger has no table {names} yet; kept from when it is created"));
        }
        let dialect = Dialect::from(self.options.address.kind);
        let of_schemas =
            catalog.tables.values().filter(|table| self.asked(&table.name) == Some(Asked::WithItsSchema));
        let left_out = of_schemas.filter_map(|table| SharedTable::new(table.clone(), dialect).err());
        said.extend(left_out.map(|error| format!("left out: {error}")));
        (!said.is_empty()).then(|| said.join("; "))
    }
}

/// How a table was asked for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Asked {
    ByName,
    /// Of a schema all tables are kept that can be.
    WithItsSchema,
}

impl KeepOwnDatabase for OwnDatabase {
    fn tables(&self, catalog: &Catalog) -> Vec<Arc<Table>> {
        let dialect = Dialect::from(self.options.address.kind);
        let wanted = |table: &&Arc<Table>| match self.asked(&table.name) {
            None => false,
            Some(Asked::ByName) => true,
            Some(Asked::WithItsSchema) => SharedTable::is_possible(table, dialect),
        };
        catalog.tables.values().filter(wanted).cloned().collect()
    }

    fn follow(&self, agreed: Agreed) {
        let mut pause = AGAIN_MIN;
        while !agreed.is_over() {
            let began = Instant::now();
            let Err(error) = self.connected(&agreed) else { continue };
            let error = match error.kind {
                ErrorKind::Locked => locks::explained(&self.options.address, error),
                _ => error,
            };
            self.status.fail(&error);
            pause = if began.elapsed() > AGAIN_MAX { AGAIN_MIN } else { (pause * 2).min(AGAIN_MAX) };
            let until = Instant::now() + pause;
            while Instant::now() < until && !agreed.is_over() {
                std::thread::sleep(LOOK_AGAIN * 4);
            }
        }
    }

    fn status(&self) -> OwnDatabaseStatus {
        self.status.shown()
    }
}

impl OwnDatabase {
    /// One connection's life. It ends well where the node stops or the tables have another shape.
    fn connected(&self, agreed: &Agreed) -> Result<(), DatabaseError> {
        let OwnDatabaseOptions { address, .. } = &self.options;
        let dialect = Dialect::from(address.kind);
        self.status.state("connecting");
        let mut session = session::connect(address)?;
        inspect::check_server(&mut *session, address.kind)?;
        bookkeeping::lock(&mut *session, address.kind, &address.database)?;
        bookkeeping::create(&mut *session, dialect)?;
        guard::let_write(&mut *session, dialect)?;
        let Some((settled, position)) = self.settled(&mut *session, agreed)? else { return Ok(()) };
        self.status.tables(settled.tables.iter().map(|table| table.table.name.clone()).collect());
        self.status.reach(position.height, settled.written.rows);
        self.status.strange(&settled.written.strange);
        let seconds = self.options.scan_seconds.unwrap_or(SCAN_SECONDS);
        let ended = AtomicBool::new(false);
        let scan = Scan {
            address,
            agreed,
            tables: &settled.tables,
            status: &self.status,
            ended: &ended,
            every: (seconds > 0).then(|| Duration::from_secs(seconds)),
        };
        let (ask, asked) = channel();
        let (found, suspects) = sync_channel(SUSPECTS_MAX);
        std::thread::scope(|scope| {
            let scanning = std::thread::Builder::new().name("scan own database".to_string());
            let spawned = scanning.spawn_scoped(scope, || {
                let (asked, found) = (asked, found);
                scan.run(&asked, &found);
            });
            spawned.map_err(|error| DatabaseError::new(ErrorKind::Other, error.to_string()))?;
            if seconds == 0 {
                let _ = ask.send(());
            }
            let writer =
                Writer { session: &mut *session, dialect, tables: &settled.tables, guards: &settled.guards };
            let said = Instant::now();
            let mut following = Following { own: self, agreed, writer, position, ask, suspects, said };
            let outcome = following.run();
            // So that the scan ends, too.
            ended.store(true, Ordering::Release);
            drop(following);
            outcome
        })
    }

    /// Waits until this node can say what the copy must be, and makes it so. Nothing where the node stops.
    fn settled(
        &self,
        session: &mut dyn Session,
        agreed: &Agreed,
    ) -> Result<Option<(Settled, Position)>, DatabaseError> {
        let dialect = Dialect::from(self.options.address.kind);
        let found = bookkeeping::position(session, dialect, false)?;
        if let Some(found) = &found {
            let (ledger, node) = (agreed.ledger().to_string(), agreed.node().to_string());
            bookkeeping::check_owner(found, &ledger, &node, dialect)?;
        }
        let at = found.as_ref().map_or(0, |found| found.height);
        loop {
            if agreed.is_over() {
                return Ok(None);
            }
            let height = agreed.height();
            if height < at {
                self.status.fail(&DatabaseError::new(
                    ErrorKind::Away,
                    format!("the database is at height {at}, this node at {height}: it waits until the node has caught up"),
                ));
                std::thread::sleep(LOOK_AGAIN * 10);
                continue;
            }
            let Some(state) = agreed.state(height) else {
                // Another block has come meanwhile.
                std::thread::sleep(LOOK_AGAIN);
                continue;
            };
            let position = self.position(agreed, height);
            let existing = match &found {
                Some(found) if self.is_known(agreed, found, height) => Existing::Known,
                _ => Existing::BroughtUp,
            };
            let differing = match self.options.takes_ledger_rows {
                true => Differing::Replaced,
                false => Differing::Listed,
            };
            self.status.state(if existing == Existing::Known { "connecting" } else { "filling" });
            if existing == Existing::BroughtUp && found.is_some() {
                tracing::warn!(from = at, to = height, "the database is brought up by comparing all rows");
            }
            let tables = self.tables(state.catalog());
            let wanted = Wanted { agreed: &*state, tables, position, executes: false, keeps_strange: false };
            let settled = settle(session, dialect, &wanted, existing, differing)?;
            self.compares.store(false, Ordering::Relaxed);
            // Where rows were compared they are those of the newest height.
            let position = bookkeeping::position(session, dialect, false)?.unwrap_or(wanted.position);
            return Ok(Some((settled, position)));
        }
    }

    /// Whether all changes behind the copy's height are known row by row, and no table has another shape since.
    fn is_known(&self, agreed: &Agreed, found: &Position, height: u64) -> bool {
        let is_other =
            |digest: Digest| !found.state_digest.is_empty() && digest.to_string() != found.state_digest;
        !self.compares.load(Ordering::Relaxed)
            && !agreed.digest(found.height).is_some_and(is_other)
            && agreed.tells_all(found.height, height)
    }

    fn position(&self, agreed: &Agreed, height: u64) -> Position {
        Position {
            ledger: agreed.ledger().to_string(),
            node: agreed.node().to_string(),
            height,
            state_digest: hexadecimal(agreed.digest(height)),
        }
    }
}

fn own_disk(message: String) -> DatabaseError {
    DatabaseError::new(ErrorKind::Other, format!("changes that wait on this node's disk: {message}"))
}

/// A copy that fits and is brought up.
struct Following<'a> {
    own: &'a OwnDatabase,
    agreed: &'a Agreed,
    writer: Writer<'a>,
    position: Position,
    /// Asks for a comparison of all rows.
    ask: Sender<()>,
    suspects: Receiver<Suspects>,
    /// When the database heard of it last.
    said: Instant,
}

impl Following<'_> {
    fn run(&mut self) -> Result<(), DatabaseError> {
        let own = self.own;
        let mut shape = None;
        while !self.agreed.is_over() {
            let height = self.agreed.height();
            if shape.is_none() {
                let state = self.agreed.state(height);
                shape = state.map(|state| own.missing(state.catalog()));
            }
            let has_written = height > self.position.height;
            if has_written {
                if !self.advance(height)? {
                    return Ok(());
                }
                shape = None;
            }
            if !self.repair()? && !has_written {
                self.rest()?;
            }
            own.status.follows(shape.clone().flatten());
        }
        Ok(())
    }

    /// Nothing is to be done for a moment.
    fn rest(&mut self) -> Result<(), DatabaseError> {
        if self.said.elapsed() > IDLE_MAX {
            self.writer.session.execute("SELECT 1")?;
            self.said = Instant::now();
        }
        std::thread::sleep(LOOK_AGAIN);
        Ok(())
    }

    /// Writes some of the blocks up to a height. `false`: that cannot be done row by row.
    fn advance(&mut self, height: u64) -> Result<bool, DatabaseError> {
        let blocks = self.agreed.behind(self.position.height, height, GROUP_BYTES).map_err(own_disk)?;
        let Some(blocks) = blocks.filter(|blocks| blocks.iter().all(|block| !block.reshaped)) else {
            return Ok(false);
        };
        let Some(last) = blocks.last().map(|block| block.height) else { return Ok(true) };
        let to = self.own.position(self.agreed, last);
        let group = group(blocks);
        self.own.status.asks(true);
        let written = self.writer.write(&self.position, &to, &group);
        self.own.status.asks(false);
        self.said = Instant::now();
        let written = written.inspect_err(|error| {
            // A later block may have changed what does not fit, or somebody's rows are in the way of the ledger's.
            let compares = matches!(error.kind, ErrorKind::Value | ErrorKind::Duplicate);
            self.own.compares.store(compares, Ordering::Relaxed);
        })?;
        self.agreed.taken(last);
        self.position = to;
        self.own.status.reach(last, written.rows);
        let is_busy = written.rows > BUSY_ROWS && last == height;
        self.note(written)?;
        if is_busy {
            std::thread::sleep(GATHER);
        }
        Ok(true)
    }

    fn note(&mut self, written: Written) -> Result<(), DatabaseError> {
        self.own.status.strange(&written.strange);
        if written.guards_changed {
            // Whoever has done that may have changed rows: the next connection begins by comparing them.
            return Err(DatabaseError::new(
                ErrorKind::Other,
                "triggers that refuse writes were changed, switched off or dropped; they are made again and all rows are compared",
            ));
        }
        if !written.strange.is_empty() {
            let _ = self.ask.send(());
        }
        Ok(())
    }

    /// Looks at rows that a comparison has found. `false`: there are none.
    fn repair(&mut self) -> Result<bool, DatabaseError> {
        // What has changed in the ledger since they were found counts.
        let Some(agreed) = self.agreed.state(self.position.height) else { return Ok(false) };
        let Ok(suspects) = self.suspects.try_recv() else { return Ok(false) };
        let Some(table) = self.writer.tables.get(suspects.table) else { return Ok(true) };
        for rows in suspects.rows.chunks(REPAIR_ROWS) {
            let mut now = Vec::with_capacity(rows.len());
            for RowAt { key, .. } in rows {
                let row = match encoded(table, key) {
                    Some(encoded) => agreed.get(table.table.id, &encoded),
                    // The ledger has no such key.
                    None => Ok(None),
                };
                let row = row.map_err(|failure| DatabaseError::new(ErrorKind::Other, failure.to_string()))?;
                // An equal key that is written otherwise is another row there, which must go.
                let row = row.filter(|row| table.key_of(&table.texts(row)) == *key);
                now.push(RowAt { key: key.clone(), row });
            }
            let written = self.writer.repair(&self.position, table, &now)?;
            self.said = Instant::now();
            self.own.status.strange(&written.strange);
        }
        Ok(true)
    }
}

/// The ledger's key of a key in the database's text.
fn encoded(table: &SharedTable, key: &[Option<String>]) -> Option<Key> {
    let mut values = Vec::with_capacity(key.len());
    for (ordinal, text) in table.key.iter().zip(key) {
        let data_type = table.table.columns[*ordinal].data_type;
        values.push(parse_value(text.as_deref()?, data_type).ok()?);
    }
    Key::encode(&values).ok()
}
