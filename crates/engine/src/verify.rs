use bytes::Bytes;
use crypto::{Digest, PublicKey, Signature, SignedMessage};
use parking_lot::Mutex;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use std::sync::Arc;
use types::{
    Block, BlockHeader, Charter, ClientId, Credential, Outcome, Payload, Receipt, RejectReason,
    SignedTransaction, TransactionId,
};

/// Transactions whose positive verdict is remembered. Each takes about the memory of its decoded form.
const REMEMBERED_TRANSACTIONS_MAX: usize = 32_768;
/// Clients whose credential is remembered as good.
const REMEMBERED_CLIENTS_MAX: usize = 65_536;

/// A transaction that is this ledger's and that its client has signed.
#[derive(Clone, Debug, PartialEq)]
pub struct VerifiedTransaction {
    /// Its id.
    pub id: TransactionId,
    /// Who signed it, and what the client calls it.
    pub client: ClientId,
    /// The last height at which it may stand.
    pub expires_at: u64,
    /// What it does.
    pub payload: Arc<Payload>,
    /// Which organisation vouches for the client.
    pub credential: Credential,
    /// The client's signature under the id.
    pub signature: Signature,
}

impl From<SignedTransaction> for VerifiedTransaction {
    /// Takes the parts of a transaction whose signature somebody has verified, or need not.
    fn from(signed: SignedTransaction) -> VerifiedTransaction {
        VerifiedTransaction {
            id: signed.transaction.id(),
            client: signed.client_id(),
            expires_at: signed.transaction.expires_at,
            payload: Arc::new(signed.transaction.payload),
            credential: signed.credential,
            signature: signed.signature,
        }
    }
}

/// A block whose transactions are decoded and judged.
#[derive(Clone, Debug)]
pub struct VerifiedBlock {
    /// The header.
    pub header: BlockHeader,
    /// Digest of the header.
    pub digest: Digest,
    /// Per transaction, in block order: itself, or its id and why it is none.
    pub transactions: Vec<Result<Arc<VerifiedTransaction>, (TransactionId, RejectReason)>>,
}

/// Decodes transactions and verifies signatures, in batches and once: verdicts are remembered, only positive ones, by
/// everything that was verified (id, credential and signature), in bounded memory.
pub struct Verifier {
    ledger: Digest,
    roots: Vec<PublicKey>,
    memory: Mutex<Memory>,
}

#[derive(Default)]
struct Memory {
    transactions: FxHashMap<TransactionId, Arc<VerifiedTransaction>>,
    oldest: VecDeque<TransactionId>,
    clients: FxHashSet<(PublicKey, Credential)>,
}

type Judged = Result<Arc<VerifiedTransaction>, (TransactionId, RejectReason)>;

impl Verifier {
    /// Judges transactions of the ledger with this charter.
    pub fn new(charter: &Charter) -> Verifier {
        Verifier {
            ledger: charter.ledger(),
            roots: charter.organisations.iter().map(|organisation| organisation.root_key).collect(),
            memory: Mutex::new(Memory::default()),
        }
    }

    /// Decodes and judges; what was found good before costs a hash.
    pub fn check(&self, transactions: &[Bytes]) -> Vec<Judged> {
        let ids: Vec<TransactionId> =
            transactions.par_chunks(64).flat_map_iter(SignedTransaction::ids_of).collect();
        let known: Vec<Option<Arc<VerifiedTransaction>>> = {
            let memory = self.memory.lock();
            ids.iter().map(|id| memory.transactions.get(id).cloned()).collect()
        };
        let mut judged: Vec<Judged> = (transactions, &ids, known)
            .into_par_iter()
            .with_min_len(64)
            .map(|(bytes, id, known)| match known {
                // The id does not cover credential and signature, which end the encoding.
                Some(known) if bytes.ends_with(&types::encode(&(known.credential, known.signature))) => {
                    Ok(known)
                }
                _ => self.decode(bytes, *id).map(Arc::new),
            })
            .collect();
        self.verify_new(&mut judged);
        judged
    }

