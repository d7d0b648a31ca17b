//! Transactions, ready to run.

use crate::ddl::bind_schema_change;
use crate::governance::run_governed;
use crate::insert::insert_rows;
use crate::library::Library;
use crate::script::{BoundScript, Script, StatementKind, Step, is_schema_change};
use crate::session::again::{committed, guard_results, run_again, run_again_alone};
use crate::session::place::Place;
use execute::{Analysis, Context, Execution, KnownFrame, Moves, Oracles, SessionPlace, refused};
use plan::expression::Expression;
use plan::polymorphic::Actual;
use plan::statement::{default_row, find_rows};
use state::{Effects, Footprint, Simulate, Snapshot, StoreError, Watched};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use syntax::parse::{self, ParsedStatement};
use types::session_format::within_format;
use types::{
    AttestingMembers, Catalog, ClientId, DataType, ExecutionVersion, MemoryPool, MemoryShare, OutputColumn,
    PartCommitment, PartMembers, Payload, Principal, SchemaCertificate, SessionResults, SessionStep,
    SqlError, SqlState, StatementResult, TriggerEvent, Value, results_have_changed,
};

/// What is told to an execution in no block: it ends soon after `interrupt` is set, and shares `memory` with others.
struct Local {
    interrupt: Arc<AtomicBool>,
    memory: Option<Arc<MemoryPool>>,
}

/// One transaction, ready to run on a snapshot as often as a protocol needs.
pub struct Invocation {
    oracles: Option<Arc<dyn Oracles>>,
    /// It runs for one session, in no block.
    local: Option<Local>,
    library: Arc<Library>,
    context: Context,
    principal: Principal,
    payload: Arc<Payload>,
    /// Who signed it, and what the client calls it.
    client: ClientId,
    /// Where it notes what it moves to other schemas with members.
    moves: Option<Arc<Moves>>,
}

impl Invocation {
    /// The transaction with this payload. `library` must be that of the catalog of the snapshots it will run on.
    pub fn new(library: Arc<Library>, context: Context, payload: impl Into<Arc<Payload>>) -> Invocation {
        Invocation {
            oracles: None,
            local: None,
            library,
            context,
            principal: Principal::default(),
            payload: payload.into(),
            client: ClientId::default(),
            moves: None,
        }
    }

    /// The same, in the name of this principal; else it is the administrator's of the first organisation.
    pub fn by(mut self, principal: Principal) -> Invocation {
        self.principal = principal;
        self
    }

    /// The same, signed by this client.
    pub fn signed_by(mut self, client: ClientId) -> Invocation {
        self.client = client;
        self
    }

    /// The place of a transaction block of this time.
    fn session_place(&self, now_ms: u64) -> SessionPlace {
        SessionPlace { now_ms, organisation: self.principal.organisation, seed: self.client.session_seed() }
    }

    /// The same for one session, in no block; it ends soon after `interrupt` is set, and shares `memory` with others.
    pub(crate) fn locally(
        mut self,
        interrupt: &Arc<AtomicBool>,
        memory: &Option<Arc<MemoryPool>>,
    ) -> Invocation {
        self.local = Some(Local { interrupt: Arc::clone(interrupt), memory: memory.clone() });
        self
    }

    /// The same, which may ask these oracles.
    pub fn asking(mut self, oracles: Arc<dyn Oracles>) -> Invocation {
        self.oracles = Some(oracles);
        self
    }

    /// The same, which notes what it moves to other schemas with members.
    pub fn moving(mut self, moves: Arc<Moves>) -> Invocation {
        self.moves = Some(moves);
        self
    }

