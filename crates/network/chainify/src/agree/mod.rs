//! Whether an organisation agrees to scripts before they are ordered: ChainifyDB's `agree` (paper 002, section 4.6.1). Its rules are
//! queries of its own database, next to its private tables, about the values that a script gives.
//!
//! ```text
//!  agree.toml ─▶ rules: queries with names in them ─▶ template: a constant for every name ─▶ asked, many at once, read-only
//! ```

mod rules;
mod template;

pub use rules::{AGREE_FILE, AgreeConfig, AgreeRule, RuleChange};

use crate::DatabaseError;
use crate::address::{Address, Kind};
use crate::dialect::{Dialect, text_of};
use crate::error::ErrorKind;
use crate::session::{self, Session};
use engine::ProposedScript;
use node::JudgeScripts;
use parking_lot::Mutex;
use portable::ProposedChange;
use rules::ReadRule;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use types::Value;

/// Questions that are asked as one query.
const ASKED_TOGETHER: usize = 128;
/// How long one such query may take, in seconds.
const ANSWER_SECONDS: u64 = 2;
/// Connections that are kept open.
const CONNECTIONS_KEPT: usize = 4;
/// The name of the client's organisation in a query, and of its role.
const ORGANISATION: &str = "entente.organisation";
const ROLE: &str = "entente.role";
const NO_RULES: &str = "it has no rules for agreeing; `entente agree` makes them";
/// What others hear of a failure, which may say something private.
const FAILED: &str = "its database cannot say; the log of its node says why";

/// Rules of an organisation, read again whenever their file has changed.
pub struct OwnRules {
    folder: PathBuf,
    /// The database of `node.toml`.
    own: Option<Address>,
    read: Mutex<Option<Arc<Read>>>,
    idle: Mutex<Vec<(Address, Box<dyn Session>)>>,
}

/// The rules as their file had them at one time.
struct Read {
    file: Option<(SystemTime, u64)>,
    rules: Result<(Address, Vec<ReadRule>), &'static str>,
}

/// A query that decides on a script.
struct Question<'a> {
    /// Position of the script.
    script: usize,
    rule: &'a ReadRule,
    sql: String,
}

impl OwnRules {
    /// The rules of a node's folder. `own`: the database of its `node.toml`.
    pub fn new(folder: &Path, own: Option<Address>) -> OwnRules {
        OwnRules { folder: folder.to_path_buf(), own, read: Mutex::default(), idle: Mutex::default() }
    }

    fn rules(&self) -> Arc<Read> {
        let metadata = std::fs::metadata(self.folder.join(AGREE_FILE)).ok();
        let file = metadata.and_then(|metadata| Some((metadata.modified().ok()?, metadata.len())));
        let mut read = self.read.lock();
        if let Some(read) = &*read
            && read.file == file
        {
            return Arc::clone(read);
        }
        let rules = self.read_rules();
        match &rules {
            Ok((address, rules)) => {
                tracing::info!(rules = rules.len(), %address, "rules for agreeing to scripts");
            }
            Err(reason) => tracing::warn!(reason, "rules for agreeing to scripts cannot be used"),
        }
        // What is wrong with a file of this organisation's is for its log.
        let rules = rules.map_err(|reason| match reason.as_str() {
            NO_RULES => NO_RULES,
            _ => "its rules cannot be read; the log of its node says why",
        });
        let fresh = Arc::new(Read { file, rules });
        *read = Some(Arc::clone(&fresh));
        fresh
    }

    fn read_rules(&self) -> Result<(Address, Vec<ReadRule>), String> {
        let config = AgreeConfig::read(&self.folder)?.unwrap_or_default();
        if config.rules.is_empty() {
            return Err(NO_RULES.to_string());
        }
        let address = config.address(&self.folder, self.own.as_ref())?;
        let rules = config.rules.iter().map(|rule| ReadRule::new(address.kind, rule));
        Ok((address.clone(), rules.collect::<Result<_, _>>()?))
    }

    /// A connection that reads only.
    fn connection(&self, address: &Address) -> Result<Box<dyn Session>, DatabaseError> {
        let mut idle = self.idle.lock();
        idle.retain(|(known, _)| known == address);
        if let Some((_, session)) = idle.pop() {
            return Ok(session);
        }
        drop(idle);
        connect(address)
    }

    fn give_back(&self, address: &Address, session: Box<dyn Session>) {
        let mut idle = self.idle.lock();
        if idle.len() < CONNECTIONS_KEPT {
            idle.push((address.clone(), session));
        }
    }

