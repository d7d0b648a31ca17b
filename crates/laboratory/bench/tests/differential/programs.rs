//! Random PL/pgSQL functions. Their loops are bounded; errors are welcome: a function runs in the same order everywhere.

use super::expressions::{Expressions, Scope, Sql, Type};
use super::statements::P;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

const HEAD: &str =
    "CREATE OR REPLACE FUNCTION program(va integer, vt text) RETURNS text LANGUAGE plpgsql AS $body$
DECLARE
  vb integer := 1;
  vu text := '';
  vn numeric := 1.50;
  vf boolean;
  vd date := DATE '2024-02-29';
  vr record;
BEGIN
";
const TAIL: &str = "  RETURN concat_ws('|', va, vb, vt, vu, vn, vf, vd);
END $body$";

/// A function that changes the tables of the test and answers with its variables.
pub fn program() -> Sql {
    body().prop_map(|body| format!("{HEAD}{body}{TAIL}")).boxed()
}

/// Calls with arguments.
pub fn calls() -> impl Strategy<Value = Vec<String>> {
    let call = (-9i32..10, "[ab]{0,2}").prop_map(|(a, t)| format!("SELECT program({a}, '{t}')"));
    vec(call, 1..4)
}

fn variables() -> Scope {
    let of = |name: &str, kind| (name.to_string(), kind);
    vec![
        of("va", Type::Integer),
        of("vb", Type::Integer),
        of("vt", Type::Text),
        of("vu", Type::Text),
        of("vn", Type::Numeric),
        of("vf", Type::Boolean),
        of("vd", Type::Date),
    ]
}

fn body() -> Sql {
    let mut expressions = Expressions::new(&variables(), 2);
    // PL/pgSQL reads a condition up to the next THEN or LOOP: a CASE needs parentheses.
    expressions.boolean = expressions.boolean.prop_map(|condition| format!("({condition})")).boxed();
    let simple = simple(&expressions);
    let block = |statement: &Sql| vec(statement.clone(), 0..4).prop_map(|all| all.concat()).boxed();
    let mut statement = simple.clone();
    for depth in 0..2 {
        let inner = block(&statement);
        // Only inside of a loop can it be left.
        let leave = (select(vec!["EXIT", "CONTINUE"]), expressions.boolean.clone())
            .prop_map(|(word, condition)| format!("{word} WHEN {condition};\n"));
        let repeated = prop_oneof![3 => inner.clone(), 1 => (inner.clone(), leave, inner.clone())
            .prop_map(|(before, leave, after)| format!("{before}{leave}{after}"))]
        .boxed();
        statement = prop_oneof![
            4 => simple.clone(),
            2 => branch(&expressions, &inner),
            2 => iteration(&expressions, &repeated, depth),
            1 => handled(&expressions, &inner),
        ]
        .boxed();
    }
    vec(statement, 1..6).prop_map(|all| all.concat()).boxed()
}

fn assignment(expressions: &Expressions) -> Sql {
    prop_oneof![
        (select(vec!["va", "vb"]), expressions.integer.clone())
            .prop_map(|(to, value)| format!("{to} := ({value}) % 100;\n")),
        (select(vec!["vt", "vu"]), expressions.text.clone())
            .prop_map(|(to, value)| format!("{to} := left({value}, 20);\n")),
        expressions.numeric.clone().prop_map(|value| format!("vn := round(({value}) % 10, 4);\n")),
        expressions.boolean.clone().prop_map(|value| format!("vf := {value};\n")),
        expressions.date.clone().prop_map(|value| format!(
            "vd := {value};\nvd := DATE '2024-01-01' + (vd - DATE '2024-01-01') % 1000;\n"
        )),
        // These may fail.
        expressions.integer.clone().prop_map(|value| format!("va := 100 / ({value});\n")),
        expressions.text.clone().prop_map(|value| format!("vb := (vu || {value})::integer % 100;\n")),
    ]
    .boxed()
}

fn simple(expressions: &Expressions) -> Sql {
    let (i, t, b) = (&expressions.integer, &expressions.text, &expressions.boolean);
    let columns = [super::expressions::scope("", &P), variables()].concat();
    let row = Expressions::new(&columns, 1);
    let key = i.clone().prop_map(|value| format!("1 + abs(({value}) % 12)"));
    let raised =
        select(vec!["", " USING ERRCODE = 'division_by_zero'", " USING ERRCODE = 'AB123', DETAIL = vt"]);
    prop_oneof![
        8 => assignment(expressions),
        1 => (t.clone(), raised).prop_map(|(value, using)| format!("RAISE EXCEPTION 'no: %', {value}{using};\n")),
        1 => b.clone().prop_map(|condition| format!("ASSERT {condition}, 'not so';\n")),
        1 => Just("RETURN 'early ' || va;\n".to_string()),
        2 => (row.integer.clone(), row.boolean.clone()).prop_map(|(value, condition)| {
            format!("UPDATE p SET i = ({value}) % 10 WHERE {condition};\nGET DIAGNOSTICS vb = ROW_COUNT;\nvf := FOUND;\n")
        }),
        1 => (key.clone(), t.clone(), i.clone()).prop_map(|(key, text, value)| {
            format!("INSERT INTO q (id, s, p) VALUES ({key}, left({text}, 6), ({value}) % 10) RETURNING id INTO vb;\n")
        }),
        1 => key.clone().prop_map(|key| format!("DELETE FROM q WHERE id = {key};\nvf := FOUND;\n")),
        1 => row.boolean.clone()
            .prop_map(|condition| format!("SELECT max(i), count(*) INTO va, vb FROM p WHERE {condition};\n")),
        1 => (key.clone(), select(vec!["", " STRICT"]))
            .prop_map(|(key, strict)| format!("SELECT s INTO{strict} vu FROM p WHERE id = {key};\n")),
        1 => key.clone().prop_map(|key| {
            format!("SELECT * INTO vr FROM p WHERE id = {key};\nIF FOUND THEN vn := vr.n; vt := vr.s; END IF;\n")
        }),
        1 => i.clone().prop_map(|value| format!("EXECUTE 'SELECT ($1 + 1) % 100' INTO va USING {value};\n")),
        1 => (t.clone(), key.clone()).prop_map(|(value, key)| {
            format!("EXECUTE format('UPDATE p SET s = %L WHERE id = %s', left({value}, 6), {key});\n")
        }),
        // A record whose columns only running tells.
        1 => (key.clone(), i.clone()).prop_map(|(key, value)| {
            format!(
                "EXECUTE 'SELECT * FROM p WHERE id = $1' INTO vr USING {key};\nIF vr.id IS NOT NULL THEN\nvn := vr.n;\n\
                 vt := left(coalesce(vr.s, '') || vr.id, 20);\nUPDATE p SET i = (coalesce(vr.i, 0) + {value}) % 10 \
                 WHERE id = vr.id AND n IS NOT DISTINCT FROM vr.n;\nvf := FOUND;\nEND IF;\n"
            )
        }),
        1 => key.prop_map(|key| format!("PERFORM 1 FROM p WHERE id = {key};\nvf := FOUND;\n")),
    ]
    .boxed()
}

