//! What registers a read and what becomes a command, one test per rule.

mod support;

use state::{Addition, Command, CommandKind, Effects, KeyRange, Read, Scan};
use std::ops::Bound;
use support::Database;
use types::{ColumnSet, Key, Payload, SqlState, Value};

const ID: usize = 0;
const BALANCE: usize = 1;
const LIMIT: usize = 2;
const NAME: usize = 3;

fn accounts() -> Database {
    Database::with(&[
        "CREATE TABLE account (id bigint PRIMARY KEY, balance bigint NOT NULL, ceiling bigint, name text)",
        "CREATE TABLE checked (id bigint PRIMARY KEY, balance bigint NOT NULL CHECK (balance >= least), least bigint)",
        "CREATE TABLE log (line text)",
        "INSERT INTO account VALUES (1, 100, 500, 'ada'), (2, 200, 600, 'bob'), (3, 300, NULL, 'cy')",
        "INSERT INTO checked VALUES (1, 10, 0)",
    ])
}

fn columns(ordinals: &[usize]) -> ColumnSet {
    ordinals.iter().fold(ColumnSet::EXISTS, |set, ordinal| set | ColumnSet::column(*ordinal))
}

fn key(id: i64) -> Key {
    Key::encode(&[Value::BigInt(id)]).expect("a key")
}

#[track_caller]
fn only_command(effects: &Effects) -> &Command {
    match effects.commands.as_slice() {
        [command] => command,
        other => panic!("expected one command, got {other:?}"),
    }
}

#[track_caller]
fn only_read(effects: &Effects) -> &Read {
    match effects.reads.as_slice() {
        [read] => read,
        other => panic!("expected one read, got {other:?}"),
    }
}

#[track_caller]
fn only_scan(effects: &Effects) -> &Scan {
    match effects.scans.as_slice() {
        [scan] => scan,
        other => panic!("expected one scan, got {other:?}"),
    }
}

#[test]
fn an_update_by_key_is_a_command_and_reads_nothing() {
    let database = accounts();
    let effects = database.script_effects("UPDATE account SET balance = balance + 5 WHERE id = 1");
    assert!(effects.reads.is_empty() && effects.scans.is_empty());
    let command = only_command(&effects);
    assert_eq!(command.row.key, key(1));
    assert_eq!(command.uses, columns(&[BALANCE]));
    assert_eq!(command.writes, ColumnSet::column(BALANCE));
    assert_eq!(command.kind, CommandKind::Update { known: Vec::new() });
    assert_eq!(command.addition, Some(Addition::new(BALANCE as u16, 5, i64::MIN, i64::MAX)));
    assert!(command.can_fail, "a bigint may overflow");
}

#[test]
fn an_update_uses_its_inputs_its_where_and_the_columns_of_its_checks() {
    let database = accounts();
    let sql = "UPDATE account SET balance = ceiling - 1 WHERE name = 'ada' AND id = 1";
    let effects = database.script_effects(sql);
    let command = only_command(&effects);
    assert!(effects.reads.is_empty());
    assert_eq!(command.uses, columns(&[LIMIT, NAME]));
    assert_eq!(command.addition, None);
    let effects = database.script_effects("UPDATE checked SET balance = 5 WHERE id = 1");
    let command = only_command(&effects);
    assert_eq!(command.uses, columns(&[2]), "the check compares with a column that is not assigned");
    assert_eq!(command.kind, CommandKind::Update { known: vec![(1, Value::BigInt(5))] });
    assert!(command.can_fail, "the check may fail");
    let effects = database.script_effects("UPDATE checked SET balance = balance + 5 WHERE id = 1");
    let command = only_command(&effects);
    assert_eq!(
        command.addition.map(|addition| addition.amount),
        Some(5),
        "endorsers may sign it as a command"
    );
    assert_eq!(command.unchecked_addition(), None, "a check looks at the sum");
}

