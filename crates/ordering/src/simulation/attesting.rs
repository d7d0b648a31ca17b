//! What a node does about outcomes in a simulated network: it says what every block came to, counts who says the same,
//! and hands ordering the certificates. The outcomes are made up, the same at every node.

use super::node_key;
use crate::bft::Shared;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::time::Duration;
use types::{Attestation, Certificate, CheckpointRoot, OutcomeHeader, decode_exactly, encode};

/// A node that hears nothing says the newest again after this time.
const REPEAT: Duration = Duration::from_millis(250);
/// A certificate of a checkpoint every so many blocks.
pub(super) const CHECKPOINT_BLOCKS: u64 = 8;
/// Heights above the certified one of which a node says something at once.
const AT_ONCE: usize = 16;

/// One node's part. Lost when the node is killed.
#[derive(Default)]
pub(super) struct Attesting {
    certified: u64,
    said: u64,
    said_at: Duration,
    heard: BTreeMap<u64, BTreeMap<u16, Attestation<OutcomeHeader>>>,
}

impl Attesting {
    /// Says what is new in `outcomes`, which are those of heights 1, 2, …, and takes what others have said.
    pub(super) fn work(&mut self, shared: &Shared, outcomes: &[OutcomeHeader]) {
        let now = (shared.clock)();
        let newest = outcomes.len() as u64;
        if self.said < newest || now >= self.said_at + REPEAT {
            let from = (self.said.min(newest.saturating_sub(1)) as usize)
                .max(outcomes.len().saturating_sub(AT_ONCE));
            for outcome in &outcomes[from..] {
                let key = node_key(shared.organisation as usize);
                let said = Attestation::sign(outcome.clone(), shared.organisation, &key);
                shared.messages.broadcast(Bytes::from(encode(&said)));
                self.take(shared, said);
            }
            (self.said, self.said_at) = (newest, now);
        }
        for (sender, bytes) in shared.messages.received().try_iter() {
            let said: Attestation<OutcomeHeader> =
                decode_exactly(&bytes).expect("what another node has encoded arrives as it was");
            assert_eq!(said.organisation, sender, "the channel authenticates its senders");
            self.take(shared, said);
        }
    }

    fn take(&mut self, shared: &Shared, said: Attestation<OutcomeHeader>) {
        let height = said.statement.height;
        if height <= self.certified {
            return;
        }
        let heard = self.heard.entry(height).or_default();
        let statement = said.statement.clone();
        heard.insert(said.organisation, said);
        if heard.len() < shared.rules.quorum() {
            return;
        }
        let signatures = heard.values().map(|said| (said.organisation, said.signature)).collect();
        let certificate = Certificate { statement, signatures };
        assert_eq!(shared.rules.check_certificate(&certificate), Ok(()));
        if height.is_multiple_of(CHECKPOINT_BLOCKS) {
            shared.certificates.certify_checkpoint(checkpoint(shared, &certificate.statement));
        }
        shared.certificates.certify(certificate);
        self.certified = height;
        self.heard = self.heard.split_off(&(height + 1));
    }
}

/// As if all nodes had said so.
fn checkpoint(shared: &Shared, outcome: &OutcomeHeader) -> Certificate<CheckpointRoot> {
    let (ledger, height) = (outcome.ledger, outcome.height);
    let statement =
        CheckpointRoot { ledger, height, outcome: outcome.digest(), state_root: outcome.state_digest };
    let signed = |member: usize| {
        let signed = Attestation::sign(statement.clone(), member as u16, &node_key(member));
        (signed.organisation, signed.signature)
    };
    Certificate { signatures: (0..shared.members.len()).map(signed).collect(), statement }
}
