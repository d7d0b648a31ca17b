//! Values of type `hstore`: texts by keys, as PostgreSQL's extension of that name has them.

use crate::key::push_text;
use crate::text::{check_text, check_text_length};
use crate::unknown_types::check_known;
use crate::{Array, ExecutionVersion, SqlError, SqlState, Value, write_json_string};
use borsh::{BorshDeserialize, BorshSerialize};
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::io;
use std::sync::Arc;

/// What the encoding begins with as a value.
const TAG: u8 = 32;

/// The length of a value that is NULL.
const NULL: u32 = u32::MAX;

/// A value of type `hstore`: keys, each once, and for each a text or NULL. In PostgreSQL's order: shorter keys first, and keys of one
/// length by their bytes.
///
/// One piece of bytes that nothing changes, so that copying it costs a reference count. For each key: its length in four bytes, the key,
/// the length of its value in four bytes, or `NULL`, and the value; the lower byte first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hstore(Arc<[u8]>);

/// A key and its value.
pub type Pair<'a> = (&'a str, Option<&'a str>);

impl Hstore {
    /// The value with these pairs. Of a key that is there twice the first one counts.
    ///
    /// # Errors
    /// `54000` where it is too long.
    pub fn new<'a>(pairs: impl IntoIterator<Item = Pair<'a>>) -> Result<Hstore, SqlError> {
        let mut pairs: Vec<Pair<'a>> = pairs.into_iter().collect();
        // It keeps the order of what is equal.
        pairs.sort_by(|(one, _), (other, _)| compare_keys(one, other));
        pairs.dedup_by(|(later, _), (first, _)| later == first);
        Hstore::of_sorted(pairs)
    }

    /// The value with these pairs, which are in order.
    ///
    /// # Errors
    /// As [`Hstore::new`].
    pub fn of_sorted<'a>(pairs: impl IntoIterator<Item = Pair<'a>>) -> Result<Hstore, SqlError> {
        let mut bytes = Vec::new();
        for (key, value) in pairs {
            // No text has as many bytes as do not fit.
            bytes.extend_from_slice(&(key.len() as u32).to_le_bytes());
            bytes.extend_from_slice(key.as_bytes());
            bytes.extend_from_slice(&value.map_or(NULL, |value| value.len() as u32).to_le_bytes());
            bytes.extend_from_slice(value.unwrap_or_default().as_bytes());
        }
        Hstore::of_bytes(bytes)
    }

    fn of_bytes(bytes: Vec<u8>) -> Result<Hstore, SqlError> {
        let hstore = Hstore(Arc::from(bytes));
        // What it has as a text has room in one.
        check_text_length(hstore.text_bytes())?;
        Ok(hstore)
    }

    /// The bytes that it is stored in.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether both are copies of one.
    pub fn shares_bytes(&self, other: &Hstore) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The pairs, in order.
    pub fn pairs(&self) -> impl Iterator<Item = Pair<'_>> {
        let mut rest = &*self.0;
        std::iter::from_fn(move || {
            let (pair, behind) = split_pair(rest)?;
            rest = behind;
            Some(pair)
        })
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.pairs().count()
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of a key: `Some(None)` where that is NULL.
    pub fn get(&self, key: &str) -> Option<Option<&str>> {
        self.pairs().find(|(known, _)| *known == key).map(|(_, value)| value)
    }

    /// The order of PostgreSQL: an empty one first; then all keys and values in a row, by their bytes.
    pub fn compare(&self, other: &Hstore) -> Ordering {
        let (mut left, mut right) = (SmallVec::new(), SmallVec::new());
        push_hstore_key(&mut left, self, usize::MAX);
        push_hstore_key(&mut right, other, usize::MAX);
        left.cmp(&right)
    }

    /// The value of keys and values that take turns.
    ///
    /// # Errors
    /// `2202E` where the last key has no value, `22004` where a key is NULL.
    pub fn of_array(array: &Array) -> Result<Hstore, SqlError> {
        array.check_pairs()?;
        let pairs = array.values().chunks_exact(2).map(|pair| (&pair[0], &pair[1]));
        Hstore::of_values(pairs)
    }

    /// The value of these keys and values, which are texts or NULL.
    ///
    /// # Errors
    /// `22004` where a key is NULL.
    pub fn of_values<'a>(
        pairs: impl IntoIterator<Item = (&'a Value, &'a Value)>,
    ) -> Result<Hstore, SqlError> {
        fn text(value: &Value) -> Option<&str> {
            match value {
                Value::Text(text) => Some(text),
                _ => None,
            }
        }
        let pair = |(key, value): (&'a Value, &'a Value)| {
            let key = text(key).ok_or_else(|| {
                SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, "null value not allowed for hstore key")
            })?;
            Ok((key, text(value)))
        };
        Hstore::new(pairs.into_iter().map(pair).collect::<Result<Vec<Pair<'a>>, SqlError>>()?)
    }

    /// The object of JSON with these members; where it is loose, with numbers and booleans for texts that look like some.
    ///
    /// # Errors
    /// `54000` where it is too long.
    pub fn to_json(&self, is_loose: bool) -> Result<String, SqlError> {
        let mut json = String::from("{");
        for (key, value) in self.pairs() {
            if json.len() > 1 {
                json.push_str(", ");
            }
            write_json_string(&mut json, key);
            json.push_str(": ");
            match value {
                None => json.push_str("null"),
                Some("t") if is_loose => json.push_str("true"),
                Some("f") if is_loose => json.push_str("false"),
                Some(number) if is_loose && is_number(number) => json.push_str(number),
                Some(text) => write_json_string(&mut json, text),
            }
            check_text_length(json.len())?;
        }
        json.push('}');
        Ok(json)
    }

    /// Bytes of it as a text.
    pub(crate) fn text_bytes(&self) -> usize {
        let quoted =
            |text: &str| 2 + text.len() + text.bytes().filter(|byte| matches!(byte, b'"' | b'\\')).count();
        let pair = |(key, value): Pair<'_>| quoted(key) + 2 + value.map_or(4, quoted) + 2;
        self.pairs().map(pair).sum::<usize>().saturating_sub(2)
    }
}

