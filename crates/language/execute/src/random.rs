//! Random values that are the same for every node: each is a hash of a seed and of its number.
//!
//! A transaction's seed is made of its id and of its place in a block, so that nobody knows the values before it is ordered. Whoever
//! proposes the block chooses its time, and so among values, and every member can compute them: they suit no lottery and no
//! secret. A transaction block's seed is its client's word, because the client sees the values before the block is ordered.

use crate::execution::Execution;
use crypto::{Digest, sha256};
use plan::random::RandomFunction;
use types::{SqlError, SqlState, Value};
use values::{broken, work};

const SEED_DOMAIN: &[u8] = b"entente random seed 1\0";
const VALUE_DOMAIN: &[u8] = b"entente random value 1\0";
/// As pgcrypto has it.
const BYTES_MAX: i32 = 1024;
/// Steps of a hash: about what a function of a short text costs.
const HASH_UNITS: u64 = 64;

/// What random values of an execution are made of, and how many it has drawn.
#[derive(Default)]
pub(crate) struct RandomValues {
    seed: Option<Digest>,
    drawn: u64,
}

impl Execution<'_> {
    /// Runs one of these functions.
    ///
    /// # Errors
    /// `39000` for a number of bytes that pgcrypto refuses; a transaction that takes too many steps.
    pub(crate) fn random_value(
        &mut self,
        function: RandomFunction,
        arguments: &[Value],
    ) -> Result<Value, SqlError> {
        match (function, arguments) {
            (RandomFunction::Uuid, []) => {
                let digest = self.draw_random()?;
                let mut uuid: [u8; 16] = std::array::from_fn(|byte| digest.0[byte]);
                // Version 4, and the variant of RFC 9562.
                uuid[6] = uuid[6] & 0x0f | 0x40;
                uuid[8] = uuid[8] & 0x3f | 0x80;
                Ok(Value::Uuid(uuid))
            }
            (RandomFunction::Double, []) => {
                let digest = self.draw_random()?;
                let bits = u64::from_be_bytes(std::array::from_fn(|byte| digest.0[byte])) >> 11;
                // 53 bits, which a double has.
                Ok(Value::Double(bits as f64 / (1u64 << 53) as f64))
            }
            (RandomFunction::Bytes, [Value::Integer(count @ 1..=BYTES_MAX)]) => {
                let mut bytes = Vec::with_capacity(*count as usize + 32);
                while bytes.len() < *count as usize {
                    bytes.extend_from_slice(&self.draw_random()?.0);
                }
                bytes.truncate(*count as usize);
                Ok(Value::Bytea(bytes.into()))
            }
            (RandomFunction::Bytes, [Value::Integer(_)]) => {
                Err(SqlError::new(SqlState(*b"39000"), "Length not in range"))
            }
            _ => Err(broken("a random value of no kind")),
        }
    }

    /// The next 32 bytes.
    fn draw_random(&mut self) -> Result<Digest, SqlError> {
        work::spend(HASH_UNITS)?;
        let seed = match self.random.seed {
            Some(seed) => seed,
            None => *self.random.seed.insert(self.random_seed()),
        };
        self.random.drawn += 1;
        Ok(sha256(&[VALUE_DOMAIN, &seed.0, &self.random.drawn.to_be_bytes()]))
    }

    fn random_seed(&self) -> Digest {
        if let Some(place) = self.session_place() {
            return place.seed;
        }
        let context = self.context();
        let (height, time) = (context.height.to_be_bytes(), context.timestamp_ms.to_be_bytes());
        sha256(&[SEED_DOMAIN, &context.transaction.0.0, &height, &context.index.to_be_bytes(), &time])
    }
}
