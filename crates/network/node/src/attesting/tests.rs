//! Networks of state machines with messages that are lost, doubled and out of order, and members that lie.

use super::attestations::{Attestations, Limits, Output};
use super::message::Message;
use crypto::{Digest, SecretKey, sha256};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use types::{
    Attestation, Certificate, CertificateRules, Charter, Charters, CheckpointRoot, Organisation,
    OutcomeHeader,
};

fn key(member: usize) -> SecretKey {
    SecretKey::from_bytes([member as u8 + 101; 32])
}

fn charter(members: usize) -> Charter {
    let mut charter = Charter::with_defaults("test", 7);
    charter.organisations = (0..members)
        .map(|member| Organisation {
            name: format!("org{}", member + 1),
            root_key: SecretKey::from_bytes([member as u8 + 1; 32]).public_key(),
            node_key: key(member).public_key(),
            address: String::new(),
            gateway: String::new(),
            removed: false,
            node_key_expires: None,
        })
        .collect();
    charter
}

type Outcomes = Attestations<OutcomeHeader>;

fn machine(charter: &Charter, member: usize) -> Outcomes {
    Attestations::new(Charters::new(Arc::new(charter.clone())), Limits::OUTCOMES, key(member), 0)
}

/// What blocks 1, 2, … come to; `variant` 0 is the truth, others differ from height `from` on.
fn chain(charter: &Charter, heights: u64, variant: u8, from: u64) -> Vec<OutcomeHeader> {
    let mut chain: Vec<OutcomeHeader> = Vec::new();
    for height in 1..=heights {
        let variant = if height >= from { variant } else { 0 };
        chain.push(OutcomeHeader {
            ledger: charter.ledger(),
            height,
            block: sha256(&[&height.to_le_bytes()]),
            previous: chain.last().map_or(charter.ledger(), OutcomeHeader::digest),
            receipts_root: Digest::ZERO,
            state_digest: sha256(&[&[variant], &height.to_le_bytes()]),
            charters: charter.ledger(),
        });
    }
    chain
}

struct Network {
    rng: StdRng,
    charter: Charter,
    nodes: Vec<Outcomes>,
    /// The first so many say anything to anybody.
    liars: usize,
    /// Receiver, sender, message.
    waiting: Vec<(usize, usize, Message)>,
    loss: f64,
    certified: Vec<BTreeMap<u64, OutcomeHeader>>,
    diverged: Vec<Option<u64>>,
    split: Vec<bool>,
    contradictions: Vec<u16>,
    now: Duration,
}

impl Network {
    fn new(members: usize, liars: usize, seed: u64) -> Network {
        let charter = charter(members);
        Network {
            rng: StdRng::seed_from_u64(seed),
            nodes: (0..members).map(|member| machine(&charter, member)).collect(),
            charter,
            liars,
            waiting: Vec::new(),
            loss: 0.0,
            certified: vec![BTreeMap::new(); members],
            diverged: vec![None; members],
            split: vec![false; members],
            contradictions: Vec::new(),
            now: Duration::ZERO,
        }
    }

    fn act(&mut self, node: usize, mut outputs: Vec<Output<OutcomeHeader>>) {
        self.nodes[node].tell(&mut outputs);
        for output in outputs {
            match output {
                Output::Say { again, attestations } => {
                    self.broadcast(node, &Message::Attestations { again, attestations });
                }
                Output::Show(certificate) => self.broadcast(node, &Message::Certificate(certificate)),
                Output::Certified(certificate) => {
                    let rules = CertificateRules::new(&self.charter);
                    assert_eq!(rules.check_certificate(&certificate), Ok(()));
                    self.certified[node].insert(certificate.statement.height, certificate.statement);
                }
                Output::Diverged(certificate) => self.diverged[node] = Some(certificate.statement.height),
                Output::Contradiction(both) => {
                    let rules = CertificateRules::new(&self.charter);
                    assert!(both.iter().all(|one| rules.check(one).is_ok()));
                    assert_eq!(both[0].organisation, both[1].organisation);
                    assert_eq!(both[0].statement.height, both[1].statement.height);
                    assert_ne!(both[0].statement, both[1].statement);
                    self.contradictions.push(both[0].organisation);
                }
                Output::Split(_) => self.split[node] = true,
            }
        }
    }

    /// To all others, each copy lost, doubled or delayed on its own.
    fn broadcast(&mut self, from: usize, message: &Message) {
        let bytes = message.to_bytes().expect("short enough");
        let message = Message::from_bytes(&bytes).expect("what was encoded");
        for to in (0..self.nodes.len()).filter(|to| *to != from) {
            for _ in 0..self.rng.random_range(1..=2) {
                if !self.rng.random_bool(self.loss) {
                    self.waiting.push((to, from, message.clone()));
                }
            }
        }
    }

