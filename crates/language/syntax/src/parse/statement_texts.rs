//! The statements of a script, as texts.

use crate::names::position_in;
use crate::parse::tokenize;
use sqlparser::tokenizer::Token;
use types::SqlError;

/// The texts between the semicolons of a script, those of comments and blanks alone left out. What stands in quotes is not looked
/// into; the body of a routine in the SQL standard's form (`BEGIN ATOMIC`) is cut.
///
/// # Errors
/// `42601` for what has no tokens.
pub fn statement_texts(sql: &str) -> Result<Vec<&str>, SqlError> {
    let (mut texts, mut has_words, mut begins) = (Vec::new(), false, 0);
    // Characters and bytes are counted once, from semicolon to semicolon.
    let (mut characters, mut bytes) = (0, 0);
    for token in tokenize(sql)? {
        match token.token {
            Token::Whitespace(_) => {}
            Token::SemiColon => {
                // Positions begin at 1.
                let position = position_in(sql, token.span.start).map_or(0, |position| position as usize - 1);
                let ahead = sql[bytes..].chars().take(position.saturating_sub(characters));
                bytes += ahead.map(char::len_utf8).sum::<usize>();
                characters = position;
                if std::mem::take(&mut has_words) {
                    texts.push(sql[begins..bytes].trim());
                }
                begins = bytes + 1;
            }
            _ => has_words = true,
        }
    }
    if has_words {
        texts.push(sql[begins..].trim());
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(sql: &str) -> Vec<&str> {
        statement_texts(sql).expect("it has tokens")
    }

    #[test]
    fn semicolons_end_statements_and_those_in_texts_do_not() {
        assert_eq!(
            of("UPDATE a.t SET n = 1; UPDATE b.t SET n = 2;"),
            ["UPDATE a.t SET n = 1", "UPDATE b.t SET n = 2"]
        );
        assert_eq!(of("  ;; SELECT 1 ;\n-- no statement;\n; /* nor; this */"), ["SELECT 1"]);
        let quoted = "INSERT INTO t VALUES ('ä;ö', $$;$$, \"x;y\", E'\\';')";
        let script = format!("{quoted};\n  é();\nCALL s.p('…'); {quoted}");
        assert_eq!(of(&script), [quoted, "é()", "CALL s.p('…')", quoted]);
        assert_eq!(of(""), Vec::<&str>::new());
        assert_eq!(of("DO $b$ BEGIN a; b; END $b$; CALL p()"), ["DO $b$ BEGIN a; b; END $b$", "CALL p()"]);
        assert!(statement_texts("SELECT 'x").is_err());
    }
}
