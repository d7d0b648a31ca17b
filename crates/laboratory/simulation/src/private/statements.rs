//! What parts do: the operations of the workload in a table of their schema, with a canary in every row that they write.

use crate::workload::{Operation, ROWS, SETUP};
use types::{Payload, Value};

/// Steps until a schema can be used.
pub(super) const STEPS: usize = 2;

/// The schema's table: its name is nobody's to know but the members'.
pub(super) fn table(schema: &str) -> String {
    format!("{schema}.canary_{schema}")
}

/// Makes the table and its procedures, then the rows.
pub(super) fn set_up(step: usize, schema: &str, canary: &str) -> (Operation, Payload) {
    let table = table(schema);
    let sql = match step {
        0 => format!(
            "CREATE TABLE {table} (id bigint PRIMARY KEY, version bigint NOT NULL, balance bigint NOT NULL, note text);
             CREATE PROCEDURE {schema}.transfer(sender bigint, receiver bigint, amount bigint, remark text, OUT sender_version bigint,
                OUT sender_balance bigint, OUT receiver_version bigint, OUT receiver_balance bigint)
             LANGUAGE plpgsql AS $$
             BEGIN
                 SELECT version, balance INTO sender_version, sender_balance FROM {table} WHERE id = sender;
                 SELECT version, balance INTO receiver_version, receiver_balance FROM {table} WHERE id = receiver;
                 IF sender_balance < amount THEN
                     RAISE EXCEPTION 'account % cannot pay %, says %', sender, amount, remark;
                 END IF;
                 sender_version := sender_version + 1;
                 sender_balance := sender_balance - amount;
                 receiver_version := receiver_version + 1;
                 receiver_balance := receiver_balance + amount;
                 UPDATE {table} SET version = sender_version, balance = sender_balance, note = remark WHERE id = sender;
                 UPDATE {table} SET version = receiver_version, balance = receiver_balance, note = remark WHERE id = receiver;
             END
             $$;
             CREATE FUNCTION {schema}.hand_over(other text, amount bigint) RETURNS text LANGUAGE plpgsql AS $$
             BEGIN RETURN left(entente.hand_over(other, amount), 0); END $$;
             CREATE FUNCTION {schema}.take_over(other text, amount bigint) RETURNS text LANGUAGE plpgsql AS $$
             BEGIN RETURN left(entente.take_over(other, amount), 0); END $$;
             COMMENT ON TABLE {table} IS '{canary}'"
        ),
        _ => format!(
            "INSERT INTO {table} SELECT i, 0, 20, '{canary}' FROM generate_series(0, {}) AS s(i)",
            ROWS - 1
        ),
    };
    let operation = Operation::Setup(if step + 1 == STEPS { SETUP.len() - 1 } else { 0 });
    (operation, Payload::Script { sql, parameters: Vec::new() })
}

/// Things that a part says to hand over to other schemas, or to take over from them: how, the other schema, and how much.
pub(super) type Moves = Vec<(&'static str, String, i64)>;

/// Whether an operation can move things, too.
pub(super) fn may_move(operation: &Operation) -> bool {
    matches!(operation, Operation::Increment(_) | Operation::Add(_))
}

/// What an operation does in a schema, and what moves there.
pub(super) fn payload(operation: &Operation, schema: &str, canary: &str, moves: &Moves) -> Payload {
    let table = table(schema);
    let script = |sql: String, parameters: Vec<Value>| Payload::Script { sql, parameters };
    let (number, text) = (Value::BigInt, Value::Text(canary.into()));
    // What is said adds nothing to the note.
    let move_one =
        |(how, other, amount): &(&str, String, i64)| format!(" || {schema}.{how}('{other}', {amount})");
    let note: String = moves.iter().map(move_one).collect();
    let update = format!(
        "UPDATE {table} SET version = version + 1, balance = balance + 1, note = $2{note} WHERE id = $1"
    );
    match *operation {
        Operation::Increment(row) => {
            script(format!("{update} RETURNING version, balance"), vec![number(row), text])
        }
        Operation::Add(row) => script(update, vec![number(row), text]),
        Operation::Transfer(sender, receiver, amount) => Payload::Call {
            procedure: format!("{schema}.transfer"),
            arguments: vec![number(sender), number(receiver), number(amount), text],
        },
        _ => script(
            format!("SELECT id, version, balance FROM {table} WHERE note <> $1 ORDER BY id"),
            vec![text],
        ),
    }
}

/// Reads what the model has.
pub(super) fn read_all(schema: &str) -> String {
    format!("SELECT id, version, balance FROM {} ORDER BY id", table(schema))
}

/// Reads what the model has not.
pub(super) fn read_notes(schema: &str) -> String {
    format!("SELECT id, note FROM {} ORDER BY id", table(schema))
}
