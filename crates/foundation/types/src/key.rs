use crate::citext::folded;
use crate::hstore::push_hstore_key;
use crate::json::push_json_key;
use crate::network_address::push_network_key;
use crate::range::{Bounds, push_range_key};
use crate::text_search::{push_query_key, push_vector_key};
use crate::{Array, SqlError, SqlState, Value, limits};
use borsh::{BorshDeserialize, BorshSerialize};
use smallvec::SmallVec;
use std::borrow::Borrow;
use std::fmt;
use std::io;

/// A primary key, encoded so that byte order is SQL order, column by column. Keys of up to 16 bytes (one bigint is 8)
/// need no allocation.
///
/// A composite key is the concatenation of its columns' encodings, none of which is a prefix of another encoding of
/// the same type: the keys that start with the encoding of the first columns are the rows with these values.
///
/// | type | bytes |
/// |------|-------|
/// | boolean | 1: `0` or `1` |
/// | smallint, integer, bigint | 2, 4, 8: big-endian with the sign bit flipped |
/// | date, time, timestamp, timestamptz | 4, 8, 8, 8: likewise |
/// | interval | 16: likewise, of its microseconds with months of 30 days |
/// | double precision, real | 8, 4: big-endian bits; sign bit flipped, negative values complemented; one zero, one NaN |
/// | text, bytea, char | the bytes, then `00`; in them `00` becomes `01 01` and `01` becomes `01 02`; a char without the spaces at its end |
/// | uuid, macaddr | 16, 6: its bytes |
/// | oid | 4: big-endian |
/// | inet, cidr | `0` of IPv4 or `1` of IPv6; the network in 4 or 16 bytes, with zeros behind the prefix; the prefix's length in one byte; the address in 4 or 16 bytes |
/// | bit, bit varying | the bytes as of a text, then how many bits in four bytes |
/// | time with time zone | 8, 4: its time in UTC and its offset to the west, as integers |
/// | enum | the place of its label ([`crate::EnumPlace`]), as text |
/// | array, composite | `01` and its encoding for each element or field, `02` for NULL, then `00` |
/// | array with other dimensions than one from 1 | in front of that `03`, and how many dimensions in one byte; of each the first subscript as an integer, and its length in four bytes. So these stand behind all others, and not in the order of SQL: plans look for arrays by equality alone |
/// | jsonb | what it is in one byte; a boolean as above, a string as a text, a number as numeric; of an array or object how many it holds in four bytes, then each, a member as its key, a text, and its value |
/// | range | `00` where it is empty; `01`, or `02`, the lower bound, and whether it is excluded; `00`, the upper bound, and whether it is included, or `01` |
/// | multirange | `01` and each range, then `00` |
/// | hstore | `0` where it is empty; else `1` and what says PostgreSQL's order: the module `hstore` |
/// | citext | as a text, with small letters |
/// | tsvector, tsquery | what says PostgreSQL's order of them: the module `text_search::order` |
/// | numeric | sign and decimal exponent in one byte or a few, then two digits per byte: see `Numeric::push_key` |
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Key(SmallVec<[u8; 16]>);

