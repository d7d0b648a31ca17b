//! Tests of the parser of bodies.

use crate::plpgsql::ast::*;
use proptest::prelude::*;
use types::limits::NESTING_MAX;
use types::{ExecutionVersion, Severity, SqlError, SqlState};

fn parse(body: &str) -> Result<Body, SqlError> {
    crate::plpgsql::parse(body, ExecutionVersion::NEWEST)
}

/// The statements of `BEGIN … END` around `statements`.
fn statements(statements: &str) -> Vec<Statement> {
    let body = format!("BEGIN {statements} END");
    parse(&body).unwrap_or_else(|error| panic!("{statements}: {error:?}")).block.statements
}

fn only(text: &str) -> StatementKind {
    let mut found = statements(text);
    assert_eq!(found.len(), 1, "{text}");
    found.remove(0).kind
}

fn names(targets: &[Target]) -> Vec<String> {
    targets.iter().map(Target::text).collect()
}

/// The error of a body in which `^` stands in front of the place that the error must point at.
fn refused(marked: &str) -> SqlError {
    let position = marked.chars().position(|character| character == '^').expect("a mark") as u32 + 1;
    let body = marked.replacen('^', "", 1);
    let error = parse(&body).expect_err(&body);
    assert_eq!(error.position, Some(position), "{body}: {error:?}");
    error
}

fn refused_with(marked: &str, state: &str, message: &str) {
    let error = refused(marked);
    assert_eq!(error.state.to_string(), state, "{marked}: {error:?}");
    assert!(error.message.contains(message), "{marked}: {error:?}");
}

#[test]
fn declarations_have_types_defaults_and_marks() {
    let body =
        "DECLARE a integer; B CONSTANT numeric(5,2) NOT NULL := 1.5; \"C\" text = 'x'; d bigint DEFAULT 2;
                r record; e a%TYPE; h accounts%ROWTYPE; f accounts.name%TYPE; g ALIAS FOR $1; BEGIN END";
    let block = parse(body).expect("a body").block;
    let names: Vec<&str> = block.declarations.iter().map(|each| each.name.text.as_str()).collect();
    assert_eq!(names, ["a", "b", "C", "d", "r", "e", "h", "f", "g"]);
    let defaults: Vec<bool> = block.declarations.iter().map(|each| each.default.is_some()).collect();
    assert_eq!(defaults, [false, true, true, true, false, false, false, false, false]);
    assert!(block.declarations[1].constant && block.declarations[1].not_null);
    assert_eq!(block.declarations[4].declared, DeclaredType::Record);
    assert!(
        matches!(&block.declarations[6].declared, DeclaredType::Row(target) if target.text() == "accounts")
    );
    assert!(
        matches!(&block.declarations[7].declared, DeclaredType::Like(target) if target.text() == "accounts.name")
    );
    assert!(matches!(&block.declarations[8].declared, DeclaredType::Alias(target) if target.text() == "$1"));
}

#[test]
fn blocks_nest_and_have_labels() {
    let found = only("<<inside>> DECLARE x integer; BEGIN x := 1; END inside;");
    let StatementKind::Block(block) = found else { panic!("{found:?}") };
    assert_eq!(block.label.map(|label| label.text).as_deref(), Some("inside"));
    assert_eq!((block.declarations.len(), block.statements.len()), (1, 1));
    assert!(parse("<<whole>> BEGIN NULL; END whole;").is_ok());
}

#[test]
fn assignments_are_written_in_two_ways() {
    for text in ["x := 1 + 1;", "x = 1 + 1;", "r.x := 1;", "l.r.x = 1;", "$1 := 2;", "raise := 3;"] {
        assert!(matches!(only(text), StatementKind::Assign { .. }), "{text}");
    }
}

#[test]
fn if_has_branches_and_a_rest() {
    let found = only("IF a THEN NULL; ELSIF b THEN NULL; ELSEIF c THEN NULL; ELSE NULL; NULL; END IF;");
    let StatementKind::If { branches, otherwise } = found else { panic!("{found:?}") };
    assert_eq!((branches.len(), otherwise.len()), (3, 2));
}