#[test]
fn a_value_that_does_not_depend_on_the_row_is_known_and_cannot_fail() {
    let database = accounts();
    let effects = database.script_effects("UPDATE account SET name = 'x', ceiling = 2 * 3 WHERE id = 2");
    let command = only_command(&effects);
    let known = vec![(LIMIT as u16, Value::BigInt(6)), (NAME as u16, Value::text("x"))];
    assert_eq!(command.kind, CommandKind::Update { known });
    assert_eq!(command.uses, ColumnSet::EXISTS);
    assert!(!command.can_fail);
}

#[test]
fn an_addition_needs_a_column_that_is_never_null() {
    let database = accounts();
    let minus = database.script_effects("UPDATE account SET balance = balance - 7 WHERE id = 1");
    assert_eq!(only_command(&minus).addition.map(|addition| addition.amount), Some(-7));
    for sql in [
        "UPDATE account SET ceiling = ceiling + 1 WHERE id = 1",
        "UPDATE account SET balance = 7 - balance WHERE id = 1",
        "UPDATE account SET balance = balance + 1 WHERE id = 1 AND name = 'ada'",
        "UPDATE account SET balance = balance + 1, name = 'x' WHERE id = 1",
        "UPDATE account SET balance = balance * 2 WHERE id = 1",
    ] {
        assert_eq!(only_command(&database.script_effects(sql)).addition, None, "{sql}");
    }
}

#[test]
fn an_update_of_no_row_stands_at_a_place_too() {
    let database = accounts();
    let effects = database.script_effects("UPDATE account SET balance = 0 WHERE id = 99");
    assert!(effects.reads.is_empty());
    assert_eq!(only_command(&effects).row.key, key(99));
    let nothing = database.script_effects("UPDATE account SET balance = 0 WHERE id = NULL");
    assert!(nothing.commands.is_empty() && nothing.reads.is_empty(), "no row can ever match");
}

#[test]
fn matched_becomes_a_guard_where_the_client_sees_the_command_tag() {
    let database = accounts();
    let hit = database.script_effects("UPDATE account SET balance = 0 WHERE id = 1");
    assert_eq!(only_command(&hit).guard, Some(true));
    let missed = database.script_effects("DELETE FROM account WHERE id = 99");
    assert_eq!(only_command(&missed).guard, Some(false));
    let inserted = database.script_effects("INSERT INTO account VALUES (9, 0)");
    assert_eq!(only_command(&inserted).guard, None, "an INSERT matches or fails");
}

#[test]
fn matched_is_no_guard_where_nobody_looks() {
    let mut database = accounts();
    database
        .run(
            "CREATE PROCEDURE pay(who bigint, amount bigint) LANGUAGE plpgsql AS $$ BEGIN
               UPDATE account SET balance = balance + amount WHERE id = who;
             END $$",
        )
        .expect("a procedure");
    let arguments = vec![Value::BigInt(1), Value::BigInt(5)];
    let effects = database.effects(Payload::Call { procedure: "pay".into(), arguments });
    let command = only_command(&effects);
    assert_eq!(command.guard, None);
    assert!(effects.reads.is_empty());
    assert_eq!(command.addition, Some(Addition::new(BALANCE as u16, 5, i64::MIN, i64::MAX)));
}

#[test]
fn a_select_by_key_reads_the_columns_it_uses_and_exists() {
    let database = accounts();
    let effects = database.script_effects("SELECT balance FROM account WHERE id = 1");
    let read = only_read(&effects);
    assert_eq!((&read.row.key, read.columns), (&key(1), columns(&[BALANCE])));
    assert!(effects.scans.is_empty() && effects.commands.is_empty());
    let absent = database.script_effects("SELECT balance FROM account WHERE id = 99 AND name = 'x'");
    assert_eq!(only_read(&absent).columns, columns(&[BALANCE, NAME]));
}

#[test]
fn returning_reads_what_it_shows_and_guards_the_match() {
    let database = accounts();
    let sql = "UPDATE account SET balance = balance + 1 WHERE id = 1 RETURNING name, balance";
    let effects = database.script_effects(sql);
    let read = only_read(&effects);
    assert_eq!(read.columns, columns(&[BALANCE, NAME]));
    assert_eq!(only_command(&effects).guard, Some(true));
    let effects = database.script_effects("DELETE FROM account WHERE id = 1 RETURNING name");
    assert_eq!(only_read(&effects).columns, columns(&[NAME]));
    let effects = database.script_effects("INSERT INTO account VALUES (9, 5) RETURNING balance");
    assert!(effects.reads.is_empty(), "its own values");
}