impl Key {
    /// The key of these values, which must not be NULL and must have the types of the key columns: an
    /// [`Value::Integer`] and a [`Value::BigInt`] of one number have different keys, so who looks up a row casts
    /// first. Equal values have equal keys: `1.0` and `1.00`, `0` and `-0`.
    ///
    /// # Errors
    /// `23502` for NULL, `54000` where the key is longer than [`limits::KEY_BYTES_MAX`].
    pub fn encode<'a>(values: impl IntoIterator<Item = &'a Value>) -> Result<Key, SqlError> {
        let mut bytes = SmallVec::new();
        for value in values {
            push_value(&mut bytes, value)?;
        }
        if bytes.len() > limits::KEY_BYTES_MAX {
            return Err(too_long(bytes.len()));
        }
        Ok(Key(bytes))
    }

    /// A key from bytes that an encoder of this module made.
    pub fn from_bytes(bytes: &[u8]) -> Key {
        Key(SmallVec::from_slice(bytes))
    }

    /// The encoded bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The entry of a row in an ordered index: the values of the index's columns ([`Key::index_prefix`]), the primary
    /// key, and the length of the primary key in two bytes.
    pub fn index_entry<'a>(values: impl IntoIterator<Item = &'a Value>, primary: &Key) -> Key {
        let mut bytes = Key::index_prefix(values).0;
        let room = bytes.len().min(limits::INDEX_BYTES_MAX);
        bytes.truncate(room);
        bytes.extend_from_slice(&primary.0);
        let length = u16::try_from(primary.0.len()).expect("a key has at most KEY_BYTES_MAX bytes");
        bytes.extend_from_slice(&length.to_be_bytes());
        Key(bytes)
    }

    /// What the entries of rows with these values in the first columns of an index begin with: a byte for each value,
    /// `0`, and its encoding, or `1` for NULL, which comes last. Entries have the first [`limits::INDEX_BYTES_MAX`] bytes
    /// of it, so that there may be others between them.
    pub fn index_prefix<'a>(values: impl IntoIterator<Item = &'a Value>) -> Key {
        let mut bytes = SmallVec::new();
        for value in values {
            if value.is_null() {
                bytes.push(1);
                continue;
            }
            bytes.push(0);
            push_indexed(&mut bytes, value);
        }
        Key(bytes)
    }

    /// The same, as much of it as entries have.
    #[must_use]
    pub fn cut_to_index(mut self) -> Key {
        self.0.truncate(limits::INDEX_BYTES_MAX);
        self
    }

    /// The key of these values, of which some may be NULL: which are, in a bit each, then [`Key::encode`] of the others.
    ///
    /// # Errors
    /// `54000` where the key is longer than [`limits::KEY_BYTES_MAX`].
    pub fn encode_with_nulls<'a>(values: impl Iterator<Item = &'a Value> + Clone) -> Result<Key, SqlError> {
        let mut bytes: SmallVec<[u8; 16]> = SmallVec::new();
        for (place, value) in values.clone().enumerate() {
            if place % 8 == 0 {
                bytes.push(0);
            }
            if let Some(last) = bytes.last_mut() {
                *last |= u8::from(value.is_null()) << (place % 8);
            }
        }
        bytes.extend_from_slice(Key::encode(values.filter(|value| !value.is_null()))?.as_bytes());
        match bytes.len() <= limits::KEY_BYTES_MAX {
            true => Ok(Key(bytes)),
            false => Err(too_long(bytes.len())),
        }
    }

    /// As [`Key::encode_with_nulls`] has the key of so many values of which none is NULL.
    #[must_use]
    pub fn without_nulls(&self, values: usize) -> Key {
        let mut bytes: SmallVec<[u8; 16]> = SmallVec::from_elem(0, values.div_ceil(8));
        bytes.extend_from_slice(&self.0);
        Key(bytes)
    }

    /// The entry of a row in an index whose entries are rows themselves: as much of [`Key::index_prefix`] as ordered entries
    /// have, so that it is found as these are, then what tells it apart.
    ///
    /// ```text
    /// taken, and the prefix is whole:  prefix
    /// taken otherwise:                 prefix, cut ‖ 0 ‖ digest of what is taken
    /// not taken:                       prefix, cut ‖ 1 ‖ primary key ‖ its length in two bytes
    ///     with a long primary key:     prefix, cut ‖ 2 ‖ digest of the primary key
    /// ```
    ///
    /// `taken`: the key that no other row may have, in a unique index.
    pub fn computed_entry(values: &[Value], taken: Option<&Key>, primary: &Key) -> Key {
        const LONG_BYTES: usize = 1_024;
        let mut key = Key::index_prefix(values);
        let is_whole = key.0.len() < limits::INDEX_BYTES_MAX;
        if taken.is_some() && is_whole {
            return key;
        }
        key = key.cut_to_index();
        match taken {
            Some(taken) => {
                key.0.push(0);
                key.0.extend_from_slice(&crypto::sha256(&[taken.as_bytes()]).0);
            }
            None if primary.0.len() > LONG_BYTES => {
                key.0.push(2);
                key.0.extend_from_slice(&crypto::sha256(&[primary.as_bytes()]).0);
            }
            None => {
                key.0.push(1);
                key.0.extend_from_slice(&primary.0);
                key.0.extend_from_slice(&(primary.0.len() as u16).to_be_bytes());
            }
        }
        key
    }

    /// The primary key of the row that an entry of an ordered index belongs to; `None` where the bytes are no entry.
    pub fn primary_of_entry(&self) -> Option<Key> {
        let (rest, length) = self.0.split_last_chunk::<2>()?;
        let start = rest.len().checked_sub(usize::from(u16::from_be_bytes(*length)))?;
        Some(Key::from_bytes(&rest[start..]))
    }

    /// The key without its last byte, which ends a text: what the keys of longer texts begin with, too.
    #[must_use]
    pub fn without_last_byte(mut self) -> Key {
        self.0.pop();
        self
    }

    /// The smallest key that is greater than every key that starts with this one; `None` where there is none.
    pub fn after_prefix(&self) -> Option<Key> {
        let mut bytes = self.0.clone();
        while let Some(last) = bytes.pop() {
            if last < u8::MAX {
                bytes.push(last + 1);
                return Some(Key(bytes));
            }
        }
        None
    }
}

