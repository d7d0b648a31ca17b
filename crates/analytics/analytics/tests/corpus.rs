//! Every query of the files that say what SQL works gives the same on rows and on columns.

mod columned;
#[path = "../../../language/sql/tests/support/mod.rs"]
mod support;

use columned::{Columned, Counted, Streamed};
use sql::{Reader, StatementKind, prepare};
use sqllogictest::{DB, DBOutput, DefaultColumnType, Runner};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use support::Database;
use types::SqlError;

/// Where the files are.
const FILES: &str = "../../language/sql/tests/slt";

#[derive(Debug)]
struct Shown(SqlError);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.message)
    }
}

impl std::error::Error for Shown {}

/// A database, what a session sends in front of its scripts, and who runs fragments.
struct Tested {
    database: Database,
    path: String,
    groups: Arc<Counted>,
}

impl Tested {
    fn compare(&self, sql: &str) {
        let database = &self.database;
        let Ok(prepared) = prepare(&database.library, sql, &[]) else { return };
        // EXPLAIN says which way a query would go.
        let explains = sql.to_ascii_uppercase().contains("EXPLAIN ");
        if prepared.kind() != StatementKind::Read || explains {
            return;
        }
        let by_rows = prepared.query_as(&database.reader(), &database.state, &[]);
        let reader = Reader { fragments: Some(self.groups.clone()), ..database.reader() };
        let by_columns = prepared.query_as(&reader, &Columned(&database.state), &[]);
        assert_eq!(by_columns, by_rows, "{sql}");
        let made = prepared.query_as(&reader, &Streamed(&database.state), &[]);
        assert_eq!(made, by_rows, "{sql}: columns made of rows");
    }
}

impl DB for Tested {
    type Error = Shown;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Shown> {
        if sql.starts_with("SET search_path") {
            self.path = format!("{sql};");
            return Ok(DBOutput::StatementComplete(0));
        }
        let sql = format!("{}{sql}", self.path);
        self.compare(&sql);
        self.database.gateway(&sql).map(|_| DBOutput::StatementComplete(0)).map_err(Shown)
    }

    fn error_sql_state(error: &Shown) -> Option<String> {
        Some(error.0.state.to_string())
    }
}

#[test]
fn all_queries_give_the_same_on_columns() {
    let groups = Arc::new(Counted::default());
    let mut files = 0;
    for file in std::fs::read_dir(Path::new(FILES)).expect("the files are there") {
        let path = file.expect("a name").path();
        if path.extension().is_none_or(|extension| extension != "slt") {
            continue;
        }
        files += 1;
        let of_file = groups.clone();
        let mut runner = Runner::new(move || {
            let groups = of_file.clone();
            async move { Ok(Tested { database: Database::default(), path: String::new(), groups }) }
        });
        for record in sqllogictest::parse_file(&path).expect("a good file") {
            // What a record gives is for the test of the files themselves.
            let _ = runner.run(record);
        }
    }
    assert!(files > 40, "{files} files");
    assert!(groups.made() > 100, "groups were made on columns {} times", groups.made());
}
