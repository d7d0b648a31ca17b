//! PostgreSQL's advanced regular expressions in the syntax of the crate `regex`, which finds matches in linear time.
//!
//! Back references and looking ahead or behind cannot be had that way and are refused by name. Where several matches
//! begin at one place, PostgreSQL takes the longest and the crate that of the first branch. Letters, digits and what
//! counts as a word are those of ASCII, as in collation C.

use types::{SqlError, SqlState};

/// Repetitions that PostgreSQL allows in a bound.
const REPETITIONS_MAX: u32 = 255;

/// What flags say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Options {
    /// `i`
    pub ignore_case: bool,
    /// `p`, `n`: the dot and negated brackets match no newline
    pub newline_ends: bool,
    /// `w`, `n`: `^` and `$` match around newlines
    pub lines: bool,
    /// `x`: white space and comments do not count
    pub expanded: bool,
    /// `q`: all characters stand for themselves
    pub literal: bool,
    /// `g`
    pub global: bool,
}

impl Options {
    /// Reads flags.
    ///
    /// # Errors
    /// `22023` of a flag that there is not, `0A000` of basic regular expressions.
    pub fn read(flags: &str) -> Result<Options, SqlError> {
        let mut options = Options::default();
        for flag in flags.chars() {
            options.take(flag)?;
        }
        Ok(options)
    }

    fn take(&mut self, flag: char) -> Result<(), SqlError> {
        match flag {
            'g' => self.global = true,
            'i' => self.ignore_case = true,
            'c' => self.ignore_case = false,
            'm' | 'n' => (self.newline_ends, self.lines) = (true, true),
            'p' => (self.newline_ends, self.lines) = (true, false),
            's' => (self.newline_ends, self.lines) = (false, false),
            'w' => (self.newline_ends, self.lines) = (false, true),
            'x' => self.expanded = true,
            't' => self.expanded = false,
            'q' => self.literal = true,
            'e' => {}
            'b' => return Err(SqlError::unsupported("a basic regular expression (flag b)")),
            other => {
                let message = format!("invalid regular expression option: \"{other}\"");
                return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
            }
        }
        Ok(())
    }
}

#[cold]
pub(super) fn invalid(what: &str) -> SqlError {
    SqlError::new(SqlState(*b"2201B"), format!("invalid regular expression: {what}"))
}

#[cold]
fn refused(what: &str) -> SqlError {
    SqlError::unsupported(format_args!("{what} in a regular expression"))
}

/// A pattern for the crate.
#[derive(Debug)]
pub(super) struct Translated {
    /// As the crate writes it.
    pub pattern: String,
    /// About as many states as the machine has that looks for it: each may have to be looked at for each byte of the text.
    pub states: u64,
}

/// States of a character, or of a class of those of ASCII.
const STATES_OF_ONE: u64 = 1;
/// States of a class with other characters, whose bytes are several.
const STATES_OF_MANY: u64 = 12;

/// The pattern for the crate.
///
/// # Errors
/// `2201B` where it is no regular expression, `0A000` names what cannot be translated.
pub(super) fn translate(pattern: &str, options: &mut Options) -> Result<Translated, SqlError> {
    let mut pattern = pattern;
    if let Some(rest) = pattern.strip_prefix("***") {
        match rest.chars().next() {
            Some('=') => options.literal = true,
            Some(':') => {}
            _ => return Err(invalid("quantifier operand invalid")),
        }
        pattern = &rest[1..];
    }
    if !options.literal
        && let Some(rest) = pattern.strip_prefix("(?")
        && rest.starts_with(|flag: char| flag.is_ascii_alphabetic())
    {
        let end = rest.find(')').ok_or_else(|| invalid("invalid embedded option"))?;
        for flag in rest[..end].chars() {
            if flag == 'g' || options.take(flag).is_err() {
                return Err(invalid("invalid embedded option"));
            }
        }
        pattern = &rest[end + 1..];
    }
    let mut translator = Translator {
        rest: pattern.chars().collect(),
        at: 0,
        out: String::from("(?s-m:"),
        options: *options,
        open: 0,
        states: vec![0],
        last: 0,
    };
    if options.lines {
        translator.out = translator.out.replace("-m", "m");
    }
    if options.literal {
        pattern.chars().for_each(|character| translator.literal(character));
    } else {
        translator.run()?;
    }
    translator.out.push(')');
    let states = translator.states.iter().fold(0, |sum: u64, states| sum.saturating_add(*states));
    Ok(Translated { pattern: translator.out, states })
}

struct Translator {
    rest: Vec<char>,
    at: usize,
    out: String,
    options: Options,
    /// Parentheses that are open.
    open: usize,
    /// States of what has been read: of the whole, and of each of the parentheses that are open.
    states: Vec<u64>,
    /// States of what a quantifier would repeat.
    last: u64,
}