    fn call(
        &self,
        execution: &mut Execution<'_>,
        name: &str,
        arguments: &[Value],
    ) -> Result<Vec<StatementResult>, SqlError> {
        let name = &self.library.called_procedure(name, arguments)?;
        let (mut values, defaults) = self.call_arguments(name, arguments)?;
        execution.authorise_call(name)?;
        for default in &defaults {
            values.push(execution.evaluate(default, &[])?);
        }
        let outputs = execution.call(name, Actual::default(), values)?.values;
        let parameters = self.library.definition(name).map_or(&[][..], |procedure| &procedure.parameters);
        let parameters = parameters.iter().enumerate();
        let parameters = parameters.filter(|(_, parameter)| parameter.mode.is_output());
        let columns: Vec<OutputColumn> = parameters
            .map(|(position, parameter)| plan::routines::output_column(position, parameter))
            .collect();
        let rows = if columns.is_empty() { Vec::new() } else { vec![outputs] };
        let notices = execution.take_notices();
        Ok(vec![StatementResult { tag: "CALL".to_string(), columns, rows, notices }])
    }

    /// The arguments of a CALL with the types of the procedure's parameters, and what stands for those left out.
    fn call_arguments(
        &self,
        name: &str,
        arguments: &[Value],
    ) -> Result<(Vec<Value>, Vec<Expression>), SqlError> {
        let procedure = self
            .library
            .definition(name)
            .ok_or_else(|| plan::routines::no_procedure(name, &types_of(arguments)))?;
        let inputs = || procedure.inputs();
        let fits = procedure.function.is_none()
            && inputs().count() >= arguments.len()
            && inputs().skip(arguments.len()).all(|parameter| parameter.default.is_some())
            && inputs().zip(arguments).all(|(parameter, argument)| {
                let found = argument.data_type();
                // A text may be a literal of unknown type, as psql sends it.
                found == DataType::Text(None) || types::can_cast_implicitly(found, parameter.data_type)
            });
        if !fits {
            return Err(plan::routines::no_procedure(name, &types_of(arguments)));
        }
        let values = inputs().zip(arguments);
        let types = self.library.tables().routines().types();
        arguments.iter().try_for_each(|argument| types.check_given(argument))?;
        let values =
            values.map(|(parameter, argument)| types.cast(argument.clone(), parameter.data_type.family()));
        let values = values.collect::<Result<Vec<Value>, SqlError>>()?;
        let routines = self.library.tables().routines();
        let defaults = inputs().skip(arguments.len()).map(|parameter| routines.default_of(parameter));
        Ok((values, defaults.collect::<Result<_, _>>()?))
    }

    fn script(
        &self,
        execution: &mut Execution<'_>,
        sql: &str,
        parameters: &[Value],
    ) -> Result<Vec<StatementResult>, SqlError> {
        let types: Vec<DataType> = parameters.iter().map(Value::data_type).collect();
        let script = self.library.script(sql, &types)?;
        match script.kind() {
            StatementKind::Copy { .. } => {
                Err(SqlError::unsupported("COPY in a transaction").hint("Insert the rows."))
            }
            _ => {
                let frame = script.frame(parameters)?;
                script.run_steps(execution, &frame, true)
            }
        }
    }