#[test]
fn case_compares_or_asks() {
    let found = only("CASE x WHEN 1, 2 THEN NULL; WHEN 3 THEN NULL; ELSE END CASE;");
    let StatementKind::Case { operand, branches, otherwise } = found else { panic!("{found:?}") };
    assert!(operand.is_some() && otherwise.is_some());
    assert_eq!(branches.iter().map(|branch| branch.values.len()).collect::<Vec<_>>(), [2, 1]);
    let found = only("CASE WHEN a = 1 THEN NULL; END CASE;");
    assert!(matches!(found, StatementKind::Case { operand: None, otherwise: None, .. }));
}

#[test]
fn integer_loops_find_their_two_dots() {
    for bounds in ["1..10", "a..b", "1 .. b", "a..10", "-1..-2", "(a + 1)..f(b, 2)", "1.5..2.5", "a.b..c.d"] {
        let found = only(&format!("FOR i IN {bounds} LOOP NULL; END LOOP;"));
        assert!(matches!(found, StatementKind::ForRange { reverse: false, step: None, .. }), "{bounds}");
    }
    let found = only("<<l>> FOR i IN REVERSE 9..1 BY 2 LOOP EXIT l WHEN i = 3; END LOOP l;");
    let StatementKind::ForRange { first, last, step, reverse, .. } = found else { panic!("{found:?}") };
    assert!(reverse);
    let shown = (first.expression.to_string(), last.expression.to_string());
    assert_eq!(shown, ("9".to_string(), "1".to_string()));
    assert_eq!(step.map(|step| step.expression.to_string()).as_deref(), Some("2"));
}

#[test]
fn row_loops_have_a_record_or_scalars() {
    let found = only("FOR a, r.b IN SELECT x, y FROM t WHERE z > 1 ORDER BY x LOOP CONTINUE; END LOOP;");
    let StatementKind::ForRows { targets, query, .. } = found else { panic!("{found:?}") };
    assert_eq!(names(&targets), ["a", "r.b"]);
    let RowSource::Static(query) = query else { panic!("{query:?}") };
    assert_eq!(query.to_string(), "SELECT x, y FROM t WHERE z > 1 ORDER BY x");
}

#[test]
fn handlers_have_conditions_and_statements() {
    let body = "BEGIN NULL; EXCEPTION WHEN division_by_zero OR SQLSTATE '23505' THEN NULL; NULL;
                WHEN null_value_not_allowed THEN NULL; WHEN OTHERS THEN END";
    let handlers = parse(body).expect("a body").block.handlers;
    let conditions: Vec<usize> = handlers.iter().map(|handler| handler.conditions.len()).collect();
    assert_eq!(conditions, [2, 2, 1]);
    assert_eq!(handlers[0].conditions[1], Condition::State(SqlState::UNIQUE_VIOLATION));
    assert_eq!((handlers[0].statements.len(), handlers[2].statements.len()), (2, 0));
    assert_eq!(handlers[2].conditions, [Condition::Others]);
}

