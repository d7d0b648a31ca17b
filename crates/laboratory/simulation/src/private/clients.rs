//! Who makes schemas, changes their members and writes into them: each client signs one transaction after the other, and hands its
//! parts to some member's node, or to another one where that is silent or gone.

use super::known::Known;
use super::plan::{MemberChange, PlannedSchema};
use super::statements::{Moves, STEPS, may_move, payload, set_up, table};
use super::watch::Watch;
use crate::chance::Chance;
use crate::history::{History, Submitted};
use crate::plan::{PART_TRANSACTIONS, Plan};
use crate::workload::Operation;
use crate::world::NodeState;
use bytes::Bytes;
use crypto::SecretKey;
use ordering::simulation::root_key;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{Receiver, error::TryRecvError};
use types::{
    AgreedPart, AnswerAt, ClientId, Credential, Identity, Outcome, Part, PartCommitment, PartSubmission,
    Payload, Receipt, RequestId, SubmissionRefusal, SubmissionReply, TransactionId,
};

/// How many clients there are.
const CLIENTS: usize = 8;
/// Heights for which transactions may wait.
const EXPIRY: u64 = 20_000;
/// How long a node may take to say what a transaction came to that is ordered.
const WITHIN: Duration = Duration::from_secs(8);
/// A client gives up after so many refusals, or when its organisation is a member no more.
const REFUSALS_MAX: u32 = 40;

/// All clients that write into schemas.
pub(crate) struct PrivateClients {
    schemas: Vec<Schema>,
    /// Makes and changes schemas, and their tables.
    administrator: Administrator,
    clients: Vec<Client>,
    members: Members,
}

/// Where parts can be handed in.
struct Members {
    nodes: Range<usize>,
    /// The organisation of each node.
    organisations: Vec<u16>,
    watch: Arc<Watch>,
}

/// A schema as clients know it.
struct Schema {
    planned: PlannedSchema,
    members: BTreeSet<u16>,
    changes: VecDeque<MemberChange>,
    /// How often its members have changed.
    era: u32,
    /// Members' nodes that have recorded this height know that.
    from_height: u64,
    is_created: bool,
    /// Steps of the set-up that are done.
    steps: usize,
}

struct Administrator {
    identity: Identity,
    chance: Chance,
    statement: Option<Statement>,
    parts: Option<UnderWay>,
    pause: Duration,
}

/// A statement about schemas on its way.
struct Statement {
    schema: usize,
    change: Option<MemberChange>,
    id: TransactionId,
    bytes: Bytes,
    asked: Vec<Receiver<SubmissionReply>>,
    patience: Duration,
}

struct Client {
    organisation: u16,
    identity: Identity,
    chance: Chance,
    done: usize,
    current: Option<UnderWay>,
    pause: Duration,
}

/// A transaction with parts that is on its way.
struct UnderWay {
    id: TransactionId,
    organisation: u16,
    submission: PartSubmission,
    schemas: Vec<usize>,
    answer_at: AnswerAt,
    /// Where it was handed in.
    asked: Vec<(usize, Receiver<SubmissionReply>)>,
    /// It is handed to somebody else then.
    patience: Duration,
    refusals: u32,
}

/// How far a transaction is.
enum Progress {
    Waits,
    /// It is answered, or given up.
    Ended(Option<Receipt>),
}

impl Schema {
    fn new(planned: &PlannedSchema) -> Schema {
        Schema {
            members: planned.members.iter().copied().collect(),
            changes: planned.changes.iter().copied().collect(),
            planned: planned.clone(),
            era: 0,
            from_height: 0,
            is_created: false,
            steps: 0,
        }
    }

    fn name(&self) -> &str {
        &self.planned.name
    }

    /// What stands in its parts until its members change again.
    fn prefix(&self) -> String {
        format!("CANARY {}{}:", self.name(), self.era)
    }

    fn expect_canaries(&self, watch: &Watch) {
        watch.expect(&self.prefix(), &self.members);
    }

    /// Its members are others.
    fn changed(&mut self, change: MemberChange, height: u64, watch: &Watch) {
        match change {
            MemberChange::Add(member) => drop(self.members.insert(member)),
            MemberChange::Drop(member) => drop(self.members.remove(&member)),
        }
        (self.era, self.from_height) = (self.era + 1, height);
        self.changes.pop_front();
        self.expect_canaries(watch);
    }
}