impl Borrow<[u8]> for Key {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("0x")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl BorshSerialize for Key {
    fn serialize<W: io::Write>(&self, writer: &mut W) -> io::Result<()> {
        self.0.as_slice().serialize(writer)
    }
}

impl BorshDeserialize for Key {
    fn deserialize_reader<R: io::Read>(reader: &mut R) -> io::Result<Key> {
        let bytes = Vec::<u8>::deserialize_reader(reader)?;
        if bytes.len() > crate::limits::KEY_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "key longer than KEY_BYTES_MAX"));
        }
        Ok(Key(SmallVec::from_vec(bytes)))
    }
}

#[cold]
fn too_long(found: usize) -> SqlError {
    let limit = limits::KEY_BYTES_MAX;
    SqlError::new(
        SqlState::PROGRAM_LIMIT_EXCEEDED,
        format!("the primary key has {found} bytes, the limit is {limit} (KEY_BYTES_MAX)"),
    )
    .hint("Use shorter values in the columns of the primary key.")
}

fn push_value(bytes: &mut SmallVec<[u8; 16]>, value: &Value) -> Result<(), SqlError> {
    match value {
        Value::Null => {
            let message = "null value in a column of the primary key violates not-null constraint";
            return Err(SqlError::new(SqlState::NOT_NULL_VIOLATION, message));
        }
        Value::Boolean(value) => bytes.push(u8::from(*value)),
        Value::Integer(value) => bytes.extend_from_slice(&(*value ^ i32::MIN).to_be_bytes()),
        Value::BigInt(value) | Value::TimestampTz(value) => {
            bytes.extend_from_slice(&(*value ^ i64::MIN).to_be_bytes());
        }
        Value::Numeric(value) => value.push_key(bytes, limits::KEY_BYTES_MAX),
        Value::Double(value) => bytes.extend_from_slice(&double_bits(*value).to_be_bytes()),
        Value::Text(text) => {
            push_bounded(bytes, text.as_bytes())?;
        }
        other => push_other(bytes, other)?,
    }
    Ok(())
}

