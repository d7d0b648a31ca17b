use crate::{Receipt, RejectReason, SqlError, decode_exactly, encode, limits};
use borsh::{BorshDeserialize, BorshSerialize};
use serde::{Deserialize, Serialize};

/// Transactions of one submission.
pub const SUBMISSION_TRANSACTIONS_MAX: usize = 10_000;
/// Bytes of one submission, frames included.
pub const SUBMISSION_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Bytes of a reply: a receipt with the rows that its statements return.
pub const SUBMISSION_REPLY_BYTES_MAX: usize = 64 * 1024 * 1024;

/// When a client is told what became of its transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AnswerAt {
    /// When a quorum of organisations has come to the same outcome: nobody has to believe the node.
    #[default]
    Attested,
    /// When the block is final and on the disk of the node that answers.
    Recorded,
}

impl AnswerAt {
    /// Its name in settings, requests and `node.toml`.
    pub fn name(self) -> &'static str {
        match self {
            AnswerAt::Attested => "attested",
            AnswerAt::Recorded => "recorded",
        }
    }

    /// The moment that has this name.
    pub fn from_name(name: &str) -> Option<AnswerAt> {
        [AnswerAt::Attested, AnswerAt::Recorded].into_iter().find(|moment| moment.name() == name)
    }
}

/// Why a submitted transaction gets no receipt.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize, thiserror::Error)]
pub enum SubmissionRefusal {
    /// The gateway refused it before it was ordered.
    #[error("the transaction was refused: {0}")]
    Rejected(RejectReason),
    /// The contract or a constraint ended it when it was to be endorsed, so it was not ordered.
    #[error("the transaction ends with {}: {}", .0.state, .0.message)]
    Aborted(SqlError),
    /// The gateway found nobody, or not enough, to endorse it, so it was not ordered.
    #[error("{}", .0.message)]
    NotEndorsed(SqlError),
    /// The proposer saw that it cannot commit any more, and did not order it (Fabric++'s early abort). As after a conflict:
    /// sign a new one.
    #[error(
        "given up before it was ordered: {}",
        if *.stale { "what it read has been written since" } else { "it closes a cycle with others of its block" }
    )]
    EarlyAbort {
        /// What it read is old; else it is on a cycle with others that wait.
        stale: bool,
    },
    /// The node holds as many waiting transactions as it may: submit again later, with the same bytes.
    #[error("the node holds as many waiting transactions as it may; submit the same bytes again later")]
    Full,
    /// Nothing is known in the time that the gateway waits. The transaction may still commit; ask for its receipt, or
    /// submit the same bytes again, which commits once.
    #[error(
        "no receipt in time; the transaction may still commit: ask for its receipt or submit the same bytes again"
    )]
    Unknown,
    /// The client submits more per second than this node takes of one client (node.toml). Submit again later, with the
    /// same bytes.
    #[error(
        "this node takes {per_second} transactions per second of one client; submit the same bytes again later"
    )]
    TooFast {
        /// The limit.
        per_second: u64,
    },
    /// The node's key is that of no member: it follows, and nobody would order what it takes. Submit the same bytes
    /// through another node.
    #[error(
        "this node's key is that of no member at height {height}, so it orders nothing; submit the same bytes through another node"
    )]
    NoMember {
        /// Height of the next block.
        height: u64,
    },
}

/// What a gateway says of one transaction of a submission, when it becomes final.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub struct SubmissionReply {
    /// Position of the transaction in the submission, from 0.
    pub position: u32,
    /// Its receipt, or why there is none.
    pub result: Result<Receipt, SubmissionRefusal>,
}

impl SubmissionReply {
    /// The reply as one frame of the response.
    pub fn to_frame(&self) -> Vec<u8> {
        let mut frame = Vec::new();
        write_frame(&mut frame, &encode(self));
        frame
    }

    /// Reads the content of a frame.
    ///
    /// # Errors
    /// Says at which offset what was expected.
    pub fn from_bytes(bytes: &[u8]) -> std::io::Result<SubmissionReply> {
        decode_exactly(bytes)
    }
}

/// Why bytes are no frames.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum FrameError {
    /// A length says more than may be.
    #[error(
        "frame {index} announces {found} bytes, the limit is {limit}; a frame is a u32-le length, then the content"
    )]
    TooLong {
        /// Position of the frame, from 0.
        index: usize,
        /// Announced length.
        found: usize,
        /// The limit.
        limit: usize,
    },
    /// The bytes end inside of a frame.
    #[error("frame {index} is cut off: {expected} bytes should follow, {found} do")]
    CutOff {
        /// Position of the frame, from 0.
        index: usize,
        /// Bytes announced.
        expected: usize,
        /// Bytes that are there.
        found: usize,
    },
    /// More frames than may be.
    #[error("more than {limit} frames; send them in several requests")]
    TooMany {
        /// The limit.
        limit: usize,
    },
}

