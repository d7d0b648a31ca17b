//! From a seed to everything that will happen.

use crate::amendment::Amendment;
use crate::chance::Chance;
use crate::liar::Lie;
use crate::private::{Able, PlannedSchema, any_schemas};
use concurrency::{IDS, VALIDATION_IDS};
use ordering::simulation::{Adversary, Event, LinkQuality, charter, root_key};
use std::time::Duration;
use types::{Charter, ExecutionModel, faults_tolerated};

/// Until then things go wrong; afterwards everything works, and the network has to come to an end of its work.
pub const TROUBLE: Duration = Duration::from_secs(6);

/// Transactions of each client that writes into schemas.
pub(crate) const PART_TRANSACTIONS: usize = 7;

/// How far outcomes may lag behind at most where the charter is amended: an amendment holds so many blocks later, and ten.
const AMENDED_LAG_BLOCKS: u32 = 6;

/// What a member does that does not follow the rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Byzantine {
    /// It runs no node.
    Member(Adversary),
    /// It runs a node that lies.
    Node(Lie),
    /// Its proposed blocks reach nobody.
    Withholding,
}

impl Byzantine {
    /// All that are met under every protocol.
    pub const ALL: [Byzantine; 10] = [
        Byzantine::Member(Adversary::ConflictingVotes),
        Byzantine::Member(Adversary::Garbage),
        Byzantine::Member(Adversary::Echo),
        Byzantine::Node(Lie::Attestations),
        Byzantine::Node(Lie::Contradictions),
        Byzantine::Node(Lie::Certificates),
        Byzantine::Node(Lie::Transactions),
        Byzantine::Node(Lie::Repetitions),
        Byzantine::Node(Lie::Silence),
        Byzantine::Withholding,
    ];
}

/// What goes wrong with a node's disk or memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NodeFault {
    /// Flushes fail.
    Flush,
    /// So many bytes fit.
    Space(u64),
    /// A bit of a row flips.
    Memory,
}

/// How often something is planned.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Links that fail between groups of nodes, for a while.
    pub partitions: u64,
    /// Faults of disks.
    pub disk_faults: u64,
    /// Flipped bits.
    pub memory_faults: u64,
    /// Members that do not follow the rules.
    pub adversaries: u64,
    /// Amendments of the charter's parameters.
    pub amendments: u64,
    /// Organisations that come, go, or get another key.
    pub members: u64,
    /// Nodes that may join from another one's checkpoint.
    pub joiners: u64,
    /// Schemas with members.
    pub schemas: u64,
    /// Organisations that become members of one, or are one no more.
    pub schema_changes: u64,
}

/// A node that joins from another one's checkpoint when it is behind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Joiner {
    /// Which node.
    pub node: usize,
    /// So many blocks behind it joins.
    pub behind_blocks: u64,
    /// It takes so long for each block, so that joining is often quicker.
    pub block_time: Duration,
    /// When it starts for the first time after this, its ledger, checkpoints and history have been removed.
    pub removed: Option<Duration>,
}

/// A run to be.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The ledger's.
    pub charter: Charter,
    /// Until everything works; then nothing is lost any more.
    pub links: LinkQuality,
    /// In the order of time.
    pub events: Vec<(Duration, Event)>,
    /// In the order of time.
    pub faults: Vec<(Duration, usize, NodeFault)>,
    /// What the charter is amended by, in this order. A new epoch of ordering begins with each.
    pub amendments: Vec<Amendment>,
    /// The first member, if it does not follow the rules.
    pub byzantine: Option<Byzantine>,
    /// All others execute every block.
    pub joiner: Option<Joiner>,
    /// How many clients there are, each with so many transactions.
    pub clients: (usize, usize),
    /// Schemas with members.
    pub schemas: Vec<PlannedSchema>,
    /// What all of it comes to.
    pub counts: Counts,
}

impl Plan {
    /// The plan of a seed: under any protocol, of order–execute or of execute–order–validate.
    pub fn of(seed: u64) -> Plan {
        let plan = Plan::under_few_protocols(seed);
        let chance = &mut Chance::new(seed, "which protocol");
        if chance.percent(40) {
            return plan;
        }
        let ids: Vec<&str> = IDS.into_iter().chain(VALIDATION_IDS).collect();
        let protocol = chance.pick(&ids);
        plan.under(protocol, chance)
    }

