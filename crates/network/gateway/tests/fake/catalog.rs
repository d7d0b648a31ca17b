//! The tables, routines and values that the database has, and what schema changes make of them.

use super::*;

pub(super) fn column(name: &str, data_type: DataType, not_null: bool, default: Option<&str>) -> Column {
    Column { name: name.into(), data_type, not_null, default: default.map(Into::into), generated: false }
}

pub(super) fn check(name: &str, condition: &str) -> Check {
    Check { name: name.into(), condition: condition.into(), valid: true }
}

pub fn catalog() -> Catalog {
    let accounts = Table {
        id: TableId(1),
        name: "accounts".into(),
        columns: vec![
            column("id", DataType::BigInt, true, None),
            column("owner", DataType::Text(Some(64)), true, Some("'nobody'::character varying")),
            column("balance", DataType::Numeric(Some((12, 2))), false, Some("0")),
            column("active", DataType::Boolean, false, Some("true")),
            column("rate", DataType::Double, false, None),
            column("number", DataType::Integer, false, None),
            column("note", DataType::Text(None), false, None),
            column("changed", DataType::TimestampTz, false, Some("now()")),
        ],
        primary_key: vec![0],
        primary_key_name: "accounts_pkey".into(),
        checks: vec![check("accounts_balance_check", "(balance >= 0)")],
        endorsement: None,
        row_security: types::RowSecurity::default(),
        partitioning: None,
        materialized: None,
    };
    let log = Table {
        id: TableId(2),
        name: "Log".into(),
        columns: vec![column("line", DataType::Text(None), false, None)],
        primary_key: Vec::new(),
        primary_key_name: String::new(),
        checks: Vec::new(),
        ..accounts.clone()
    };
    let parameter =
        |name: &str, mode, data_type| Parameter { name: name.into(), mode, data_type, default: None };
    let procedure = Procedure {
        name: "send_payment".into(),
        parameters: vec![
            parameter("source", ParameterMode::In, DataType::BigInt),
            parameter("target", ParameterMode::In, DataType::BigInt),
            parameter("amount", ParameterMode::In, DataType::Numeric(None)),
            parameter("left_over", ParameterMode::InOut, DataType::Numeric(None)),
        ],
        function: None,
        language: Language::PlPgSql,
        search_path: types::SearchPath::default(),
        overload: false,
        body: "\nBEGIN\n  UPDATE accounts SET balance = balance - amount WHERE id = source;\nEND\n".into(),
        endorsement: None,
        security_definer: false,
    };
    let mut catalog = Catalog { version: 1, next_table: 3, ..Catalog::default() };
    catalog.tables.insert(accounts.name.clone(), Arc::new(accounts));
    catalog.tables.insert(log.name.clone(), Arc::new(log));
    catalog.procedures.insert(procedure.name.clone(), Arc::new(procedure));
    let trigger = Trigger {
        name: "noted".into(),
        function: "note".into(),
        arguments: vec!["it's".into()],
        time: TriggerTime::After,
        events: TriggerEvents::default().with(TriggerEvent::Update).with(TriggerEvent::Insert),
        columns: vec!["line".into()],
        per_row: true,
        condition: Some("new.line <> ''".into()),
        old_table: None,
        new_table: None,
        enabled: true,
    };
    let summary = Trigger {
        name: "summary".into(),
        events: TriggerEvents::default().with(TriggerEvent::Delete),
        columns: Vec::new(),
        per_row: false,
        condition: None,
        old_table: Some("gone".into()),
        enabled: false,
        ..trigger.clone()
    };
    let triggers = [trigger, summary].map(|trigger| (trigger.name.clone(), Arc::new(trigger)));
    catalog.triggers.insert(TableId(2), triggers.into());
    catalog
}

pub(super) fn array(element: DataType, values: Vec<Value>) -> Value {
    let element = ElementType::new(element).expect("a type that has arrays");
    Value::Array(Arc::new(Array::new(element, values).expect("small")))
}

