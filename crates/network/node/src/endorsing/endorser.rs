use super::oracles::{AskedOnce, OracleSources};
use super::states::{NoSuchState, RecentStates};
use crate::charters::DecidedCharters;
use crate::own_judgement::JudgeScripts;
use bytes::Bytes;
use crypto::{Digest, SecretKey};
use engine::{EndorsementBasis, Judged, ProposedScript, VerifiedTransaction, Verifier};
use rayon::prelude::*;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use types::{
    EndorsedEffects, Endorsement, Place, ProposalAnswer, ProposalRefusal, ProposalReply, ProposalRequest,
    SqlError, SqlState, TransactionId, endorse,
};

/// Requests that are worked on at once.
const REQUESTS_MAX: usize = 8;
/// How long a request waits for its turn; then its sender asks others.
const TURN_WITHIN: Duration = Duration::from_secs(1);
/// How long a request is worked on; what is left then is not endorsed.
const SIMULATED_WITHIN: Duration = Duration::from_secs(2);
/// A state that lies further ahead is not waited for.
const STATES_AHEAD_MAX: u64 = 32;
/// How long a request waits for a state that this node has not reached.
const STATE_WITHIN: Duration = Duration::from_secs(1);
/// Simulations that are too few to be worth another thread.
const SIMULATIONS_TOGETHER: usize = 16;

/// How long a request waits for a state; not at all where that is far ahead, which nobody honest asks for.
fn waiting_time(height: u64, newest: u64) -> Duration {
    if height > newest + STATES_AHEAD_MAX { Duration::ZERO } else { STATE_WITHIN }
}

/// A transaction and what it does on some state.
pub(crate) struct Simulated {
    pub(crate) transaction: Arc<VerifiedTransaction>,
    pub(crate) effects: EndorsedEffects,
    pub(crate) digest: Digest,
}

/// What an endorser asks outside of the ledger.
#[derive(Clone, Default)]
pub(crate) struct Sources {
    /// `None`: it knows none.
    pub(crate) oracles: Option<Arc<OracleSources>>,
    /// Judges scripts, where databases execute them; `None`: it agrees to none.
    pub(crate) judge: Option<Arc<dyn JudgeScripts>>,
}

/// Executes transactions on states of this node and signs what they do, in the name of its organisation.
pub(crate) struct Endorser {
    organisation: u16,
    ledger: Digest,
    key: SecretKey,
    charters: Arc<DecidedCharters>,
    verifier: Arc<Verifier>,
    states: Arc<RecentStates>,
    sources: Sources,
    /// Threads of its own: a contract that waits for an oracle must not hold up the execution of blocks.
    pool: rayon::ThreadPool,
    requests: Semaphore,
}

impl Endorser {
    /// `whose`: position of its organisation in the charter, and its node's key.
    pub(crate) fn new(
        (organisation, key): (u16, SecretKey),
        charters: Arc<DecidedCharters>,
        verifier: Arc<Verifier>,
        states: Arc<RecentStates>,
        sources: Sources,
        pool: rayon::ThreadPool,
    ) -> Endorser {
        let (ledger, requests) = (charters.all().ledger(), Semaphore::new(REQUESTS_MAX));
        Endorser { organisation, ledger, key, charters, verifier, states, sources, pool, requests }
    }

    /// Position of its organisation in the charter.
    pub(crate) fn organisation(&self) -> u16 {
        self.organisation
    }

    /// The newest state.
    pub(crate) fn newest(&self) -> EndorsementBasis {
        self.states.newest()
    }

    /// Verifies and executes transactions; what they do, or why they are not to be endorsed. Begins with none after this
    /// time.
    pub(crate) fn simulate(
        &self,
        basis: &EndorsementBasis,
        transactions: &[Bytes],
        within: Duration,
    ) -> Vec<Result<Simulated, (TransactionId, ProposalRefusal)>> {
        let start = Instant::now();
        let mut basis = basis.clone();
        if let Some(oracles) = &self.sources.oracles {
            basis.oracles = Some(Arc::new(AskedOnce::new(oracles.clone())));
        }
        let simulate = |judged: Judged| {
            let transaction = judged.map_err(|(id, reason)| (id, ProposalRefusal::Rejected(reason)))?;
            if start.elapsed() > within || !basis.is_endorsable() {
                return Err((transaction.id, ProposalRefusal::Busy));
            }
            let effects = basis.simulate(
                (transaction.id, transaction.client),
                &transaction.principal,
                &transaction.payload,
            );
            let effects = effects.map_err(|error| match self.states.have_failed() {
                // It may be this node's disk that ends it, and no contract.
                true => (transaction.id, ProposalRefusal::Busy),
                false => (transaction.id, ProposalRefusal::Aborted(error)),
            })?;
            let digest = effects.digest();
            Ok(Simulated { transaction, effects, digest })
        };
        self.pool.install(|| {
            let place = Place { charters: &self.charters.all(), height: basis.height + 1 };
            let judged = self.verifier.check_proposals(place, transactions);
            judged.into_par_iter().with_min_len(SIMULATIONS_TOGETHER).map(simulate).collect()
        })
    }