    fn decode(
        &self,
        bytes: &Bytes,
        id: TransactionId,
    ) -> Result<VerifiedTransaction, (TransactionId, RejectReason)> {
        let signed = SignedTransaction::from_bytes(bytes)
            .map_err(|error| (id, RejectReason::Malformed(error.to_string())))?;
        if signed.transaction.ledger != self.ledger {
            let found = signed.transaction.ledger;
            let reason = format!("expected a transaction of ledger {}, found one of {found}", self.ledger);
            return Err((id, RejectReason::Malformed(reason)));
        }
        if usize::from(signed.credential.organisation) >= self.roots.len() {
            let reason = format!(
                "expected a credential of organisation 0 to {}, found {}",
                self.roots.len() - 1,
                signed.credential.organisation
            );
            return Err((id, RejectReason::Unsigned(reason)));
        }
        Ok(VerifiedTransaction {
            id,
            client: signed.client_id(),
            expires_at: signed.transaction.expires_at,
            payload: Arc::new(signed.transaction.payload),
            credential: signed.credential,
            signature: signed.signature,
        })
    }

    /// Verifies signatures and credentials of those that are not remembered, and remembers the good ones.
    fn verify_new(&self, judged: &mut [Judged]) {
        let (fresh, strangers) = {
            let memory = self.memory.lock();
            let mut strangers: FxHashMap<(PublicKey, Credential), bool> = FxHashMap::default();
            let mut fresh = Vec::new();
            for (position, transaction) in judged.iter().enumerate() {
                let Ok(transaction) = transaction else { continue };
                if memory
                    .transactions
                    .get(&transaction.id)
                    .is_some_and(|known| Arc::ptr_eq(known, transaction))
                {
                    continue;
                }
                fresh.push(position);
                let client = (transaction.client.key, transaction.credential);
                if !memory.clients.contains(&client) {
                    strangers.insert(client, false);
                }
            }
            (fresh, strangers)
        };
        if fresh.is_empty() {
            return;
        }
        let strangers = self.verify_credentials(strangers);
        let messages: Vec<SignedMessage<'_>> = fresh
            .iter()
            .filter_map(|position| judged[*position].as_ref().ok())
            .map(|transaction| SignedMessage {
                key: transaction.client.key,
                signature: transaction.signature,
                message: &transaction.id.0.0,
            })
            .collect();
        let verdicts = crypto::verify_batch(&messages);
        let mut memory = self.memory.lock();
        for (position, signed) in fresh.into_iter().zip(verdicts) {
            let Ok(transaction) = &judged[position] else { continue };
            let client = (transaction.client.key, transaction.credential);
            let reason = match (signed, strangers.get(&client)) {
                (false, _) => {
                    "the signature is not the client's: sign the transaction's id with the client's key"
                }
                (true, Some(false)) => {
                    "the credential is not signed by the organisation's root key: ask the organisation for one"
                }
                (true, _) => {
                    memory.remember(transaction.clone(), client);
                    continue;
                }
            };
            judged[position] = Err((transaction.id, RejectReason::Unsigned(reason.to_string())));
        }
    }

    fn verify_credentials(
        &self,
        strangers: FxHashMap<(PublicKey, Credential), bool>,
    ) -> FxHashMap<(PublicKey, Credential), bool> {
        let clients: Vec<(PublicKey, Credential)> = strangers.into_keys().collect();
        let texts: Vec<Vec<u8>> =
            clients.iter().map(|(key, _)| Credential::message(&self.ledger, key)).collect();
        let messages: Vec<SignedMessage<'_>> = clients
            .iter()
            .zip(&texts)
            .map(|((_, credential), message)| SignedMessage {
                key: self.roots[usize::from(credential.organisation)],
                signature: credential.signature,
                message,
            })
            .collect();
        let verdicts = crypto::verify_batch(&messages);
        clients.into_iter().zip(verdicts).collect()
    }

    /// Decodes and judges a block.
    pub fn verify_block(&self, block: &Block) -> VerifiedBlock {
        let transactions = self.check(&block.transactions);
        VerifiedBlock { header: block.header.clone(), digest: block.header.digest(), transactions }
    }

    /// Decodes a block that this node has recorded, with the verdicts of its own receipts: replay verifies no
    /// signature twice.
    pub fn trust_block(&self, block: &Block, receipts: &[Receipt]) -> VerifiedBlock {
        let transactions = (&block.transactions, receipts)
            .into_par_iter()
            .with_min_len(64)
            .map(|(bytes, receipt)| match &receipt.outcome {
                Outcome::Rejected(reason @ (RejectReason::Malformed(_) | RejectReason::Unsigned(_))) => {
                    Err((receipt.transaction, reason.clone()))
                }
                _ => self.decode(bytes, receipt.transaction).map(Arc::new),
            })
            .collect();
        VerifiedBlock { header: block.header.clone(), digest: block.header.digest(), transactions }
    }

