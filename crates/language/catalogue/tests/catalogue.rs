//! The catalogue of a ledger: what it answers, compared with PostgreSQL 15 on the same schema, and the statements of psql and
//! drivers, none of which may fail.

mod support;

use catalogue::{Catalogue, Reader, SessionFacts};
use crypto::SecretKey;
use sql::{Library, TemporaryTables};
use state::PlainState;
use std::sync::Arc;
use support::{Asked, Blocks, assert_answers, changed, context, id, ledger};
use types::{
    Catalog, Charter, Given, Granted, Grantee, Organisation, Payload, Principal, Privileges, Securable,
    SqlState, Value,
};

#[test]
fn it_answers_as_postgresql_does() {
    assert_answers(&Asked::new(), include_str!("answers.txt"));
}

#[test]
fn indexes_are_shown_as_postgresql_shows_them() {
    let asked = Asked { ledger: ledger(include_str!("indexes.sql")), ..Asked::new() };
    assert_answers(&asked, include_str!("index_answers.txt"));
}

#[test]
fn enums_are_shown_with_their_labels() {
    let script = "CREATE SCHEMA s;\nCREATE TYPE s.mood AS ENUM ('sad', 'ok');\nALTER TYPE s.mood ADD VALUE 'meh' BEFORE 'ok';\n\
                  COMMENT ON TYPE s.mood IS 'how it goes';\nCREATE TABLE moods (m s.mood, ms s.mood[])";
    let asked = Asked { ledger: ledger(script), ..Asked::new() };
    let labels = "SELECT e.enumlabel, e.enumsortorder FROM pg_catalog.pg_enum e JOIN pg_type t ON t.oid = e.enumtypid \
                  WHERE t.typname = 'mood' ORDER BY e.enumsortorder";
    assert_eq!(asked.answer(labels), "sad|1\nmeh|2\nok|3\n");
    let types = "SELECT typname, typtype, typcategory, typlen, typbyval, nspname, typelem <> 0, typarray <> 0, typrelid FROM pg_type t \
                 JOIN pg_namespace n ON n.oid = t.typnamespace WHERE typname LIKE '%mood' ORDER BY 1";
    assert_eq!(asked.answer(types), "_mood|b|A|-1|f|s|t|f|0\nmood|e|E|4|t|s|f|t|0\n");
    let columns = "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid \
                   WHERE relname = 'moods' AND attnum > 0 ORDER BY attnum";
    assert_eq!(asked.answer(columns), "m|s.mood\nms|s.mood[]\n");
    let columns = "SELECT column_name, data_type, udt_schema, udt_name FROM information_schema.columns WHERE table_name = 'moods' \
                   ORDER BY ordinal_position";
    assert_eq!(asked.answer(columns), "m|USER-DEFINED|s|mood\nms|ARRAY|s|_mood\n");
    assert_eq!(asked.answer("SELECT obj_description('s.mood'::regtype, 'pg_type')"), "how it goes\n");
}

#[test]
fn domains_are_shown_with_their_constraints() {
    let script = "CREATE DOMAIN positive AS integer DEFAULT 5 NOT NULL CHECK (VALUE > 0);\nCREATE TABLE d (p positive)";
    let asked = Asked { ledger: ledger(script), ..Asked::new() };
    let types = "SELECT typname, typtype, format_type(typbasetype, typtypmod), typnotnull, typdefault, pg_get_constraintdef(c.oid) FROM \
                 pg_type t JOIN pg_constraint c ON c.contypid = t.oid WHERE typname = 'positive'";
    assert_eq!(asked.answer(types), "positive|d|integer|t|5|CHECK (VALUE > 0)\n");
    let domains =
        "SELECT domain_schema, domain_name, data_type, domain_default FROM information_schema.domains";
    assert_eq!(asked.answer(domains), "public|positive|integer|5\n");
    let columns = "SELECT column_name, data_type, udt_name, domain_name FROM information_schema.columns WHERE table_name = 'd'";
    assert_eq!(asked.answer(columns), "p|integer|int4|positive\n");
    let attributes = "SELECT format_type(atttypid, atttypmod) FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid \
                      WHERE relname = 'd' AND attnum > 0";
    assert_eq!(asked.answer(attributes), "positive\n");
}

#[test]
fn a_column_of_a_domain_is_shown_as_one_of_its_type() {
    let script = "CREATE DOMAIN price AS numeric(10, 2) NOT NULL;\nCREATE DOMAIN code AS varchar(5) CHECK (length(VALUE) > 1) \
                  CHECK (VALUE <> 'xx');\nCREATE DOMAIN short AS code;\nCREATE TYPE mood AS ENUM ('sad', 'ok');\n\
                  CREATE DOMAIN good AS mood;\nCREATE TABLE d (p price, c code, s short, g good, n integer)";
    let asked = Asked { ledger: ledger(script), ..Asked::new() };
    let columns = "SELECT column_name, data_type, udt_name, domain_schema, domain_name, is_nullable, numeric_precision, numeric_scale, \
                   character_maximum_length FROM information_schema.columns WHERE table_name = 'd' ORDER BY ordinal_position";
    let expected = [
        "p|numeric|numeric|public|price|NO|10|2|NULL",
        "c|character varying|varchar|public|code|YES|NULL|NULL|5",
        "s|USER-DEFINED|code|public|short|YES|NULL|NULL|NULL",
        "g|USER-DEFINED|mood|public|good|YES|NULL|NULL|NULL",
        "n|integer|int4|NULL|NULL|YES|32|0|NULL",
    ];
    assert_eq!(asked.answer(columns).lines().collect::<Vec<_>>(), expected);
    assert_eq!(
        asked.answer(LIST_OF_DOMAINS).lines().collect::<Vec<_>>(),
        [
            "public|code|character varying(5)|NULL|NULL|NULL|CHECK (length(VALUE) > 1) CHECK (VALUE <> 'xx')",
            "public|good|mood|NULL|NULL|NULL|",
            "public|price|numeric(10,2)|NULL|not null|NULL|",
            "public|short|code|NULL|NULL|NULL|",
        ]
    );
}

