//! Every program in `tests/plpgsql` gives what PostgreSQL 15 gave (`*.out`, written by `regenerate.sh`): rows, and
//! errors with SQLSTATE, message, detail and hint.

#[path = "plpgsql/behaviour.rs"]
mod behaviour;
#[path = "plpgsql/database.rs"]
mod database;

use database::Database;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use types::format_value;

/// The statements of a script, without their semicolons: those inside of quotes, comments and bodies do not count.
fn split(script: &str) -> Vec<String> {
    let mut statements = vec![String::new()];
    let mut rest = script;
    while let Some(character) = rest.chars().next() {
        let length = match character {
            '\'' | '"' => rest[1..].find(character).map(|end| end + 2),
            '-' if rest.starts_with("--") => rest.find('\n'),
            '$' => rest[1..]
                .find('$')
                .map(|end| &rest[..end + 2])
                .and_then(|tag| rest[tag.len()..].find(tag).map(|end| end + 2 * tag.len())),
            _ => None,
        };
        let length = length.unwrap_or(character.len_utf8());
        match character {
            ';' => statements.push(String::new()),
            _ => statements.last_mut().expect("never empty").push_str(&rest[..length]),
        }
        rest = &rest[length..];
    }
    statements.retain(|statement| {
        statement.lines().any(|line| !line.trim().is_empty() && !line.trim_start().starts_with("--"))
    });
    statements
}

/// As psql shows it with `-A -t`, errors with their SQLSTATE.
fn run(script: &str) -> String {
    let mut database = Database::new();
    let mut output = String::new();
    for statement in split(script) {
        match database.execute(&statement) {
            Ok(results) => {
                for row in results.iter().flat_map(|result| &result.rows) {
                    let shown = row.iter().map(|value| format_value(value).unwrap_or("<NULL>".to_string()));
                    writeln!(output, "{}", shown.collect::<Vec<_>>().join("|")).expect("a string");
                }
            }
            Err(error) => {
                writeln!(output, "ERROR:  {}: {}", error.state, error.message).expect("a string");
                for (field, text) in [("DETAIL", &error.detail), ("HINT", &error.hint)] {
                    if let Some(text) = text {
                        writeln!(output, "{field}:  {text}").expect("a string");
                    }
                }
            }
        }
    }
    output
}

fn programs() -> Vec<PathBuf> {
    let folder = Path::new("tests/plpgsql");
    let entries = std::fs::read_dir(folder).expect("the folder of programs");
    let mut programs: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "sql"))
        .collect();
    programs.sort();
    programs
}

#[test]
fn programs_give_the_results_of_postgresql() {
    let programs = programs();
    assert!(programs.len() >= 46, "forty programs beside the six procedures, found {}", programs.len());
    let mut differences = String::new();
    for program in &programs {
        let script = std::fs::read_to_string(program).expect("a program");
        let expected = std::fs::read_to_string(program.with_extension("out"))
            .expect("expected output; run regenerate.sh beside the program");
        let found = run(&script);
        if found != expected {
            let name = program.file_name().expect("a name").display();
            write!(differences, "== {name}\n-- PostgreSQL:\n{expected}-- Entente:\n{found}")
                .expect("a string");
        }
    }
    assert!(differences.is_empty(), "{differences}");
}
