//! The command that fused statements become.

use crate::Contract;
use state::CommandKind;
use types::{ColumnSet, SqlState, Value};

const BALANCE: usize = 1;
const CEILING: usize = 2;
const STATUS: usize = 3;

fn columns(ordinals: &[usize]) -> ColumnSet {
    ordinals.iter().fold(ColumnSet::EXISTS, |set, ordinal| set | ColumnSet::column(*ordinal))
}

fn debit() -> Contract {
    Contract::new(
        "debit(k bigint, x bigint)",
        "DECLARE v bigint; c bigint;
         BEGIN
             SELECT balance, ceiling INTO v, c FROM account WHERE id = k;
             IF v - x < 0 THEN RAISE EXCEPTION '% of % needs %', k, v, x USING HINT = 'wait'; END IF;
             UPDATE account SET balance = balance - x, status = 'used by ' || x WHERE id = k;
         END",
    )
}

#[test]
fn it_registers_no_read_and_says_what_it_uses_and_writes() {
    let effects = debit().call(&[1, 30]);
    assert!(effects.reads.is_empty() && effects.scans.is_empty(), "{:?}", effects.reads);
    let [command] = effects.commands.as_slice() else { panic!("{:?}", effects.commands) };
    assert_eq!(command.uses, columns(&[BALANCE, CEILING]));
    assert_eq!(command.writes, ColumnSet::column(BALANCE) | ColumnSet::column(STATUS));
    let known = vec![(STATUS as u16, Value::text("used by 30"))];
    assert_eq!(command.kind, CommandKind::Update { known });
    assert_eq!((command.guard, command.can_fail, command.addition), (None, true, None));
}

#[test]
fn it_decides_and_words_its_error_on_the_row_at_its_place() {
    let effects = debit().call(&[1, 30]);
    let command = &effects.commands[0];
    let row = |balance| [Value::BigInt(1), balance, Value::Null, Value::Null].into_iter().collect();
    let error = command.function.apply(Some(&row(Value::BigInt(29)))).expect_err("too little there");
    assert_eq!(error.state, SqlState::RAISE_EXCEPTION);
    assert_eq!(error.message, "1 of 29 needs 30");
    assert_eq!(error.hint.as_deref(), Some("wait"));
    // NULL is not less than zero: nothing is raised, and the difference is NULL too.
    let put = command.function.apply(Some(&row(Value::Null))).expect("no error");
    assert!(matches!(put, state::RowChange::Put(row) if row[BALANCE].is_null()));
    assert_eq!(command.function.apply(None), Ok(state::RowChange::Unmatched));
}

#[test]
fn an_error_in_the_simulation_registers_what_the_command_used() {
    let effects = debit().call(&[1, 101]);
    assert_eq!(effects.result.expect_err("too little").message, "1 of 100 needs 101");
    let [read] = effects.reads.as_slice() else { panic!("{:?}", effects.reads) };
    assert_eq!(read.columns, columns(&[BALANCE, CEILING]));
    assert!(effects.commands.is_empty());
}

#[test]
fn a_missing_row_is_a_command_too() {
    let effects = debit().call(&[9, 1]);
    assert!(effects.reads.is_empty());
    assert_eq!(effects.commands.len(), 1);
    let nowhere = Contract::new(
        "debit(x bigint)",
        "DECLARE v bigint;
         BEGIN
             SELECT balance INTO v FROM account WHERE id = NULL;
             IF v IS NULL THEN RAISE EXCEPTION 'none'; END IF;
             UPDATE account SET balance = v - x WHERE id = NULL;
         END",
    );
    let effects = nowhere.call(&[1]);
    assert_eq!(effects.result.expect_err("no row can have it").message, "none");
    assert!(effects.reads.is_empty() && effects.commands.is_empty());
}

#[test]
fn found_that_is_looked_at_is_its_guard() {
    let contract = Contract::new(
        "debit(k bigint, x bigint)",
        "DECLARE v bigint;
         BEGIN
             SELECT balance INTO v FROM account WHERE id = k;
             IF v < x THEN RAISE EXCEPTION 'too little'; END IF;
             UPDATE account SET balance = balance - x WHERE id = k AND status = 'open';
             IF NOT FOUND THEN INSERT INTO log VALUES ('not open'); END IF;
         END",
    );
    assert_eq!(contract.call(&[1, 5]).commands[0].guard, Some(true));
    assert_eq!(contract.call(&[2, 5]).commands[0].guard, Some(false));
    assert_eq!(contract.call(&[2, 5]).commands[0].uses, columns(&[BALANCE, STATUS]));
}