impl PrivateClients {
    pub(crate) fn new(seed: u64, plan: &Plan, nodes: Range<usize>, watch: &Arc<Watch>) -> PrivateClients {
        let ledger = plan.charter.ledger();
        let identity = |organisation: u16, number: u64| {
            let key = SecretKey::from_bytes(crypto::sha256(&[b"private client", &number.to_le_bytes()]).0);
            let root = root_key(usize::from(organisation));
            Identity::new(
                ledger,
                key.clone(),
                Credential::issue(&root, organisation, &ledger, &key.public_key()),
            )
        };
        expect_names(&plan.schemas, watch);
        let schemas: Vec<Schema> = plan.schemas.iter().map(Schema::new).collect();
        let stays = |member: &u16| {
            let has = |schema: &Schema| {
                schema.members.contains(member) && !schema.changes.contains(&MemberChange::Drop(*member))
            };
            schemas.iter().all(has)
        };
        let everybody: BTreeSet<u16> = schemas.iter().flat_map(|schema| schema.members.clone()).collect();
        let administrator = everybody.iter().copied().find(stays).unwrap_or_default();
        let everybody: Vec<u16> = everybody.into_iter().collect();
        let client = |number: usize| {
            // Every second one can write into all schemas at once.
            let organisation = if number.is_multiple_of(2) {
                administrator
            } else {
                everybody[number / 2 % everybody.len()]
            };
            Client {
                organisation,
                identity: identity(organisation, number as u64 + 1),
                chance: Chance::new(seed ^ (number as u64) << 32, "private client"),
                done: 0,
                current: None,
                pause: Duration::ZERO,
            }
        };
        let count = if everybody.is_empty() { 0 } else { CLIENTS };
        PrivateClients {
            clients: (0..count).map(client).collect(),
            schemas,
            administrator: Administrator {
                identity: identity(administrator, 0),
                chance: Chance::new(seed, "administrator of schemas"),
                statement: None,
                parts: None,
                pause: Duration::ZERO,
            },
            members: Members {
                organisations: (0..plan.nodes()).map(|node| plan.organisation_of(node)).collect(),
                nodes,
                watch: watch.clone(),
            },
        }
    }

    /// Everybody has what they wanted.
    pub(crate) fn are_done(&self) -> bool {
        let is_done =
            |schema: &Schema| schema.is_created && schema.steps == STEPS && schema.changes.is_empty();
        self.schemas.iter().all(is_done)
            && self.clients.iter().all(|client| client.current.is_none() && client.done >= PART_TRANSACTIONS)
    }

    /// The members of each schema, as it was changed last.
    pub(crate) fn members(&self) -> BTreeMap<String, BTreeSet<u16>> {
        self.schemas.iter().map(|schema| (schema.name().to_string(), schema.members.clone())).collect()
    }

    /// For whoever reads that nothing goes on.
    pub(crate) fn situation(&self) -> String {
        let schemas: Vec<String> = self
            .schemas
            .iter()
            .map(|one| {
                format!(
                    "{} created {} steps {} changes {:?}",
                    one.name(),
                    one.is_created,
                    one.steps,
                    one.changes
                )
            })
            .collect();
        let clients: Vec<String> = self
            .clients
            .iter()
            .map(|client| {
                let current = client.current.as_ref().map(|one| (one.id, &one.schemas, one.refusals));
                format!("org {} done {} waits for {current:?}", client.organisation, client.done)
            })
            .collect();
        format!("{}; {}", schemas.join(", "), clients.join(", "))
    }

    /// A moment passes.
    pub(crate) fn turn(
        &mut self,
        now: Duration,
        nodes: &[NodeState],
        history: &mut History,
        known: &mut Known,
    ) {
        let PrivateClients { schemas, administrator, clients, members } = self;
        administrator.turn(now, (schemas, members, nodes), history, known);
        for client in clients {
            client.turn(now, (schemas, members, nodes), known);
        }
    }
}