/// The encoding in an index: of a long value as much as tells entries apart, and a little more.
fn push_indexed(bytes: &mut SmallVec<[u8; 16]>, value: &Value) {
    let cut = |content: &'_ [u8]| content.len().min(limits::INDEX_BYTES_MAX);
    match value {
        Value::Text(text) => push_text(bytes, &text.as_bytes()[..cut(text.as_bytes())]),
        Value::Char(text) => {
            let text = crate::text::unpadded(text).as_bytes();
            push_text(bytes, &text[..cut(text)]);
        }
        Value::Bytea(content) => push_text(bytes, &content[..cut(content)]),
        Value::Numeric(number) => number.push_key(bytes, limits::INDEX_BYTES_MAX),
        Value::Array(array) => {
            push_dimensions(bytes, array);
            push_all_indexed(bytes, array.values());
        }
        Value::Composite(row) => push_all_indexed(bytes, row.values()),
        Value::Jsonb(value) => push_json_key(bytes, value.node(), limits::INDEX_BYTES_MAX),
        // No statement makes such a key: the type has no order.
        Value::Json(text) => push_text(bytes, &text.as_bytes()[..cut(text.as_bytes())]),
        Value::Bit(bits) | Value::VarBit(bits) => {
            push_text(bytes, &bits.bytes()[..cut(bits.bytes())]);
            bytes.extend_from_slice(&bits.length().to_be_bytes());
        }
        Value::Range(range) => push_range_indexed(bytes, range.bounds()),
        Value::Multirange(ranges) => {
            for bounds in ranges.ranges() {
                if bytes.len() > limits::INDEX_BYTES_MAX {
                    return;
                }
                bytes.push(1);
                push_range_indexed(bytes, Some(bounds));
            }
            bytes.push(0);
        }
        Value::TsVector(vector) => push_vector_key(bytes, vector, limits::INDEX_BYTES_MAX),
        Value::TsQuery(query) => push_query_key(bytes, query, limits::INDEX_BYTES_MAX),
        Value::Hstore(hstore) => push_hstore_key(bytes, hstore, limits::INDEX_BYTES_MAX),
        Value::Citext(text) => {
            let text: Vec<u8> = folded(text).take(limits::INDEX_BYTES_MAX).collect();
            push_text(bytes, &text);
        }
        other => push_value(bytes, other).expect("values of the other types are short and not NULL"),
    }
}

fn push_range_indexed(bytes: &mut SmallVec<[u8; 16]>, bounds: Option<&Bounds>) {
    let pushed = push_range_key(bytes, bounds, |bytes, value| {
        push_indexed(bytes, value);
        Ok(())
    });
    pushed.expect("an entry of an index is cut and never too long");
}

/// What tells an array apart from the one that has the same elements in one dimension from 1.
fn push_dimensions(bytes: &mut SmallVec<[u8; 16]>, array: &Array) {
    if array.is_plain() {
        return;
    }
    let dimensions = array.dimensions();
    bytes.extend_from_slice(&[3, dimensions.len() as u8]);
    for dimension in dimensions {
        bytes.extend_from_slice(&(dimension.lower ^ i32::MIN).to_be_bytes());
        bytes.extend_from_slice(&dimension.length.to_be_bytes());
    }
}

fn push_all_indexed(bytes: &mut SmallVec<[u8; 16]>, values: &[Value]) {
    for value in values {
        if bytes.len() > limits::INDEX_BYTES_MAX {
            return;
        }
        if value.is_null() {
            bytes.push(2);
        } else {
            bytes.push(1);
            push_indexed(bytes, value);
        }
    }
    bytes.push(0);
}

fn push_all(bytes: &mut SmallVec<[u8; 16]>, values: &[Value]) -> Result<(), SqlError> {
    for value in values {
        if value.is_null() {
            bytes.push(2);
        } else {
            bytes.push(1);
            push_value(bytes, value)?;
        }
        if bytes.len() > limits::KEY_BYTES_MAX {
            return Err(too_long(bytes.len()));
        }
    }
    bytes.push(0);
    Ok(())
}

