//! Runs PostgreSQL's own regression files on PostgreSQL and on Entente, and counts what is answered alike:
//! `cargo run -p bench --example regression -- --regress DIR --postgres "host=… user=…" --entente "host=… user=…"`.
//!
//! `DIR` is `src/test/regress` of PostgreSQL 15's sources. The database and the ledger must be empty. Both servers get the
//! tables of `test_setup.sql` (columns of type `name` as `text`), which is not counted; then each file runs in a
//! session of its own, statement by statement over the simple protocol.
//!
//! Two answers are the same if they have the same columns and rows (in the same order only where ORDER BY says so), the
//! same number of changed rows, or errors with the same SQLSTATE. EXPLAIN, SET, RESET, SHOW, VACUUM, ANALYZE and psql's own
//! commands are no statements.

mod compare;
mod page;
mod report;
mod script;
mod server;

use clap::Parser;
use report::Finding;
use script::Statement;
use server::{Answer, Server};
use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

/// Characters of an answer that are kept in a finding.
const ANSWER_LENGTH_MAX: usize = 2_000;

#[derive(Parser)]
struct Arguments {
    /// Folder with `sql` and `data` of PostgreSQL's regression tests
    #[arg(long, required_unless_present = "findings")]
    regress: Option<PathBuf>,
    /// How to connect to PostgreSQL, to an empty database
    #[arg(long, required_unless_present = "findings")]
    postgres: Option<String>,
    /// How to connect to Entente, to an empty ledger
    #[arg(long, required_unless_present = "findings")]
    entente: Option<String>,
    /// The files
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "boolean,int4,int8,numeric,text,date,case,select,join,aggregates,plpgsql"
    )]
    files: Vec<String>,
    /// Where to write every statement with its finding
    #[arg(long)]
    json: Option<PathBuf>,
    /// Ask nobody: read what earlier runs wrote with --json, and make a page of it
    #[arg(long, value_delimiter = ',', requires = "counted")]
    findings: Vec<PathBuf>,
    /// Which program was asked, and when: `at commit …, on …`
    #[arg(long)]
    counted: Option<String>,
    /// Print the statements whose reason contains this
    #[arg(long)]
    show: Option<String>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    if !arguments.findings.is_empty() {
        let read = |path: &PathBuf| -> Result<Vec<Finding>, Box<dyn Error>> {
            let text = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
            Ok(serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", path.display()))?)
        };
        let runs = arguments.findings.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        print!("{}", page::page(&runs, arguments.counted.as_deref().unwrap_or_default()));
        return Ok(());
    }
    let (Some(regress), Some(postgres), Some(entente)) =
        (&arguments.regress, &arguments.postgres, &arguments.entente)
    else {
        return Err("expected --regress, --postgres and --entente, or --findings".into());
    };
    let mut both = Both {
        postgres: Server::connect(postgres).await?,
        entente: Server::connect(entente).await?,
        not_created: BTreeMap::new(),
    };
    both.set_up(regress).await?;
    let mut findings = Vec::new();
    for file in &arguments.files {
        eprintln!("{file}");
        findings.extend(both.compare(regress, file).await?);
    }
    if let Some(path) = &arguments.json {
        fs::write(path, serde_json::to_vec_pretty(&findings)?)?;
    }
    println!("{}\n{}", report::table(&findings), report::reasons(&findings));
    if let Some(part) = &arguments.show {
        println!("{}", report::shown(&findings, part));
    }
    Ok(())
}

/// The two servers.
struct Both {
    postgres: Server,
    entente: Server,
    /// By name: why Entente does not have an object that PostgreSQL has.
    not_created: BTreeMap<String, String>,
}

impl Both {
    /// Makes the tables of `test_setup.sql` on both, and the aggregates of `create_aggregate.sql`.
    async fn set_up(&mut self, regress: &Path) -> Result<(), Box<dyn Error>> {
        for statement in read(regress, "test_setup")?.into_iter().chain(read(regress, "create_aggregate")?) {
            let postgres = without_name(&statement);
            let (postgres, entente) = self.run(&postgres).await?;
            if let Some(reason) = compare::difference(&statement.text, &postgres, &entente) {
                self.note_missing(&statement.text, &reason);
                let first = statement.text.lines().next().unwrap_or_default();
                eprintln!("set-up, line {}: {first}: {reason}", statement.line);
            }
        }
        Ok(())
    }

