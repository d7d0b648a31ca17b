use crate::{CheckpointError, CheckpointHeader};
use borsh::{BorshDeserialize, BorshSerialize};
use crypto::Digest;
use types::{decode_exactly, encode};

const MAGIC: [u8; 8] = *b"EnManif\x1a";

/// What stands in the file of a checkpoint: which state it is of, and its root. Rows and tree are where the store keeps them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub struct Manifest {
    /// Which state.
    pub header: CheckpointHeader,
    /// Root of its tree.
    pub root: Digest,
}

impl Manifest {
    /// The file's content.
    pub fn to_bytes(&self) -> Vec<u8> {
        [&MAGIC[..], &encode(self)].concat()
    }

    /// Reads a file's content; `None`: it is that of a checkpoint with all of its rows, as older programs have written
    /// ([`crate::read_checkpoint`]).
    ///
    /// # Errors
    /// It is damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<Option<Manifest>, CheckpointError> {
        let Some(content) = bytes.strip_prefix(&MAGIC[..]) else { return Ok(None) };
        match decode_exactly(content) {
            Ok(manifest) => Ok(Some(manifest)),
            Err(error) => Err(CheckpointError::Damaged {
                expected: "the manifest of a checkpoint",
                found: error.to_string(),
            }),
        }
    }

    /// How long the content is.
    pub fn length() -> usize {
        MAGIC.len() + encode(&Manifest { header: CheckpointHeader::default(), root: Digest::ZERO }).len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_comes_back_and_nothing_else_is_one() {
        let header = CheckpointHeader { height: 7, ..CheckpointHeader::default() };
        let manifest = Manifest { header, root: Digest([9; 32]) };
        let bytes = manifest.to_bytes();
        assert_eq!(bytes.len(), Manifest::length());
        assert_eq!(Manifest::from_bytes(&bytes).expect("whole"), Some(manifest));
        for length in MAGIC.len()..bytes.len() {
            assert!(Manifest::from_bytes(&bytes[..length]).is_err(), "{length} bytes");
        }
        assert_eq!(Manifest::from_bytes(b"ENTENTE\x1a and so on").expect("another file"), None);
    }
}