/// A row with a value of every type, and one of NULLs.
pub fn every_type() -> (Vec<OutputColumn>, Vec<Vec<Value>>) {
    let columns = [
        ("b", DataType::Boolean),
        ("i", DataType::Integer),
        ("l", DataType::BigInt),
        ("n", DataType::Numeric(Some((10, 3)))),
        ("d", DataType::Double),
        ("t", DataType::Text(None)),
        ("v", DataType::Text(Some(20))),
        ("z", DataType::TimestampTz),
        ("u", DataType::Unknown),
        ("s", DataType::SmallInt),
        ("r", DataType::Real),
        ("a", DataType::Date),
        ("p", DataType::Timestamp),
        ("m", DataType::Time),
        ("e", DataType::Interval),
        ("c", DataType::Char(Some(3))),
        ("y", DataType::Bytea),
        ("q", DataType::Uuid),
        ("ia", DataType::Integer.array().expect("a type that has arrays")),
        ("ta", DataType::Text(None).array().expect("a type that has arrays")),
    ];
    let columns = columns.map(|(name, data_type)| OutputColumn { name: name.into(), data_type }).to_vec();
    let values = vec![
        Value::Boolean(true),
        Value::Integer(-7),
        Value::BigInt(1 << 40),
        Value::Numeric(Numeric::new(-12_345_678, 3)),
        Value::Double(0.1),
        Value::text("naïve\ttext"),
        Value::text("short"),
        Value::TimestampTz(86_400_000_000),
        Value::text("unknown"),
        Value::SmallInt(-2),
        Value::Real(0.1),
        Value::Date(-1),
        Value::Timestamp(86_400_000_001),
        Value::Time(3_600_000_000),
        Value::Interval(Interval { months: 14, days: -3, microseconds: 1 }),
        Value::Char("a  ".into()),
        Value::Bytea([0, 255].into()),
        Value::Uuid([0xa0; 16]),
        array(DataType::Integer, vec![Value::Integer(1), Value::Null]),
        array(DataType::Text(None), vec![Value::text("a b"), Value::text("NULL")]),
    ];
    let nulls = vec![Value::Null; values.len()];
    (columns, vec![values, nulls])
}

/// A table of one column with the next number; `definition` is what stands behind CREATE TABLE.
pub(super) fn create_table(catalog: &mut Catalog, definition: &str) {
    let name = definition.split(['(', ' ']).next().unwrap_or_default().to_string();
    let table = Table {
        id: TableId(catalog.next_table),
        name: name.clone(),
        columns: vec![column("a", DataType::Integer, true, None)],
        primary_key: vec![0],
        primary_key_name: format!("{name}_pkey"),
        checks: Vec::new(),
        endorsement: None,
        row_security: types::RowSecurity::default(),
        partitioning: None,
        materialized: None,
    };
    catalog.next_table += 1;
    catalog.tables.insert(name, Arc::new(table));
}

/// What a statement makes of the catalog; `None` where it changes no schema.
pub(super) fn changed_schema(catalog: &Catalog, lower: &str) -> Option<Catalog> {
    let mut next = catalog.clone();
    if let Some(definition) = lower.strip_prefix("create table ") {
        create_table(&mut next, definition);
    } else if let Some(name) = lower.strip_prefix("create type ") {
        let name = name.strip_suffix(" as (a int)")?.to_string();
        let id = TypeId(next.next_type.max(1));
        next.next_type = id.0 + 1;
        let fields = vec![OutputColumn { name: "a".into(), data_type: DataType::Integer }];
        let made = CompositeType { id, name: name.clone(), fields, kind: TypeKind::default() };
        next.types.insert(name, Arc::new(made));
    } else {
        next.tables.remove(lower.strip_prefix("drop table ")?)?;
    }
    Some(next)
}

/// The tables of a catalog, and temporary ones.
pub(super) fn with_temporary(catalog: &Arc<Catalog>, temporary: &Catalog) -> Arc<Catalog> {
    if temporary.tables.is_empty() {
        return catalog.clone();
    }
    let mut all = Catalog::clone(catalog);
    all.tables.extend(temporary.tables.clone());
    Arc::new(all)
}
