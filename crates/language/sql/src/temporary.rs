//! Temporary tables and views: what a session keeps to itself.
//!
//! Their definitions and rows are on one gateway, in no block and in no digest. Their numbers have a bit of their own, so
//! that a statement sees them side by side with the ledger's tables; what it writes must then be theirs alone, because
//! nobody else could execute it.
//!
//! A statement is simulated on the ledger's snapshot and the session's tables together. If its effects write
//! temporary tables only, they are applied on the spot. If they write the ledger and the statement touches no
//! temporary table, it is ordered like any other. If it only reads temporary tables, and has to do with the ledger too, it is a step of a
//! transaction block, with which their rows are given ([`crate::given_tables`]): from version 15 on. What writes both is refused.
//!
//! In a transaction block the session's tables are copied, and the copy shares its rows until one of both changes.
//! COMMIT makes the copy the session's. No other node can check what a temporary table was filled with from the ledger. Therefore a block has
//! such statements, or changes of the ledger, but not both.

use crate::bind::bind_parsed;
use crate::ddl::change::SchemaChange;
use crate::ddl::rows::Rows;
use crate::ddl::{bind_schema_change, change_catalog};
use crate::library::Library;
use crate::prepare::Prepared;
use crate::script::{BoundScript, Script, StatementKind};
use crate::simulate::Invocation;
use execute::{Context, Execution, row_bytes};
use plan::needs::RelationNeed;
use sqlparser::ast::{Ident, ObjectName, ObjectNamePart, OnCommit, Statement};
use sqlparser::keywords::Keyword;
use state::{
    AfterImage, Command, Effects, KeyRange, Overlay, PlainState, RowId, Simulate, Snapshot, StoreError,
    apply_command,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use syntax::parse::ParsedStatement;
use types::session_format::SessionFormat;
use types::{
    Catalog, DataType, Deferral, ExecutionVersion, GivenTable, Key, MemoryPool, MemoryShare, PUBLIC_SCHEMA,
    PackedRows, Payload, Principal, Privileges, Row, Securable, SqlError, SqlState, StatementResult, Table,
    TableId, TypeId,
};

/// Bytes of the rows that a session may keep.
const BYTES_MAX: usize = 64 * 1024 * 1024;
/// What a row takes besides its columns.
const BYTES_PER_ROW: usize = 64;

/// What a row takes.
fn stored(key: &Key, row: &Row) -> usize {
    BYTES_PER_ROW + key.as_bytes().len() + row_bytes(row)
}

/// What becomes of a temporary table when a transaction ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum AtCommit {
    /// ON COMMIT DELETE ROWS
    DeleteRows,
    /// ON COMMIT DROP
    Drop,
}

/// The temporary tables of one session. A copy of it is what a rolled back transaction returns to.
#[derive(Clone)]
pub struct TemporaryTables {
    /// Rows, and a catalog of nothing but these tables. A copy of them all shares this until one of both changes.
    state: Arc<PlainState>,
    /// By name.
    at_commit: BTreeMap<String, AtCommit>,
    /// What the rows take.
    bytes: usize,
    /// Counts the statements: it stands where a block's height stands elsewhere.
    statements: u64,
    /// The ledger's library that `combined` was made from.
    ledger: Option<Arc<Library>>,
    combined: Option<Arc<Library>>,
    interrupt: Arc<AtomicBool>,
    /// What all queries of the node have together, with the rows of all sessions' temporary tables.
    memory: Option<Arc<MemoryPool>>,
    /// What these rows have of it.
    share: Arc<MemoryShare>,
}

impl Default for TemporaryTables {
    fn default() -> TemporaryTables {
        let catalog = Catalog {
            next_table: TableId::FIRST_TEMPORARY.0,
            next_type: TypeId::FIRST_TEMPORARY.0,
            ..Catalog::default()
        };
        TemporaryTables {
            state: Arc::new(PlainState::new(Arc::new(catalog))),
            at_commit: BTreeMap::new(),
            bytes: 0,
            statements: 0,
            ledger: None,
            combined: None,
            interrupt: Arc::default(),
            memory: None,
            share: Arc::default(),
        }
    }
}

