//! Transactions that change the schema among other statements: what comes behind a schema change runs on the catalog and
//! the rows that it leaves.
//!
//! Such a transaction runs alone, so that its commands come out as its simulation has it: what it has come to can stand
//! in front of the snapshot.
//!
//! At a schema change the commands so far are applied to changes in front of the snapshot (`state::Changes`), the
//! catalog is changed there, and indexes are filled. The next statements are bound to the new catalog and run on
//! that. What the transaction leaves is the commands of all stages, less those on tables that are gone, and the last
//! catalog.

use crate::bind::bind_parsed;
use crate::consent::check_change;
use crate::ddl::change::SchemaChange;
use crate::ddl::rows::Rows;
use crate::ddl::{bind_change_behind, bind_schema_change, change_catalog};
use crate::library::Library;
use crate::script::{Script, StatementKind};
use crate::session::place::Place;
use execute::{Execution, Suspended, refuse_schema_change};
use state::{Changes, Effects, Overlay, Snapshot, apply_command};
use std::collections::BTreeSet;
use std::sync::Arc;
use types::session_format::SessionFormat;
use types::{Catalog, ExecutionVersion, SqlError, SqlState, StatementResult, TableId};

/// Steps that compiling one table or routine of the catalog again counts as.
pub(crate) const COMPILE_STEPS: u64 = 10;

/// The schema as a transaction has it so far, and the rows as its last schema change has found them.
#[derive(Clone)]
pub(crate) struct Stage {
    pub library: Arc<Library>,
    /// What the statements up to the last schema change have made of the snapshot.
    changes: Arc<Changes>,
    /// How many of the transaction's commands are in `changes`.
    settled: usize,
}

/// What a statement of a stage sees besides the transaction's newest writes.
pub(crate) enum Seen<'a> {
    Snapshot(&'a dyn Snapshot),
    Changed(Overlay<'a>),
}

impl Seen<'_> {
    pub fn as_snapshot(&self) -> &dyn Snapshot {
        match self {
            Seen::Snapshot(snapshot) => *snapshot,
            Seen::Changed(overlay) => overlay,
        }
    }
}

impl Stage {
    /// The schema of the snapshot.
    pub fn new(library: Arc<Library>) -> Stage {
        Stage { library, changes: Arc::default(), settled: 0 }
    }

    /// The catalog, where the transaction has changed it.
    pub fn changed_catalog(&self) -> Option<&Arc<Catalog>> {
        self.changes.catalog()
    }

    /// What a statement sees besides the transaction's newest writes.
    pub fn seen<'a>(&'a self, snapshot: &'a dyn Snapshot) -> Seen<'a> {
        match self.changed_catalog() {
            None => Seen::Snapshot(snapshot),
            Some(_) => Seen::Changed(Overlay::lent(snapshot, &self.changes)),
        }
    }

    /// Changes the schema. The stage is the next one then; it is the same after an error.
    ///
    /// # Errors
    /// The first change that cannot be made.
    pub fn change_schema(
        &mut self,
        place: &Place<'_>,
        suspended: &mut Suspended,
        (changes, format): (&[Box<SchemaChange>], SessionFormat),
    ) -> Result<Vec<StatementResult>, SqlError> {
        let roles_may = self.library.version() >= ExecutionVersion::V10;
        if !(roles_may && changes.iter().all(|change| change.is_grant())) {
            refuse_schema_change(place.principal)?;
        }
        // Before its place in a block is known, a transaction block has no height.
        let outside = changes.iter().find_map(|change| change.stands_outside_of_blocks());
        if place.context.height == u64::MAX
            && let Some(what) = outside
        {
            let message = format!("{what} cannot run inside a transaction block");
            return Err(SqlError::new(SqlState::ACTIVE_TRANSACTION, message).hint("Send it on its own."));
        }
        self.run_behind(place, suspended, &mut |execution| execution.settle_free_keys())?;
        let mut overlay = Overlay::with_changes(place.snapshot, Changes::clone(&self.changes));
        for command in &suspended.commands()[self.settled..] {
            let (value, _) = apply_command(overlay.current(&command.row)?, command)?;
            overlay.set(command.row.clone(), value)?;
        }
        let before = self.library.catalog().clone();
        let compiled = (before.tables.len() + before.views.len() + before.procedures.len()) as u64;
        let copied = self.changes.len() as u64;
        let (commands, own) = (suspended.commands().len(), suspended.take_own());
        let mut results = Vec::new();
        let mut execution = place.resume(&self.library, &overlay, suspended);
        let changed = execution.charge(copied + COMPILE_STEPS * compiled).and_then(|()| {
            let changes = changes.iter().map(AsRef::as_ref);
            let rows = Rows::new(&mut execution, format);
            change_catalog(&before, changes, place.principal, rows, &mut results)
        });
        drop(execution.take_notices());
        *suspended = execution.suspend();
        let next = changed.and_then(|changed| match changed {
            None => Ok(None),
            Some(catalog) => {
                suspended.refuse_change(&before, &catalog)?;
                check_change(place, &catalog)?;
                let catalog = Arc::new(catalog);
                let library = Arc::new(self.library.successor(catalog.clone())?);
                Ok(Some((catalog, library)))
            }
        });
        match next {
            Ok(Some((catalog, library))) => {
                overlay.change_catalog(catalog)?;
                for command in &suspended.commands()[commands..] {
                    let (value, _) = apply_command(overlay.current(&command.row)?, command)?;
                    overlay.set(command.row.clone(), value)?;
                }
                drop(suspended.take_own());
                let settled = suspended.commands().len();
                *self = Stage { library, changes: Arc::new(overlay.changes()), settled };
                Ok(results)
            }
            Ok(None) => {
                suspended.go_back(commands, own);
                Ok(results)
            }
            Err(error) => {
                suspended.go_back(commands, own);
                Err(error)
            }
        }
    }

