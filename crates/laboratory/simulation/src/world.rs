//! The nodes' disks, the nodes, their clients, and what must be true of them at every moment.

use crate::chance::Chance;
use crate::clients::Clients;
use crate::history::{Answer, History, Replayed};
use crate::liar::{AdmitsAnything, ForgetsAll, Lie, LyingServices};
use crate::plan::{Byzantine, Joiner, NodeFault, Plan, TROUBLE};
use crate::private::{Known, PartLies, PrivateClients, PrivateCounts, Watch, WatchedServices};
use crate::workload::{READ_ALL, numbers};
use crate::{Mutation, Report};
use crypto::SecretKey;
use ledger::Ledger;
use node::simulation::{SimulatedMember, SimulatedNode};
use ordering::simulation::{Join, Process, node_key, root_key};
use ordering::{Admission, Delivery, Services};
use parking_lot::Mutex;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use types::{AnswerAt, Charter, Credential, Identity, Organisation, Pipeline};

/// How long after the trouble everybody may take, in simulated time.
const PATIENCE: Duration = Duration::from_secs(90);
/// A run lasts at least so much longer than the trouble, so that all of that happens.
const AFTERWARDS: Duration = Duration::from_secs(1);
/// Nodes get a turn more often than that.
const LATE: Duration = Duration::from_millis(100);
/// How often it is looked whether schemas are settled.
const SETTLING: Duration = Duration::from_millis(300);
/// The run ends by itself before.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(600);

/// A network of whole nodes.
pub(crate) struct World {
    charter: Arc<Charter>,
    plan: Plan,
    mutation: Option<Mutation>,
    inner: Mutex<Inner>,
    /// Who sees what of schemas.
    watch: Arc<Watch>,
    _folder: TempDir,
}

struct Inner {
    nodes: Vec<NodeState>,
    clients: Clients,
    history: History,
    /// Those who write into schemas, and what is known of these.
    private: PrivateClients,
    known: Known,
    /// When it was looked last whether they are settled.
    settled_at: Duration,
    chance: Chance,
    /// Faults of nodes that are still to come.
    faults: Vec<(Duration, usize, NodeFault)>,
    violation: Option<String>,
    finished: bool,
    report: Report,
}

/// One node, running or not.
pub(crate) struct NodeState {
    folder: PathBuf,
    disk: Arc<ledger::Faults>,
    faults: Arc<node::Faults>,
    node: Option<SimulatedNode>,
    /// What the network gives to it.
    services: Option<Services>,
    /// Only of a node that runs: it is the network's.
    clock: Option<Arc<dyn Fn() -> Duration + Send + Sync>>,
    /// It has sent receipts of blocks up to here.
    answered: u64,
    /// How often it has started.
    pub(crate) starts: u64,
    /// It has executed blocks up to here, whether it still has them or not.
    executed: u64,
    /// What its memory held was changed: from then on it may be wrong, and say so to those who do not wait for a quorum.
    pub(crate) tampered: bool,
    /// It has found out, and serves again.
    healed: bool,
    /// Its folders were removed, as the plan has it.
    removed: bool,
    /// Where its ledger begins.
    begins: u64,
    /// What it endorses is not what transactions do.
    pub(crate) endorses_wrongly: bool,
}

impl NodeState {
    /// The node, where it answers clients.
    pub(crate) fn serving(&self) -> Option<&SimulatedNode> {
        self.node.as_ref().filter(|node| node.not_serving().is_none())
    }

    pub(crate) fn height(&self) -> u64 {
        self.node.as_ref().map_or(0, |node| node.newest().0)
    }

    fn certified(&self) -> u64 {
        self.node.as_ref().map_or(0, SimulatedNode::certified_height)
    }
}

