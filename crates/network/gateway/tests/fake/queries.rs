//! Statements: what they are bound to, and what they give.

use super::*;

/// What queries, blocks and temporary tables have of the database.
#[derive(Clone)]
pub(super) struct Inside {
    pub(super) catalog: Arc<Mutex<Arc<Catalog>>>,
    pub(super) changes: Arc<AtomicUsize>,
    pub(super) begun: Arc<AtomicUsize>,
    pub(super) interrupted: Arc<AtomicUsize>,
    pub(super) stopped: Arc<AtomicBool>,
    pub(super) released: Arc<AtomicBool>,
    pub(super) handed_out: Arc<AtomicU64>,
    pub(super) fails_at: Arc<AtomicU64>,
    pub(super) lock: Arc<FakeLock>,
}

impl Inside {
    pub(super) fn catalog(&self) -> Arc<Catalog> {
        self.catalog.lock().unwrap().clone()
    }

    pub(super) fn binding(&self) -> Binding {
        binding_of(self.catalog().version)
    }
}

/// The execution version never changes here.
pub(super) fn binding_of(catalog_version: u64) -> Binding {
    Binding { catalog_version, execution_version: ExecutionVersion::CURRENT }
}

pub(super) struct FakeQuery {
    inside: Inside,
    plan: Plan,
    columns: Vec<OutputColumn>,
    binding: Binding,
}

impl BoundQuery for FakeQuery {
    fn run(
        &self,
        _: &str,
        parameters: &[Value],
        interrupt: &Arc<AtomicBool>,
    ) -> Result<Option<StatementResult>, SqlError> {
        let Inside { catalog, changes, interrupted, .. } = &self.inside;
        if changes.load(Ordering::SeqCst) > 0 {
            changes.fetch_sub(1, Ordering::SeqCst);
            let mut catalog = catalog.lock().unwrap();
            *catalog = Arc::new(Catalog { version: catalog.version + 1, ..(**catalog).clone() });
        }
        if self.binding != self.inside.binding() {
            return Ok(None);
        }
        let rows = match &self.plan {
            Plan::EveryType => every_type().1,
            Plan::Echo => vec![parameters.to_vec()],
            Plan::Noticed => (1..=2).map(|n| vec![Value::Integer(n)]).collect(),
            Plan::Row(row) => vec![row.clone()],
            Plan::Series(count) => (1..=*count).map(|n| vec![Value::Integer(n)]).collect(),
            Plan::Slow => {
                for _ in 0..6_000 {
                    if interrupt.load(Ordering::Relaxed) {
                        interrupted.fetch_add(1, Ordering::Relaxed);
                        break;
                    }
                    std::thread::sleep(Duration::from_millis(10));
                }
                Vec::new()
            }
            Plan::Write => panic!("a write was given to query"),
        };
        let (tag, columns) = (format!("SELECT {}", rows.len()), self.columns.clone());
        Ok(Some(StatementResult { tag, columns, rows, notices: Vec::new() }))
    }

    fn visit_rows(
        &self,
        role: &str,
        parameters: &[Value],
        interrupt: &Arc<AtomicBool>,
        visit: &mut dyn FnMut(Vec<Value>) -> ControlFlow<()>,
    ) -> Result<Option<Vec<Notice>>, SqlError> {
        let Inside { changes, handed_out, fails_at, stopped, .. } = &self.inside;
        let is_current = changes.load(Ordering::SeqCst) == 0 && self.binding == self.inside.binding();
        let rows: Box<dyn Iterator<Item = Vec<Value>>> = match &self.plan {
            // Nobody has them all.
            Plan::Series(count) if is_current => Box::new((1..=*count).map(|n| vec![Value::Integer(n)])),
            _ => match self.run(role, parameters, interrupt)? {
                Some(result) => Box::new(result.rows.into_iter()),
                None => return Ok(None),
            },
        };
        for row in rows {
            let number = handed_out.fetch_add(1, Ordering::SeqCst) + 1;
            if number == fails_at.load(Ordering::SeqCst) {
                return Err(SqlError::new(SqlState(*b"22012"), "division by zero"));
            }
            if visit(row).is_break() {
                stopped.store(true, Ordering::SeqCst);
                break;
            }
        }
        let report = SqlError::new(SqlState(*b"00000"), "two rows");
        let notice = Notice { severity: Severity::Notice, report };
        Ok(Some(if matches!(self.plan, Plan::Noticed) { vec![notice] } else { Vec::new() }))
    }
}

pub(super) enum Plan {
    EveryType,
    Echo,
    Noticed,
    Row(Vec<Value>),
    Series(i32),
    Slow,
    Write,
}

/// `VALUES (1 + 1, 'x')`: sums of numbers, and texts.
pub(super) fn values(lower: &str) -> Option<(Vec<OutputColumn>, Vec<Value>)> {
    let list = lower.strip_prefix("values (")?.strip_suffix(")")?;
    let value = |text: &str| match text.trim().strip_prefix('\'') {
        Some(text) => Value::text(text.trim_end_matches('\'')),
        None => Value::Integer(text.split('+').filter_map(|number| number.trim().parse::<i32>().ok()).sum()),
    };
    let row: Vec<Value> = list.split(',').map(value).collect();
    let column = |(at, value): (usize, &Value)| OutputColumn {
        name: format!("column{}", at + 1),
        data_type: value.data_type(),
    };
    Some((row.iter().enumerate().map(column).collect(), row))
}

