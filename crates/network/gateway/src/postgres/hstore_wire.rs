//! Values of type hstore as the Postgres protocol has them in binary: `hstore_send` of PostgreSQL's extension.

use bytes::{BufMut, BytesMut};
use types::{Hstore, SqlError, SqlState};

/// How many pairs; of each the length of the key, the key, the length of the value, or −1 for NULL, and the value.
pub(super) fn put_hstore(output: &mut BytesMut, store: &Hstore) {
    output.put_u32(store.len() as u32);
    for (key, value) in store.pairs() {
        output.put_u32(key.len() as u32);
        output.put_slice(key.as_bytes());
        match value {
            Some(value) => {
                output.put_u32(value.len() as u32);
                output.put_slice(value.as_bytes());
            }
            None => output.put_i32(-1),
        }
    }
}

/// A value; `None` where the bytes are none. Of a key that is there twice the first one counts.
///
/// # Errors
/// `22004` for a key that is NULL, `22021` for a text with a zero byte, `54000` where it is too long.
pub(super) fn hstore(bytes: &[u8]) -> Result<Option<Hstore>, SqlError> {
    let Some((count, mut rest)) = number(bytes) else { return Ok(None) };
    let mut pairs: Vec<(&str, Option<&str>)> = Vec::new();
    for _ in 0..count.max(0) {
        let Some((key, behind)) = text(rest) else { return Ok(None) };
        let Some(key) = key else {
            let message = "null value not allowed for hstore key";
            return Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
        };
        let Some((value, behind)) = text(behind) else { return Ok(None) };
        if key.contains('\0') || value.is_some_and(|value| value.contains('\0')) {
            let message = "invalid byte sequence for encoding \"UTF8\": 0x00";
            return Err(SqlError::new(SqlState(*b"22021"), message));
        }
        pairs.push((key, value));
        rest = behind;
    }
    if count < 0 || !rest.is_empty() { Ok(None) } else { Hstore::new(pairs).map(Some) }
}

fn number(bytes: &[u8]) -> Option<(i32, &[u8])> {
    bytes.split_first_chunk::<4>().map(|(number, rest)| (i32::from_be_bytes(*number), rest))
}

/// A text, or NULL, and what is behind.
fn text(bytes: &[u8]) -> Option<(Option<&str>, &[u8])> {
    let (length, rest) = number(bytes)?;
    let Ok(length) = usize::try_from(length) else { return Some((None, rest)) };
    let (text, rest) = rest.split_at_checked(length)?;
    Some((Some(std::str::from_utf8(text).ok()?), rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::{DataType, Value, parse_value};

    #[test]
    fn values_come_back_as_they_went() {
        // As `hstore_send` of PostgreSQL 15 has them.
        for (written, hexadecimal) in [
            ("", "00000000"),
            ("a=>1, bb=>NULL", "0000000200000001610000000131000000026262ffffffff"),
            ("é=>\"\"", "0000000100000002c3a900000000"),
        ] {
            let Ok(Value::Hstore(value)) = parse_value(written, DataType::Hstore) else {
                panic!("{written}")
            };
            let mut output = BytesMut::new();
            put_hstore(&mut output, &value);
            let found: String = output.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(found, hexadecimal, "{written}");
            assert_eq!(hstore(&output), Ok(Some(value)), "{written}");
            for length in 0..output.len() {
                assert_eq!(hstore(&output[..length]), Ok(None), "{written} cut to {length}");
            }
        }
    }

    #[test]
    fn what_is_no_value_is_refused() {
        let null_key = [0, 0, 0, 1, 255, 255, 255, 255, 0, 0, 0, 0];
        assert_eq!(hstore(&null_key).map_err(|error| error.state), Err(SqlState::NULL_VALUE_NOT_ALLOWED));
        assert_eq!(hstore(&[255, 255, 255, 255]), Ok(None));
        assert_eq!(hstore(&[0, 0, 0, 0, 0]), Ok(None));
        let zero = [0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0];
        assert_eq!(hstore(&zero).map_err(|error| error.state.0), Err(*b"22021"));
    }
}
