//! The parts of a text that is read as a date: its fields, and what the words among them say.

use super::decode::Fault;

/// PostgreSQL's limits on a text and its fields.
const TEXT_BYTES_MAX: usize = 128;
const FIELDS_MAX: usize = 25;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    /// Digits, perhaps with a point.
    Number,
    /// Parts with separators between.
    Date,
    /// Digits with colons.
    Time,
    /// Letters.
    Word,
    /// A sign and digits.
    Zone,
    /// A sign and letters.
    SignedWord,
}

/// A part of the text; a sign that has blanks behind it stands alone in `sign`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field<'a> {
    pub(super) form: Form,
    pub(super) negative: bool,
    pub(super) text: &'a str,
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// Cuts a text in lower case into its fields.
pub(super) fn fields(text: &str) -> Result<Vec<Field<'_>>, Fault> {
    fields_with(text, |word| Word::named(word).is_some())
}

/// The same where a word with a digit or `+` behind it may be the name of a zone, if it `is_word` not.
pub(super) fn fields_with(text: &str, is_word: impl Fn(&str) -> bool) -> Result<Vec<Field<'_>>, Fault> {
    let bytes = text.as_bytes();
    if bytes.len() > TEXT_BYTES_MAX {
        return Err(Fault::Format);
    }
    let run = |from: usize, belongs: &dyn Fn(u8) -> bool| {
        from + bytes[from..].iter().take_while(|byte| belongs(**byte)).count()
    };
    let digit = |byte: u8| byte.is_ascii_digit();
    let letter = |byte: u8| byte.is_ascii_alphabetic();
    let at_is = |at: usize, expected: &[u8]| bytes.get(at).is_some_and(|byte| expected.contains(byte));
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if is_space(byte) {
            at += 1;
            continue;
        }
        let (mut start, mut negative) = (at, false);
        let (form, end) = match byte {
            b'0'..=b'9' => {
                let end = run(at, &digit);
                match bytes.get(end).copied() {
                    Some(b':') => (Form::Time, run(end, &|byte| digit(byte) || matches!(byte, b':' | b'.'))),
                    Some(separator @ (b'-' | b'/' | b'.')) => {
                        if bytes.get(end + 1).copied().is_some_and(digit) {
                            let second = run(end + 1, &digit);
                            match bytes.get(second).copied() == Some(separator) {
                                true => (Form::Date, run(second, &|byte| digit(byte) || byte == separator)),
                                false if separator == b'.' => (Form::Number, second),
                                false => (Form::Date, second),
                            }
                        } else {
                            let rest = |byte: u8| byte.is_ascii_alphanumeric() || byte == separator;
                            (Form::Date, run(end + 1, &rest))
                        }
                    }
                    _ => (Form::Number, end),
                }
            }
            b'.' => (Form::Number, run(at + 1, &digit)),
            b'a'..=b'z' => {
                let end = run(at, &letter);
                let followed = at_is(end, b"-/.")
                    || ((at_is(end, b"+") || bytes.get(end).copied().is_some_and(digit))
                        && !is_word(&text[at..end]));
                let rest = |byte: u8| byte.is_ascii_alphanumeric() || b"+-/_.:".contains(&byte);
                if followed { (Form::Date, run(end, &rest)) } else { (Form::Word, end) }
            }
            b'+' | b'-' => {
                negative = byte == b'-';
                start = run(at + 1, &is_space);
                match bytes.get(start).copied() {
                    Some(next) if digit(next) => {
                        (Form::Zone, run(start, &|byte| digit(byte) || matches!(byte, b':' | b'.' | b'-')))
                    }
                    Some(next) if letter(next) => (Form::SignedWord, run(start, &letter)),
                    _ => return Err(Fault::Format),
                }
            }
            _ if byte.is_ascii_punctuation() => {
                at += 1;
                continue;
            }
            _ => return Err(Fault::Format),
        };
        if found.len() == FIELDS_MAX {
            return Err(Fault::Format);
        }
        found.push(Field { form, negative, text: &text[start..end] });
        at = end;
    }
    Ok(found)
}

/// What a word says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Word {
    Month(i64),
    Weekday,
    Afternoon(bool),
    BeforeChrist(bool),
    /// The number behind it is this.
    Unit(Unit),
    /// A time follows.
    Time,
    /// Says nothing.
    Filler,
    /// A moment of the clock.
    Clock(&'static str),
    Midnight,
    Epoch,
    Infinity,
    Utc,
    /// Reads as a unit, which no date has.
    Other,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unit {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    Julian,
    Time,
}

impl Word {
    pub(super) fn named(word: &str) -> Option<Word> {
        // PostgreSQL compares the first ten letters.
        Some(match word.get(..10).unwrap_or(word) {
            "jan" | "january" => Word::Month(1),
            "feb" | "february" => Word::Month(2),
            "mar" | "march" => Word::Month(3),
            "apr" | "april" => Word::Month(4),
            "may" => Word::Month(5),
            "jun" | "june" => Word::Month(6),
            "jul" | "july" => Word::Month(7),
            "aug" | "august" => Word::Month(8),
            "sep" | "sept" | "september" => Word::Month(9),
            "oct" | "october" => Word::Month(10),
            "nov" | "november" => Word::Month(11),
            "dec" | "december" => Word::Month(12),
            "sun" | "sunday" | "mon" | "monday" | "tue" | "tues" | "tuesday" | "wed" | "weds"
            | "wednesday" | "thu" | "thur" | "thurs" | "thursday" | "fri" | "friday" | "sat" | "saturday" => {
                Word::Weekday
            }
            "am" => Word::Afternoon(false),
            "pm" => Word::Afternoon(true),
            "ad" => Word::BeforeChrist(false),
            "bc" => Word::BeforeChrist(true),
            "y" => Word::Unit(Unit::Year),
            "m" => Word::Unit(Unit::Month),
            "d" => Word::Unit(Unit::Day),
            "h" => Word::Unit(Unit::Hour),
            "mm" => Word::Unit(Unit::Minute),
            "s" => Word::Unit(Unit::Second),
            "j" | "jd" | "julian" => Word::Unit(Unit::Julian),
            "t" => Word::Time,
            "at" | "on" => Word::Filler,
            "now" => Word::Clock("now"),
            "today" => Word::Clock("today"),
            "tomorrow" => Word::Clock("tomorrow"),
            "yesterday" => Word::Clock("yesterday"),
            "allballs" => Word::Midnight,
            "epoch" => Word::Epoch,
            "infinity" => Word::Infinity,
            "z" | "utc" | "gmt" | "ut" | "zulu" | "uct" => Word::Utc,
            "dow" | "doy" | "isodow" | "isoyear" | "dst" => Word::Other,
            _ => return None,
        })
    }
}
