use crate::held::judge_held;
use bytes::Bytes;
use crypto::{Digest, PublicKey, Signature, SignedMessage};
use parking_lot::Mutex;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use std::sync::Arc;
use types::{
    Block, BlockHeader, Charter, Charters, ClientId, Credential, EndorsedEffects, EndorsedSimulation,
    EndorsementFault, ExecutionModel, ExecutionVersion, HeldParts, Outcome, Payload, Place, Principal,
    Receipt, RejectReason, SignedTransaction, TransactionError, TransactionId, endorsement_message,
    endorsement_roots,
};

/// Transactions whose positive verdict is remembered. Each takes about the memory of its decoded form.
const REMEMBERED_TRANSACTIONS_MAX: usize = 32_768;
/// Clients whose credential is remembered as good.
const REMEMBERED_CLIENTS_MAX: usize = 65_536;
/// Endorsers' signatures that are remembered as good.
const REMEMBERED_ENDORSERS_MAX: usize = 65_536;
/// Transactions that one thread decodes at a time; what they hash is hashed together.
const DECODED_TOGETHER: usize = 64;
/// Proposals whose client's signature is remembered as good.
const REMEMBERED_PROPOSALS_MAX: usize = 32_768;

/// A transaction that is this ledger's and that its client has signed.
#[derive(Clone, Debug, PartialEq)]
pub struct VerifiedTransaction {
    /// Its id.
    pub id: TransactionId,
    /// Who signed it, and what the client calls it.
    pub client: ClientId,
    /// The last height at which it may stand.
    pub expires_at: u64,
    /// In whose name it runs.
    pub principal: Principal,
    /// What it does.
    pub payload: Arc<Payload>,
    /// Which organisation vouches for the client.
    pub credential: Credential,
    /// The client's signature under the id.
    pub signature: Signature,
    /// What it does according to those who have signed that, where transactions are executed before they are ordered.
    pub endorsed: Option<VerifiedEndorsement>,
}

/// Effects whose endorsements are signatures of the organisations that they name.
#[derive(Clone, Debug, PartialEq)]
pub struct VerifiedEndorsement {
    /// What was signed.
    pub effects: Arc<EndorsedEffects>,
    /// The least height among the endorsements: on the state after that block the effects are what all of them say.
    pub snapshot: u64,
    /// Who has signed, by position in the charter, ascending.
    pub endorsers: Vec<u16>,
}

impl From<EndorsedSimulation> for VerifiedEndorsement {
    /// Takes endorsements that somebody has verified, or need not.
    fn from(simulation: EndorsedSimulation) -> VerifiedEndorsement {
        let EndorsedSimulation { effects, endorsements } = simulation;
        let mut endorsers: Vec<u16> = endorsements.iter().map(|one| one.organisation).collect();
        endorsers.sort_unstable();
        let snapshot = endorsements.iter().map(|one| one.snapshot).min().unwrap_or(0);
        VerifiedEndorsement { effects: Arc::new(effects), snapshot, endorsers }
    }
}

impl From<SignedTransaction> for VerifiedTransaction {
    /// Takes the parts of a transaction whose signature somebody has verified, or need not.
    fn from(signed: SignedTransaction) -> VerifiedTransaction {
        VerifiedTransaction::new(signed.transaction.id(), signed)
    }
}

impl VerifiedTransaction {
    fn new(id: TransactionId, signed: SignedTransaction) -> VerifiedTransaction {
        VerifiedTransaction {
            id,
            client: signed.client_id(),
            expires_at: signed.transaction.expires_at,
            principal: Principal {
                organisation: signed.credential.organisation,
                role: signed.transaction.role,
            },
            payload: Arc::new(signed.transaction.payload),
            credential: signed.credential,
            signature: signed.signature,
            endorsed: signed.endorsed.map(|simulation| (*simulation).into()),
        }
    }

    fn client_signature(&self) -> ClientSignature {
        (self.id, self.signature, self.credential)
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
    pub transactions: Vec<Judged>,
}

/// Decodes transactions and verifies signatures, in batches and once: verdicts are remembered, only positive ones, by
/// everything that was verified (id, credential and signature), in bounded memory.
pub struct Verifier {
    ledger: Digest,
    execution: ExecutionModel,
    memory: Mutex<Memory>,
}

/// A transaction with what stands behind it in the encoding that was verified.
#[derive(Clone)]
struct Remembered {
    transaction: Arc<VerifiedTransaction>,
    uncovered: Box<[u8]>,
    /// [`Place::version`] of what it was judged for: another charter may have other organisations and keys.
    version: u64,
}

/// What one signature of an endorser says: organisation, the key that it has at the height that it names, root and
/// signature.
type EndorserSignature = (u16, PublicKey, Digest, Signature);

/// What a client has signed: a transaction, with which signature, and who vouches for the client.
type ClientSignature = (TransactionId, Signature, Credential);

/// What transactions are judged for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// To stand in a block.
    Order,
    /// To be endorsed.
    Endorse,
}