/// What psql 15 asks for `\dD`.
const LIST_OF_DOMAINS: &str = r#"
SELECT n.nspname as "Schema",
       t.typname as "Name",
       pg_catalog.format_type(t.typbasetype, t.typtypmod) as "Type",
       (SELECT c.collname FROM pg_catalog.pg_collation c, pg_catalog.pg_type bt
        WHERE c.oid = t.typcollation AND bt.oid = t.typbasetype AND t.typcollation <> bt.typcollation) as "Collation",
       CASE WHEN t.typnotnull THEN 'not null' END as "Nullable",
       t.typdefault as "Default",
       pg_catalog.array_to_string(ARRAY(
         SELECT pg_catalog.pg_get_constraintdef(r.oid, true) FROM pg_catalog.pg_constraint r WHERE t.oid = r.contypid
       ), ' ') as "Check"
FROM pg_catalog.pg_type t
     LEFT JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
WHERE t.typtype = 'd'
      AND n.nspname <> 'pg_catalog'
      AND n.nspname <> 'information_schema'
  AND pg_catalog.pg_type_is_visible(t.oid)
ORDER BY 1, 2;
"#;

/// The catalog of a ledger with these temporary tables.
fn with_temporary(ledger: &Arc<Catalog>, statements: &[&str]) -> Arc<Catalog> {
    let library = Arc::new(Library::new(ledger.clone()).expect("a library"));
    let mut tables = TemporaryTables::default();
    for statement in statements {
        let context = context();
        let payload = Payload::Script { sql: statement.to_string(), parameters: Vec::new() };
        let snapshot = PlainState::new(ledger.clone());
        let ran = tables.run(&Principal::default(), &library, &snapshot, &payload, context);
        ran.expect("about temporary tables").unwrap_or_else(|error| panic!("{statement}: {error:?}"));
    }
    tables.visible(&library).expect("names that are free")
}

#[test]
fn temporary_tables_are_shown_as_postgresql_shows_them() {
    let script = "CREATE SCHEMA s;\nCREATE TABLE s.tt (n integer);\nCREATE TABLE u (id serial PRIMARY KEY);\nCREATE VIEW v AS SELECT id FROM u";
    let ledger = ledger(script);
    let oids = "SELECT oid FROM pg_class WHERE relname IN ('tt', 'u', 'v', 'u_id_seq') AND relpersistence = 'p' ORDER BY oid";
    let plain = Asked { ledger: ledger.clone(), ..Asked::new() };
    let known = with_temporary(
        &ledger,
        &[
            "CREATE TEMP TABLE tt (id serial PRIMARY KEY, a text UNIQUE, b integer CHECK (b > 0))",
            "CREATE TEMP TABLE cc (x integer REFERENCES tt)",
            "CREATE TEMP TABLE pp (k integer) PARTITION BY LIST (k)",
            "CREATE TEMP TABLE pp_1 PARTITION OF pp FOR VALUES IN (1)",
        ],
    );
    let asked = Asked { ledger: known, ..Asked::new() };
    assert_eq!(asked.answer(oids), plain.answer(oids), "the same for whoever asks");
    // As PostgreSQL 15 has them, less the parentheses that it adds to conditions.
    let classes = "SELECT relname, relpersistence, relkind, relnamespace::regnamespace::text, pg_table_is_visible(oid) FROM pg_class \
                   WHERE relnamespace = pg_my_temp_schema() ORDER BY 1";
    assert_eq!(
        asked.answer(classes),
        "cc|t|r|pg_temp_7|t\npp|t|p|pg_temp_7|t\npp_1|t|r|pg_temp_7|t\ntt|t|r|pg_temp_7|t\ntt_a_key|t|i|pg_temp_7|t\n\
         tt_id_seq|t|S|pg_temp_7|t\ntt_pkey|t|i|pg_temp_7|t\n"
    );
    let constraints = "SELECT conname, pg_get_constraintdef(oid), conrelid::regclass::text, confrelid::regclass::text FROM pg_constraint \
                       WHERE connamespace = pg_my_temp_schema() ORDER BY 1";
    assert_eq!(
        asked.answer(constraints),
        "cc_x_fkey|FOREIGN KEY (x) REFERENCES tt(id)|cc|tt\ntt_a_key|UNIQUE (a)|tt|-\ntt_b_check|CHECK (b > 0)|tt|-\n\
         tt_pkey|PRIMARY KEY (id)|tt|-\n"
    );
    for (sql, expected) in [
        (
            "SELECT pg_get_indexdef('tt_pkey'::regclass)",
            "CREATE UNIQUE INDEX tt_pkey ON pg_temp.tt USING btree (id)",
        ),
        (
            "SELECT pg_get_indexdef('tt_pkey'::regclass, 0, true)",
            "CREATE UNIQUE INDEX tt_pkey ON tt USING btree (id)",
        ),
        ("SELECT pg_get_serial_sequence('tt', 'id')", "pg_temp.tt_id_seq"),
        ("SELECT current_schemas(true), current_schema", "{pg_temp_7,pg_catalog,public}|public"),
        (
            "SELECT 'pg_temp.tt'::regclass = 'tt'::regclass, to_regclass('pg_temp.u'), 's.tt'::regclass::text",
            "t|NULL|s.tt",
        ),
        (
            "SELECT table_schema, table_type, is_insertable_into FROM information_schema.tables WHERE table_name = 'cc'",
            "pg_temp_7|LOCAL TEMPORARY|YES",
        ),
        (
            "SELECT unique_constraint_schema FROM information_schema.referential_constraints WHERE constraint_name = 'cc_x_fkey'",
            "pg_temp_7",
        ),
        ("SELECT inhparent::regclass::text FROM pg_inherits WHERE inhrelid = 'pp_1'::regclass", "pp"),
        ("SELECT has_table_privilege('tt', 'INSERT'), pg_is_other_temp_schema(pg_my_temp_schema())", "t|f"),
        (
            "SELECT schema_name FROM information_schema.schemata WHERE schema_name LIKE 'pg_temp%'",
            "pg_temp_7",
        ),
    ] {
        assert_eq!(asked.answer(sql).trim_end(), expected, "{sql}");
    }
    let schemas = asked.ask("SELECT current_schemas(true)").expect("an array");
    assert_eq!(schemas.columns[0].name, "current_schemas");
    // The temporary table hides that of the schema, which alone is known to who has none.
    let visible = "SELECT n.nspname, pg_table_is_visible(c.oid) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
                   WHERE relname = 'tt' ORDER BY 1";
    let in_schema = |asked: Asked| {
        let facts = SessionFacts { search_path: vec!["s".to_string()], ..asked.facts };
        Asked { facts, ..asked }.answer(visible)
    };
    assert_eq!(in_schema(asked), "pg_temp_7|t\ns|f\n");
    assert_eq!(in_schema(plain), "s|t\n");
}