impl World {
    pub(crate) fn new(seed: u64, plan: Plan, mutation: Option<Mutation>) -> Result<World, String> {
        let folder =
            tempfile::tempdir().map_err(|error| format!("no folder for the nodes' files: {error}"))?;
        let charter = Arc::new(plan.charter.clone());
        let node = |number: usize| {
            let faults = Arc::new(node::Faults::default());
            if let Some(Mutation::Node(defence)) = mutation {
                faults.switch_off(defence);
            }
            NodeState {
                folder: folder.path().join(format!("node{number}")),
                disk: Arc::new(ledger::Faults::losing()),
                faults,
                node: None,
                services: None,
                clock: None,
                answered: 0,
                starts: 0,
                executed: 0,
                tampered: false,
                healed: false,
                removed: false,
                begins: 1,
                endorses_wrongly: number == 0 && plan.byzantine == Some(Byzantine::Node(Lie::Endorsements)),
            }
        };
        let first = usize::from(matches!(plan.byzantine, Some(Byzantine::Member(_))));
        let mut nodes: Vec<NodeState> = (0..plan.nodes()).map(node).collect();
        if let Some((successor, member)) = plan.successor_of() {
            let (folder, disk) = (nodes[member].folder.clone(), nodes[member].disk.clone());
            (nodes[successor].folder, nodes[successor].disk) = (folder, disk);
        }
        let watch = Arc::<Watch>::default();
        let inner = Inner {
            clients: Clients::new(seed, &plan, first..nodes.len()),
            private: PrivateClients::new(seed, &plan, first..nodes.len(), &watch),
            known: Known::default(),
            settled_at: Duration::ZERO,
            nodes,
            history: History::of(&plan.charter),
            chance: Chance::new(seed, "disks"),
            faults: plan.faults.clone(),
            violation: None,
            finished: false,
            report: Report { seed, protocol: plan.charter.protocol.clone(), ..Report::default() },
        };
        Ok(World { charter, plan, mutation, inner: Mutex::new(inner), watch, _folder: folder })
    }

    /// Nodes that run.
    fn honest(&self) -> Range<usize> {
        let first = usize::from(matches!(self.plan.byzantine, Some(Byzantine::Member(_))));
        first..self.plan.nodes()
    }

    /// Nodes that run in the end and have everything then.
    fn staying(&self) -> impl Iterator<Item = usize> {
        let leaver = self.plan.leaver();
        self.honest().filter(move |node| Some(*node) != leaver)
    }

    fn lie(&self, node: usize) -> Option<Lie> {
        match self.plan.byzantine {
            Some(Byzantine::Node(lie)) if node == 0 => Some(lie),
            _ => None,
        }
    }

    /// Checks everything once more, and what the nodes' disks hold after all of them were killed at once.
    pub(crate) fn conclude(&self, ran: &Result<ordering::simulation::Ran, String>) -> Result<Report, String> {
        let mut inner = self.inner.lock();
        if let Some(violation) = inner.violation.take() {
            return Err(violation);
        }
        let ran = ran.as_ref().map_err(|error| format!("liveness: {error}; {}", inner.situation()))?;
        let mut report = inner.report.clone();
        let mut parts: Vec<Vec<u8>> = vec![ran.fingerprint.0.to_vec()];
        for node in self.honest() {
            inner.kill(node);
            let folder = inner.nodes[node].folder.join("ledger");
            let (ledger, _) = Ledger::open(folder, self.charter.ledger())
                .map_err(|error| format!("durability: the folder of node {node} does not open: {error}"))?;
            let tip = ledger.tip();
            let answered = inner.nodes[node].answered;
            let tampered = inner.nodes[node].tampered;
            if tip.map_or(0, |(height, _)| height) < answered && !tampered {
                return Err(format!(
                    "durability: node {node} answered height {answered}, its disk has {tip:?}"
                ));
            }
            parts.extend(tip.map(|(_, digest)| digest.0.to_vec()));
            self.look_through(node, &inner.nodes[node].folder, &ledger)?;
        }
        if let Some(seen) = self.watch.seen() {
            return Err(seen);
        }
        report.private.canaries = self.watch.found();
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        report.fingerprint = crypto::sha256(&parts);
        report.counts = self.plan.counts;
        Ok(report)
    }
}

