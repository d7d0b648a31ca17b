//! What clients are told of columns and of their session.

mod support;

use catalogue::LockFacts;
use support::Asked;
use types::session_format::SessionFormat;
use types::{AdvisoryKey, AdvisoryMode, DataType};

#[test]
fn advisory_locks_are_shown_as_postgresql_shows_them() {
    let mut asked = Asked::new();
    let lock = |key, mode, process| LockFacts { key, mode, holder: "org1/0000002a".to_string(), process };
    asked.facts.advisory_locks = vec![
        lock(AdvisoryKey::One(-1), AdvisoryMode::Exclusive, Some(7)),
        lock(AdvisoryKey::One(1 << 32), AdvisoryMode::Shared, None),
        lock(AdvisoryKey::Two(3, -4), AdvisoryMode::Shared, None),
    ];
    let sql = "SELECT locktype, classid, objid, objsubid, mode, pid, virtualtransaction, granted, fastpath FROM pg_locks";
    assert_eq!(
        asked.answer(sql),
        "advisory|4294967295|4294967295|1|ExclusiveLock|7|org1/0000002a|t|f\n\
         advisory|1|0|1|ShareLock|NULL|org1/0000002a|t|f\n\
         advisory|3|4294967292|2|ShareLock|NULL|org1/0000002a|t|f\n"
    );
    let of_own = "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database WHERE l.pid = pg_backend_pid()";
    assert_eq!(asked.answer(of_own), "1\n");
}

#[test]
fn settings_are_shown_with_their_units_or_in_them() {
    let asked = Asked::new();
    for (sql, rows) in [
        (
            "SELECT name, setting, unit, vartype, min_val FROM pg_settings",
            "application_name|test|NULL|string|NULL\nwork_mem|4096|kB|integer|64\n",
        ),
        ("SELECT setting FROM pg_show_all_settings() WHERE name = 'work_mem'", "4096\n"),
        ("SELECT current_setting('Work_Mem'), current_setting('is_superuser')", "4MB|on\n"),
        ("SELECT current_setting(name) FROM pg_settings ORDER BY name", "test\n4MB\n"),
        (
            "SELECT current_setting(name || 's', true) IS NULL, current_setting(NULL) IS NULL FROM pg_settings",
            "t|t\nt|t\n",
        ),
    ] {
        assert_eq!(asked.answer(sql), rows, "{sql}");
    }
}

#[test]
fn columns_of_the_catalogue_are_told_by_postgresqls_numbers() {
    let asked = Asked::new();
    let query = asked.catalogue.prepare(
        &asked.ledger,
        "SELECT c.relname, c.relnatts + 1 AS next, a.attname AS name FROM pg_class c, pg_attribute a",
        &asked.facts,
        &[],
    );
    let facts = query.expect("prepared").facts_of_columns();
    let numbers: Vec<_> = facts.iter().map(|fact| fact.map(|fact| (fact.relation, fact.attribute))).collect();
    assert_eq!(numbers, [Some((1259, 2)), None, Some((1249, 2))]);
}

#[test]
fn clients_are_told_postgresqls_types() {
    let asked = Asked::new();
    let sql = "WITH RECURSIVE named AS (SELECT oid, relname, relkind FROM pg_class \
               UNION ALL SELECT oid, relname, relkind FROM named WHERE false) \
               SELECT n.*, (SELECT array_agg(a.atttypid) FROM pg_attribute a WHERE a.attrelid = n.oid) AS types, \
               relname::text AS plain, relname[0] AS letter, tableoid FROM named n, pg_am";
    let query = asked.catalogue.prepare(&asked.ledger, sql, &asked.facts, &[]).expect("prepared");
    let told: Vec<(&str, u32)> =
        query.columns().iter().map(|column| (column.name.as_str(), column.data_type.oid())).collect();
    let expected = [
        ("oid", 26),
        ("relname", 19),
        ("relkind", 18),
        ("types", 1028),
        ("plain", 25),
        ("letter", 25),
        ("tableoid", 26),
    ];
    assert_eq!(told, expected);
    let letters = "SELECT relname[0], relname[1] FROM pg_class WHERE relname = 'item'";
    assert_eq!(asked.answer(letters), "i|t\n");
}

#[test]
fn vectors_are_told_to_clients_as_such() {
    let asked = Asked::new();
    let numbers = |sql: &str| {
        let query = asked.catalogue.prepare(&asked.ledger, sql, &asked.facts, &[]).expect("prepared");
        query.type_numbers().to_vec()
    };
    assert!(numbers("SELECT oid FROM pg_class").is_empty());
    assert_eq!(numbers("SELECT indkey, i.indclass AS c FROM pg_index i"), [(0, 22), (1, 30)]);
    assert_eq!(
        asked.answer("SELECT indkey FROM pg_index WHERE indexrelid = 'item_price'::regclass"),
        "3 2\n"
    );
}

#[test]
fn json_is_made_as_in_other_queries() {
    let asked = Asked::new();
    let sql = "SELECT json_build_object('name', relname, 'kinds', ARRAY[relkind], 'inside', json_build_array(1, NULL, true)) AS j, \
               jsonb_build_object('n', relnatts) -> 'n' AS n, row_to_json(x) AS x \
               FROM pg_class, (SELECT 1 AS one) AS x WHERE relname = 'item'";
    let query = asked.catalogue.prepare(&asked.ledger, sql, &asked.facts, &[]).expect("prepared");
    let types: Vec<DataType> = query.columns().iter().map(|column| column.data_type).collect();
    assert_eq!(types, [DataType::Json, DataType::Jsonb, DataType::Json]);
    let answer = asked.answer(sql);
    assert!(
        answer.starts_with(r#"{"name" : "item", "kinds" : ["r"], "inside" : [1, null, true]}|"#)
            && answer.ends_with("{\"one\":1}\n"),
        "{answer}"
    );
}

#[test]
fn moments_are_read_and_written_as_the_session_says() {
    let mut asked = Asked::new();
    let moment = "SELECT '2026-07-01 00:30'::timestamptz::text";
    let in_utc = asked.answer(moment);
    let zone = SessionFormat::default().changed_by("TimeZone", "Asia/Tokyo");
    asked.facts.format = zone.expect("a zone").expect("known");
    let in_tokyo = asked.answer(moment);
    assert_eq!(
        (in_utc.as_str(), in_tokyo.as_str()),
        ("2026-07-01 00:30:00+00\n", "2026-07-01 00:30:00+09\n")
    );
}
