//! Whether an organisation agrees to scripts before they are ordered: ChainifyDB's `agree` (paper 002, section 4.6.1). Its rules are
//! queries of its own database, next to its private tables, about the values that a script gives.
//!
//! ```text
//!  agree.toml ─▶ rules: queries with names in them ─▶ template: a constant for every name ─▶ asked, many at once, read-only
//! ```

mod question;
mod rules;
mod template;

pub use rules::{AGREE_FILE, AgreeConfig, AgreeRule, RuleChange};

use crate::DatabaseError;
use crate::address::{Address, Kind};
use crate::dialect::Dialect;
use crate::error::ErrorKind;
use crate::session::{self, Session};
use engine::ProposedScript;
use node::JudgeScripts;
use parking_lot::Mutex;
use portable::ProposedChange;
use question::Constant;
use rules::ReadRule;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// Questions that are asked as one query.
const ASKED_TOGETHER: usize = 512;
/// How long one such query may take, in seconds.
const ANSWER_SECONDS: u64 = 2;
/// Connections that are kept open.
const CONNECTIONS_KEPT: usize = 4;
/// The name of the client's organisation in a query, and of its role.
const ORGANISATION: &str = "entente.organisation";
const ROLE: &str = "entente.role";
const NO_RULES: &str = "it has no rules for agreeing; `entente agree` makes them";
/// What others hear of failures, which may say something private.
const UNREADABLE: &str = "its rules cannot be read; the log of its node says why";
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

/// What a rule is asked about one change of a script.
struct Question {
    /// Position of the script.
    script: usize,
    /// Position of the rule.
    rule: usize,
    /// By the rule's names, a constant for each.
    constants: Vec<Constant>,
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
        let rules = match self.read_rules() {
            Ok(Some((address, rules))) => {
                tracing::info!(rules = rules.len(), %address, "rules for agreeing to scripts");
                Ok((address, rules))
            }
            Ok(None) => Err(NO_RULES),
            Err(reason) => {
                tracing::warn!(reason, "rules for agreeing to scripts cannot be used");
                Err(UNREADABLE)
            }
        };
        let fresh = Arc::new(Read { file, rules });
        *read = Some(Arc::clone(&fresh));
        fresh
    }

    /// `None`: there are none.
    fn read_rules(&self) -> Result<Option<(Address, Vec<ReadRule>)>, String> {
        let config = AgreeConfig::read(&self.folder)?.unwrap_or_default();
        if config.rules.is_empty() {
            return Ok(None);
        }
        let address = config.address(&self.folder, self.own.as_ref())?;
        let rules = config.rules.iter().map(|rule| ReadRule::new(address.kind, rule));
        let rules = rules.collect::<Result<_, _>>()?;
        Ok(Some((address, rules)))
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

    /// Asks questions of one rule; the first that is not answered with yes decides on its script.
    fn ask(
        &self,
        address: &Address,
        rule: &ReadRule,
        questions: &[Question],
        verdicts: &mut [Result<(), String>],
    ) {
        for together in questions.chunks(ASKED_TOGETHER) {
            let answers = self.answers(address, rule, together);
            for (question, answer) in together.iter().zip(answers) {
                let verdict = &mut verdicts[question.script];
                if verdict.is_ok() {
                    *verdict = judged(rule, answer);
                }
            }
        }
    }

    fn answers(
        &self,
        address: &Address,
        rule: &ReadRule,
        questions: &[Question],
    ) -> Vec<Result<Option<String>, DatabaseError>> {
        let all = |error: DatabaseError| vec![Err(error); questions.len()];
        let mut session = match self.connection(address) {
            Ok(session) => session,
            Err(error) => return all(error),
        };
        let constants: Vec<&[Constant]> = questions.iter().map(|question| &question.constants[..]).collect();
        let mut asked = question::ask(session.as_mut(), address.kind, rule, &constants);
        if matches!(&asked, Err(error) if error.kind == ErrorKind::Away) {
            // A connection that was idle for long may be gone.
            self.idle.lock().clear();
            asked = connect(address).and_then(|fresh| {
                session = fresh;
                question::ask(session.as_mut(), address.kind, rule, &constants)
            });
        }
        let answers = match asked {
            Ok(answers) => answers.into_iter().map(Ok).collect(),
            Err(error) if error.kind == ErrorKind::Away || constants.len() == 1 => all(error),
            // One of them is to blame, and the others have an answer.
            Err(_) => {
                let start = Instant::now();
                let mut alone = |one: &&[Constant]| {
                    if start.elapsed() > Duration::from_secs(ANSWER_SECONDS) {
                        return Err(DatabaseError::new(ErrorKind::Other, "others took all the time"));
                    }
                    let answers = question::ask(session.as_mut(), address.kind, rule, &[one]);
                    answers.map(|mut answers| answers.pop().flatten())
                };
                constants.iter().map(&mut alone).collect()
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
        questions.sort_by_key(|question| question.rule);
        for of_rule in questions.chunk_by(|one, next| one.rule == next.rule) {
            self.ask(address, &rules[of_rule[0].rule], of_rule, &mut verdicts);
        }
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
    let mut constants = Vec::new();
    for name in read.template.names() {
        let text = [ORGANISATION, ROLE].contains(&name.as_str());
        let column = columns.iter().find(|(column, _)| column == name);
        constants.push(match (text, column, address.kind) {
            (true, _, _) => {
                Constant { sql: "'nobody'".to_string(), is_plain: address.kind == Kind::Postgres }
            }
            (false, Some((_, data_type)), Kind::Postgres) => {
                Constant { sql: format!("NULL::{data_type}"), is_plain: true }
            }
            (false, Some(_), Kind::MariaDb) => Constant { sql: "NULL".to_string(), is_plain: false },
            (false, None, _) => return Err(no_such_name(&rule.table, name)),
        });
    }
    let mut session = connect(address).map_err(|error| error.to_string())?;
    let answers = question::ask(session.as_mut(), address.kind, &read, &[&constants]);
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
fn questions_of(
    position: usize,
    script: &ProposedScript,
    kind: Kind,
    rules: &[ReadRule],
) -> Result<Vec<Question>, String> {
    let mut questions = Vec::new();
    for change in &script.changes {
        let before = questions.len();
        for (number, rule) in rules.iter().enumerate() {
            if rule.is_for(&change.table.name, change.kind) {
                let constant = |name: &String| constant(script, change, Dialect::from(kind), name);
                let constants = rule.template.names().iter().map(constant).collect::<Result<_, _>>()?;
                questions.push(Question { script: position, rule: number, constants });
            }
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
) -> Result<Constant, String> {
    let text =
        |text: &str| Constant { sql: dialect.text_literal(text), is_plain: dialect == Dialect::Postgres };
    match name {
        ORGANISATION => return Ok(text(&script.organisation)),
        ROLE => return Ok(text(&script.role)),
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
    Ok(Constant::of(dialect, &dialect.column_type(&table.columns[ordinal], false)?, value))
}
