//! What the .slt files say is what PostgreSQL 15 answers: names of columns, rows in their order, counts, SQLSTATEs, messages and
//! details of constraints.

use crate::postgres::{Answer, Postgres};
use bench::postgres_server;
use servers::PostgresServer;
use sqllogictest::{DB, DBOutput, DefaultColumnType, Runner};
use std::fmt;
use std::path::{Path, PathBuf};
use tokio_postgres::SimpleQueryMessage;

/// Where the files are.
const FILES: &str = "../../language/sql/tests/slt";

/// Files about what PostgreSQL does not have: our plans, and what we refuse by name.
const OURS_ALONE: [&str; 4] = ["explain", "explain_logical", "index_access", "refusals"];

/// How many records of a file differ on purpose, and why. Records that follow from them count too.
const ON_PURPOSE: [(&str, usize, &str); 21] = [
    ("composite", 3, "range types, and a change of a type that a table uses, are refused"),
    ("counting", 3, "a number that was drawn and undone leaves no gap; setval and RESTART are refused there"),
    ("cursors", 3, "names of portals without a name, and what WHERE CURRENT OF needs"),
    ("date_forms", 8, "messages about time zones; the age of an infinite time is an error, not 292277 years"),
    ("joins", 2, "a message without the table"),
    ("json_names", 4, "JSON of records whose names nothing tells is refused"),
    ("key_updates", 11, "a statement may take keys that it gives up, in any order"),
    ("late_records", 3, "a field of a record may have another type in the next query"),
    ("pair_aggregates", 1, "a width_bucket of numbers whose difference is infinite is where the value is"),
    (
        "partition_keys",
        2,
        "errors of references name the table, and ON CONFLICT may not move a row out of its partition",
    ),
    ("partition_queries", 1, "a message: no column of a partition alone is dropped"),
    ("plpgsql_names", 2, "messages"),
    ("polymorphic", 1, "a message"),
    (
        "random_values",
        12,
        "extensions are built in, all clocks are the block's, and a seed is nobody's to set",
    ),
    ("real_numbers", 4, "the last digit of exp(1), cbrt(27) and cosh(1)"),
    ("regular_expressions", 1, "a message"),
    ("returning_others", 2, "a statement may take keys that it gives up, in any order"),
    ("schemas", 2, "a type that is not there is said to be no type, not no relation"),
    ("set_functions", 4, "what is refused by name"),
    (
        "temporary_tables",
        8,
        "what mixes temporary tables with the ledger is refused, and what follows from that",
    ),
    ("with_changes", 3, "a refusal, an error that comes when a routine is created, and EXPLAIN"),
];

/// What PostgreSQL says, as the files show it.
#[derive(Debug)]
struct Shown {
    state: String,
    text: String,
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Shown {}

struct OnPostgres(Postgres);

impl DB for OnPostgres {
    type Error = Shown;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Shown> {
        let messages = self.0.messages(sql).map_err(|refusal| {
            let (state, mut text) = (refusal.code().code().to_string(), String::new());
            text += &format!("{state} {}", refusal.message());
            if let (true, Some(detail)) = (state.starts_with("23"), refusal.detail()) {
                text += &format!(" DETAIL: {detail}");
            }
            Shown { state, text }
        })?;
        let shown = |text: Option<&str>| match text {
            None => "NULL".to_string(),
            Some("") => "(empty)".to_string(),
            Some(text) => text.to_string(),
        };
        // Of several statements, the last one counts.
        let (mut output, mut rows) = (DBOutput::StatementComplete(0), None);
        for message in messages {
            match message {
                SimpleQueryMessage::RowDescription(columns) => {
                    let names = columns.iter().map(|column| column.name().to_string());
                    rows = Some(vec![names.collect::<Vec<_>>()]);
                }
                SimpleQueryMessage::Row(row) => {
                    let values = (0..row.len()).map(|column| shown(row.get(column)));
                    rows.get_or_insert_default().push(values.collect());
                }
                SimpleQueryMessage::CommandComplete(count) => {
                    output = match rows.take() {
                        Some(rows) => DBOutput::Rows {
                            types: vec![DefaultColumnType::Text; rows.first().map_or(0, Vec::len)],
                            rows,
                        },
                        None => DBOutput::StatementComplete(count),
                    };
                }
                _ => {}
            }
        }
        Ok(output)
    }

    fn engine_name(&self) -> &str {
        "postgresql"
    }

    fn error_sql_state(error: &Shown) -> Option<String> {
        Some(error.state.clone())
    }
}

/// The records of a file that PostgreSQL answers otherwise.
fn differences(server: &PostgresServer, path: &Path, database: &str) -> Vec<String> {
    let session = [
        "SET TimeZone = 'UTC'",
        "SET client_min_messages = error",
        "SET default_transaction_isolation = 'read committed'",
        "SET statement_timeout = '20s'",
    ];
    let mut connection = Some(OnPostgres(Postgres::of(server, database)));
    for setting in session {
        connection.iter().for_each(|postgres| postgres.0.run(setting));
    }
    let mut runner = Runner::new(move || {
        let connection = connection.take().expect("one connection for a file");
        async move { Ok(connection) }
    });
    let records = sqllogictest::parse_file(path).expect("a good file");
    let errors = records.into_iter().filter_map(|record| runner.run(record).err());
    errors.map(|error| error.to_string()).collect()
}

#[test]
fn files_of_answers_say_what_postgresql_says() {
    let server = postgres_server(&[]).unwrap_or_else(|error| panic!("{error}"));
    let postgres = Postgres::of(&server, "postgres");
    // What a crash would lose is nobody's.
    postgres.run("ALTER SYSTEM SET fsync = off");
    assert!(matches!(postgres.ask("SELECT pg_reload_conf()"), Answer::Rows(_)));
    let files = std::fs::read_dir(FILES).expect("the files are there");
    let mut files: Vec<PathBuf> = files.map(|file| file.expect("a name").path()).collect();
    files.sort();
    let (mut compared, mut wrong) = (0, Vec::new());
    for path in &files {
        let name = path.file_stem().expect("a name").to_string_lossy();
        if OURS_ALONE.contains(&name.as_ref()) {
            continue;
        }
        compared += 1;
        // A database of its own: files use the same names.
        postgres.run(&format!("CREATE DATABASE {name}"));
        let different = differences(&server, path, &name);
        let known = ON_PURPOSE.iter().find(|(known, _, _)| *known == name).map_or(0, |(_, count, _)| *count);
        if different.len() != known {
            let count = different.len();
            wrong.push(format!("{name}: {count} differ, not {known}:\n\n{}", different.join("\n\n")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(compared > 60, "{compared} files");
}
