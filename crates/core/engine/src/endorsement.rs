//! Endorsement: what endorsers execute or agree to, whether endorsements suffice, and effects as validation works on them.

use crate::VerifiedTransaction;
use crate::agreement::{self, ProposedScript};
use parking_lot::Mutex;
use sql::{Context, Invocation, Involved, Library, Oracles, bind_endorsed};
use state::{Effects, Endorsed, EndorsedForm, Footprint, Simulate, Snapshot, StoreError, endorsed_effects};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use types::{
    Catalog, Charter, ClientId, EndorsedEffects, EndorsementFault, ExecutionModel, OracleValue, Payload,
    Policy, PolicyError, Principal, SqlError, SqlState, TableId, TransactionId, limits,
};

/// What a ledger asks of endorsements.
pub(crate) struct EndorsementRules {
    /// Names of the organisations, by position.
    names: Vec<String>,
    /// Where nothing else is said.
    policy: Policy,
    run_again: bool,
    /// Who endorses agrees to a script, and has not executed it.
    agrees: bool,
}

impl EndorsementRules {
    /// As the charter says.
    ///
    /// # Errors
    /// A policy that names nobody, or is none.
    pub(crate) fn new(charter: &Charter) -> Result<EndorsementRules, PolicyError> {
        Ok(EndorsementRules {
            names: charter.organisations.iter().map(|organisation| organisation.name.clone()).collect(),
            policy: charter.endorsement_policy()?,
            run_again: charter.endorsement.run_again,
            agrees: charter.execution == ExecutionModel::WhateverThenAgree,
        })
    }

    /// Everything whose policy a transaction with these effects must satisfy, in turn, until one says no.
    fn each_policy(
        &self,
        library: &Library,
        payload: &Payload,
        effects: &EndorsedEffects,
        visit: &mut dyn FnMut(Subject<'_>, &Policy) -> Result<(), EndorsementFault>,
    ) -> Result<(), EndorsementFault> {
        let involved = library.involved(payload).map_err(|error| EndorsementFault::Effects(error.message))?;
        if involved.statements || involved.procedures.is_empty() {
            visit(Subject::Ledger, &self.policy)?;
        }
        for Involved { procedure, policy } in involved.procedures.iter() {
            visit(Subject::Procedure(procedure), policy.as_ref().unwrap_or(&self.policy))?;
        }
        let written: BTreeSet<TableId> = effects.writes.iter().map(|write| write.table).collect();
        for (table, policy) in written.into_iter().filter_map(|table| library.table_policy(table)) {
            visit(Subject::Table(table), policy)?;
        }
        Ok(())
    }

    /// Whether these endorsers satisfy a policy.
    fn hold(&self, endorsers: &[u16], of: Subject<'_>, policy: &Policy) -> Result<(), EndorsementFault> {
        let name = |position: &u16| self.names.get(usize::from(*position)).map(String::as_str);
        let endorsers: Vec<&str> = endorsers.iter().filter_map(name).collect();
        match policy.is_satisfied(&|name| endorsers.contains(&name)) {
            true => Ok(()),
            false => Err(EndorsementFault::Policy {
                of: of.to_string(),
                policy: policy.to_string(),
                found: if endorsers.is_empty() { "nobody".to_string() } else { endorsers.join(", ") },
            }),
        }
    }

    /// Whether a script is agreed to as the tables that it writes ask for. `now_ms`: the time of its block.
    fn judge_agreement(
        &self,
        transaction: &VerifiedTransaction,
        library: &Library,
        now_ms: u64,
    ) -> Result<(), EndorsementFault> {
        // What is no script is refused in its place, with words of its own.
        let policies = agreement::policies(library, &transaction.payload, now_ms).unwrap_or_default();
        let (endorsers, schema) = match &transaction.endorsed {
            Some(agreed) => (&*agreed.endorsers, agreed.effects.agreed_schema()),
            None => (&[][..], None),
        };
        let holds = library.catalog().version;
        match schema {
            Some(found) if !policies.is_empty() && found != holds => Err(EndorsementFault::Effects(format!(
                "the script was agreed to under version {found} of the schema, and version {holds} holds; have it agreed to again"
            ))),
            _ => policies
                .into_values()
                .try_for_each(|(table, policy)| self.hold(endorsers, Subject::Table(table), policy)),
        }
    }

    /// The endorsed effects of a transaction, if its endorsers are enough and its effects can be. `None`: it has none. `now_ms`: the
    /// time of its block.
    ///
    /// # Errors
    /// What is wrong with them.
    pub(crate) fn judge(
        &self,
        transaction: &VerifiedTransaction,
        library: &Library,
        now_ms: u64,
    ) -> Result<Option<Endorsed>, EndorsementFault> {
        if self.agrees {
            return self.judge_agreement(transaction, library, now_ms).map(|()| None);
        }
        let Some(endorsement) = &transaction.endorsed else { return Ok(None) };
        let mut hold = |of: Subject<'_>, policy: &Policy| self.hold(&endorsement.endorsers, of, policy);
        self.each_policy(library, &transaction.payload, &endorsement.effects, &mut hold)?;
        let effects = bind_endorsed(library, &endorsement.effects)
            .map_err(|error| EndorsementFault::Effects(error.message))?;
        let (snapshot, may_run_again) = (endorsement.snapshot, self.run_again);
        Ok(Some(Endorsed { snapshot, effects: Arc::new(effects), may_run_again }))
    }
}

/// What has a policy.
enum Subject<'a> {
    Ledger,
    Procedure(&'a str),
    Table(&'a str),
}

impl fmt::Display for Subject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Ledger => f.write_str("the ledger"),
            Subject::Procedure(name) => write!(f, "procedure \"{name}\""),
            Subject::Table(name) => write!(f, "table \"{name}\""),
        }
    }
}

