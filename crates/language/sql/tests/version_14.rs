//! Values and rows that are longer than version 13 takes.

mod support;

use support::{prepared, shown_with_rows};
use types::ExecutionVersion;

const BEFORE: &[&str] = &[
    "CREATE TABLE long (id integer PRIMARY KEY, said text, raw bytea, document jsonb, numbers integer[])",
    "INSERT INTO long VALUES (1, repeat('a', 131072), NULL, NULL, NULL)",
    "INSERT INTO long VALUES (2, 'short', decode(repeat('ab', 60000), 'hex'), to_jsonb(repeat('b', 131000)), ARRAY[1])",
    "CREATE TABLE short (id integer PRIMARY KEY, said text, CHECK (length(said || said) > 0))",
    "CREATE TABLE made (id integer PRIMARY KEY, said text, twice text GENERATED ALWAYS AS (said || said) STORED)",
    "CREATE TABLE parted (id integer PRIMARY KEY) PARTITION BY RANGE (id)",
    "CREATE FUNCTION grown() RETURNS integer LANGUAGE plpgsql AS 'BEGIN RETURN length(repeat(''a'', 200000)); END'",
];

/// What both come to.
const CASES: &[[&str; 3]] = &[
    [
        "SELECT length(repeat('a', 131073))",
        "54000 the text would have 131073 bytes, the limit is 131072 (TEXT_BYTES_MAX)",
        "131073",
    ],
    [
        "SELECT length(repeat('a', 1048577))",
        "54000 the text would have 1048577 bytes, the limit is 131072 (TEXT_BYTES_MAX)",
        "54000 the text would have 1048577 bytes, the limit is 1048576 (TEXT_BYTES_MAX)",
    ],
    ["SELECT length(said || said) FROM long WHERE id = 1", "54000", "262144"],
    ["SELECT length(raw || raw || raw) FROM long WHERE id = 2", "54000", "180000"],
    ["SELECT length(jsonb_build_array(document, document)::text) FROM long WHERE id = 2", "54000", "262008"],
    ["SELECT length(string_agg(repeat('d', 10000), ',')) FROM generate_series(1, 20)", "54000", "200019"],
    ["SELECT length(repeat('1', 131072)::varbit || B'1')", "54000", "131073"],
    ["SELECT cardinality(array_fill(repeat('c', 100), ARRAY[2000]))", "54000", "2000"],
    ["SELECT length(lpad('x', 200000))", "54000", "200000"],
    ["SELECT length(replace(said, 'a', 'bc')) FROM long WHERE id = 1", "54000", "262144"],
    ["SELECT length(format('%s%s', said, said)) FROM long WHERE id = 1", "54000", "262144"],
    ["SELECT length(encode(raw || raw, 'hex')) FROM long WHERE id = 2", "54000", "240000"],
    ["SELECT length(quote_literal(said)) FROM long WHERE id = 1", "131074", "131074"],
    ["SELECT length(ROW(said, said)::text) FROM long WHERE id = 1", "54000", "262147"],
    ["SELECT length((SELECT json_agg(said) FROM long)::text)", "54000", "131085"],
    [
        "SELECT length(numrange(repeat('7', 100000)::numeric, repeat('8', 100000)::numeric)::text)",
        "54000",
        "200003",
    ],
    [
        "ALTER TABLE long ALTER COLUMN said TYPE text COLLATE \"C\" USING said || '', ALTER raw SET DATA TYPE text COLLATE pg_catalog.\"C\" USING encode(raw, 'hex')",
        "42601",
        "ALTER TABLE",
    ],
    ["ALTER TABLE long ALTER said TYPE text COLLATE \"en_US\"", "42601", "0A000 COLLATE is not supported"],
    [
        "ALTER TABLE short ADD CONSTRAINT abcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghij_is_unique UNIQUE (said)",
        "42622",
        "ALTER TABLE",
    ],
    [
        "SELECT column_with_a_name_of_more_than_63_bytes_that_is_cut_as_in_postgresql FROM (SELECT 1 AS column_with_a_name_of_more_than_63_bytes_that_is_cut_as_in_post) t",
        "42622",
        "1",
    ],
    [
        "DO 'DECLARE variable_with_a_name_of_more_than_63_bytes_that_is_cut_as_in_postgresql integer := 1; BEGIN variable_with_a_name_of_more_than_63_bytes_that_is_cut_as_in_po := 2; END'",
        "42622",
        "DO",
    ],
    ["NOTIFY news", "0A000 NOTIFY is not supported", "NOTIFY"],
    ["SELECT pg_notify('news', 'text')", "42883", ""],
    ["DO 'BEGIN NOTIFY news, ''text''; END'", "0A000 NOTIFY in a procedure is not supported", "DO"],
    ["SELECT length(NULL::bit(131073))", "22023 length for type bit cannot exceed 131072", "NULL"],
    ["SELECT grown()", "54000", "200000"],
    [
        "INSERT INTO long SELECT 3, said, decode(repeat('ab', 100000), 'hex') FROM long WHERE id = 1",
        "54000",
        "INSERT 0 1",
    ],
    [
        "INSERT INTO long SELECT 3, said, decode(repeat('ab', 65000), 'hex'), to_jsonb(said || '') FROM long WHERE id = 1",
        "54000",
        "INSERT 0 1",
    ],
    ["UPDATE long SET said = said || 'b' WHERE id = 1", "54000", "UPDATE 1"],
    ["INSERT INTO short VALUES (1, repeat('a', 100000))", "54000", "INSERT 0 1"],
    ["INSERT INTO made VALUES (1, repeat('a', 100000))", "54000", "INSERT 0 1"],
    ["CREATE VIEW v AS SELECT said || said AS twice FROM long", "CREATE VIEW", "CREATE VIEW"],
    ["SELECT count(*) FROM ONLY long", "42P01 relation \"only\" does not exist", "2"],
    ["SELECT count(*) FROM ONLY (long)", "42703 column \"long\" does not exist", "2"],
    ["UPDATE ONLY long SET said = 'new'", "42P01 relation \"only\" does not exist", "UPDATE 2"],
    ["DELETE FROM ONLY short", "42P01 relation \"only\" does not exist", "DELETE 0"],
    ["TRUNCATE ONLY parted", "TRUNCATE TABLE", "42809 cannot truncate only a partitioned table"],
    [
        "SELECT sum(id) OVER (ORDER BY id GROUPS 1 PRECEDING) FROM long WHERE id = 1",
        "0A000 a window frame of GROUPS is not supported",
        "1",
    ],
    [
        "SELECT sum(id) OVER (ORDER BY id RANGE 1 PRECEDING) FROM long WHERE id = 1",
        "0A000 a window frame of RANGE with an offset is not supported",
        "1",
    ],
    ["SELECT sum(id) OVER (ROWS 1 PRECEDING EXCLUDE CURRENT ROW) FROM long WHERE id = 1", "42601", "NULL"],
    [
        "SELECT count(*) FROM long FOR NO KEY UPDATE",
        "0A000 FOR UPDATE is not allowed with aggregate functions",
        "0A000 FOR NO KEY UPDATE is not allowed with aggregate functions",
    ],
    ["ALTER TABLE long ALTER said TYPE text USING said || said", "54000", "ALTER TABLE"],
];