/// What a statement gives that runs for one session.
#[derive(Debug)]
pub struct LocalResults {
    /// One per statement.
    pub results: Vec<StatementResult>,
    /// It has read the ledger too.
    pub reads_ledger: bool,
}

/// The ledger's rows and those of temporary tables: two states side by side, of which each table is in one. Nothing stands in
/// front of anything, so that it is no `Overlay`.
struct Both<'a> {
    catalog: &'a Arc<Catalog>,
    ledger: &'a dyn Snapshot,
    temporary: &'a PlainState,
}

impl Both<'_> {
    fn of(&self, table: TableId) -> &dyn Snapshot {
        if table.is_temporary() { self.temporary } else { self.ledger }
    }
}

impl Snapshot for Both<'_> {
    fn catalog(&self) -> &Arc<Catalog> {
        self.catalog
    }

    fn get(&self, table: TableId, key: &Key) -> Result<Option<Row>, StoreError> {
        self.of(table).get(table, key)
    }

    fn scan(
        &self,
        table: TableId,
        range: &KeyRange,
        reverse: bool,
        visit: &mut dyn FnMut(&Key, &Row) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.of(table).scan(table, range, reverse, visit)
    }
}

/// Refuses constraints that wait for the end of the transaction: what a session does with its tables is done statement by statement.
fn refuse_deferrable(own: &Catalog) -> Result<(), SqlError> {
    let foreign_keys = own.foreign_keys.values().flatten().map(|known| known.deferral);
    let mut deferrals = foreign_keys.chain(own.indexes.values().flatten().map(|known| known.deferral));
    match deferrals.any(Deferral::is_deferrable) {
        true => Err(SqlError::unsupported("a DEFERRABLE constraint of a temporary table")
            .hint("Leave DEFERRABLE out, and insert rows behind those that they reference.")),
        false => Ok(()),
    }
}

impl TemporaryTables {
    /// Whether there are none, and no temporary views.
    pub fn is_empty(&self) -> bool {
        self.state.catalog.tables.is_empty() && self.state.catalog.views.is_empty()
    }