/// Whether a text is a number of JSON.
fn is_number(text: &str) -> bool {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let mut rest = text.strip_prefix('-').unwrap_or(text);
    let whole = digits(rest);
    if whole == 0 || (whole > 1 && rest.starts_with('0')) {
        return false;
    }
    rest = &rest[whole..];
    if let Some(fraction) = rest.strip_prefix('.') {
        let count = digits(fraction);
        if count == 0 {
            return false;
        }
        rest = &fraction[count..];
    }
    if let Some(exponent) = rest.strip_prefix(['e', 'E']) {
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        let count = digits(exponent);
        if count == 0 {
            return false;
        }
        rest = &exponent[count..];
    }
    rest.is_empty()
}

/// Shorter keys first.
fn compare_keys(one: &str, other: &str) -> Ordering {
    one.len().cmp(&other.len()).then_with(|| one.as_bytes().cmp(other.as_bytes()))
}

/// The first pair and what is behind.
fn split_pair(bytes: &[u8]) -> Option<(Pair<'_>, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (key, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let key = std::str::from_utf8(key).ok()?;
    match u32::from_le_bytes(*length) {
        NULL => Some(((key, None), rest)),
        length => {
            let (value, rest) = rest.split_at_checked(length as usize)?;
            Some(((key, Some(std::str::from_utf8(value).ok()?)), rest))
        }
    }
}

/// The key of a value, as much as has room: `0` for an empty one; `1`, all keys and values in a row as a text, how many pairs there are in
/// four bytes, and for each key and each value where it ends, in four bytes, and whether it is NULL.
pub(crate) fn push_hstore_key(bytes: &mut SmallVec<[u8; 16]>, hstore: &Hstore, limit: usize) {
    if hstore.is_empty() {
        bytes.push(0);
        return;
    }
    bytes.push(1);
    let mut all = Vec::new();
    for (key, value) in hstore.pairs() {
        all.extend_from_slice(key.as_bytes());
        all.extend_from_slice(value.unwrap_or_default().as_bytes());
        if all.len() > limit {
            break;
        }
    }
    push_text(bytes, &all);
    bytes.extend_from_slice(&(hstore.len() as u32).to_be_bytes());
    let mut end = 0_u32;
    for (key, value) in hstore.pairs() {
        if bytes.len() > limit {
            return;
        }
        for part in [Some(key), value] {
            end += part.unwrap_or_default().len() as u32;
            bytes.extend_from_slice(&end.to_be_bytes());
            bytes.push(u8::from(part.is_none()));
        }
    }
}

impl BorshSerialize for Hstore {
    fn serialize<W: io::Write>(&self, writer: &mut W) -> io::Result<()> {
        self.bytes().serialize(writer)
    }
}

impl BorshDeserialize for Hstore {
    fn deserialize_reader<R: io::Read>(reader: &mut R) -> io::Result<Hstore> {
        check_known(TAG, ExecutionVersion::V16)?;
        let bytes = Vec::<u8>::deserialize_reader(reader)?;
        let refused = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what);
        if !is_canonical(&bytes) {
            return Err(refused("expected a value of type hstore"));
        }
        Hstore::of_bytes(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }
}