#[test]
fn version_13_refuses_lengths_that_version_14_takes() {
    for [sql, version_13, version_14] in CASES {
        let found = shown_with_rows(prepared(ExecutionVersion::V13, BEFORE).run(sql));
        assert!(found.starts_with(version_13), "{sql}: {found}");
        let mut over = prepared(ExecutionVersion::V13, BEFORE);
        over.go_over_to(ExecutionVersion::V14);
        assert_eq!(shown_with_rows(over.run(sql)), *version_14, "{sql}, gone over");
    }
}

#[test]
fn a_literal_of_bytes_has_two_digits_for_each() {
    let table =
        ["CREATE DOMAIN image AS bytea", "CREATE TABLE t (id integer PRIMARY KEY, raw bytea, shown image)"];
    let most = 1024 * 1024;
    let digits = |count: usize| format!("'\\x{}'", "ab".repeat(count));
    let mut database = prepared(ExecutionVersion::V14, &table);
    let run = |database: &mut support::Database, sql: &str| shown_with_rows(database.run(sql));
    let whole = digits(most);
    for (sql, expected) in [
        (format!("INSERT INTO t VALUES (1, {whole})"), "INSERT 0 1"),
        (format!("INSERT INTO t (id, shown) VALUES (2, {whole})"), "INSERT 0 1"),
        (format!("UPDATE t SET raw = {whole} WHERE id = 1"), "UPDATE 1"),
        (format!("SELECT length({whole}::bytea)"), "1048576"),
        (format!("SELECT length(CAST({whole} AS image))"), "1048576"),
        (format!("SELECT length(bytea {whole})"), "1048576"),
        (format!("SELECT length(E'\\\\x{}'::bytea)", "ab".repeat(most)), "1048576"),
        (
            format!("SELECT length({}::bytea)", digits(most + 1)),
            "54000 the text of a bytea has 2097156 bytes, the limit is 2097154 (TEXT_BYTES_MAX)",
        ),
        (
            format!("SELECT length('{}'::bytea)", "a".repeat(most + 1)),
            "54000 the bytea has 1048577 bytes, the limit is 1048576 (TEXT_BYTES_MAX)",
        ),
        (
            format!("SELECT length({whole}::text)"),
            "54000 the text has 2097154 bytes, the limit is 1048576 (TEXT_BYTES_MAX)",
        ),
        (
            format!("SELECT {whole}"),
            "54000 the text has 2097154 bytes, the limit is 1048576 (TEXT_BYTES_MAX)",
        ),
    ] {
        assert_eq!(run(&mut database, &sql), expected, "{}", &sql[..60]);
    }
    assert_eq!(
        database.rows("SELECT length(raw), length(shown) FROM t ORDER BY id"),
        [["1048576", "NULL"], ["NULL", "1048576"]]
    );
    let mut before = prepared(ExecutionVersion::V13, &table);
    let refused = run(&mut before, &format!("SELECT length({}::bytea)", digits(65_536)));
    assert_eq!(refused, "54000 the text has 131074 bytes, the limit is 131072 (TEXT_BYTES_MAX)");
}

#[test]
fn rows_have_two_mebibytes() {
    let mut database =
        prepared(ExecutionVersion::V14, &["CREATE TABLE t (id integer PRIMARY KEY, a text, b text, c text)"]);
    let rows =
        |third: &str| format!("INSERT INTO t SELECT 1, repeat('a', 1048000), repeat('b', 1048000), {third}");
    let error = database.error(&rows("repeat('c', 3000)"));
    assert_eq!((error.state.to_string().as_str(), error.message.as_str()), ("54000", "the row is too long"));
    database.run(&rows("NULL")).expect("it fits");
    assert_eq!(
        database.rows("SELECT length(a || 'x'), md5(b) = md5(repeat('b', 1048000)) FROM t"),
        [["1048001", "t"]]
    );
}