    /// Their definitions, and nothing of the ledger's.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.state.catalog
    }

    /// What their rows take.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether a copy has the same rows in the same memory.
    pub(crate) fn shares_rows_with(&self, other: &TemporaryTables) -> bool {
        Arc::ptr_eq(&self.state, &other.state)
    }

    /// The ledger's tables and these.
    ///
    /// # Errors
    /// `42P07` a relation of the ledger has the name of one of these.
    pub fn visible(&mut self, ledger: &Arc<Library>) -> Result<Arc<Catalog>, SqlError> {
        match self.is_empty() {
            true => Ok(ledger.catalog().clone()),
            false => Ok(self.combined(ledger)?.catalog().clone()),
        }
    }

    /// Drops them all: DISCARD TEMP.
    pub fn clear(&mut self) {
        let statements = self.statements;
        *self = TemporaryTables { statements, ..TemporaryTables::default() };
    }

    /// A transaction has committed: ON COMMIT does what it says.
    pub fn commit(&mut self) {
        for (name, at_commit) in self.at_commit.clone() {
            let Some(id) = self.state.catalog.tables.get(&name).map(|table| table.id) else { continue };
            match at_commit {
                AtCommit::Drop => {
                    let mut catalog = Catalog::clone(&self.state.catalog);
                    catalog.tables.retain(|_, table| table.id != id);
                    catalog.indexes.remove(&id);
                    catalog.foreign_keys.remove(&id);
                    catalog.row_types.remove(&name);
                    let partitions = self.state.catalog.tables[&name].partitioning.clone();
                    for partition in partitions.iter().flat_map(|one| one.partitions.keys()) {
                        catalog.views.remove(partition);
                        catalog.row_types.remove(partition);
                    }
                    drop_views_of(&mut catalog, &name);
                    self.change_catalog(catalog);
                }
                AtCommit::DeleteRows => {
                    let mut goes = vec![id];
                    for index in self.state.catalog.indexes_of(id) {
                        goes.extend(index.tables());
                    }
                    let state = Arc::make_mut(&mut self.state);
                    goes.iter().for_each(|table| drop(state.tables.remove(table)));
                }
            }
        }
        self.count();
    }

    /// Counts the bytes of all rows.
    fn count(&mut self) {
        let rows = self.state.tables.values().flat_map(BTreeMap::iter);
        self.bytes = rows.map(|(key, row)| stored(key, row)).sum();
    }

    /// A script bound where these tables are known too; `None` where it does not concern them.
    ///
    /// # Errors
    /// What is wrong in the script.
    pub fn prepare(
        &mut self,
        ledger: &Arc<Library>,
        sql: &str,
        parameter_types: &[DataType],
    ) -> Result<Option<Prepared>, SqlError> {
        if !self.are_mentioned_in(sql) {
            return Ok(None);
        }
        let mut script = Script::parse(sql, ledger.version())?;
        let creates = take_temporary(&mut script.statements)?.is_some();
        if !creates && self.is_empty() {
            return Ok(None);
        }
        let combined = self.combined(ledger)?;
        let script = bind_parsed(&combined, script, parameter_types)?;
        Ok(Some(Prepared::new(&combined, script)))
    }

    /// Whether a script that was prepared here is to run as a step of a transaction block, with which the rows of these tables are given.
    pub fn are_given_to(&self, prepared: &Prepared) -> bool {
        prepared.kind() == StatementKind::Write && self.tables_given_to(prepared.script()).is_some()
    }

    /// The tables with their rows, as they are given with a statement; `None` where none is to be.
    ///
    /// # Errors
    /// `54000` where they are too many rows for a transaction.
    pub(crate) fn given_to(
        &mut self,
        ledger: &Arc<Library>,
        sql: &str,
        parameter_types: &[DataType],
    ) -> Result<Option<Vec<GivenTable>>, SqlError> {
        if self.is_empty() || !self.are_mentioned_in(sql) {
            return Ok(None);
        }
        // What is wrong says so where it is run.
        let Ok(combined) = self.combined(ledger) else { return Ok(None) };
        let Ok(script) = combined.script(sql, parameter_types) else { return Ok(None) };
        let types = combined.tables().routines().types();
        let Some(tables) = self.tables_given_to(&script) else { return Ok(None) };
        let given = |table: &Arc<Table>| {
            let rows = self.state.tables.get(&table.id).into_iter().flat_map(BTreeMap::values);
            let columns =
                table.columns.iter().map(|column| (column.name.clone(), types.base_of(column.data_type)));
            Ok(GivenTable {
                name: table.name.clone(),
                columns: columns.collect(),
                rows: PackedRows::pack(rows.map(|row| row.to_vec()))?,
            })
        };
        tables.into_iter().map(given).collect::<Result<Vec<_>, SqlError>>().map(Some)
    }

    /// Whether a query has to do with the ledger.
    pub(crate) fn concerns_ledger(
        &mut self,
        ledger: &Arc<Library>,
        sql: &str,
        parameter_types: &[DataType],
    ) -> bool {
        let script = self.combined(ledger).and_then(|combined| combined.script(sql, parameter_types));
        script.is_ok_and(|script| {
            let own = &self.state.catalog;
            let is_of_ledger = |need: &RelationNeed| {
                matches!(&need.relation, Securable::Relation(name) if !own.tables.contains_key(name) && !own.views.contains_key(name))
            };
            script.needs.relations.iter().any(is_of_ledger)
                || script.needs.called.iter().any(|called| ledger.may_write(called))
        })
    }

    /// The tables that a script reads, where it writes none of them and has to do with the ledger, too.
    fn tables_given_to(&self, script: &BoundScript) -> Option<Vec<&Arc<Table>>> {
        let known = self.ledger.as_ref().filter(|ledger| ledger.version() >= ExecutionVersion::V15)?;
        let (mut tables, mut is_of_ledger) = (Vec::new(), false);
        for need in &script.needs.relations {
            let Securable::Relation(name) = &need.relation else { continue };
            match self.state.catalog.tables.get(name) {
                // A partition is none of its own.
                None if self.state.catalog.views.contains_key(name) => return None,
                None => is_of_ledger = true,
                Some(_) if need.privileges.intersects(Privileges::CHANGES) => return None,
                Some(table) => tables.push(table),
            }
        }
        is_of_ledger |= script.needs.called.iter().any(|called| known.may_write(called));
        (is_of_ledger && !tables.is_empty()).then_some(tables)
    }

    /// What ends the next run soon after it is set.
    pub fn interrupt(&mut self) -> Arc<AtomicBool> {
        self.interrupt = Arc::default();
        Arc::clone(&self.interrupt)
    }

    /// Runs end soon after this is set.
    pub(crate) fn be_interrupted_by(&mut self, interrupt: &Arc<AtomicBool>) {
        self.interrupt = Arc::clone(interrupt);
    }

    /// With a share of the memory that all queries of a node have together; before the first table is made.
    pub fn sharing(mut self, memory: &Arc<MemoryPool>) -> TemporaryTables {
        self.share = Arc::new(MemoryShare::of(memory));
        self.memory = Some(Arc::clone(memory));
        self
    }

    /// What an execution has of that.
    fn share_of_execution(&self) -> MemoryShare {
        self.memory.as_ref().map_or_else(MemoryShare::default, MemoryShare::of)
    }

    /// The rows take so many bytes from now on. Copies of the tables keep what they had.
    fn share_rows(&mut self, bytes: u64) -> Result<(), SqlError> {
        match Arc::get_mut(&mut self.share) {
            Some(share) => {
                share.grow_to(bytes)?;
                share.shrink_to(bytes);
            }
            None => {
                let mut share = self.share_of_execution();
                share.grow_to(bytes)?;
                self.share = Arc::new(share);
            }
        }
        Ok(())
    }

    /// Runs what concerns temporary tables, in the name of `principal`, who may do everything with them; `None` where it does
    /// not, and the ledger has to run it.
    ///
    /// `ledger` and `snapshot`: of the same height, as for a query outside of a transaction. `context`: its id is something else for each
    /// statement, and its place is not looked at.
    pub fn run(
        &mut self,
        principal: &Principal,
        ledger: &Arc<Library>,
        snapshot: &dyn Snapshot,
        payload: &Payload,
        context: Context,
    ) -> Option<Result<LocalResults, SqlError>> {
        let text = match payload {
            Payload::Script { sql, .. } => sql.as_str(),
            Payload::Insert { table, .. } => table.as_str(),
            // A procedure of the ledger knows the ledger's tables only.
            Payload::Call { .. }
            | Payload::Session { .. }
            | Payload::Parts { .. }
            | Payload::SchemaOutcomes { .. }
            | Payload::MovingOutcomes { .. }
            | Payload::HeldParts { .. }
            | Payload::Agreed(_) => return None,
        };
        if !self.are_mentioned_in(text) {
            return None;
        }
        self.statements += 1;
        let context = Context { height: self.statements, index: 0, ..context };
        if let Payload::Script { sql, .. } = payload {
            // What cannot be read says so where it is run.
            let Script { settings, mut statements, .. } = Script::parse(sql, ledger.version()).ok()?;
            // The block has the cursors of its functions, whatever they are called.
            if statements.iter().any(|statement| matches!(statement, ParsedStatement::Cursor(_))) {
                return None;
            }
            let at_commit = match take_temporary(&mut statements) {
                Ok(at_commit) => at_commit,
                Err(error) => return Some(Err(error)),
            };
            if at_commit.is_none() && self.is_empty() {
                return None;
            }
            let types = match self.combined(ledger) {
                Ok(combined) => combined.tables().routines().types().with_search_path(&settings.search_path),
                Err(error) => return Some(Err(error)),
            };
            let changes = statements.iter().map(|statement| bind_schema_change(&types, statement));
            let changes = changes.collect::<Result<Option<Vec<_>>, SqlError>>();
            match changes {
                Err(error) => return Some(Err(error)),
                // Its height is that of a block.
                Ok(Some(changes))
                    if changes.iter().any(|change| change.stands_outside_of_blocks().is_some()) =>
                {
                    return None;
                }
                Ok(Some(changes)) if !changes.is_empty() => {
                    let changed = self.change_schema(
                        principal,
                        ledger,
                        snapshot,
                        context,
                        (&changes, settings.format),
                        at_commit,
                    );
                    return changed.transpose();
                }
                Ok(_) if at_commit.is_some() => {
                    let what = "CREATE TEMPORARY TABLE or VIEW among other statements";
                    return Some(Err(SqlError::unsupported(what).hint("Send it on its own.")));
                }
                Ok(_) => {}
            }
        }
        self.execute(principal, ledger, snapshot, context, payload).transpose()
    }

    fn execute(
        &mut self,
        principal: &Principal,
        ledger: &Arc<Library>,
        snapshot: &dyn Snapshot,
        context: Context,
        payload: &Payload,
    ) -> Result<Option<LocalResults>, SqlError> {
        let combined = self.combined(ledger)?;
        let both = Both { catalog: combined.catalog(), ledger: snapshot, temporary: &self.state };
        let invocation = Invocation::new(combined.clone(), context, payload.clone());
        let invocation = invocation.locally(&self.interrupt, &self.memory);
        let effects = invocation.by(principal.clone()).simulate(&both)?;
        if effects.catalog.is_some() {
            return Ok(None);
        }
        let touched = touches_temporary(&effects);
        let writes_ledger = effects.commands.iter().any(|command| !command.row.table.is_temporary());
        if touched && writes_ledger {
            let hint = match ledger.version() >= ExecutionVersion::V15 {
                true => {
                    "One statement cannot write both: read the temporary tables here, and change them in another one."
                }
                false => "Nobody else has their rows: send the rows themselves.",
            };
            return Err(SqlError::unsupported("a change of the ledger that uses temporary tables").hint(hint));
        }
        let script = match payload {
            Payload::Script { sql, parameters } => {
                let types: Vec<DataType> = parameters.iter().map(types::Value::data_type).collect();
                combined.script(sql, &types).ok()
            }
            _ => None,
        };
        let is_read = script.as_ref().is_some_and(|script| script.kind() == StatementKind::Read);
        if !touched && !is_read && effects.result.is_ok() {
            let is_our_view = |need: &RelationNeed| matches!(&need.relation, Securable::Relation(name) if self.state.catalog.views.contains_key(name));
            let reads_view = script.is_some_and(|script| script.needs.relations.iter().any(is_our_view));
            return match writes_ledger && reads_view {
                true => Err(SqlError::unsupported("a change of the ledger that reads a temporary view")
                    .hint("Write the view's query into the statement.")),
                false => Ok(None),
            };
        }
        let reads_ledger = reads_ledger(&effects);
        let results = effects.result?;
        self.apply(&effects.commands)?;
        Ok(Some(LocalResults { results, reads_ledger }))
    }

    /// Makes changes of temporary tables; `None` where they are changes of the ledger.
    fn change_schema(
        &mut self,
        principal: &Principal,
        ledger: &Arc<Library>,
        snapshot: &dyn Snapshot,
        context: Context,
        (changes, format): (&[SchemaChange], SessionFormat),
        at_commit: Option<Option<AtCommit>>,
    ) -> Result<Option<LocalResults>, SqlError> {
        let combined = self.combined(ledger)?;
        let both = Both { catalog: combined.catalog(), ledger: snapshot, temporary: &self.state };
        let mut execution = Execution::new(&*combined, &both, context)
            .locally()
            .sharing(self.share_of_execution())
            .acting_as(principal)
            .interrupted_by(&self.interrupt);
        let mut results = Vec::new();
        let (before, rows) = (combined.catalog(), Rows::new(&mut execution, format));
        let changed = change_catalog(before, changes, principal, rows, &mut results);
        let effects = execution.finish(Ok(Vec::new()))?;
        let reads_ledger = reads_ledger(&effects);
        let Some(changed) = changed? else { return Ok(Some(LocalResults { results, reads_ledger })) };
        if at_commit.is_none() && changes.iter().any(SchemaChange::creates_table) {
            let references_ours = |child: &TableId| {
                let parents = changed.foreign_keys_of(*child);
                self.state.catalog.table(*child).is_none()
                    && parents.iter().any(|one| self.state.catalog.table(one.parent).is_some())
            };
            if changed.foreign_keys.keys().any(references_ours) {
                let message = "constraints on permanent tables may reference only permanent tables";
                return Err(SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message));
            }
            return match touches_temporary(&Effects { commands: Vec::new(), ..effects }) {
                true => Err(SqlError::unsupported("a table of the ledger made of temporary tables")
                    .hint("Say CREATE TEMPORARY TABLE.")),
                false => Ok(None),
            };
        }
        let views = self.views_in(&changed, at_commit.is_some());
        let own = temporary_part(&changed, &views);
        let is_known = Catalog { next_table: 0, next_type: 0, ..own.clone() }
            == Catalog { next_table: 0, next_type: 0, ..Catalog::clone(&self.state.catalog) };
        if is_known {
            // Nothing of ours: a change of the ledger that names one of our tables by chance, or in vain.
            let names_ours = changed
                .views
                .values()
                .any(|view| view.relations.iter().any(|name| self.state.catalog.tables.contains_key(name)));
            return match names_ours {
                true => Err(SqlError::unsupported("a view of a temporary table")),
                false => Ok(None),
            };
        }
        if ledger_part(&changed, &views) != ledger_part(ledger.catalog(), &BTreeSet::new()) {
            return Err(SqlError::unsupported("a change of temporary tables and of the ledger at once")
                .hint("Send them one after the other."));
        }
        let foreign =
            own.foreign_keys.values().flatten().any(|foreign_key| !foreign_key.parent.is_temporary());
        if foreign {
            let message = "constraints on temporary tables may reference only temporary tables";
            return Err(SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message));
        }
        refuse_deferrable(&own)?;
        self.apply(&effects.commands)?;
        if let Some(Some(at_commit)) = at_commit {
            let made = own.tables.keys().filter(|name| !self.state.catalog.tables.contains_key(*name));
            self.at_commit.extend(made.map(|name| (name.clone(), at_commit)));
        }
        self.change_catalog(own);
        Ok(Some(LocalResults { results, reads_ledger }))
    }

    /// The temporary views of a catalog that was made from the session's and the ledger's. `creates`: what is new in it is temporary.
    fn views_in(&self, changed: &Catalog, creates: bool) -> BTreeSet<String> {
        let is_ours = |name: &&String| {
            let is_new = creates && changed.row_types.get(*name).is_some_and(|id| id.is_temporary());
            changed.partition(name).is_none() && (is_new || self.state.catalog.views.contains_key(*name))
        };
        changed.views.keys().filter(is_ours).cloned().collect()
    }

    /// Makes the rows what the commands make of them.
    fn apply(&mut self, commands: &[Command]) -> Result<(), SqlError> {
        let mut changed = Overlay::new(self.state.as_ref());
        for command in commands {
            let (value, _) = apply_command(changed.current(&command.row)?, command)?;
            changed.set(command.row.clone(), value)?;
        }
        let changes = changed.into_changes();
        let mut bytes = self.bytes;
        for AfterImage { row: RowId { table, key }, value } in &changes {
            bytes -= self.state.get(*table, key).map_or(0, |row| stored(key, &row));
            bytes += value.as_ref().map_or(0, |row| stored(key, row));
        }
        if bytes > BYTES_MAX && bytes > self.bytes {
            let message =
                format!("the temporary tables of a session have at most {BYTES_MAX} bytes (BYTES_MAX)");
            return Err(SqlError::new(SqlState(*b"53200"), message).hint("Drop some of them."));
        }
        self.share_rows(bytes as u64)?;
        self.bytes = bytes;
        if !changes.is_empty() {
            let state = Arc::make_mut(&mut self.state);
            changes.iter().for_each(|change| state.apply(change));
        }
        Ok(())
    }

    fn change_catalog(&mut self, catalog: Catalog) {
        self.at_commit.retain(|name, _| catalog.tables.contains_key(name));
        Arc::make_mut(&mut self.state).change_catalog(Arc::new(catalog));
        self.count();
        self.combined = None;
    }

    /// Whether a text may be about temporary tables. Says so too often rather than too rarely.
    pub(crate) fn are_mentioned_in(&self, text: &str) -> bool {
        let contains = |word: &str| {
            let word = word.as_bytes();
            // A table may be called "".
            word.is_empty() || text.as_bytes().windows(word.len()).any(|part| part.eq_ignore_ascii_case(word))
        };
        let indexes = self.state.catalog.indexes.values().flatten().map(|index| &index.name);
        let relations = self.state.catalog.tables.keys().chain(self.state.catalog.views.keys());
        contains("temp") || relations.chain(indexes).any(|name| contains(name))
    }

    /// The ledger's catalog with these tables, compiled.
    fn combined(&mut self, ledger: &Arc<Library>) -> Result<Arc<Library>, SqlError> {
        if let (Some(known), Some(combined)) = (&self.ledger, &self.combined)
            && Arc::ptr_eq(known, ledger)
        {
            return Ok(combined.clone());
        }
        let own = &self.state.catalog;
        let mut catalog = Catalog::clone(ledger.catalog());
        if let Some(name) =
            own.tables.keys().chain(own.views.keys()).find(|name| catalog.columns_of(name).is_some())
        {
            let message =
                format!("the ledger has a relation \"{name}\" now, which is the name of a temporary table");
            return Err(SqlError::new(SqlState::DUPLICATE_TABLE, message)
                .hint("Discard the temporary tables, or use another session."));
        }
        catalog.next_table = own.next_table;
        catalog.next_type = own.next_type;
        catalog.row_types.extend(own.row_types.clone());
        catalog.tables.extend(own.tables.clone());
        catalog.views.extend(own.views.clone());
        catalog.indexes.extend(own.indexes.clone());
        catalog.foreign_keys.extend(own.foreign_keys.clone());
        catalog.sequences.extend(own.sequences.clone());
        let combined = Arc::new(ledger.successor(Arc::new(catalog))?);
        self.ledger = Some(ledger.clone());
        self.combined = Some(combined.clone());
        Ok(combined)
    }
}