    /// The end of the transaction: makes the checks that it has put off.
    ///
    /// # Errors
    /// `23503`, `23505`
    pub fn settle(&self, place: &Place<'_>, suspended: &mut Suspended) -> Result<(), SqlError> {
        self.run_behind(place, suspended, &mut |execution| execution.settle_deferred())
    }

    /// Does something about the checks that the transaction has put off, where there are any.
    fn run_behind(
        &self,
        place: &Place<'_>,
        suspended: &mut Suspended,
        run: &mut dyn FnMut(&mut Execution<'_>) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        if !suspended.has_checks() {
            return Ok(());
        }
        let seen = self.seen(place.snapshot);
        let mut execution = place.resume(&self.library, seen.as_snapshot(), suspended);
        let result = run(&mut execution);
        *suspended = execution.suspend();
        result
    }

    /// What a transaction does that has come here from the schema `before`, and ends with this. What it has read nobody asks for: it runs alone.
    pub fn effects(
        &self,
        before: &Catalog,
        mut suspended: Suspended,
        mut result: Result<Vec<StatementResult>, SqlError>,
    ) -> Effects {
        let said = suspended.take_notifications();
        let (mut commands, steps) = suspended.into_commands();
        match &mut result {
            Ok(results) => results.extend(said),
            Err(_) => commands.clear(),
        }
        // Rows of a table that it has dropped, or of which it has made another, go with the table; keys of an index that it
        // has made follow from the rows.
        let known: BTreeSet<TableId> = before.row_tables().collect();
        let catalog = self.library.catalog();
        let kept = catalog.row_tables();
        let besides: BTreeSet<TableId> = catalog.kept_besides_tables().map(|(table, _)| table).collect();
        let has_rows = |table: &TableId| catalog.table(*table).is_some() || besides.contains(table);
        let kept: BTreeSet<TableId> = kept.filter(|table| has_rows(table) || known.contains(table)).collect();
        commands.retain(|command| kept.contains(&command.row.table));
        let catalog = self.changed_catalog().filter(|_| result.is_ok()).cloned();
        Effects { reads: Vec::new(), scans: Vec::new(), commands, result, steps, catalog }
    }
}

/// Runs a script of which some statements change the schema.
pub(crate) fn run_script(library: &Arc<Library>, place: &Place<'_>, script: Script<'_>) -> Effects {
    let (mut stage, mut suspended) = (Stage::new(library.clone()), Suspended::default());
    let result = run_statements(&mut stage, &mut suspended, place, script);
    stage.effects(place.snapshot.catalog(), suspended, result)
}

fn run_statements(
    stage: &mut Stage,
    suspended: &mut Suspended,
    place: &Place<'_>,
    script: Script<'_>,
) -> Result<Vec<StatementResult>, SqlError> {
    let Script { settings, source, statements } = script;
    let mut results = Vec::new();
    // Changes that follow one another are made at once: the catalog is compiled once.
    let mut waiting: Vec<Box<SchemaChange>> = Vec::new();
    for statement in statements {
        let types = stage.library.tables().routines().types().with_search_path(&settings.search_path);
        let change = match waiting.is_empty() {
            true => bind_schema_change(&types, &statement)?,
            false => bind_change_behind(&types, &statement)?,
        };
        if let Some(change) = change {
            if change.runs_a_query() && !waiting.is_empty() {
                results.extend(stage.change_schema(place, suspended, (&waiting, settings.format))?);
                waiting.clear();
            }
            waiting.push(Box::new(change));
            continue;
        }
        if !waiting.is_empty() {
            results.extend(stage.change_schema(place, suspended, (&waiting, settings.format))?);
            waiting.clear();
        }
        let now = stage.clone();
        let only = Script { settings: settings.clone(), source, statements: vec![statement] };
        let script = bind_parsed(&now.library, only, &[])?;
        if matches!(script.kind(), StatementKind::Copy { .. }) {
            return Err(SqlError::unsupported("COPY in a transaction").hint("Insert the rows."));
        }
        let frame = script.frame(&[])?;
        let seen = now.seen(place.snapshot);
        let mut execution = place.resume(&now.library, seen.as_snapshot(), suspended);
        let given = script.run_steps(&mut execution, &frame, true);
        *suspended = execution.suspend();
        results.extend(given?);
    }
    if !waiting.is_empty() {
        results.extend(stage.change_schema(place, suspended, (&waiting, settings.format))?);
    }
    stage.settle(place, suspended)?;
    Ok(results)
}
