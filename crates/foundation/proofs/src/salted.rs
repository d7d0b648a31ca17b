//! Leaves of the trees over what a block came to in a schema with members. Each has a salt of its own, so that whoever sees one sees
//! nothing of the others.
//!
//! ```text
//! leaf of a receipt   SHA-256(0 ‖ salt ‖ receipt)
//! leaf of a row       SHA-256(0 ‖ salt ‖ digest of the table's definition ‖ key ‖ row, or that there is none)
//! first leaf          SHA-256(0 ‖ salt): nobody sees from outside whether a block wrote rows
//! ```

use borsh::BorshSerialize;
use crypto::{Digest, leaf_hash, sha256};
use types::{Key, Row, Table, encode};

/// What the leaf of a row names its table's definition by.
pub fn definition_digest(table: &Table) -> Digest {
    sha256(&[b"entente schema table 1\0", &encode(table)])
}

/// What stands behind the salt in the leaf of a row, as a block has left it: appended to `content`. `definition`: of
/// [`definition_digest`]; `row`: `None` where it is gone.
pub fn push_row(content: &mut Vec<u8>, definition: &Digest, key: &Key, row: Option<&Row>) {
    content.extend_from_slice(&definition.0);
    let written = key.serialize(content).and_then(|()| row.serialize(content));
    written.expect("writing to memory cannot fail");
}

/// The leaf of a salt and what stands behind it.
pub fn salted_leaf(salt: &Digest, content: &[u8]) -> Digest {
    leaf_hash(&[&salt.0, content].concat())
}
