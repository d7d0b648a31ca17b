//! Collecting attestations: a state machine.
//!
//! ```text
//!  own outcome ──▶ ┌──────────────┐ ──▶ own attestations, certificates for those who are behind
//!  message     ──▶ │ Attestations │ ──▶ certificates that this node's outcomes agree with
//!  time        ──▶ └──────────────┘ ──▶ a certificate that they do not agree with, proofs of contradiction
//! ```
//!
//! A signature is looked at when it counts: once as many members say the same as a certificate needs, all of theirs are
//! verified at once. Members speak for themselves only, over authenticated connections, so that a wrong signature spoils
//! nothing but the word of who sent it.

use super::message::{ATTESTATIONS_MAX, Message};
use crypto::{Digest, SecretKey};
use std::collections::BTreeMap;
use std::time::Duration;
use types::{
    Attestation, AttestationError, Certificate, CertificateRules, OutcomeCertificate, OutcomeHeader,
};

/// How often a node without a certificate of its newest outcome says it again.
const REPEAT: Duration = Duration::from_millis(250);
/// Heights above its own newest of which a node listens to what others say.
const AHEAD_MAX: u64 = 256;
/// Heights of which it keeps what they have said.
const HEARD_MAX: usize = 1_024;
/// Own outcomes that are kept: more than ordering may ever be ahead of what is certified.
const OWN_MAX: usize = 12_000;
/// Who has sent so much that is wrong is not listened to any more: looking at signatures takes time.
const FAULTS_MAX: u32 = 64;
/// After this time without a certificate a node looks whether there can be one.
const SPLIT: Duration = Duration::from_secs(10);

/// What is to be done.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Output {
    /// Tell the other nodes.
    Send(Message),
    /// This node's outcomes up to this height are those of a quorum.
    Certified(OutcomeCertificate),
    /// A quorum came to something else than this node.
    Diverged(OutcomeCertificate),
    /// A member has signed two different things. Told once per member.
    Contradiction(Box<[Attestation<OutcomeHeader>; 2]>),
    /// No outcome can find a quorum at this height.
    Split(u64),
}

#[derive(Clone, Default)]
struct Member {
    /// The newest that it has said.
    newest: Option<(u64, Digest)>,
    contradicted: bool,
    /// Wrong signatures, and contradictions that were looked at.
    faults: u32,
}

/// What one node knows about others' outcomes and its own.
pub(crate) struct Attestations {
    rules: CertificateRules,
    organisation: u16,
    node_key: SecretKey,
    own: BTreeMap<u64, OutcomeHeader>,
    /// Own attestations that nobody has been told.
    untold: Vec<Attestation<OutcomeHeader>>,
    /// Highest own height that is certified.
    certified: u64,
    /// The newest certificate, maybe of a height that this node has not reached.
    newest: Option<OutcomeCertificate>,
    /// What members say, by height above the certified one, then by member.
    heard: BTreeMap<u64, Vec<Option<Attestation<OutcomeHeader>>>>,
    members: Vec<Member>,
    repeat_at: Duration,
    /// Somebody said again what is certified.
    behind: bool,
    /// Since when there has been no new certificate.
    stalled_since: Option<Duration>,
    /// Own outcomes differ from a certificate: nothing is said until they are replaced.
    diverged: bool,
}

impl Attestations {
    /// `certified`: the highest height that a block of this node's ledger certifies, and what it came to.
    pub(crate) fn new(
        rules: CertificateRules,
        organisation: u16,
        node_key: SecretKey,
        certified: u64,
    ) -> Attestations {
        let members = vec![Member::default(); rules.members()];
        Attestations {
            rules,
            organisation,
            node_key,
            own: BTreeMap::new(),
            untold: Vec::new(),
            certified,
            newest: None,
            heard: BTreeMap::new(),
            members,
            repeat_at: Duration::ZERO,
            behind: false,
            stalled_since: None,
            diverged: false,
        }
    }

    /// Highest own height that is certified.
    pub(crate) fn certified(&self) -> u64 {
        self.certified
    }

    /// Own outcome at a height that is still remembered.
    pub(crate) fn own(&self, height: u64) -> Option<&OutcomeHeader> {
        self.own.get(&height)
    }

    /// Heights of which it is kept what members say.
    #[cfg(test)]
    pub(crate) fn heard(&self) -> usize {
        self.heard.len()
    }

