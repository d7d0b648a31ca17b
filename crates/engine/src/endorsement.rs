//! Execute–order–validate: what endorsers execute, whether endorsements suffice, and effects as validation works on them.

use crate::VerifiedTransaction;
use sql::{Context, Invocation, Library, bind_endorsed};
use state::{Effects, Endorsed, EndorsedForm, Footprint, Simulate, Snapshot, endorsed_effects};
use std::sync::Arc;
use types::{
    Catalog, Charter, EndorsedEffects, EndorsementFault, Payload, Policy, PolicyError, SqlError,
    TransactionId,
};

/// What a ledger asks of endorsements.
pub(crate) struct EndorsementRules {
    /// Names of the organisations, by position.
    names: Vec<String>,
    /// Where nothing else is said.
    policy: Policy,
    run_again: bool,
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
        })
    }

    /// The endorsed effects of a transaction, if its endorsers are enough and its effects can be. `None`: it has none.
    ///
    /// # Errors
    /// What is wrong with them.
    pub(crate) fn judge(
        &self,
        transaction: &VerifiedTransaction,
        library: &Library,
    ) -> Result<Option<Endorsed>, EndorsementFault> {
        let Some(endorsement) = &transaction.endorsed else { return Ok(None) };
        let endorsers: Vec<&str> = endorsement
            .endorsers
            .iter()
            .filter_map(|position| self.names.get(usize::from(*position)))
            .map(String::as_str)
            .collect();
        if !self.policy.is_satisfied(&|name| endorsers.contains(&name)) {
            return Err(EndorsementFault::Policy {
                of: subject(&transaction.payload),
                policy: self.policy.to_string(),
                found: if endorsers.is_empty() { "nobody".to_string() } else { endorsers.join(", ") },
            });
        }
        let effects = bind_endorsed(library, &endorsement.effects)
            .map_err(|error| EndorsementFault::Effects(error.message))?;
        let (snapshot, may_run_again) = (endorsement.snapshot, self.run_again);
        Ok(Some(Endorsed { snapshot, effects: Arc::new(effects), may_run_again }))
    }
}

fn subject(payload: &Payload) -> String {
    match payload {
        Payload::Call { procedure, .. } => format!("procedure \"{procedure}\""),
        Payload::Script { .. } | Payload::Insert { .. } => "the ledger".to_string(),
    }
}

/// A transaction that was executed before it was ordered.
pub(crate) struct EndorsedInvocation {
    /// What runs if it has to run again.
    pub(crate) invocation: Invocation,
    pub(crate) endorsed: Endorsed,
}

impl Simulate for EndorsedInvocation {
    fn simulate(&self, snapshot: &dyn Snapshot) -> Effects {
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
    /// How changes are endorsed.
    pub form: EndorsedForm,
}

impl EndorsementBasis {
    /// Executes a transaction as every endorser on this state does, without changing it.
    ///
    /// # Errors
    /// What it ends with: its client hears that at once, and nothing is ordered.
    pub fn simulate(&self, id: TransactionId, payload: &Arc<Payload>) -> Result<EndorsedEffects, SqlError> {
        if sql::is_schema_change(payload) {
            return Err(SqlError::unsupported("the endorsement of a schema change")
                .hint("Every node executes it: submit it without endorsements."));
        }
        let context = endorsed_context(id, self.timestamp_ms, self.step_limit);
        let invocation = Invocation::new(self.library.clone(), context, payload.clone());
        let snapshot = self.snapshot.as_ref();
        endorsed_effects(&invocation.simulate(snapshot), snapshot, self.timestamp_ms, self.form)
    }
}

/// Where a transaction is executed that is endorsed, or runs again after that: the same for all endorsers, whatever
/// snapshot they stand on, so its hidden keys come from its id and from nothing else.
pub(crate) fn endorsed_context(id: TransactionId, now_ms: u64, step_limit: u64) -> Context {
    let [height, index] = [&id.0.0[..8], &id.0.0[8..12]]
        .map(|bytes| bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)));
    Context { height, timestamp_ms: now_ms, index: index as u32, transaction: id, step_limit }
}