#[test]
fn an_insert_is_a_command_without_a_read_of_absence() {
    let database = accounts();
    let effects = database.script_effects("INSERT INTO account VALUES (9, 5)");
    assert!(effects.reads.is_empty());
    let command = only_command(&effects);
    assert_eq!((command.uses, command.writes), (ColumnSet::EXISTS, ColumnSet::ALL));
    let row: types::Row = [Value::BigInt(9), Value::BigInt(5), Value::Null, Value::Null].into();
    assert_eq!(command.kind, CommandKind::Insert(row.clone()));
    let error = command.function.apply(Some(&row)).expect_err("the row exists");
    assert_eq!(error.state, SqlState::UNIQUE_VIOLATION);
    assert_eq!(error.message, "duplicate key value violates unique constraint \"account_pkey\"");
    assert_eq!(error.detail.as_deref(), Some("Key (id)=(9) already exists."));
}

#[test]
fn a_hidden_key_keeps_the_order_of_insertion_and_cannot_collide() {
    let mut database = accounts();
    let effects = database.script_effects("INSERT INTO log VALUES ('a'), ('b')");
    let keys: Vec<&Key> = effects.commands.iter().map(|command| &command.row.key).collect();
    assert!(keys[0] < keys[1]);
    assert!(effects.commands.iter().all(|command| !command.can_fail));
    let before = keys[1].clone();
    database.height += 1;
    let later = database.script_effects("INSERT INTO log VALUES ('c')");
    assert!(before < only_command(&later).row.key);
}

#[test]
fn a_delete_is_a_command_to_nothing() {
    let database = accounts();
    let effects = database.script_effects("DELETE FROM account WHERE id = 1 AND balance = 100");
    let command = only_command(&effects);
    assert_eq!(command.kind, CommandKind::Delete);
    assert_eq!((command.uses, command.writes), (columns(&[BALANCE]), ColumnSet::ALL));
    assert!(effects.reads.is_empty() && !command.can_fail);
}

#[test]
fn a_scan_registers_interval_columns_predicate_and_result() {
    let database = accounts();
    let effects = database.script_effects("SELECT name FROM account WHERE balance > 150 AND id >= 2");
    let scan = only_scan(&effects);
    assert_eq!(scan.range, KeyRange { start: Bound::Included(key(2)), end: Bound::Unbounded });
    assert_eq!(scan.columns, columns(&[ID, BALANCE, NAME]));
    assert!(scan.predicate_columns.contains(ColumnSet::column(BALANCE)));
    assert!(!scan.predicate_columns.intersects(ColumnSet::column(NAME)));
    assert_eq!(scan.result, vec![key(2), key(3)]);
    let predicate = scan.predicate.as_ref().expect("a condition");
    let with_balance = |balance| [None, Some(Value::BigInt(balance)), None, None];
    assert!(predicate.may_match(&with_balance(200)) && !predicate.may_match(&with_balance(100)));
    assert!(predicate.may_match(&[None, None, None, None]), "every other column may have any value");
    assert!(!predicate.may_match(&[None, Some(Value::Null), None, None]));
    assert!(effects.reads.is_empty());
}

#[test]
fn a_scan_of_everything_has_no_predicate() {
    let effects = accounts().script_effects("SELECT count(*) FROM account");
    let scan = only_scan(&effects);
    assert_eq!((scan.range.clone(), scan.columns), (KeyRange::ALL, ColumnSet::EXISTS));
    assert!(scan.predicate.is_none());
    assert_eq!(scan.result.len(), 3);
}