#[test]
fn texts_are_executed_with_values_and_targets() {
    let parts = |text: &str| match only(text) {
        StatementKind::Execute { dynamic, into } => {
            (dynamic.arguments.len(), into.map(|into| (into.strict, into.targets.len())))
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(parts("EXECUTE 'SELECT 1';"), (0, None));
    assert_eq!(parts("EXECUTE 'a' || b INTO x, y USING 1, f(2, 3);"), (2, Some((false, 2))));
    assert_eq!(parts("EXECUTE t USING 1 INTO STRICT x;"), (1, Some((true, 1))));
    let found = only("FOR a, b IN EXECUTE 'SELECT $1, 2' USING c LOOP NULL; END LOOP;");
    assert!(matches!(found, StatementKind::ForRows { query: RowSource::Dynamic(_), .. }), "{found:?}");
}

#[test]
fn into_stands_where_postgresql_allows_it() {
    for text in [
        "SELECT a, b INTO STRICT x, y FROM t WHERE c = 1;",
        "SELECT INTO STRICT x, y a, b FROM t WHERE c = 1;",
        "SELECT a, b FROM t WHERE c = 1 INTO STRICT x, y;",
    ] {
        let found = only(text);
        let StatementKind::Sql { statement, into: Some(into), .. } = found else { panic!("{found:?}") };
        assert_eq!(statement.to_string(), "SELECT a, b FROM t WHERE c = 1");
        assert!(into.strict);
        assert_eq!(names(&into.targets), ["x", "y"]);
    }
    let found = only("INSERT INTO t (a) VALUES (1) RETURNING a INTO x;");
    let StatementKind::Sql { statement, into: Some(into), .. } = found else { panic!("{found:?}") };
    assert_eq!(statement.to_string(), "INSERT INTO t (a) VALUES (1) RETURNING a");
    assert_eq!((into.strict, names(&into.targets)), (false, vec!["x".to_string()]));
    assert!(matches!(only("DELETE FROM t;"), StatementKind::Sql { into: None, current_of: None, .. }));
    assert!(matches!(
        only("UPDATE t SET a = 1 WHERE b = 2;"),
        StatementKind::Sql { into: None, current_of: None, .. }
    ));
}

#[test]
fn calls_performs_and_diagnostics_are_read() {
    let found = only("CALL pay(a, f(b, 1) + 2, 'x');");
    let StatementKind::Call { procedure, arguments } = found else { panic!("{found:?}") };
    assert_eq!((procedure.text.as_str(), arguments.len()), ("pay", 3));
    assert!(matches!(only("CALL nothing();"), StatementKind::Call { .. }));
    let found = only("PERFORM 1 FROM t WHERE a = 1;");
    assert!(
        matches!(found, StatementKind::Perform { query } if query.to_string() == "SELECT 1 FROM t WHERE a = 1")
    );
    let found = only("GET DIAGNOSTICS n = ROW_COUNT, m := PG_CONTEXT;");
    let StatementKind::GetDiagnostics { items } = found else { panic!("{found:?}") };
    let items: Vec<(String, DiagnosticsItem)> =
        items.into_iter().map(|(target, item)| (target.text(), item)).collect();
    let expected = [("n", DiagnosticsItem::RowCount), ("m", DiagnosticsItem::Context)];
    assert_eq!(items, expected.map(|(name, item)| (name.to_string(), item)));
    assert!(matches!(only("ASSERT a > 0, 'message';"), StatementKind::Assert { message: Some(_), .. }));
    assert_eq!(only("RETURN;"), StatementKind::Return(None));
    assert!(matches!(only("RETURN x + 1;"), StatementKind::Return(Some(_))));
    assert!(matches!(only("RETURN NEXT;"), StatementKind::ReturnNext(None)));
    assert!(matches!(only("RETURN NEXT x;"), StatementKind::ReturnNext(Some(_))));
    assert!(matches!(only("RETURN QUERY SELECT 1;"), StatementKind::ReturnQuery(RowSource::Static(_))));
    let found = only("RETURN QUERY EXECUTE 'SELECT $1' USING 1;");
    assert!(matches!(found, StatementKind::ReturnQuery(RowSource::Dynamic(_))));
    assert_eq!(only("NULL;"), StatementKind::Null);
}

#[test]
fn raise_has_level_subject_and_options() {
    let raise = |text: &str| match only(text) {
        StatementKind::Raise(raise) => raise,
        other => panic!("{other:?}"),
    };
    let found = raise("RAISE EXCEPTION 'a % b %% c %', x, y USING ERRCODE = '22012', HINT := 'h';");
    assert_eq!(found.level, RaiseLevel::Exception);
    assert!(matches!(&found.subject, RaiseSubject::Format { arguments, .. } if arguments.len() == 2));
    let options: Vec<RaiseOption> = found.options.iter().map(|(option, _)| *option).collect();
    assert_eq!(options, [RaiseOption::ErrorCode, RaiseOption::Hint]);
    for (level, expected) in [
        ("DEBUG", RaiseLevel::Silent),
        ("LOG", RaiseLevel::Silent),
        ("INFO", RaiseLevel::Message(Severity::Info)),
        ("NOTICE", RaiseLevel::Message(Severity::Notice)),
        ("WARNING", RaiseLevel::Message(Severity::Warning)),
    ] {
        assert_eq!(raise(&format!("RAISE {level} 'x';")).level, expected);
    }
    let state = SqlState::DIVISION_BY_ZERO;
    let condition = |name: &str| RaiseSubject::Condition { name: name.to_string(), state };
    assert_eq!(raise("RAISE division_by_zero;").subject, condition("division_by_zero"));
    assert_eq!(raise("RAISE SQLSTATE '22012';").subject, condition("22012"));
    assert_eq!(raise("RAISE USING MESSAGE = 'x';").subject, RaiseSubject::Options);
    assert_eq!(raise("RAISE;").subject, RaiseSubject::Nothing);
}

#[test]
fn options_stand_in_front_of_the_block() {
    let options = |body: &str| parse(body).expect("a body").options;
    assert_eq!(options("BEGIN END"), BodyOptions::default());
    let read = options("-- first\n#variable_conflict use_column\n#print_strict_params on\n<<l>> BEGIN END");
    assert_eq!(read, BodyOptions { conflict: NameConflict::Column, print_strict_params: true });
    assert_eq!(options("#option dump\n#variable_conflict error BEGIN END"), BodyOptions::default());
    refused_with("#variable_conflict ^never BEGIN END", "42601", "syntax error at or near \"never\"");
    refused_with("#^colour red BEGIN END", "42601", "syntax error at or near \"colour\"");
}

#[test]
fn cursors_are_declared_opened_and_moved() {
    let body = "DECLARE a CURSOR FOR SELECT 1; b NO SCROLL CURSOR (x integer, y numeric(5, 2)) IS SELECT x; c refcursor;
                d SCROLL CURSOR FOR SELECT * FROM t; BEGIN END";
    let declarations = parse(body).expect("a body").block.declarations;
    let cursors: Vec<(Option<bool>, usize)> = declarations
        .iter()
        .filter_map(|declaration| match &declaration.declared {
            DeclaredType::Cursor { scroll, parameters, .. } => Some((*scroll, parameters.len())),
            _ => None,
        })
        .collect();
    assert_eq!(cursors, [(None, 0), (Some(false), 2), (Some(true), 0)]);
    let opened = |text: &str| match only(text) {
        StatementKind::Open { scroll, source, .. } => (scroll, source),
        other => panic!("{other:?}"),
    };
    assert_eq!(opened("OPEN c;"), (None, OpenSource::Bound(None)));
    assert!(
        matches!(opened("OPEN c(1, y := 2);").1, OpenSource::Bound(Some(arguments)) if arguments.len() == 2)
    );
    assert!(matches!(
        opened("OPEN c SCROLL FOR SELECT 1;"),
        (Some(true), OpenSource::Query(RowSource::Static(_)))
    ));
    assert!(matches!(opened("OPEN c FOR EXECUTE t USING 1;").1, OpenSource::Query(RowSource::Dynamic(_))));
    let fetched = |text: &str| match only(text) {
        StatementKind::Fetch { cursor, direction, into } => {
            assert_eq!(cursor.text(), "c", "{text}");
            let count = match direction.count {
                FetchCount::Constant(count) => count.to_string(),
                FetchCount::All => "all".to_string(),
                FetchCount::Expression(count) => count.expression.to_string(),
            };
            (direction.kind, count, into.is_some())
        }
        other => panic!("{other:?}"),
    };
    for (text, kind, count) in [
        ("FETCH c INTO x;", FetchKind::Forward, "1"),
        ("FETCH NEXT FROM c INTO x;", FetchKind::Forward, "1"),
        ("FETCH IN c INTO x;", FetchKind::Forward, "1"),
        ("FETCH PRIOR IN c INTO x;", FetchKind::Backward, "1"),
        ("FETCH FIRST FROM c INTO x;", FetchKind::Absolute, "1"),
        ("FETCH LAST FROM c INTO x;", FetchKind::Absolute, "-1"),
        ("FETCH ABSOLUTE n + 1 FROM c INTO x;", FetchKind::Absolute, "n + 1"),
        ("FETCH RELATIVE -2 IN c INTO x;", FetchKind::Relative, "-2"),
        ("FETCH FORWARD FROM c INTO x;", FetchKind::Forward, "1"),
    ] {
        assert_eq!(fetched(text), (kind, count.to_string(), true), "{text}");
    }
    for (text, kind, count) in [
        ("MOVE c;", FetchKind::Forward, "1"),
        ("MOVE ALL FROM c;", FetchKind::Forward, "all"),
        ("MOVE BACKWARD ALL IN c;", FetchKind::Backward, "all"),
        ("MOVE FORWARD 3 FROM c;", FetchKind::Forward, "3"),
        ("MOVE 5 FROM c;", FetchKind::Forward, "5"),
    ] {
        assert_eq!(fetched(text), (kind, count.to_string(), false), "{text}");
    }
    assert!(matches!(only("CLOSE c;"), StatementKind::Close { .. }));
    let found = only("<<l>> FOR r IN c(1) LOOP NULL; END LOOP l;");
    assert!(matches!(found, StatementKind::ForCursor { arguments: Some(_), .. }), "{found:?}");
    let found = only("UPDATE t SET a = 1 WHERE CURRENT OF c RETURNING a INTO x;");
    let StatementKind::Sql { statement, into: Some(_), current_of: Some(cursor) } = found else {
        panic!("{found:?}")
    };
    assert_eq!(
        (statement.to_string().as_str(), cursor.text.as_str()),
        ("UPDATE t SET a = 1 RETURNING a", "c")
    );
    refused_with("BEGIN ^FETCH 2 FROM c INTO x; END", "0A000", "cannot return multiple rows");
    refused_with("BEGIN FETCH NEXT ^c INTO x; END", "42601", "syntax error");
}

#[test]
fn what_is_not_supported_is_refused_by_name() {
    for (body, name) in [
        ("BEGIN ^COMMIT; END", "COMMIT"),
        ("BEGIN ^ROLLBACK; END", "ROLLBACK"),
        ("BEGIN SELECT 1 INTO a^[1]; END", "array"),
        ("BEGIN ^CREATE TABLE t (a integer); END", "CREATE"),
        ("BEGIN ^TRUNCATE t; END", "TRUNCATE"),
        ("BEGIN GET STACKED DIAGNOSTICS x = ^COLUMN_NAME; END", "COLUMN_NAME"),
    ] {
        refused_with(body, "0A000", name);
    }
}

#[test]
fn what_is_wrong_is_refused_as_postgresql_does() {
    for (body, message) in [
        ("BEGIN x := ^; END", "missing expression"),
        ("BEGIN x := 1 +^; END", "syntax error"),
        ("BEGIN x := (1^; END", "mismatched parentheses"),
        ("BEGIN IF a LOOP NULL^; END IF; END", "missing \"THEN\""),
        ("BEGIN NULL;^", "syntax error at end of input"),
        ("BEGIN ^foo bar; END", "syntax error at or near \"foo\""),
        ("BEGIN SELECT a INTO x ^INTO y FROM t; END", "INTO specified more than once"),
        ("BEGIN SELECT a FORM ^t; END", "syntax error at or near \"t\""),
        ("BEGIN ^EXIT; END", "EXIT cannot be used outside a loop"),
        ("BEGIN ^CONTINUE; END", "CONTINUE cannot be used outside a loop"),
        ("BEGIN LOOP EXIT ^nowhere; END LOOP; END", "there is no label \"nowhere\""),
        ("<<b>> BEGIN LOOP CONTINUE ^b; END LOOP; END", "cannot be used in CONTINUE"),
        ("<<a>> BEGIN END ^b", "end label \"b\" differs from block's label \"a\""),
        ("BEGIN LOOP EXIT; END LOOP ^x; END", "specified for unlabeled block"),
        (
            "BEGIN FOR i, j IN 1..2 LOOP NULL; END LOOP; END".replace("i, j", "^i, j").as_str(),
            "only one target",
        ),
        ("BEGIN FOR r IN REVERSE ^SELECT 1 LOOP NULL; END LOOP; END", "cannot specify REVERSE"),
        ("BEGIN RAISE EXCEPTION ^'%'; END", "too few parameters"),
        ("BEGIN RAISE EXCEPTION ^'x', 1; END", "too many parameters"),
        ("BEGIN RAISE SQLSTATE ^'1234'; END", "invalid SQLSTATE"),
        ("BEGIN RAISE 'x' USING ^COLOUR = 'red'; END", "unrecognized RAISE statement option"),
        ("BEGIN GET DIAGNOSTICS x = ^PG_ROUTINE_OID; END", "unrecognized GET DIAGNOSTICS"),
        ("BEGIN END; ^BEGIN END", "syntax error"),
        ("BEGIN x := ^'abc; END", ""),
    ] {
        let error = refused(body);
        assert_eq!(error.state, SqlState::SYNTAX_ERROR, "{body}: {error:?}");
        assert!(error.message.contains(message), "{body}: {error:?}");
    }
    refused_with("BEGIN RAISE ^no_such_condition; END", "42704", "unrecognized exception condition");
    let body = "BEGIN NULL; EXCEPTION WHEN ^no_such_condition THEN NULL; END";
    refused_with(body, "42704", "unrecognized exception condition");
    refused_with("DECLARE ^x integer NOT NULL; BEGIN END", "22004", "must have a default value");
}

#[test]
fn positions_count_characters_over_lines() {
    refused_with("BEGIN\n  -- größer\n  x := 'ü' || ^;\nEND", "42601", "syntax error at or near \";\"");
}

#[test]
fn nesting_has_a_limit() {
    let nested = |levels: usize| format!("{}{}", "BEGIN ".repeat(levels), "END; ".repeat(levels));
    assert!(parse(&nested(NESTING_MAX)).is_ok());
    let error = parse(&nested(NESTING_MAX + 1)).expect_err("too deep");
    assert_eq!(error.state, SqlState::STATEMENT_TOO_COMPLEX);
    let branches = format!("BEGIN {} {} END", "IF a THEN ".repeat(20_000), "END IF; ".repeat(20_000));
    assert!(parse(&branches).is_err());
    let parentheses = format!("BEGIN x := {}1{}; END", "(".repeat(20_000), ")".repeat(20_000));
    assert!(parse(&parentheses).is_err());
    let sum = format!("BEGIN x := 1{}; END", " + 1".repeat(20_000));
    assert!(parse(&sum).is_err());
}

proptest! {
    #[test]
    fn a_soup_of_tokens_never_panics(words in prop::collection::vec(prop::sample::select(vec![
        "BEGIN", "END", "DECLARE", "IF", "THEN", "ELSE", "ELSIF", "LOOP", "FOR", "WHILE", "IN", "..", "1", "x",
        "integer", ":=", "=", ";", ";", "(", ")", "SELECT", "INTO", "FROM", "INSERT", "RAISE", "'%'", ",", "USING",
        "EXIT", "WHEN", "CASE", "CALL", "<<", ">>", "NULL", "$1", ".", "%", "TYPE", "GET", "DIAGNOSTICS", "-",
        "STRICT", "RETURN", "PERFORM", "CURSOR", "OPEN", "FETCH", "MOVE", "CLOSE", "CURRENT", "OF", "ALL", "#", "BY", "REVERSE", "ASSERT", "UPDATE", "SET", "DELETE", "[", "]", "--\n", "'",
    ]), 0..40), spaced: bool) {
        let _ = parse(&words.join(if spaced { " " } else { "" }));
        let _ = parse(&format!("BEGIN {}; END", words.join(" ")));
    }

    #[test]
    fn any_text_never_panics(text in "\\PC{0,60}") {
        let _ = parse(&text);
    }
}