impl Translator {
    fn next(&mut self) -> Option<char> {
        let next = self.rest.get(self.at).copied();
        self.at += usize::from(next.is_some());
        next
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.rest.get(self.at + ahead).copied()
    }

    fn skip(&mut self, expected: char) -> bool {
        let there = self.peek(0) == Some(expected);
        self.at += usize::from(there);
        there
    }

    /// Something has been read that takes so many states.
    fn takes(&mut self, states: u64) {
        self.last = states;
        if let Some(sum) = self.states.last_mut() {
            *sum = sum.saturating_add(states);
        }
    }

    /// What was read last is there so many times.
    fn is_repeated(&mut self, times: u32) {
        let more = self.last.saturating_mul(u64::from(times.saturating_sub(1)));
        let all = self.last.saturating_add(more);
        self.takes(more.saturating_add(1));
        self.last = all;
    }

    fn literal(&mut self, character: char) {
        self.takes(character.len_utf8() as u64);
        if self.options.ignore_case && character.is_ascii_alphabetic() {
            let other = swapped(character);
            self.out.extend(['[', character, other, ']']);
        } else if character.is_alphanumeric() || !character.is_ascii() {
            self.out.push(character);
        } else {
            self.out.push_str(&format!("\\x{:02x}", character as u32));
        }
    }

    fn run(&mut self) -> Result<(), SqlError> {
        // Whether a quantifier may stand here.
        let mut atom = false;
        while let Some(character) = self.next() {
            atom = match character {
                _ if self.options.expanded && character.is_ascii_whitespace() => continue,
                '#' if self.options.expanded => {
                    while self.next().is_some_and(|skipped| skipped != '\n') {}
                    continue;
                }
                '\\' => self.escape()?,
                '[' => {
                    if self.peek(0) == Some('[') && matches!(self.peek(1), Some(':')) {
                        self.boundary()?
                    } else {
                        self.bracket()?;
                        true
                    }
                }
                '(' => {
                    self.open += 1;
                    self.states.push(0);
                    self.group()?;
                    false
                }
                ')' => {
                    self.open =
                        self.open.checked_sub(1).ok_or_else(|| invalid("parentheses () not balanced"))?;
                    self.out.push(')');
                    let states = self.states.pop().unwrap_or(0);
                    // Where it begins and ends is remembered.
                    self.takes(states.saturating_add(2 * STATES_OF_ONE));
                    true
                }
                '|' => {
                    self.takes(STATES_OF_ONE);
                    self.out.push('|');
                    false
                }
                '.' => {
                    self.takes(STATES_OF_MANY);
                    self.out.push_str(if self.options.newline_ends { "[^\\n]" } else { "." });
                    true
                }
                '^' => {
                    self.out.push('^');
                    false
                }
                '$' => {
                    self.out.push('$');
                    false
                }
                '*' | '+' | '?' if !atom => return Err(invalid("quantifier operand invalid")),
                '{' if self.peek(0).is_some_and(|next| next.is_ascii_digit()) => {
                    if !atom {
                        return Err(invalid("quantifier operand invalid"));
                    }
                    self.bound()?;
                    self.lazy();
                    false
                }
                '*' | '+' | '?' => {
                    self.is_repeated(1);
                    self.out.push(character);
                    self.lazy();
                    false
                }
                other => {
                    self.literal(other);
                    true
                }
            };
        }
        if self.open > 0 { Err(invalid("parentheses () not balanced")) } else { Ok(()) }
    }

    fn lazy(&mut self) {
        if self.skip('?') {
            self.out.push('?');
        }
    }

    fn group(&mut self) -> Result<(), SqlError> {
        if !self.skip('?') {
            self.out.push('(');
            return Ok(());
        }
        match self.next() {
            Some(':') => self.out.push_str("(?:"),
            Some('=' | '!') => return Err(refused("looking ahead")),
            Some('<') if matches!(self.peek(0), Some('=' | '!')) => return Err(refused("looking behind")),
            Some('#') => {
                while self.next().is_some_and(|skipped| skipped != ')') {}
                self.open -= 1;
                self.states.pop();
                self.out.push_str("(?:)");
            }
            _ => return Err(invalid("quantifier operand invalid")),
        }
        Ok(())
    }

