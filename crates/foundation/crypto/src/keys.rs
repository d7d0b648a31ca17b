use crate::digest::{hex, unhex};
use borsh::{BorshDeserialize, BorshSerialize};
use curve25519_dalek::edwards::CompressedEdwardsY;
use ed25519_zebra as zebra;
use rayon::prelude::*;
use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

/// Why a key cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum KeyError {
    /// The text is not 64 hexadecimal digits.
    #[error("expected a key of 64 hexadecimal digits, found {found} characters")]
    Malformed {
        /// Length of the text that came.
        found: usize,
    },
    /// The bytes are no point of the curve, or a point of small order, under which anybody can sign.
    #[error(
        "the public key {0} is not a point of large order on the curve; generate a new key with `entente init`"
    )]
    Unsafe(String),
}

/// An Ed25519 public key: 32 bytes, shown as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, BorshSerialize, BorshDeserialize)]
pub struct PublicKey(pub [u8; 32]);

impl PublicKey {
    /// Refuses what is no curve point, and points of small order.
    ///
    /// # Errors
    /// [`KeyError::Unsafe`] names the key.
    pub fn check(&self) -> Result<(), KeyError> {
        match CompressedEdwardsY(self.0).decompress() {
            Some(point) if !point.is_small_order() => Ok(()),
            _ => Err(KeyError::Unsafe(self.to_string())),
        }
    }
}

/// An Ed25519 signature: 64 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, BorshSerialize, BorshDeserialize)]
pub struct Signature(pub [u8; 64]);

/// An Ed25519 secret key. Its `Debug` form shows nothing of it.
#[derive(Clone)]
pub struct SecretKey(zebra::SigningKey);

impl SecretKey {
    /// A new key from the operating system's randomness.
    pub fn generate() -> SecretKey {
        SecretKey(zebra::SigningKey::new(rand::rng()))
    }

    /// The key with these 32 secret bytes (RFC 8032, 5.1.5).
    pub fn from_bytes(bytes: [u8; 32]) -> SecretKey {
        SecretKey(zebra::SigningKey::from(bytes))
    }

    /// The 32 secret bytes, for a key file.
    pub fn to_bytes(&self) -> [u8; 32] {
        self.0.to_bytes()
    }

    /// The secret as 64 hexadecimal digits, for a key file.
    pub fn to_hex(&self) -> String {
        hex(&self.to_bytes())
    }

    /// Reads what [`SecretKey::to_hex`] wrote; surrounding white space is ignored.
    ///
    /// # Errors
    /// [`KeyError::Malformed`] with the length found.
    pub fn from_hex(text: &str) -> Result<SecretKey, KeyError> {
        let text = text.trim();
        unhex(text).map(SecretKey::from_bytes).ok_or(KeyError::Malformed { found: text.len() })
    }

    /// The key that others verify with.
    pub fn public_key(&self) -> PublicKey {
        PublicKey(self.0.verification_key().into())
    }

    /// Signs `message`; the caller separates domains by what the message starts with.
    pub fn sign(&self, message: &[u8]) -> Signature {
        Signature(self.0.sign(message).to_bytes())
    }
}

/// A message with the signature that is claimed for it.
#[derive(Clone, Copy, Debug)]
pub struct SignedMessage<'a> {
    /// Who is said to have signed.
    pub key: PublicKey,
    /// The signature.
    pub signature: Signature,
    /// What was signed.
    pub message: &'a [u8],
}

impl SignedMessage<'_> {
    fn item(&self) -> zebra::batch::Item {
        let key = zebra::VerificationKeyBytes::from(self.key.0);
        zebra::batch::Item::from((key, zebra::Signature::from_bytes(&self.signature.0), self.message))
    }
}

/// Verifies one signature by ZIP 215, refusing keys of small order.
pub fn verify(message: &SignedMessage<'_>) -> bool {
    message.key.check().is_ok() && message.item().verify_single().is_ok()
}

/// How many signatures share one batch equation: larger costs less for each, but leaves threads idle and, where it fails,
/// is verified again in halves.
const BATCH: std::ops::RangeInclusive<usize> = 256..=4096;