    /// Forgets what a block has carried: it will not be asked for again.
    pub fn forget(&self, block: &VerifiedBlock) {
        let mut memory = self.memory.lock();
        for transaction in block.transactions.iter().flatten() {
            memory.transactions.remove(&transaction.id);
        }
    }
}

impl Memory {
    fn remember(&mut self, transaction: Arc<VerifiedTransaction>, client: (PublicKey, Credential)) {
        while self.oldest.len() >= REMEMBERED_TRANSACTIONS_MAX {
            if let Some(oldest) = self.oldest.pop_front() {
                self.transactions.remove(&oldest);
            }
        }
        self.oldest.push_back(transaction.id);
        self.transactions.insert(transaction.id, transaction);
        if self.clients.len() >= REMEMBERED_CLIENTS_MAX {
            self.clients.clear();
        }
        self.clients.insert(client);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crypto::SecretKey;
    use types::{Organisation, RequestId, Transaction};

    fn charter() -> (Charter, SecretKey) {
        let root = SecretKey::from_bytes([1; 32]);
        let mut charter = Charter::with_defaults("test", 1);
        charter.ordering = "solo".into();
        charter.organisations.push(Organisation {
            name: "one".into(),
            root_key: root.public_key(),
            node_key: SecretKey::from_bytes([2; 32]).public_key(),
            address: "127.0.0.1:1".into(),
        });
        (charter, root)
    }

    fn transaction(charter: &Charter, root: &SecretKey, number: u8) -> SignedTransaction {
        let key = SecretKey::from_bytes([9; 32]);
        let ledger = charter.ledger();
        let credential = Credential::issue(root, 0, &ledger, &key.public_key());
        let payload = Payload::Call { procedure: "p".into(), arguments: vec![] };
        let request = RequestId([number; 16]);
        Transaction { ledger, client: key.public_key(), request, expires_at: 9, payload }
            .sign(&key, credential)
    }

    #[test]
    fn a_remembered_transaction_with_another_signature_is_judged_anew() {
        let (charter, root) = charter();
        let verifier = Verifier::new(&charter);
        let good = transaction(&charter, &root, 1);
        let bytes = Bytes::from(good.to_bytes());
        for _ in 0..2 {
            assert!(verifier.check(std::slice::from_ref(&bytes))[0].is_ok());
        }
        let mut forged = good.clone();
        forged.signature.0[3] ^= 1;
        let mut lent = good;
        lent.credential.signature.0[3] ^= 1;
        for wrong in [forged, lent] {
            let verdict = &verifier.check(&[Bytes::from(wrong.to_bytes())])[0];
            assert!(matches!(verdict, Err((_, RejectReason::Unsigned(_)))), "{verdict:?}");
        }
        assert!(verifier.check(&[bytes])[0].is_ok());
    }

    #[test]
    fn what_is_not_of_this_ledger_is_named() {
        let (charter, root) = charter();
        let verifier = Verifier::new(&charter);
        let mut other = charter.clone();
        other.nonce += 1;
        let foreign = transaction(&other, &root, 1);
        let garbage = Bytes::from_static(b"garbage");
        let judged = verifier.check(&[Bytes::from(foreign.to_bytes()), garbage]);
        assert!(matches!(&judged[0], Err((_, RejectReason::Malformed(text))) if text.contains("of ledger")));
        assert!(matches!(&judged[1], Err((_, RejectReason::Malformed(_)))));
    }

    #[test]
    fn memory_stays_bounded() {
        let (charter, root) = charter();
        let verifier = Verifier::new(&charter);
        let good = transaction(&charter, &root, 1);
        let client = (good.transaction.client, good.credential);
        let mut memory = verifier.memory.lock();
        for number in 0..REMEMBERED_TRANSACTIONS_MAX + 10 {
            let id = TransactionId(crypto::sha256(&[&number.to_be_bytes()]));
            let transaction = VerifiedTransaction { id, ..VerifiedTransaction::from(good.clone()) };
            memory.remember(Arc::new(transaction), client);
        }
        assert_eq!(memory.transactions.len(), REMEMBERED_TRANSACTIONS_MAX);
    }
}