#[derive(Default)]
struct Memory {
    transactions: FxHashMap<TransactionId, Remembered>,
    /// Good ones; a signature covers many transactions, which may stand in different blocks.
    endorsers: FxHashSet<EndorserSignature>,
    oldest: VecDeque<TransactionId>,
    clients: FxHashSet<(PublicKey, Credential)>,
    /// Good ones under proposals: the transaction comes again with endorsements.
    proposals: FxHashSet<ClientSignature>,
    oldest_proposals: VecDeque<ClientSignature>,
}

/// A verdict: the transaction, or its id and what is wrong with it.
pub type Judged = Result<Arc<VerifiedTransaction>, (TransactionId, RejectReason)>;
/// The same before any signature is verified, with what endorsers must have signed.
type Decoded =
    Result<(Arc<VerifiedTransaction>, Vec<(EndorserSignature, u64)>), (TransactionId, RejectReason)>;

/// Why a payload is none before the execution version that has brought it: the words of the programs that did not know it, because
/// receipts have them.
fn unknown_before(charter: &Charter, payload: &Payload) -> Option<String> {
    let (tag, since) = match payload {
        Payload::Parts { .. } => (4, ExecutionVersion::V4),
        Payload::SchemaOutcomes { .. } => (5, ExecutionVersion::V4),
        Payload::HeldParts { .. } => (6, ExecutionVersion::V5),
        _ => return None,
    };
    let is_known = charter.execution_version >= since.number();
    let error = || TransactionError::Malformed(format!("Unexpected variant tag: {tag}"));
    (!is_known).then(|| error().to_string())
}

impl Verifier {
    /// Judges transactions of the ledger with this charter.
    pub fn new(charter: &Charter) -> Verifier {
        Verifier {
            ledger: charter.ledger(),
            execution: charter.execution,
            memory: Mutex::new(Memory::default()),
        }
    }

    /// Decodes and judges what is to stand in one block, together; what was found good before costs a hash.
    pub fn check(&self, place: Place<'_>, transactions: &[Bytes]) -> Vec<Judged> {
        let version = place.version();
        let ids: Vec<TransactionId> =
            transactions.par_chunks(64).flat_map_iter(SignedTransaction::ids_of).collect();
        let mut judged: Vec<Option<Judged>> = {
            let memory = self.memory.lock();
            let known = |(bytes, id): (&Bytes, &TransactionId)| {
                let known = memory.transactions.get(id)?;
                // The id does not cover endorsements, credential and signature.
                let same =
                    known.version == version && *known.uncovered == *SignedTransaction::uncovered(bytes);
                same.then(|| Ok(known.transaction.clone()))
            };
            transactions.iter().zip(&ids).map(known).collect()
        };
        let fresh: Vec<usize> = (0..judged.len()).filter(|position| judged[*position].is_none()).collect();
        if !fresh.is_empty() {
            let undecoded: Vec<(&Bytes, TransactionId)> =
                fresh.iter().map(|position| (&transactions[*position], ids[*position])).collect();
            let decoded = self.decode_all(place, &undecoded, Purpose::Order);
            for (position, verdict) in fresh.iter().zip(self.verify_new(place, decoded)) {
                judged[*position] = Some(verdict.inspect(|verified| {
                    let uncovered = SignedTransaction::uncovered(&transactions[*position]);
                    self.memory.lock().remember(verified.clone(), uncovered.into(), version);
                }));
            }
        }
        let mut judged: Vec<Judged> = judged.into_iter().flatten().collect();
        judge_held(&mut judged);
        judged
    }

    /// Decodes and judges transactions that are to be endorsed, which carry no endorsements yet. When they come back with
    /// those, their clients' signatures need not be verified again.
    pub fn check_proposals(&self, place: Place<'_>, transactions: &[Bytes]) -> Vec<Judged> {
        let ids: Vec<TransactionId> =
            transactions.par_chunks(64).flat_map_iter(SignedTransaction::ids_of).collect();
        let undecoded: Vec<(&Bytes, TransactionId)> = transactions.iter().zip(ids).collect();
        let judged = self.verify_new(place, self.decode_all(place, &undecoded, Purpose::Endorse));
        let mut memory = self.memory.lock();
        for transaction in judged.iter().flatten() {
            memory.remember_proposal(transaction.client_signature());
        }
        judged
    }

    /// Decodes transactions and says which signatures of endorsers each rests on.
    fn decode_all(
        &self,
        place: Place<'_>,
        transactions: &[(&Bytes, TransactionId)],
        purpose: Purpose,
    ) -> Vec<Decoded> {
        transactions
            .par_chunks(DECODED_TOGETHER)
            .flat_map_iter(|some| self.decode_some(place, some, purpose))
            .collect()
    }

