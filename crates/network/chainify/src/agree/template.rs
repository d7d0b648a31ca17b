//! A query with names in it for which values of a script stand: `:amount`, `:"Total Price"`, `:entente.organisation`.

use crate::dialect::Dialect;

/// A query in pieces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Template {
    pieces: Vec<Piece>,
    /// The names in it, each once.
    names: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    /// Position of a name.
    Name(usize),
}

impl Template {
    /// Reads a query. Names stand where SQL has no colon: not in texts, quoted names, comments and casts.
    ///
    /// # Errors
    /// What cannot be part of a query that is asked inside of another one.
    pub(super) fn parse(dialect: Dialect, query: &str) -> Result<Template, String> {
        let query = query.trim().trim_end_matches(';').trim_end();
        if query.is_empty() {
            return Err("the query is empty".to_string());
        }
        let (text, pieces, names) = (String::new(), Vec::new(), Vec::new());
        let mut reading = Reading { dialect, rest: query, text, pieces, names };
        while let Some(next) = reading.rest.chars().next() {
            reading.step(next)?;
        }
        reading.end_text();
        Ok(Template { pieces: reading.pieces, names: reading.names })
    }

    /// The names in it, each once.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// The query with something for every name, by the name's position.
    pub(super) fn filled(&self, constant: impl Fn(usize) -> String) -> String {
        let mut sql = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => sql.push_str(text),
                // What is put there is never read together with what stands around it.
                Piece::Name(name) => {
                    sql.push('(');
                    sql.push_str(&constant(*name));
                    sql.push(')');
                }
            }
        }
        sql
    }
}

struct Reading<'a> {
    dialect: Dialect,
    rest: &'a str,
    text: String,
    pieces: Vec<Piece>,
    names: Vec<String>,
}

