//! What things cost a processor, measured on the machine at hand by the code that nodes run.

use super::node_key;
use crate::bft::{BlockRules, OrderedBlock};
use crate::cutting::{Parent, assemble};
use crate::members::committee;
use bytes::Bytes;
use commonware_codec::{Decode as _, Encode as _};
use commonware_cryptography::{
    BatchEntry, BatchVerifier as _, ChaCha20Poly1305, Cipher as _, Signer as _, ed25519::PublicKey,
};
use commonware_math::algebra::Random as _;
use commonware_parallel::Sequential;
use crypto::Digest;
use rand_core::CryptoRng;
use std::io::{Read as _, Result, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::{Duration, Instant};
use types::Attested;

/// The shortest of so many rounds counts: others on the machine only make them longer.
const ROUNDS: usize = 7;
/// Bytes of a vote with its envelope.
const VOTE_BYTES: usize = 192;
/// Bytes at once in a long message.
const CHUNK: usize = 64 * 1024;
/// Signatures of a batch: those of a view of eighty members.
const BATCH: usize = 54;

/// What things cost a processor, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Costs {
    /// Any message, sent or taken: it is encrypted or decrypted, and the system carries it.
    pub message: f64,
    /// Each of its bytes.
    pub byte: f64,
    /// Each byte of a block: it is decoded and its root is computed. Whoever judges blocks is to charge it.
    pub block_byte: f64,
    /// A signature that is verified with others.
    pub signature: f64,
}

impl Costs {
    /// Measures. `transactions` are those of a block.
    ///
    /// # Errors
    /// There is no connection within the machine.
    pub fn measure(random: &mut impl CryptoRng, transactions: Vec<Bytes>) -> Result<Costs> {
        let mut line = Line::new(random)?;
        let short = line.time(VOTE_BYTES, 200)?;
        let long = line.time(CHUNK, 50)?;
        let byte = (long - short) / (CHUNK - VOTE_BYTES) as f64;
        Ok(Costs {
            message: short,
            byte: byte.max(0.0),
            block_byte: block_byte(transactions),
            signature: signature(random),
        })
    }
}

/// Nanoseconds of one of so many things, which take turns.
fn shortest(things: usize, mut round: impl FnMut()) -> f64 {
    let time = |_| {
        let began = Instant::now();
        round();
        began.elapsed()
    };
    let shortest = (0..ROUNDS).map(time).min().unwrap_or(Duration::ZERO);
    shortest.as_nanos() as f64 / things as f64
}

/// An encrypted connection of the machine with itself.
struct Line {
    cipher: Option<ChaCha20Poly1305>,
    out: TcpStream,
    into: TcpStream,
}

impl Line {
    fn new(random: &mut impl CryptoRng) -> Result<Line> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let out = TcpStream::connect(listener.local_addr()?)?;
        let (into, _) = listener.accept()?;
        out.set_nodelay(true)?;
        Ok(Line { cipher: Some(ChaCha20Poly1305::random(random)), out, into })
    }

    /// Nanoseconds for one side of a message of so many bytes.
    fn time(&mut self, bytes: usize, messages: usize) -> Result<f64> {
        let (mut message, mut failed) = (vec![7; bytes], None);
        let both = shortest(messages, || {
            for _ in 0..messages {
                if let Err(error) = self.carry(&mut message) {
                    failed = Some(error);
                }
            }
        });
        failed.map_or(Ok(both / 2.0), Err)
    }

    /// Encrypts, sends, takes and encrypts again, which costs what decrypting costs.
    fn carry(&mut self, message: &mut [u8]) -> Result<()> {
        self.encrypt(message);
        self.out.write_all(message)?;
        self.into.read_exact(message)?;
        self.encrypt(message);
        Ok(())
    }

    fn encrypt(&mut self, message: &mut [u8]) {
        let sealed = self.cipher.take().and_then(|cipher| cipher.seal(b"", message));
        self.cipher = Some(sealed.expect("there are numbers for 2^96 messages").0);
    }
}

/// Nanoseconds for a byte of a block that is decoded.
fn block_byte(transactions: Vec<Bytes>) -> f64 {
    let ledger = Digest::ZERO;
    let block =
        OrderedBlock(assemble(ledger, &Parent::charter(ledger), 0, 1, Attested::default(), transactions));
    let (bytes, rules) = (block.encode(), BlockRules::of(ledger));
    shortest(bytes.len(), || {
        OrderedBlock::decode_cfg(bytes.clone(), &rules).expect("it was just encoded");
    })
}

/// Nanoseconds for a signature of a batch.
fn signature(random: &mut impl CryptoRng) -> f64 {
    let (namespace, message) = (b"cost".as_slice(), [7; VOTE_BYTES]);
    let sign = |member| {
        let key = committee::private_key(&node_key(member));
        (key.public_key(), key.sign(namespace, &message))
    };
    let signed: Vec<(PublicKey, _)> = (0..BATCH).map(sign).collect();
    shortest(BATCH, || {
        let entry = |_: usize, (public_key, signature)| {
            let (public_key, signature): (&PublicKey, &_) = (public_key, signature);
            BatchEntry { namespace, message: &message, public_key, signature }
        };
        let signed: Vec<_> = signed.iter().map(|(key, signature)| (key, signature)).collect();
        let verified = PublicKey::verify_batch(&mut *random, &signed, |at, one| entry(at, *one), &Sequential);
        assert!(verified, "they were just signed");
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng as _;

    #[test]
    fn everything_costs_something() {
        let mut random = rand::rngs::StdRng::seed_from_u64(1);
        let transactions = (0..200).map(|number: u32| Bytes::from(vec![number as u8; 200])).collect();
        let costs = Costs::measure(&mut random, transactions).expect("the machine reaches itself");
        assert!(costs.message > 0.0 && costs.block_byte > 0.0 && costs.signature > 0.0, "{costs:?}");
    }
}
