//! Reading what is encoded, which is refused where it is not as an encoder writes it.

use super::vector::split_lexeme;
use super::{LEXEME_BYTES_MAX, POSITIONS_MAX, QueryItem, TsQuery, TsVector, Weights};
use crate::ExecutionVersion;
use crate::unknown_types::check_known;
use borsh::{BorshDeserialize, BorshSerialize};
use std::io;
use std::sync::Arc;

/// What the encodings of both begin with as values.
const VECTOR_TAG: u8 = 30;
const QUERY_TAG: u8 = 31;

fn refused(what: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

impl BorshSerialize for TsVector {
    fn serialize<W: io::Write>(&self, writer: &mut W) -> io::Result<()> {
        self.bytes().serialize(writer)
    }
}

impl BorshDeserialize for TsVector {
    fn deserialize_reader<R: io::Read>(reader: &mut R) -> io::Result<TsVector> {
        check_known(VECTOR_TAG, ExecutionVersion::V15)?;
        let bytes = Vec::<u8>::deserialize_reader(reader)?;
        if !is_canonical(&bytes) {
            return Err(refused("expected a value of type tsvector"));
        }
        TsVector::of_bytes(bytes).map_err(refused)
    }
}

/// Whether these are lexemes in order, each with its positions in order.
fn is_canonical(bytes: &[u8]) -> bool {
    let (mut rest, mut last) = (bytes, "");
    while !rest.is_empty() {
        let Some((lexeme, behind)) = split_lexeme(rest) else { return false };
        let fits = lexeme.text > last
            && lexeme.text.len() <= LEXEME_BYTES_MAX
            && !lexeme.text.contains('\0')
            && lexeme.positions.len() <= POSITIONS_MAX;
        let mut place = 0;
        let ascends =
            lexeme.positions.iter().all(|position| std::mem::replace(&mut place, position.place()) < place);
        if !fits || !ascends {
            return false;
        }
        (rest, last) = (behind, lexeme.text);
    }
    true
}

impl BorshSerialize for TsQuery {
    fn serialize<W: io::Write>(&self, writer: &mut W) -> io::Result<()> {
        (self.items().len() as u32).serialize(writer)?;
        for item in self.items() {
            match item {
                QueryItem::Operand { text, weights, is_prefix } => {
                    (0_u8, weights.bits(), is_prefix).serialize(writer)?;
                    text.serialize(writer)?;
                }
                QueryItem::Not => 1_u8.serialize(writer)?,
                QueryItem::And => 2_u8.serialize(writer)?,
                QueryItem::Or => 3_u8.serialize(writer)?,
                QueryItem::Phrase(distance) => (4_u8, distance).serialize(writer)?,
            }
        }
        Ok(())
    }
}

impl BorshDeserialize for TsQuery {
    fn deserialize_reader<R: io::Read>(reader: &mut R) -> io::Result<TsQuery> {
        check_known(QUERY_TAG, ExecutionVersion::V15)?;
        let count = u32::deserialize_reader(reader)?;
        let mut items = Vec::new();
        for _ in 0..count {
            items.push(match u8::deserialize_reader(reader)? {
                0 => {
                    let (bits, is_prefix) = <(u8, bool)>::deserialize_reader(reader)?;
                    let weights =
                        Weights::of_bits(bits).ok_or_else(|| refused("expected weights of a tsquery"))?;
                    let text = Arc::<str>::deserialize_reader(reader)?;
                    if text.contains('\0') {
                        return Err(refused("expected a word of a tsquery"));
                    }
                    QueryItem::Operand { text, weights, is_prefix }
                }
                1 => QueryItem::Not,
                2 => QueryItem::And,
                3 => QueryItem::Or,
                4 => QueryItem::Phrase(u16::deserialize_reader(reader)?),
                _ => return Err(refused("expected an item of a tsquery")),
            });
        }
        TsQuery::new(items).map_err(refused)?.ok_or_else(|| refused("expected one whole tsquery"))
    }
}
