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
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::mpsc;
use types::{AnswerAt, CertificateRules, Identity, Payload, SchemaCertificate, encode};

/// Blocks behind the one in which outcomes were expected, after which all members bring them.
const LATE_BLOCKS: u64 = 3;
/// Blocks after which outcomes are brought again that this node's ordering had no room for.
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
    /// What this node has brought, and up to which height that may come into the ledger.
    announced: BTreeMap<SchemaBlock, u64>,
}

impl Announcing {
    pub(super) fn new(session: Identity, submitter: Arc<Submitter>, published: Arc<Published>) -> Announcing {
        Announcing { session, submitter, published, announced: BTreeMap::new() }
    }

    /// Has outcomes ordered that are to stand in the ledger, once enough members say the same and it is this node's turn. Asks for the
    /// words of others that are missing, if `asks`.
    pub(super) fn announce(&mut self, schemas: &PrivateSchemas, asks: bool) {
        let needed = schemas.needed_outcomes();
        let Some(own) = schemas.node.organisation() else { return };
        let tip = self.published.newest().0;
        self.announced.retain(|_, until| tip < *until);
        let mut certificates = Vec::new();
        for NeededOutcome { outcome, members, bearer, expected, certified } in needed {
            let block = (outcome.schema, outcome.height);
            let from = if bearer == own { outcome.height } else { expected + LATE_BLOCKS };
            // What waits in a mempool stays there. Of those that nobody waits for one at a time is enough: blocks may be full.
            let first = certified.map_or(block.1, |certified| certified + 1);
            if tip < from || self.announced.range((block.0, first)..=block).next().is_some() {
                continue;
            }
            let rules = CertificateRules::new(&schemas.node.charters.at(outcome.height));
            let certificate = schemas.agreeing.lock().certificate(block, members.quorum(), &rules);
            match certificate.filter(|certificate| certificate.check_count(&members.organisations).is_ok()) {
                Some(certificate) => certificates.push(certificate),
                None if asks => {
                    let ask = Message::AskOutcome { schema: outcome.schema, height: outcome.height };
                    members.organisations.iter().for_each(|member| schemas.tell(*member, &ask));
                }
                None => {}
            }
        }
        let expiry = u64::from(schemas.node.charters.at(tip + 1).expiry_blocks_max).min(EXPIRY_BLOCKS);
        let statements = certificates.iter().map(|one| (one.statement.schema, one.statement.height));
        let blocks: Vec<SchemaBlock> = statements.collect();
        let until = if self.order(certificates, tip + expiry) { tip + expiry } else { tip + AGAIN_BLOCKS };
        self.announced.extend(blocks.into_iter().map(|block| (block, until)));
    }

    /// Whether ordering has taken all of them.
    fn order(&self, certificates: Vec<SchemaCertificate>, expires_at: u64) -> bool {
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
            return true;
        }
        let (replies, mut refusals) = mpsc::channel(transactions.len());
        let submitted = (0..).zip(transactions).map(|(position, certificates)| {
            // Whoever has brought the same at this height before need not do it again.
            let signed = self.session.sign_repeatable(Payload::of_schema_outcomes(certificates), expires_at);
            let bytes = Bytes::from(signed.to_bytes());
            Submitted { position, bytes, answer_at: AnswerAt::Recorded, replies: replies.clone() }
        });
        self.submitter.submit(submitted.collect());
        // Whoever is refused hears it at once, and nobody waits for anything else.
        std::iter::from_fn(|| refusals.try_recv().ok()).all(|reply| reply.result.is_ok())
    }
}