/// Appends `content` as a frame: its length as `u32`, little-endian, then the bytes.
pub fn write_frame(buffer: &mut Vec<u8>, content: &[u8]) {
    buffer.reserve(content.len() + 4);
    buffer.extend_from_slice(&(content.len() as u32).to_le_bytes());
    buffer.extend_from_slice(content);
}

/// Takes the first frame off `bytes`, which may go on or be incomplete: `None` until the whole frame is there.
///
/// # Errors
/// [`FrameError::TooLong`] where the frame is longer than `limit`.
pub fn read_frame<'a>(bytes: &mut &'a [u8], limit: usize) -> Result<Option<&'a [u8]>, FrameError> {
    let Some((length, rest)) = bytes.split_first_chunk::<4>() else { return Ok(None) };
    let length = u32::from_le_bytes(*length) as usize;
    if length > limit {
        return Err(FrameError::TooLong { index: 0, found: length, limit });
    }
    let Some((content, rest)) = rest.split_at_checked(length) else { return Ok(None) };
    *bytes = rest;
    Ok(Some(content))
}

/// The ranges of the contents of all frames of a submission. Bytes that end inside of a frame are refused.
///
/// # Errors
/// [`FrameError`] says at which frame.
pub fn frame_ranges(bytes: &[u8]) -> Result<Vec<std::ops::Range<usize>>, FrameError> {
    let mut rest = bytes;
    let mut ranges = Vec::new();
    while !rest.is_empty() {
        let index = ranges.len();
        if index == SUBMISSION_TRANSACTIONS_MAX {
            return Err(FrameError::TooMany { limit: SUBMISSION_TRANSACTIONS_MAX });
        }
        let announced = rest.first_chunk().map(|length| u32::from_le_bytes(*length) as usize);
        let available = rest.len();
        match read_frame(&mut rest, limits::TRANSACTION_BYTES_MAX) {
            Ok(Some(content)) => {
                let end = bytes.len() - rest.len();
                ranges.push(end - content.len()..end);
            }
            Ok(None) => {
                let expected = announced.map_or(4, |length| length + 4);
                return Err(FrameError::CutOff { index, expected, found: available });
            }
            Err(FrameError::TooLong { found, limit, .. }) => {
                return Err(FrameError::TooLong { index, found, limit });
            }
            Err(other) => return Err(other),
        }
    }
    Ok(ranges)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Outcome, StatementResult, TransactionId};

    #[test]
    fn frames_round_trip_and_incomplete_ones_wait() {
        let mut bytes = Vec::new();
        for content in [b"one".as_slice(), b"", b"three"] {
            write_frame(&mut bytes, content);
        }
        let contents: Vec<&[u8]> =
            frame_ranges(&bytes).expect("three frames").into_iter().map(|range| &bytes[range]).collect();
        assert_eq!(contents, [b"one".as_slice(), b"", b"three"]);
        let mut partial = &bytes[..5];
        assert_eq!(read_frame(&mut partial, 100), Ok(None));
        assert_eq!(partial.len(), 5);
    }

    #[test]
    fn wrong_frames_are_refused_with_their_position() {
        let mut bytes = Vec::new();
        write_frame(&mut bytes, b"one");
        bytes.extend_from_slice(&[9, 0, 0, 0, 1, 2]);
        assert_eq!(frame_ranges(&bytes), Err(FrameError::CutOff { index: 1, expected: 13, found: 6 }));
        assert_eq!(frame_ranges(&[1, 0]), Err(FrameError::CutOff { index: 0, expected: 4, found: 2 }));
        let limit = limits::TRANSACTION_BYTES_MAX;
        let error = FrameError::TooLong { index: 0, found: u32::MAX as usize, limit };
        assert_eq!(frame_ranges(&[0xff; 8]), Err(error));
        let many = vec![0; 4 * (SUBMISSION_TRANSACTIONS_MAX + 1)];
        assert_eq!(frame_ranges(&many), Err(FrameError::TooMany { limit: SUBMISSION_TRANSACTIONS_MAX }));
    }

    #[test]
    fn replies_round_trip() {
        let receipt = Receipt {
            transaction: TransactionId::default(),
            height: 3,
            index: 1,
            outcome: Outcome::Committed(vec![StatementResult {
                tag: "CALL".into(),
                ..StatementResult::default()
            }]),
        };
        let refusals =
            [SubmissionRefusal::Full, SubmissionRefusal::Unknown, SubmissionRefusal::NoMember { height: 9 }];
        for result in std::iter::once(Ok(receipt)).chain(refusals.map(Err)) {
            let reply = SubmissionReply { position: 7, result };
            let frame = reply.to_frame();
            let content =
                read_frame(&mut frame.as_slice(), SUBMISSION_REPLY_BYTES_MAX).expect("short").expect("whole");
            assert_eq!(SubmissionReply::from_bytes(content).expect("what to_frame wrote"), reply);
        }
    }
}