#[test]
fn limit_stops_the_interval_early() {
    let database = accounts();
    let effects = database.script_effects("SELECT id FROM account WHERE id > 1 ORDER BY id LIMIT 1");
    let scan = only_scan(&effects);
    assert!(scan.range.contains(&key(2)) && !scan.range.contains(&key(3)) && !scan.range.contains(&key(1)));
    assert_eq!(scan.result, vec![key(2)]);
    let effects = database.script_effects("SELECT id FROM account ORDER BY id DESC LIMIT 1");
    let scan = only_scan(&effects);
    assert!(scan.range.contains(&key(3)) && scan.range.contains(&key(4)) && !scan.range.contains(&key(2)));
    let sorted = database.script_effects("SELECT id FROM account ORDER BY balance LIMIT 1");
    assert_eq!(only_scan(&sorted).range, KeyRange::ALL, "sorting needs all rows");
}

#[test]
fn an_update_by_other_columns_is_a_scan_and_a_command_per_row() {
    let database = accounts();
    let effects = database.script_effects("UPDATE account SET balance = balance + 1 WHERE ceiling > 550");
    let scan = only_scan(&effects);
    assert_eq!(scan.columns, columns(&[LIMIT]));
    assert_eq!(scan.result, vec![key(2)]);
    let command = only_command(&effects);
    assert_eq!((&command.row.key, command.uses), (&key(2), columns(&[BALANCE])));
    let effects = database.script_effects("DELETE FROM account WHERE balance >= 200");
    let keys: Vec<_> = effects.commands.iter().map(|command| command.row.key.clone()).collect();
    assert_eq!(keys, vec![key(2), key(3)]);
    assert!(effects.commands.iter().all(|command| command.uses == ColumnSet::EXISTS));
}

#[test]
fn several_commands_on_one_row_keep_their_steps() {
    let database = accounts();
    let sql = "UPDATE checked SET balance = balance - 7 WHERE id = 1; UPDATE checked SET balance = balance + 7 WHERE id = 1";
    let effects = database.script_effects(sql);
    assert_eq!(effects.commands.len(), 2);
    let low: types::Row = [Value::BigInt(1), Value::BigInt(5), Value::BigInt(0)].into();
    let error = effects.commands[0].function.apply(Some(&low)).expect_err("5 - 7 breaks the check");
    assert_eq!(error.state, SqlState::CHECK_VIOLATION);
    assert_eq!(error.message, "new row for relation \"checked\" violates check constraint \"checked_check\"");
    assert_eq!(error.detail.as_deref(), Some("Failing row contains (1, -2, 0)."));
}

#[test]
fn reading_a_row_that_one_has_updated_registers_what_the_command_used() {
    let database = accounts();
    let sql = "UPDATE account SET balance = ceiling WHERE id = 1 AND name = 'ada'; SELECT balance FROM account WHERE id = 1";
    let effects = database.script_effects(sql);
    assert_eq!(only_read(&effects).columns, columns(&[LIMIT, NAME]));
    let results = effects.result.expect("no error");
    assert_eq!(results[1].rows, vec![vec![Value::BigInt(500)]]);
    let missed = "UPDATE account SET balance = 1 WHERE id = 1 AND name = 'x'; SELECT balance FROM account WHERE id = 1";
    let effects = database.script_effects(missed);
    assert_eq!(only_read(&effects).columns, columns(&[BALANCE, NAME]), "nothing was written");
}

#[test]
fn a_scan_that_meets_own_rows_registers_their_predicate_columns() {
    let database = accounts();
    let sql = "UPDATE account SET name = 'new' WHERE id = 3; SELECT name FROM account WHERE balance > 250";
    let effects = database.script_effects(sql);
    let read = only_read(&effects);
    assert_eq!(read.row.key, key(3));
    assert!(read.columns.contains(columns(&[BALANCE])));
    assert_eq!(effects.scans.len(), 1);
    let results = effects.result.expect("no error");
    assert_eq!(results[1].rows, vec![vec![Value::text("new")]]);
}