    /// The statements of a script of which one changes the schema.
    fn script_with_schema_change(&self) -> Option<Script<'_>> {
        let Payload::Script { sql, .. } = self.payload.call() else { return None };
        if !parse::is_schema_change(sql, self.library.version()) {
            return None;
        }
        // What cannot be read says so where it is run.
        let script = Script::parse(sql, self.library.version()).ok()?;
        let types = self.library.tables().routines().types().with_search_path(&script.settings.search_path);
        let changes =
            |statement: &ParsedStatement| !matches!(bind_schema_change(&types, statement), Ok(None));
        script.statements.iter().any(changes).then_some(script)
    }

    /// What a transaction does that changes the schema; `None` where it does not.
    fn change_schema(&self, snapshot: &dyn Snapshot) -> Option<Effects> {
        let (context, principal) = (self.context, &self.principal);
        let place = |session| Place {
            snapshot,
            context,
            principal,
            session,
            interrupt: None,
            read_only: false,
            row_locks: None,
        };
        match self.payload.call() {
            Payload::Script { sql, .. } => {
                let script = self.script_with_schema_change()?;
                if let Some(refused) = self.refuses_change_of_assets(snapshot) {
                    return Some(refused);
                }
                Some(run_governed(&self.library, &place(None), sql, script))
            }
            Payload::Session { steps, now_ms, results }
                if is_schema_change(&self.payload, self.library.version()) =>
            {
                let is_given = |found: &SessionResults| found.digest() == *results;
                let mut effects = run_again_alone(
                    &self.library,
                    &place(Some(self.session_place(*now_ms))),
                    steps,
                    &is_given,
                );
                guard_results(&mut effects.commands);
                Some(effects)
            }
            _ => None,
        }
    }

    /// Where rows of a schema have stakeholders, nobody changes what protects them without the others: the schema is changed with
    /// the signatures of all of its members.
    fn refuses_change_of_assets(&self, snapshot: &dyn Snapshot) -> Option<Effects> {
        let missing = self.principal.signers.as_ref()?.missing_members();
        let catalog = snapshot.catalog();
        let has_policy = catalog.tables.values().any(|table| table.endorsement.is_some())
            || catalog.procedures.values().any(|procedure| procedure.endorsement.is_some());
        if missing.is_empty() || !has_policy {
            return None;
        }
        let message = format!(
            "a change of a schema with stakeholders needs the signature of all its members: {} has not signed",
            missing.join(", ")
        );
        let error = SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message)
            .hint("Offer it with entente.offer(…); the others sign it with entente.sign(…).");
        let (reads, scans, commands, catalog) = Default::default();
        Some(Effects { reads, scans, commands, result: Err(error), steps: 1, catalog })
    }

    /// From execution version 8 on an error's detail is as long as a receipt may show it.
    fn with_short_detail(&self, effects: Effects) -> Effects {
        match self.library.version() >= ExecutionVersion::V8 {
            true => Effects { result: effects.result.map_err(SqlError::with_short_detail), ..effects },
            false => effects,
        }
    }

    /// What a script may touch. One that cannot be bound touches nothing and says so when it runs.
    fn analyse_script(
        &self,
        analysis: &mut Analysis<'_>,
        sql: &str,
        parameters: &[Value],
    ) -> Result<(), SqlError> {
        let types: Vec<DataType> = parameters.iter().map(Value::data_type).collect();
        let Ok(script) = self.library.script(sql, &types) else { return Ok(()) };
        analyse_bound(analysis, &script, parameters)
    }

    /// What an insert of rows may touch: the keys up to the first row that cannot be inserted.
    fn analyse_insert(
        &self,
        analysis: &mut Analysis<'_>,
        table: &str,
        columns: &[String],
        rows: impl Iterator<Item = Vec<Value>>,
    ) -> Result<(), SqlError> {
        /// Rows that are looked at one by one; more may be anywhere.
        const KNOWN_ROWS_MAX: usize = 32_768;
        let Ok((table, _)) = find_rows(self.library.tables(), table) else { return Ok(()) };
        let table = &table;
        analysis.triggers(table, TriggerEvent::Insert)?;
        let types = self.library.tables().routines().types();
        let defaults = default_row(table);
        let nothing = KnownFrame::new(Vec::new());
        for (ordinal, default) in defaults.iter().enumerate() {
            if !columns.contains(&table.columns[ordinal].name) {
                analysis.expression(default, &nothing)?;
            }
        }
        for (number, values) in rows.enumerate() {
            if number == KNOWN_ROWS_MAX {
                analysis.insert_known(table, &|_, _| None, types::ColumnSet::EXISTS);
                return Ok(());
            }
            let known = |analysis: &Analysis<'_>, ordinal: u16| {
                let column = &table.columns[usize::from(ordinal)];
                match columns.iter().position(|name| *name == column.name) {
                    Some(position) => types.assign(values.get(position)?.clone(), column.data_type).ok(),
                    None => analysis.evaluate(&defaults[usize::from(ordinal)], &nothing),
                }
            };
            // A key that cannot be is where the transaction ends.
            let given = |ordinal: &u16| {
                columns.contains(&table.columns[usize::from(*ordinal)].name)
                    || !defaults[usize::from(*ordinal)].runs_anything()
            };
            if table.key.iter().any(|ordinal| given(ordinal) && known(analysis, *ordinal).is_none()) {
                return Ok(());
            }
            analysis.insert_known(table, &known, types::ColumnSet::EXISTS);
        }
        Ok(())
    }
}

