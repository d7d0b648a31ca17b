use super::oracles::{AskedOnce, OracleSources};
use super::states::{NoSuchState, RecentStates};
use crate::charters::DecidedCharters;
use bytes::Bytes;
use crypto::{Digest, SecretKey};
use engine::{EndorsementBasis, Judged, VerifiedTransaction, Verifier};
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

/// Executes transactions on states of this node and signs what they do, in the name of its organisation.
pub(crate) struct Endorser {
    organisation: u16,
    ledger: Digest,
    key: SecretKey,
    charters: Arc<DecidedCharters>,
    verifier: Arc<Verifier>,
    states: Arc<RecentStates>,
    /// `None`: it knows none.
    oracles: Option<Arc<OracleSources>>,
    /// Threads of its own: a contract that waits for an oracle must not hold up the execution of blocks.
    pool: rayon::ThreadPool,
    requests: Semaphore,
}

impl Endorser {
    pub(crate) fn new(
        organisation: u16,
        key: SecretKey,
        charters: Arc<DecidedCharters>,
        verifier: Arc<Verifier>,
        states: Arc<RecentStates>,
        oracles: Option<Arc<OracleSources>>,
        pool: rayon::ThreadPool,
    ) -> Endorser {
        let (ledger, requests) = (charters.all().ledger(), Semaphore::new(REQUESTS_MAX));
        Endorser { organisation, ledger, key, charters, verifier, states, oracles, pool, requests }
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
        if let Some(oracles) = &self.oracles {
            basis.oracles = Some(Arc::new(AskedOnce::new(oracles.clone())));
        }
        let simulate = |judged: Judged| {
            let transaction = judged.map_err(|(id, reason)| (id, ProposalRefusal::Rejected(reason)))?;
            if start.elapsed() > within || !basis.is_endorsable() {
                return Err((transaction.id, ProposalRefusal::Busy));
            }
            let effects = basis.simulate(transaction.id, &transaction.principal, &transaction.payload);
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
        let found: Vec<(TransactionId, Digest)> =
            simulated.iter().flatten().map(|one| (one.transaction.id, one.digest)).collect();
        let mut endorsements = self.sign(basis.height, &found).into_iter();
        let mut answer = |simulated: Result<Simulated, (TransactionId, ProposalRefusal)>, expected| {
            let Simulated { effects, digest, .. } = simulated.map_err(|(_, refusal)| refusal)?;
            let endorsement = endorsements.next().expect("an endorsement for every simulation");
            Ok(match expected == Some(digest) {
                true => ProposalAnswer::Agreed(endorsement),
                false => ProposalAnswer::Found { effects, endorsement },
            })
        };
        simulated.into_iter().zip(expected).map(|(simulated, expected)| answer(simulated, expected)).collect()
    }
}