    fn decode_some(
        &self,
        place: Place<'_>,
        transactions: &[(&Bytes, TransactionId)],
        purpose: Purpose,
    ) -> Vec<Decoded> {
        let decoded: Vec<Result<SignedTransaction, (TransactionId, RejectReason)>> =
            transactions.iter().map(|(bytes, id)| self.decode(place, bytes, *id, purpose)).collect();
        let simulations: Vec<(TransactionId, &EndorsedSimulation)> = transactions
            .iter()
            .zip(&decoded)
            .filter_map(|((_, id), signed)| Some((*id, signed.as_ref().ok()?.endorsed.as_deref()?)))
            .collect();
        let mut roots = endorsement_roots(&simulations).into_iter();
        let mut resting = |(signed, (_, id)): (Result<SignedTransaction, _>, &(&Bytes, TransactionId))| {
            let signed: SignedTransaction = signed?;
            let endorsers = match &signed.endorsed {
                None => match &signed.transaction.payload {
                    Payload::HeldParts { held } => holder_signatures(place, held)
                        .map_err(|fault| (*id, RejectReason::Endorsement(fault)))?,
                    _ => Vec::new(),
                },
                Some(simulation) => {
                    let roots = roots.next().expect("roots for every simulation");
                    endorser_signatures(place, simulation, &roots)
                        .map_err(|fault| (*id, RejectReason::Endorsement(fault)))?
                }
            };
            Ok((Arc::new(VerifiedTransaction::new(*id, signed)), endorsers))
        };
        decoded.into_iter().zip(transactions).map(&mut resting).collect()
    }

    /// Decodes a transaction of this ledger that comes with endorsements where it must, and not where it must not.
    fn decode(
        &self,
        place: Place<'_>,
        bytes: &Bytes,
        id: TransactionId,
        purpose: Purpose,
    ) -> Result<SignedTransaction, (TransactionId, RejectReason)> {
        let signed = SignedTransaction::from_bytes(bytes)
            .map_err(|error| (id, RejectReason::Malformed(error.to_string())))?;
        if let Some(reason) = unknown_before(place.charter(), &signed.transaction.payload) {
            return Err((id, RejectReason::Malformed(reason)));
        }
        if signed.transaction.ledger != self.ledger {
            let found = signed.transaction.ledger;
            let reason = format!("expected a transaction of ledger {}, found one of {found}", self.ledger);
            return Err((id, RejectReason::Malformed(reason)));
        }
        let (organisation, height) = (signed.credential.organisation, place.height);
        if usize::from(organisation) >= place.charter().organisations.len() {
            return Err((id, RejectReason::NoMember { organisation, height }));
        }
        let asked = match purpose {
            Purpose::Order => self.endorsed_as_asked(place.charter(), &signed),
            Purpose::Endorse => self.not_endorsed(&signed),
        };
        asked.map_err(|fault| (id, RejectReason::Endorsement(fault)))?;
        Ok(signed)
    }

    /// Whether a transaction can be endorsed.
    fn not_endorsed(&self, signed: &SignedTransaction) -> Result<(), EndorsementFault> {
        let has_parts = matches!(signed.transaction.payload, Payload::Parts { .. });
        let wrong = match (&signed.endorsed, self.execution) {
            // Members of schemas say that they hold its parts.
            (None, ExecutionModel::OrderExecute) if has_parts => return Ok(()),
            (_, ExecutionModel::OrderExecute) => {
                "this ledger executes after ordering; submit the call without endorsements"
            }
            (Some(_), _) => "a proposal carries no endorsements; send the transaction without them",
            _ if sql::is_schema_change(&signed.transaction.payload) => {
                "a schema change is executed by every node; submit it without endorsements"
            }
            _ => return Ok(()),
        };
        Err(EndorsementFault::Unasked(wrong.to_string()))
    }

    /// Whether a transaction comes with endorsements where it must, and not where it must not.
    fn endorsed_as_asked(
        &self,
        charter: &Charter,
        signed: &SignedTransaction,
    ) -> Result<(), EndorsementFault> {
        let words_stand_in_blocks = charter.execution_version >= ExecutionVersion::V5.number();
        let schema_change = || sql::is_schema_change(&signed.transaction.payload);
        let has_parts = matches!(signed.transaction.payload, Payload::Parts { .. });
        let wrong = match (&signed.endorsed, self.execution) {
            (Some(held), ExecutionModel::OrderExecute) if has_parts => match held.effects.is_held() {
                true => return Ok(()),
                false => "who endorses parts says that it holds them, and nothing else",
            },
            (None, ExecutionModel::OrderExecute) if has_parts && words_stand_in_blocks => return Ok(()),
            (None, ExecutionModel::OrderExecute) if has_parts => {
                "nobody says that it holds the parts; send them to the members of their schemas first"
            }
            _ if has_parts => "schemas have members only where transactions are executed after ordering",
            (None, ExecutionModel::OrderExecute | ExecutionModel::WhateverThenAgree) => return Ok(()),
            (Some(_), ExecutionModel::WhateverThenAgree) if schema_change() => {
                "a schema change needs no agreement but what the charter's governance asks for; submit it without endorsements"
            }
            (Some(agreed), ExecutionModel::WhateverThenAgree) => match agreed.effects.agreed_schema() {
                Some(_) => return Ok(()),
                None => {
                    "this ledger's databases execute after ordering; who agrees to a script endorses no effects"
                }
            },
            (None, ExecutionModel::ExecuteOrderValidate) if schema_change() => return Ok(()),
            (None, ExecutionModel::ExecuteOrderValidate) => {
                "the transaction is not endorsed; ask endorsers before you submit it"
            }
            (Some(_), ExecutionModel::OrderExecute) => {
                "this ledger executes after ordering; submit the call without endorsements"
            }
            (Some(_), ExecutionModel::ExecuteOrderValidate) if schema_change() => {
                "a schema change is executed by every node; submit it without endorsements"
            }
            (Some(_), ExecutionModel::ExecuteOrderValidate) => return Ok(()),
        };
        Err(EndorsementFault::Unasked(wrong.to_string()))
    }