#[test]
fn a_catalog_is_told_from_others_of_the_same_version() {
    let of_block = |statement: &str| {
        let changed = changed(Catalog::clone(&ledger(statement)), "CREATE TABLE all_have (a integer)");
        Arc::new(Catalog { version: u64::MAX - 1, ..Catalog::clone(&changed) })
    };
    let catalogue = Catalogue::default();
    let names: Vec<String> = (0..10).map(|number| format!("of_block_{number}")).collect();
    let blocks = names.iter().map(|name| of_block(&format!("CREATE TABLE {name} (a integer)")));
    let blocks: Vec<Arc<Catalog>> = blocks.collect();
    let sql = "SELECT relname FROM pg_class WHERE relname LIKE 'of_block%' AND relkind = 'r'";
    // One after the other, and back, so that some are made anew.
    for at in (0..10).chain((0..10).rev()) {
        let query = catalogue.prepare(&blocks[at], sql, &Asked::new().facts, &[]).expect("a query");
        let result = catalogue.run(&blocks[at], &Blocks(1), &query, &[], &Reader::default()).expect("rows");
        assert_eq!(result.rows, [[Value::text(names[at].as_str())]]);
    }
}

#[test]
fn names_that_are_words_of_sql_are_quoted_in_definitions() {
    let script = "CREATE TABLE w (\"order\" integer PRIMARY KEY, \"user\" text, plain text, UNIQUE (\"user\", plain));\n\
                  CREATE INDEX w_limit ON w ((\"order\" + 1), \"user\")";
    let asked = Asked { ledger: ledger(script), ..Asked::new() };
    let definitions =
        "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname LIKE 'w_%' ORDER BY conname";
    assert_eq!(asked.answer(definitions), "PRIMARY KEY (\"order\")\nUNIQUE (\"user\", plain)\n");
    assert_eq!(
        asked.answer("SELECT indexdef FROM pg_indexes WHERE indexname = 'w_limit'"),
        "CREATE INDEX w_limit ON public.w USING btree (((\"order\" + 1)), \"user\")\n"
    );
}

#[test]
fn constraints_are_shown_with_when_they_are_held() {
    let script = "CREATE TABLE p (id integer PRIMARY KEY, a integer, b integer, UNIQUE (a, b));\n\
                  CREATE TABLE k (id integer CONSTRAINT k_key PRIMARY KEY DEFERRABLE INITIALLY DEFERRED, \
                  v integer CONSTRAINT k_v UNIQUE DEFERRABLE);\n\
                  CREATE TABLE c (id integer, a integer, b integer, \
                  CONSTRAINT c_id FOREIGN KEY (id) REFERENCES p ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED, \
                  CONSTRAINT c_ab FOREIGN KEY (a, b) REFERENCES p (a, b) MATCH FULL ON DELETE SET NULL (b) DEFERRABLE);\n\
                  ALTER TABLE c ADD CONSTRAINT c_later FOREIGN KEY (b) REFERENCES p ON UPDATE CASCADE NOT VALID;\n\
                  ALTER TABLE c ADD CONSTRAINT c_check CHECK (a > 0) NOT VALID";
    let asked = Asked { ledger: ledger(script), ..Asked::new() };
    // As PostgreSQL 15 has them, less the parentheses that it adds to conditions.
    let constraints = "SELECT conname, contype, condeferrable, condeferred, convalidated, confmatchtype, confdelsetcols, \
                       pg_get_constraintdef(c.oid) FROM pg_constraint c JOIN pg_class r ON r.oid = conrelid \
                       WHERE relname IN ('c', 'k') ORDER BY conname";
    assert_eq!(
        asked.answer(constraints),
        "c_ab|f|t|f|t|f|{3}|FOREIGN KEY (a, b) REFERENCES p(a, b) MATCH FULL ON DELETE SET NULL (b) DEFERRABLE\n\
         c_check|c|f|f|f| |NULL|CHECK (a > 0) NOT VALID\n\
         c_id|f|t|t|t|s|NULL|FOREIGN KEY (id) REFERENCES p(id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED\n\
         c_later|f|f|f|f|s|NULL|FOREIGN KEY (b) REFERENCES p(id) ON UPDATE CASCADE NOT VALID\n\
         k_key|p|t|t|t| |NULL|PRIMARY KEY (id) DEFERRABLE INITIALLY DEFERRED\n\
         k_v|u|t|f|t| |NULL|UNIQUE (v) DEFERRABLE\n"
    );
    let constraints = "SELECT constraint_name, constraint_type, is_deferrable, initially_deferred FROM \
                       information_schema.table_constraints WHERE table_name IN ('c', 'k') ORDER BY 1";
    assert_eq!(
        asked.answer(constraints),
        "c_ab|FOREIGN KEY|YES|NO\nc_check|CHECK|NO|NO\nc_id|FOREIGN KEY|YES|YES\nc_later|FOREIGN KEY|NO|NO\n\
         k_key|PRIMARY KEY|YES|YES\nk_v|UNIQUE|YES|NO\n"
    );
    let matches =
        "SELECT constraint_name, match_option FROM information_schema.referential_constraints ORDER BY 1";
    assert_eq!(asked.answer(matches), "c_ab|FULL\nc_id|NONE\nc_later|NONE\n");
    let indexes = "SELECT r.relname, indisunique, indisprimary, indimmediate FROM pg_index JOIN pg_class r ON r.oid = indexrelid \
                   JOIN pg_class t ON t.oid = indrelid WHERE t.relname IN ('k', 'p') ORDER BY 1";
    assert_eq!(asked.answer(indexes), "k_key|t|t|f\nk_v|t|f|f\np_a_b_key|t|f|t\np_pkey|t|t|t\n");
    let nullable = "SELECT attnotnull FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid WHERE relname = 'k' AND attnum = 1";
    assert_eq!(asked.answer(nullable), "t\n");
}