#[test]
fn own_inserts_updates_and_deletes_are_seen_in_key_order() {
    let database = accounts();
    let sql = "INSERT INTO account VALUES (0, 1), (4, 4); DELETE FROM account WHERE id = 2;
        UPDATE account SET balance = 33 WHERE id = 3; SELECT id, balance FROM account;
        SELECT id FROM account ORDER BY id DESC; SELECT count(*) FROM account WHERE balance = 33";
    let results = database.script_effects(sql).result.expect("no error");
    let ids = |rows: &Vec<Vec<Value>>| -> Vec<Value> { rows.iter().map(|row| row[0].clone()).collect() };
    let expected = |ids: &[i64]| -> Vec<Value> { ids.iter().map(|id| Value::BigInt(*id)).collect() };
    assert_eq!(ids(&results[3].rows), expected(&[0, 1, 3, 4]));
    assert_eq!(ids(&results[4].rows), expected(&[4, 3, 1, 0]));
    assert_eq!(results[5].rows, vec![vec![Value::BigInt(1)]]);
    let again = "DELETE FROM account WHERE id = 1; INSERT INTO account VALUES (1, 7); SELECT balance FROM account WHERE id = 1";
    let results = database.script_effects(again).result.expect("no error");
    assert_eq!(results[2].rows, vec![vec![Value::BigInt(7)]]);
}

#[test]
fn an_error_drops_the_commands_and_what_they_used_becomes_read() {
    let database = accounts();
    let sql = "UPDATE account SET balance = ceiling WHERE id = 1; INSERT INTO account VALUES (2, 0)";
    let effects = database.script_effects(sql);
    assert!(effects.commands.is_empty());
    assert_eq!(effects.result.as_ref().expect_err("a duplicate").state, SqlState::UNIQUE_VIOLATION);
    let mut reads: Vec<_> = effects.reads.iter().map(|read| (read.row.key.clone(), read.columns)).collect();
    reads.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(reads, vec![(key(1), columns(&[LIMIT])), (key(2), ColumnSet::EXISTS)]);
}

#[test]
fn an_error_is_raised_only_where_a_row_matches() {
    let database = accounts();
    let effects = database.script_effects("UPDATE account SET balance = 1 / 0 WHERE id = 99");
    assert!(effects.result.is_ok());
    assert!(only_command(&effects).can_fail);
    let effects = database.script_effects("UPDATE account SET balance = 1 / 0 WHERE id = 1");
    assert_eq!(effects.result.expect_err("a division").state, SqlState::DIVISION_BY_ZERO);
}

#[test]
fn the_same_snapshot_gives_the_same_effects() {
    let database = accounts();
    let sql = "UPDATE account SET balance = balance + 1 WHERE ceiling > 0; INSERT INTO log VALUES ('x'); SELECT * FROM log";
    let shown = || format!("{:?}", database.script_effects(sql));
    assert_eq!(shown(), shown());
}

#[test]
fn a_schema_change_gives_a_catalog_and_touches_no_row() {
    let database = accounts();
    let effects = database.script_effects("CREATE TABLE more (id integer PRIMARY KEY)");
    let catalog = effects.catalog.expect("a new catalog");
    assert_eq!(catalog.version, database.library.catalog().version + 1);
    assert!(catalog.tables.contains_key("more"));
    assert!(effects.commands.is_empty() && effects.reads.is_empty());
    let nothing = database.script_effects("DROP TABLE IF EXISTS nothing");
    assert!(nothing.catalog.is_none() && nothing.result.is_ok());
    let failed = database.script_effects("CREATE TABLE more (id integer); CREATE TABLE more (id integer)");
    assert!(failed.catalog.is_none() && failed.result.is_err());
}

#[test]
fn steps_are_counted_and_limited() {
    let database = accounts();
    let effects = database.script_effects("SELECT * FROM account");
    assert!(effects.steps >= 3);
    let context = sql::Context {
        height: 1,
        timestamp_ms: 0,
        index: 0,
        transaction: types::TransactionId::default(),
        step_limit: 3,
    };
    let payload = Payload::Script { sql: "SELECT * FROM account".into(), parameters: Vec::new() };
    let invocation = sql::Invocation::new(database.library.clone(), context, payload);
    let error = state::Simulate::simulate(&invocation, &database.state)
        .expect("memory can be read")
        .result
        .expect_err("too many rows");
    assert_eq!(error.state, SqlState::QUERY_CANCELED);
    assert!(error.message.contains("3 steps"), "{}", error.message);
}