/// `SELECT CAST(NULL AS type)`.
pub(super) fn null_of(lower: &str) -> Option<Result<DataType, SqlError>> {
    let name = lower.strip_prefix("select cast(null as ")?.strip_suffix(")")?;
    Some(match name {
        "int" => Ok(DataType::Integer),
        "text" => Ok(DataType::Text(None)),
        other => {
            let message = format!("type \"{other}\" does not exist");
            Err(SqlError::new(SqlState(*b"42704"), message).at(21))
        }
    })
}

pub(super) fn tag(sql: &str) -> String {
    let mut words = sql.split_whitespace();
    let first = words.next().unwrap_or_default().to_uppercase();
    match first.as_str() {
        "INSERT" => format!("INSERT 0 {}", sql.matches('(').count().max(1)),
        "CREATE" | "DROP" => format!("{first} {}", words.next().unwrap_or_default().to_uppercase()),
        "UPDATE" | "DELETE" => format!("{first} 1"),
        "SELECT" => "SELECT 1".into(),
        other => other.into(),
    }
}

pub(super) fn describe(
    inside: &Inside,
    catalog_version: u64,
    parameters: Vec<DataType>,
    (kind, columns, plan): (StatementKind, Vec<OutputColumn>, Plan),
) -> Prepared {
    let binding = binding_of(catalog_version);
    let query = FakeQuery { inside: inside.clone(), plan, columns: columns.clone(), binding };
    Prepared {
        parameters,
        columns,
        origins: Vec::new(),
        kind,
        lock: None,
        temporary: false,
        is_given_rows: false,
        restricted_for_roles: None,
        restricted_for_administrators: None,
        binding,
        query: Arc::new(query),
    }
}

pub(super) fn prepare(
    inside: &Inside,
    catalog_version: u64,
    sql: &str,
    types: &[DataType],
) -> Result<Prepared, SqlError> {
    let number = OutputColumn { name: "n".into(), data_type: DataType::Integer };
    let holes = (1..).take_while(|n| sql.contains(&format!("${n}"))).count().max(types.len());
    let parameters: Vec<DataType> =
        (0..holes).map(|n| types.get(n).copied().unwrap_or(DataType::Unknown)).collect();
    if let Some(about_locks) = inside.lock.prepared(sql) {
        return Ok(describe(inside, catalog_version, parameters, about_locks));
    }
    let lower = without_session(sql).to_lowercase();
    if let Some((columns, row)) = values(&lower).filter(|_| !lower.contains("()") && !lower.contains("(*")) {
        return Ok(describe(
            inside,
            catalog_version,
            parameters,
            (StatementKind::Read, columns, Plan::Row(row)),
        ));
    }
    if let Some(null) = null_of(&lower) {
        let columns = vec![OutputColumn { data_type: null?, ..number }];
        let plan = Plan::Row(vec![Value::Null]);
        return Ok(describe(inside, catalog_version, parameters, (StatementKind::Read, columns, plan)));
    }
    let statement = match lower.as_str() {
        "select every_type" => (StatementKind::Read, every_type().0, Plan::EveryType),
        "select version" => {
            let column = OutputColumn { name: format!("v{catalog_version}"), ..number };
            (StatementKind::Read, vec![column], Plan::Series(1))
        }
        "values (count(*))" => {
            let message = "aggregate functions are not allowed in VALUES";
            return Err(SqlError::new(SqlState::GROUPING_ERROR, message).at(9));
        }
        "values (writes())" => (StatementKind::Write, vec![number], Plan::Write),
        "select noticed" => (StatementKind::Read, vec![number], Plan::Noticed),
        "select slow" => (StatementKind::Read, vec![number], Plan::Slow),
        "select missing" => {
            let error = SqlError::new(SqlState::UNDEFINED_COLUMN, "column \"missing\" does not exist");
            return Err(error.at(8).hint("name another"));
        }
        echo if echo.starts_with("select $1") => {
            let columns = parameters.iter().enumerate();
            let columns = columns.map(|(n, t)| OutputColumn { name: format!("c{n}"), data_type: *t });
            (StatementKind::Read, columns.collect(), Plan::Echo)
        }
        explain if explain.starts_with("explain ") => {
            let from = explain.find("delete").unwrap_or(0);
            let plan = vec![Value::text(format!("plan of {}", &explain[from..]))];
            let column = OutputColumn { name: "QUERY PLAN".into(), data_type: DataType::Text(None) };
            (StatementKind::Read, vec![column], Plan::Row(plan))
        }
        series if series.starts_with("select series ") => {
            let count = series.trim_start_matches("select series ").parse().unwrap_or(0);
            (StatementKind::Read, vec![number], Plan::Series(count))
        }
        call if call.starts_with("call out") => {
            (StatementKind::Write, vec![OutputColumn { name: "x".into(), ..number }], Plan::Write)
        }
        other => match other.split_whitespace().next().unwrap_or_default() {
            "insert" | "update" | "delete" | "call" | "create" | "drop" => {
                (StatementKind::Write, Vec::new(), Plan::Write)
            }
            "select" => (StatementKind::Read, vec![number], Plan::Series(1)),
            word => {
                let message = format!("syntax error at or near \"{word}\"");
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(1));
            }
        },
    };
    let lock = (lower == "select locked").then_some("FOR UPDATE");
    Ok(Prepared { lock, ..describe(inside, catalog_version, parameters, statement) })
}
