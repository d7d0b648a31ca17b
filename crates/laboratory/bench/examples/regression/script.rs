//! A psql script, cut into what it sends.

use std::collections::BTreeMap;

/// One thing that psql would send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Without the semicolon, comments in front and blanks around.
    pub text: String,
    /// Line of the script that it begins on, from 1.
    pub line: usize,
    /// What follows `COPY … FROM stdin` in the script, without the `\.`.
    pub copy_data: Option<String>,
}

/// Cuts a script as psql does: at semicolons outside of quotes, dollar quotes, comments, parentheses and BEGIN ATOMIC. Of
/// psql's own commands `\set` and `\getenv` are followed, since `:name` and `:'name'` depend on them; the others are left
/// out.
///
/// `environment` holds what `\getenv` finds.
pub fn statements(script: &str, environment: &BTreeMap<String, String>) -> Vec<Statement> {
    let mut splitter = Splitter {
        script,
        at: 0,
        environment,
        variables: BTreeMap::new(),
        statements: Vec::new(),
        text: String::new(),
        begins: None,
        parentheses: 0,
        atomic: Atomic::default(),
    };
    while splitter.step() {}
    splitter.end_statement();
    splitter.statements
}

/// How deep in `BEGIN ATOMIC … END`, whose semicolons belong to a CREATE FUNCTION.
#[derive(Default)]
struct Atomic {
    word_before: String,
    depth: usize,
}

impl Atomic {
    fn word(&mut self, word: &str) {
        let word = word.to_ascii_lowercase();
        match word.as_str() {
            "atomic" if self.word_before == "begin" => self.depth += 1,
            "case" if self.depth > 0 => self.depth += 1,
            "end" if self.depth > 0 => self.depth -= 1,
            _ => {}
        }
        self.word_before = word;
    }
}

struct Splitter<'a> {
    script: &'a str,
    at: usize,
    environment: &'a BTreeMap<String, String>,
    variables: BTreeMap<String, String>,
    statements: Vec<Statement>,
    text: String,
    begins: Option<usize>,
    parentheses: usize,
    atomic: Atomic,
}

