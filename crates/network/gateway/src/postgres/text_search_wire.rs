//! Documents and queries of full text search as the Postgres protocol has them in binary: PostgreSQL's `tsvectorsend` and `tsquerysend`.

use bytes::{BufMut, BytesMut};
use std::sync::Arc;
use types::text_search::{Position, QueryItem, TsQuery, TsVector, Weights};
use types::{SqlError, SqlState};

/// A word of a query.
const OPERAND: u8 = 1;
/// What joins parts of a query.
const OPERATOR: u8 = 2;

/// How many lexemes; of each the text, `00`, how many positions, and these.
pub(super) fn put_vector(output: &mut BytesMut, vector: &TsVector) {
    output.put_u32(vector.lexemes().count() as u32);
    for lexeme in vector.lexemes() {
        output.put_slice(lexeme.text.as_bytes());
        output.put_u8(0);
        output.put_u16(lexeme.positions.len() as u16);
        lexeme.positions.iter().for_each(|position| output.put_u16(position.bits()));
    }
}

/// How many items; the items from the last to the first, so that operators come before what they join, and the right side before the left.
pub(super) fn put_query(output: &mut BytesMut, query: &TsQuery) {
    output.put_u32(query.items().len() as u32);
    for item in query.items().iter().rev() {
        let operator = match item {
            QueryItem::Operand { text, weights, is_prefix } => {
                output.put_slice(&[OPERAND, weights.bits(), u8::from(*is_prefix)]);
                output.put_slice(text.as_bytes());
                output.put_u8(0);
                continue;
            }
            QueryItem::Not => 1,
            QueryItem::And => 2,
            QueryItem::Or => 3,
            QueryItem::Phrase(_) => 4,
        };
        output.put_slice(&[OPERATOR, operator]);
        if let QueryItem::Phrase(distance) = item {
            output.put_u16(*distance);
        }
    }
}

/// A document; `None` where the bytes are none.
///
/// # Errors
/// `54000` where it is too long.
pub(super) fn vector(bytes: &[u8]) -> Result<Option<TsVector>, SqlError> {
    let mut reader = Reader(bytes);
    let Some(count) = reader.u32() else { return Ok(None) };
    let mut lexemes: Vec<(String, Vec<Position>)> = Vec::new();
    for _ in 0..count {
        let Some((text, positions)) = reader.text().zip(reader.u16()) else { return Ok(None) };
        let mut places = Vec::new();
        for _ in 0..positions {
            match reader.u16().and_then(Position::of_bits) {
                Some(position) => places.push(position),
                None => return Ok(None),
            }
        }
        if !places.is_sorted_by_key(|position| position.place()) {
            return Err(SqlError::new(SqlState::DATA_EXCEPTION, "position information is misordered"));
        }
        lexemes.push((text.to_string(), places));
    }
    if reader.0.is_empty() { TsVector::new(lexemes).map(Some) } else { Ok(None) }
}

/// A query; `None` where the bytes are none.
///
/// # Errors
/// `54000` where it is too long.
pub(super) fn query(bytes: &[u8]) -> Result<Option<TsQuery>, SqlError> {
    let mut reader = Reader(bytes);
    let Some(count) = reader.u32() else { return Ok(None) };
    let mut items = Vec::new();
    for _ in 0..count {
        match reader.item() {
            Some(item) => items.push(item),
            None => return Ok(None),
        }
    }
    items.reverse();
    if reader.0.is_empty() { TsQuery::new(items) } else { Ok(None) }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_be_bytes)
    }

    /// A text that ends with `00`.
    fn text(&mut self) -> Option<&'a str> {
        let end = self.0.iter().position(|byte| *byte == 0)?;
        let (text, rest) = self.0.split_at(end);
        self.0 = &rest[1..];
        std::str::from_utf8(text).ok()
    }

    fn item(&mut self) -> Option<QueryItem> {
        match self.take()? {
            [OPERAND] => {
                let [bits, is_prefix] = self.take()?;
                let weights = Weights::of_bits(bits)?;
                let text = Arc::from(self.text()?);
                Some(QueryItem::Operand { text, weights, is_prefix: is_prefix != 0 })
            }
            [OPERATOR] => match self.take()? {
                [1] => Some(QueryItem::Not),
                [2] => Some(QueryItem::And),
                [3] => Some(QueryItem::Or),
                [4] => self.u16().map(QueryItem::Phrase),
                _ => None,
            },
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::{DataType, Value, parse_value};

    /// Hexadecimal digits that PostgreSQL 15 sent.
    const VECTORS: &[(&str, &str)] = &[
        ("", "00000000"),
        (
            "fat:2,4 cat:3A 'a b' rat:12B,16383C",
            "00000004612062000000636174000001c00366617400000200020004726174000002800c7fff",
        ),
    ];
    const QUERIES: &[(&str, &str)] = &[
        ("", "00000000"),
        ("fat & rat", "0000000302020100007261740001000066617400"),
        (
            "!(super:*A <2> star:BC) | 'a b' & ä",
            "0000000802030202010000c3a400010000612062000201020400020106007374617200010801737570657200",
        ),
    ];

    fn hexadecimal(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn bytes_are_those_of_postgresql_and_are_read_again() {
        for (text, expected) in VECTORS {
            let Ok(Value::TsVector(value)) = parse_value(text, DataType::TsVector) else { panic!("{text}") };
            let mut bytes = BytesMut::new();
            put_vector(&mut bytes, &value);
            assert_eq!(hexadecimal(&bytes), *expected, "{text}");
            assert_eq!(vector(&bytes), Ok(Some(value)), "{text}");
            for end in 0..bytes.len() {
                assert_eq!(vector(&bytes[..end]), Ok(None), "{end} bytes of {text}");
            }
        }
        for (text, expected) in QUERIES {
            let Ok(Value::TsQuery(value)) = parse_value(text, DataType::TsQuery) else { panic!("{text}") };
            let mut bytes = BytesMut::new();
            put_query(&mut bytes, &value);
            assert_eq!(hexadecimal(&bytes), *expected, "{text}");
            assert_eq!(query(&bytes), Ok(Some(value)), "{text}");
            for end in 0..bytes.len() {
                assert_eq!(query(&bytes[..end]), Ok(None), "{end} bytes of {text}");
            }
        }
    }

    #[test]
    fn what_is_no_value_is_refused() {
        // A position 0; an operator without what it joins; a count without items.
        assert_eq!(vector(&[0, 0, 0, 1, b'a', 0, 0, 1, 0, 0]), Ok(None));
        assert_eq!(query(&[0, 0, 0, 1, 2, 1]), Ok(None));
        assert_eq!(query(&[255, 255, 255, 255]), Ok(None));
        assert_eq!(vector(&[255, 255, 255, 255]), Ok(None));
        // Lexemes in another order, and places in another order.
        let reordered = [0, 0, 0, 2, b'b', 0, 0, 0, b'a', 0, 0, 0];
        assert_eq!(
            vector(&reordered).map(|vector| vector.map(|vector| vector.lexemes().count())),
            Ok(Some(2))
        );
        let misordered = [0, 0, 0, 1, b'a', 0, 0, 2, 0, 2, 0, 1];
        assert_eq!(
            vector(&misordered).map_err(|error| error.message),
            Err("position information is misordered".into())
        );
    }
}
