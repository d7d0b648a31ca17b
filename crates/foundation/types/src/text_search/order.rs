//! The order of both types, which is PostgreSQL's, as keys: values are compared by these.
//!
//! | type | bytes |
//! | --- | --- |
//! | tsvector | how many bytes PostgreSQL's value has, and how many lexemes there are, in four bytes each; for each lexeme `0` where it has positions, else `1`, its text, the complement of how many positions it has in two bytes, and of each position, the place before the weight |
//! | tsquery | how many items there are, and how many bytes PostgreSQL's value has, in four bytes each; the items from the last to the first: `0`, the complement of the operator's number, the complement of the distance behind what a phrase joins; or `1`, the complement of the checksum of the word, and the word |

use super::{QueryItem, TsQuery, TsVector};
use crate::key::push_text;
use smallvec::SmallVec;
use std::cmp::Ordering;

type Bytes = SmallVec<[u8; 16]>;

impl TsVector {
    /// The order of PostgreSQL: shorter documents first.
    pub fn compare(&self, other: &TsVector) -> Ordering {
        compare(
            |bytes| push_vector_key(bytes, self, usize::MAX),
            |bytes| push_vector_key(bytes, other, usize::MAX),
        )
    }
}

impl TsQuery {
    /// The order of PostgreSQL: shorter queries first. Weights and whether words are whole do not count.
    pub fn compare(&self, other: &TsQuery) -> Ordering {
        compare(
            |bytes| push_query_key(bytes, self, usize::MAX),
            |bytes| push_query_key(bytes, other, usize::MAX),
        )
    }
}

fn compare(one: impl FnOnce(&mut Bytes), other: impl FnOnce(&mut Bytes)) -> Ordering {
    let (mut left, mut right) = (Bytes::new(), Bytes::new());
    one(&mut left);
    other(&mut right);
    left.cmp(&right)
}

/// The key of a document, as much as has room.
pub(crate) fn push_vector_key(bytes: &mut Bytes, vector: &TsVector, limit: usize) {
    bytes.extend_from_slice(&(vector.postgres_bytes() as u32).to_be_bytes());
    bytes.extend_from_slice(&(vector.lexemes().count() as u32).to_be_bytes());
    for lexeme in vector.lexemes() {
        if bytes.len() > limit {
            return;
        }
        bytes.push(u8::from(lexeme.positions.is_empty()));
        push_text(bytes, lexeme.text.as_bytes());
        if lexeme.positions.is_empty() {
            continue;
        }
        bytes.extend_from_slice(&(!(lexeme.positions.len() as u16)).to_be_bytes());
        for position in lexeme.positions.iter() {
            let rank = (position.place() << 2) | position.weight() as u16;
            bytes.extend_from_slice(&(!rank).to_be_bytes());
        }
    }
}

/// The key of a query, as much as has room.
pub(crate) fn push_query_key(bytes: &mut Bytes, query: &TsQuery, limit: usize) {
    let of_item = |item: &QueryItem| match item {
        QueryItem::Operand { text, .. } => 12 + text.len() + 1,
        _ => 12,
    };
    let size = 8 + query.items().iter().map(of_item).sum::<usize>();
    bytes.extend_from_slice(&(query.items().len() as u32).to_be_bytes());
    bytes.extend_from_slice(&(size as u32).to_be_bytes());
    // Operators come first, and what they join from the right. How far the sides of a phrase are apart comes behind both.
    let mut open: Vec<(usize, Option<u16>)> = Vec::new();
    for item in query.items().iter().rev() {
        if bytes.len() > limit {
            return;
        }
        let number: u8 = match item {
            QueryItem::Operand { text, .. } => {
                bytes.push(1);
                bytes.extend_from_slice(&(!(checksum(text.as_bytes()) ^ (1 << 31))).to_be_bytes());
                push_text(bytes, text.as_bytes());
                close(&mut open, bytes);
                continue;
            }
            QueryItem::Not => 1,
            QueryItem::And => 2,
            QueryItem::Or => 3,
            QueryItem::Phrase(_) => 4,
        };
        bytes.extend_from_slice(&[0, !number]);
        let distance = match item {
            QueryItem::Phrase(distance) => Some(*distance),
            _ => None,
        };
        open.push((item.arity(), distance));
    }
}

/// One part more is complete, and with that maybe what it is a part of.
fn close(open: &mut Vec<(usize, Option<u16>)>, bytes: &mut Bytes) {
    while let Some((missing, distance)) = open.last_mut() {
        *missing -= 1;
        if *missing > 0 {
            return;
        }
        if let Some(distance) = distance {
            bytes.extend_from_slice(&(!*distance).to_be_bytes());
        }
        open.pop();
    }
}

/// PostgreSQL's older CRC-32 (`pg_crc.h`): the table of the reflected polynomial with shifts to the left.
pub fn checksum(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = table();
    let of_all = bytes.iter().fold(u32::MAX, |sum, byte| {
        let place = (sum >> 24) as u8 ^ byte;
        TABLE[usize::from(place)] ^ (sum << 8)
    });
    !of_all
}

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut place = 0;
    while place < 256 {
        let (mut sum, mut bit) = (place as u32, 0);
        while bit < 8 {
            sum = if sum & 1 == 1 { 0xedb8_8320 ^ (sum >> 1) } else { sum >> 1 };
            bit += 1;
        }
        table[place] = sum;
        place += 1;
    }
    table
}
