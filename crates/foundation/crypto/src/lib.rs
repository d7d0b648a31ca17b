//! The cryptography that every other crate builds on: [`Digest`] (SHA-256), Ed25519 keys with **one verdict rule**
//! for single and batched verification (ZIP 215), and Merkle trees as in RFC 9162.
//!
//! ```
//! use crypto::{SecretKey, SignedMessage, verify_batch};
//! let key = SecretKey::generate();
//! let signature = key.sign(b"hello");
//! let message = SignedMessage { key: key.public_key(), signature, message: b"hello" };
//! assert_eq!(verify_batch(&[message]), vec![true]);
//! ```

/// `N` unpredictable bytes from the operating system: request ids, nonces. Never for what replicas must agree on.
pub fn random_bytes<const N: usize>() -> [u8; N] {
    rand::random()
}

mod digest;
mod keys;
mod merkle;
mod sha256_batch;

pub use digest::{Digest, DigestWriter, sha256};
pub use keys::{KeyError, PublicKey, SecretKey, Signature, SignedMessage, verify, verify_batch};
pub use merkle::{MerkleProof, leaf_hash, merkle_root, node_hash};
pub use sha256_batch::Sha256Batch;
