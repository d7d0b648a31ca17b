//! How much of a script is not literals and comments: what its tokens are made of. Memory for tokens is taken before anybody can count
//! them, so a long script is looked at first.

/// Bytes outside of literals, quoted names, comments and white space, each literal, quoted name and comment counted as one: at least
/// as many as the script has tokens that are not white space.
pub(super) fn spoken_bytes(sql: &str) -> usize {
    let bytes = sql.as_bytes();
    let (mut at, mut spoken) = (0, 0);
    // Where the word or the parameter begins that has come so far.
    let mut word = None;
    while let Some(byte) = bytes.get(at) {
        let end = match byte {
            b'\'' => end_of_string(bytes, at + 1, is_of_escapes(bytes, word, at)),
            b'"' => end_of_name(bytes, at + 1),
            b'-' if bytes.get(at + 1) == Some(&b'-') => end_of_line(bytes, at + 2),
            b'/' if bytes.get(at + 1) == Some(&b'*') => end_of_comment(bytes, at + 2),
            b'$' if word.is_none() => end_of_dollars(sql, at),
            _ => at + 1,
        };
        let end = end.max(at + 1);
        word = word
            .filter(|_| goes_on(*byte))
            .or_else(|| (begins_word(*byte) || *byte == b'$').then_some(at))
            .filter(|_| end == at + 1);
        spoken += usize::from(!byte.is_ascii_whitespace());
        at = end;
    }
    spoken
}

fn begins_word(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || !byte.is_ascii()
}

fn goes_on(byte: u8) -> bool {
    begins_word(byte) || byte.is_ascii_digit() || byte == b'$'
}

/// Whether a string that begins here is one with backslashes: `E'…'`.
fn is_of_escapes(bytes: &[u8], word: Option<usize>, at: usize) -> bool {
    word.is_some_and(|word| word + 1 == at && matches!(bytes[word], b'e' | b'E'))
}

/// A quote that is doubled ends one string and begins the next, which comes to the same count but for one byte.
fn end_of_string(bytes: &[u8], from: usize, escapes: bool) -> usize {
    let mut at = from;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\'' => return at + 1,
            b'\\' if escapes => at += 2,
            _ => at += 1,
        }
    }
    at
}

fn end_of_name(bytes: &[u8], from: usize) -> usize {
    find(bytes, from, b'"').map_or(bytes.len(), |at| at + 1)
}

fn end_of_line(bytes: &[u8], from: usize) -> usize {
    find(bytes, from, b'\n').unwrap_or(bytes.len())
}

fn end_of_comment(bytes: &[u8], from: usize) -> usize {
    let (mut at, mut depth) = (from, 1);
    while depth > 0 {
        match bytes.get(at..at + 2) {
            Some(b"/*") => (depth, at) = (depth + 1, at + 2),
            Some(b"*/") => (depth, at) = (depth - 1, at + 2),
            Some(_) => at += 1,
            None => return bytes.len(),
        }
    }
    at
}

/// Behind `$tag$ … $tag$`; behind the dollar where no tag begins.
fn end_of_dollars(sql: &str, at: usize) -> usize {
    let rest = &sql[at + 1..];
    let Some(length) = rest.find(|one: char| !one.is_alphanumeric() && one != '_') else { return at + 1 };
    if rest.as_bytes()[length] != b'$' || rest.as_bytes()[0].is_ascii_digit() {
        return at + 1;
    }
    let tag = &sql[at..at + length + 2];
    let body = at + tag.len();
    sql[body..].find(tag).map_or(sql.len(), |end| body + end + tag.len())
}

fn find(bytes: &[u8], from: usize, wanted: u8) -> Option<usize> {
    bytes.get(from..)?.iter().position(|byte| *byte == wanted).map(|at| from + at)
}

#[cfg(test)]
mod tests {
    use super::spoken_bytes;
    use crate::parse::tokenize;

    #[test]
    fn literals_names_and_comments_count_once() {
        for (sql, spoken) in [
            ("SELECT 1, 2", 9),
            ("SELECT 'a, b, c'", 7),
            ("SELECT 'a''b'", 8),
            (r"SELECT E'a\'b, c', 1", 10),
            (r"SELECT 'a\', 1", 9),
            ("SELECT \"a, b\"", 7),
            ("SELECT -- 1, 2, 3\n 1", 8),
            ("SELECT /* 1, /* 2, */ 3, */ 1", 8),
            ("SELECT $$a, b$$, $x$ c, $$ d $x$", 9),
            ("SELECT $1, $2", 11),
            ("SELECT a$$, b$$", 15 - 2),
            ("SELECT 'open, 1", 7),
            ("SELECT $$open, 1", 7),
            ("", 0),
        ] {
            assert_eq!(spoken_bytes(sql), spoken, "{sql}");
        }
    }

    #[test]
    fn no_script_has_more_tokens_than_it_speaks_bytes() {
        let parts = [
            "'", "\"", "$$", "$a$", "--", "/*", "*/", "\n", " ", "e'", "\\", "1,", "a", "$", "é", "$1", "(",
            "x$", "1e'",
        ];
        let mut state = 7u64;
        for _ in 0..200_000 {
            let mut sql = String::new();
            for _ in 0..8 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                sql.push_str(parts[(state >> 33) as usize % parts.len()]);
            }
            if let Ok(tokens) = tokenize(&sql) {
                assert!(tokens.len() <= spoken_bytes(&sql), "{sql:?}: {tokens:?}");
            }
        }
    }
}