    /// Delivers up to `count` messages, in any order.
    fn deliver(&mut self, count: usize) {
        for _ in 0..count {
            if self.waiting.is_empty() {
                return;
            }
            let next = self.rng.random_range(0..self.waiting.len());
            let (to, from, message) = self.waiting.swap_remove(next);
            let mut outputs = Vec::new();
            match message {
                Message::Attestations { again, attestations } => {
                    self.nodes[to].hear_all(from as u16, again, attestations, &mut outputs);
                }
                Message::Certificate(certificate) => {
                    assert_eq!(self.nodes[to].hear_certificate(certificate, &mut outputs), Ok(()));
                }
                other => panic!("{other:?}"),
            }
            self.act(to, outputs);
        }
    }

    fn execute(&mut self, node: usize, outcome: OutcomeHeader) {
        let mut outputs = Vec::new();
        self.nodes[node].found(outcome, &mut outputs);
        self.act(node, outputs);
    }

    /// The liars say one of several things, each of them to everybody who is chosen to hear it.
    fn lie(&mut self, height: u64) {
        for liar in 0..self.liars {
            for to in self.liars..self.nodes.len() {
                for _ in 0..self.rng.random_range(0..3) {
                    let variant = self.rng.random_range(0..4);
                    let statement = chain(&self.charter, height, variant, 1).pop().expect("a height");
                    let mut said = Attestation::sign(statement, liar as u16, &key(liar));
                    if self.rng.random_bool(0.1) {
                        said.signature.0[9] ^= 1;
                    }
                    let attestations = vec![said];
                    self.waiting.push((to, liar, Message::Attestations { again: false, attestations }));
                }
            }
        }
    }

    fn tick(&mut self, time: Duration) {
        self.now += time;
        for node in self.liars..self.nodes.len() {
            let mut outputs = Vec::new();
            self.nodes[node].tick(self.now, &mut outputs);
            self.act(node, outputs);
        }
    }

    /// Nothing is lost any more, and some time passes.
    fn settle(&mut self) {
        self.loss = 0.0;
        for _ in 0..4 {
            self.deliver(usize::MAX);
            self.tick(Duration::from_millis(300));
        }
        self.deliver(usize::MAX);
    }
}

#[test]
fn honest_nodes_certify_the_truth_and_all_of_it_whatever_up_to_f_members_say() {
    for (seed, (members, liars)) in (0..60).zip([(4, 1), (7, 2), (4, 0), (1, 0), (10, 3)].into_iter().cycle())
    {
        let mut network = Network::new(members, liars, seed);
        network.loss = network.rng.random_range(0.0..0.5);
        let truth = chain(&network.charter, 12, 0, 1);
        let mut done = vec![0; members];
        while done[liars..].iter().any(|height| *height < truth.len()) {
            let node = network.rng.random_range(liars..members);
            if let Some(outcome) = truth.get(done[node]) {
                done[node] += 1;
                network.execute(node, outcome.clone());
                network.lie(outcome.height);
            }
            let some = network.rng.random_range(0..4 * members);
            network.deliver(some);
            if network.rng.random_bool(0.3) {
                network.tick(Duration::from_millis(100));
            }
        }
        network.settle();
        for node in liars..members {
            for (height, certified) in &network.certified[node] {
                assert_eq!(*certified, truth[*height as usize - 1], "seed {seed}");
            }
            assert_eq!(network.nodes[node].certified(), 12, "seed {seed}, node {node}");
            assert_eq!(network.diverged[node], None, "seed {seed}");
            assert!(!network.split[node], "seed {seed}");
        }
        assert!(network.contradictions.iter().all(|member| usize::from(*member) < liars), "seed {seed}");
        if liars > 0 {
            assert!(!network.contradictions.is_empty(), "seed {seed}");
        }
    }
}

#[test]
fn a_node_with_other_outcomes_is_told_and_agrees_once_they_are_replaced() {
    for seed in 0..20 {
        let mut network = Network::new(4, 0, seed);
        let truth = chain(&network.charter, 8, 0, 1);
        let wrong = chain(&network.charter, 8, 1, 5);
        for height in 0..8 {
            for node in 0..4 {
                let outcome = if node == 2 { &wrong[height] } else { &truth[height] };
                network.execute(node, outcome.clone());
            }
            network.deliver(6);
        }
        network.settle();
        for node in [0, 1, 3] {
            assert_eq!((network.nodes[node].certified(), network.diverged[node]), (8, None), "seed {seed}");
        }
        let differing = network.diverged[2].expect("it is told");
        assert!((5..=8).contains(&differing), "seed {seed}: {differing}");
        assert!(network.nodes[2].certified() <= 4, "seed {seed}");

        network.nodes[2].take_back(5);
        truth[4..].iter().for_each(|outcome| network.execute(2, outcome.clone()));
        network.settle();
        assert_eq!(network.nodes[2].certified(), 8, "seed {seed}");
        assert!(network.certified[2].values().all(|certified| truth.contains(certified)));
    }
}