impl Administrator {
    fn turn(
        &mut self,
        now: Duration,
        (schemas, members, nodes): (&mut [Schema], &Members, &[NodeState]),
        history: &mut History,
        known: &mut Known,
    ) {
        if now < self.pause {
            return;
        }
        if let Some(statement) = &mut self.statement {
            if let Some(receipt) = statement.answer() {
                let Statement { schema, change, .. } = *statement;
                self.statement = None;
                self.pause = now + self.chance.millis(50, 600);
                if let Outcome::Committed(_) = receipt.outcome {
                    let schema = &mut schemas[schema];
                    match change {
                        None => (schema.is_created, schema.from_height) = (true, receipt.height),
                        Some(change) => schema.changed(change, receipt.height, &members.watch),
                    }
                }
            } else if statement.asked.is_empty() || now >= statement.patience {
                statement.submit(now, nodes, members, &mut self.chance);
            }
            return;
        }
        if let Some(parts) = &mut self.parts {
            match parts.turn(now, (schemas, members, nodes), &mut self.chance, known) {
                Progress::Waits => {}
                Progress::Ended(receipt) => {
                    let schema = &mut schemas[parts.schemas[0]];
                    let is_done = receipt.is_some_and(|one| matches!(one.outcome, Outcome::Committed(_)));
                    schema.steps += usize::from(is_done);
                    self.parts = None;
                }
            }
            return;
        }
        self.begin(now, (schemas, members, nodes), history, known);
    }

    /// What is to be done next: schemas are made one after the other, then their members change.
    fn begin(
        &mut self,
        now: Duration,
        (schemas, members, nodes): (&[Schema], &Members, &[NodeState]),
        history: &mut History,
        known: &mut Known,
    ) {
        let height = nodes.iter().map(NodeState::height).max().unwrap_or(0);
        let to_make = schemas.iter().position(|schema| schema.steps < STEPS);
        let (number, change) = match to_make {
            Some(number) if schemas[number].is_created => {
                let schema = &schemas[number];
                let canary = format!("{} made by {:x}", schema.prefix(), self.chance.word());
                let (operation, payload) = set_up(schema.steps, schema.name(), &canary);
                let parts = BTreeMap::from([(number, (operation, payload))]);
                let under_way =
                    UnderWay::sign(&self.identity, parts, schemas, height, &mut self.chance, known);
                self.parts = Some(under_way);
                return;
            }
            Some(number) => (number, None),
            None => {
                let changing: Vec<usize> =
                    (0..schemas.len()).filter(|number| !schemas[*number].changes.is_empty()).collect();
                if changing.is_empty() {
                    return;
                }
                let number = *self.chance.pick(&changing);
                (number, schemas[number].changes.front().copied())
            }
        };
        let planned = &schemas[number].planned;
        if let Some(MemberChange::Add(member)) = change {
            // Others may know of it before its client does.
            members.watch.allow(&planned.name, member);
        }
        let sql = change.map_or_else(|| planned.statement(), |change| planned.change(change));
        let operation = Operation::Schema(sql);
        let request = RequestId(std::array::from_fn(|_| self.chance.word() as u8));
        let signed = self.identity.sign_request(request, String::new(), operation.payload(), height + EXPIRY);
        let (id, bytes) = (signed.transaction.id(), Bytes::from(signed.to_bytes()));
        history.submitted.insert(id, Submitted { operation, at: now, answers: Vec::new(), refused: None });
        self.statement =
            Some(Statement { schema: number, change, id, bytes, asked: Vec::new(), patience: now });
    }
}

impl Statement {
    /// What has become of it, once somebody says that. What was refused is signed anew.
    fn answer(&mut self) -> Option<Receipt> {
        let mut answer = None;
        self.asked.retain_mut(|replies| match replies.try_recv() {
            Err(TryRecvError::Empty) => true,
            Err(TryRecvError::Disconnected) => false,
            Ok(reply) => {
                answer = reply.result.ok().or(answer.take());
                false
            }
        });
        answer.filter(|receipt: &Receipt| receipt.transaction == self.id)
    }

    fn submit(&mut self, now: Duration, nodes: &[NodeState], members: &Members, chance: &mut Chance) {
        let place = chance.within(members.nodes.start as u64, members.nodes.end as u64 - 1) as usize;
        self.patience = now + chance.millis(800, 3_000);
        if let Some(node) = nodes[place].serving() {
            let nobody = |_: &_, _: &_| Err("nothing is endorsed".to_string());
            self.asked.push(node.submit(vec![self.bytes.clone()], AnswerAt::Attested, &nobody));
        }
    }
}

