//! What a node does about outcomes in a simulated network: it says what every block came to, counts who says the same,
//! and hands ordering the certificates. The outcomes are made up, the same at every node; so are amendments of the charter.

use super::node_key;
use crate::{CertifyOutcomes, Services};
use bytes::Bytes;
use crypto::{Digest, SecretKey};
use std::collections::BTreeMap;
use std::time::Duration;
use types::{
    Attestation, Certificate, Charter, Charters, CheckpointRoot, Organisation, OutcomeHeader, decode_exactly,
    encode,
};

/// A node that hears nothing says the newest again after this time.
const REPEAT: Duration = Duration::from_millis(250);
/// A certificate of a checkpoint every so many blocks.
pub(super) const CHECKPOINT_BLOCKS: u64 = 8;
/// Keys that simulated members have.
const KEYS: usize = 16;
/// Heights above the certified one of which a node says something at once.
const AT_ONCE: usize = 16;

/// What members have said of outcomes that no quorum has said yet.
#[derive(Default)]
pub struct Words(BTreeMap<u64, BTreeMap<u16, Attestation<OutcomeHeader>>>);

impl Words {
    /// A member says something; gives what a quorum of the members of that height has said now. Whether signatures are right is
    /// for the caller to know.
    pub fn take(
        &mut self,
        charters: &Charters,
        said: Attestation<OutcomeHeader>,
    ) -> Option<Certificate<OutcomeHeader>> {
        let statement = said.statement.clone();
        let heard = self.0.entry(statement.height).or_default();
        heard.insert(said.organisation, said);
        if heard.len() < charters.at(statement.height).rules.quorum() {
            return None;
        }
        let signatures = heard.values().map(|said| (said.organisation, said.signature)).collect();
        Some(Certificate { statement, signatures })
    }

    /// Words about this height and those before are not needed any more.
    pub fn certified(&mut self, height: u64) {
        self.0 = self.0.split_off(&(height + 1));
    }
}

/// One node's part. Lost when the node is killed.
#[derive(Default)]
pub(super) struct Attesting {
    certified: u64,
    said: u64,
    said_at: Duration,
    words: Words,
    decided: Option<Digest>,
}

impl Attesting {
    /// Says what is new in `outcomes`, which are those of heights 1, 2, …, and takes what others have said. `decided`: the
    /// charters after the last of them; `own_key`: this node's.
    pub(super) fn work(
        &mut self,
        (services, now): (&Services, Duration),
        outcomes: &[OutcomeHeader],
        decided: &Charters,
        own_key: &SecretKey,
    ) {
        if self.decided != Some(decided.digest()) {
            self.decided = Some(decided.digest());
            services.certifying.decided(decided.clone());
        }
        let newest = outcomes.len() as u64;
        if self.said < newest || now >= self.said_at + REPEAT {
            let from = (self.said.min(newest.saturating_sub(1)) as usize)
                .max(outcomes.len().saturating_sub(AT_ONCE));
            for outcome in &outcomes[from..] {
                // Only a member of that height says something.
                let Some(position) = decided.at(outcome.height).charter.member(&own_key.public_key()) else {
                    continue;
                };
                let said = Attestation::sign(outcome.clone(), position as u16, own_key);
                services.messages.broadcast(Bytes::from(encode(&said)));
                self.take(&*services.certifying, decided, said);
            }
            (self.said, self.said_at) = (newest, now);
        }
        for (sender, bytes) in services.messages.messages().try_iter() {
            let said: Attestation<OutcomeHeader> =
                decode_exactly(&bytes).expect("what another node has encoded arrives as it was");
            assert_eq!(said.organisation, sender, "the channel authenticates its senders");
            self.take(&*services.certifying, decided, said);
        }
    }

    fn take(
        &mut self,
        certifying: &dyn CertifyOutcomes,
        decided: &Charters,
        said: Attestation<OutcomeHeader>,
    ) {
        let height = said.statement.height;
        if height <= self.certified {
            return;
        }
        let Some(certificate) = self.words.take(decided, said) else { return };
        if decided.at(height).rules.check_certificate(&certificate).is_err() {
            // A node that is behind does not know the charter of this height yet.
            return;
        }
        if height.is_multiple_of(CHECKPOINT_BLOCKS)
            && let Some(checkpoint) = checkpoint(&decided.at(height).charter, &certificate.statement)
        {
            certifying.certify_checkpoint(checkpoint);
        }
        certifying.certify(certificate);
        self.certified = height;
        self.words.certified(height);
    }
}

/// As if all nodes had said so.
fn checkpoint(charter: &Charter, outcome: &OutcomeHeader) -> Option<Certificate<CheckpointRoot>> {
    let (ledger, height) = (outcome.ledger, outcome.height);
    let statement =
        CheckpointRoot { ledger, height, outcome: outcome.digest(), state_root: outcome.state_digest };
    let signed = |(member, organisation): (u16, &Organisation)| {
        let key = (0..KEYS).map(node_key).find(|key| key.public_key() == organisation.node_key)?;
        Some((member, Attestation::sign(statement.clone(), member, &key).signature))
    };
    let signatures = charter.members().map(signed).collect::<Option<_>>()?;
    Some(Certificate { signatures, statement })
}