/// Drops the temporary views that read a relation which is gone.
fn drop_views_of(catalog: &mut Catalog, relation: &str) {
    let reads = |view: &Arc<types::View>| view.relations.contains(relation).then(|| view.name.clone());
    for view in catalog.views.values().filter_map(reads).collect::<Vec<_>>() {
        catalog.views.remove(&view);
        catalog.row_types.remove(&view);
        drop_views_of(catalog, &view);
    }
}

/// Temporary tables are in no schema; in the catalog their names stand among those of `public`, whatever the search path.
fn name_without_path(name: &mut ObjectName) {
    if name.0.len() == 1 {
        name.0.insert(0, ObjectNamePart::Identifier(Ident::new(PUBLIC_SCHEMA)));
    }
}

/// Takes the word TEMPORARY out of CREATE TABLE and CREATE VIEW. Gives what ON COMMIT says where there was one.
fn take_temporary(statements: &mut [ParsedStatement]) -> Result<Option<Option<AtCommit>>, SqlError> {
    let mut found = None;
    for statement in statements {
        let at_commit = match statement {
            ParsedStatement::CreateTableAs(create) if create.temporary => {
                create.temporary = false;
                name_without_path(&mut create.name);
                match create.on_commit.take() {
                    Some(Keyword::DELETE) => Some(AtCommit::DeleteRows),
                    Some(Keyword::DROP) => Some(AtCommit::Drop),
                    _ => None,
                }
            }
            ParsedStatement::Sql(statement) => match statement.as_mut() {
                Statement::CreateTable(create) if create.temporary => {
                    create.temporary = false;
                    name_without_path(&mut create.name);
                    match create.on_commit.take() {
                        Some(OnCommit::DeleteRows) => Some(AtCommit::DeleteRows),
                        Some(OnCommit::Drop) => Some(AtCommit::Drop),
                        Some(OnCommit::PreserveRows) | None => None,
                    }
                }
                Statement::CreateView(create) if create.temporary => {
                    create.temporary = false;
                    name_without_path(&mut create.name);
                    None
                }
                _ => continue,
            },
            _ => continue,
        };
        if found.replace(at_commit).is_some_and(|known| known != at_commit) {
            return Err(SqlError::unsupported(
                "several temporary tables with different ON COMMIT in one script",
            ));
        }
    }
    Ok(found)
}