#[test]
fn views_are_shown_with_what_is_asked_of_rows_and_with_their_triggers() {
    let script = "CREATE TABLE t (a integer);\nCREATE VIEW v AS SELECT a FROM t WHERE a > 0 WITH LOCAL CHECK OPTION;\n\
                  CREATE VIEW w AS SELECT count(*) AS n FROM t;\n\
                  CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';\n\
                  CREATE TRIGGER i INSTEAD OF INSERT OR DELETE ON w FOR EACH ROW EXECUTE FUNCTION f('x')";
    let asked = Asked { ledger: ledger(script), ..Asked::new() };
    // As PostgreSQL 15 has them.
    let options =
        "SELECT relname, reloptions, relhastriggers FROM pg_class WHERE relname IN ('v', 'w') ORDER BY 1";
    assert_eq!(asked.answer(options), "v|{check_option=local}|f\nw|NULL|t\n");
    let views = "SELECT table_name, check_option, is_trigger_updatable, is_trigger_deletable, is_trigger_insertable_into \
                 FROM information_schema.views WHERE table_schema = 'public' ORDER BY 1";
    assert_eq!(asked.answer(views), "v|LOCAL|NO|NO|NO\nw|NONE|NO|YES|YES\n");
    let triggers =
        "SELECT tgname, tgtype, pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = 'w'::regclass";
    let definition =
        "CREATE TRIGGER i INSTEAD OF INSERT OR DELETE ON public.w FOR EACH ROW EXECUTE FUNCTION f('x')";
    assert_eq!(asked.answer(triggers), format!("i|77|{definition}\n"));
    let triggers = "SELECT event_manipulation, action_timing FROM information_schema.triggers ORDER BY 1";
    assert_eq!(asked.answer(triggers), "DELETE|INSTEAD OF\nINSERT|INSTEAD OF\n");
}

#[test]
fn generated_columns_are_shown_with_their_expressions() {
    let script = "CREATE TABLE g (a integer DEFAULT 1, c integer GENERATED ALWAYS AS (a * 2) STORED)";
    let asked = Asked { ledger: ledger(script), ..Asked::new() };
    let columns = "SELECT column_name, column_default, is_generated, generation_expression FROM information_schema.columns \
                   WHERE table_name = 'g' ORDER BY ordinal_position";
    assert_eq!(asked.answer(columns), "a|1|NEVER|NULL\nc|NULL|ALWAYS|a * 2\n");
    let attributes = "SELECT attname, attgenerated, atthasdef, pg_get_expr(adbin, adrelid) FROM pg_attribute a JOIN pg_attrdef d \
                      ON adrelid = attrelid AND adnum = attnum JOIN pg_class c ON c.oid = attrelid WHERE relname = 'g' ORDER BY attnum";
    assert_eq!(asked.answer(attributes), "a||t|1\nc|s|t|a * 2\n");
}

