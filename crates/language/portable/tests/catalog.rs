//! Which tables can stand in every database.

mod samples;

use portable::{Comparison, Operator, Term, check_catalog, table_checks};
use samples::{account, boolean, catalog_of, check, column, constant, entry, of_column, serial, table};
use std::collections::BTreeMap;
use std::sync::Arc;
use types::{
    AccessList, Catalog, Charter, Column, CompositeType, DataType, Deferral, ElementType, ForeignKey,
    FunctionResult, Grantee, Index, IndexDetails, Language, MaterializedView, Privileges, Procedure,
    ReferentialAction, Role, SearchPath, Securable, Sequence, SqlError, Table, TableId, Trigger,
    TriggerEvents, TriggerTime, TypeId, TypeKind, UserAggregate, Value, View,
};

fn index(unique: bool) -> Index {
    let details = IndexDetails::default();
    Index {
        number: 9,
        name: "account_name".to_string(),
        columns: vec![5],
        unique,
        constraint: unique,
        details,
        deferral: Deferral::Never,
        primary: false,
        method: types::IndexMethod::Ordered,
    }
}

fn with(columns: Vec<Column>) -> Catalog {
    let first = column("id", DataType::BigInt);
    catalog_of([table(1, "t", std::iter::once(first).chain(columns).collect(), vec![0])])
}

fn keyed(data_type: DataType) -> Catalog {
    catalog_of([table(1, "t", vec![column("id", data_type)], vec![0])])
}

fn named(name: &str) -> Catalog {
    catalog_of([table(1, name, vec![column("id", DataType::BigInt)], vec![0])])
}

fn refusal(catalog: &Catalog) -> SqlError {
    let error = check_catalog(catalog).expect_err("something is not the same everywhere");
    assert_eq!(error.state.to_string(), "0A000", "{error:?}");
    assert!(error.hint.is_some(), "{error:?}");
    error
}

fn assert_refused(catalog: &Catalog, message: &str) {
    let error = refusal(catalog);
    let expected = format!("{message} on a ledger whose databases execute scripts is not supported");
    assert_eq!(error.message, expected);
}

#[test]
fn tables_with_keys_and_plain_indexes_are_accepted() {
    check_catalog(&Catalog::default()).expect("an empty catalog");
    check_catalog(&Catalog::founded(Arc::new(Charter::with_defaults("test", 4)))).expect("a new ledger");
    let mut catalog = catalog_of([account(), entry()]);
    catalog.indexes.insert(TableId(1), vec![index(false)]);
    check_catalog(&catalog).expect("tables");
    let names = [named("a.b_c"), named(&"n".repeat(60))];
    names.iter().for_each(|catalog| check_catalog(catalog).expect("a name"));
    for data_type in
        [DataType::Text(Some(768)), DataType::Numeric(Some((65, 38))), DataType::Date, DataType::Uuid]
    {
        check_catalog(&keyed(data_type)).unwrap_or_else(|error| panic!("{data_type}: {error:?}"));
    }
}

#[test]
fn types_that_are_not_the_same_everywhere_are_refused() {
    for data_type in [
        DataType::Double,
        DataType::Real,
        DataType::Numeric(None),
        DataType::Numeric(Some((66, 2))),
        DataType::Numeric(Some((60, 39))),
        DataType::Numeric(Some((5, -2))),
        DataType::Numeric(Some((2, 5))),
        DataType::Char(Some(3)),
        DataType::VARCHAR,
        DataType::Text(Some(16_384)),
        DataType::Time,
        DataType::Interval,
        DataType::Array(ElementType::new(DataType::BigInt).expect("an element")),
        DataType::Composite(TypeId(1)),
    ] {
        let catalog = with(vec![column("x", data_type)]);
        assert_refused(&catalog, &format!("the type {data_type}"));
        assert_eq!(refusal(&catalog).detail.as_deref(), Some("In column \"x\" of table \"t\"."));
    }
    for data_type in [DataType::Text(None), DataType::Text(Some(769)), DataType::Bytea] {
        let message = format!("column \"id\" of type {data_type} in the primary key");
        assert_refused(&keyed(data_type), &message);
    }
    let two = ["a", "b"].map(|name| column(name, DataType::Text(Some(400))));
    let catalog = catalog_of([table(1, "t", two.to_vec(), vec![0, 1])]);
    assert_refused(&catalog, "column \"b\" of type character varying(400) in the primary key");
}

