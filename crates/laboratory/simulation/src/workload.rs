//! What clients do: a few rows that everybody wants, each with a count of its changes, so that every answer tells where in
//! the order its transaction stands.

use crate::chance::Chance;
use std::collections::BTreeMap;
use types::{Outcome, Payload, Value};

/// Rows of the table.
pub const ROWS: i64 = 6;
/// What each has at the beginning.
pub const BALANCE: i64 = 20;

/// Makes the table and its procedures, one transaction each.
pub const SETUP: [&str; 4] = [
    "CREATE TABLE accounts (id bigint PRIMARY KEY, version bigint NOT NULL, balance bigint NOT NULL)",
    "CREATE PROCEDURE transfer(sender bigint, receiver bigint, amount bigint, OUT sender_version bigint,
        OUT sender_balance bigint, OUT receiver_version bigint, OUT receiver_balance bigint)
     LANGUAGE plpgsql AS $$
     BEGIN
         SELECT version, balance INTO sender_version, sender_balance FROM accounts WHERE id = sender;
         SELECT version, balance INTO receiver_version, receiver_balance FROM accounts WHERE id = receiver;
         IF sender_balance < amount THEN
             RAISE EXCEPTION 'account % cannot pay %', sender, amount;
         END IF;
         sender_version := sender_version + 1;
         sender_balance := sender_balance - amount;
         receiver_version := receiver_version + 1;
         receiver_balance := receiver_balance + amount;
         UPDATE accounts SET version = sender_version, balance = sender_balance WHERE id = sender;
         UPDATE accounts SET version = receiver_version, balance = receiver_balance WHERE id = receiver;
     END
     $$",
    "CREATE PROCEDURE level(poor bigint, OUT rich bigint, OUT versions bigint, OUT total bigint)
     LANGUAGE plpgsql AS $$
     DECLARE
         most bigint := -1;
         account record;
     BEGIN
         versions := 0;
         total := 0;
         FOR account IN SELECT id, version, balance FROM accounts ORDER BY id LOOP
             versions := versions + account.version;
             total := total + account.balance;
             IF account.balance > most THEN
                 most := account.balance;
                 rich := account.id;
             END IF;
         END LOOP;
         UPDATE accounts SET version = version + 1, balance = balance - 1 WHERE id = rich;
         UPDATE accounts SET version = version + 1, balance = balance + 1 WHERE id = poor;
     END
     $$",
    "INSERT INTO accounts SELECT i, 0, 20 FROM generate_series(0, 5) AS s(i)",
];

/// What a query gives that reads everything.
pub const READ_ALL: &str = "SELECT id, version, balance FROM accounts ORDER BY id";

/// One transaction of a client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Operation {
    /// One of [`SETUP`].
    Setup(usize),
    /// Has the charter amended by this statement.
    Amend(String),
    /// Makes or changes a schema with members, which may be refused.
    Schema(String),
    /// Adds one and says what there is then.
    Increment(i64),
    /// Adds one and says nothing: such commands commute.
    Add(i64),
    /// Moves money, if there is enough.
    Transfer(i64, i64, i64),
    /// Takes one from the richest account.
    Level(i64),
    /// Reads everything, in the order of the ledger.
    Read,
}

/// The table as the model has it: version and balance by id.
pub type Table = BTreeMap<i64, (i64, i64)>;

/// What a transaction says: rows of its last statement, or that its contract ended it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Said {
    /// It committed with these rows.
    Rows(Vec<Vec<i64>>),
    /// It committed, and what it said is not looked at.
    Anything,
    /// It committed, or its contract ended it.
    Either,
    /// A business abort.
    Aborted,
}

impl Operation {
    /// Any but the set-up.
    pub fn any(chance: &mut Chance) -> Operation {
        let row = |chance: &mut Chance| (chance.word() % ROWS as u64) as i64;
        let first = row(chance);
        match chance.word() % 10 {
            0..3 => Operation::Increment(first),
            3..5 => Operation::Add(first),
            5..8 => {
                let second = (first + 1 + (chance.word() % (ROWS as u64 - 1)) as i64) % ROWS;
                Operation::Transfer(first, second, chance.within(1, 12) as i64)
            }
            8 => Operation::Level(first),
            _ => Operation::Read,
        }
    }

    /// Any that a part may be: more of them meet one another, and more are refused.
    pub fn of_part(chance: &mut Chance) -> Operation {
        match Operation::any(chance) {
            Operation::Level(row) => Operation::Increment(row),
            Operation::Transfer(sender, receiver, amount) => {
                Operation::Transfer(sender, receiver, 3 * amount)
            }
            other => other,
        }
    }

