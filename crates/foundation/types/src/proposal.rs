//! Proposals: what endorsers are asked, and what they answer (execute–order–validate).

use crate::{EndorsedEffects, Endorsement, RejectReason, SqlError, decode_exactly, encode};
use borsh::{BorshDeserialize, BorshSerialize};
use crypto::Digest;
use std::io;

/// Proposals of one request.
pub const PROPOSALS_MAX: usize = 2_048;

/// A transaction that somebody wants endorsed.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub struct Proposal {
    /// Canonical encoding of the [`SignedTransaction`](crate::SignedTransaction), without endorsements.
    pub transaction: Vec<u8>,
    /// Digest of the effects that others have found; an endorser that finds the same need not send them.
    pub expected: Option<Digest>,
}

/// What an endorser is asked: to execute these on one state, and to sign what they do with one signature.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub struct ProposalRequest {
    /// Height of the block whose state they are executed on; `None`: the newest that the endorser has.
    pub height: Option<u64>,
    /// At most [`PROPOSALS_MAX`].
    pub proposals: Vec<Proposal>,
}

/// What an endorser found.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub enum ProposalAnswer {
    /// The effects that were expected.
    Agreed(Endorsement),
    /// These, where none were expected or others.
    Found {
        /// What the transaction does.
        effects: EndorsedEffects,
        /// The endorser's word for that.
        endorsement: Endorsement,
    },
}

/// Why an endorser does not endorse a proposal.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize, thiserror::Error)]
pub enum ProposalRefusal {
    /// It is no proposal of this ledger: the encoding, the signature, the credential.
    #[error("the proposal was refused: {0}")]
    Rejected(RejectReason),
    /// The contract or a constraint ends it.
    #[error("the transaction ends with {}: {}", .0.state, .0.message)]
    Aborted(SqlError),
    /// The endorser was not through with the request in its time.
    #[error("it has too much to do; ask it later")]
    Busy,
    /// The organisation does not agree to the script, on a ledger whose databases execute it after ordering: in its own words.
    #[error("it does not agree: {0}")]
    Disagrees(String),
}

/// What an endorser answers to a request.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub enum ProposalReply {
    /// It has executed them.
    Answers {
        /// Height of the block on whose state.
        height: u64,
        /// One per proposal, in their order.
        answers: Vec<Result<ProposalAnswer, ProposalRefusal>>,
    },
    /// It does not have the state that was asked for, even after waiting for it.
    NoSuchState {
        /// Height of the oldest state that it has.
        oldest: u64,
        /// Height of the newest.
        newest: u64,
    },
}

impl ProposalRequest {
    /// As it is sent.
    pub fn to_bytes(&self) -> Vec<u8> {
        encode(self)
    }

    /// Reads what was sent. A request of more than [`PROPOSALS_MAX`] is refused before it takes memory.
    ///
    /// # Errors
    /// What stood where the encoding expects something else.
    pub fn from_bytes(bytes: &[u8]) -> io::Result<ProposalRequest> {
        let mut rest = bytes;
        Option::<u64>::deserialize(&mut rest)?;
        at_most(PROPOSALS_MAX, &mut rest)?;
        decode_exactly(bytes)
    }
}

impl ProposalReply {
    /// As it is sent.
    pub fn to_bytes(&self) -> Vec<u8> {
        encode(self)
    }

    /// Reads what was sent. More than `answers_max` answers are refused before they take memory.
    ///
    /// # Errors
    /// What stood where the encoding expects something else.
    pub fn from_bytes(bytes: &[u8], answers_max: usize) -> io::Result<ProposalReply> {
        let mut rest = bytes;
        if u8::deserialize(&mut rest)? == 0 {
            u64::deserialize(&mut rest)?;
            at_most(answers_max, &mut rest)?;
        }
        decode_exactly(bytes)
    }
}

/// Reads the length of a list, which says how much memory decoding it takes.
fn at_most(limit: usize, bytes: &mut &[u8]) -> io::Result<()> {
    let found = u32::deserialize(bytes)?;
    if found as usize > limit {
        let message = format!("expected at most {limit} entries, found {found}");
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SqlState, TransactionId, endorse};
    use crypto::{SecretKey, sha256};
    use std::ops::Not;

    fn request() -> ProposalRequest {
        let proposal = |number: u8, expected| Proposal { transaction: vec![number; 3], expected };
        let proposals = vec![proposal(1, None), proposal(2, Some(sha256(&[b"effects"])))];
        ProposalRequest { height: Some(7), proposals }
    }

    fn reply() -> ProposalReply {
        let id = TransactionId(sha256(&[b"id"]));
        let effects = EndorsedEffects { now_ms: 5, ..EndorsedEffects::default() };
        let key = SecretKey::from_bytes([3; 32]);
        let endorsement = endorse(&key, 1, &sha256(&[b"ledger"]), 7, &[(id, effects.digest())]).remove(0);
        let aborted = SqlError::new(SqlState::CHECK_VIOLATION, "no");
        let answers = vec![
            Ok(ProposalAnswer::Agreed(endorsement.clone())),
            Ok(ProposalAnswer::Found { effects, endorsement }),
            Err(ProposalRefusal::Aborted(aborted)),
            Err(ProposalRefusal::Rejected(RejectReason::Malformed("bytes".into()))),
            Err(ProposalRefusal::Disagrees("nothing is left".into())),
        ];
        ProposalReply::Answers { height: 7, answers }
    }

    #[test]
    fn lists_that_are_too_long_are_refused_before_they_are_read() {
        let many = ProposalRequest { height: None, proposals: vec![request().proposals[0].clone(); 2_049] };
        let error = ProposalRequest::from_bytes(&many.to_bytes()).expect_err("too many").to_string();
        assert_eq!(error, "expected at most 2048 entries, found 2049");
        let error = ProposalReply::from_bytes(&reply().to_bytes(), 3).expect_err("too many").to_string();
        assert_eq!(error, "expected at most 3 entries, found 5");
        assert!(ProposalRequest::from_bytes(&[0, 0xff, 0xff, 0xff, 0xff]).is_err());
    }

    #[test]
    fn messages_round_trip_and_what_is_damaged_is_another_message_or_none() {
        let (request, reply) = (request(), reply());
        let bytes = request.to_bytes();
        assert_eq!(ProposalRequest::from_bytes(&bytes).expect("a request"), request);
        for at in 0..bytes.len() {
            assert!(ProposalRequest::from_bytes(&bytes[..at]).is_err(), "{at} bytes");
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x40;
            assert!(ProposalRequest::from_bytes(&flipped).is_ok_and(|other| other == request).not(), "{at}");
        }
        let bytes = reply.to_bytes();
        assert_eq!(ProposalReply::from_bytes(&bytes, 5).expect("a reply"), reply);
        for at in 0..bytes.len() {
            assert!(ProposalReply::from_bytes(&bytes[..at], 4).is_err(), "{at} bytes");
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x40;
            assert!(ProposalReply::from_bytes(&flipped, 4).is_ok_and(|other| other == reply).not(), "{at}");
        }
    }
}