impl Inner {
    fn violate(&mut self, what: String) {
        self.violation.get_or_insert(what);
    }

    /// Hears all nodes, what they say of schemas.
    fn hear_all(&mut self) -> Result<(), String> {
        for (number, state) in self.nodes.iter().enumerate() {
            if let Some(node) = &state.node {
                self.known.hear(number, state.starts, node)?;
            }
        }
        Ok(())
    }

    /// For whoever reads that nothing goes on.
    fn situation(&self) -> String {
        let node = |(number, state): (usize, &NodeState)| {
            let why = state.node.as_ref().map_or(Some("away".to_string()), SimulatedNode::not_serving);
            format!("node {number} at {} certified {} {why:?}", state.height(), state.certified())
        };
        let nodes: Vec<String> = self.nodes.iter().enumerate().map(node).collect();
        let missing =
            self.history.submitted.values().filter(|one| one.answers.is_empty() && one.refused.is_none());
        let schemas = |(number, state): (usize, &NodeState)| {
            let schemas = state.node.as_ref().map(SimulatedNode::schemas).unwrap_or_default();
            let schemas = schemas.into_iter().map(move |schema| format!("node {number} {schema:?}"));
            schemas.collect::<Vec<_>>()
        };
        let schemas: Vec<String> = self.nodes.iter().enumerate().flat_map(schemas).collect();
        format!(
            "{}; {} transactions without an answer; {}; {}",
            nodes.join(", "),
            missing.count(),
            schemas.join(", "),
            self.private.situation()
        )
    }

    /// The node is gone, and with it what it had not flushed.
    fn kill(&mut self, number: usize) {
        let Inner { nodes, chance, report, violation, .. } = self;
        let state = &mut nodes[number];
        (state.clock, state.services) = (None, None);
        if state.node.take().is_none() {
            return;
        }
        report.crashes += 1;
        state.disk.fail_flushes(false);
        state.disk.leave_space(u64::MAX);
        match state.disk.lose_unflushed(|| chance.word()) {
            Ok(lost) => report.writes_lost += lost,
            Err(error) => {
                violation.get_or_insert(format!("the simulated disk broke: {error}"));
            }
        }
    }

    /// Somebody removes what the node can fetch from the others.
    fn remove_folders(&mut self, number: usize) {
        let state = &mut self.nodes[number];
        for name in ["ledger", "checkpoints", "history"] {
            let removed = std::fs::remove_dir_all(state.folder.join(name));
            if let Err(error) = removed
                && error.kind() != std::io::ErrorKind::NotFound
            {
                self.violation.get_or_insert(format!("the folder {name} of node {number} stays: {error}"));
            }
        }
        // It has promised what its disk holds, and that is gone.
        (state.removed, state.answered, state.begins) = (true, 0, 1);
    }

    /// What must be true of an answer when it is given.
    fn check_answer(&mut self, answer: &Answer, byzantine: usize) {
        let Answer { receipt, node, start, answer_at, doubtful, .. } = answer;
        self.report.receipts += 1;
        let (number, height) = (*node, receipt.height);
        if !doubtful {
            self.nodes[number].answered = self.nodes[number].answered.max(height);
        }
        if *answer_at == AnswerAt::Recorded {
            return;
        }
        // A node that was killed meanwhile may have to collect the certificate again.
        let state = &self.nodes[number];
        if state.starts == *start && state.node.is_some() && state.certified() < height {
            self.violate(format!("node {number} answered height {height} before a quorum did"));
        }
        // What holds at a height was decided long before anybody executed it.
        let Some(node) =
            self.nodes.iter().filter_map(|state| state.node.as_ref()).max_by_key(|node| node.newest())
        else {
            return;
        };
        let charters = node.charters();
        let has_executed = |organisation: &Organisation, height: u64| {
            let node =
                (0..self.nodes.len()).find(|node| node_key(*node).public_key() == organisation.node_key);
            node.is_some_and(|node| self.nodes[node].executed >= height)
        };
        // Outcomes are chained: whoever certifies a later one certifies this one, too, and those may be other members.
        let executed = |height: u64| {
            let charter = &charters.at(height).charter;
            let executed = charter.members().filter(|(_, organisation)| has_executed(organisation, height));
            (executed.count(), charter.outcome_quorum())
        };
        let last = self.nodes[number].certified().max(height);
        let enough = |(executed, quorum): (usize, usize)| executed + byzantine >= quorum;
        if !(height..=last).any(|height| enough(executed(height))) {
            let (executed, _) = executed(height);
            self.violate(format!("height {height} was answered, and only {executed} nodes have executed it"));
        }
    }

