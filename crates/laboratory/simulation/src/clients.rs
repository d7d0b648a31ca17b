//! Clients at gateway level: each signs one transaction after the other, gives it to a node, and, if that is killed or
//! silent, gives the same bytes to another one. They keep every receipt.

use crate::amendment::Amendment;
use crate::chance::Chance;
use crate::history::{Answer, History, NodeRead, Refused, Submitted};
use crate::liar::endorse_wrongly;
use crate::plan::{Plan, TROUBLE};
use crate::workload::{Operation, READ_ALL, SETUP, numbers};
use crate::world::NodeState;
use bytes::Bytes;
use crypto::{Digest, SecretKey};
use ordering::simulation::{node_key, root_key};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;
use tokio::sync::mpsc::{Receiver, error::TryRecvError};
use types::{
    AnswerAt, Credential, ExecutionModel, Identity, Organisation, Outcome, ProposalReply, ProposalRequest,
    Receipt, RejectReason, RequestId, SubmissionRefusal, SubmissionReply, TransactionId,
};

/// Heights for which most transactions may wait.
const EXPIRY: u64 = 20_000;

/// All clients of a run.
pub(crate) struct Clients {
    clients: Vec<Client>,
    /// Which of the set-up's transactions is next.
    setup: usize,
    /// Statements that amend the charter, each to be a transaction of an organisation that is a member all the time.
    amendments: VecDeque<String>,
    /// Organisations below this are that.
    steady: usize,
    /// The organisation that is not a member at the beginning.
    newcomer: Option<usize>,
    transactions: usize,
    /// Which nodes may be asked.
    among: Among,
}

/// Nodes that clients ask, and that endorse what others ask.
struct Among {
    nodes: Range<usize>,
    /// Transactions are endorsed before they are ordered.
    endorses: bool,
    /// Only nodes that have recorded this height are asked to endorse: others do not know the tables yet.
    from_height: u64,
    /// What becomes of questions to endorsers.
    chance: RefCell<Chance>,
    /// Of those a lying one has answered.
    lies: Cell<u64>,
    /// Until everything works, so many of a hundred arrive.
    arrive_percent: u64,
    ledger: Digest,
}

struct Client {
    organisation: usize,
    identity: Identity,
    chance: Chance,
    done: usize,
    current: Option<TransactionUnderWay>,
    /// It does nothing until then.
    pause: Duration,
}

/// A transaction that is under way.
struct TransactionUnderWay {
    id: TransactionId,
    bytes: Bytes,
    answer_at: AnswerAt,
    /// Where it was submitted, and who answers.
    asked: Vec<(usize, u64, Receiver<SubmissionReply>)>,
    /// It is given to somebody else then.
    patience: Duration,
}

impl Clients {
    pub(crate) fn new(seed: u64, plan: &Plan, nodes: Range<usize>) -> Clients {
        let (ledger, (clients, transactions)) = (plan.charter.ledger(), plan.clients);
        let founders = plan.charter.organisations.len();
        let newcomer = plan.amendments.iter().find_map(|amendment| match amendment {
            Amendment::Join { member } => Some(*member),
            _ => None,
        });
        let organisations = founders + usize::from(newcomer.is_some());
        let client = |number: usize| {
            let key = SecretKey::from_bytes(crypto::sha256(&[b"client", &(number as u64).to_le_bytes()]).0);
            let organisation = number % organisations;
            let credential =
                Credential::issue(&root_key(organisation), organisation as u16, &ledger, &key.public_key());
            Client {
                organisation,
                identity: Identity::new(ledger, key, credential),
                chance: Chance::new(seed ^ (number as u64) << 32, "client"),
                done: 0,
                current: None,
                pause: Duration::ZERO,
            }
        };
        Clients {
            clients: (0..clients).map(client).collect(),
            setup: 0,
            amendments: plan.amendments.iter().map(|one| one.statement(&plan.charter)).collect(),
            steady: plan.leaver().unwrap_or(founders),
            newcomer,
            transactions,
            among: Among {
                nodes,
                endorses: plan.charter.execution == ExecutionModel::ExecuteOrderValidate,
                from_height: 0,
                chance: RefCell::new(Chance::new(seed, "questions to endorsers")),
                lies: Cell::new(0),
                arrive_percent: plan.links.arrive_percent.into(),
                ledger,
            },
        }
    }

    /// Everybody has what they wanted.
    pub(crate) fn are_done(&self) -> bool {
        self.clients.iter().all(|client| client.current.is_none() && client.done >= self.transactions)
    }

