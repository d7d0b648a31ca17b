//! Many questions of one rule as one query: the rule's query once, about a table of constants, so that the database plans it once.
//!
//! Where it cannot stand beside such a table (a name inside of a subquery in FROM), or where its constants would compare in another
//! way as columns, the query stands there for each question.

use super::rules::ReadRule;
use crate::DatabaseError;
use crate::address::Kind;
use crate::dialect::{Dialect, ForeignType, text_of};
use crate::session::{Session, TextRow};
use std::sync::atomic::Ordering;
use types::Value;

/// A value of a script in a query.
#[derive(Clone, Debug)]
pub(super) struct Constant {
    pub(super) sql: String,
    /// It compares with a column as it does where it stands in a column.
    pub(super) is_plain: bool,
}

impl Constant {
    pub(super) fn of(dialect: Dialect, kind: &ForeignType, value: &Value) -> Constant {
        let type_name = match kind {
            // As the organisation compares its own texts.
            ForeignType::Text(_) => "text".to_string(),
            kind => dialect.type_name(kind),
        };
        let is_integer = matches!(kind, ForeignType::SmallInt | ForeignType::Integer | ForeignType::BigInt);
        match (text_of(dialect, kind, value), dialect) {
            (None, Dialect::Postgres) => Constant { sql: format!("NULL::{type_name}"), is_plain: true },
            (None, Dialect::MariaDb) => Constant { sql: "NULL".to_string(), is_plain: false },
            (Some(text), Dialect::Postgres) => {
                Constant { sql: format!("{}::{type_name}", dialect.text_literal(&text)), is_plain: true }
            }
            (Some(text), Dialect::MariaDb) => {
                let mut sql = String::new();
                dialect.push_literal(&mut sql, kind, &text);
                Constant { sql, is_plain: is_integer }
            }
        }
    }
}

/// The answers to questions of one rule: by its names, the constants of each.
pub(super) fn ask(
    session: &mut dyn Session,
    kind: Kind,
    rule: &ReadRule,
    questions: &[&[Constant]],
) -> Result<Vec<Option<String>>, DatabaseError> {
    let is_plain = questions.iter().all(|constants| constants.iter().all(|constant| constant.is_plain));
    if is_plain && questions.len() > 1 && !rule.stands_alone.load(Ordering::Relaxed) {
        match session.query(&as_table(kind, rule, questions)) {
            Ok(rows) => return Ok(in_order(rows, questions.len())),
            Err(error) if !error.kind.is_of_statements() => return Err(error),
            // Alone it may be right.
            Err(_) => {}
        }
        let answers = one_by_one(session, kind, rule, questions)?;
        rule.stands_alone.store(true, Ordering::Relaxed);
        return Ok(answers);
    }
    one_by_one(session, kind, rule, questions)
}

fn as_table(kind: Kind, rule: &ReadRule, questions: &[&[Constant]]) -> String {
    let names = rule.template.names();
    let columns: Vec<String> = (0..names.len()).map(|number| format!("entente_p{number}")).collect();
    let query = rule.template.filled(|number| format!("entente_c.entente_p{number}"));
    let mut sql = match kind {
        Kind::Postgres => format!("SELECT entente_n,({query}\n)::text FROM (VALUES "),
        Kind::MariaDb => format!("SELECT entente_n,CAST(({query}\n) AS CHAR) FROM ("),
    };
    for (number, constants) in questions.iter().enumerate() {
        match kind {
            Kind::Postgres => {
                let constants: String =
                    constants.iter().map(|constant| format!(",{}", constant.sql)).collect();
                let separator = if number == 0 { "" } else { "," };
                sql.push_str(&format!("{separator}({number}{constants})"));
            }
            Kind::MariaDb => {
                let column =
                    |(at, constant): (usize, &Constant)| format!(",{} AS {}", constant.sql, columns[at]);
                let constants: String = constants.iter().enumerate().map(column).collect();
                let separator = if number == 0 { "" } else { " UNION ALL " };
                sql.push_str(&format!("{separator}SELECT {number} AS entente_n{constants}"));
            }
        }
    }
    sql.push_str(") AS entente_c");
    if kind == Kind::Postgres {
        let columns: String = columns.iter().map(|column| format!(",{column}")).collect();
        sql.push_str(&format!(" (entente_n{columns})"));
    }
    sql
}

fn one_by_one(
    session: &mut dyn Session,
    kind: Kind,
    rule: &ReadRule,
    questions: &[&[Constant]],
) -> Result<Vec<Option<String>>, DatabaseError> {
    let mut sql = String::new();
    for (number, constants) in questions.iter().enumerate() {
        let query = rule.template.filled(|name| constants[name].sql.clone());
        sql.push_str(if number == 0 { "SELECT " } else { " UNION ALL SELECT " });
        // A comment at the end of a query ends with its line.
        sql.push_str(&match kind {
            Kind::Postgres => format!("{number},({query}\n)::text"),
            Kind::MariaDb => format!("{number},CAST(({query}\n) AS CHAR)"),
        });
    }
    Ok(in_order(session.query(&sql)?, questions.len()))
}

/// Answers by the numbers in front of them.
fn in_order(rows: Vec<TextRow>, count: usize) -> Vec<Option<String>> {
    let mut answers = vec![None; count];
    for row in rows {
        let Ok([Some(number), answer]) = <[Option<String>; 2]>::try_from(row) else { continue };
        if let Some(place) = number.parse().ok().and_then(|number: usize| answers.get_mut(number)) {
            *place = answer;
        }
    }
    answers
}