#[test]
fn partitions_are_shown_with_their_bounds() {
    let script =
        "CREATE TABLE t (a integer, b text) PARTITION BY RANGE (a); CREATE TABLE d PARTITION OF t DEFAULT;
        CREATE TABLE p PARTITION OF t FOR VALUES FROM (MINVALUE) TO (-10);
        CREATE TABLE l PARTITION OF t FOR VALUES FROM (10) TO (20) PARTITION BY LIST (b);
        CREATE TABLE l1 PARTITION OF l FOR VALUES IN ('x', NULL)";
    let asked = Asked { ledger: ledger(script), ..Asked::new() };
    let classes = "SELECT relname, relkind, relispartition, pg_get_expr(relpartbound, oid), pg_get_partkeydef(oid) \
                   FROM pg_class WHERE relname IN ('t', 'd', 'p', 'l', 'l1') ORDER BY 1";
    assert_eq!(
        asked.answer(classes),
        "d|r|t|DEFAULT|NULL\nl|p|t|FOR VALUES FROM (10) TO (20)|LIST (b)\nl1|r|t|FOR VALUES IN ('x', NULL)|NULL\n\
         p|r|t|FOR VALUES FROM (MINVALUE) TO ('-10')|NULL\nt|p|f|NULL|RANGE (a)\n"
    );
    let inherits = "SELECT inhrelid::regclass::text, inhparent::regclass::text, inhdetachpending FROM pg_inherits ORDER BY 1";
    assert_eq!(asked.answer(inherits), "d|t|f\nl|t|f\nl1|l|f\np|t|f\n");
    let partitioned = "SELECT partrelid::regclass::text, partstrat, partnatts, partdefid::regclass::text \
                       FROM pg_partitioned_table ORDER BY 1";
    assert_eq!(asked.answer(partitioned), "l|l|1|-\nt|r|1|d\n");
    let tables = "SELECT table_name, table_type FROM information_schema.tables WHERE table_name IN ('t', 'p') ORDER BY 1";
    assert_eq!(asked.answer(tables), "p|BASE TABLE\nt|BASE TABLE\n");
}

#[test]
fn materialized_views_are_shown_as_postgresql_shows_them() {
    let script = "CREATE TABLE t (a integer, b text);
        CREATE MATERIALIZED VIEW kept (x, n) AS SELECT b, count(*) FROM t GROUP BY b WITH NO DATA;
        CREATE UNIQUE INDEX kept_once ON kept (x);
        COMMENT ON MATERIALIZED VIEW kept IS 'what is kept'";
    let asked = Asked { ledger: ledger(script), ..Asked::new() };
    let listed = "SELECT schemaname, matviewname, hasindexes, ispopulated, definition FROM pg_matviews";
    let definition = "SELECT b AS \"x\", count(*) AS \"n\" FROM t GROUP BY b";
    assert_eq!(asked.answer(listed), format!("public|kept|t|f| {definition};\n"));
    let class = "SELECT relname, relkind, relispopulated, relhasrules, relam, obj_description(oid, 'pg_class') FROM pg_class
        WHERE relname IN ('t', 'kept', 'kept_once') ORDER BY 1";
    assert_eq!(asked.answer(class), "kept|m|f|t|2|what is kept\nkept_once|i|t|f|403|NULL\nt|r|t|f|2|NULL\n");
    assert_eq!(asked.answer("SELECT pg_get_viewdef('kept'::regclass)"), format!(" {definition};\n"));
    let columns = "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'kept'::regclass AND attnum > 0";
    assert_eq!(asked.answer(columns), "x|text\nn|bigint\n");
    // Neither tables nor views, as in PostgreSQL.
    let others = "SELECT (SELECT count(*) FROM pg_views WHERE viewname = 'kept'), (SELECT count(*) FROM pg_tables WHERE tablename = 'kept'),
        (SELECT count(*) FROM information_schema.tables WHERE table_name = 'kept')";
    assert_eq!(asked.answer(others), "0|0|0\n");
    let reads = "SELECT c.relname FROM pg_depend d JOIN pg_rewrite r ON r.oid = d.objid JOIN pg_class c ON c.oid = d.refobjid
        WHERE r.ev_class = 'kept'::regclass AND d.deptype = 'n'";
    assert_eq!(asked.answer(reads), "t\n");
}

#[test]
fn what_is_read_in_other_words_is_shown_in_its_own() {
    let tables = "CREATE TABLE t (a integer, b text); CREATE TYPE kind AS ENUM ('x')";
    let query = "SELECT a, 'x'::kind AS k, sum(a) OVER (PARTITION BY b ORDER BY a ROWS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE TIES) AS f, \
                 count(*) OVER w AS g, max(a) OVER (ORDER BY a RANGE ('1') PRECEDING EXCLUDE CURRENT ROW) AS h FROM ONLY(t) \
                 WINDOW w AS (ORDER BY a GROUPS 2 PRECEDING EXCLUDE GROUP) ORDER BY a FETCH FIRST (1 + 1) ROWS WITH TIES";
    let definition = |script: &str| {
        let asked = Asked { ledger: ledger(script), ..Asked::new() };
        let shown = asked.answer("SELECT pg_get_viewdef('v'::regclass)");
        let listed = asked.answer("SELECT definition FROM pg_views WHERE viewname = 'v'");
        assert_eq!(shown, listed);
        shown.trim().trim_end_matches(';').to_string()
    };
    let first = format!("{tables}; CREATE VIEW v AS {query}");
    assert_eq!(definition(&first), query);
    // What is shown makes the same view again.
    assert_eq!(definition(&format!("{tables}; CREATE VIEW v AS {}", definition(&first))), query);
    // And it stays so when the query is written anew for what it names.
    let renamed = definition(&format!("{first}; ALTER TYPE kind RENAME TO sort; ALTER TABLE t RENAME TO u"));
    let expected = query.replace("'x'::kind", "'x'::\"sort\"").replace("ONLY(t)", "ONLY(\"u\") AS \"t\"");
    assert_eq!(renamed, expected);
    let moved = definition(&format!("CREATE SCHEMA s; {first}; ALTER TABLE t SET SCHEMA s"));
    assert_eq!(moved, query.replace("ONLY(t)", "ONLY(\"s\".\"t\")"));
}

#[test]
fn schemas_are_shown_as_databases_to_connect_to() {
    let asked = Asked { ledger: ledger("CREATE SCHEMA shop"), ..Asked::new() };
    assert_eq!(asked.answer("SELECT datname FROM pg_database ORDER BY 1"), "entente\nshop\n");
}