fn branch(expressions: &Expressions, inner: &Sql) -> Sql {
    let (i, b) = (expressions.integer.clone(), expressions.boolean.clone());
    prop_oneof![
        (b.clone(), inner.clone(), b.clone(), inner.clone(), inner.clone()).prop_map(
            |(first, a, second, b, c)| {
                format!("IF {first} THEN\n{a}ELSIF {second} THEN\n{b}ELSE\n{c}END IF;\n")
            }
        ),
        (b, inner.clone()).prop_map(|(condition, a)| format!("IF {condition} THEN\n{a}END IF;\n")),
        // Without ELSE: that none of the cases holds is an error.
        (i.clone(), i, inner.clone(), inner.clone(), any::<bool>()).prop_map(
            |(value, case, a, b, otherwise)| {
                let otherwise = if otherwise { format!("ELSE\n{b}") } else { String::new() };
                format!("CASE ({value}) WHEN ({case}) THEN\n{a}WHEN 1, 2 THEN\n{b}{otherwise}END CASE;\n")
            }
        ),
    ]
    .boxed()
}

fn iteration(expressions: &Expressions, inner: &Sql, depth: usize) -> Sql {
    let counts =
        (select(vec!["1..3", "REVERSE 3..1", "1..5 BY 2", "2..1", "REVERSE 4..0 BY 3"]), inner.clone());
    let each = select(vec![
        "SELECT id, i, s FROM p WHERE i > 0 ORDER BY id",
        "SELECT y.id, y.p AS i, x.s FROM p AS x JOIN q AS y ON x.id = y.p ORDER BY y.id",
        "SELECT g AS id, g * g AS i, 'g' || g AS s FROM generate_series(1, 3) AS g",
    ]);
    prop_oneof![
        2 => counts.prop_map(move |(range, body)| {
            format!("FOR k{depth} IN {range} LOOP\nva := (va + k{depth}) % 100;\n{body}END LOOP;\n")
        }),
        1 => (expressions.boolean.clone(), inner.clone()).prop_map(move |(condition, body)| {
            format!(
                "DECLARE w{depth} integer := 0;\nBEGIN\nWHILE w{depth} < 3 AND {condition} LOOP\n\
                 w{depth} := w{depth} + 1;\n{body}END LOOP;\nEND;\n"
            )
        }),
        2 => (each, any::<bool>(), inner.clone()).prop_map(move |(query, is_text, body)| {
            let query = if is_text { format!("EXECUTE $query${query}$query$") } else { query.to_string() };
            format!(
                "DECLARE e{depth} record;\nBEGIN\nFOR e{depth} IN {query} LOOP\nva := (va + coalesce(e{depth}.i, 7)) % 100;\n\
                 vt := left(vt || coalesce(e{depth}.s, '-'), 20);\n{body}END LOOP;\nEND;\n"
            )
        }),
        1 => (expressions.integer.clone(), inner.clone()).prop_map(move |(value, body)| {
            format!(
                "DECLARE a{depth} integer;\nBEGIN\nFOREACH a{depth} IN ARRAY ARRAY[{value}, vb, 3] LOOP\n\
                 vb := (coalesce(vb, 0) + a{depth}) % 100;\n{body}END LOOP;\nEND;\n"
            )
        }),
    ]
    .boxed()
}

fn handled(expressions: &Expressions, inner: &Sql) -> Sql {
    let which = select(vec![
        "division_by_zero",
        "unique_violation OR check_violation",
        "SQLSTATE 'AB123'",
        "data_exception",
        "no_data_found OR raise_exception",
        "assert_failure",
    ]);
    let last = prop_oneof![
        3 => Just("WHEN OTHERS THEN\nvu := left(SQLSTATE || ' ' || SQLERRM, 40);\n".to_string()),
        1 => Just(String::new()),
        1 => Just("WHEN OTHERS THEN\nRAISE;\n".to_string()),
    ];
    (assignment(expressions), inner.clone(), which, inner.clone(), last)
        .prop_map(|(before, body, which, handler, last)| {
            format!(
                "BEGIN\n{before}{body}EXCEPTION WHEN {which} THEN\nvt := 'handled';\n{handler}{last}END;\n"
            )
        })
        .boxed()
}