impl Client {
    fn turn(
        &mut self,
        now: Duration,
        (schemas, members, nodes): (&[Schema], &Members, &[NodeState]),
        known: &mut Known,
    ) {
        if now < self.pause {
            return;
        }
        if let Some(current) = &mut self.current {
            if let Progress::Ended(_) = current.turn(now, (schemas, members, nodes), &mut self.chance, known)
            {
                (self.current, self.done) = (None, self.done + 1);
                self.pause = now + self.chance.millis(0, 400);
            }
            return;
        }
        // Later schemas are still to be made: what comes meanwhile concerns those that are there.
        let is_ours = |schema: &Schema| schema.steps == STEPS && schema.members.contains(&self.organisation);
        let ours: Vec<usize> = (0..schemas.len()).filter(|number| is_ours(&schemas[*number])).collect();
        let all_are_made = schemas.iter().all(|schema| schema.steps == STEPS);
        if ours.is_empty() && all_are_made {
            // It is a member of none any more.
            self.done = PART_TRANSACTIONS;
        }
        if ours.is_empty()
            || self.done >= PART_TRANSACTIONS
            || (!all_are_made && self.done > PART_TRANSACTIONS / 3)
        {
            self.pause = now + Duration::from_millis(50);
            return;
        }
        let mut among: BTreeSet<usize> = [*self.chance.pick(&ours)].into();
        if self.chance.percent(70) {
            among.extend((0..2).map(|_| *self.chance.pick(&ours)).collect::<Vec<_>>());
        }
        let height = nodes.iter().map(NodeState::height).max().unwrap_or(0);
        let operations: Vec<Operation> = among.iter().map(|_| Operation::of_part(&mut self.chance)).collect();
        let can_move = among.len() > 1 && operations.iter().all(may_move);
        let names: Vec<&str> = among.iter().map(|number| schemas[*number].name()).collect();
        let (mut moves, is_created) = (vec![Moves::new(); among.len()], can_move && self.chance.percent(30));
        if can_move && self.chance.percent(70) {
            moves = move_around(&names, is_created, &mut self.chance);
        }
        let is_wrong = is_created && moves.iter().any(|moves| !moves.is_empty());
        let mut parts = BTreeMap::new();
        for ((number, operation), moves) in among.into_iter().zip(operations).zip(moves) {
            let schema = &schemas[number];
            let canary = format!("{} written by {:x}", schema.prefix(), self.chance.word());
            let payload = payload(&operation, schema.name(), &canary, &moves);
            parts.insert(number, (operation, payload));
        }
        let signed = UnderWay::sign(&self.identity, parts, schemas, height, &mut self.chance, known);
        if is_wrong {
            known.wrong(signed.id);
        }
        self.current = Some(signed);
    }
}

/// Something goes from each schema to the next one. `is_wrong`: once it is not what comes.
fn move_around(names: &[&str], is_wrong: bool, chance: &mut Chance) -> Vec<Moves> {
    let mut moves = vec![Moves::new(); names.len()];
    let wrong = chance.word() as usize % (names.len() - 1);
    for (from, to) in (0..names.len()).zip(1..names.len()) {
        let (amount, lies) = ((chance.word() % 90) as i64 + 1, is_wrong && from == wrong);
        moves[from].push(("hand_over", names[to].to_string(), amount));
        match (lies, chance.percent(50)) {
            (false, _) => moves[to].push(("take_over", names[from].to_string(), amount)),
            (true, true) => moves[to].push(("take_over", names[from].to_string(), 2 * amount)),
            // It comes nowhere.
            (true, false) => {}
        }
    }
    moves
}