#[test]
fn copied_rows_are_inserts() {
    let database = accounts();
    let payload = Payload::Insert {
        table: "account".into(),
        columns: vec!["balance".into(), "id".into()],
        rows: vec![vec![Value::text("7"), Value::BigInt(9)], vec![Value::BigInt(8), Value::BigInt(10)]],
    };
    let effects = database.effects(payload);
    assert_eq!(effects.result.as_ref().expect("no error")[0].tag, "COPY 2");
    let row: types::Row = [Value::BigInt(9), Value::BigInt(7), Value::Null, Value::Null].into();
    assert_eq!(effects.commands[0].kind, CommandKind::Insert(row));
    assert_eq!(effects.commands[1].row.key, key(10));
}

#[test]
fn a_join_by_key_reads_the_rows_that_it_looks_up() {
    let database = accounts();
    let sql = "SELECT a.name, c.least FROM account a JOIN checked c ON c.id = a.id WHERE a.id = 1";
    let effects = database.script_effects(sql);
    let found: Vec<(&types::Key, ColumnSet)> =
        effects.reads.iter().map(|read| (&read.row.key, read.columns)).collect();
    assert_eq!(found, [(&key(1), columns(&[0, NAME])), (&key(1), columns(&[2]))], "two rows, no interval");
    assert!(effects.scans.is_empty());
}

#[test]
fn a_join_without_a_key_scans_both_sides_and_subqueries_register_like_queries() {
    let database = accounts();
    let scanned = |sql: &str| -> Vec<ColumnSet> {
        let effects = database.script_effects(sql);
        assert!(effects.reads.is_empty(), "{sql}: {effects:?}");
        effects.scans.iter().map(|scan| scan.columns).collect()
    };
    let joined = "SELECT count(*) FROM account a JOIN checked c ON c.least = a.ceiling";
    assert_eq!(scanned(joined), [columns(&[LIMIT]), columns(&[2])]);
    let inside = "SELECT name FROM account WHERE ceiling > (SELECT max(least) FROM checked)";
    assert_eq!(scanned(inside), [columns(&[2]), columns(&[LIMIT, NAME])], "the subquery runs once, before");
    let nobody = "SELECT CASE WHEN id < 0 THEN (SELECT max(least) FROM checked) END FROM account";
    assert_eq!(scanned(nobody), [columns(&[0])], "what is not reached reads nothing");
}

#[test]
fn what_a_query_finds_is_read_and_changed_by_commands_with_known_values() {
    let database = accounts();
    let sql =
        "UPDATE account SET ceiling = c.least + 7 FROM checked c WHERE c.id = account.id AND account.id = 1";
    let effects = database.script_effects(sql);
    assert_eq!(effects.reads.len(), 2, "{effects:?}");
    let command = only_command(&effects);
    assert_eq!(command.row.key, key(1));
    assert_eq!(command.kind, CommandKind::Update { known: vec![(LIMIT as u16, Value::BigInt(7))] });
    let effects = database.script_effects("DELETE FROM account WHERE id IN (SELECT id FROM checked)");
    assert_eq!((only_command(&effects).kind.clone(), effects.scans.len()), (CommandKind::Delete, 2));
}

#[test]
fn a_field_of_a_column_is_assigned_by_a_command_that_uses_the_column() {
    let database = Database::with(&[
        "CREATE TYPE pair AS (n bigint, t text)",
        "CREATE TABLE held (id bigint PRIMARY KEY, p pair, other bigint)",
        "INSERT INTO held VALUES (1, ROW(1, 'one'), 5)",
    ]);
    let effects = database.script_effects("UPDATE held SET p.n = other WHERE id = 1");
    let command = only_command(&effects);
    assert!(effects.reads.is_empty() && effects.scans.is_empty());
    assert_eq!(command.uses, columns(&[1, 2]), "what the field is put into, and its value");
    assert_eq!(command.writes, ColumnSet::column(1));
    let effects = database.script_effects("UPDATE held SET p = ROW(2, 'two') WHERE id = 1");
    assert_eq!(only_command(&effects).uses, ColumnSet::EXISTS, "a whole row needs nothing of the old one");
}