    /// Asks questions; the first that is not answered with yes decides on its script.
    fn ask(&self, address: &Address, questions: &[Question<'_>], verdicts: &mut [Result<(), String>]) {
        for together in questions.chunks(ASKED_TOGETHER) {
            let answers = self.answers(address, together);
            for (question, answer) in together.iter().zip(answers) {
                let verdict = &mut verdicts[question.script];
                if verdict.is_ok() {
                    *verdict = judged(question.rule, answer);
                }
            }
        }
    }

    fn answers(
        &self,
        address: &Address,
        questions: &[Question<'_>],
    ) -> Vec<Result<Option<String>, DatabaseError>> {
        let all = |error: DatabaseError| vec![Err(error); questions.len()];
        let mut session = match self.connection(address) {
            Ok(session) => session,
            Err(error) => return all(error),
        };
        let sql: Vec<&str> = questions.iter().map(|question| question.sql.as_str()).collect();
        let mut asked = ask_together(session.as_mut(), address.kind, &sql);
        if matches!(&asked, Err(error) if error.kind == ErrorKind::Away) {
            // A connection that was idle for long may be gone.
            self.idle.lock().clear();
            asked = connect(address).and_then(|fresh| {
                session = fresh;
                ask_together(session.as_mut(), address.kind, &sql)
            });
        }
        let answers = match asked {
            Ok(answers) => answers.into_iter().map(Ok).collect(),
            Err(error) if error.kind == ErrorKind::Away || sql.len() == 1 => all(error),
            // One of them is to blame, and the others have an answer.
            Err(_) => {
                let start = Instant::now();
                let mut alone = |one: &&str| {
                    if start.elapsed() > Duration::from_secs(ANSWER_SECONDS) {
                        return Err(DatabaseError::new(ErrorKind::Other, "others took all the time"));
                    }
                    let answers = ask_together(session.as_mut(), address.kind, &[one]);
                    answers.map(|mut answers| answers.pop().flatten())
                };
                sql.iter().map(&mut alone).collect()
            }
        };
        self.give_back(address, session);
        answers
    }
}

impl JudgeScripts for OwnRules {
    fn judge(&self, scripts: &[ProposedScript]) -> Vec<Result<(), String>> {
        let read = self.rules();
        let (address, rules) = match &read.rules {
            Ok(rules) => rules,
            Err(reason) => return vec![Err((*reason).to_string()); scripts.len()],
        };
        let mut questions = Vec::new();
        let mut verdicts: Vec<Result<(), String>> = scripts
            .iter()
            .enumerate()
            .map(|(position, script)| {
                questions.extend(questions_of(position, script, address.kind, rules)?);
                Ok(())
            })
            .collect();
        questions.retain(|question| verdicts[question.script].is_ok());
        self.ask(address, &questions, &mut verdicts);
        verdicts
    }
}

/// Whether a rule, with NULL for the values of a script, is a query that its database can answer. `columns`: of its table, with the
/// types as the ledger names them.
///
/// # Errors
/// What is wrong with it.
pub fn check_rule(address: &Address, rule: &AgreeRule, columns: &[(String, String)]) -> Result<(), String> {
    let read = ReadRule::new(address.kind, rule)?;
    let sql = read.template.filled(|name| match name {
        ORGANISATION | ROLE => Ok("'nobody'".to_string()),
        name => {
            let Some((_, data_type)) = columns.iter().find(|(column, _)| column == name) else {
                return Err(no_such_name(&rule.table, name));
            };
            Ok(match address.kind {
                Kind::Postgres => format!("NULL::{data_type}"),
                Kind::MariaDb => "NULL".to_string(),
            })
        }
    })?;
    let mut session = connect(address).map_err(|error| error.to_string())?;
    let answers = ask_together(session.as_mut(), address.kind, &[&sql]);
    answers.map(drop).map_err(|error| format!("the rule for table {}: {error}", rule.table))
}

fn no_such_name(table: &str, name: &str) -> String {
    format!(
        "the rule for table {table} asks for :{name}; there are the columns of the table, :{ORGANISATION} and :{ROLE}"
    )
}

fn connect(address: &Address) -> Result<Box<dyn Session>, DatabaseError> {
    let mut session = session::connect(address)?;
    let settings: &[&str] = match address.kind {
        // Plans and names as the organisation's other users have them.
        Kind::Postgres => &[
            "SET default_transaction_read_only = on",
            "RESET search_path",
            "RESET enable_hashjoin",
            "RESET enable_mergejoin",
            "RESET enable_seqscan",
            "RESET lock_timeout",
        ],
        Kind::MariaDb => &["SET SESSION TRANSACTION READ ONLY"],
    };
    settings.iter().try_for_each(|setting| session.execute(setting).map(drop))?;
    let limit = match address.kind {
        Kind::Postgres => format!("SET statement_timeout = '{ANSWER_SECONDS}s'"),
        Kind::MariaDb => format!("SET SESSION max_statement_time = {ANSWER_SECONDS}"),
    };
    session.execute(&limit)?;
    Ok(session)
}

/// Asks queries of one value as one query.
fn ask_together(
    session: &mut dyn Session,
    kind: Kind,
    queries: &[&str],
) -> Result<Vec<Option<String>>, DatabaseError> {
    let mut sql = String::with_capacity(queries.iter().map(|query| query.len() + 40).sum());
    for (number, query) in queries.iter().enumerate() {
        sql.push_str(if number == 0 { "SELECT " } else { " UNION ALL SELECT " });
        // A comment at the end of a query ends with its line.
        sql.push_str(&match kind {
            Kind::Postgres => format!("{number},({query}\n)::text"),
            Kind::MariaDb => format!("{number},CAST(({query}\n) AS CHAR)"),
        });
    }
    let mut answers = vec![None; queries.len()];
    for row in session.query(&sql)? {
        let [Some(number), answer] = <[Option<String>; 2]>::try_from(row).unwrap_or_default() else {
            continue;
        };
        if let Some(place) = number.parse().ok().and_then(|number: usize| answers.get_mut(number)) {
            *place = answer;
        }
    }
    Ok(answers)
}

/// What an answer means. Nothing, like NULL, is no.
fn judged(rule: &ReadRule, answer: Result<Option<String>, DatabaseError>) -> Result<(), String> {
    let AgreeRule { table, reason, .. } = &rule.rule;
    match answer.as_ref().map(Option::as_deref) {
        Ok(Some("true" | "t" | "1")) => Ok(()),
        Ok(None | Some("false" | "f" | "0")) => {
            Err(reason.clone().unwrap_or_else(|| format!("its rule for table {table} says no")))
        }
        Ok(Some(other)) => {
            tracing::warn!(table, answer = other, "a rule for agreeing gives neither true nor false");
            Err(FAILED.to_string())
        }
        Err(error) => {
            tracing::warn!(table, %error, "a rule for agreeing cannot be asked");
            Err(FAILED.to_string())
        }
    }
}

/// What has to be asked about a script.
///
/// # Errors
/// Nothing: the organisation does not agree.
fn questions_of<'r>(
    position: usize,
    script: &ProposedScript,
    kind: Kind,
    rules: &'r [ReadRule],
) -> Result<Vec<Question<'r>>, String> {
    let mut questions = Vec::new();
    for change in &script.changes {
        let before = questions.len();
        for rule in rules.iter().filter(|rule| rule.is_for(&change.table.name, change.kind)) {
            let sql = rule.template.filled(|name| constant(script, change, Dialect::from(kind), name))?;
            questions.push(Question { script: position, rule, sql });
        }
        if questions.len() == before {
            return Err(format!("it has no rule for {} of table {}", change.kind, change.table.name));
        }
    }
    Ok(questions)
}

fn constant(
    script: &ProposedScript,
    change: &ProposedChange,
    dialect: Dialect,
    name: &str,
) -> Result<String, String> {
    match name {
        ORGANISATION => return Ok(dialect.text_literal(&script.organisation)),
        ROLE => return Ok(dialect.text_literal(&script.role)),
        _ => {}
    }
    let table = &change.table;
    let ordinal = table.ordinal(name).ok_or_else(|| no_such_name(&table.name, name))?;
    let value = change.values[ordinal].as_ref().ok_or_else(|| {
        format!(
            "its rule for {} of table {} asks for {name}, which the script does not say: name each row by its whole key, and set \
             columns to constants",
            change.kind, table.name
        )
    })?;
    let kind = dialect.column_type(&table.columns[ordinal], false)?;
    Ok(match (text_of(dialect, &kind, value), value, dialect) {
        (Some(text), _, _) => {
            let mut sql = String::new();
            dialect.push_literal(&mut sql, &kind, &text);
            sql
        }
        (None, Value::Null, Dialect::Postgres) => format!("NULL::{}", dialect.type_name(&kind)),
        (None, _, _) => "NULL".to_string(),
    })
}
