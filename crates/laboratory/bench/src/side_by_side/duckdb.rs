//! DuckDB in a process of Python, which gets requests and gives answers as lines of JSON.

use super::files::{Files, temporary_folder};
use super::system::{Answer, Rows, System};
use super::table::Table;
use crate::LaboratoryError;
use serde::Deserialize;
use serde_json::json;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

pub(crate) const NAME: &str = "duckdb";

/// What Python's package index gives.
const PACKAGE: &str = "duckdb==2.0.1";
/// The other end. A file `duckdb.py` would be taken for the package itself.
const SCRIPT: (&str, &str) = ("answers.py", include_str!("duckdb.py"));

/// The process, and its folder with Python's environment and the database.
pub(super) struct DuckDb {
    child: Child,
    /// `None` when it is told to end.
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    folder: TempDir,
}

/// A line that comes back.
#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Answer { ms: f64, floating: Vec<bool>, cells: Vec<Vec<Option<String>>> },
    Error { error: String },
}

impl DuckDb {
    /// Makes an environment of Python with the package in a temporary folder, and starts the process there.
    pub(super) fn start() -> Result<DuckDb, LaboratoryError> {
        let folder = temporary_folder()?;
        let environment = folder.path().join("python");
        let python = environment.join("bin").join("python");
        run(
            Command::new("python3").args([OsStr::new("-m"), OsStr::new("venv"), environment.as_os_str()]),
            "python3 with its module venv",
        )?;
        run(
            Command::new(&python).args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                PACKAGE,
            ]),
            &format!("a network from which pip can install {PACKAGE}"),
        )?;
        let script = folder.path().join(SCRIPT.0);
        std::fs::write(&script, SCRIPT.1).map_err(LaboratoryError::file("write", &script))?;
        let mut child = Command::new(&python)
            .arg(&script)
            .current_dir(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(LaboratoryError::file("run", &python))?;
        let requests = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().expect("it is piped"));
        Ok(DuckDb { child, requests, answers, folder })
    }

    pub(super) fn load(mut self, tables: &[Table], files: &Files) -> Result<DuckDb, LaboratoryError> {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let tables = tables.iter().map(|table| {
            json!({
                "name": table.name,
                "definition": table.definition,
                "file": text(&files.path(table)),
            })
        });
        let tables: Vec<serde_json::Value> = tables.collect();
        let database = text(&self.folder.path().join("tables.duckdb"));
        self.ask(&json!({ "database": database, "tables": tables }), "the tables and files")?;
        Ok(self)
    }

    fn ask(&mut self, request: &serde_json::Value, name: &str) -> Result<Answer, LaboratoryError> {
        match self.exchange(request) {
            Ok(Line::Answer { ms, floating, cells }) => {
                Ok(Answer { ms, rows: Rows { cells, floating, is_padded: false }, from: None })
            }
            Ok(Line::Error { error }) => Err(refused(name, error)),
            Err(error) => Err(refused(name, error.to_string())),
        }
    }

    fn exchange(&mut self, request: &serde_json::Value) -> std::io::Result<Line> {
        let requests = self.requests.as_mut().expect("it was not told to end");
        writeln!(requests, "{request}")?;
        requests.flush()?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        Ok(serde_json::from_str(&line)?)
    }
}

impl System for DuckDb {
    fn name(&self) -> &'static str {
        NAME
    }

    fn run(&mut self, sql: &str, limit: Option<Duration>) -> Result<Answer, LaboratoryError> {
        self.ask(&json!({ "query": sql, "seconds_max": limit.map(|limit| limit.as_secs_f64()) }), sql)
    }
}

impl Drop for DuckDb {
    fn drop(&mut self) {
        // It reads the end, and ends.
        self.requests = None;
        let _ = self.child.wait();
    }
}

fn refused(request: &str, error: String) -> LaboratoryError {
    LaboratoryError::Answer { system: NAME, request: request.to_string(), error }
}

/// Runs a program to its end; without it `expected` is missing.
fn run(command: &mut Command, expected: &str) -> Result<(), LaboratoryError> {
    let missing = |found: String| LaboratoryError::Missing { expected: expected.to_string(), found };
    let output = command.output().map_err(|error| missing(format!("none ({error})")))?;
    if output.status.success() {
        return Ok(());
    }
    // venv says what is wrong where it should not.
    let said = [output.stderr, output.stdout].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let last = said.iter().find_map(|text| text.lines().rfind(|line| !line.trim().is_empty()));
    Err(missing(last.map_or_else(|| output.status.to_string(), |line| line.trim().to_string())))
}