    /// `{2}`, `{2,}`, `{2,3}`
    fn bound(&mut self) -> Result<(), SqlError> {
        let wrong = || invalid("invalid repetition count(s)");
        let number = |translator: &mut Translator| {
            let mut number: Option<u32> = None;
            while let Some(digit) = translator.peek(0).and_then(|next| next.to_digit(10)) {
                translator.at += 1;
                number = Some(number.unwrap_or(0).saturating_mul(10).saturating_add(digit));
            }
            number
        };
        let least = number(self).ok_or_else(wrong)?;
        let most = if self.skip(',') { number(self) } else { Some(least) };
        if !self.skip('}')
            || least > REPETITIONS_MAX
            || most.is_some_and(|most| most > REPETITIONS_MAX || most < least)
        {
            return Err(wrong());
        }
        self.is_repeated(most.unwrap_or(least));
        match most {
            Some(most) => self.out.push_str(&format!("{{{least},{most}}}")),
            None => self.out.push_str(&format!("{{{least},}}")),
        }
        Ok(())
    }

    /// What stands behind a backslash; whether it can be repeated.
    fn escape(&mut self) -> Result<bool, SqlError> {
        let sequence = || invalid("invalid escape \\ sequence");
        let escaped = self.next().ok_or_else(sequence)?;
        let text = match escaped {
            'd' => "[0-9]",
            'D' => "[^0-9]",
            's' => "[ \\t\\n\\r\\x0b\\x0c]",
            'S' => "[^ \\t\\n\\r\\x0b\\x0c]",
            'w' => "[0-9A-Za-z_]",
            'W' => "[^0-9A-Za-z_]",
            'A' | 'Z' | 'm' | 'M' | 'y' | 'Y' => {
                self.out.push_str(match escaped {
                    'A' => "\\A",
                    'Z' => "\\z",
                    'm' => "(?-u:\\b{start})",
                    'M' => "(?-u:\\b{end})",
                    'y' => "(?-u:\\b)",
                    _ => "\\B",
                });
                return Ok(false);
            }
            '1'..='9' => return Err(refused("a back reference")),
            _ => {
                let character = self.character_escape(escaped)?;
                self.literal(character);
                return Ok(true);
            }
        };
        self.takes(if escaped.is_ascii_uppercase() { STATES_OF_MANY } else { STATES_OF_ONE });
        self.out.push_str(text);
        Ok(true)
    }

    /// A character that is written with a backslash.
    fn character_escape(&mut self, escaped: char) -> Result<char, SqlError> {
        let sequence = || invalid("invalid escape \\ sequence");
        let code = match escaped {
            'a' => 7,
            'b' => 8,
            'B' => u32::from('\\'),
            'e' => 0x1b,
            'f' => 0xc,
            'n' => 0xa,
            'r' => 0xd,
            't' => 9,
            'v' => 0xb,
            'c' => self.next().ok_or_else(sequence)? as u32 & 0x1f,
            'x' => self.hexadecimal(1, 255)?,
            'u' => self.hexadecimal(4, 4)?,
            'U' => self.hexadecimal(8, 8)?,
            '0' => 0,
            other if other.is_ascii_alphanumeric() => return Err(sequence()),
            other => return Ok(other),
        };
        char::from_u32(code).filter(|character| *character != '\0').ok_or_else(sequence)
    }

    fn hexadecimal(&mut self, least: usize, most: usize) -> Result<u32, SqlError> {
        let (mut code, mut digits) = (0_u32, 0);
        while digits < most
            && let Some(digit) = self.peek(0).and_then(|next| next.to_digit(16))
        {
            code = code.saturating_mul(16).saturating_add(digit);
            self.at += 1;
            digits += 1;
        }
        if digits < least { Err(invalid("invalid escape \\ sequence")) } else { Ok(code) }
    }

    /// `[[:<:]]` and `[[:>:]]`, or a bracket that begins with a class.
    fn boundary(&mut self) -> Result<bool, SqlError> {
        for (written, meant) in [("[:<:]]", "(?-u:\\b{start})"), ("[:>:]]", "(?-u:\\b{end})")] {
            if written.chars().enumerate().all(|(ahead, expected)| self.peek(ahead) == Some(expected)) {
                self.at += written.len();
                self.out.push_str(meant);
                return Ok(false);
            }
        }
        self.bracket()?;
        Ok(true)
    }

