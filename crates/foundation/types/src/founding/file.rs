//! Files that say in their first line what they are, and of which every byte counts.

use super::FoundingError;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Characters of a foreign line that an error shows.
const SHOWN: usize = 100;

/// What a file of the founding has.
pub(super) trait FoundingFile: Serialize + DeserializeOwned {
    /// What it is, in errors.
    const WHAT: &'static str;
    /// What its first line says: the kind and the version of the format.
    const FORMAT: &'static str;
}

fn first_line<T: FoundingFile>() -> String {
    format!("format = \"{}\"", T::FORMAT)
}

/// The file's text.
pub(super) fn to_text<T: FoundingFile>(value: &T) -> String {
    let rest = toml::to_string(value).expect("plain fields");
    format!("{}\n{rest}", first_line::<T>())
}

/// Reads what [`to_text`] has written, and nothing else.
pub(super) fn from_text<T: FoundingFile>(text: &str) -> Result<T, FoundingError> {
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    let expected = first_line::<T>();
    if first.trim() != expected {
        let found = shown(first);
        let kind = T::FORMAT.trim_end_matches(|one: char| one.is_ascii_digit());
        return Err(match first.starts_with(&format!("format = \"{kind}")) {
            true => FoundingError::OtherVersion { what: T::WHAT, expected, found },
            false => FoundingError::OtherFile { what: T::WHAT, expected, found },
        });
    }
    // In the place of the first line, so that errors count lines as editors do.
    let value: T = toml::from_str(&format!("\n{rest}")).map_err(|error| malformed(T::WHAT, &error))?;
    is_as_written(T::WHAT, text, &to_text(&value))?;
    Ok(value)
}

/// Refuses a text that only means the same as what the program writes.
pub(super) fn is_as_written(what: &'static str, found: &str, expected: &str) -> Result<(), FoundingError> {
    if found == expected {
        return Ok(());
    }
    let (mut found, mut expected) = (found.split('\n'), expected.split('\n'));
    for line in 1.. {
        let (is, should_be) = (found.next(), expected.next());
        if is != should_be {
            let [expected, found] = [should_be, is].map(|text| text.map_or("the end".to_string(), shown));
            return Err(FoundingError::Altered { what, line, expected, found });
        }
        if is.is_none() {
            break;
        }
    }
    Ok(())
}

pub(super) fn malformed(what: &'static str, error: &toml::de::Error) -> FoundingError {
    FoundingError::Malformed { what, reason: error.to_string().trim_end().to_string() }
}

/// A line for people: without control characters, and not longer than a line.
pub(super) fn shown(line: &str) -> String {
    let shown = |one: char| if one.is_control() { one.escape_debug().to_string() } else { one.to_string() };
    line.chars().take(SHOWN).map(shown).collect()
}