#[test]
fn without_a_quorum_everybody_notices_and_votes_again() {
    let mut network = Network::new(4, 0, 1);
    let chains = [chain(&network.charter, 3, 0, 1), chain(&network.charter, 3, 1, 2)];
    for (height, node) in (0..3).flat_map(|height| (0..4).map(move |node| (height, node))) {
        network.execute(node, chains[node % 2][height].clone());
    }
    network.settle();
    assert!(network.nodes.iter().all(|node| node.certified() == 1));
    assert_eq!(network.split, [false; 4], "it may only take its time");
    for _ in 0..50 {
        network.tick(Duration::from_millis(300));
        network.deliver(usize::MAX);
    }
    assert_eq!(network.split, [true; 4]);
    for node in 0..4 {
        network.nodes[node].take_back(2);
        chains[0][1..].iter().for_each(|outcome| network.execute(node, outcome.clone()));
    }
    network.settle();
    assert!(network.nodes.iter().all(|node| node.certified() == 3));
}

#[test]
fn whoever_heals_many_outcomes_is_heard_again() {
    let network = charter(4);
    let (truth, wrong) = (chain(&network, 100, 0, 1), chain(&network, 100, 1, 1));
    let mut node = machine(&network, 3);
    let mut outputs = Vec::new();
    let say = |node: &mut Outcomes,
               member: u16,
               outcome: &OutcomeHeader,
               outputs: &mut Vec<Output<OutcomeHeader>>| {
        let said = Attestation::sign(outcome.clone(), member, &key(member.into()));
        node.hear_all(member, false, vec![said], outputs);
    };
    for (truth, wrong) in truth.iter().zip(&wrong) {
        node.found(truth.clone(), &mut outputs);
        say(&mut node, 0, wrong, &mut outputs);
        say(&mut node, 1, truth, &mut outputs);
    }
    assert_eq!(node.certified(), 0);
    truth.iter().for_each(|truth| say(&mut node, 0, truth, &mut outputs));
    assert_eq!(node.certified(), 100);
    let contradictions = outputs.iter().filter(|output| matches!(output, Output::Contradiction(_)));
    assert_eq!(contradictions.count(), 1, "told once");
}

#[test]
fn a_node_that_is_behind_gets_the_newest_certificate_and_a_certificate_answers_for_all_below() {
    let mut network = Network::new(4, 0, 1);
    let truth = chain(&network.charter, 300, 0, 1);
    for outcome in &truth {
        (0..3).for_each(|node| network.execute(node, outcome.clone()));
        network.deliver(usize::MAX);
    }
    // Node 3 was away: it has heard nothing of most heights.
    network.waiting.clear();
    network.nodes[3] = machine(&network.charter, 3);
    for outcome in &truth {
        network.execute(3, outcome.clone());
    }
    network.waiting.clear();
    assert_eq!(network.nodes[3].certified(), 0);
    network.settle();
    assert_eq!(network.nodes[3].certified(), 300);
    assert_eq!(network.certified[3].keys().copied().collect::<Vec<_>>(), [300]);
}

#[test]
fn certificates_in_blocks_count_and_those_of_heights_to_come_wait() {
    let network = charter(4);
    let truth = chain(&network, 4, 0, 1);
    let certificate = |outcome: &OutcomeHeader| Certificate {
        statement: outcome.clone(),
        signatures: (0..3)
            .map(|member| (member, Attestation::sign(outcome.clone(), member, &key(member.into())).signature))
            .collect(),
    };
    let mut node = machine(&network, 3);
    let mut outputs = Vec::new();
    node.found(truth[0].clone(), &mut outputs);
    node.in_block(&certificate(&truth[0]), &mut outputs);
    assert_eq!(outputs, [Output::Certified(certificate(&truth[0]))]);
    outputs.clear();
    assert_eq!(node.hear_certificate(certificate(&truth[3]), &mut outputs), Ok(()));
    node.found(truth[1].clone(), &mut outputs);
    node.found(truth[2].clone(), &mut outputs);
    assert_eq!((node.certified(), outputs.len()), (1, 0));
    node.found(truth[3].clone(), &mut outputs);
    assert_eq!(outputs, [Output::Certified(certificate(&truth[3]))]);
    let mut forged = certificate(&chain(&network, 9, 1, 1)[8]);
    forged.signatures.truncate(2);
    assert!(node.hear_certificate(forged, &mut outputs).is_err());
}