    /// A moment passes.
    pub(crate) fn turn(&mut self, now: Duration, nodes: &[NodeState], history: &mut History) -> Vec<Answer> {
        let mut answers = Vec::new();
        for (number, client) in self.clients.iter_mut().enumerate() {
            if now < client.pause {
                continue;
            }
            let Some(waiting) = &mut client.current else {
                let operation = match self.setup {
                    // One client makes the tables; the others wait for them.
                    step if step < SETUP.len() && number > 0 => continue,
                    step if step < SETUP.len() => Operation::Setup(step),
                    _ if client.done >= self.transactions => continue,
                    _ if client.chance.percent(15) => {
                        client.read(nodes, self.among.nodes.clone(), history);
                        client.pause = now + client.chance.millis(5, 300);
                        continue;
                    }
                    _ => match self.amendments.pop_front_if(|_| client.organisation < self.steady) {
                        Some(statement) => Operation::Amend(statement),
                        None => Operation::any(&mut client.chance),
                    },
                };
                client.begin(operation, now, nodes, &self.among, history);
                continue;
            };
            let is_setup = self.setup < SETUP.len();
            let (id, answer_at) = (waiting.id, waiting.answer_at);
            let is_newcomer = self.newcomer == Some(client.organisation);
            let mut heard = Heard { is_setup, is_newcomer, answer_at, now, ..Heard::default() };
            waiting.asked.retain_mut(|(node, start, replies)| match replies.try_recv() {
                Err(TryRecvError::Empty) => true,
                // Its node was killed.
                Err(TryRecvError::Disconnected) => false,
                Ok(reply) => {
                    let submitted = history.submitted.get_mut(&id);
                    let asked = (*node, *start, nodes[*node].tampered);
                    answers.extend(heard.take(reply.result, asked, self.among.endorses, submitted));
                    false
                }
            });
            let Heard { ended, too_early, later, committed_at, .. } = heard;
            if ended {
                client.current = None;
                client.pause = now + client.chance.millis(0, 400);
                match is_setup {
                    // What was endorsed may have become stale: then the same is signed anew.
                    true if self.among.endorses && committed_at.is_none() => {}
                    true => self.setup += 1,
                    false => client.done += usize::from(!too_early),
                }
                if is_setup {
                    self.among.from_height = self.among.from_height.max(committed_at.unwrap_or(0));
                }
            } else if later && waiting.asked.is_empty() {
                client.pause = now + client.chance.millis(20, 400);
            } else if waiting.asked.is_empty() || now >= waiting.patience {
                client.submit(now, nodes, &self.among);
            }
        }
        answers
    }
}

/// What a client hears of its transaction in one turn.
#[derive(Default)]
struct Heard {
    is_setup: bool,
    is_newcomer: bool,
    answer_at: AnswerAt,
    now: Duration,
    /// Nothing more comes of it.
    ended: bool,
    /// Its organisation has not come in yet, as far as a node knows.
    too_early: bool,
    /// The same bytes are sent again.
    later: bool,
    committed_at: Option<u64>,
}

impl Heard {
    /// Takes the reply of a node that was asked at some time, and whose memory may be damaged; gives what was answered.
    fn take(
        &mut self,
        result: Result<Receipt, SubmissionRefusal>,
        (node, start, tampered): (usize, u64, bool),
        endorses: bool,
        submitted: Option<&mut Submitted>,
    ) -> Option<Answer> {
        match result {
            // Somebody's endorsements, not the transaction: with others it may stand in a block yet.
            Ok(Receipt { outcome: Outcome::Rejected(_), .. }) if self.is_setup && endorses => {
                self.later = true
            }
            Ok(receipt) => {
                self.ended = true;
                if matches!(receipt.outcome, Outcome::Committed(_)) {
                    self.committed_at = Some(receipt.height);
                }
                let (answer_at, at) = (self.answer_at, self.now);
                let doubtful = answer_at == AnswerAt::Recorded && tampered;
                let answer = Answer { receipt, node, start, answer_at, doubtful, at };
                if let Some(submitted) = submitted {
                    submitted.answers.push(answer.clone());
                }
                return Some(answer);
            }
            Err(SubmissionRefusal::Rejected(reason)) => {
                if let Some(submitted) = submitted
                    && matches!(reason, RejectReason::Expired { .. })
                {
                    submitted.refused = Some(Refused::Never);
                }
                self.too_early = self.is_newcomer && matches!(reason, RejectReason::NoMember { .. });
                self.ended = true;
            }
            // The set-up is refused by nodes that do not have the step before yet.
            Err(SubmissionRefusal::Aborted(error)) if !self.is_setup => {
                if let Some(submitted) = submitted
                    && submitted.refused.is_none()
                    && !tampered
                {
                    submitted.refused = Some(Refused::Aborted(error));
                }
                self.ended = true;
            }
            // Nobody has had it ordered: the same bytes again, a little later.
            Err(
                SubmissionRefusal::Aborted(_)
                | SubmissionRefusal::NotEndorsed(_)
                | SubmissionRefusal::EarlyAbort { .. },
            ) => self.later = true,
            Err(_) => {}
        }
        None
    }
}

