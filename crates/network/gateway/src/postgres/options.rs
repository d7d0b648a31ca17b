//! The startup parameter `options`: settings in the form of a command line, as `PGOPTIONS` has them.

use types::{SqlError, SqlState};

/// Settings in their order: `-c name=value`, `-cname=value` and `--name=value`, between white space; a backslash takes
/// the meaning from what follows it. In a name `-` stands for `_`.
///
/// # Errors
/// `42601` for everything else, as PostgreSQL says it.
pub(super) fn settings_of(options: &str) -> Result<Vec<(String, String)>, SqlError> {
    let mut settings = Vec::new();
    let mut arguments = arguments_of(options).into_iter();
    while let Some(argument) = arguments.next() {
        let (switch, setting) = if let Some(setting) = argument.strip_prefix("--") {
            ("--", setting.to_string())
        } else if let Some(setting) = argument.strip_prefix("-c") {
            let mut next = || arguments.next().ok_or_else(|| invalid(&argument));
            ("-c ", if setting.is_empty() { next()? } else { setting.to_string() })
        } else {
            return Err(invalid(&argument));
        };
        let Some((name, value)) = setting.split_once('=') else {
            let message = format!("{switch}{setting} requires a value");
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
        };
        settings.push((name.replace('-', "_"), value.to_string()));
    }
    Ok(settings)
}

#[cold]
fn invalid(argument: &str) -> SqlError {
    let message = format!("invalid command-line argument for server process: {argument}");
    SqlError::new(SqlState::SYNTAX_ERROR, message)
        .hint("Settings are given as -c name=value or --name=value.")
}

fn arguments_of(options: &str) -> Vec<String> {
    let mut arguments: Vec<String> = Vec::new();
    let mut current: Option<String> = None;
    let mut characters = options.chars();
    while let Some(character) = characters.next() {
        let taken = match character {
            '\\' => characters.next(),
            // As isspace() of C.
            ' ' | '\t' | '\n' | '\u{b}' | '\u{c}' | '\r' => {
                arguments.extend(current.take());
                continue;
            }
            other => Some(other),
        };
        current.get_or_insert_default().extend(taken);
    }
    arguments.extend(current);
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(options: &str) -> Vec<(String, String)> {
        settings_of(options).unwrap_or_else(|error| panic!("{options}: {error}"))
    }

    #[test]
    fn each_form_of_a_setting_is_read() {
        let setting = |name: &str, value: &str| (name.to_string(), value.to_string());
        assert_eq!(settings(""), []);
        assert_eq!(settings(" \t"), []);
        let one = [setting("search_path", "a,b")];
        for options in
            ["-c search_path=a,b", "-csearch_path=a,b", "--search-path=a,b", " -c\tsearch-path=a,b "]
        {
            assert_eq!(settings(options), one, "{options}");
        }
        assert_eq!(settings(r"-c search_path=a,\ \\b"), [setting("search_path", r"a, \b")]);
        assert_eq!(settings(r"-c search_path="), [setting("search_path", "")]);
        assert_eq!(
            settings("-c a.b=x=y --lock_timeout=5"),
            [setting("a.b", "x=y"), setting("lock_timeout", "5")]
        );
    }

    #[test]
    fn what_is_no_setting_is_refused() {
        for (options, message) in [
            ("-x", "invalid command-line argument for server process: -x"),
            ("a=b", "invalid command-line argument for server process: a=b"),
            ("-c", "invalid command-line argument for server process: -c"),
            ("-c search_path", "-c search_path requires a value"),
            ("--search_path", "--search_path requires a value"),
        ] {
            let error = settings_of(options).expect_err(options);
            assert_eq!((error.state, error.message.as_str()), (SqlState::SYNTAX_ERROR, message));
        }
    }
}