    /// Whether this organisation agrees to scripts; to whatever was executed, always. May wait for its database.
    pub(crate) fn judge(
        &self,
        basis: &EndorsementBasis,
        simulated: &[&Simulated],
    ) -> Vec<Result<(), ProposalRefusal>> {
        let proposed: Vec<Result<Option<ProposedScript>, SqlError>> = simulated
            .iter()
            .map(|Simulated { transaction, .. }| {
                basis.proposed_to(self.organisation, &transaction.principal, &transaction.payload)
            })
            .collect();
        let scripts: Vec<ProposedScript> = proposed.iter().flatten().flatten().cloned().collect();
        let verdicts = match &self.sources.judge {
            _ if scripts.is_empty() => Vec::new(),
            Some(judge) => judge.judge(&scripts),
            None => vec![Err("it has no rules for agreeing (entente agree)".to_string()); scripts.len()],
        };
        let mut verdicts = verdicts.into_iter();
        let mut verdict = |proposed: Result<Option<ProposedScript>, SqlError>| match proposed {
            Ok(None) => Ok(()),
            Ok(Some(_)) => {
                let verdict = verdicts.next().expect("a verdict for every script");
                verdict.map_err(ProposalRefusal::Disagrees)
            }
            Err(error) => Err(ProposalRefusal::Aborted(error)),
        };
        proposed.into_iter().map(&mut verdict).collect()
    }

    /// This organisation's word for simulations on the state after the block at `height`: one signature for all.
    pub(crate) fn sign(&self, height: u64, simulations: &[(TransactionId, Digest)]) -> Vec<Endorsement> {
        endorse(&self.key, self.organisation, &self.ledger, height, simulations)
    }

    /// Answers a request of another gateway, or of a client.
    ///
    /// # Errors
    /// It has too much to do.
    pub(crate) async fn answer(&self, request: ProposalRequest) -> Result<ProposalReply, SqlError> {
        let newest = self.states.newest();
        let basis = match request.height {
            None => newest,
            Some(height) => match self.states.at(height, waiting_time(height, newest.height)).await {
                Ok(basis) => basis,
                Err(NoSuchState { oldest, newest }) => {
                    return Ok(ProposalReply::NoSuchState { oldest, newest });
                }
            },
        };
        let Ok(Ok(_held)) = tokio::time::timeout(TURN_WITHIN, self.requests.acquire()).await else {
            let message = format!("this node endorses {REQUESTS_MAX} requests already; ask another or later");
            return Err(SqlError::new(SqlState::CANNOT_CONNECT_NOW, message));
        };
        // Signatures and contracts: tell the runtime that this thread is busy for a while.
        let answers = tokio::task::block_in_place(|| self.endorse(&basis, request, SIMULATED_WITHIN));
        Ok(ProposalReply::Answers { height: basis.height, answers })
    }

    /// Answers a request at once, on a state that is there, however long its contracts take.
    #[cfg(feature = "simulation")]
    pub(crate) fn answer_at_once(&self, request: ProposalRequest) -> ProposalReply {
        let basis = match request.height {
            None => Ok(self.states.newest()),
            Some(height) => self.states.there(height),
        };
        match basis {
            Ok(basis) => {
                let answers = self.endorse(&basis, request, Duration::MAX);
                ProposalReply::Answers { height: basis.height, answers }
            }
            Err(NoSuchState { oldest, newest }) => ProposalReply::NoSuchState { oldest, newest },
        }
    }

    fn endorse(
        &self,
        basis: &EndorsementBasis,
        request: ProposalRequest,
        within: Duration,
    ) -> Vec<Result<ProposalAnswer, ProposalRefusal>> {
        let (transactions, expected): (Vec<Bytes>, Vec<Option<Digest>>) = request
            .proposals
            .into_iter()
            .map(|proposal| (Bytes::from(proposal.transaction), proposal.expected))
            .unzip();
        let simulated = self.simulate(basis, &transactions, within);
        let mut verdicts = self.judge(basis, &simulated.iter().flatten().collect::<Vec<_>>()).into_iter();
        let simulated: Vec<Result<Simulated, ProposalRefusal>> = simulated
            .into_iter()
            .map(|found| {
                let found = found.map_err(|(_, refusal)| refusal)?;
                verdicts.next().expect("a verdict for every simulation").map(|()| found)
            })
            .collect();
        let found: Vec<(TransactionId, Digest)> =
            simulated.iter().flatten().map(|one| (one.transaction.id, one.digest)).collect();
        let mut endorsements = self.sign(basis.height, &found).into_iter();
        let mut answer = |simulated: Result<Simulated, ProposalRefusal>, expected| {
            let Simulated { effects, digest, .. } = simulated?;
            let endorsement = endorsements.next().expect("an endorsement for every simulation");
            Ok(match expected == Some(digest) {
                true => ProposalAnswer::Agreed(endorsement),
                false => ProposalAnswer::Found { effects, endorsement },
            })
        };
        simulated.into_iter().zip(expected).map(|(simulated, expected)| answer(simulated, expected)).collect()
    }
}