#[test]
fn a_cursor_reads_where_it_opens_and_the_row_it_stands_on_is_changed_by_key() {
    let database = accounts();
    let effects = database.script_effects(
        "DO $$ DECLARE c CURSOR (k bigint) FOR SELECT name FROM account WHERE id = k; n text; BEGIN
            OPEN c(2);
            FETCH c INTO n;
            MOVE BACKWARD ALL FROM c;
            FETCH c INTO n;
            UPDATE account SET balance = balance + 5 WHERE CURRENT OF c;
        END $$",
    );
    let read = only_read(&effects);
    assert_eq!((read.row.key.clone(), read.columns), (key(2), columns(&[ID, NAME])));
    let command = only_command(&effects);
    assert_eq!((command.row.key.clone(), command.uses), (key(2), columns(&[BALANCE])));
    assert!(effects.scans.is_empty() && command.addition.is_some());
}

#[test]
fn a_cursor_that_nobody_fetches_from_has_read_all_the_same() {
    let database = accounts();
    let effects = database.script_effects(
        "DO $$ DECLARE c refcursor; BEGIN OPEN c FOR SELECT count(*) FROM account; UPDATE account SET balance = 0 WHERE id = 1; END $$",
    );
    assert_eq!(only_scan(&effects).range, KeyRange::ALL);
    assert_eq!(only_command(&effects).row.key, key(1));
}

#[test]
fn a_polymorphic_function_registers_what_it_reads() {
    let mut database = accounts();
    database
        .run(
            "CREATE FUNCTION named(x anyelement) RETURNS anyelement LANGUAGE plpgsql AS $$ BEGIN
            PERFORM 1 FROM account WHERE id = x AND name = 'ada';
            RETURN x;
        END $$",
        )
        .expect("a function");
    let effects = database
        .script_effects("SELECT named(1), named(2::smallint); UPDATE account SET balance = 1 WHERE id = 3");
    let rows: Vec<Key> = effects.reads.iter().map(|read| read.row.key.clone()).collect();
    assert_eq!(rows, [key(1), key(2)]);
}

#[test]
fn with_queries_that_change_rows_are_commands_with_guards() {
    let database = accounts();
    let sql = "WITH a AS (UPDATE account SET balance = 0 WHERE id = 1), \
               b AS (DELETE FROM account WHERE id = 9) SELECT name FROM account WHERE id = 2";
    let effects = database.script_effects(sql);
    // Nobody reads their rows: they run behind the main statement, the last one first.
    let commands: Vec<_> = effects.commands.iter().map(|command| (&command.row.key, command.guard)).collect();
    assert_eq!(commands, [(&key(9), Some(false)), (&key(1), Some(true))]);
    let read = only_read(&effects);
    assert_eq!((&read.row.key, read.columns), (&key(2), columns(&[NAME])));

    // Each part sees the rows that were there before: what it reads is read in the snapshot.
    let insert = "WITH a AS (INSERT INTO account VALUES (4, 1) RETURNING id)";
    let effects = database.script_effects(&format!("{insert} UPDATE account SET balance = 5 WHERE id = 4"));
    let guards: Vec<_> = effects.commands.iter().map(|command| command.guard).collect();
    assert_eq!(guards, [Some(false), Some(true)], "the UPDATE and then the INSERT");
    assert_eq!(effects.result.expect("a result")[0].tag, "UPDATE 0");
    // A row that another part has changed is left out, and no command says anything of it.
    let sql = "WITH a AS (UPDATE account SET balance = 1 WHERE id = 1 RETURNING id) \
               UPDATE account SET balance = 5 FROM a WHERE account.id = a.id";
    let effects = database.script_effects(sql);
    assert_eq!(effects.result.as_ref().expect("a result")[0].tag, "UPDATE 0");
    assert_eq!(only_command(&effects).kind, CommandKind::Update { known: vec![(1, Value::BigInt(1))] });
}