    /// Faults come at their time or, where nobody was there to notice it, not at all: a restart was to mend them.
    fn strike(&mut self, now: Duration) {
        while self.faults.first().is_some_and(|(at, ..)| *at <= now) {
            let (at, number, fault) = self.faults.remove(0);
            let state = &mut self.nodes[number];
            if state.node.is_none() || now - at > LATE {
                continue;
            }
            match fault {
                NodeFault::Flush => state.disk.fail_flushes(true),
                NodeFault::Space(bytes) => state.disk.leave_space(bytes),
                NodeFault::Memory => {
                    state.faults.flip_in("accounts");
                    state.tampered = true;
                }
            }
        }
    }
}

/// What a node signs with that brings votes into the ledger.
fn session(node: usize, organisation: u16, charter: &Charter) -> Identity {
    let key = SecretKey::from_bytes(crypto::sha256(&[b"session", &(node as u64).to_le_bytes()]).0);
    let (root, ledger) = (root_key(usize::from(organisation)), charter.ledger());
    Identity::new(ledger, key.clone(), Credential::issue(&root, organisation, &ledger, &key.public_key()))
}

impl Process for World {
    fn start(&self, number: usize, clock: Arc<dyn Fn() -> Duration + Send + Sync>, join: Join<'_>) {
        let mut inner = self.inner.lock();
        inner.kill(number);
        if let Some((successor, member)) = self.plan.successor_of()
            && successor == number
        {
            if clock() < TROUBLE {
                return;
            }
            // It goes on where that one has ended.
            inner.kill(member);
            inner.nodes[number].answered = inner.nodes[number].answered.max(inner.nodes[member].answered);
        }
        let joiner = self.plan.joiner.filter(|joiner| joiner.node == number);
        if let Some(Joiner { removed: Some(after), .. }) = joiner
            && clock() > after
            && !inner.nodes[number].removed
        {
            inner.remove_folders(number);
        }
        inner.nodes[number].clock = Some(clock.clone());
        let state = &inner.nodes[number];
        let member = SimulatedMember {
            folder: state.folder.clone(),
            charter: self.charter.clone(),
            node_key: node_key(number),
            session: session(number, self.plan.organisation_of(number), &self.charter),
            organisation: self.plan.organisation_of(number),
            // Every node may choose, and what blocks come to is the same.
            pipeline: if number % 2 == 1 { Pipeline::Graph } else { Pipeline::Serial },
            row_history_megabytes: if number == 1 { 1 } else { 0 },
            join_behind_blocks: joiner.map(|joiner| joiner.behind_blocks),
            faults: state.faults.clone(),
            disk: state.disk.clone(),
            stores: None,
        };
        let lie = self.lie(number);
        let admits_anything =
            lie == Some(Lie::Transactions) || self.mutation == Some(Mutation::AdmitAnything);
        let mut own = None;
        let join = |height, charters, admission: Arc<dyn Admission>| {
            let admission: Arc<dyn Admission> = match lie {
                _ if admits_anything => Arc::new(AdmitsAnything(admission)),
                Some(Lie::Repetitions) => Arc::new(ForgetsAll::around(admission)),
                _ => admission,
            };
            let services = join(height, charters, admission);
            let services = WatchedServices::around(services, number, self.watch.clone());
            let services = match lie {
                Some(lie) => LyingServices::around(services, self.charter.ledger(), number, lie),
                None => services,
            };
            own = Some(services.clone());
            services
        };
        match SimulatedNode::open(member, clock, join) {
            Ok(node) => {
                let (height, answered) = (node.newest().0, state.answered);
                if height < answered && !state.tampered {
                    inner.violate(format!(
                        "durability: node {number} answered height {answered}, and starts again at {height}"
                    ));
                }
                let state = &mut inner.nodes[number];
                (state.node, state.services, state.starts) = (Some(node), own, state.starts + 1);
                // Also what another one has executed whose folder it took over.
                state.executed = state.executed.max(height);
                inner.report.starts += 1;
            }
            Err(error) => inner.violate(format!("node {number} does not start again: {error}")),
        }
    }