/// Verifies many signatures on all threads of the current rayon pool and gives a verdict for each, the same that
/// [`verify`] gives.
///
/// A batch costs 9–25 µs a signature instead of 50–65 µs, the less the fewer keys it has; with a forged signature among
/// `n`, about `2 log2 n` more batches find it.
pub fn verify_batch(messages: &[SignedMessage<'_>]) -> Vec<bool> {
    let mut verdicts = vec![false; messages.len()];
    let share = messages.len().div_ceil(rayon::current_num_threads());
    let batch = share.clamp(*BATCH.start(), *BATCH.end());
    if messages.len() <= batch {
        // To wake a thread of the pool and to wait for it costs more than the few signatures of a certificate.
        verify_together(messages, &mut verdicts);
    } else {
        let batches = messages.par_chunks(batch).zip(verdicts.par_chunks_mut(batch));
        batches.for_each(|(messages, verdicts)| verify_together(messages, verdicts));
    }
    verdicts
}

fn verify_together(messages: &[SignedMessage<'_>], verdicts: &mut [bool]) {
    bisect(messages, verdicts);
    // Each key is looked at once, in whatever order they come.
    let mut keys: HashMap<PublicKey, bool> = HashMap::new();
    for (message, verdict) in messages.iter().zip(verdicts) {
        *verdict &= *keys.entry(message.key).or_insert_with(|| message.key.check().is_ok());
    }
}

fn bisect(messages: &[SignedMessage<'_>], verdicts: &mut [bool]) {
    if messages.len() <= 2 {
        for (message, verdict) in messages.iter().zip(verdicts) {
            *verdict = message.item().verify_single().is_ok();
        }
        return;
    }
    let mut batch = zebra::batch::Verifier::new();
    for message in messages {
        batch.queue(message.item());
    }
    if batch.verify(rand::rng()).is_ok() {
        verdicts.fill(true);
    } else {
        let middle = messages.len() / 2;
        let (low, high) = verdicts.split_at_mut(middle);
        bisect(&messages[..middle], low);
        bisect(&messages[middle..], high);
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}…", hex(&self.0[..4]))
    }
}

impl FromStr for PublicKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let key = unhex(text).map(PublicKey).ok_or(KeyError::Malformed { found: text.len() })?;
        key.check().map(|()| key)
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}…", hex(&self.0[..4]))
    }
}

impl FromStr for Signature {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        unhex(text).map(Signature).ok_or(KeyError::Malformed { found: text.len() })
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKey(of {:?})", self.public_key())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(seed: u8) -> SecretKey {
        SecretKey::from_bytes([seed; 32])
    }

    #[test]
    fn a_batch_gives_each_signature_the_verdict_it_gets_alone() {
        let texts: Vec<Vec<u8>> = (0..700u32).map(|i| i.to_be_bytes().to_vec()).collect();
        let signed: Vec<_> = texts
            .iter()
            .enumerate()
            .map(|(i, text)| {
                let key = key((i % 5) as u8);
                let mut signature = key.sign(text);
                if i % 97 == 3 {
                    signature.0[i % 64] ^= 1;
                }
                SignedMessage { key: key.public_key(), signature, message: text }
            })
            .collect();
        let alone: Vec<bool> = signed.iter().map(verify).collect();
        assert_eq!(verify_batch(&signed), alone);
        assert_eq!(alone.iter().filter(|good| !**good).count(), 8);
    }

    #[test]
    fn keys_of_small_order_are_refused() {
        // The neutral element: with it, the signature (R = neutral, s = 0) is valid for every message in ZIP 215.
        let mut neutral = [0; 32];
        neutral[0] = 1;
        let mut signature = [0; 64];
        signature[0] = 1;
        let forged =
            SignedMessage { key: PublicKey(neutral), signature: Signature(signature), message: b"anything" };
        assert!(forged.item().verify_single().is_ok(), "ZIP 215 alone accepts it");
        assert!(!verify(&forged));
        assert_eq!(verify_batch(&[forged]), vec![false]);
        assert!(PublicKey(neutral).to_string().parse::<PublicKey>().is_err());
    }

    #[test]
    fn key_files_round_trip() {
        let key = SecretKey::generate();
        let read = SecretKey::from_hex(&format!("{}\n", key.to_hex())).expect("what to_hex wrote");
        assert_eq!(read.public_key(), key.public_key());
        assert_eq!(key.public_key().to_string().parse(), Ok(key.public_key()));
        assert_eq!(SecretKey::from_hex("abc").err(), Some(KeyError::Malformed { found: 3 }));
    }
}