fn reads_ledger(effects: &Effects) -> bool {
    effects.reads.iter().any(|read| !read.row.table.is_temporary())
        || effects.scans.iter().any(|scan| !scan.table.is_temporary())
}

fn touches_temporary(effects: &Effects) -> bool {
    effects.reads.iter().any(|read| read.row.table.is_temporary())
        || effects.scans.iter().any(|scan| scan.table.is_temporary())
        || effects.commands.iter().any(|command| command.row.table.is_temporary())
}

/// What a catalog has of temporary tables and views.
fn temporary_part(catalog: &Catalog, views: &BTreeSet<String>) -> Catalog {
    part(catalog, views, true)
}

/// What a catalog has of the ledger, but for its counters.
fn ledger_part(catalog: &Catalog, views: &BTreeSet<String>) -> Catalog {
    Catalog { next_table: 0, next_type: 0, version: 0, ..part(catalog, views, false) }
}

/// `views`: those that are temporary.
fn part(catalog: &Catalog, views: &BTreeSet<String>, temporary: bool) -> Catalog {
    let mut part = catalog.clone();
    part.tables.retain(|_, table| table.id.is_temporary() == temporary);
    part.indexes.retain(|table, _| table.is_temporary() == temporary);
    part.foreign_keys.retain(|table, _| table.is_temporary() == temporary);
    part.triggers.retain(|table, _| table.is_temporary() == temporary);
    part.sequences.retain(|_, sequence| {
        sequence.owner.as_ref().is_some_and(|owner| owner.table.is_temporary()) == temporary
    });
    // A view of a temporary table has a number of that kind for a moment.
    let is_ours = |name: &String| {
        let table = catalog.tables.get(name).or_else(|| Some(catalog.partition(name)?.0));
        table.is_some_and(|table| table.id.is_temporary()) || views.contains(name)
    };
    part.row_types.retain(|name, _| is_ours(name) == temporary);
    if temporary {
        part.types.clear();
        part.views.retain(|name, _| is_ours(name));
        part.procedures.clear();
        part.aggregates.clear();
        (part.version, part.checkpoint) = (0, 0);
    } else {
        part.views
            .retain(|name, _| !views.contains(name) && (catalog.partition(name).is_none() || !is_ours(name)));
    }
    part
}