impl Reading<'_> {
    fn step(&mut self, next: char) -> Result<(), String> {
        let rest = self.rest;
        match next {
            '\'' => {
                // E'…' in PostgreSQL, and every text in MariaDB, has escapes.
                let before = self.text.trim_end_matches(['e', 'E']);
                let is_escaped = before.len() + 1 == self.text.len()
                    && !before.ends_with(|character: char| character.is_alphanumeric() || character == '_');
                let escapes = self.dialect == Dialect::MariaDb || is_escaped;
                self.quoted('\'', escapes, "the text")
            }
            '"' => self.quoted('"', self.dialect == Dialect::MariaDb, "the name"),
            '`' => self.quoted('`', false, "the name"),
            '$' if self.dialect == Dialect::Postgres => self.dollars(),
            '-' if rest.starts_with("--") => self.take(rest.find('\n').unwrap_or(rest.len())),
            '#' if self.dialect == Dialect::MariaDb => self.take(rest.find('\n').unwrap_or(rest.len())),
            '/' if rest.starts_with("/*") => {
                let end = rest.find("*/").ok_or("the comment has no end: */ is missing")?;
                self.take(end + 2)
            }
            ':' if rest.starts_with("::") || rest.starts_with(":=") => self.take(2),
            ':' => self.name(),
            ';' => Err("expected one query, found a semicolon in the middle; make it one SELECT".to_string()),
            other => self.take(other.len_utf8()),
        }
    }

    /// Takes so many bytes as they are.
    fn take(&mut self, bytes: usize) -> Result<(), String> {
        let (taken, rest) = self.rest.split_at(bytes);
        self.text.push_str(taken);
        self.rest = rest;
        Ok(())
    }

    fn quoted(&mut self, quote: char, escapes: bool, what: &str) -> Result<(), String> {
        let mut characters = self.rest.char_indices().skip(1).peekable();
        while let Some((at, character)) = characters.next() {
            if escapes && character == '\\' {
                characters.next();
            } else if character == quote {
                match characters.peek() {
                    Some((_, next)) if *next == quote => drop(characters.next()),
                    _ => return self.take(at + 1),
                }
            }
        }
        Err(format!("{what} that begins with {quote} has no end"))
    }

    /// `$$ … $$`, `$tag$ … $tag$`; a dollar alone is one.
    fn dollars(&mut self) -> Result<(), String> {
        let is_tag = |tag: &str| tag.chars().all(|character| character.is_alphanumeric() || character == '_');
        let tag = self.rest[1..].find('$').map(|end| &self.rest[..end + 2]);
        let Some(tag) = tag.filter(|tag| is_tag(&tag[1..tag.len() - 1])) else { return self.take(1) };
        let end =
            self.rest[tag.len()..].find(tag).ok_or(format!("the text that begins with {tag} has no end"))?;
        self.take(tag.len() * 2 + end)
    }

    fn name(&mut self) -> Result<(), String> {
        let rest = &self.rest[1..];
        if let Some(quoted) = rest.strip_prefix('"') {
            let end = quoted.find('"').ok_or("the name that begins with :\" has no end")?;
            self.push_name(quoted[..end].to_string());
            self.rest = &quoted[end + 1..];
            return Ok(());
        }
        let is_first = |character: char| character.is_alphabetic() || character == '_';
        if !rest.starts_with(is_first) {
            return self.take(1);
        }
        let is_name = |character: char| character.is_alphanumeric() || character == '_';
        let mut end = rest.find(|character| !is_name(character)).unwrap_or(rest.len());
        if rest[..end].eq_ignore_ascii_case("entente") && rest[end..].starts_with('.') {
            let behind = &rest[end + 1..];
            end += 1 + behind.find(|character| !is_name(character)).unwrap_or(behind.len());
        }
        self.push_name(rest[..end].to_lowercase());
        self.rest = &rest[end..];
        Ok(())
    }

    fn push_name(&mut self, name: String) {
        self.end_text();
        let known = self.names.iter().position(|known| *known == name);
        self.pieces.push(Piece::Name(known.unwrap_or(self.names.len())));
        if known.is_none() {
            self.names.push(name);
        }
    }

    fn end_text(&mut self) {
        if !self.text.is_empty() {
            self.pieces.push(Piece::Text(std::mem::take(&mut self.text)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(dialect: Dialect, query: &str) -> String {
        let template = Template::parse(dialect, query).unwrap_or_else(|error| panic!("{query}: {error}"));
        template.filled(|name| format!("<{}>", template.names()[name]))
    }

    #[test]
    fn names_are_found_where_they_are_names() {
        let postgres = |query| filled(Dialect::Postgres, query);
        assert_eq!(
            postgres("SELECT a >= :Amount AND b = :\"Total Price\" AND :entente.role = 'x';"),
            "SELECT a >= (<amount>) AND b = (<Total Price>) AND (<entente.role>) = 'x'"
        );
        for same in [
            "SELECT ':a' || ''':b' || \":c\" FROM t",
            "SELECT E'\\':a' || a::text",
            "SELECT 1 -- :a\n + 2 /* :b */",
            "SELECT $$:a$$ || $x$ :b $$ $x$ || $1",
            "SELECT a[1:2]",
        ] {
            assert_eq!(postgres(same), same);
        }
        assert_eq!(postgres("SELECT '\\' || :a"), "SELECT '\\' || (<a>)");
        let maria = |query| filled(Dialect::MariaDb, query);
        assert_eq!(maria("SELECT '\\':a' = `:b` AND :c # :d\n"), "SELECT '\\':a' = `:b` AND (<c>) # :d");
        assert_eq!(postgres("SELECT :ünder"), "SELECT (<ünder>)");
    }

    #[test]
    fn what_is_no_query_is_refused() {
        for (query, expected) in [
            (" ; ", "empty"),
            ("SELECT 1; DELETE FROM t", "semicolon"),
            ("SELECT 'a", "no end"),
            ("SELECT \"a", "no end"),
            ("SELECT /* a", "no end"),
            ("SELECT $$ a", "no end"),
            ("SELECT :\"a", "no end"),
        ] {
            let error = Template::parse(Dialect::Postgres, query).expect_err(query);
            assert!(error.contains(expected), "{query}: {error}");
        }
    }
}