    fn missing(&self, node: usize, delivered: u64) -> Range<u64> {
        self.inner.lock().nodes[node].node.as_ref().map_or(0..0, |node| node.missing(delivered))
    }

    fn deliver(&self, node: usize, delivery: Delivery) {
        let state = &mut self.inner.lock().nodes[node];
        let height = delivery.block.header.height;
        let transactions = delivery.block.transactions.clone();
        let Some(running) = &mut state.node else { return };
        if let (Some(lie), Some(services)) = (self.lie(node), &state.services) {
            PartLies::ask(lie, &transactions, services);
        }
        let node = running;
        node.deliver(delivery);
        if node.stopped().is_none() {
            state.executed = state.executed.max(height);
        }
    }

    fn turn(&self, number: usize) {
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        let state = &mut inner.nodes[number];
        let Some(node) = &mut state.node else { return };
        node.turn();
        let begins = node.ledger().first_height();
        if begins > state.begins {
            // What lies before it a quorum has executed, or there would be no certificate.
            (state.begins, state.executed) = (begins, state.executed.max(node.newest().0));
            inner.report.joined += 1;
        }
        if state.tampered && !state.healed && node.reported().is_some() && node.not_serving().is_none() {
            state.healed = true;
            inner.report.healed += 1;
        }
        let heard = inner.known.hear(number, state.starts, node);
        if let Some(violation) = heard.err().or_else(|| self.watch.seen()) {
            inner.violate(violation);
        }
        let doubts = inner.nodes[number].node.as_ref().and_then(SimulatedNode::reported);
        if let Some(doubts) = doubts.filter(|_| !inner.nodes[number].tampered) {
            inner.violate(format!("node {number} was made to doubt what is right: {doubts}"));
        }
        let now = inner.nodes[number].clock.as_ref().map(|clock| clock());
        if let Some(now) = now {
            self.clients(inner, now);
        }
    }

    fn crash(&self, node: usize) {
        self.inner.lock().kill(node);
    }

    fn height(&self, node: usize) -> u64 {
        self.inner.lock().nodes[node].height()
    }

    fn is_done(&self) -> bool {
        let inner = self.inner.lock();
        inner.violation.is_some() || inner.finished
    }
}

impl World {
    /// Clients get their turn whenever some node does.
    fn clients(&self, inner: &mut Inner, now: Duration) {
        if inner.violation.is_some() || inner.finished {
            return;
        }
        inner.strike(now);
        let Inner { clients, private, nodes, history, known, .. } = inner;
        let answers = clients.turn(now, nodes, history);
        private.turn(now, nodes, history, known);
        for answer in answers {
            let byzantine = usize::from(self.plan.byzantine.is_some());
            inner.check_answer(&answer, byzantine);
        }
        if now > TROUBLE + PATIENCE {
            let situation = inner.situation();
            inner.violate(format!("liveness: {PATIENCE:?} after everything works again: {situation}"));
        }
        let are_done = inner.clients.are_done() && inner.private.are_done();
        if now > TROUBLE + AFTERWARDS && are_done && self.is_settled(inner, now) {
            self.try_to_finish(inner);
        }
    }

