//! Collecting attestations of one kind of statement, outcomes or checkpoint roots: a state machine.
//!
//! ```text
//!  own statement ──▶ ┌──────────────┐ ──▶ own attestations, certificates for those who are behind
//!  message       ──▶ │ Attestations │ ──▶ certificates that this node's statements agree with
//!  time          ──▶ └──────────────┘ ──▶ a certificate that they do not agree with, proofs of contradiction
//! ```
//!
//! A signature is looked at when it counts: once as many members say the same as a certificate needs, all of theirs are
//! verified at once. Members speak for themselves only, over authenticated connections, so that a wrong signature spoils
//! nothing but the word of who sent it.
//!
//! After [`FAULTS_MAX`] wrong signatures a member is not heard any more.

use super::message::ATTESTATIONS_MAX;
use crypto::{PublicKey, SecretKey};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;
use types::{Attestation, AttestationError, Certificate, CertificateRules, Charters, Statement};

/// How often a node without a certificate of its newest statement says it again.
const REPEAT: Duration = Duration::from_millis(250);
/// Who has sent so much that is wrong is not listened to any more: looking at signatures takes time.
const FAULTS_MAX: u32 = 64;
/// After this time without a certificate a node looks whether there can be one.
const SPLIT: Duration = Duration::from_secs(10);

/// How much is kept of one kind of statement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Heights above its own newest of which a node listens to what others say.
    ahead: u64,
    /// Heights of which it keeps what one of them has said.
    heard: usize,
    /// Own statements.
    own: usize,
}

impl Limits {
    /// There is one at every height, and ordering is never so far ahead of what is certified.
    pub(crate) const OUTCOMES: Limits = Limits { ahead: 256, heard: 1_024, own: 12_000 };
    /// There are few, far from one another; each makes those before it needless.
    pub(crate) const ROOTS: Limits = Limits { ahead: u64::MAX, heard: 8, own: 8 };
}

/// What is to be done.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Output<T> {
    /// Tell the other nodes.
    Say {
        /// It was said before, and no certificate came.
        again: bool,
        /// Own attestations, by height.
        attestations: Vec<Attestation<T>>,
    },
    /// Hand the newest certificate to the other nodes.
    Show(Certificate<T>),
    /// What this node says up to this height is what a quorum says.
    Certified(Certificate<T>),
    /// A quorum came to something else than this node.
    Diverged(Certificate<T>),
    /// A member has signed two different things. Told once per member.
    Contradiction(Box<[Attestation<T>; 2]>),
    /// Nothing can find a quorum at this height.
    Split(u64),
}

struct Member<T> {
    /// The newest that it has said.
    newest: Option<T>,
    /// What it says, by height above the certified one.
    heard: BTreeMap<u64, Attestation<T>>,
    /// It has been shown to contradict itself. Whoever heals does: its later words count like anybody's.
    contradicted: bool,
    /// Wrong signatures that were looked at.
    faults: u32,
}

impl<T> Member<T> {
    fn new() -> Member<T> {
        Member { newest: None, heard: BTreeMap::new(), contradicted: false, faults: 0 }
    }
}

/// What one node knows about others' statements and its own.
pub(crate) struct Attestations<T> {
    /// What this node's state has decided on: members of a height attest it, under the charter of that height.
    charters: Charters,
    limits: Limits,
    node_key: SecretKey,
    own_key: PublicKey,
    own: BTreeMap<u64, T>,
    /// The last block that this node has executed.
    reached: u64,
    /// Own attestations that nobody has been told.
    untold: Vec<Attestation<T>>,
    /// Highest own height that is certified.
    certified: u64,
    /// The newest certificate, maybe of a height that this node has not reached.
    newest: Option<Certificate<T>>,
    members: Vec<Member<T>>,
    repeat_at: Duration,
    /// Somebody said again what is certified.
    behind: bool,
    /// Since when there has been no new certificate.
    stalled_since: Option<Duration>,
    /// Own statements differ from a certificate: nothing is said until they are replaced.
    diverged: bool,
}