    /// Verifies signatures, credentials and endorsements, each only once.
    fn verify_new(&self, place: Place<'_>, decoded: Vec<Decoded>) -> Vec<Judged> {
        let (strangers, endorsers) = {
            let memory = self.memory.lock();
            let mut strangers: FxHashSet<(PublicKey, Credential)> = FxHashSet::default();
            let mut unknown: FxHashSet<EndorserSignature> = FxHashSet::default();
            for (transaction, endorsers) in decoded.iter().flatten() {
                let client = (transaction.client.key, transaction.credential);
                if !memory.clients.contains(&client) {
                    strangers.insert(client);
                }
                let signatures = endorsers.iter().map(|(signature, _)| *signature);
                unknown.extend(signatures.filter(|signature| !memory.endorsers.contains(signature)));
            }
            (strangers, unknown)
        };
        let (strangers, endorsers) =
            rayon::join(|| self.verify_credentials(place, strangers), || self.verify_endorsers(endorsers));
        let known: Vec<bool> = {
            let memory = self.memory.lock();
            let known = |one: &Decoded| {
                one.as_ref().is_ok_and(|(one, _)| memory.proposals.contains(&one.client_signature()))
            };
            decoded.iter().map(known).collect()
        };
        let messages: Vec<SignedMessage<'_>> = decoded
            .iter()
            .zip(&known)
            .filter_map(|(decoded, known)| decoded.as_ref().ok().filter(|_| !known))
            .map(|(transaction, _)| SignedMessage {
                key: transaction.client.key,
                signature: transaction.signature,
                message: &transaction.id.0.0,
            })
            .collect();
        let mut verdicts = crypto::verify_batch(&messages).into_iter();
        let mut memory = self.memory.lock();
        let mut judge = |(decoded, known): (Decoded, bool)| -> Judged {
            let (transaction, signatures) = decoded?;
            let client = (transaction.client.key, transaction.credential);
            let signed = known || verdicts.next().expect("a verdict for every message");
            let wrong = match (signed, strangers.get(&client)) {
                (false, _) => {
                    "the signature is not the client's: sign the transaction's id with the client's key"
                }
                (true, Some(false)) => {
                    "the credential is not signed by the organisation's root key: ask the organisation for one"
                }
                (true, _) => "",
            };
            if !wrong.is_empty() {
                return Err((transaction.id, RejectReason::Unsigned(wrong.to_string())));
            }
            let forged = signatures.iter().find(|(signature, _)| endorsers.get(signature) == Some(&false));
            if let Some(((organisation, ..), snapshot)) = forged {
                let fault = EndorsementFault::Forged { organisation: *organisation, snapshot: *snapshot };
                return Err((transaction.id, RejectReason::Endorsement(fault)));
            }
            memory.believe(client, signatures.into_iter().map(|(signature, _)| signature));
            Ok(transaction)
        };
        decoded.into_iter().zip(known).map(&mut judge).collect()
    }

    fn verify_endorsers(
        &self,
        signatures: FxHashSet<EndorserSignature>,
    ) -> FxHashMap<EndorserSignature, bool> {
        let signatures: Vec<EndorserSignature> = signatures.into_iter().collect();
        let texts: Vec<Vec<u8>> =
            signatures.iter().map(|(_, _, root, _)| endorsement_message(&self.ledger, root)).collect();
        let messages: Vec<SignedMessage<'_>> = signatures
            .iter()
            .zip(&texts)
            .map(|((_, key, _, signature), message)| SignedMessage {
                key: *key,
                signature: *signature,
                message,
            })
            .collect();
        let verdicts = crypto::verify_batch(&messages);
        signatures.into_iter().zip(verdicts).collect()
    }

    fn verify_credentials(
        &self,
        place: Place<'_>,
        strangers: FxHashSet<(PublicKey, Credential)>,
    ) -> FxHashMap<(PublicKey, Credential), bool> {
        let clients: Vec<(PublicKey, Credential)> = strangers.into_iter().collect();
        let texts: Vec<Vec<u8>> =
            clients.iter().map(|(key, _)| Credential::message(&self.ledger, key)).collect();
        // Decoding has let nobody through who is none of them.
        let charter = place.charter();
        let messages: Vec<SignedMessage<'_>> = clients
            .iter()
            .zip(&texts)
            .map(|((_, credential), message)| SignedMessage {
                key: charter.organisations[usize::from(credential.organisation)].root_key,
                signature: credential.signature,
                message,
            })
            .collect();
        let verdicts = crypto::verify_batch(&messages);
        clients.into_iter().zip(verdicts).collect()
    }

