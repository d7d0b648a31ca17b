//! Certificates of schemas' outcomes on their way into the ledger: they decide transactions with parts in several schemas, and prove
//! to outsiders what has happened.
//!
//! ```text
//!  a block is executed ─▶ own word ─▶ other members' words ─▶ a quorum says the same ─▶ Payload::SchemaOutcomes ─▶ ordering
//! ```
//!
//! A node proposes what was given to it, and nodes take turns. So the member brings them whose turn comes soon, but not before the
//! others' words can be there: three blocks behind the one that was executed, or as soon as possible then. Where it does not, all
//! members do. Any certificate that is too much says nothing.

use super::agreeing::SchemaBlock;
use super::message::Message;
use super::schemas::{NeededOutcome, PrivateSchemas};
use crate::published::Published;
use crate::submission::{Submitted, Submitter};
use bytes::Bytes;
use crypto::sha256;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use tokio::sync::mpsc;
use types::{AnswerAt, CertificateRules, Identity, Payload, RequestId, SchemaCertificate, encode};

/// Blocks behind the one in which outcomes were expected, after which all members bring them.
const LATE_BLOCKS: u64 = 3;
/// Blocks after which outcomes are brought again that are still not there.
const AGAIN_BLOCKS: u64 = 8;
/// How many blocks ahead the expiry height of such a transaction lies, if the charter allows so many.
const EXPIRY_BLOCKS: u64 = 100;
/// Bytes of the certificates of one transaction.
const TOGETHER_BYTES: usize = 192 * 1024;

/// What has outcomes ordered.
pub(super) struct Announcing {
    session: Identity,
    submitter: Arc<Submitter>,
    published: Arc<Published>,
    /// At which height this node has brought them last.
    announced: FxHashMap<SchemaBlock, u64>,
}

impl Announcing {
    pub(super) fn new(session: Identity, submitter: Arc<Submitter>, published: Arc<Published>) -> Announcing {
        Announcing { session, submitter, published, announced: FxHashMap::default() }
    }

    /// Has outcomes ordered that are to stand in the ledger, once enough members say the same and it is this node's turn. Asks for the
    /// words of others that are missing, if `asks`.
    pub(super) fn announce(&mut self, schemas: &PrivateSchemas, asks: bool) {
        let needed = schemas.needed_outcomes();
        let Some(own) = schemas.node.organisation() else { return };
        let tip = self.published.newest().0;
        let mut certificates = Vec::new();
        for NeededOutcome { outcome, members, bearer, expected } in needed {
            let block = (outcome.schema, outcome.height);
            let from = if bearer == own { outcome.height } else { expected + LATE_BLOCKS };
            let last = self.announced.get(&block).copied();
            if last.is_some_and(|last| tip < last + AGAIN_BLOCKS) || tip < from {
                continue;
            }
            let rules = CertificateRules::new(&schemas.node.charters.at(outcome.height));
            let certificate = schemas.agreeing.lock().certificate(block, members.quorum(), &rules);
            match certificate.filter(|certificate| certificate.check_count(&members.organisations).is_ok()) {
                Some(certificate) => {
                    self.announced.insert(block, tip);
                    certificates.push(certificate);
                }
                None if asks => {
                    let ask = Message::AskOutcome { schema: outcome.schema, height: outcome.height };
                    members.organisations.iter().for_each(|member| schemas.tell(*member, &ask));
                }
                None => {}
            }
        }
        self.announced.retain(|_, last| *last + 1_000 > tip);
        let expiry = u64::from(schemas.node.charters.at(tip + 1).expiry_blocks_max).min(EXPIRY_BLOCKS);
        self.order(certificates, tip + expiry);
    }

    fn order(&self, certificates: Vec<SchemaCertificate>, expires_at: u64) {
        let (mut transactions, mut together, mut bytes) = (Vec::new(), Vec::new(), 0);
        for certificate in certificates {
            let size = encode(&certificate).len();
            if bytes + size > TOGETHER_BYTES && !together.is_empty() {
                transactions.push(std::mem::take(&mut together));
                bytes = 0;
            }
            bytes += size;
            together.push(certificate);
        }
        transactions.extend((!together.is_empty()).then_some(together));
        if transactions.is_empty() {
            return;
        }
        // Nobody waits: where it gets lost they are brought again.
        let (replies, _) = mpsc::channel(transactions.len());
        let submitted = (0..).zip(transactions).map(|(position, certificates)| {
            // Whoever has brought the same at this height before need not do it again.
            let digest = sha256(&[&expires_at.to_le_bytes(), &encode(&certificates)]);
            let request = RequestId(std::array::from_fn(|byte| digest.0[byte]));
            let payload = Payload::SchemaOutcomes { certificates };
            let signed = self.session.sign_request(request, String::new(), payload, expires_at);
            let bytes = Bytes::from(signed.to_bytes());
            Submitted { position, bytes, answer_at: AnswerAt::Recorded, replies: replies.clone() }
        });
        self.submitter.submit(submitted.collect());
    }
}