    /// The plan of a seed under a protocol of either model, by its id.
    pub fn with_protocol(seed: u64, protocol: &str) -> Plan {
        Plan::under_few_protocols(seed).under(protocol, &mut Chance::new(seed, "options of a protocol"))
    }

    /// The plan of a seed with schemas that have members. More often than not the first organisation lies about them.
    pub fn with_schemas(seed: u64) -> Plan {
        let chance = &mut Chance::new(seed, "plan with schemas");
        let byzantine = match chance.word() % 10 {
            0..5 => Some(Byzantine::Node(*chance.pick(&Lie::PRIVATE))),
            // Whoever sends back to all what it hears shows them what its schemas have.
            5..7 => {
                Some(*chance.pick(&Byzantine::ALL)).filter(|one| *one != Byzantine::Member(Adversary::Echo))
            }
            _ => None,
        };
        Plan::with_schemas_and(seed, byzantine, chance)
    }

    /// The plan of a seed with schemas about which the first organisation lies in this way, or nobody does.
    pub fn with_part_lie(seed: u64, lie: Option<Lie>) -> Plan {
        let chance = &mut Chance::new(seed, "plan with a lie about schemas");
        Plan::with_schemas_and(seed, lie.map(Byzantine::Node), chance)
    }

    fn with_schemas_and(seed: u64, byzantine: Option<Byzantine>, chance: &mut Chance) -> Plan {
        let members = match chance.word() % 10 {
            0..6 => 4,
            6..9 => 5,
            _ => 7,
        };
        let mut plan = match chance.percent(30) {
            true => Plan::with_members(seed, members, byzantine, chance),
            false => Plan::with(seed, members, byzantine, chance),
        };
        if chance.percent(20) {
            plan = plan.with_some_joiner(seed);
        }
        plan.charter.protocol = chance.pick(&IDS).to_string();
        plan.charter.window_blocks = chance.within(4, 24) as u32;
        sign(&mut plan.charter);
        // Whoever goes on from another one's checkpoint cannot follow a schema that is older.
        let has_all = |node: &usize| {
            Some(*node) != plan.leaver() && plan.joiner.is_none_or(|joiner| joiner.node != *node)
        };
        let newcomer = plan.amendments.iter().find_map(|amendment| match amendment {
            Amendment::Join { member } => Some(*member),
            _ => None,
        });
        let liar = plan.byzantine.is_some().then_some(0);
        let able = Able {
            founders: (0..plan.charter.organisations.len()).filter(has_all).map(|one| one as u16).collect(),
            newcomer: newcomer.filter(has_all).map(|one| one as u16),
            liar,
            is_stranger: plan.byzantine == Some(Byzantine::Node(Lie::AsksForParts)),
        };
        plan.schemas = any_schemas(&able, chance);
        plan.counts.schemas = plan.schemas.len() as u64;
        plan.counts.schema_changes = plan.schemas.iter().map(|schema| schema.changes.len() as u64).sum();
        plan
    }

    /// Everything else as it is, with another protocol, and what execute–order–validate has beside it: who endorses and how,
    /// and endorsers that lie.
    fn under(mut self, protocol: &str, chance: &mut Chance) -> Plan {
        self.charter.protocol = protocol.to_string();
        if VALIDATION_IDS.contains(&protocol) {
            self.charter.execution = ExecutionModel::ExecuteOrderValidate;
            self.charter.endorsement.commands = chance.percent(40);
            self.charter.endorsement.run_again = chance.percent(80);
            let members = self.charter.organisations.len();
            if self.counts.members == 0 && chance.percent(25) {
                // All but as many as may be faulty.
                self.charter.endorsement.policy = policy_of(members - faults_tolerated(members), members);
            }
            if !matches!(self.byzantine, Some(Byzantine::Member(_))) && chance.percent(30) {
                self.lies(Lie::Endorsements);
            }
        }
        sign(&mut self.charter);
        self
    }