    /// Decodes and judges a block of a ledger with these charters.
    pub fn verify_block(&self, charters: &Charters, block: &Block) -> VerifiedBlock {
        let place = Place { charters, height: block.header.height };
        let transactions = self.check(place, &block.transactions);
        VerifiedBlock { header: block.header.clone(), digest: block.header.digest(), transactions }
    }

    /// Decodes a block that this node has recorded, with the verdicts of its own receipts: replay verifies no
    /// signature twice.
    pub fn trust_block(&self, charters: &Charters, block: &Block, receipts: &[Receipt]) -> VerifiedBlock {
        let place = Place { charters, height: block.header.height };
        let transactions = (&block.transactions, receipts)
            .into_par_iter()
            .with_min_len(64)
            .map(|(bytes, receipt)| match &receipt.outcome {
                Outcome::Rejected(
                    reason @ (RejectReason::Malformed(_)
                    | RejectReason::Unsigned(_)
                    | RejectReason::Endorsement(_)),
                ) => Err((receipt.transaction, reason.clone())),
                _ => {
                    let signed = self.decode(place, bytes, receipt.transaction, Purpose::Order)?;
                    Ok(Arc::new(VerifiedTransaction::new(receipt.transaction, signed)))
                }
            })
            .collect();
        let mut transactions: Vec<Judged> = transactions;
        judge_held(&mut transactions);
        VerifiedBlock { header: block.header.clone(), digest: block.header.digest(), transactions }
    }

    /// Forgets what a block has carried: it will not be asked for again.
    pub fn forget(&self, block: &VerifiedBlock) {
        let mut memory = self.memory.lock();
        for transaction in block.transactions.iter().flatten() {
            memory.transactions.remove(&transaction.id);
            if transaction.endorsed.is_some() {
                memory.proposals.remove(&transaction.client_signature());
            }
        }
    }
}

/// What its endorsers must have signed, each with the height that it names. `roots`: where their proofs lead.
fn endorser_signatures(
    place: Place<'_>,
    simulation: &EndorsedSimulation,
    roots: &[Option<Digest>],
) -> Result<Vec<(EndorserSignature, u64)>, EndorsementFault> {
    let mut found: Vec<(EndorserSignature, u64)> = Vec::with_capacity(simulation.endorsements.len());
    for (endorsement, root) in simulation.endorsements.iter().zip(roots) {
        let (organisation, snapshot) = (endorsement.organisation, endorsement.snapshot);
        let charter = place.charter_before(snapshot);
        let Some(endorser) = charter.organisations.get(usize::from(organisation)) else {
            let last = charter.organisations.len() as u16 - 1;
            return Err(EndorsementFault::Stranger { found: organisation, last });
        };
        if found.iter().any(|((known, ..), _)| *known == organisation) {
            return Err(EndorsementFault::Repeated { organisation });
        }
        let root = root.ok_or(EndorsementFault::Forged { organisation, snapshot })?;
        found.push(((organisation, endorser.node_key, root, endorsement.signature), snapshot));
    }
    Ok(found)
}

/// What members must have signed who hold parts, each with the height that it names.
fn holder_signatures(
    place: Place<'_>,
    held: &[HeldParts],
) -> Result<Vec<(EndorserSignature, u64)>, EndorsementFault> {
    let mut found: Vec<(EndorserSignature, u64)> = Vec::new();
    for HeldParts { transactions, holders } in held {
        let before = found.len();
        for holder in holders {
            let (organisation, height) = (holder.organisation, holder.height);
            let charter = place.charter_before(height);
            let Some(member) = charter.organisations.get(usize::from(organisation)) else {
                let last = charter.organisations.len() as u16 - 1;
                return Err(EndorsementFault::Stranger { found: organisation, last });
            };
            if found[before..].iter().any(|((known, ..), _)| *known == organisation) {
                return Err(EndorsementFault::Repeated { organisation });
            }
            let root = HeldParts::root(transactions, height);
            found.push(((organisation, member.node_key, root, holder.signature), height));
        }
    }
    Ok(found)
}

impl Memory {
    fn remember_proposal(&mut self, signature: ClientSignature) {
        while self.oldest_proposals.len() >= REMEMBERED_PROPOSALS_MAX {
            if let Some(oldest) = self.oldest_proposals.pop_front() {
                self.proposals.remove(&oldest);
            }
        }
        if self.proposals.insert(signature) {
            self.oldest_proposals.push_back(signature);
        }
    }

    fn remember(&mut self, transaction: Arc<VerifiedTransaction>, uncovered: Box<[u8]>, version: u64) {
        while self.oldest.len() >= REMEMBERED_TRANSACTIONS_MAX {
            if let Some(oldest) = self.oldest.pop_front() {
                self.transactions.remove(&oldest);
            }
        }
        self.oldest.push_back(transaction.id);
        self.transactions.insert(transaction.id, Remembered { transaction, uncovered, version });
    }