impl Simulate for Invocation {
    fn simulate(&self, snapshot: &dyn Snapshot) -> Result<Effects, StoreError> {
        self.library.value_limits().within(|| self.effects_on(snapshot))
    }

    fn footprint(&self, catalog: &Catalog) -> Result<Footprint, SqlError> {
        debug_assert_eq!(catalog.version, self.library.catalog().version, "a library of this catalog");
        self.library.value_limits().within(|| self.analysed())
    }
}

impl Invocation {
    fn effects_on(&self, snapshot: &dyn Snapshot) -> Result<Effects, StoreError> {
        let watched = Watched::new(snapshot);
        if let Some(effects) = self.change_schema(&watched) {
            return watched.check(self.with_short_detail(effects));
        }
        let mut execution =
            Execution::new(&*self.library, snapshot, self.context).asking(self.oracles.as_deref());
        execution = execution.acting_as(&self.principal).moving(self.moves.as_deref());
        if let Some(Local { interrupt, memory }) = &self.local {
            let share = memory.as_ref().map_or_else(MemoryShare::default, MemoryShare::of);
            execution = execution.locally().sharing(share).interrupted_by(interrupt);
        }
        let result = match self.payload.call() {
            Payload::Call { procedure, arguments } => self.call(&mut execution, procedure, arguments),
            Payload::Script { sql, parameters } => self.script(&mut execution, sql, parameters),
            Payload::Insert { table, columns, rows } => {
                insert_rows(&mut execution, table, columns, rows.iter().cloned())
            }
            // What it does its schemas' members alone know. Here it takes its place in the order.
            Payload::Parts { parts } => Ok(vec![who_votes(&self.library, parts)]),
            // So they take effect in the schemas that they name.
            Payload::SchemaOutcomes { certificates } | Payload::MovingOutcomes { certificates } => {
                Ok(vec![who_attests(&self.library, certificates)])
            }
            Payload::Agreed(_) => Err(SqlError::unsupported("a part inside of a part")),
            // Whoever looks whether parts are held has read it before.
            Payload::HeldParts { .. } => Ok(vec![tagged("HELD PARTS")]),
            Payload::Session { steps, now_ms, results } => {
                let given = run_again(&self.library, &mut execution, steps, self.session_place(*now_ms));
                let same = given.is_some_and(|given| given.digest() == *results);
                if same { Ok(committed()) } else { Err(results_have_changed()) }
            }
        };
        // What it has put off to its end.
        let result = result.and_then(|results| execution.settle_deferred().map(|()| results));
        let said = result.is_ok().then(|| execution.take_notifications()).flatten();
        let result = result.map(|results| results.into_iter().chain(said).collect());
        let mut effects = execution.finish(result)?;
        if matches!(self.payload.as_ref(), Payload::Session { .. }) {
            guard_results(&mut effects.commands);
        }
        Ok(self.with_short_detail(effects))
    }