#[test]
fn what_stands_earlier_in_the_path_hides_the_rest() {
    let function = |schema: &str, argument: &str| {
        format!("CREATE FUNCTION {schema}.f(a {argument}) RETURNS integer LANGUAGE sql AS 'SELECT 1'")
    };
    let script = [
        "CREATE SCHEMA app".to_string(),
        "CREATE SCHEMA other".to_string(),
        "CREATE TABLE app.t (a integer)".to_string(),
        "CREATE TABLE public.t (a integer)".to_string(),
        "CREATE TABLE public.u (a integer)".to_string(),
        "CREATE TABLE other.v (a integer)".to_string(),
        function("app", "integer"),
        function("public", "integer"),
        function("public", "text"),
        function("other", "boolean"),
    ];
    let mut asked = Asked { ledger: ledger(&script.join(";\n")), ..Asked::new() };
    let tables = "SELECT n.nspname || '.' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
         WHERE n.nspname IN ('app', 'public', 'other') AND pg_table_is_visible(c.oid) ORDER BY 1";
    let types = "SELECT n.nspname || '.' || t.typname FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace \
         WHERE n.nspname IN ('app', 'public', 'other') AND t.typrelid > 0 AND pg_type_is_visible(t.oid) ORDER BY 1";
    let functions = "SELECT n.nspname || '.' || pg_get_function_arguments(p.oid) FROM pg_proc p \
         JOIN pg_namespace n ON n.oid = p.pronamespace WHERE p.proname = 'f' AND pg_function_is_visible(p.oid) ORDER BY 1";
    let mut check = |path: &[&str], of_tables: &str, of_functions: &str| {
        asked.facts.search_path = path.iter().map(|schema| schema.to_string()).collect();
        let lines = |sql: &str| asked.answer(sql).replace('\n', " ");
        assert_eq!(lines(tables).trim_end(), of_tables, "{path:?}");
        assert_eq!(lines(types).trim_end(), of_tables, "{path:?}");
        assert_eq!(lines(functions).trim_end(), of_functions, "{path:?}");
    };
    check(&["app", "public"], "app.t public.u", "app.a integer public.a text");
    check(&["public", "app"], "public.t public.u", "public.a integer public.a text");
    check(&["public"], "public.t public.u", "public.a integer public.a text");
    check(&["app", "other"], "app.t other.v", "app.a integer other.a boolean");
}

#[test]
fn statements_of_psql_and_drivers_do_not_fail() {
    let asked = Asked::new();
    let files = [
        include_str!("statements/psql.sql"),
        include_str!("statements/jdbc.sql"),
        include_str!("statements/sqlalchemy.sql"),
        include_str!("statements/dbeaver.sql"),
    ];
    for statement in files.iter().flat_map(|file| file.split("\n;;\n")) {
        if let Err(error) = asked.ask(statement) {
            panic!("{error:?}\n{statement}");
        }
    }
}

#[test]
fn every_relation_can_be_read() {
    let asked = Asked::new();
    let names = asked.answer(
        "SELECT quote_ident(n.nspname) || '.' || quote_ident(c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
         WHERE n.nspname IN ('pg_catalog', 'information_schema') ORDER BY 1",
    );
    assert!(names.lines().count() > 150, "{names}");
    for name in names.lines() {
        let columns = asked.ask(&format!("SELECT * FROM {name}")).unwrap_or_else(|e| panic!("{name}: {e:?}"));
        let described = asked.answer(&format!(
            "SELECT attname FROM pg_attribute WHERE attrelid = '{name}'::regclass AND attnum > 0 ORDER BY attnum"
        ));
        let columns: Vec<&str> = columns.columns.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(described.lines().collect::<Vec<&str>>(), columns, "{name}");
    }
}

/// Five organisations, `org1` to `org5`.
fn charter_of_five() -> Charter {
    let mut charter = Charter::with_defaults("test", 1);
    charter.outcome_lag_blocks = 2;
    for number in 0..5_u8 {
        charter.organisations.push(Organisation {
            name: format!("org{}", number + 1),
            root_key: SecretKey::from_bytes([10 + number; 32]).public_key(),
            node_key: SecretKey::from_bytes([20 + number; 32]).public_key(),
            address: "127.0.0.1:1".to_string(),
            gateway: String::new(),
            removed: false,
            node_key_expires: None,
        });
    }
    charter
}

#[test]
fn policies_are_shown_with_the_roles_and_organisations_that_they_are_for() {
    let mut charter = charter_of_five();
    charter.governance = "any".to_string();
    let script = "CREATE TABLE doc (id int PRIMARY KEY, owner text); CREATE ROLE ann;\n\
                  CREATE POLICY b ON doc FOR UPDATE TO ann, org2 USING (owner = current_user) WITH CHECK (id > 0);\n\
                  CREATE POLICY a ON doc AS RESTRICTIVE USING ((id > 1) AND (id < 9)); ALTER TABLE doc ENABLE ROW LEVEL SECURITY";
    let asked = Asked { ledger: changed(Catalog::founded(Arc::new(charter)), script), ..Asked::new() };
    let listed = "SELECT policyname, permissive, array_to_string(roles, '+'), cmd, qual, with_check FROM pg_policies ORDER BY 1";
    assert_eq!(
        asked.answer(listed),
        "a|RESTRICTIVE|public|ALL|((id > 1) AND (id < 9))|NULL\n\
         b|PERMISSIVE|ann+org2|UPDATE|(owner = current_user)|(id > 0)\n"
    );
    let psql = "SELECT pol.polname, pol.polpermissive, CASE WHEN pol.polroles = '{0}' THEN NULL ELSE pg_catalog.array_to_string(array(\
                select rolname from pg_catalog.pg_roles where oid = any (pol.polroles) order by 1),',') END, \
                pg_catalog.pg_get_expr(pol.polqual, pol.polrelid), pg_catalog.pg_get_expr(pol.polwithcheck, pol.polrelid), pol.polcmd \
                FROM pg_catalog.pg_policy pol WHERE pol.polrelid = 'doc'::regclass ORDER BY 1";
    assert_eq!(
        asked.answer(psql),
        "a|f|NULL|((id > 1) AND (id < 9))|NULL|*\nb|t|ann,org2|(owner = current_user)|(id > 0)|w\n"
    );
    let flags = "SELECT relrowsecurity, relforcerowsecurity FROM pg_class WHERE relname = 'doc'";
    assert_eq!(asked.answer(flags), "t|f\n");
}

