//! Parts on the disk: whoever signs that it holds a part must have it after a crash.
//!
//! ```text
//! parts.log: records, one behind the other
//! record:    length (4 bytes) ‖ checksum (8 bytes of SHA-256) ‖ HeldPart
//! ```
//!
//! A record that is torn or damaged ends the file at the next start. What was behind it is asked for again, from other members.

use crate::NodeError;
use borsh::{BorshDeserialize, BorshSerialize};
use crypto::sha256;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use types::{Part, TransactionId, decode_exactly, encode};

const HEAD_BYTES: usize = 4 + 8;
/// Longer than any part with its names.
const RECORD_BYTES_MAX: usize = 256 * 1024;

/// A part with what it belongs to.
#[derive(Clone, PartialEq, Debug, BorshSerialize, BorshDeserialize)]
pub(crate) struct HeldPart {
    pub(crate) transaction: TransactionId,
    pub(crate) schema: String,
    pub(crate) part: Part,
}

/// The parts that this node holds.
pub(crate) struct PartStore {
    path: PathBuf,
    inner: Mutex<Inner>,
}

struct Inner {
    file: File,
    parts: FxHashMap<(TransactionId, String), Part>,
    /// Something was written that may not survive a crash.
    unflushed: bool,
}

impl PartStore {
    /// Opens the file in this folder, or makes it.
    ///
    /// # Errors
    /// [`NodeError::File`].
    pub(crate) fn open(folder: &Path) -> Result<PartStore, NodeError> {
        let path = folder.join("parts.log");
        let failed = |action: &'static str| {
            let path = path.clone();
            move |error| NodeError::File { action, path, error }
        };
        std::fs::create_dir_all(folder).map_err(failed("make"))?;
        let mut file = File::options()
            .read(true)
            .create(true)
            .truncate(false)
            .append(true)
            .open(&path)
            .map_err(failed("open"))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed("read"))?;
        let (parts, good) = read(&bytes);
        if good < bytes.len() {
            let lost = bytes.len() - good;
            tracing::warn!(lost, "the end of parts.log was torn or damaged; its parts are asked for again");
            file.set_len(good as u64).map_err(failed("cut"))?;
        }
        Ok(PartStore { path: path.clone(), inner: Mutex::new(Inner { file, parts, unflushed: false }) })
    }

    /// The part of a transaction in a schema.
    pub(crate) fn get(&self, transaction: &TransactionId, schema: &str) -> Option<Part> {
        self.inner.lock().parts.get(&(*transaction, schema.to_string())).cloned()
    }

    /// Takes a part, which counts as held after [`PartStore::flush`].
    ///
    /// # Errors
    /// [`NodeError::File`].
    pub(crate) fn put(&self, held: HeldPart) -> Result<(), NodeError> {
        let mut inner = self.inner.lock();
        let key = (held.transaction, held.schema.clone());
        if inner.parts.contains_key(&key) {
            return Ok(());
        }
        inner.file.write_all(&record(&held)).map_err(|error| self.failed("write", error))?;
        inner.parts.insert(key, held.part);
        inner.unflushed = true;
        Ok(())
    }

    /// Returns once everything that was taken survives a crash.
    ///
    /// # Errors
    /// [`NodeError::File`].
    pub(crate) fn flush(&self) -> Result<(), NodeError> {
        let mut inner = self.inner.lock();
        if inner.unflushed {
            inner.file.sync_data().map_err(|error| self.failed("flush", error))?;
            inner.unflushed = false;
        }
        Ok(())
    }

    fn failed(&self, action: &'static str, error: std::io::Error) -> NodeError {
        NodeError::File { action, path: self.path.clone(), error }
    }
}

fn record(held: &HeldPart) -> Vec<u8> {
    let content = encode(held);
    let mut bytes = Vec::with_capacity(HEAD_BYTES + content.len());
    bytes.extend_from_slice(&(content.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&sha256(&[&content]).0[..8]);
    bytes.extend_from_slice(&content);
    bytes
}

/// The records up to the first that is none, and where they end.
fn read(bytes: &[u8]) -> (FxHashMap<(TransactionId, String), Part>, usize) {
    let (mut parts, mut at) = (FxHashMap::default(), 0);
    while let Some((head, rest)) = bytes[at..].split_at_checked(HEAD_BYTES) {
        let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let Some(content) = rest.get(..length).filter(|_| length <= RECORD_BYTES_MAX) else { break };
        if sha256(&[content]).0[..8] != head[4..] {
            break;
        }
        let Ok(HeldPart { transaction, schema, part }) = decode_exactly::<HeldPart>(content) else { break };
        parts.insert((transaction, schema), part);
        at += HEAD_BYTES + length;
    }
    (parts, at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::Payload;

    fn held(number: u8) -> HeldPart {
        let payload = Payload::Script { sql: format!("UPDATE deal.t SET n = {number}"), parameters: vec![] };
        HeldPart {
            transaction: TransactionId(sha256(&[&[number]])),
            schema: "deal".into(),
            part: Part { salt: [number; 32], payload },
        }
    }

    #[test]
    fn parts_are_there_after_a_start_and_a_damaged_file_ends_in_front_of_the_damage() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = PartStore::open(folder.path()).expect("opened");
        for number in 0..4 {
            store.put(held(number)).expect("written");
        }
        store.put(held(2)).expect("known already");
        store.flush().expect("flushed");
        drop(store);
        let path = folder.path().join("parts.log");
        let whole = std::fs::read(&path).expect("readable");
        let each = whole.len() / 4;
        let known = |bytes: &[u8]| {
            std::fs::write(&path, bytes).expect("writable");
            let store = PartStore::open(folder.path()).expect("opened");
            let known: Vec<bool> = (0..4)
                .map(|number| store.get(&held(number).transaction, "deal") == Some(held(number).part))
                .collect();
            // What is written behind a file that was cut is found again.
            store.put(held(9)).expect("written");
            drop(store);
            let again = PartStore::open(folder.path()).expect("opened");
            assert_eq!(again.get(&held(9).transaction, "deal"), Some(held(9).part));
            assert_eq!(again.get(&held(9).transaction, "other"), None);
            known
        };
        assert_eq!(known(&whole), [true; 4]);
        for length in (0..whole.len()).step_by(7) {
            let expected: Vec<bool> = (1..=4).map(|count| length >= count * each).collect();
            assert_eq!(known(&whole[..length]), expected, "{length} bytes");
        }
        for at in (0..whole.len()).step_by(5) {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x40;
            let expected: Vec<bool> = (1..=4).map(|count| at >= count * each).collect();
            assert_eq!(known(&damaged), expected, "byte {at}");
        }
    }
}
