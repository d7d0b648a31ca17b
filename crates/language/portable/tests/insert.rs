//! What INSERT and COPY store.

mod samples;

use portable::{Access, Action, check_script};
use samples::{
    AMOUNT, AT, BORN, BYTES, CODE, ID, MARK, NAME, NOW, NOW_MS, SEEN, SMALL, catalog, number, row, script,
    statement,
};
use types::{Key, Payload, Value};

fn key(values: &[Value]) -> Key {
    Key::encode(values).expect("a short key")
}

#[test]
fn constants_are_stored_as_postgresql_stores_them() {
    let mark = "6b1fd5c2-57c9-4d0d-8a3b-6a8b1a1d9c11";
    let sql = format!(
        "INSERT INTO account VALUES ('7', 5, -2147483648, -9223372036854775808, 1.005, 'it''s', 'abcd', 'yes', date '2020-02-29', \
         '2020-01-01 10:00:00.5'::timestamp, timestamptz '2020-01-01 10:00+02', '{mark}', '\\x00ff', (+1.5))"
    );
    let row = row(&sql, &[]);
    assert_eq!(row[ID], Value::Integer(7));
    assert_eq!(row[SMALL], Value::SmallInt(5));
    assert_eq!((&row[2], &row[3]), (&Value::Integer(i32::MIN), &Value::BigInt(i64::MIN)));
    assert_eq!(row[AMOUNT], number("1.01"), "rounded away from zero, with the scale of the column");
    assert_eq!(
        (&row[NAME], &row[CODE], &row[7]),
        (&Value::text("it's"), &Value::text("abcd"), &Value::Boolean(true))
    );
    assert_eq!(row[BORN], Value::Date(7_364));
    assert_eq!(row[AT], Value::Timestamp(631_188_000_500_000));
    assert_eq!(row[SEEN], Value::TimestampTz(631_180_800_000_000));
    assert!(matches!(row[MARK], Value::Uuid(bytes) if bytes[0] == 0x6b));
    assert_eq!(row[BYTES], Value::Bytea([0, 255].as_slice().into()));
    assert_eq!(row[13], number("1.50000000000000000000"));
}

#[test]
fn columns_that_are_left_out_get_their_defaults() {
    let statement = statement("INSERT INTO s.entry (number, ledger) VALUES (1, 'a'), (2, 'b')");
    let Action::Insert(rows) = &statement.action else { panic!("an INSERT") };
    let expected = [
        Value::text("a"),
        Value::BigInt(1),
        Value::Null,
        Value::text("new"),
        Value::TimestampTz(NOW),
        Value::BigInt(-7),
    ];
    assert_eq!(rows[0].to_vec(), expected);
    let keys = [("a", 1), ("b", 2)].map(|(ledger, n)| key(&[Value::text(ledger), Value::BigInt(n)]));
    assert_eq!(statement.access, Access::Keys(keys.to_vec()));
    assert_eq!(statement.table.name, "s.entry");
    assert_eq!(
        row("INSERT INTO s.entry VALUES ('a', 1, DEFAULT, DEFAULT, NULL)", &[])[3..5],
        [Value::text("new"), Value::Null]
    );
    assert_eq!(
        row("INSERT INTO public.account (id, seen) VALUES (1, now())", &[])[SEEN],
        Value::TimestampTz(NOW)
    );
    assert_eq!(
        row("INSERT INTO account (id, seen) VALUES (1, CURRENT_TIMESTAMP)", &[])[SEEN],
        Value::TimestampTz(NOW)
    );
    assert_eq!(
        row("INSERT INTO serial VALUES (1, 2)", &[]),
        [Value::BigInt(1), Value::BigInt(2)],
        "no default is needed"
    );
}

#[test]
fn parameters_take_the_types_of_their_columns() {
    let sql = "INSERT INTO account (id, small, amount, name, code, born, seen, balance) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    let parameters = [
        Value::BigInt(7),
        Value::text("12"),
        Value::Integer(3),
        Value::text("n"),
        Value::Null,
        Value::text("2020-02-29"),
        Value::TimestampTz(5),
        Value::SmallInt(9),
    ];
    let row = row(sql, &parameters);
    assert_eq!(
        row[..5],
        [Value::Integer(7), Value::SmallInt(12), Value::Null, Value::BigInt(9), number("3.00")]
    );
    assert_eq!((&row[NAME], &row[CODE], &row[BORN]), (&Value::text("n"), &Value::Null, &Value::Date(7_364)));
    assert_eq!(row[SEEN], Value::TimestampTz(5));
}

#[test]
fn copy_inserts_rows() {
    let copy = |rows: Vec<Vec<Value>>| {
        let columns = vec!["number".to_string(), "ledger".to_string()];
        let payload = Payload::Insert { table: "s.entry".to_string(), columns, rows };
        check_script(&catalog(), &payload, NOW_MS)
    };
    let script = copy(vec![vec![Value::text("1"), Value::text("a")]]).expect("a row");
    let Action::Insert(rows) = &script.statements[0].action else { panic!("an INSERT") };
    assert_eq!(rows[0][..4], [Value::text("a"), Value::BigInt(1), Value::Null, Value::text("new")]);
    assert_eq!(copy(vec![vec![Value::text("1")]]).expect_err("too few").state.to_string(), "22P04");
    assert_eq!(copy(vec![vec![Value::Null, Value::text("a")]]).expect_err("NULL").state.to_string(), "23502");
    assert_eq!(
        copy(vec![vec![Value::Double(1.0), Value::text("a")]]).expect_err("a double").state.to_string(),
        "0A000"
    );
}

#[test]
fn a_script_can_have_no_statement_and_a_thousand() {
    assert_eq!(script("").expect("a script").statements, []);
    assert_eq!(script(" ; -- nothing\n;").expect("a script").statements, []);
    let many = |count: usize| script(&"DELETE FROM account;".repeat(count));
    assert_eq!(many(1_000).expect("as many as can be").statements.len(), 1_000);
    let error = many(1_001).expect_err("one too many");
    assert_eq!(error.state.to_string(), "54000");
    assert!(error.message.contains("STATEMENTS_MAX"), "{}", error.message);
}

#[test]
fn a_key_is_short_enough_for_every_index() {
    let long = "é".repeat(8);
    assert!(script(&format!("INSERT INTO s.entry (ledger, number) VALUES ('{long}', 1)")).is_ok());
    let wide =
        samples::table(9, "wide", vec![samples::column("k", types::DataType::Text(Some(768)))], vec![0]);
    let catalog = samples::catalog_of([wide]);
    portable::check_catalog(&catalog).expect("a table");
    let payload = |length: usize| Payload::Script {
        sql: format!("INSERT INTO wide VALUES ('{}')", "€".repeat(length)),
        parameters: Vec::new(),
    };
    assert!(check_script(&catalog, &payload(666), NOW_MS).is_ok());
    assert_eq!(
        check_script(&catalog, &payload(667), NOW_MS).expect_err("too long").state.to_string(),
        "54000"
    );
}