impl UnderWay {
    /// Signs what a transaction does in schemas.
    fn sign(
        identity: &Identity,
        parts: BTreeMap<usize, (Operation, Payload)>,
        schemas: &[Schema],
        height: u64,
        chance: &mut Chance,
        known: &mut Known,
    ) -> UnderWay {
        let request = RequestId(std::array::from_fn(|_| chance.word() as u8));
        let client = ClientId { key: identity.public_key(), request };
        let (mut operations, mut salted) = (BTreeMap::new(), BTreeMap::new());
        let among: Vec<usize> = parts.keys().copied().collect();
        let mut secrets = BTreeMap::new();
        for one in &among {
            for other in among.iter().filter(|other| *other > one) {
                let secret: [u8; 32] = std::array::from_fn(|_| chance.word() as u8);
                secrets.insert((*one, *other), secret);
            }
        }
        for (number, (operation, call)) in parts {
            let others = among.iter().filter(|other| **other != number);
            let between: BTreeMap<String, [u8; 32]> = others
                .map(|other| {
                    let secret = secrets[&(number.min(*other), number.max(*other))];
                    (schemas[*other].name().to_string(), secret)
                })
                .collect();
            let payload = match between.is_empty() {
                true => call,
                false => {
                    let (others, signatures) = Default::default();
                    Payload::Agreed(Box::new(AgreedPart { call, between, others, signatures }))
                }
            };
            let salt = std::array::from_fn(|_| chance.word() as u8);
            salted.insert(schemas[number].name().to_string(), Part { salt, payload });
            operations.insert(schemas[number].name().to_string(), operation);
        }
        let commitment = |(schema, part): (&String, &Part)| PartCommitment {
            schema: schema.clone(),
            commitment: part.commitment(&identity.ledger(), schema, &client),
        };
        let payload = Payload::Parts { parts: salted.iter().map(commitment).collect() };
        let signed = identity.sign_request(request, String::new(), payload, height + EXPIRY);
        let id = signed.transaction.id();
        known.signed(id, operations);
        let answer_at = if chance.percent(30) { AnswerAt::Recorded } else { AnswerAt::Attested };
        let submission = PartSubmission { transaction: signed.to_bytes(), parts: salted };
        let (asked, patience) = (Vec::new(), Duration::ZERO);
        let organisation = signed.credential.organisation;
        UnderWay { id, organisation, submission, schemas: among, answer_at, asked, patience, refusals: 0 }
    }

    fn turn(
        &mut self,
        now: Duration,
        (schemas, members, nodes): (&[Schema], &Members, &[NodeState]),
        chance: &mut Chance,
        known: &mut Known,
    ) -> Progress {
        let (mut ended, mut refusals) = (None, 0);
        self.asked.retain_mut(|(node, replies)| match replies.try_recv() {
            Err(TryRecvError::Empty) => true,
            Err(TryRecvError::Disconnected) => false,
            Ok(reply) => {
                match reply.result {
                    Ok(receipt) => {
                        known.answered(self.id, *node, &receipt);
                        ended = Some(Some(receipt));
                    }
                    Err(SubmissionRefusal::Rejected(_)) => ended = Some(None),
                    Err(SubmissionRefusal::Aborted(_)) => refusals += 1,
                    Err(_) => {}
                }
                false
            }
        });
        self.refusals += refusals;
        if let Some(receipt) = ended {
            return Progress::Ended(receipt);
        }
        let is_member = |number: &usize| schemas[*number].members.contains(&self.organisation);
        if self.refusals > REFUSALS_MAX || !self.schemas.iter().all(is_member) {
            return Progress::Ended(None);
        }
        if now >= self.patience {
            self.submit(now, (schemas, members, nodes), chance);
        } else if self.asked.is_empty() {
            // Whoever has just refused it is not asked again at once.
            self.patience = self.patience.min(now + chance.millis(100, 500));
        }
        Progress::Waits
    }

    /// Hands it to the node of some organisation that is a member of all its schemas, and knows who else is.
    fn submit(
        &mut self,
        now: Duration,
        (schemas, members, nodes): (&[Schema], &Members, &[NodeState]),
        chance: &mut Chance,
    ) {
        self.patience = now + chance.millis(1_500, 5_000);
        let of_all = |node: &usize| {
            let organisation = members.organisations[*node];
            self.schemas.iter().all(|number| schemas[*number].members.contains(&organisation))
        };
        let able: Vec<usize> = members.nodes.clone().filter(of_all).collect();
        if able.is_empty() {
            self.refusals += 1;
            return;
        }
        let place = *chance.pick(&able);
        let from_height = self.schemas.iter().map(|number| schemas[*number].from_height).max().unwrap_or(0);
        match nodes[place].serving().filter(|node| node.newest().0 >= from_height) {
            Some(node) => {
                let replies = node.submit_parts(self.submission.clone(), self.answer_at, WITHIN);
                self.asked.push((place, replies));
            }
            None => self.patience = now + chance.millis(20, 300),
        }
    }
}

/// What nobody but a schema's members may see from its beginning.
fn expect_names(schemas: &[PlannedSchema], watch: &Watch) {
    for planned in schemas {
        let members: BTreeSet<u16> = planned.members.iter().copied().collect();
        let table = table(&planned.name);
        let name = table.split_once('.').map_or(table.as_str(), |(_, name)| name);
        watch.expect(name, &members);
        Schema::new(planned).expect_canaries(watch);
    }
}