#[test]
fn tables_that_not_every_database_can_have_are_refused() {
    let unkeyed = catalog_of([table(1, "t", vec![column("id", DataType::BigInt)], Vec::new())]);
    assert_refused(&unkeyed, "table \"t\" without a primary key");
    let mut secured = table(1, "t", vec![column("id", DataType::BigInt)], vec![0]);
    secured.row_security.enabled = true;
    assert_refused(&catalog_of([secured]), "row-level security of table \"t\"");
    assert_refused(&catalog_of([serial()]), "the default nextval('serial_n_seq') of column \"n\"");
    assert_refused(&named("entente_x"), "table \"entente_x\"");
    assert_refused(&named("s.entente_x"), "table \"s.entente_x\"");
    assert_refused(&named("entente.x"), "table \"entente.x\"");
    let long = "n".repeat(59);
    let message = format!("the name \"s_{long}\" of table \"s.{long}\" with 61 bytes");
    assert_refused(&named(&format!("s.{long}")), &message);
    assert_refused(&named("t "), "the name \"t \" of a table");
    assert_refused(&with(vec![column("𝔘", DataType::Date)]), "the name \"𝔘\" of a column");
    let twins = with(vec![column("a", DataType::Date), column("A", DataType::Date)]);
    assert_refused(&twins, "column \"A\" beside column \"a\"");
    let one = |name: &str, id: u32| table(id, name, vec![column("id", DataType::BigInt)], vec![0]);
    assert_refused(&catalog_of([one("s.t", 1), one("s_t", 2)]), "table \"s_t\" beside table \"s.t\"");
    assert_refused(&catalog_of([one("T", 1), one("t", 2)]), "table \"t\" beside table \"T\"");
}

fn procedure(function: bool) -> Procedure {
    let function = function.then_some(types::Function {
        result: FunctionResult::Void,
        is_set: false,
        volatility: types::Volatility::Volatile,
        is_strict: false,
    });
    Procedure {
        name: "p".to_string(),
        parameters: Vec::new(),
        function,
        language: Language::Sql,
        body: String::new(),
        endorsement: None,
        security_definer: false,
        search_path: SearchPath::default(),
        overload: false,
    }
}

fn trigger() -> Trigger {
    Trigger {
        name: "g".to_string(),
        function: "f".to_string(),
        arguments: Vec::new(),
        time: TriggerTime::After,
        events: TriggerEvents::default(),
        columns: Vec::new(),
        per_row: true,
        condition: None,
        old_table: None,
        new_table: None,
        enabled: true,
    }
}

fn foreign_key() -> ForeignKey {
    ForeignKey {
        number: 3,
        name: "k".to_string(),
        columns: vec![0],
        parent: TableId(1),
        referenced: vec![0],
        index: None,
        on_delete: ReferentialAction::NoAction,
        on_update: ReferentialAction::NoAction,
        deferral: Deferral::Never,
        match_full: false,
        valid: true,
        set_on_delete: Vec::new(),
    }
}

fn view() -> View {
    let query = "SELECT 1".to_string();
    View {
        name: "v".to_string(),
        columns: Vec::new(),
        query,
        relations: std::collections::BTreeSet::new(),
        functions: std::collections::BTreeSet::new(),
        check_option: None,
        triggers: std::collections::BTreeMap::new(),
    }
}

fn aggregate() -> UserAggregate {
    UserAggregate {
        name: "g".to_string(),
        arguments: Vec::new(),
        transition: "f".to_string(),
        state: DataType::BigInt,
        initial: None,
        result: None,
        result_takes_arguments: false,
        data_type: DataType::BigInt,
    }
}

fn materialize_first(catalog: &mut Catalog) {
    let materialized = MaterializedView { view: view(), is_populated: true };
    let table = catalog.tables.values_mut().next().expect("there are some");
    Arc::make_mut(table).materialized = Some(Arc::new(materialized));
}