/// Whether these are pairs in order.
fn is_canonical(bytes: &[u8]) -> bool {
    let (mut rest, mut last): (&[u8], Option<&str>) = (bytes, None);
    while !rest.is_empty() {
        let Some(((key, value), behind)) = split_pair(rest) else { return false };
        let ascends = last.is_none_or(|last| compare_keys(last, key).is_lt());
        if !ascends || key.contains('\0') || value.is_some_and(|value| value.contains('\0')) {
            return false;
        }
        (rest, last) = (behind, Some(key));
    }
    true
}

/// Writes a value as PostgreSQL does: `"a"=>"1", "b"=>NULL`.
pub(crate) fn format_hstore(hstore: &Hstore) -> String {
    let mut text = String::with_capacity(hstore.text_bytes());
    for (key, value) in hstore.pairs() {
        if !text.is_empty() {
            text.push_str(", ");
        }
        push_quoted(&mut text, key);
        text.push_str("=>");
        match value {
            Some(value) => push_quoted(&mut text, value),
            None => text.push_str("NULL"),
        }
    }
    text
}

fn push_quoted(text: &mut String, word: &str) {
    text.push('"');
    for character in word.chars() {
        if matches!(character, '"' | '\\') {
            text.push('\\');
        }
        text.push(character);
    }
    text.push('"');
}

/// Reads a value as PostgreSQL's input function does.
///
/// # Errors
/// `XX000` in PostgreSQL's words where it is none, `54000` where it is too long.
pub(crate) fn parse_hstore(text: &str) -> Result<Hstore, SqlError> {
    check_text(text)?;
    let mut reader = Reader { text, at: 0 };
    let mut pairs: Vec<(String, Option<String>)> = Vec::new();
    while let Some((key, _)) = reader.word(false)? {
        reader.skip_spaces();
        reader.expect('=')?;
        reader.expect('>')?;
        let Some((value, is_quoted)) = reader.word(true)? else { return Err(ends()) };
        let is_null = !is_quoted && value.eq_ignore_ascii_case("null");
        pairs.push((key, (!is_null).then_some(value)));
        reader.skip_spaces();
        if reader.next().is_none() {
            break;
        }
        reader.expect(',')?;
    }
    Hstore::new(pairs.iter().map(|(key, value)| (key.as_str(), value.as_deref())))
}

/// What is read of a literal.
struct Reader<'a> {
    text: &'a str,
    at: usize,
}

fn is_space(character: char) -> bool {
    // A vertical tab is none, as in PostgreSQL's grammar.
    matches!(character, ' ' | '\t' | '\n' | '\u{c}' | '\r')
}

#[cold]
fn ends() -> SqlError {
    SqlError::new(SqlState::INTERNAL_ERROR, "Unexpected end of string")
}

impl Reader<'_> {
    fn next(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn skip_spaces(&mut self) {
        self.at = self.text.len() - self.text[self.at..].trim_start_matches(is_space).len();
    }

    #[cold]
    fn unexpected(&self, found: char) -> SqlError {
        let message = format!("Syntax error near \"{found}\" at position {}", self.at);
        SqlError::new(SqlState::INTERNAL_ERROR, message)
    }

    fn expect(&mut self, expected: char) -> Result<(), SqlError> {
        match self.next() {
            Some(found) if found == expected => {
                self.at += 1;
                Ok(())
            }
            Some(found) => Err(self.unexpected(found)),
            None => Err(ends()),
        }
    }

    /// A key or a value, and whether a quote began it; `None` where the text ends. A key ends before an equals sign, a value before a
    /// comma, both at a space; a quote inside of a word is a character.
    fn word(&mut self, is_value: bool) -> Result<Option<(String, bool)>, SqlError> {
        self.skip_spaces();
        let Some(first) = self.next() else { return Ok(None) };
        if first == '"' {
            self.at += 1;
            return self.quoted().map(|word| Some((word, true)));
        }
        if first == '=' && !is_value {
            return Err(self.unexpected(first));
        }
        let mut word = String::new();
        while let Some(character) = self.next() {
            // The first character of a value may be a comma.
            let ends = match character {
                '=' => !is_value,
                ',' => is_value && !word.is_empty(),
                character => is_space(character),
            };
            if ends {
                break;
            }
            self.at += character.len_utf8();
            match character {
                '\\' => word.push(self.escaped()?),
                character => word.push(character),
            }
        }
        Ok(Some((word, false)))
    }

    fn quoted(&mut self) -> Result<String, SqlError> {
        let mut word = String::new();
        loop {
            let Some(character) = self.next() else { return Err(ends()) };
            self.at += character.len_utf8();
            match character {
                '"' => return Ok(word),
                '\\' => word.push(self.escaped()?),
                character => word.push(character),
            }
        }
    }

    fn escaped(&mut self) -> Result<char, SqlError> {
        let character = self.next().ok_or_else(ends)?;
        self.at += character.len_utf8();
        Ok(character)
    }
}
