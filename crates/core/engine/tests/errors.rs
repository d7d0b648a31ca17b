//! Every row of the tables in `docs/errors.md` that starts with SQL is run here and must give exactly what it says.

mod support;

use std::path::Path;
use support::{Chain, charter};
use types::{Outcome, SqlError};

/// What the documentation's rows run on.
const SET_UP: [&str; 4] = [
    "CREATE TABLE items (id integer PRIMARY KEY, name varchar(5) NOT NULL, price numeric(6,2) CHECK (price >= 0))",
    "INSERT INTO items VALUES (1, 'nail', 0.05)",
    "CREATE PROCEDURE loop_for_ever() LANGUAGE plpgsql AS $$ BEGIN LOOP NULL; END LOOP; END $$",
    "CREATE PROCEDURE ask_oracle() LANGUAGE plpgsql AS $$ DECLARE x text; BEGIN x := entente.oracle('rate'); END $$",
];

struct Row {
    sql: String,
    state: String,
    message: String,
    hint: String,
}

/// The rows whose first cell is one piece of code, in the section of SQL.
fn documented() -> Vec<Row> {
    let path = Path::new("../../../docs/errors.md");
    let text = std::fs::read_to_string(path).expect("the documentation is there");
    let section = text.split("\n## ").find(|section| section.starts_with("SQL")).expect("a section on SQL");
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    rows.map(|line| {
        let line = line.replace("\\|", "\u{1}");
        let cells: Vec<String> =
            line.trim_matches('|').split('|').map(|cell| cell.trim().replace('\u{1}', "|")).collect();
        let code = |text: &str| text.trim_matches('`').to_string();
        let hint = cells.get(3).cloned().unwrap_or_default();
        Row { sql: code(&cells[0]), state: code(&cells[1]), message: cells[2].clone(), hint }
    })
    .collect()
}

fn error_of(chain: &mut Chain, sql: &str) -> SqlError {
    // A read is refused when it is prepared or run, as the gateway does it; a write in its receipt.
    match sql::prepare(chain.engine.library(), sql, &[]) {
        Err(error) => error,
        Ok(prepared) if prepared.kind() == sql::StatementKind::Read => {
            let snapshot = chain.engine.state().snapshot();
            let steps = chain.charter.meter.transaction_steps;
            prepared.query(snapshot.as_ref(), &[], steps, 0).expect_err("documented as an error")
        }
        Ok(_) => match chain.script(sql) {
            Outcome::Aborted(error) => error,
            other => panic!("{sql}: {other:?}"),
        },
    }
}

#[test]
fn every_documented_error_is_what_comes() {
    let mut chain = Chain::new(charter());
    for sql in SET_UP {
        let outcome = chain.script(sql);
        assert!(matches!(outcome, Outcome::Committed(_)), "{sql}: {outcome:?}");
    }
    let rows = documented();
    assert!(rows.len() >= 30, "only {} rows", rows.len());
    let mut differences = Vec::new();
    for row in rows {
        let error = error_of(&mut chain, &row.sql);
        let hint = error.hint.clone().unwrap_or_default();
        if (error.state.to_string(), &error.message, &hint) != (row.state.clone(), &row.message, &row.hint) {
            let escaped = |text: &str| text.replace('|', "\\|");
            differences.push(format!(
                "| `{}` | `{}` | {} | {} |",
                escaped(&row.sql),
                error.state,
                escaped(&error.message),
                escaped(&hint)
            ));
        }
    }
    assert!(differences.is_empty(), "these rows should read:\n{}", differences.join("\n"));
}