    /// A bracket expression behind its `[`.
    fn bracket(&mut self) -> Result<(), SqlError> {
        let unbalanced = || invalid("brackets [] not balanced");
        let (begin, written) = (self.at, self.out.len());
        self.out.push('[');
        let negated = self.skip('^');
        if negated {
            self.out.push('^');
            if self.options.newline_ends {
                self.out.push_str("\\n");
            }
        }
        let mut first = true;
        loop {
            let character = self.next().ok_or_else(unbalanced)?;
            if character == ']' && !first {
                break;
            }
            first = false;
            let start = match character {
                '[' if matches!(self.peek(0), Some(':' | '.' | '=')) => match self.class()? {
                    Some(character) => character,
                    None => continue,
                },
                '\\' => match self.next().ok_or_else(unbalanced)? {
                    class @ ('d' | 's' | 'w') => {
                        self.out.push_str(match class {
                            'd' => "0-9",
                            's' => " \\t\\n\\r\\x0b\\x0c",
                            _ => "0-9A-Za-z_",
                        });
                        continue;
                    }
                    'D' | 'S' | 'W' | 'A' | 'Z' | 'm' | 'M' | 'y' | 'Y' | '1'..='9' => {
                        return Err(invalid("invalid escape \\ sequence"));
                    }
                    escaped => self.character_escape(escaped)?,
                },
                other => other,
            };
            let end = if self.peek(0) == Some('-') && self.peek(1).is_some_and(|next| next != ']') {
                self.at += 1;
                match self.next().ok_or_else(unbalanced)? {
                    '[' if matches!(self.peek(0), Some(':' | '.' | '=')) => {
                        self.class()?.ok_or_else(|| invalid("invalid character range"))?
                    }
                    '\\' => {
                        let escaped = self.next().ok_or_else(unbalanced)?;
                        self.character_escape(escaped)?
                    }
                    other => other,
                }
            } else {
                start
            };
            if end < start {
                return Err(invalid("invalid character range"));
            }
            self.range(start, end);
        }
        self.out.push(']');
        let is_ascii = !negated && self.rest[begin..self.at].iter().all(char::is_ascii);
        let length = (self.out.len() - written) as u64;
        // A range of characters of several bytes is written with about as many letters.
        self.takes(if is_ascii { STATES_OF_ONE } else { STATES_OF_MANY.max(length) });
        Ok(())
    }

    /// Characters of a bracket, in both cases where the case does not count.
    fn range(&mut self, start: char, end: char) {
        let mut push = |start: char, end: char| {
            self.out.push_str(&format!("\\x{{{:x}}}-\\x{{{:x}}}", start as u32, end as u32));
        };
        push(start, end);
        if !self.options.ignore_case {
            return;
        }
        for (first, last) in [('a', 'z'), ('A', 'Z')] {
            let (start, end) = (start.max(first), end.min(last));
            if start <= end {
                push(swapped(start), swapped(end));
            }
        }
    }

    /// `[:alpha:]`, or the character of `[.a.]` and `[=a=]`.
    fn class(&mut self) -> Result<Option<char>, SqlError> {
        let kind = self.next().unwrap_or(':');
        let mut name = String::new();
        loop {
            match self.next() {
                Some(end) if end == kind && self.peek(0) == Some(']') => break,
                Some(letter) => name.push(letter),
                None => return Err(invalid("brackets [] not balanced")),
            }
        }
        self.at += 1;
        if kind != ':' {
            let mut characters = name.chars();
            return match (characters.next(), characters.next()) {
                (Some(only), None) => Ok(Some(only)),
                _ => Err(invalid("invalid collating element")),
            };
        }
        let name = match name.as_str() {
            "lower" | "upper" if self.options.ignore_case => "alpha",
            "alnum" | "alpha" | "ascii" | "blank" | "cntrl" | "digit" | "graph" | "lower" | "print"
            | "punct" | "space" | "upper" | "word" | "xdigit" => name.as_str(),
            _ => return Err(invalid("invalid character class")),
        };
        self.out.push_str(&format!("[:{name}:]"));
        Ok(None)
    }
}

/// A letter of ASCII in the other case.
fn swapped(letter: char) -> char {
    if letter.is_ascii_lowercase() { letter.to_ascii_uppercase() } else { letter.to_ascii_lowercase() }
}

/// A pattern of SIMILAR TO as an advanced regular expression.
///
/// # Errors
/// `22025` of an escape of more than one character or at the end.
pub(super) fn of_similar(pattern: &str, escape: &str) -> Result<String, SqlError> {
    let mut escape = escape.chars();
    let (escape, more) = (escape.next(), escape.next());
    if more.is_some() {
        return Err(SqlError::new(SqlState(*b"22025"), "invalid escape string")
            .hint("Escape string must be empty or one character."));
    }
    let (mut text, mut escaped, mut in_bracket) = (String::from("^(?:"), false, false);
    for character in pattern.chars() {
        match character {
            _ if escaped => {
                if character == '"' && !in_bracket {
                    return Err(SqlError::unsupported("a separator in a pattern of SIMILAR TO"));
                }
                text.extend(['\\', character]);
                escaped = false;
            }
            _ if Some(character) == escape => escaped = true,
            ']' if in_bracket => {
                in_bracket = false;
                text.push(']');
            }
            '\\' => text.push_str("\\\\"),
            _ if in_bracket => text.push(character),
            '[' => {
                in_bracket = true;
                text.push('[');
            }
            '%' => text.push_str(".*"),
            '_' => text.push('.'),
            '(' => text.push_str("(?:"),
            '.' | '^' | '$' => text.extend(['\\', character]),
            other => text.push(other),
        }
    }
    text.push_str(")$");
    Ok(text)
}