impl Among {
    /// What an organisation's node answers that is asked to endorse: at once, or never.
    fn ask(
        &self,
        now: Duration,
        nodes: &[NodeState],
        organisation: &Organisation,
        request: &ProposalRequest,
    ) -> Result<ProposalReply, String> {
        if now < TROUBLE && !self.chance.borrow_mut().percent(self.arrive_percent) {
            return Err("it does not answer in time".to_string());
        }
        let silent = || "it cannot be reached".to_string();
        let number = (0..nodes.len())
            .find(|node| node_key(*node).public_key() == organisation.node_key)
            .ok_or_else(silent)?;
        let node = nodes[number].serving().ok_or_else(silent)?;
        let reply = match nodes[number].endorses_wrongly {
            true => {
                let turn = self.lies.replace(self.lies.get() + 1);
                endorse_wrongly(number, &self.ledger, request, turn, |request| node.propose(request))
            }
            false => node.propose(request.clone()),
        };
        match reply {
            Some(reply @ ProposalReply::Answers { .. }) => Ok(reply),
            Some(ProposalReply::NoSuchState { oldest, newest }) => {
                Err(format!("it has the states of heights {oldest} to {newest}"))
            }
            None => Err(silent()),
        }
    }
}

impl Client {
    fn begin(
        &mut self,
        operation: Operation,
        now: Duration,
        nodes: &[NodeState],
        among: &Among,
        history: &mut History,
    ) {
        let height = nodes.iter().map(NodeState::height).max().unwrap_or(0);
        let is_setup = matches!(operation, Operation::Setup(_) | Operation::Amend(_));
        let soon = !is_setup && self.chance.percent(10);
        let expires_at = height + if soon { self.chance.within(2, 12) } else { EXPIRY };
        let request = RequestId(std::array::from_fn(|_| self.chance.word() as u8));
        let signed = self.identity.sign_request(request, String::new(), operation.payload(), expires_at);
        let id = signed.transaction.id();
        let answer_at =
            if self.chance.percent(35) && !is_setup { AnswerAt::Recorded } else { AnswerAt::Attested };
        let bytes = Bytes::from(signed.to_bytes());
        self.current = Some(TransactionUnderWay { id, bytes, answer_at, asked: Vec::new(), patience: now });
        let submitted = Submitted { operation, at: now, answers: Vec::new(), refused: None };
        history.submitted.insert(id, submitted);
        self.submit(now, nodes, among);
        // In a hurry: the same at another node, at once.
        if self.chance.percent(15) {
            self.submit(now, nodes, among);
        }
    }

    /// Gives the transaction to some node.
    fn submit(&mut self, now: Duration, nodes: &[NodeState], among: &Among) {
        let Some(waiting) = &mut self.current else { return };
        let place = self.chance.within(among.nodes.start as u64, among.nodes.end as u64 - 1) as usize;
        waiting.patience = now + self.chance.millis(800, 4_000);
        match nodes[place].serving().filter(|node| !among.endorses || node.newest().0 >= among.from_height) {
            Some(node) => {
                let ask = |organisation: &Organisation, request: &ProposalRequest| {
                    among.ask(now, nodes, organisation, request)
                };
                let replies = node.submit(vec![waiting.bytes.clone()], waiting.answer_at, &ask);
                waiting.asked.push((place, nodes[place].starts, replies));
            }
            None => self.pause = now + self.chance.millis(20, 200),
        }
    }

    /// Reads everything at some node.
    fn read(&mut self, nodes: &[NodeState], among: Range<usize>, history: &mut History) {
        let place = self.chance.within(among.start as u64, among.end as u64 - 1) as usize;
        let Some(node) = nodes[place].serving().filter(|_| !nodes[place].tampered) else { return };
        if let Ok((height, rows)) = node.query(READ_ALL)
            && let Some(rows) = numbers(&rows)
        {
            history.reads.push(NodeRead { node: place, height, rows });
        }
    }
}