impl<T: Statement + Debug> Attestations<T> {
    /// `certified`: the highest height of which this node knows that its statement is certified.
    pub(crate) fn new(
        charters: Charters,
        limits: Limits,
        node_key: SecretKey,
        certified: u64,
    ) -> Attestations<T> {
        let members = (0..charters.newest().rules.members()).map(|_| Member::new()).collect();
        Attestations {
            charters,
            limits,
            own_key: node_key.public_key(),
            node_key,
            own: BTreeMap::new(),
            reached: 0,
            untold: Vec::new(),
            certified,
            newest: None,
            members,
            repeat_at: Duration::ZERO,
            behind: false,
            stalled_since: None,
            diverged: false,
        }
    }

    /// This node's state has decided on these charters, after the last block that it has executed.
    pub(crate) fn decided(&mut self, charters: Charters) {
        let members = charters.newest().rules.members();
        self.members.extend((self.members.len()..members).map(|_| Member::new()));
        self.charters = charters;
    }

    /// This node has executed the block of this height.
    pub(crate) fn reached(&mut self, height: u64) {
        self.reached = height;
    }

    fn rules(&self, height: u64) -> &CertificateRules {
        &self.charters.at(height).rules
    }

    /// Position of this node's organisation, where its key counts at a height.
    fn own_position(&self, height: u64) -> Option<u16> {
        let charter = &self.charters.at(height).charter;
        let position = charter.member(&self.own_key)?;
        charter.signs_at(position, height).then_some(position as u16)
    }

    /// Whether what this organisation's node signs about a height counts.
    fn counts(&self, member: u16, height: u64) -> bool {
        self.charters.at(height).charter.signs_at(usize::from(member), height)
    }

    /// Highest own height that is certified.
    pub(crate) fn certified(&self) -> u64 {
        self.certified
    }

    /// A certificate says something else than this node, which has not taken that back.
    pub(crate) fn is_diverged(&self) -> bool {
        self.diverged
    }

    /// Own statement at a height that is still remembered.
    pub(crate) fn own(&self, height: u64) -> Option<&T> {
        self.own.get(&height)
    }

    /// Statements of members that are kept.
    #[cfg(test)]
    pub(crate) fn heard(&self) -> usize {
        self.members.iter().map(|member| member.heard.len()).sum()
    }