/// A transaction that was executed before it was ordered.
pub(crate) struct EndorsedInvocation {
    /// What runs if it has to run again.
    pub(crate) invocation: Invocation,
    pub(crate) endorsed: Endorsed,
}

impl Simulate for EndorsedInvocation {
    fn simulate(&self, snapshot: &dyn Snapshot) -> Result<Effects, StoreError> {
        self.invocation.simulate(snapshot)
    }

    fn footprint(&self, catalog: &Catalog) -> Result<Footprint, SqlError> {
        self.invocation.footprint(catalog)
    }

    fn endorsed(&self) -> Option<&Endorsed> {
        Some(&self.endorsed)
    }
}

/// Where endorsers stand: the state after a block, and what a contract can know of that moment.
#[derive(Clone)]
pub struct EndorsementBasis {
    /// The compiled catalog of that state.
    pub library: Arc<Library>,
    /// The state.
    pub snapshot: Arc<dyn Snapshot>,
    /// Height of the block.
    pub height: u64,
    /// Its time, milliseconds since 1970-01-01 00:00 UTC.
    pub timestamp_ms: u64,
    /// Steps that a transaction may take.
    pub step_limit: u64,
    /// Bytes that a transaction may have.
    pub transaction_bytes_max: u32,
    /// How changes are endorsed.
    pub form: EndorsedForm,
    /// The next block is executed with another execution version.
    pub(crate) is_before_switch: bool,
    /// Who must endorse what.
    pub(crate) rules: Arc<EndorsementRules>,
    /// Whom `entente.oracle()` asks; `None`: this endorser knows no oracles.
    pub oracles: Option<Arc<dyn Oracles>>,
}

/// Asks each oracle once per transaction and keeps what it says.
struct Recorder {
    oracles: Option<Arc<dyn Oracles>>,
    said: Mutex<BTreeMap<String, String>>,
}