impl Splitter<'_> {
    fn rest(&self) -> &str {
        &self.script[self.at..]
    }

    /// Takes `length` bytes into the statement.
    fn take(&mut self, length: usize) {
        let end = self.at + length;
        if self.begins.is_none() && !self.script[self.at..end].trim().is_empty() {
            self.begins = Some(self.at);
        }
        self.text.push_str(&self.script[self.at..end]);
        self.at = end;
    }

    /// Takes the next part of the script; false at its end.
    fn step(&mut self) -> bool {
        let rest = self.rest();
        let Some(next) = rest.chars().next() else { return false };
        match next {
            '-' if rest.starts_with("--") => self.at += line_length(rest),
            '/' if rest.starts_with("/*") => self.at += comment_length(rest),
            '\'' => self.take(quoted_length(rest, '\'', self.after_escape_letter())),
            '"' => self.take(quoted_length(rest, '"', false)),
            '$' if !self.after_word() => self.take(dollar_quoted_length(rest).unwrap_or(1)),
            '\\' => self.command(),
            ':' => self.variable(),
            ';' if self.parentheses == 0 && self.atomic.depth == 0 => {
                self.at += 1;
                self.end_statement();
            }
            '(' => {
                self.parentheses += 1;
                self.take(1);
            }
            ')' => {
                self.parentheses = self.parentheses.saturating_sub(1);
                self.take(1);
            }
            _ if is_word(next) => {
                let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
                let word = rest[..length].to_string();
                self.atomic.word(&word);
                self.take(length);
            }
            _ => self.take(next.len_utf8()),
        }
        true
    }

    fn after_word(&self) -> bool {
        self.text.chars().next_back().is_some_and(is_word)
    }

    /// Whether the quote that comes is that of `E'…'`.
    fn after_escape_letter(&self) -> bool {
        let mut before = self.text.chars().rev();
        matches!(before.next(), Some('e' | 'E')) && !before.next().is_some_and(is_word)
    }

    /// A psql command, to the end of its line.
    fn command(&mut self) {
        let length = line_length(self.rest());
        let line = self.rest()[1..length].trim().to_string();
        self.at += length;
        let mut words = line.split_whitespace();
        match (words.next(), words.next()) {
            (Some("set"), Some(name)) => {
                let value = words.map(|word| self.substituted(word)).collect();
                self.variables.insert(name.to_string(), value);
            }
            (Some("getenv"), Some(name)) => {
                if let Some(value) = words.next().and_then(|variable| self.environment.get(variable)) {
                    self.variables.insert(name.to_string(), value.clone());
                }
            }
            (Some(command), _) if command.starts_with('g') => self.end_statement(),
            _ => {}
        }
    }

    /// A word of `\set`: a quoted text, `:name`, or itself.
    fn substituted(&self, word: &str) -> String {
        match word.strip_prefix(':') {
            Some(name) => self.variables.get(name).cloned().unwrap_or_else(|| word.to_string()),
            None => word.trim_matches('\'').to_string(),
        }
    }

    /// `:name`, `:'name'` or `:"name"`, or just a colon.
    fn variable(&mut self) {
        let rest = self.rest();
        if rest.starts_with("::") || rest.starts_with(":=") {
            return self.take(2);
        }
        let quote = rest[1..].chars().next().filter(|quote| matches!(quote, '\'' | '"'));
        let name = &rest[1 + quote.map_or(0, char::len_utf8)..];
        let length = name.find(|c| !is_word(c)).unwrap_or(name.len());
        match self.variables.get(&name[..length]) {
            Some(value) => {
                let quote = quote.map(String::from).unwrap_or_default();
                self.text += &format!("{quote}{value}{quote}");
                self.at += 1 + length + 2 * quote.len();
            }
            None => self.take(1),
        }
    }

    fn end_statement(&mut self) {
        let text = std::mem::take(&mut self.text).trim().to_string();
        let begins = self.begins.take();
        self.parentheses = 0;
        self.atomic = Atomic::default();
        let Some(begins) = begins.filter(|_| !text.is_empty()) else { return };
        let line = self.script[..begins].matches('\n').count() + 1;
        let copy_data = reads_standard_input(&text).then(|| self.copy_data());
        self.statements.push(Statement { text, line, copy_data });
    }

    /// The lines up to `\.`.
    fn copy_data(&mut self) -> String {
        self.at += line_length(self.rest());
        let mut data = String::new();
        while self.at < self.script.len() {
            let length = line_length(self.rest());
            let line = &self.script[self.at..self.at + length];
            self.at += length;
            if line.trim_end() == "\\." {
                break;
            }
            data.push_str(line);
        }
        data
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn reads_standard_input(text: &str) -> bool {
    let words: Vec<String> = text.split_whitespace().map(str::to_ascii_lowercase).collect();
    words.first().is_some_and(|first| first == "copy")
        && words.windows(2).any(|pair| pair[0] == "from" && pair[1] == "stdin")
}

/// Bytes of the first line with its end.
fn line_length(text: &str) -> usize {
    text.find('\n').map_or(text.len(), |end| end + 1)
}

/// Bytes of a comment, which may hold others.
fn comment_length(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                break;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    at
}

/// Bytes of a quoted text with both quotes; a doubled quote is two texts in a row, which comes to the same here.
fn quoted_length(text: &str, quote: char, escapes: bool) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if escaped {
            escaped = false;
        } else if escapes && c == '\\' {
            escaped = true;
        } else if c == quote {
            return at + 1;
        }
    }
    text.len()
}

/// Bytes of `$tag$ … $tag$`, if that is what stands here.
fn dollar_quoted_length(text: &str) -> Option<usize> {
    let tag_end = 1 + text[1..].find(|c| !is_word(c))?;
    let tag = text.get(..=tag_end).filter(|tag| tag.ends_with('$'))?;
    if tag[1..].starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let body = text[tag.len()..].find(tag)?;
    Some(2 * tag.len() + body)
}
