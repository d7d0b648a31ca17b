//! Transactions before they are executed: decoded, of this ledger, and signed by who they say.

mod memory;
mod signatures;
mod verified;

pub use verified::{Judged, VerifiedBlock, VerifiedEndorsement, VerifiedTransaction};

use crate::held::judge_held;
use bytes::Bytes;
use crypto::{Digest, PublicKey, SignedMessage};
use memory::Memory;
use parking_lot::Mutex;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use signatures::{EndorserSignature, endorser_signatures, holder_signatures};
use std::sync::Arc;
use types::{
    Block, Charter, Charters, Credential, EndorsedSimulation, EndorsementFault, ExecutionModel,
    ExecutionVersion, Outcome, Payload, Place, Receipt, RejectReason, SignedTransaction, TransactionError,
    TransactionId, ValueLimits, endorsement_message, endorsement_roots, with_types_of,
};

/// Whether a transaction is not longer than the charter allows there.
fn check_length(place: Place<'_>, bytes: &Bytes) -> Result<(), TransactionError> {
    let (found, limit) = (bytes.len(), place.charter().block.transaction_bytes_max as usize);
    if found > limit { Err(TransactionError::TooLarge { found, limit }) } else { Ok(()) }
}

/// Transactions that one thread decodes at a time; what they hash is hashed together.
const DECODED_TOGETHER: usize = 64;
/// Decodes transactions and verifies signatures, in batches and once: verdicts are remembered, only positive ones, by
/// everything that was verified (id, credential and signature), in bounded memory.
pub struct Verifier {
    ledger: Digest,
    execution: ExecutionModel,
    memory: Mutex<Memory>,
}

/// What transactions are judged for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// To stand in a block.
    Order,
    /// To be endorsed.
    Endorse,
}

/// The same before any signature is verified, with what endorsers must have signed.
type Decoded =
    Result<(Arc<VerifiedTransaction>, Vec<(EndorserSignature, u64)>), (TransactionId, RejectReason)>;

/// Why a payload of this kind is none before the execution version that has brought it: the words of the programs that did not know it,
/// because receipts have them. They have not looked at what stands behind.
fn unknown_before(charter: &Charter, bytes: &[u8]) -> Option<String> {
    let kind = SignedTransaction::payload_kind(bytes)?;
    let since = match kind {
        // Parts, and outcomes of schemas.
        4 | 5 => ExecutionVersion::V4,
        // Members' words that they hold parts.
        6 => ExecutionVersion::V5,
        // Outcomes with what moves between schemas.
        7 => ExecutionVersion::V6,
        _ => return None,
    };
    let is_known = charter.execution_version >= since.number();
    (!is_known).then(|| unknown_kind(kind))
}

fn unknown_kind(kind: u8) -> String {
    TransactionError::Malformed(format!("Unexpected variant tag: {kind}")).to_string()
}

/// The kind of [`Payload::Agreed`], which stands in parts, and never in the ledger: there nobody knows it.
const AGREED: u8 = 8;

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
                let fits = check_length(place, bytes).is_ok();
                (same && fits).then(|| Ok(known.transaction.clone()))
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
        check_length(place, bytes).map_err(|long| (id, RejectReason::Malformed(long.to_string())))?;
        let is_of_parts = SignedTransaction::payload_kind(bytes) == Some(AGREED);
        let unknown = unknown_before(place.charter(), bytes);
        if let Some(reason) = unknown.or_else(|| is_of_parts.then(|| unknown_kind(AGREED))) {
            return Err((id, RejectReason::Malformed(reason)));
        }
        // A program stops in front of blocks of a version that it does not know.
        let version = place.charter().execution_version;
        let version = ExecutionVersion::of_number(version).unwrap_or(ExecutionVersion::NEWEST);
        let read = || SignedTransaction::from_bytes_of(bytes, version);
        let signed = ValueLimits::of(version).within(|| with_types_of(version, read));
        let signed = signed.map_err(|error| (id, RejectReason::Malformed(error.to_string())))?;
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
            Purpose::Order => self.endorsed_as_asked(version, &signed),
            Purpose::Endorse => self.not_endorsed(version, &signed),
        };
        asked.map_err(|fault| (id, RejectReason::Endorsement(fault)))?;
        Ok(signed)
    }

    /// Whether a transaction can be endorsed.
    fn not_endorsed(
        &self,
        version: ExecutionVersion,
        signed: &SignedTransaction,
    ) -> Result<(), EndorsementFault> {
        let has_parts = matches!(signed.transaction.payload, Payload::Parts { .. });
        let wrong = match (&signed.endorsed, self.execution) {
            // Members of schemas say that they hold its parts.
            (None, ExecutionModel::OrderExecute) if has_parts => return Ok(()),
            (_, ExecutionModel::OrderExecute) => {
                "this ledger executes after ordering; submit the call without endorsements"
            }
            (Some(_), _) => "a proposal carries no endorsements; send the transaction without them",
            _ if sql::is_schema_change(&signed.transaction.payload, version) => {
                "a schema change is executed by every node; submit it without endorsements"
            }
            _ => return Ok(()),
        };
        Err(EndorsementFault::Unasked(wrong.to_string()))
    }

    /// Whether a transaction comes with endorsements where it must, and not where it must not.
    fn endorsed_as_asked(
        &self,
        version: ExecutionVersion,
        signed: &SignedTransaction,
    ) -> Result<(), EndorsementFault> {
        let words_stand_in_blocks = version >= ExecutionVersion::V5;
        let schema_change = || sql::is_schema_change(&signed.transaction.payload, version);
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

#[cfg(test)]
mod tests;