    /// The newest that each member has told; nothing of it is proved.
    pub(crate) fn told(&self) -> impl Iterator<Item = Option<&T>> + '_ {
        self.members.iter().map(|member| member.newest.as_ref())
    }

    /// What this node has come to. [`Attestations::tell`] says it to the others.
    pub(crate) fn found(&mut self, own: T, outputs: &mut Vec<Output<T>>) {
        let height = own.height();
        self.own.insert(height, own.clone());
        if self.own.len() > self.limits.own {
            self.own.pop_first();
        }
        if let Some(certificate) = self.newest.take_if(|newest| newest.statement.height() == height) {
            self.accept(certificate, outputs);
        }
        if height <= self.certified || self.diverged {
            return;
        }
        if let Some(position) = self.own_position(height) {
            let own = Attestation::sign(own, position, &self.node_key);
            self.untold.push(own.clone());
            self.put(own);
        }
        self.count(height, outputs);
    }

    /// Tells what was not told yet.
    pub(crate) fn tell(&mut self, outputs: &mut Vec<Output<T>>) {
        let untold = std::mem::take(&mut self.untold);
        for attestations in untold.chunks(ATTESTATIONS_MAX) {
            outputs.push(Output::Say { again: false, attestations: attestations.to_vec() });
        }
    }

    /// What a member says.
    pub(crate) fn hear_all(
        &mut self,
        member: u16,
        again: bool,
        attestations: Vec<Attestation<T>>,
        outputs: &mut Vec<Output<T>>,
    ) {
        for attestation in attestations {
            self.hear(member, again, attestation, outputs);
        }
    }

    fn hear(&mut self, member: u16, again: bool, attestation: Attestation<T>, outputs: &mut Vec<Output<T>>) {
        let height = attestation.statement.height();
        let mine = self.own_position(height) == Some(member);
        let counts = self.counts(member, height);
        let Some(known) = self.members.get_mut(usize::from(member)) else { return };
        if attestation.organisation != member || mine || !counts || known.faults >= FAULTS_MAX {
            return;
        }
        if known.newest.as_ref().is_none_or(|newest| newest.height() <= height) {
            known.newest = Some(attestation.statement.clone());
        }
        if height <= self.certified {
            self.behind |= again;
            return;
        }
        let own = self.own.last_key_value().map_or(self.certified, |(height, _)| *height);
        // Who may speak of heights so far above the last block this node does not know yet.
        let reached = self.reached.max(own);
        let known = reached + self.charters.at(reached).charter.amendment_delay_blocks();
        if height > own.saturating_add(self.limits.ahead) || height > known {
            return;
        }
        let rules = self.charters.at(height).rules.clone();
        let before = self.members[usize::from(member)].heard.get(&height);
        if before.is_some_and(|before| before.statement == attestation.statement) {
            return;
        }
        if let Some(before) = before.cloned() {
            let known = &mut self.members[usize::from(member)];
            // Looked at until it is shown once: a node that heals takes back many outcomes, and is no liar.
            if !known.contradicted {
                let both = Box::new([before, attestation.clone()]);
                if both.iter().all(|one| rules.check(one).is_ok()) {
                    known.contradicted = true;
                    outputs.push(Output::Contradiction(both));
                } else {
                    known.faults += 1;
                }
            }
        }
        // A node that has healed says something else than before: its last word counts.
        self.put(attestation);
        self.count(height, outputs);
    }

    /// A certificate from another node, checked here.
    ///
    /// # Errors
    /// [`AttestationError`] says why it is none.
    pub(crate) fn hear_certificate(
        &mut self,
        certificate: Certificate<T>,
        outputs: &mut Vec<Output<T>>,
    ) -> Result<(), AttestationError> {
        if self.is_news(&certificate) {
            self.rules(certificate.statement.height()).check_certificate(&certificate)?;
            self.accept(certificate, outputs);
        }
        Ok(())
    }

    /// A certificate that stands in a final block, whose members have checked it.
    pub(crate) fn in_block(&mut self, certificate: &Certificate<T>, outputs: &mut Vec<Output<T>>) {
        if self.is_news(certificate) {
            self.accept(certificate.clone(), outputs);
        }
    }

    fn is_news(&self, certificate: &Certificate<T>) -> bool {
        let height = certificate.statement.height();
        height > self.newest_certified().max(self.certified)
            || height > self.certified && self.own.contains_key(&height)
    }

    /// Height of the newest certificate that is known, maybe one that this node has not reached.
    fn newest_certified(&self) -> u64 {
        self.newest.as_ref().map_or(0, |newest| newest.statement.height())
    }

    /// Time passes: says again what is not certified, helps those who are behind.
    pub(crate) fn tick(&mut self, now: Duration, outputs: &mut Vec<Output<T>>) {
        // A certificate of a height above answers for it.
        let known = self.certified.max(self.newest_certified());
        let newest = self.own.last_key_value().filter(|(height, _)| **height > known);
        if newest.is_none() || self.diverged {
            self.stalled_since = None;
        }
        if now < self.repeat_at {
            return;
        }
        self.repeat_at = now + REPEAT;
        if std::mem::take(&mut self.behind)
            && let Some(certificate) = &self.newest
        {
            outputs.push(Output::Show(certificate.clone()));
        }
        let Some((height, _)) = newest.filter(|_| !self.diverged) else { return };
        let me = self.own_position(*height).and_then(|me| self.members.get(usize::from(me)));
        let own = me.and_then(|me| me.heard.get(height).cloned());
        let since = *self.stalled_since.get_or_insert(now);
        // Whoever is certified within the time between two looks was not late.
        if let Some(own) = own.filter(|_| since < now) {
            outputs.push(Output::Say { again: true, attestations: vec![own] });
        }
        if now >= since + SPLIT
            && let Some(height) = self.split()
        {
            self.stalled_since = Some(now);
            outputs.push(Output::Split(height));
        }
    }

    /// The first height at which nothing can find a quorum any more, whatever those say who are silent.
    fn split(&self) -> Option<u64> {
        let is_split = |height: &u64| {
            let members = self.charters.at(*height).charter.members().count();
            let quorum = self.rules(*height).quorum();
            let spoken: Vec<_> = self.said(*height).map(|said| &said.statement).collect();
            let alike = spoken.iter().map(|one| spoken.iter().filter(|other| *other == one).count()).max();
            alike.unwrap_or(0) + members.saturating_sub(spoken.len()) < quorum
        };
        self.own.range(self.certified + 1..).map(|(height, _)| *height).find(is_split)
    }

    /// What members say of a height, in their order.
    fn said(&self, height: u64) -> impl Iterator<Item = &Attestation<T>> {
        self.members.iter().filter_map(move |member| member.heard.get(&height))
    }

    /// The node takes back what it has said from `height` on; it will come to it again.
    pub(crate) fn take_back(&mut self, height: u64) {
        self.own.split_off(&height);
        self.untold.clear();
        for (position, member) in self.members.iter_mut().enumerate() {
            let (charters, own_key) = (&self.charters, &self.own_key);
            member
                .heard
                .retain(|at, _| *at < height || charters.at(*at).charter.member(own_key) != Some(position));
        }
        self.certified = self.certified.min(height.saturating_sub(1));
        (self.diverged, self.stalled_since) = (false, None);
    }

    /// The node goes on behind this, which is certified.
    pub(crate) fn join(&mut self, statement: T) {
        let height = statement.height();
        self.own.clear();
        self.own.insert(height, statement);
        self.untold.clear();
        for member in &mut self.members {
            member.heard = member.heard.split_off(&(height + 1));
        }
        self.certified = self.certified.max(height);
        self.newest.take_if(|newest| newest.statement.height() <= height);
        (self.diverged, self.stalled_since) = (false, None);
    }

    /// A member's own words alone make room for its new ones.
    fn put(&mut self, attestation: Attestation<T>) {
        let heard = &mut self.members[usize::from(attestation.organisation)].heard;
        heard.insert(attestation.statement.height(), attestation);
        if heard.len() > self.limits.heard {
            heard.pop_first();
        }
    }

    /// Looks for a quorum that says the same at `height`.
    fn count(&mut self, height: u64, outputs: &mut Vec<Output<T>>) {
        while let Some(certificate) = self.candidate(height) {
            match self.rules(height).check_certificate(&certificate) {
                Ok(()) => return self.accept(certificate, outputs),
                Err(AttestationError::Signature { organisation }) => {
                    tracing::warn!(organisation, height, "a member's attestation has a wrong signature");
                    let member = &mut self.members[usize::from(organisation)];
                    member.heard.remove(&height);
                    member.faults += 1;
                }
                Err(error) => {
                    // Statements of another ledger.
                    tracing::warn!(height, %error, "a quorum's attestations are no certificate");
                    self.members.iter_mut().for_each(|member| drop(member.heard.remove(&height)));
                }
            }
        }
    }

    /// What a quorum says, signatures not looked at.
    fn candidate(&self, height: u64) -> Option<Certificate<T>> {
        let quorum = self.rules(height).quorum();
        let spoken: Vec<_> = self.said(height).collect();
        if spoken.len() < quorum {
            return None;
        }
        spoken.iter().find_map(|first| {
            let statement = &first.statement;
            let signatures: Vec<_> = spoken
                .iter()
                .filter(|said| said.statement == *statement)
                .map(|said| (said.organisation, said.signature))
                .collect();
            let enough = signatures.len() >= quorum;
            enough.then(|| Certificate { statement: statement.clone(), signatures })
        })
    }

    /// Takes a good certificate: compares it with what this node found, now or when it gets there.
    fn accept(&mut self, certificate: Certificate<T>, outputs: &mut Vec<Output<T>>) {
        let height = certificate.statement.height();
        if self.newest_certified() < height {
            self.newest = Some(certificate.clone());
        }
        match self.own.get(&height) {
            _ if height <= self.certified || self.diverged => {}
            None => {}
            Some(own) if *own == certificate.statement => {
                self.certified = height;
                for member in &mut self.members {
                    member.heard = member.heard.split_off(&(height + 1));
                }
                self.stalled_since = None;
                outputs.push(Output::Certified(certificate));
            }
            Some(_) => {
                self.diverged = true;
                self.untold.clear();
                outputs.push(Output::Diverged(certificate));
            }
        }
    }
}