#[test]
fn privileges_are_shown_with_grantors_and_on_columns() {
    let script = "CREATE TABLE item (id int PRIMARY KEY, name text, price numeric(10,2)); \
                  CREATE VIEW seen AS SELECT id, name FROM item; CREATE ROLE ann; CREATE ROLE bob;\n\
                  GRANT SELECT (id, name), UPDATE (price) ON item TO ann WITH GRANT OPTION; \
                  GRANT INSERT ON item TO bob WITH GRANT OPTION; GRANT SELECT (id) ON seen TO PUBLIC";
    let mut catalog = Catalog::clone(&ledger(script));
    // Roles grant as well.
    let by = |grantee: &str, grantor: &str| Given {
        grantee: Grantee::Role(grantee.to_string()),
        grantor: Some(grantor.to_string()),
    };
    let (item, id) = (Securable::Relation("item".to_string()), Securable::column("item", "id"));
    catalog.roles.list_mut(item).give(by("ann", "bob"), Granted::plain(Privileges::INSERT));
    catalog.roles.list_mut(id).give(by("bob", "ann"), Granted::plain(Privileges::SELECT));
    let asked = Asked { ledger: Arc::new(catalog), ..Asked::new() };
    assert_answers(&asked, include_str!("privilege_answers.txt"));
    for (sql, expected) in [
        (
            "SELECT has_column_privilege('ann', 'item', 'zz', 'select')",
            "42703 column \"zz\" of relation \"item\" does not exist",
        ),
        (
            "SELECT has_column_privilege('ann', 'item', 'id', 'delete')",
            "22023 unrecognized privilege type: \"delete\"",
        ),
    ] {
        let error = asked.ask(sql).expect_err(sql);
        assert_eq!(format!("{} {}", error.state, error.message), expected, "{sql}");
    }
}

#[test]
fn what_waits_for_consent_is_shown_with_who_is_missing() {
    let mut charter = charter_of_five();
    let proposals = "CREATE TABLE t (id bigint);\nSELECT entente.set_charter('block.fill_ms', 30);\n\
                     SELECT entente.remove_organisation('org5');\nSELECT entente.withdraw(2)";
    let founded = Catalog::founded(Arc::new(charter.clone()));
    let asked = Asked { ledger: changed(founded, proposals), ..Asked::new() };
    assert_eq!(
        asked.answer(
            "SELECT number, organisation, state, array_to_string(approved_by, '+'), missing, decided_height, statement \
             FROM entente.proposals ORDER BY number"
        ),
        "1|org1|open|org1|2 of (org2, org3, org4, org5)|NULL|CREATE TABLE t (id bigint)\n\
         2|org1|withdrawn|org1|NULL|1|SELECT entente.set_charter('block.fill_ms', '30')\n\
         3|org1|open|org1|2 of (org2, org3, org4, org5)|NULL|SELECT entente.remove_organisation('org5')\n"
    );
    assert_eq!(asked.answer("SELECT count(*) FROM entente.organisations WHERE member"), "5\n");

    charter.governance = "any".to_string();
    let founded = Catalog::founded(Arc::new(charter));
    let asked =
        Asked { ledger: changed(founded, "SELECT entente.remove_organisation('org5')"), ..Asked::new() };
    assert_eq!(
        asked.answer(
            "SELECT number, effective_height, array_to_string(organisations, '+') FROM entente.charters ORDER BY 1"
        ),
        "0|0|org1+org2+org3+org4+org5\n1|13|org1+org2+org3+org4\n"
    );
    assert_eq!(asked.answer("SELECT name FROM entente.organisations WHERE NOT member"), "org5\n");
}

#[test]
fn receipts_are_proved_by_their_ids() {
    let asked = Asked::new();
    let proof = |id: &str| format!("{{\"transaction\":\"{id}\"}}\n");
    let (one, two) = (id(7, 0), id(7, 1));
    assert_eq!(asked.answer(&format!("SELECT entente.proof('{one}')")), proof(&one));
    assert_eq!(asked.answer(&format!("SELECT Entente.Proof('{two}') AS p")), proof(&two));
    let all = "SELECT entente.proof(id) FROM entente.transactions WHERE height = 7 AND index = 1";
    assert_eq!(asked.answer(all), proof(&two));
    assert_eq!(asked.answer("SELECT entente.proof(NULL) IS NULL"), "t\n");
    let error = asked.ask("SELECT entente.proof('nothing')").expect_err("no such receipt");
    assert_eq!((error.state, error.hint.as_deref()), (SqlState::NO_DATA_FOUND, Some("Wait.")));
}

