//! PostgreSQL's hash functions, whose numbers applications take as keys of advisory locks and as numbers of shards.
//!
//! The hash is Bob Jenkins' lookup3 (2006) as PostgreSQL has it (`src/common/hashfn.c`), on the bytes of a little-endian machine.

use crate::functions::entry::Argument::To;
use crate::functions::entry::Gives::Is;
use crate::functions::entry::{Function, code};
use DataType::{BigInt, Integer, SmallInt};
use types::{DataType, ExecutionVersion, Value};

const TEXT: DataType = DataType::Text(None);

pub(super) static FUNCTIONS: &[Function] = &[
    Function::new(
        &["hashtext"],
        &[To(TEXT)],
        Is(Integer),
        code!([Value::Text(text)] => Ok(Value::Integer(hash(text.as_bytes())))),
    )
    .never_fails()
    .since(ExecutionVersion::V15),
    Function::new(
        &["hashtextextended"],
        &[To(TEXT), To(BigInt)],
        Is(BigInt),
        code!([Value::Text(text), Value::BigInt(seed)] => Ok(Value::BigInt(seeded_hash(text.as_bytes(), *seed)))),
    )
    .never_fails()
    .since(ExecutionVersion::V15),
    Function::new(
        &["hashint2"],
        &[To(SmallInt)],
        Is(Integer),
        code!([Value::SmallInt(number)] => Ok(Value::Integer(hash(&i32::from(*number).to_le_bytes())))),
    )
    .never_fails()
    .since(ExecutionVersion::V15),
    Function::new(
        &["hashint4"],
        &[To(Integer)],
        Is(Integer),
        code!([Value::Integer(number)] => Ok(Value::Integer(hash(&number.to_le_bytes())))),
    )
    .never_fails()
    .since(ExecutionVersion::V15),
    Function::new(
        &["hashint8"],
        &[To(BigInt)],
        Is(Integer),
        code!([Value::BigInt(number)] => Ok(Value::Integer(hash(&folded(*number))))),
    )
    .never_fails()
    .since(ExecutionVersion::V15),
    Function::new(
        &["hashint2extended"],
        &[To(SmallInt), To(BigInt)],
        Is(BigInt),
        code!(
            [Value::SmallInt(number), Value::BigInt(seed)] => {
                Ok(Value::BigInt(seeded_hash(&i32::from(*number).to_le_bytes(), *seed)))
            }
        ),
    )
    .never_fails()
    .since(ExecutionVersion::V15),
    Function::new(
        &["hashint4extended"],
        &[To(Integer), To(BigInt)],
        Is(BigInt),
        code!(
            [Value::Integer(number), Value::BigInt(seed)] => {
                Ok(Value::BigInt(seeded_hash(&number.to_le_bytes(), *seed)))
            }
        ),
    )
    .never_fails()
    .since(ExecutionVersion::V15),
    Function::new(
        &["hashint8extended"],
        &[To(BigInt), To(BigInt)],
        Is(BigInt),
        code!(
            [Value::BigInt(number), Value::BigInt(seed)] => {
                Ok(Value::BigInt(seeded_hash(&folded(*number), *seed)))
            }
        ),
    )
    .never_fails()
    .since(ExecutionVersion::V15),
];

/// A number of eight bytes in four, so that it has the hash of the same number in four.
fn folded(number: i64) -> [u8; 4] {
    let (low, high) = (number as u32, (number >> 32) as u32);
    (low ^ if number >= 0 { high } else { !high }).to_le_bytes()
}

fn hash(bytes: &[u8]) -> i32 {
    mixed(bytes, 0)[2] as i32
}

fn seeded_hash(bytes: &[u8], seed: i64) -> i64 {
    let [_, high, low] = mixed(bytes, seed as u64);
    (u64::from(high) << 32 | u64::from(low)) as i64
}

/// The three words that the bytes come to.
fn mixed(bytes: &[u8], seed: u64) -> [u32; 3] {
    let mut words = [0x9e37_79b9_u32.wrapping_add(bytes.len() as u32).wrapping_add(3_923_095); 3];
    if seed != 0 {
        add(&mut words, [(seed >> 32) as u32, seed as u32, 0]);
        mix(&mut words);
    }
    let (whole, rest) = bytes.as_chunks::<12>();
    for chunk in whole {
        let word = |at: usize| u32::from_le_bytes([chunk[at], chunk[at + 1], chunk[at + 2], chunk[at + 3]]);
        add(&mut words, [word(0), word(4), word(8)]);
        mix(&mut words);
    }
    // The lowest byte of the last word belongs to the length: what is there comes one byte further up.
    let mut last = [0; 13];
    for (at, byte) in rest.iter().enumerate() {
        last[if at < 8 { at } else { at + 1 }] = *byte;
    }
    let word = |at: usize| u32::from_le_bytes([last[at], last[at + 1], last[at + 2], last[at + 3]]);
    add(&mut words, [word(0), word(4), word(8)]);
    finish(&mut words);
    words
}

fn add(words: &mut [u32; 3], others: [u32; 3]) {
    words.iter_mut().zip(others).for_each(|(word, other)| *word = word.wrapping_add(other));
}

fn mix([a, b, c]: &mut [u32; 3]) {
    let step = |x: &mut u32, y: &mut u32, z: u32, bits: u32| {
        *x = x.wrapping_sub(*y) ^ y.rotate_left(bits);
        *y = y.wrapping_add(z);
    };
    step(a, c, *b, 4);
    step(b, a, *c, 6);
    step(c, b, *a, 8);
    step(a, c, *b, 16);
    step(b, a, *c, 19);
    step(c, b, *a, 4);
}

fn finish([a, b, c]: &mut [u32; 3]) {
    let step = |x: &mut u32, y: u32, bits: u32| *x = (*x ^ y).wrapping_sub(y.rotate_left(bits));
    step(c, *b, 14);
    step(a, *c, 11);
    step(b, *a, 25);
    step(c, *b, 16);
    step(a, *c, 4);
    step(b, *a, 14);
    step(c, *b, 24);
}