#[test]
fn a_row_written_before_by_the_transaction_is_not_read_either() {
    let contract = Contract::new(
        "debit(k bigint, x bigint)",
        "DECLARE v bigint;
         BEGIN
             UPDATE account SET balance = balance + 1 WHERE id = k;
             SELECT balance INTO v FROM account WHERE id = k;
             IF v < x THEN RAISE EXCEPTION 'too little'; END IF;
             UPDATE account SET status = 'rich' WHERE id = k;
         END",
    );
    let effects = contract.call(&[1, 101]);
    assert!(effects.result.is_ok() && effects.reads.is_empty());
    let after: Vec<bool> = [100, 99]
        .into_iter()
        .map(|before| {
            let row = [Value::BigInt(1), Value::BigInt(before), Value::Null, Value::Null];
            let row = row.into_iter().collect();
            effects
                .commands
                .iter()
                .try_fold(Some(row), |row, command| state::apply_command(row, command).map(|(row, _)| row))
        })
        .map(|result| result.is_ok())
        .collect();
    assert_eq!(after, [true, false], "decided on the row as the commands before have left it");
}

#[test]
fn reading_the_row_afterwards_registers_what_the_command_used() {
    let contract = Contract::new(
        "spend(k bigint, x bigint, OUT state text)",
        "DECLARE v bigint;
         BEGIN
             SELECT balance INTO v FROM account WHERE id = k;
             IF v >= x THEN
                 UPDATE account SET status = 'rich' WHERE id = k;
             ELSE
                 UPDATE account SET ceiling = 0 WHERE id = k;
             END IF;
             INSERT INTO log VALUES ('x');
             SELECT status INTO state FROM account WHERE id = k;
         END",
    );
    let effects = contract.call(&[1, 10]);
    let [read] = effects.reads.as_slice() else { panic!("{:?}", effects.reads) };
    // The status may come from the command or from before it, whichever branch it takes.
    assert_eq!(read.columns, columns(&[BALANCE, STATUS]));
}

#[test]
fn explain_shows_reads_scans_commands_and_guards() {
    let mut contract = Contract::new(
        "mixed(k bigint, x bigint, OUT total numeric)",
        "DECLARE v bigint;
         BEGIN
             SELECT balance INTO v FROM account WHERE id = k AND status = 'open';
             IF v < x THEN RAISE EXCEPTION 'needs %', x; END IF;
             UPDATE account SET balance = v - x WHERE id = k;
             UPDATE account SET ceiling = 0 WHERE id = x;
             IF NOT FOUND THEN INSERT INTO log VALUES ('none'); END IF;
             SELECT sum(balance) INTO total FROM account WHERE id > k;
             DELETE FROM stock WHERE item = k AND quantity = 0;
             INSERT INTO log SELECT 'open' FROM account WHERE id = x AND status = 'open';
             UPDATE account SET ceiling = 1 WHERE id = k RETURNING balance INTO v;
         END",
    );
    let expected = "\
CALL mixed(k bigint, x bigint, OUT total numeric)
Fused command: account WHERE id = k
  avoided read: columns balance, status of account WHERE id = k AND (status = 'open')
  if (v < x)
  raise 'needs %'
  UPDATE account SET balance = (v - x) WHERE id = k
  uses balance, status, writes balance
Command: UPDATE account SET ceiling = 0 WHERE id = x
  uses existence
  guard: whether a row matched, because FOUND or ROW_COUNT is looked at
Command: INSERT INTO log
Scan: columns id, balance of account WHERE (id > k)
  not avoided: it does not give the whole primary key
Command: DELETE FROM stock WHERE ((item = k) AND (quantity = 0))
  uses existence
Scan: columns item, quantity of stock to find the rows
  not avoided: it does not give the whole primary key
Command: INSERT INTO log
Read: columns status of account WHERE id = x AND (status = 'open')
  not avoided: its rows are inserted
Command: UPDATE account SET ceiling = 1 WHERE id = k
  uses existence
  RETURNING registers what it shows as read
Reads registered: 4, avoided by fusion: 1";
    assert_eq!(contract.explained(), expected);
}

#[test]
fn explain_call_takes_parameters_and_refuses_what_call_refuses() {
    let mut contract = debit();
    let prepared = sql::prepare(&contract.fused.library, "EXPLAIN CALL debit($1, $2)", &[]).expect("valid");
    assert_eq!(prepared.parameters(), [types::DataType::BigInt, types::DataType::BigInt]);
    assert_eq!(prepared.kind(), sql::StatementKind::Read);
    assert_eq!(prepared.columns()[0].name, "QUERY PLAN");
    let error = contract.fused.error("EXPLAIN CALL debit(1)");
    assert_eq!(error.message, "procedure debit(integer) does not exist");
    let error = contract.fused.error("EXPLAIN ANALYZE CALL debit(1, 2)");
    assert_eq!(error.state, SqlState::FEATURE_NOT_SUPPORTED);
}