    /// Once every node has all that clients were told, and a certificate of it, everything is compared.
    fn try_to_finish(&self, inner: &mut Inner) {
        let answers = inner.history.submitted.values().flat_map(|submitted| &submitted.answers);
        let highest = answers.map(|answer| answer.receipt.height).max().unwrap_or(0);
        // A change of members is to be in force too.
        let changes = self.plan.counts.members > 0;
        let behind = |state: &NodeState| {
            let Some(node) = state.serving() else { return true };
            let changed = if changes { node.charters().newest().first + 1 } else { 0 };
            node.newest().0 < highest.max(changed) || node.certified_height() < highest.max(changed)
        };
        if self.staying().any(|node| behind(&inner.nodes[node])) {
            return;
        }
        match self.compare(inner, highest) {
            Err(violation) => inner.violate(violation),
            Ok((replayed, private)) => {
                let report = &mut inner.report;
                report.private = private;
                (report.transactions, report.rejected) = (replayed.executed, replayed.rejected);
                report.committed = replayed.committed;
                report.blocks = highest;
                inner.finished = true;
            }
        }
    }

    fn compare(&self, inner: &mut Inner, highest: u64) -> Result<(Replayed, PrivateCounts), String> {
        inner.history.parts = inner.known.ids();
        let private = self.compare_schemas(inner)?;
        let replayed = self.compare_states(inner, highest)?;
        Ok((replayed, private))
    }