#[test]
fn everything_but_tables_is_refused_by_name() {
    type Change = fn(&mut Catalog);
    let changes: [(Change, &str); 14] = [
        (materialize_first, "materialized view \"account\""),
        (|c| drop(c.views.insert("v".into(), Arc::new(view()))), "view \"v\""),
        (
            |c| {
                let sequence = Sequence { name: "q".into(), owner: None, counter: None, cache: 1 };
                c.sequences.insert("q".into(), Arc::new(sequence));
            },
            "sequence \"q\"",
        ),
        (|c| drop(c.procedures.insert("p".into(), Arc::new(procedure(false)))), "procedure \"p\""),
        (|c| drop(c.procedures.insert("p".into(), Arc::new(procedure(true)))), "function \"p\""),
        (|c| drop(c.aggregates.insert("g".into(), Arc::new(aggregate()))), "aggregate \"g\""),
        (
            |c| {
                let made = CompositeType {
                    id: TypeId(1),
                    name: "y".into(),
                    fields: Vec::new(),
                    kind: TypeKind::Composite,
                };
                c.types.insert("y".into(), Arc::new(made));
            },
            "type \"y\"",
        ),
        (
            |c| {
                let triggers = BTreeMap::from([("g".to_string(), Arc::new(trigger()))]);
                c.triggers.insert(TableId(1), triggers);
            },
            "trigger \"g\" of table \"account\"",
        ),
        (
            |c| drop(c.foreign_keys.insert(TableId(1), vec![foreign_key()])),
            "foreign key \"k\" of table \"account\"",
        ),
        (
            |c| drop(c.indexes.insert(TableId(1), vec![index(true)])),
            "UNIQUE constraint \"account_name\" of table \"account\"",
        ),
        (
            |c| drop(c.indexes.insert(TableId(1), vec![Index { constraint: false, ..index(true) }])),
            "unique index \"account_name\" of table \"account\"",
        ),
        (
            |c| {
                let predicate = Some("id > 1".to_string());
                let details = IndexDetails { predicate, ..IndexDetails::default() };
                drop(c.indexes.insert(TableId(1), vec![Index { details, ..index(false) }]));
            },
            "index on an expression or with a condition \"account_name\" of table \"account\"",
        ),
        (
            |c| {
                let role =
                    Role { organisation: 0, login: true, member_of: std::collections::BTreeSet::new() };
                c.roles.by_name.insert("clerk".into(), role);
            },
            "role \"clerk\"",
        ),
        (
            |c| {
                let grants = AccessList::of(Grantee::Public, Privileges::SELECT);
                c.roles.grants.insert(Securable::Relation("account".into()), grants);
            },
            "what PUBLIC was granted on \"account\"",
        ),
    ];
    for (change, message) in changes {
        let mut catalog = catalog_of([account()]);
        change(&mut catalog);
        assert_refused(&catalog, message);
    }
}

fn checked(condition: &str) -> Table {
    Table { checks: vec![check("c", condition)], ..account() }
}

#[test]
fn checks_are_bound() {
    let zero = constant(Value::BigInt(0), DataType::BigInt);
    let left = Box::new(of_column(samples::BALANCE));
    let compared = boolean(Term::Compared(Comparison::GreaterOrEqual, left.clone(), Box::new(zero)));
    let found = table_checks(&checked("(balance >= 0)")).expect("a check");
    assert_eq!(found, [("c".to_string(), compared)]);
    let sum = Term::Arithmetic(Operator::Add, left.clone(), left);
    let found = table_checks(&checked("balance + balance > small AND account.active")).expect("a check");
    let Term::And(parts) = &found[0].1.term else { panic!("{found:?}") };
    assert!(matches!(&parts[0].term, Term::Compared(_, left, _) if left.term == sum));
    assert_eq!(table_checks(&account()).expect("none"), []);
}

#[test]
fn checks_that_are_not_the_same_everywhere_are_refused() {
    for (condition, message) in [
        ("name LIKE 'a%'", "LIKE"),
        ("length(name) > 3", "the function length"),
        ("whole + 1 > 0", "arithmetic of integer that is not the whole value of a column of that type"),
        ("seen < now()", "the time in a CHECK"),
        ("balance / 2 > 0", "the operator /"),
    ] {
        let catalog = catalog_of([checked(condition)]);
        assert_refused(&catalog, message);
        let place = "In the CHECK constraint \"c\" of table \"account\".";
        assert_eq!(refusal(&catalog).detail.as_deref(), Some(place));
    }
    let error = table_checks(&checked("balance")).expect_err("not boolean");
    assert_eq!(error.message, "argument of CHECK must be type boolean, not type bigint");
}

#[test]
fn rows_fit_wherever_they_are() {
    let with = |types: &[DataType]| {
        let mut table = samples::account();
        table.columns.truncate(1);
        for (number, data_type) in types.iter().enumerate() {
            table.columns.push(samples::column(&format!("c{number}"), *data_type));
        }
        let tables = [(table.name.clone(), std::sync::Arc::new(table))].into();
        check_catalog(&Catalog { tables, ..Catalog::default() })
    };
    assert!(with(&[DataType::Text(None), DataType::Text(Some(10_000))]).is_ok());
    assert!(with(&[DataType::Bytea]).is_ok());
    for types in [
        [DataType::Text(None), DataType::Bytea],
        [DataType::Text(Some(9_000)), DataType::Text(Some(9_000))],
        [DataType::Text(None), DataType::Text(Some(16_383))],
    ] {
        let error = with(&types).expect_err("too long");
        assert!(error.message.contains("table \"account\" with rows of up to"), "{}", error.message);
    }
}
