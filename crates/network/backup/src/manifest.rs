//! Which pieces make a backup.

use crypto::{Digest, sha256};
use serde::{Deserialize, Serialize};

pub(crate) const MANIFESTS: &str = "manifests";
pub(crate) const BLOCKS: &str = "blocks";
pub(crate) const STATE: &str = "state";
/// What a manifest's file begins with, in front of the digest of the rest.
const KIND: &str = "entente backup 1";
/// Longer than the manifest of a million pieces.
pub(crate) const MANIFEST_BYTES_MAX: u64 = 512 << 20;
/// Longer than any piece: one record may be that long.
pub(crate) const PIECE_BYTES_MAX: u64 = 2 << 30;

/// A file of a backup.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PieceFile {
    /// Its name in the target.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// SHA-256 of its content, in hexadecimal digits.
    pub sha256: String,
}

impl PieceFile {
    /// Of this content: `folder/begin-DIGEST.end`.
    pub(crate) fn of(folder: &str, begin: &str, end: &str, content: &[u8]) -> PieceFile {
        let sha256 = sha256(&[content]).to_string();
        let name = format!("{folder}/{begin}-{}.{end}", &sha256[..16]);
        PieceFile { name, bytes: content.len() as u64, sha256 }
    }
}

/// Blocks of heights that follow one another.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlocksPiece {
    /// The file.
    pub file: PieceFile,
    /// The first height.
    pub first: u64,
    /// The last one.
    pub last: u64,
    /// Digest of the last block's header.
    pub header: String,
    /// Digest of what it came to.
    pub outcome: String,
}

/// The state at a certified checkpoint.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatePieces {
    /// Behind which block.
    pub height: u64,
    /// Certificate, outline, and where the rows are.
    pub index: PieceFile,
    /// The rows.
    pub packs: Vec<PieceFile>,
}

/// A backup that was made whole.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// How many were made before it, and 1.
    pub number: u64,
    /// Digest of the founding charter.
    pub ledger: String,
    /// Whose node it is a backup of.
    pub organisation: String,
    /// The organisation's position in the charter.
    pub position: u16,
    /// Seconds since 1970, by the clock of the machine.
    pub made_at: u64,
    /// Height of the first block.
    pub first_height: u64,
    /// Height of the last block.
    pub height: u64,
    /// The founding charter's file.
    pub charter: String,
    /// The file `node.toml`.
    pub node: String,
    /// The block in front of the first one, where the ledger does not begin at height 1.
    pub anchor: Option<PieceFile>,
    /// The blocks.
    pub blocks: Vec<BlocksPiece>,
    /// A state, where one was certified.
    pub state: Option<StatePieces>,
}

impl Manifest {
    /// The name of the manifest with a number.
    pub(crate) fn name(number: u64) -> String {
        format!("{MANIFESTS}/{number:020}.json")
    }

    /// The number in a file's name.
    pub(crate) fn number_of(name: &str) -> Option<u64> {
        let digits = name.strip_suffix(".json")?;
        if digits.len() == 20 { digits.parse().ok() } else { None }
    }

    /// All files that it names.
    pub(crate) fn files(&self) -> impl Iterator<Item = &PieceFile> {
        let state = self.state.iter().flat_map(|state| std::iter::once(&state.index).chain(&state.packs));
        self.anchor.iter().chain(self.blocks.iter().map(|piece| &piece.file)).chain(state)
    }

    /// Bytes of all files.
    pub(crate) fn bytes(&self) -> u64 {
        self.files().map(|file| file.bytes).sum()
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let text = serde_json::to_string_pretty(self).expect("text and numbers are JSON");
        format!("{KIND} {}\n{text}\n", sha256(&[text.as_bytes()])).into_bytes()
    }

    /// Reads what [`Manifest::to_bytes`] wrote.
    ///
    /// # Errors
    /// What was expected and what came.
    pub(crate) fn from_bytes(number: u64, bytes: &[u8]) -> Result<Manifest, String> {
        let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
        let (begin, rest) = text.split_once('\n').ok_or("expected two lines or more")?;
        let digest = begin.strip_prefix(KIND).and_then(|digest| digest.strip_prefix(' '));
        let expected: Digest = digest.and_then(|digest| digest.parse().ok()).ok_or_else(|| {
            format!("expected `{KIND}` and a digest in the first line; a newer version may have written it")
        })?;
        let text = rest.strip_suffix('\n').ok_or("expected a line end at the end")?;
        let found = sha256(&[text.as_bytes()]);
        if expected != found {
            return Err(format!("expected the SHA-256 {expected}, found {found}"));
        }
        let manifest: Manifest = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if manifest.number != number {
            return Err(format!("expected the number {number}, found {}", manifest.number));
        }
        Ok(manifest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_comes_back_and_every_flipped_byte_shows() {
        let file = PieceFile::of(BLOCKS, "1-2", "blocks", b"content");
        let manifest = Manifest {
            number: 7,
            ledger: "l".into(),
            organisation: "org1".into(),
            position: 0,
            made_at: 9,
            first_height: 1,
            height: 2,
            charter: "name = \"é\"".into(),
            node: String::new(),
            anchor: None,
            blocks: vec![BlocksPiece { file, first: 1, last: 2, header: "h".into(), outcome: "o".into() }],
            state: None,
        };
        let bytes = manifest.to_bytes();
        assert_eq!(Manifest::from_bytes(7, &bytes).expect("whole"), manifest);
        assert!(Manifest::from_bytes(8, &bytes).expect_err("another").contains("expected the number 8"));
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1;
            assert!(Manifest::from_bytes(7, &flipped).is_err(), "byte {at}");
            assert!(Manifest::from_bytes(7, &bytes[..at]).is_err(), "{at} bytes");
        }
    }
}
