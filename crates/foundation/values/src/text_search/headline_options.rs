//! How a headline is cut and marked: `StartSel=<b>, MaxWords=35`.

use types::{DataType, SqlError, SqlState, Value, parse_value};

/// What may be said of a headline.
pub(crate) struct HeadlineOptions {
    /// In front of a word that was looked for.
    pub start: String,
    /// Behind it.
    pub stop: String,
    /// Between fragments.
    pub delimiter: String,
    pub words_max: usize,
    pub words_min: usize,
    /// Words of so many bytes do not end a headline.
    pub short_word: usize,
    /// How many pieces it may have; 0: it is one.
    pub fragments_max: usize,
    /// The whole text is the headline.
    pub shows_all: bool,
}

impl Default for HeadlineOptions {
    fn default() -> HeadlineOptions {
        HeadlineOptions {
            start: "<b>".to_string(),
            stop: "</b>".to_string(),
            delimiter: " ... ".to_string(),
            words_max: 35,
            words_min: 15,
            short_word: 3,
            fragments_max: 0,
            shows_all: false,
        }
    }
}

impl HeadlineOptions {
    /// Those that a text says.
    ///
    /// # Errors
    /// `42601` where it is no list of them, `22023` for one that there is not or that cannot be so.
    pub fn parse(text: &str) -> Result<HeadlineOptions, SqlError> {
        let mut options = HeadlineOptions::default();
        let (mut words_max, mut words_min, mut short_word, mut fragments_max) = (35, 15, 3, 0);
        for (name, value) in listed(text)? {
            match name.to_ascii_lowercase().as_str() {
                "maxwords" => words_max = number(&value)?,
                "minwords" => words_min = number(&value)?,
                "shortword" => short_word = number(&value)?,
                "maxfragments" => fragments_max = number(&value)?,
                "startsel" => options.start = short("StartSel", value)?,
                "stopsel" => options.stop = short("StopSel", value)?,
                "fragmentdelimiter" => options.delimiter = short("FragmentDelimiter", value)?,
                "highlightall" => {
                    let truths = ["1", "on", "true", "t", "y", "yes"];
                    options.shows_all = truths.iter().any(|truth| value.eq_ignore_ascii_case(truth));
                }
                _ => {
                    let shown: String = name.chars().take(64).collect();
                    return Err(refused(format!("unrecognized headline parameter: \"{shown}\"")));
                }
            }
        }
        if !options.shows_all {
            let wrong = [
                (words_min >= words_max, "MinWords should be less than MaxWords"),
                (words_min <= 0, "MinWords should be positive"),
                (short_word < 0, "ShortWord should be >= 0"),
                (fragments_max < 0, "MaxFragments should be >= 0"),
            ];
            if let Some((_, message)) = wrong.into_iter().find(|(is_wrong, _)| *is_wrong) {
                return Err(refused(message.to_string()));
            }
        }
        let count = |number: i32| usize::try_from(number).unwrap_or(0);
        options.words_max = count(words_max);
        options.words_min = count(words_min);
        options.short_word = count(short_word);
        options.fragments_max = count(fragments_max);
        Ok(options)
    }

    /// Words of a stretch that is looked at for all that is looked for.
    pub fn cover_max(&self) -> usize {
        self.words_max.saturating_mul(10).max(100).saturating_mul(self.fragments_max.max(1))
    }
}

#[cold]
fn refused(message: String) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

fn number(text: &str) -> Result<i32, SqlError> {
    match parse_value(text, DataType::Integer)? {
        Value::Integer(number) => Ok(number),
        _ => Ok(0),
    }
}

fn short(name: &str, value: String) -> Result<String, SqlError> {
    match value.len() > i16::MAX as usize {
        true => Err(refused(format!("value for \"{name}\" is too long"))),
        false => Ok(value),
    }
}

/// `name = value, name = 'value'`, with commas or without. A quote within quotes stands twice, and so does a backslash within single ones.
fn listed(text: &str) -> Result<Vec<(String, String)>, SqlError> {
    let invalid = || {
        let shown: String = text.chars().take(200).collect();
        SqlError::new(SqlState::SYNTAX_ERROR, format!("invalid parameter list format: \"{shown}\""))
    };
    let is_space = |letter: char| letter.is_ascii_whitespace() || letter == '\u{b}';
    let mut options = Vec::new();
    let mut rest = text.trim_start_matches(|letter| is_space(letter) || letter == ',');
    while !rest.is_empty() {
        let (name, behind) = match rest.strip_prefix('"') {
            Some(quoted) => quoted_until(quoted, '"').ok_or_else(invalid)?,
            None => {
                let first = rest.chars().next().map_or(0, char::len_utf8);
                let end = rest[first..].find(|letter| is_space(letter) || letter == '=');
                let end = first + end.ok_or_else(invalid)?;
                (rest[..end].to_string(), &rest[end..])
            }
        };
        let behind = behind.trim_start_matches(is_space).strip_prefix('=').ok_or_else(invalid)?;
        let behind = behind.trim_start_matches(is_space);
        let quoted = behind.strip_prefix('\'').or_else(|| behind.strip_prefix("E'"));
        let (value, behind) = match (quoted, behind.strip_prefix('"')) {
            (Some(quoted), _) => quoted_until(quoted, '\'').ok_or_else(invalid)?,
            (None, Some(quoted)) => quoted_until(quoted, '"').ok_or_else(invalid)?,
            (None, None) if behind.is_empty() => return Err(invalid()),
            (None, None) => {
                let first = behind.chars().next().map_or(0, char::len_utf8);
                let end = behind[first..].find(|letter| is_space(letter) || letter == ',');
                let end = end.map_or(behind.len(), |end| first + end);
                (behind[..end].to_string(), &behind[end..])
            }
        };
        options.push((name, value));
        rest = behind.trim_start_matches(|letter| is_space(letter) || letter == ',');
    }
    Ok(options)
}

/// What stands in front of a quote, and what is behind it.
fn quoted_until(text: &str, quote: char) -> Option<(String, &str)> {
    let mut found = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        let is_twice = letters.as_str().starts_with(letter);
        if letter == quote {
            if !is_twice {
                return Some((found, letters.as_str()));
            }
            letters.next();
        } else if letter == '\\' && quote == '\'' && is_twice {
            letters.next();
        }
        found.push(letter);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_as_postgresql_reads_them() {
        let options = HeadlineOptions::parse(
            "StartSel = \"[\"\"\", StopSel='x''\\\\',MaxWords=5 minwords = 2,ShortWord=0",
        )
        .unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((options.start.as_str(), options.stop.as_str()), ("[\"", "x'\\"));
        assert_eq!((options.words_max, options.words_min, options.short_word), (5, 2, 0));
        for (text, message) in [
            ("MaxWords=1", "MinWords should be less than MaxWords"),
            ("MinWords=0", "MinWords should be positive"),
            ("ShortWord=-1", "ShortWord should be >= 0"),
            ("MaxFragments=-1", "MaxFragments should be >= 0"),
            ("Colour=red", "unrecognized headline parameter: \"Colour\""),
            ("MaxWords", "invalid parameter list format: \"MaxWords\""),
            ("StartSel='", "invalid parameter list format: \"StartSel='\""),
            ("StartSel=", "invalid parameter list format: \"StartSel=\""),
            ("MaxWords=x", "invalid input syntax for type integer: \"x\""),
        ] {
            let error = HeadlineOptions::parse(text).err().map(|error| error.message);
            assert_eq!(error.as_deref(), Some(message), "{text}");
        }
    }
}