impl Oracles for Recorder {
    fn value(&self, name: &str) -> Result<String, SqlError> {
        let mut said = self.said.lock();
        if let Some(value) = said.get(name) {
            return Ok(value.clone());
        }
        if said.len() == limits::ORACLES_MAX {
            let message = format!("a transaction asks at most {} oracles (ORACLES_MAX)", limits::ORACLES_MAX);
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        let oracles = self.oracles.as_ref().ok_or_else(|| {
            SqlError::new(SqlState::UNDEFINED_OBJECT, "this node knows no oracles")
                .hint("Name them and where they are under [oracles] in its node.toml.")
        })?;
        let value = oracles.value(name)?;
        if value.len() > limits::ORACLE_BYTES_MAX {
            let (found, limit) = (value.len(), limits::ORACLE_BYTES_MAX);
            let message =
                format!("the oracle \"{name}\" says {found} bytes, the limit is {limit} (ORACLE_BYTES_MAX)");
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        said.insert(name.to_string(), value.clone());
        Ok(value)
    }
}

impl EndorsementBasis {
    /// Whether what is found on this state can count in the block behind it. Not where other rules hold from there on:
    /// endorsers wait for the next state.
    pub fn is_endorsable(&self) -> bool {
        !self.is_before_switch
    }

    /// Executes a transaction as every endorser on this state does, without changing it.
    ///
    /// # Errors
    /// What it ends with: its client hears that at once, and nothing is ordered. `58030` where the state cannot be read.
    pub fn simulate(
        &self,
        (id, client): (TransactionId, ClientId),
        principal: &Principal,
        payload: &Arc<Payload>,
    ) -> Result<EndorsedEffects, SqlError> {
        if sql::is_schema_change(payload, self.library.version()) {
            return Err(SqlError::unsupported("the endorsement of a schema change")
                .hint("Every node executes it: submit it without endorsements."));
        }
        if self.rules.agrees {
            return Ok(EndorsedEffects::agreement(self.library.catalog().version));
        }
        let context = endorsed_context(id, self.timestamp_ms, self.step_limit);
        let recorder = Arc::new(Recorder { oracles: self.oracles.clone(), said: Mutex::default() });
        let invocation =
            Invocation::new(self.library.clone(), context, payload.clone()).asking(recorder.clone());
        let invocation = invocation.by(principal.clone()).signed_by(client);
        let snapshot = self.snapshot.as_ref();
        let simulated = invocation.simulate(snapshot)?;
        let mut effects = endorsed_effects(&simulated, snapshot, self.timestamp_ms, self.form)?;
        let said = std::mem::take(&mut *recorder.said.lock());
        effects.oracles = said.into_iter().map(|(name, value)| OracleValue { name, value }).collect();
        Ok(effects)
    }

    /// The policies that endorsements of these effects must satisfy, each once.
    ///
    /// # Errors
    /// The transaction involves more procedures than may be.
    pub fn policies(
        &self,
        payload: &Payload,
        effects: &EndorsedEffects,
    ) -> Result<Vec<Policy>, EndorsementFault> {
        let mut policies: Vec<Policy> = Vec::new();
        let mut add = |policy: &Policy| {
            if !policies.contains(policy) {
                policies.push(policy.clone());
            }
        };
        if self.rules.agrees {
            let tables = agreement::policies(&self.library, payload, self.timestamp_ms).unwrap_or_default();
            tables.into_values().for_each(|(_, policy)| add(policy));
            return Ok(policies);
        }
        let visit = &mut |_: Subject<'_>, policy: &Policy| {
            add(policy);
            Ok(())
        };
        self.rules.each_policy(&self.library, payload, effects, visit)?;
        Ok(policies)
    }

    /// What a script says that an organisation, by position, has to judge before it endorses it. `None`: endorsers of this ledger
    /// execute, and judge nothing.
    ///
    /// # Errors
    /// It is no script that can run here.
    pub fn proposed_to(
        &self,
        organisation: u16,
        principal: &Principal,
        payload: &Payload,
    ) -> Result<Option<ProposedScript>, SqlError> {
        if !self.rules.agrees {
            return Ok(None);
        }
        let name = |position: u16| self.rules.names.get(usize::from(position)).cloned().unwrap_or_default();
        let asked = name(organisation);
        let changes = agreement::proposed_to(&asked, &self.library, payload, self.timestamp_ms)?;
        let (organisation, role) = (name(principal.organisation), principal.role.clone());
        Ok(Some(ProposedScript { organisation, role, changes }))
    }

    /// Whether a transaction's endorsements satisfy the policies of this state, and its effects fit the schema.
    pub fn is_endorsed(&self, transaction: &VerifiedTransaction) -> bool {
        matches!(self.rules.judge(transaction, &self.library, self.timestamp_ms), Ok(Some(_)))
    }

    /// Where two simulations on this state part, with the tables' names; `None` where they are the same.
    pub fn difference(&self, mine: &EndorsedEffects, other: &EndorsedEffects) -> Option<String> {
        mine.difference(
            other,
            &|id| match self.library.catalog().tables.values().find(|table| table.id == id) {
                Some(table) => format!("table {}", table.name),
                None => format!("table {}, which does not exist", id.0),
            },
        )
    }
}

/// Where a transaction is executed that is endorsed, or runs again after that: the same for all endorsers, whatever
/// snapshot they stand on, so its hidden keys come from its id and from nothing else.
pub(crate) fn endorsed_context(id: TransactionId, now_ms: u64, step_limit: u64) -> Context {
    let [height, index] = [&id.0.0[..8], &id.0.0[8..12]]
        .map(|bytes| bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)));
    Context { height, timestamp_ms: now_ms, index: index as u32, transaction: id, step_limit }
}