    /// The plan of a seed in which the first of four organisations endorses what is wrong, and hands it to ordering. As
    /// many organisations as this must endorse a transaction; `None`: one more than may be faulty.
    pub fn with_lying_endorser(seed: u64, protocol: &str, endorsers: Option<usize>) -> Plan {
        let lies = Some(Byzantine::Node(Lie::Endorsements));
        let mut plan = Plan::with(seed, 4, lies, &mut Chance::new(seed, "plan with a lying endorser"));
        plan.charter.execution = ExecutionModel::ExecuteOrderValidate;
        plan.charter.protocol = protocol.to_string();
        plan.charter.endorsement.policy = endorsers.map_or_else(String::new, |many| policy_of(many, 4));
        sign(&mut plan.charter);
        plan
    }

    /// The first node lies, if it did not before or did so about something else.
    fn lies(&mut self, lie: Lie) {
        self.counts.adversaries = 1;
        self.byzantine = Some(Byzantine::Node(lie));
        // As many as may be faulty at once include the adversary.
        self.faults.retain(|(.., fault)| *fault != NodeFault::Memory);
        self.counts.memory_faults = 0;
    }

    /// The plan that a seed had before networks were simulated under all protocols: harmony, aria or serial. Seeds that
    /// have found something then find it here.
    pub fn under_few_protocols(seed: u64) -> Plan {
        let chance = &mut Chance::new(seed, "plan");
        let members = if chance.percent(6) { 7 } else { 4 };
        let byzantine = chance.percent(40).then(|| *chance.pick(&Byzantine::ALL));
        let change = Chance::new(seed, "members").percent(25);
        let plan = match change {
            true => Plan::with_members(seed, members, byzantine, chance),
            false => Plan::with(seed, members, byzantine, chance),
        };
        match Chance::new(seed, "whether somebody joins").percent(30) {
            true => plan.with_some_joiner(seed),
            false => plan,
        }
    }

    /// The plan of a seed for a network of four in which a node joins from another one's checkpoint, while the first member
    /// changes what it sends to such nodes, or does not.
    pub fn with_joiner(seed: u64, lies: bool) -> Plan {
        let byzantine = lies.then_some(Byzantine::Node(Lie::Checkpoints));
        let chance = &mut Chance::new(seed, "plan with a node that joins");
        let plan = match byzantine.is_none() && chance.percent(30) {
            true => Plan::with_members(seed, 4, byzantine, chance),
            false => Plan::with(seed, 4, byzantine, chance),
        };
        plan.with_some_joiner(seed)
    }

    /// Some node is killed, and joins when it is back; not one whose memory is damaged, whose organisation leaves, or whose
    /// folder another one takes over.
    fn with_some_joiner(mut self, seed: u64) -> Plan {
        let chance = &mut Chance::new(seed, "who joins");
        if self.byzantine.is_none() && chance.percent(40) {
            self.lies(Lie::Checkpoints);
        }
        let damaged = |node: usize| {
            self.faults.iter().any(|(_, other, fault)| *other == node && *fault == NodeFault::Memory)
        };
        let moved = self.successor_of().map(|(successor, member)| [successor, member]);
        let may = |node: &usize| {
            !damaged(*node)
                && Some(*node) != self.leaver()
                && !moved.is_some_and(|moved| moved.contains(node))
        };
        let first = usize::from(self.byzantine.is_some());
        let able: Vec<usize> = (first..self.nodes()).filter(may).collect();
        if able.is_empty() {
            return self;
        }
        let node = *chance.pick(&able);
        let (gone, back) = (chance.millis(800, 3_000), chance.millis(4_500, 5_900));
        self.crash(node, gone, back);
        // There is a checkpoint by then, nearly always.
        self.charter.checkpoint_blocks = self.charter.checkpoint_blocks.min(5);
        sign(&mut self.charter);
        self.events.sort_by_key(|(at, _)| *at);
        let removed = chance.percent(50).then_some(gone);
        let (behind_blocks, block_time) = (chance.within(2, 6), chance.millis(20, 120));
        self.joiner = Some(Joiner { node, behind_blocks, block_time, removed });
        self.counts.joiners += 1;
        self
    }

    /// The plan of a seed for a network in which an organisation comes, goes, or gets another key.
    pub fn with_change_of_members(seed: u64) -> Plan {
        Plan::with_members(seed, 4, None, &mut Chance::new(seed, "plan with a change of members"))
    }

    /// The plan of a seed for a network of four whose first member is this one.
    pub fn with_byzantine(seed: u64, byzantine: Byzantine) -> Plan {
        Plan::with(seed, 4, Some(byzantine), &mut Chance::new(seed, "plan with an adversary"))
    }