    /// Runs a file, in sessions of its own.
    async fn compare(&mut self, regress: &Path, file: &str) -> Result<Vec<Finding>, Box<dyn Error>> {
        self.postgres.reconnect().await?;
        self.entente.reconnect().await?;
        let mut findings = Vec::new();
        for statement in read(regress, file)? {
            if first_word(&statement.text) == "explain" {
                continue;
            }
            let (postgres, entente) = self.run(&statement).await?;
            if !counts(&statement.text) {
                continue;
            }
            let reason = compare::difference(&statement.text, &postgres, &entente);
            let reason = reason.map(|reason| self.cause(&entente, reason));
            if let Some(reason) = &reason {
                self.note_missing(&statement.text, reason);
            }
            let differs = reason.is_some();
            let said = |answer: &Answer| differs.then(|| shortened(&format!("{answer:?}")));
            findings.push(Finding {
                file: file.to_string(),
                line: statement.line,
                postgres: said(&postgres),
                entente: said(&entente),
                statement: statement.text,
                reason,
            });
        }
        Ok(findings)
    }

    async fn run(&mut self, statement: &Statement) -> Result<(Answer, Answer), Box<dyn Error>> {
        let data = statement.copy_data.as_deref();
        Ok((self.postgres.run(&statement.text, data).await?, self.entente.run(&statement.text, data).await?))
    }

    /// Remembers what a CREATE that failed on Entente only was to make.
    fn note_missing(&mut self, statement: &str, reason: &str) {
        let words: Vec<String> = statement
            .split(|c: char| c.is_whitespace() || c == '(')
            .map(str::to_ascii_lowercase)
            .filter(|word| {
                !matches!(
                    word.as_str(),
                    "" | "or" | "replace" | "temp" | "temporary" | "unique" | "if" | "not" | "exists"
                )
            })
            .collect();
        if let [create, _, name, ..] = &words[..]
            && create == "create"
        {
            self.not_created.insert(name.clone(), reason.to_string());
        }
    }

    /// The reason why an object is missing, where that is what Entente complains about.
    fn cause(&self, entente: &Answer, reason: String) -> String {
        let Answer::Error { code, message } = entente else { return reason };
        if !matches!(code.as_str(), "42P01" | "42883" | "42704") {
            return reason;
        }
        let name: String = message
            .split_once(' ')
            .map(|(_, rest)| rest.trim_start_matches('"'))
            .unwrap_or_default()
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect();
        match self.not_created.get(&name) {
            Some(cause) if cause.starts_with("needs what failed: ") => cause.clone(),
            Some(cause) => format!("needs what failed: {cause}"),
            None => reason,
        }
    }
}

/// The statements of a file of the regression tests; COPY from a file becomes COPY from standard input.
fn read(regress: &Path, file: &str) -> Result<Vec<Statement>, Box<dyn Error>> {
    let script = read_file(&regress.join("sql").join(file).with_extension("sql"))?;
    let folder = regress.to_str().ok_or("the folder's name is not UTF-8")?.to_string();
    let environment = BTreeMap::from([("PG_ABS_SRCDIR".to_string(), folder)]);
    script::statements(&script, &environment).into_iter().map(with_file).collect()
}

/// The statement with the data of the file that it names.
fn with_file(mut statement: Statement) -> Result<Statement, Box<dyn Error>> {
    if first_word(&statement.text) == "copy"
        && let Some((copy, path)) = statement.text.split_once(" FROM '")
    {
        let (path, options) = path.split_once('\'').ok_or("a COPY without the end of its file's name")?;
        statement.copy_data = Some(read_file(Path::new(path))?);
        statement.text = format!("{copy} FROM stdin{options}");
    }
    Ok(statement)
}

fn read_file(path: &Path) -> Result<String, Box<dyn Error>> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()).into())
}

/// The statement with columns of type `text` in place of `name`.
fn without_name(statement: &Statement) -> Statement {
    let line = |line: &str| match line.trim().trim_end_matches(',').split_whitespace().collect::<Vec<_>>()[..]
    {
        [_, "name"] => line.replacen(" name", " text", 1).replacen("\tname", "\ttext", 1),
        _ => line.to_string(),
    };
    let lines: Vec<String> = statement.text.lines().map(line).collect();
    Statement { text: lines.join("\n"), ..statement.clone() }
}

fn first_word(statement: &str) -> String {
    statement.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_ascii_lowercase()
}

/// Whether this is a statement whose answer counts.
fn counts(statement: &str) -> bool {
    !matches!(first_word(statement).as_str(), "explain" | "set" | "reset" | "show" | "vacuum" | "analyze")
}

fn shortened(text: &str) -> String {
    text.chars().take(ANSWER_LENGTH_MAX).collect()
}