#[test]
fn what_others_send_without_end_takes_no_memory_and_no_vote() {
    let network = charter(4);
    let truth = chain(&network, 2_000, 0, 1);
    let mut node = machine(&network, 3);
    let mut outputs = Vec::new();
    node.found(truth[0].clone(), &mut outputs);
    // Of heights that are far away, and in the name of others.
    for outcome in &truth[1..] {
        let said = Attestation::sign(outcome.clone(), 0, &key(0));
        node.hear_all(0, false, vec![said.clone()], &mut outputs);
        node.hear_all(1, false, vec![said], &mut outputs);
    }
    assert!(node.heard() <= 257, "{}", node.heard());
    // Wrong signatures spoil nothing but their sender's word, and end in not being heard.
    let mut wrong = Attestation::sign(truth[0].clone(), 0, &key(0));
    wrong.signature.0[0] ^= 1;
    for _ in 0..1_000 {
        node.hear_all(0, false, vec![wrong.clone()], &mut outputs);
        let said = Attestation::sign(truth[0].clone(), 1, &key(1));
        node.hear_all(1, false, vec![said], &mut outputs);
    }
    assert_eq!(node.certified(), 0);
    let said = Attestation::sign(truth[0].clone(), 2, &key(2));
    node.hear_all(2, false, vec![said], &mut outputs);
    assert_eq!(node.certified(), 1);
}

fn root(charter: &Charter, height: u64, variant: u8) -> CheckpointRoot {
    let state_root = sha256(&[&[variant], &height.to_le_bytes()]);
    CheckpointRoot { ledger: charter.ledger(), height, outcome: Digest::ZERO, state_root }
}

fn roots(charter: &Charter, member: usize) -> Attestations<CheckpointRoot> {
    Attestations::new(Charters::new(Arc::new(charter.clone())), Limits::ROOTS, key(member), 0)
}

#[test]
fn roots_far_from_one_another_are_certified_whatever_one_member_says_without_end() {
    let network = charter(4);
    let mut nodes: Vec<_> = (0..4).map(|member| roots(&network, member)).collect();
    let mut outputs = Vec::new();
    for height in [1_000, 2_000, 2_050] {
        nodes.iter_mut().for_each(|node| node.reached(height));
        for (liar, node) in (1..4).flat_map(|node| (0..100).map(move |lie| (lie, node))) {
            let lie = root(&network, height + 7 * liar, 9);
            nodes[node].hear_all(0, false, vec![Attestation::sign(lie, 0, &key(0))], &mut outputs);
        }
        for (from, to) in (1..4).flat_map(|from| (1..4).map(move |to| (from, to))) {
            let truth = root(&network, height, 0);
            match from == to {
                true => nodes[to].found(truth, &mut outputs),
                false => {
                    let said = Attestation::sign(truth, from as u16, &key(from));
                    nodes[to].hear_all(from as u16, false, vec![said], &mut outputs);
                }
            }
        }
        assert!(nodes[1..].iter().all(|node| node.certified() == height && node.heard() <= 8), "{height}");
    }
    let mut certified = Vec::new();
    for output in outputs {
        match output {
            Output::Certified(certificate) => certified.push(certificate.statement),
            Output::Contradiction(both) => assert_eq!(both[0].organisation, 0),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(certified.len(), 9);
    assert!(certified.iter().all(|one| *one == root(&network, one.height, 0)));
}

#[test]
fn a_node_with_another_root_is_told_and_agrees_once_it_is_replaced_and_one_without_says_nothing_again() {
    let network = charter(4);
    let mut node = roots(&network, 3);
    let mut outputs = Vec::new();
    let certificate = |height| {
        let statement = root(&network, height, 0);
        let sign = |member: u16| Attestation::sign(statement.clone(), member, &key(member.into()));
        let signatures = (0..3).map(|member| (member, sign(member).signature)).collect();
        Certificate { statement: statement.clone(), signatures }
    };
    node.found(root(&network, 50, 1), &mut outputs);
    node.in_block(&certificate(50), &mut outputs);
    assert_eq!(outputs, [Output::Diverged(certificate(50))]);
    assert!(node.is_diverged());
    outputs.clear();
    node.take_back(50);
    node.found(root(&network, 50, 0), &mut outputs);
    assert_eq!(outputs, [Output::Certified(certificate(50))]);
    outputs.clear();
    // It has none at 100, and that of 150 is far away: it has nothing to ask for.
    node.found(root(&network, 90, 0), &mut outputs);
    assert_eq!(node.hear_certificate(certificate(100), &mut outputs), Ok(()));
    (0..20).for_each(|time| node.tick(Duration::from_secs(time), &mut outputs));
    assert!(outputs.is_empty(), "{outputs:?}");
}