/// The types that came later, out of the way of the common ones.
fn push_other(bytes: &mut SmallVec<[u8; 16]>, value: &Value) -> Result<(), SqlError> {
    match value {
        Value::SmallInt(value) => bytes.extend_from_slice(&(*value ^ i16::MIN).to_be_bytes()),
        Value::Date(value) => bytes.extend_from_slice(&(*value ^ i32::MIN).to_be_bytes()),
        Value::Timestamp(value) | Value::Time(value) => {
            bytes.extend_from_slice(&(*value ^ i64::MIN).to_be_bytes());
        }
        Value::Interval(value) => {
            bytes.extend_from_slice(&(value.normalised() ^ i128::MIN).to_be_bytes());
        }
        Value::Real(value) => bytes.extend_from_slice(&real_bits(*value).to_be_bytes()),
        Value::Char(text) => push_bounded(bytes, crate::text::unpadded(text).as_bytes())?,
        Value::Bytea(content) => push_bounded(bytes, content)?,
        Value::Uuid(content) => bytes.extend_from_slice(content),
        Value::Array(array) => {
            push_dimensions(bytes, array);
            push_all(bytes, array.values())?;
        }
        Value::Composite(row) => push_all(bytes, row.values())?,
        Value::Jsonb(value) => push_json_key(bytes, value.node(), limits::KEY_BYTES_MAX),
        // No statement makes such a key: the type has no order.
        Value::Json(text) => push_bounded(bytes, text.as_bytes())?,
        Value::Enum(value) => push_text(bytes, value.place.as_bytes()),
        Value::Inet(address) | Value::Cidr(address) => push_network_key(bytes, address),
        Value::MacAddr(content) => bytes.extend_from_slice(content),
        Value::Bit(bits) | Value::VarBit(bits) => {
            push_bounded(bytes, bits.bytes())?;
            bytes.extend_from_slice(&bits.length().to_be_bytes());
        }
        // PostgreSQL sorts by the time in UTC, then by the offset.
        Value::TimeTz(time) => {
            bytes.extend_from_slice(&(time.utc() ^ i64::MIN).to_be_bytes());
            bytes.extend_from_slice(&(time.west ^ i32::MIN).to_be_bytes());
        }
        Value::Range(range) => push_range_key(bytes, range.bounds(), push_value)?,
        Value::Multirange(ranges) => {
            for bounds in ranges.ranges() {
                bytes.push(1);
                push_range_key(bytes, Some(bounds), push_value)?;
                if bytes.len() > limits::KEY_BYTES_MAX {
                    return Err(too_long(bytes.len()));
                }
            }
            bytes.push(0);
        }
        Value::TsVector(vector) => push_vector_key(bytes, vector, limits::KEY_BYTES_MAX),
        Value::TsQuery(query) => push_query_key(bytes, query, limits::KEY_BYTES_MAX),
        Value::Hstore(hstore) => push_hstore_key(bytes, hstore, limits::KEY_BYTES_MAX),
        Value::Citext(text) => push_bounded(bytes, &folded(text).collect::<Vec<u8>>())?,
        Value::Oid(number) => bytes.extend_from_slice(&number.to_be_bytes()),
        Value::Null
        | Value::Boolean(_)
        | Value::Integer(_)
        | Value::BigInt(_)
        | Value::Numeric(_)
        | Value::Double(_)
        | Value::Text(_)
        | Value::TimestampTz(_) => unreachable!("push_value has these"),
    }
    Ok(())
}

fn push_bounded(bytes: &mut SmallVec<[u8; 16]>, content: &[u8]) -> Result<(), SqlError> {
    if content.len() > limits::KEY_BYTES_MAX {
        return Err(too_long(bytes.len() + content.len()));
    }
    push_text(bytes, content);
    Ok(())
}

fn real_bits(value: f32) -> u32 {
    const SIGN: u32 = 1 << 31;
    let value = if value.is_nan() { f32::NAN.abs() } else { value };
    match value.to_bits() {
        SIGN => SIGN,
        bits if bits & SIGN != 0 => !bits,
        bits => bits | SIGN,
    }
}

fn double_bits(value: f64) -> u64 {
    const SIGN: u64 = 1 << 63;
    let value = if value.is_nan() { f64::NAN.abs() } else { value };
    match value.to_bits() {
        SIGN => SIGN,
        bits if bits & SIGN != 0 => !bits,
        bits => bits | SIGN,
    }
}

pub(crate) fn push_text(bytes: &mut SmallVec<[u8; 16]>, text: &[u8]) {
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| *byte <= 1) {
        bytes.extend_from_slice(&rest[..at]);
        bytes.extend_from_slice(&[1, rest[at] + 1]);
        rest = &rest[at + 1..];
    }
    bytes.extend_from_slice(rest);
    bytes.push(0);
}