    fn analysed(&self) -> Result<Footprint, SqlError> {
        if self.script_with_schema_change().is_some() {
            return Err(refused("a schema change together with other transactions"));
        }
        let mut analysis = Analysis::new(&*self.library, self.context);
        match self.payload.call() {
            Payload::Call { procedure, arguments } => {
                if let Ok((values, defaults)) = self.call_arguments(procedure, arguments) {
                    let nothing = KnownFrame::new(Vec::new());
                    let mut values: Vec<Option<Value>> = values.into_iter().map(Some).collect();
                    for default in &defaults {
                        analysis.expression(default, &nothing)?;
                        values.push(analysis.evaluate(default, &nothing));
                    }
                    analysis.call(procedure, Actual::default(), values)?;
                }
            }
            Payload::Script { sql, parameters } => self.analyse_script(&mut analysis, sql, parameters)?,
            Payload::Insert { table, columns, rows } => {
                self.analyse_insert(&mut analysis, table, columns, rows.iter().cloned())?;
            }
            Payload::Parts { .. }
            | Payload::SchemaOutcomes { .. }
            | Payload::MovingOutcomes { .. }
            | Payload::HeldParts { .. }
            | Payload::Agreed(_) => {}
            Payload::Session { steps, now_ms, .. } => {
                analysis.set_now(*now_ms);
                for step in steps {
                    match step {
                        SessionStep::Run { parameters, .. } | SessionStep::RunGiven { parameters, .. } => {
                            let Ok(Some(script)) = self.library.script_of(step) else { continue };
                            analyse_bound(&mut analysis, &script, parameters)?;
                        }
                        SessionStep::Insert { table, columns, rows } => {
                            self.analyse_insert(&mut analysis, table, columns, rows.iter())?;
                        }
                        // What undone steps have touched is part of it.
                        SessionStep::Savepoint(_) | SessionStep::RollbackTo(_) | SessionStep::Release(_) => {}
                    }
                }
            }
        }
        Ok(analysis.finish())
    }
}

/// What a bound script may touch.
fn analyse_bound(
    analysis: &mut Analysis<'_>,
    script: &BoundScript,
    parameters: &[Value],
) -> Result<(), SqlError> {
    if script.kind() == StatementKind::SchemaChange {
        return Err(refused("a schema change together with other transactions"));
    }
    let Ok(frame) = script.frame(parameters) else { return Ok(()) };
    let frame = KnownFrame::new(frame);
    within_format(script.format, || {
        script.steps.iter().try_for_each(|step| match step {
            Step::Statement(statement) => analysis.statement(statement, &frame),
            Step::Block(block) => plpgsql::footprint(block, analysis, Vec::new()),
            // A cursor's rows belong to what has opened it.
            Step::Constraints(..) | Step::Notify(_) | Step::Cursor(_) | Step::Schema(_) | Step::Copy => {
                Ok(())
            }
        })
    })
}

/// What the ledger says of a transaction in schemas with members that it has admitted: who the members are, who vote on its parts.
/// From execution version 6 on also where there is one part: who the members were decides whose signatures a change of their schema
/// needs.
fn who_votes(library: &Library, parts: &[PartCommitment]) -> StatementResult {
    if parts.len() < 2 && library.version() < ExecutionVersion::V6 {
        return PartMembers::to_result(&[]);
    }
    let catalog = library.catalog();
    let members = parts.iter().filter_map(|part| {
        let members = catalog.members_of(&part.schema)?;
        Some(PartMembers {
            schema: part.schema.clone(),
            number: members.number,
            organisations: members.organisations.clone(),
        })
    });
    PartMembers::to_result(&members.collect::<Vec<_>>())
}

/// What the ledger says of outcomes of schemas that it has taken in: who the members are that may have attested them, from execution
/// version 5 on. Schemas that are gone have none.
fn who_attests(library: &Library, certificates: &[SchemaCertificate]) -> StatementResult {
    if library.version() < ExecutionVersion::V5 {
        return tagged("SCHEMA OUTCOMES");
    }
    let attested: BTreeSet<u32> = certificates.iter().map(|one| one.statement.schema).collect();
    let schemas = library.catalog().schemas.iter();
    let members = schemas.filter_map(|(name, schema)| {
        let members = schema.members.as_ref().filter(|members| attested.contains(&members.number))?;
        Some(AttestingMembers {
            schema: name.clone(),
            number: members.number,
            changed: members.changed,
            organisations: members.organisations.clone(),
        })
    });
    AttestingMembers::to_result(&members.collect::<Vec<_>>())
}

fn tagged(tag: &str) -> StatementResult {
    StatementResult { tag: tag.to_string(), ..StatementResult::default() }
}

fn types_of(values: &[Value]) -> String {
    values.iter().map(|value| value.data_type().to_string()).collect::<Vec<_>>().join(", ")
}