    /// How many nodes there are, for members or not.
    pub fn nodes(&self) -> usize {
        let members = self.charter.organisations.len();
        members + self.amendments.iter().filter(|amendment| amendment.has_newcomer()).count()
    }

    /// The node that is no member's in the end: its organisation leaves, or has another node.
    pub fn leaver(&self) -> Option<usize> {
        self.amendments.iter().find_map(Amendment::leaver)
    }

    /// The node that takes over the folder of another one when the trouble is over.
    pub fn successor_of(&self) -> Option<(usize, usize)> {
        self.amendments.iter().find_map(|amendment| match amendment {
            Amendment::Replace { member, node } => Some((*node, *member)),
            _ => None,
        })
    }

    /// Position in the charter of the organisation that a node is of, or will be.
    pub fn organisation_of(&self, node: usize) -> u16 {
        match self.successor_of() {
            Some((successor, member)) if successor == node => member as u16,
            _ => node as u16,
        }
    }

    fn with_members(seed: u64, members: usize, byzantine: Option<Byzantine>, chance: &mut Chance) -> Plan {
        let amendment = match chance.word() % 3 {
            0 => Amendment::Join { member: members },
            // As many as before may be faulty then.
            1 => Amendment::Leave { member: members.max(5) - 1 },
            // Whoever waits for its key to be replaced is as good as away.
            _ if byzantine.is_some() => Amendment::Join { member: members },
            _ => Amendment::Replace { member: members - 1, node: members },
        };
        let members = members.max(amendment.leaver().map_or(0, |leaver| leaver + 1));
        let mut plan = Plan::with(seed, members, byzantine, chance);
        if let Amendment::Replace { member, node } = amendment {
            plan.faults.retain(|(.., fault)| *fault != NodeFault::Memory);
            plan.counts.memory_faults = 0;
            plan.events.retain(|(at, event)| *at < TROUBLE || *event != Event::Restart(member));
            plan.events.push((TROUBLE, Event::Crash(member)));
            plan.events.push((TROUBLE + Duration::from_millis(1), Event::Restart(node)));
        }
        if let Amendment::Join { member } = amendment {
            // It is there from the beginning, and follows.
            let times = chance.within(0, 2);
            for _ in 0..times {
                let at = chance.millis(300, 4_500);
                let back = at + chance.millis(50, 1_500);
                plan.crash(member, at, back);
            }
            plan.events.sort_by_key(|(at, _)| *at);
        }
        plan.amendments.push(amendment);
        plan.clients.1 += 4;
        plan.counts.members += 1;
        plan.amends();
        plan
    }

    /// Amendments take effect within the run.
    fn amends(&mut self) {
        self.charter.outcome_lag_blocks = self.charter.outcome_lag_blocks.min(AMENDED_LAG_BLOCKS);
        sign(&mut self.charter);
    }

    fn with(seed: u64, members: usize, byzantine: Option<Byzantine>, chance: &mut Chance) -> Plan {
        let loss = if chance.percent(30) { chance.within(1, 12) } else { 0 };
        let links = LinkQuality {
            latency_ms: chance.within(2, 40) as u16,
            jitter_ms: chance.within(0, 20) as u16,
            arrive_percent: 100 - loss as u8,
        };
        let mut plan = Plan {
            charter: any_charter(seed, members, chance),
            links,
            events: Vec::new(),
            faults: Vec::new(),
            amendments: Vec::new(),
            byzantine,
            joiner: None,
            clients: (chance.within(3, 6) as usize, chance.within(4, 7) as usize),
            schemas: Vec::new(),
            counts: Counts { adversaries: byzantine.is_some().into(), ..Counts::default() },
        };
        let times = chance.within(0, 6);
        for _ in 0..times {
            plan.trouble(members, chance);
        }
        // As many as may be faulty at once include the adversary.
        if byzantine.is_none() && chance.percent(20) {
            let (at, node) = (chance.millis(1_500, 5_000), chance.word() as usize % members);
            plan.faults.push((at, node, NodeFault::Memory));
            plan.counts.memory_faults += 1;
        }
        plan.events.push((TROUBLE, Event::Links(LinkQuality { arrive_percent: 100, ..links })));
        plan.events.sort_by_key(|(at, _)| *at);
        // A node that starts while it runs is killed first: at the end that may happen to all.
        let all = chance.percent(30);
        let away: Vec<usize> = (0..members).filter(|node| all || plan.is_away(*node)).collect();
        plan.events.extend(away.into_iter().map(|node| (TROUBLE, Event::Restart(node))));
        plan.faults.sort_by_key(|(at, ..)| *at);
        if chance.percent(25) {
            plan.amendments.push(Amendment::Fill(chance.within(5, 60) as u32));
            plan.counts.amendments += 1;
            plan.amends();
        }
        plan
    }