    /// Remembers a credential and endorsers' signatures as good.
    fn believe(
        &mut self,
        client: (PublicKey, Credential),
        signatures: impl IntoIterator<Item = EndorserSignature>,
    ) {
        if self.clients.len() >= REMEMBERED_CLIENTS_MAX {
            self.clients.clear();
        }
        self.clients.insert(client);
        if self.endorsers.len() >= REMEMBERED_ENDORSERS_MAX {
            self.endorsers.clear();
        }
        self.endorsers.extend(signatures);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crypto::SecretKey;
    use types::{Organisation, RequestId, Transaction};

    #[test]
    fn what_a_version_does_not_know_is_refused_in_the_words_of_programs_that_do_not_know_it() {
        // As borsh says it of a kind that nobody knows yet.
        let unknown =
            types::decode_exactly::<Payload>(&[200]).expect_err("there are not so many").to_string();
        let third = Charter { execution_version: 3, ..charter().0 };
        let fourth = Charter { execution_version: 4, ..charter().0 };
        for (tag, payload, before) in [
            (4, Payload::Parts { parts: vec![] }, &third),
            (5, Payload::SchemaOutcomes { certificates: vec![] }, &third),
            (6, Payload::HeldParts { held: vec![] }, &fourth),
        ] {
            assert_eq!(types::encode(&payload)[0], tag);
            let said = unknown_before(before, &payload).expect("it does not know it");
            let expected = TransactionError::Malformed(unknown.replace("200", &tag.to_string()));
            assert_eq!(said, expected.to_string());
            assert_eq!(unknown_before(&charter().0, &payload), None);
        }
    }

    /// A transaction with one part, and who says that he holds it.
    fn parts(charter: &Charter, root: &SecretKey, number: u8) -> SignedTransaction {
        let mut transaction = transaction(charter, root, number).transaction;
        let commitment = types::PartCommitment { schema: "deal".into(), commitment: crypto::sha256(&[]) };
        transaction.payload = Payload::Parts { parts: vec![commitment] };
        sign(charter, root, transaction)
    }

    fn words(charter: &Charter, root: &SecretKey, held: Vec<HeldParts>) -> Bytes {
        let mut transaction = transaction(charter, root, 99).transaction;
        transaction.payload = Payload::HeldParts { held };
        Bytes::from(sign(charter, root, transaction).to_bytes())
    }

    fn sign(charter: &Charter, root: &SecretKey, transaction: Transaction) -> SignedTransaction {
        let key = SecretKey::from_bytes([9; 32]);
        let credential = Credential::issue(root, 0, &charter.ledger(), &key.public_key());
        transaction.sign(&key, credential)
    }

    fn endorsers(judged: &Judged) -> Option<&[u16]> {
        judged.as_ref().ok()?.endorsed.as_ref().map(|endorsed| endorsed.endorsers.as_slice())
    }

    #[test]
    fn members_words_count_for_the_transactions_of_their_block() {
        let (charter, root) = charter();
        let (ledger, node) = (charter.ledger(), SecretKey::from_bytes([2; 32]));
        let signed: Vec<SignedTransaction> = (1..=3).map(|number| parts(&charter, &root, number)).collect();
        let ids: Vec<TransactionId> = signed.iter().map(|one| one.transaction.id()).collect();
        let [a, b, c] = [0, 1, 2].map(|at: usize| Bytes::from(signed[at].to_bytes()));
        let word = HeldParts::sign(ids[..2].to_vec(), (0, 0), (&ledger, &node));
        let said = words(&charter, &root, vec![word.clone()]);
        let verifier = Verifier::new(&charter);
        let unheld = |judged: &Judged| match judged {
            Err((_, RejectReason::Endorsement(fault))) => {
                fault.to_string().contains("nobody says in its block")
            }
            _ => false,
        };
        // The second time from memory, and in any order.
        for block in [[&said, &a, &b, &c], [&c, &b, &a, &said]] {
            let judged = check(&verifier, &charter, &block.map(Bytes::clone));
            for (bytes, judged) in block.iter().zip(&judged) {
                let expected = if **bytes == a || **bytes == b { Some(&[0][..]) } else { None };
                assert_eq!(endorsers(judged), expected, "{judged:?}");
                assert_eq!(unheld(judged), **bytes == c, "{judged:?}");
            }
        }
        let alone = check(&verifier, &charter, std::slice::from_ref(&a));
        assert!(unheld(&alone[0]), "words in another block count no more: {alone:?}");
        let mut forged = word.clone();
        forged.holders[0].signature.0[3] ^= 1;
        let other = HeldParts { transactions: ids.clone(), ..word.clone() };
        let later = HeldParts::sign(ids[..2].to_vec(), (0, 5), (&ledger, &node));
        let mut repeated = word.clone();
        repeated.holders.extend(later.holders.clone());
        let mut stranger = word.clone();
        stranger.holders[0].organisation = 7;
        for wrong in [forged, other, repeated, stranger] {
            let judged = check(&verifier, &charter, &[words(&charter, &root, vec![wrong]), a.clone()]);
            assert!(matches!(judged[0], Err((_, RejectReason::Endorsement(_)))), "{judged:?}");
            assert!(unheld(&judged[1]), "{judged:?}");
        }
        // Two lists about one transaction: the older word counts for when it was said.
        let judged = check(&verifier, &charter, &[words(&charter, &root, vec![word, later]), a.clone()]);
        let endorsed = judged[1].as_ref().expect("held").endorsed.clone().expect("words");
        assert_eq!((endorsed.endorsers, endorsed.snapshot), (vec![0], 0));
        let fourth = Charter { execution_version: 4, ..charter };
        let judged = check(&Verifier::new(&fourth), &fourth, &[said, a]);
        assert!(judged.iter().all(Result::is_err), "{judged:?}");
    }

    fn charter() -> (Charter, SecretKey) {
        let root = SecretKey::from_bytes([1; 32]);
        let mut charter = Charter::with_defaults("test", 1);
        charter.ordering = "solo".into();
        charter.organisations.push(Organisation {
            name: "one".into(),
            root_key: root.public_key(),
            node_key: SecretKey::from_bytes([2; 32]).public_key(),
            address: "127.0.0.1:1".into(),
            gateway: String::new(),
            removed: false,
            node_key_expires: None,
        });
        (charter, root)
    }

    fn transaction(charter: &Charter, root: &SecretKey, number: u8) -> SignedTransaction {
        let key = SecretKey::from_bytes([9; 32]);
        let ledger = charter.ledger();
        let credential = Credential::issue(root, 0, &ledger, &key.public_key());
        let payload = Payload::Call { procedure: "p".into(), arguments: vec![] };
        let request = RequestId([number; 16]);
        Transaction { ledger, client: key.public_key(), request, expires_at: 9, role: String::new(), payload }
            .sign(&key, credential)
    }

    /// At the first height of a ledger that nobody has amended.
    fn check(verifier: &Verifier, charter: &Charter, transactions: &[Bytes]) -> Vec<Judged> {
        let charters = Charters::new(Arc::new(charter.clone()));
        verifier.check(Place { charters: &charters, height: 1 }, transactions)
    }

    fn check_proposals(verifier: &Verifier, charter: &Charter, transactions: &[Bytes]) -> Vec<Judged> {
        let charters = Charters::new(Arc::new(charter.clone()));
        verifier.check_proposals(Place { charters: &charters, height: 1 }, transactions)
    }

    #[test]
    fn a_remembered_transaction_with_another_signature_is_judged_anew() {
        let (charter, root) = charter();
        let verifier = Verifier::new(&charter);
        let good = transaction(&charter, &root, 1);
        let bytes = Bytes::from(good.to_bytes());
        for _ in 0..2 {
            assert!(check(&verifier, &charter, std::slice::from_ref(&bytes))[0].is_ok());
        }
        let mut forged = good.clone();
        forged.signature.0[3] ^= 1;
        let mut lent = good;
        lent.credential.signature.0[3] ^= 1;
        for wrong in [forged, lent] {
            let verdict = &check(&verifier, &charter, &[Bytes::from(wrong.to_bytes())])[0];
            assert!(matches!(verdict, Err((_, RejectReason::Unsigned(_)))), "{verdict:?}");
        }
        assert!(check(&verifier, &charter, &[bytes])[0].is_ok());
    }

    #[test]
    fn a_proposal_is_no_transaction_yet_and_its_signature_is_verified_once() {
        let (mut charter, root) = charter();
        let unasked = |judged: &Judged, says: &str| {
            let Err((_, RejectReason::Endorsement(EndorsementFault::Unasked(text)))) = judged else {
                panic!("{judged:?}")
            };
            assert!(text.contains(says), "{text}");
        };
        let bytes = [Bytes::from(transaction(&charter, &root, 1).to_bytes())];
        unasked(&check_proposals(&Verifier::new(&charter), &charter, &bytes)[0], "executes after ordering");

        charter.execution = ExecutionModel::ExecuteOrderValidate;
        let verifier = Verifier::new(&charter);
        let mut plain = transaction(&charter, &root, 1);
        let bytes = [Bytes::from(plain.to_bytes())];
        assert!(check_proposals(&verifier, &charter, &bytes)[0].is_ok());
        assert_eq!(verifier.memory.lock().proposals.len(), 1);
        unasked(&check(&verifier, &charter, &bytes)[0], "not endorsed");

        let mut forged = plain.clone();
        forged.signature.0[3] ^= 1;
        let judged = &check_proposals(&verifier, &charter, &[Bytes::from(forged.to_bytes())])[0];
        assert!(matches!(judged, Err((_, RejectReason::Unsigned(_)))), "{judged:?}");

        let simulation = EndorsedSimulation { effects: EndorsedEffects::default(), endorsements: vec![] };
        forged.endorsed = Some(Box::new(simulation.clone()));
        let judged = &check(&verifier, &charter, &[Bytes::from(forged.to_bytes())])[0];
        assert!(matches!(judged, Err((_, RejectReason::Unsigned(_)))), "{judged:?}");
        plain.endorsed = Some(Box::new(simulation));
        let bytes = [Bytes::from(plain.to_bytes())];
        assert!(check(&verifier, &charter, &bytes)[0].is_ok());
        unasked(&check_proposals(&verifier, &charter, &bytes)[0], "carries no endorsements");
    }

    /// Nodes learn of amendments at different times, and see transactions at different heights first.
    #[test]
    fn a_verdict_depends_on_the_place_and_not_on_what_was_judged_before() {
        let (mut charter, root) = charter();
        charter.execution = ExecutionModel::ExecuteOrderValidate;
        charter.organisations[0].node_key = SecretKey::from_bytes([7; 32]).public_key();
        for number in 2..6_u8 {
            charter.organisations.push(Organisation {
                name: format!("member {number}"),
                root_key: SecretKey::from_bytes([number; 32]).public_key(),
                node_key: SecretKey::from_bytes([number + 10; 32]).public_key(),
                address: format!("127.0.0.1:{number}"),
                ..charter.organisations[0].clone()
            });
        }
        charter.ordering = "bft".into();
        let founding = Arc::new(charter);
        let newcomer = SecretKey::from_bytes([30; 32]);
        let sixth = Organisation {
            name: "late".into(),
            root_key: newcomer.public_key(),
            node_key: SecretKey::from_bytes([31; 32]).public_key(),
            address: "127.0.0.1:9".into(),
            ..founding.organisations[0].clone()
        };
        let acceptance = types::accept_membership(&founding.ledger(), &sixth, &newcomer);
        let replace = types::CharterChange::ReplaceNodeKey {
            name: "one".into(),
            node_key: SecretKey::from_bytes([40; 32]).public_key(),
            expires: None,
        };
        let add = types::CharterChange::AddOrganisation { organisation: sixth, acceptance };
        let mut all = vec![Charters::new(founding.clone())];
        for (change, effective_height) in [(replace, 20), (add, 30)] {
            let mut charters = all.last().expect("one").clone();
            let charter = charters.newest().charter.amended(&change).expect("a good change");
            charters.add(types::AmendedCharter { charter, effective_height }).expect("the next");
            all.push(charters);
        }
        let endorsed = |organisation: u16, key: u8, snapshot: u64, client: (&SecretKey, u16)| {
            let (root, member) = client;
            let mut signed = transaction(&founding, root, 1);
            signed.credential.organisation = member;
            let effects = EndorsedEffects::default();
            let id = SignedTransaction::ids_of(&[Bytes::from(signed.to_bytes())])[0];
            let key = SecretKey::from_bytes([key; 32]);
            let simulations = [(id, effects.digest())];
            let endorsements = types::endorse(&key, organisation, &founding.ledger(), snapshot, &simulations);
            signed.endorsed = Some(Box::new(EndorsedSimulation { effects, endorsements }));
            Bytes::from(signed.to_bytes())
        };
        let mut transactions = Vec::new();
        for snapshot in [10, 19, 20, 25, 35, 1_000_000] {
            for (organisation, key) in [(0, 7), (0, 40), (1, 12), (5, 31)] {
                transactions.push(endorsed(organisation, key, snapshot, (&root, 0)));
                transactions.push(endorsed(organisation, key, snapshot, (&newcomer, 5)));
            }
        }
        let plain = |judged: &Judged| judged.as_ref().map(|one| one.id).map_err(Clone::clone);
        let verifier = Verifier::new(&founding);
        let mut good = 0;
        for height in [35, 5, 19, 20, 29, 30, 35, 20, 5] {
            // All that hold are known; others may be.
            let enough = all.iter().position(|one| one.version_at(height) == all[2].version_at(height));
            for charters in &all[enough.expect("the last at least")..] {
                for one in &transactions {
                    let one = std::slice::from_ref(one);
                    let place = Place { charters, height };
                    let (known, fresh) =
                        (verifier.check(place, one), Verifier::new(&founding).check(place, one));
                    assert_eq!(plain(&known[0]), plain(&fresh[0]), "height {height}");
                    good += usize::from(fresh[0].is_ok());
                }
            }
        }
        assert!(good > 50, "{good}");
    }

    #[test]
    fn what_is_not_of_this_ledger_is_named() {
        let (charter, root) = charter();
        let verifier = Verifier::new(&charter);
        let mut other = charter.clone();
        other.nonce += 1;
        let foreign = transaction(&other, &root, 1);
        let garbage = Bytes::from_static(b"garbage");
        let judged = check(&verifier, &charter, &[Bytes::from(foreign.to_bytes()), garbage]);
        assert!(matches!(&judged[0], Err((_, RejectReason::Malformed(text))) if text.contains("of ledger")));
        assert!(matches!(&judged[1], Err((_, RejectReason::Malformed(_)))));
    }

    #[test]
    fn memory_stays_bounded() {
        let (charter, root) = charter();
        let verifier = Verifier::new(&charter);
        let good = transaction(&charter, &root, 1);
        let mut memory = verifier.memory.lock();
        for number in 0..REMEMBERED_TRANSACTIONS_MAX + 10 {
            let id = TransactionId(crypto::sha256(&[&number.to_be_bytes()]));
            let transaction = VerifiedTransaction { id, ..VerifiedTransaction::from(good.clone()) };
            memory.remember(Arc::new(transaction), Box::default(), 0);
        }
        assert_eq!(memory.transactions.len(), REMEMBERED_TRANSACTIONS_MAX);
    }
}