    /// The newest height and state digest that each member has told; nothing of it is proved.
    pub(crate) fn told(&self) -> impl Iterator<Item = Option<(u64, Digest)>> + '_ {
        self.members.iter().map(|member| member.newest)
    }

    /// This node has executed the next block. [`Attestations::tell`] says it to the others.
    pub(crate) fn executed(&mut self, outcome: OutcomeHeader, outputs: &mut Vec<Output>) {
        let height = outcome.height;
        self.own.insert(height, outcome.clone());
        if self.own.len() > OWN_MAX {
            self.own.pop_first();
        }
        if let Some(certificate) = self.newest.take_if(|newest| newest.statement.height == height) {
            self.accept(certificate, outputs);
        }
        if height <= self.certified || self.diverged {
            return;
        }
        let own = Attestation::sign(outcome, self.organisation, &self.node_key);
        self.untold.push(own.clone());
        self.put(own);
        self.count(height, outputs);
    }

    /// Tells what was not told yet.
    pub(crate) fn tell(&mut self, outputs: &mut Vec<Output>) {
        let untold = std::mem::take(&mut self.untold);
        for attestations in untold.chunks(ATTESTATIONS_MAX) {
            let attestations = attestations.to_vec();
            outputs.push(Output::Send(Message::Attestations { again: false, attestations }));
        }
    }

    /// What a member says.
    pub(crate) fn hear_all(
        &mut self,
        member: u16,
        again: bool,
        attestations: Vec<Attestation<OutcomeHeader>>,
        outputs: &mut Vec<Output>,
    ) {
        for attestation in attestations {
            self.hear(member, again, attestation, outputs);
        }
    }

    fn hear(
        &mut self,
        member: u16,
        again: bool,
        attestation: Attestation<OutcomeHeader>,
        outputs: &mut Vec<Output>,
    ) {
        let Some(known) = self.members.get_mut(usize::from(member)) else { return };
        if attestation.organisation != member || member == self.organisation || known.faults >= FAULTS_MAX {
            return;
        }
        let (height, state) = (attestation.statement.height, attestation.statement.state_digest);
        if known.newest.is_none_or(|(newest, _)| newest <= height) {
            known.newest = Some((height, state));
        }
        if height <= self.certified {
            self.behind |= again;
            return;
        }
        let own = self.own.last_key_value().map_or(self.certified, |(height, _)| *height);
        if height > own + AHEAD_MAX {
            return;
        }
        let before = self.heard.get(&height).and_then(|heard| heard[usize::from(member)].as_ref());
        match before {
            Some(before) if before.statement == attestation.statement => return,
            Some(before) => {
                let both = Box::new([before.clone(), attestation.clone()]);
                let known = &mut self.members[usize::from(member)];
                known.faults += 1;
                if !known.contradicted && both.iter().all(|one| self.rules.check(one).is_ok()) {
                    known.contradicted = true;
                    outputs.push(Output::Contradiction(both));
                }
            }
            None => {}
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
        certificate: OutcomeCertificate,
        outputs: &mut Vec<Output>,
    ) -> Result<(), AttestationError> {
        if self.is_news(&certificate) {
            self.rules.check_certificate(&certificate)?;
            self.accept(certificate, outputs);
        }
        Ok(())
    }

    /// A certificate that stands in a final block, whose members have checked it.
    pub(crate) fn in_block(&mut self, certificate: &OutcomeCertificate, outputs: &mut Vec<Output>) {
        if self.is_news(certificate) {
            self.accept(certificate.clone(), outputs);
        }
    }

    fn is_news(&self, certificate: &OutcomeCertificate) -> bool {
        let known = self.newest.as_ref().map_or(0, |newest| newest.statement.height);
        certificate.statement.height > known.max(self.certified)
            || certificate.statement.height > self.certified
                && self.own.contains_key(&certificate.statement.height)
    }

    /// Time passes: says again what is not certified, helps those who are behind.
    pub(crate) fn tick(&mut self, now: Duration, outputs: &mut Vec<Output>) {
        let newest = self.own.last_key_value().filter(|(height, _)| **height > self.certified);
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
            outputs.push(Output::Send(Message::Certificate(certificate.clone())));
        }
        let Some((height, _)) = newest.filter(|_| !self.diverged) else { return };
        let own = self.heard.get(height).and_then(|heard| heard[usize::from(self.organisation)].clone());
        let since = *self.stalled_since.get_or_insert(now);
        // Whoever is certified within the time between two looks was not late.
        if let Some(own) = own.filter(|_| since < now) {
            outputs.push(Output::Send(Message::Attestations { again: true, attestations: vec![own] }));
        }
        if now >= since + SPLIT
            && let Some(height) = self.split()
        {
            self.stalled_since = Some(now);
            outputs.push(Output::Split(height));
        }
    }

    /// The first height at which no outcome can find a quorum any more, whatever those say who are silent.
    fn split(&self) -> Option<u64> {
        let (members, quorum) = (self.rules.members(), self.rules.quorum());
        let is_split = |heard: &[Option<Attestation<OutcomeHeader>>]| {
            let spoken: Vec<_> = heard.iter().flatten().map(|said| &said.statement).collect();
            let alike = spoken.iter().map(|one| spoken.iter().filter(|other| *other == one).count()).max();
            alike.unwrap_or(0) + members - spoken.len() < quorum
        };
        let own = self.heard.iter().filter(|(height, _)| self.own.contains_key(height));
        own.into_iter().find(|(_, heard)| is_split(heard)).map(|(height, _)| *height)
    }

    /// The node takes back its outcomes from `height` on; it will execute these blocks again.
    pub(crate) fn take_back(&mut self, height: u64) {
        self.own.split_off(&height);
        self.untold.clear();
        let me = usize::from(self.organisation);
        for heard in self.heard.range_mut(height..).map(|(_, heard)| heard) {
            heard[me] = None;
        }
        self.certified = self.certified.min(height.saturating_sub(1));
        (self.diverged, self.stalled_since) = (false, None);
    }

    fn put(&mut self, attestation: Attestation<OutcomeHeader>) {
        let members = self.members.len();
        let heard = self.heard.entry(attestation.statement.height).or_insert_with(|| vec![None; members]);
        let member = usize::from(attestation.organisation);
        heard[member] = Some(attestation);
        if self.heard.len() > HEARD_MAX {
            self.heard.pop_first();
        }
    }

    /// Looks for a quorum that says the same at `height`.
    fn count(&mut self, height: u64, outputs: &mut Vec<Output>) {
        while let Some(certificate) = self.heard.get(&height).and_then(|heard| self.candidate(heard)) {
            match self.rules.check_certificate(&certificate) {
                Ok(()) => return self.accept(certificate, outputs),
                Err(AttestationError::Signature { organisation }) => {
                    tracing::warn!(organisation, height, "a member's attestation has a wrong signature");
                    if let Some(heard) = self.heard.get_mut(&height) {
                        heard[usize::from(organisation)] = None;
                    }
                    self.members[usize::from(organisation)].faults += 1;
                }
                Err(error) => {
                    // Statements of another ledger.
                    tracing::warn!(height, %error, "a quorum's attestations are no certificate");
                    self.heard.remove(&height);
                }
            }
        }
    }

    /// What a quorum says, signatures not looked at.
    fn candidate(&self, heard: &[Option<Attestation<OutcomeHeader>>]) -> Option<OutcomeCertificate> {
        let spoken: Vec<_> = heard.iter().flatten().collect();
        if spoken.len() < self.rules.quorum() {
            return None;
        }
        spoken.iter().find_map(|first| {
            let statement = &first.statement;
            let signatures: Vec<_> = spoken
                .iter()
                .filter(|said| said.statement == *statement)
                .map(|said| (said.organisation, said.signature))
                .collect();
            let enough = signatures.len() >= self.rules.quorum();
            enough.then(|| Certificate { statement: statement.clone(), signatures })
        })
    }

    /// Takes a good certificate: compares it with what this node found, now or when it gets there.
    fn accept(&mut self, certificate: OutcomeCertificate, outputs: &mut Vec<Output>) {
        let height = certificate.statement.height;
        if self.newest.as_ref().is_none_or(|newest| newest.statement.height < height) {
            self.newest = Some(certificate.clone());
        }
        match self.own.get(&height) {
            _ if height <= self.certified || self.diverged => {}
            None => {}
            Some(own) if *own == certificate.statement => {
                self.certified = height;
                self.heard = self.heard.split_off(&(height + 1));
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