    fn trouble(&mut self, members: usize, chance: &mut Chance) {
        let first = usize::from(matches!(self.byzantine, Some(Byzantine::Member(_))));
        let node = first + chance.word() as usize % (members - first);
        let (at, length) = (chance.millis(300, 4_500), chance.millis(50, 2_000));
        let end = (at + length).min(TROUBLE - Duration::from_millis(1));
        match chance.word() % 8 {
            0..3 => self.crash(node, at, end),
            3 => (first..members).for_each(|node| {
                let late = chance.millis(0, 30);
                self.crash(node, at + late, end.max(at + late));
            }),
            4..6 => {
                let one_way = chance.percent(25);
                let group: Vec<bool> = (0..members).map(|_| chance.percent(50)).collect();
                for (from, to) in (0..members).flat_map(|from| (0..members).map(move |to| (from, to))) {
                    if group[from] == group[to] || one_way && group[from] {
                        continue;
                    }
                    self.events.push((at, Event::Link(from, to, LinkQuality::DEAD)));
                    self.events.push((end, Event::Link(from, to, self.links)));
                }
                self.counts.partitions += 1;
            }
            6 => {
                self.faults.push((at, node, NodeFault::Flush));
                self.counts.disk_faults += 1;
                self.crash(node, end, end + chance.millis(0, 400));
            }
            _ => {
                self.faults.push((at, node, NodeFault::Space(chance.within(0, 20_000))));
                self.counts.disk_faults += 1;
                self.crash(node, end, end + chance.millis(0, 400));
            }
        }
    }

    /// Whether the last that happens to a node is that it is killed.
    fn is_away(&self, node: usize) -> bool {
        let mut of_node = self.events.iter().rev().map(|(_, event)| event);
        let last =
            of_node.find(|event| matches!(event, Event::Crash(one) | Event::Restart(one) if *one == node));
        matches!(last, Some(Event::Crash(_)))
    }

    fn crash(&mut self, node: usize, at: Duration, back: Duration) {
        self.events.push((at, Event::Crash(node)));
        self.events.push((back.min(TROUBLE - Duration::from_millis(1)).max(at), Event::Restart(node)));
    }
}

fn any_charter(seed: u64, members: usize, chance: &mut Chance) -> Charter {
    let mut charter = charter(seed, members);
    // Clients make their own tables.
    charter.governance = "any".to_string();
    charter.protocol = chance.pick(&["harmony", "harmony", "aria", "serial"]).to_string();
    charter.concurrency.inter_block = chance.percent(70);
    charter.concurrency.reordering = chance.percent(70);
    charter.concurrency.coalescing = chance.percent(70);
    charter.block.idle_ms = chance.within(200, 600) as u32;
    charter.block.fill_ms = chance.within(5, 60) as u32;
    charter.block.transactions_max = chance.within(1, 8) as u32;
    charter.block.batch_transactions = chance.within(1, 8) as u32;
    charter.checkpoint_blocks = chance.within(3, 15) as u32;
    if seed.is_multiple_of(2) {
        // From the seed itself: plans of seeds that have found something stay as they were.
        charter.checkpoint_rows = (seed / 2 % 30 + 1) as u32;
    }
    charter.outcome_lag_blocks = chance.within(3, 30) as u32;
    sign(&mut charter);
    charter
}

/// So many of the organisations.
fn policy_of(endorsers: usize, members: usize) -> String {
    let names: Vec<String> = (1..=members).map(|number| format!("org{number}")).collect();
    format!("{endorsers} of ({})", names.join(", "))
}

fn sign(charter: &mut Charter) {
    for position in 0..charter.organisations.len() {
        charter.sign(position, &root_key(position));
    }
}