    /// A node that has every block, and tells the truth.
    fn has_every_block<'a>(&self, inner: &'a Inner) -> Option<&'a SimulatedNode> {
        let whole = |number: &usize| inner.nodes[*number].begins == 1 && !inner.nodes[*number].tampered;
        let serving = self.staying().filter(whole).filter_map(|number| inner.nodes[number].serving());
        serving.max_by_key(|node| node.newest().0)
    }

    /// Nodes whose word on schemas counts, each with its organisation.
    fn members(&self) -> impl Iterator<Item = (usize, u16)> {
        let lies = self.plan.byzantine.is_some();
        let number = |number| (number, self.plan.organisation_of(number));
        let replaced = self.plan.successor_of().map(|(_, member)| member);
        self.staying()
            .filter(move |number| !lies || *number > 0)
            .filter(move |number| Some(*number) != replaced)
            .map(number)
    }

    /// Everything that stands in schemas is decided, and executed by all members.
    fn is_settled(&self, inner: &mut Inner, now: Duration) -> bool {
        if self.plan.schemas.is_empty() {
            return true;
        }
        if now < inner.settled_at + SETTLING {
            return false;
        }
        inner.settled_at = now;
        if let Err(violation) = inner.hear_all() {
            inner.violate(violation);
            return false;
        }
        let nodes: Option<Vec<&SimulatedNode>> =
            self.members().map(|(number, _)| inner.nodes[number].serving()).collect();
        let (Some(nodes), Some(whole)) = (nodes, self.has_every_block(inner)) else { return false };
        match inner.known.is_settled(whole.ledger(), &whole.charters(), &nodes) {
            Ok(is_settled) => is_settled,
            Err(violation) => {
                inner.violate(violation);
                false
            }
        }
    }

    fn compare_schemas(&self, inner: &mut Inner) -> Result<PrivateCounts, String> {
        if self.plan.schemas.is_empty() {
            return Ok(PrivateCounts::default());
        }
        let members = inner.private.members();
        let mut known = std::mem::take(&mut inner.known);
        let whole = self.has_every_block(inner).ok_or("no node has every block")?;
        let serving = |(number, organisation): (usize, u16)| {
            Some((number, organisation, inner.nodes[number].serving()?))
        };
        let nodes: Vec<(usize, u16, &SimulatedNode)> = self.members().filter_map(serving).collect();
        let checked = known.check(whole.ledger(), &whole.charters(), &nodes, &members);
        inner.known = known;
        checked
    }

    /// Neither files nor blocks nor receipts of a node have what its organisation may not see.
    fn look_through(&self, node: usize, folder: &Path, ledger: &Ledger) -> Result<(), String> {
        if self.plan.schemas.is_empty() {
            return Ok(());
        }
        let organisation = self.plan.organisation_of(node);
        let looked = self.watch.look_through(folder, organisation);
        looked.map_err(|error| format!("the folder of node {node} cannot be read: {error}"))?;
        for record in ledger.blocks_from(ledger.first_height()) {
            let record = record.map_err(|error| format!("a ledger cannot be read: {error}"))?;
            let height = record.block.header.height;
            let receipts = types::encode(&record.outcome.receipts);
            for bytes in record.block.transactions.iter().map(|bytes| &bytes[..]).chain([&receipts[..]]) {
                self.watch.look(bytes, None, || format!("block {height} of node {node} or its receipts"));
            }
        }
        Ok(())
    }

    fn compare_states(&self, inner: &Inner, highest: u64) -> Result<Replayed, String> {
        let mut first: Option<(usize, Replayed)> = None;
        // Those that have every block come first, and the others are compared with one of them.
        let mut staying: Vec<usize> = self.staying().collect();
        staying.sort_by_key(|number| inner.nodes[*number].begins > 1);
        for number in staying {
            let Some(node) = inner.nodes[number].serving() else { continue };
            let replayed = match inner.nodes[number].begins {
                1 => inner.history.check(node.ledger()).map_err(|error| format!("node {number}: {error}"))?,
                _ => Replayed::default(),
            };
            let (height, rows) = node.query(READ_ALL).map_err(|error| format!("node {number}: {error:?}"))?;
            let known = if let Some((_, first)) = &first { [&replayed, first] } else { [&replayed; 2] };
            let expected = known.iter().find_map(|known| known.rows_at(height));
            // What nobody has read since its bit flipped, nobody can have missed.
            let certain = !inner.nodes[number].tampered || inner.nodes[number].healed;
            if certain && height == node.newest().0 && expected.is_some() && numbers(&rows) != expected {
                return Err(format!(
                    "node {number} holds {rows:?} at height {height}, expected {expected:?}"
                ));
            }
            match &first {
                Some((other, _)) => self.compare_ledgers(inner, *other, number, highest)?,
                None => {
                    let checked = History::check_certificates(node.ledger(), &self.charter);
                    checked.map_err(|error| format!("node {number}: {error}"))?;
                    first = Some((number, replayed));
                }
            }
        }
        let (number, replayed) = first.ok_or("no node is there")?;
        // Who has left may have heard of no more, but of nothing else.
        let leaver = self.plan.leaver().filter(|leaver| self.honest().contains(leaver));
        if let Some(leaver) = leaver.filter(|leaver| inner.nodes[*leaver].serving().is_some()) {
            self.compare_ledgers(inner, number, leaver, inner.nodes[leaver].height().min(highest))?;
        }
        Ok(replayed)
    }

    /// The same blocks came to the same at both, byte for byte, from where the ledger of both has begun.
    fn compare_ledgers(&self, inner: &Inner, one: usize, other: usize, highest: u64) -> Result<(), String> {
        let at = |number: usize, height: u64| {
            let node = inner.nodes[number].serving().ok_or("a node is gone")?;
            let record = node.ledger().read(height).map_err(|error| error.to_string())?;
            let record = record.ok_or_else(|| format!("node {number} has no block {height}"))?;
            Ok::<_, String>((record.block, record.outcome))
        };
        let begins = inner.nodes[one].begins.max(inner.nodes[other].begins);
        for height in begins..=highest {
            if at(one, height)? != at(other, height)? {
                return Err(format!("agreement: nodes {one} and {other} differ at height {height}"));
            }
        }
        Ok(())
    }
}