    /// As a transaction carries it.
    pub fn payload(&self) -> Payload {
        let script = |sql: &str, parameters: Vec<Value>| Payload::Script { sql: sql.to_string(), parameters };
        let call = |procedure: &str, arguments: Vec<Value>| Payload::Call {
            procedure: procedure.to_string(),
            arguments,
        };
        let number = Value::BigInt;
        match *self {
            Operation::Setup(step) => script(SETUP[step], Vec::new()),
            Operation::Amend(ref statement) | Operation::Schema(ref statement) => {
                script(statement, Vec::new())
            }
            Operation::Increment(row) => script(
                "UPDATE accounts SET version = version + 1, balance = balance + 1 WHERE id = $1
                 RETURNING version, balance",
                vec![number(row)],
            ),
            Operation::Add(row) => script(
                "UPDATE accounts SET version = version + 1, balance = balance + 1 WHERE id = $1",
                vec![number(row)],
            ),
            Operation::Transfer(sender, receiver, amount) => {
                call("transfer", vec![number(sender), number(receiver), number(amount)])
            }
            Operation::Level(row) => call("level", vec![number(row)]),
            Operation::Read => script(READ_ALL, Vec::new()),
        }
    }

    /// Does the same to the model and says what the transaction says.
    pub fn apply(&self, table: &mut Table) -> Said {
        let add = |table: &mut Table, row: i64, amount: i64| {
            let (version, balance) = table.entry(row).or_default();
            *version += 1;
            *balance += amount;
            vec![*version, *balance]
        };
        match *self {
            Operation::Setup(step) => {
                if step + 1 == SETUP.len() {
                    table.extend((0..ROWS).map(|row| (row, (0, BALANCE))));
                }
                Said::Anything
            }
            Operation::Amend(_) => Said::Anything,
            Operation::Schema(_) => Said::Either,
            Operation::Increment(row) => Said::Rows(vec![add(table, row, 1)]),
            Operation::Add(row) => {
                add(table, row, 1);
                Said::Anything
            }
            Operation::Transfer(sender, receiver, amount) => {
                if table.get(&sender).is_none_or(|(_, balance)| *balance < amount) {
                    return Said::Aborted;
                }
                let said = [add(table, sender, -amount), add(table, receiver, amount)].concat();
                Said::Rows(vec![said])
            }
            Operation::Level(poor) => {
                let most = table.values().map(|(_, balance)| *balance).max().unwrap_or(0);
                let rich = table.iter().find(|(_, (_, balance))| *balance == most).map_or(0, |(row, _)| *row);
                let versions = table.values().map(|(version, _)| version).sum();
                let total = table.values().map(|(_, balance)| balance).sum();
                add(table, rich, -1);
                add(table, poor, 1);
                Said::Rows(vec![vec![rich, versions, total]])
            }
            Operation::Read => Said::Rows(
                table.iter().map(|(row, (version, balance))| vec![*row, *version, *balance]).collect(),
            ),
        }
    }

    /// Whether the receipt's outcome is what was `said`; `None` where it had no effect.
    pub fn is(&self, outcome: &Outcome, said: &Said) -> bool {
        match (outcome, said) {
            (Outcome::Aborted(_), Said::Aborted | Said::Either)
            | (Outcome::Committed(_), Said::Anything | Said::Either) => true,
            (Outcome::Committed(results), Said::Rows(rows)) => {
                results.last().is_some_and(|result| numbers(&result.rows).as_ref() == Some(rows))
            }
            _ => false,
        }
    }
}

/// Rows of numbers; `None` where there is something else in them.
pub fn numbers(rows: &[Vec<Value>]) -> Option<Vec<Vec<i64>>> {
    let number = |value: &Value| match value {
        Value::BigInt(number) => Some(*number),
        _ => None,
    };
    rows.iter().map(|row| row.iter().map(number).collect()).collect()
}

impl Operation {
    /// Whether its contract refuses it on this table.
    pub fn is_refused_on(&self, table: &Table) -> bool {
        self.apply(&mut table.clone()) == Said::Aborted
    }

    /// The rows that it looks at. `commands`: additions are endorsed as commands, which look at nothing.
    pub fn looks_at(&self, commands: bool) -> Vec<i64> {
        match *self {
            Operation::Setup(_) | Operation::Amend(_) | Operation::Schema(_) => Vec::new(),
            Operation::Add(_) if commands => Vec::new(),
            Operation::Increment(row) | Operation::Add(row) => vec![row],
            Operation::Transfer(sender, receiver, _) => vec![sender, receiver],
            Operation::Level(_) | Operation::Read => (0..ROWS).collect(),
        }
    }

    /// The rows that it changes, where it ends with this outcome.
    pub fn changes(&self, outcome: &Outcome) -> Vec<i64> {
        match *self {
            Operation::Setup(step) if step + 1 == SETUP.len() => (0..ROWS).collect(),
            Operation::Setup(_) | Operation::Amend(_) | Operation::Schema(_) | Operation::Read => Vec::new(),
            Operation::Increment(row) | Operation::Add(row) => vec![row],
            Operation::Transfer(sender, receiver, _) => vec![sender, receiver],
            Operation::Level(poor) => {
                let Outcome::Committed(results) = outcome else { return Vec::new() };
                let said = results.last().and_then(|result| numbers(&result.rows));
                let rich = said.and_then(|rows| rows.first().and_then(|row| row.first().copied()));
                rich.into_iter().chain([poor]).collect()
            }
        }
    }
}