#[test]
fn rows_are_proved_by_their_tables_and_keys_of_whatever_types() {
    let mut asked = Asked::new();
    asked.facts.role = "reader".to_string();
    let expect =
        |sql: &str, expected: &str| assert_eq!(asked.answer(sql), format!("reader {expected}\n"), "{sql}");
    expect("SELECT entente.proof('item', 7)", "item [\"7\"]");
    expect(
        "SELECT entente.proof('app.item', 'a, \"b\"\\', -1.50, true)",
        "app.item [\"a, \\\"b\\\"\\\\\", \"-1.50\", \"true\"]",
    );
    expect("SELECT entente.proof('item', DATE '2024-02-29') AS p", "item [\"2024-02-29\"]");
    expect("SELECT Entente.PROOF('item', '')", "item [\"\"]");
    let error = asked.ask("SELECT entente.proof('nothing', 1)").expect_err("no checkpoint");
    assert_eq!((error.state, error.hint.as_deref()), (SqlState(*b"55000"), Some("CHECKPOINT")));
    let error = asked.ask("SELECT entente.proof('item', NULL)").expect_err("null");
    assert_eq!(error.state, SqlState(*b"22004"));
    let all = "SELECT entente.proof('item', height) FROM entente.blocks WHERE height < 3 ORDER BY height";
    assert_eq!(asked.answer(all), "reader item [\"1\"]\nreader item [\"2\"]\n");
}

#[test]
fn the_history_is_read_as_far_as_it_is_asked_for() {
    let asked = Asked::new();
    assert_eq!(
        asked.answer("SELECT height, proposer FROM entente.blocks ORDER BY height DESC LIMIT 2"),
        "1000|org1\n999|org1\n"
    );
    assert_eq!(asked.answer("SELECT height FROM entente.blocks WHERE height BETWEEN 5 AND 7"), "7\n6\n5\n");
    assert_eq!(
        asked.answer("SELECT count(*), min(height), max(height) FROM entente.blocks"),
        "1000|1|1000\n"
    );
    assert_eq!(
        asked.answer("SELECT count(*) FROM entente.blocks WHERE height > 990 AND height < 5000"),
        "10\n"
    );
    assert_eq!(asked.answer("SELECT count(*) FROM entente.blocks WHERE height < 0 OR height > 1000"), "0\n");
    assert_eq!(asked.answer("SELECT count(*) FROM entente.transactions"), "2000\n");
    assert_eq!(
        asked.answer(
            "SELECT height, index FROM entente.transactions ORDER BY height DESC, index DESC LIMIT 3"
        ),
        "1000|1\n1000|0\n999|1\n"
    );
    let by_id =
        |id: &str| asked.answer(&format!("SELECT height, index FROM entente.transactions WHERE id = '{id}'"));
    assert_eq!(by_id(&id(77, 1)), "77|1\n");
    assert_eq!(by_id("none"), "");
    assert_eq!(
        asked.answer("SELECT b.height, count(*) FROM entente.blocks b JOIN entente.transactions t USING (height) WHERE b.height <= 2 GROUP BY b.height ORDER BY 1"),
        "1|2\n2|2\n"
    );
    assert_eq!(
        asked.answer("SELECT height, index FROM entente.transactions WHERE height = 3 AND index = 1"),
        "3|1\n"
    );
    assert_eq!(asked.answer("SELECT organisation FROM entente.nodes"), "org1\n");
}

#[test]
fn what_it_cannot_do_is_refused_by_name() {
    let asked = Asked::new();
    let refused = |sql: &str| asked.ask(sql).expect_err("refused");
    let error = refused("SELECT * FROM item, pg_class");
    assert_eq!(error.state, SqlState::FEATURE_NOT_SUPPORTED);
    assert!(error.message.contains("\"item\" together with the catalogue"), "{}", error.message);
    assert_eq!(refused("SELECT * FROM pg_catalog.pg_nothing").state, SqlState::UNDEFINED_TABLE);
    assert_eq!(refused("SELECT nothing FROM pg_class").state, SqlState::UNDEFINED_COLUMN);
    assert_eq!(refused("SELECT 'nothing'::regclass").state, SqlState::UNDEFINED_TABLE);
    assert_eq!(refused("SELECT pg_nothing(oid) FROM pg_class").state, SqlState::UNDEFINED_FUNCTION);
    assert_eq!(refused("INSERT INTO pg_class VALUES (1)").state, SqlState::FEATURE_NOT_SUPPORTED);
    for other in ["pg_terminate_backend", "pg_cancel_backend"] {
        let error = refused(&format!("SELECT pg_catalog.{other}(7)"));
        assert_eq!(error.state, SqlState::FEATURE_NOT_SUPPORTED);
        assert!(error.hint.is_some_and(|hint| hint.contains("its client")));
    }
    assert_eq!(refused("SELECT current_setting('no.such')").state, SqlState(*b"42704"));
    assert_eq!(refused("SELECT current_setting('no.such', false)").state, SqlState(*b"42704"));
    let error = refused("SELECT current_setting(name || 's') FROM pg_settings");
    assert_eq!(error.state, SqlState(*b"42704"));
    assert_eq!(error.message, "unrecognized configuration parameter \"application_names\"");
}

#[test]
fn extensions_have_what_dumps_leave_out() {
    let asked = Asked::new();
    let members = "SELECT e.extname, d.classid::regclass, count(*) FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid \
                   WHERE d.deptype = 'e' GROUP BY 1, 2 ORDER BY 1, 2";
    assert_eq!(
        asked.answer(members),
        "entente|pg_class|7\nentente|pg_namespace|1\nentente|pg_type|2\nplpgsql|pg_language|1\n"
    );
    assert_eq!(
        asked.answer(
            "SELECT acldefault('f', 10), acldefault('r', 10), acldefault('c', 10), acldefault('n', NULL)"
        ),
        "{=X/entente,entente=X/entente}|{entente=arwdDxt/entente}|{}|NULL\n"
    );
}
