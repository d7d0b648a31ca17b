//! Transaction blocks and temporary tables.

use super::catalog::{changed_schema, create_table, with_temporary};
use super::queries::{Inside, Plan, binding_of, describe, prepare, tag, values};
use super::*;
use std::collections::BTreeMap;
use syntax::parse::cursor::{CursorUse, parse_cursor_use};
use types::CursorPosition;

/// A block that remembers what was done in it. Its statements give what those of transactions give.
pub(super) struct FakeBlock {
    pub(super) inside: Inside,
    pub(super) catalog: Arc<Catalog>,
    /// Changes of the schema, undone ones too.
    pub(super) schema_changes: u64,
    pub(super) read_only: bool,
    pub(super) writes: bool,
    pub(super) steps: Vec<SessionStep>,
    /// With the catalog at each.
    pub(super) savepoints: Vec<(String, Arc<Catalog>)>,
    pub(super) temporary: Catalog,
    /// Those that `select leave_open NAME ROWS` has left open.
    pub(super) cursors: BTreeMap<String, CursorPosition>,
}

impl FakeBlock {
    fn leave_open(&mut self, name: &str, rows: &str) -> StatementResult {
        let rows = rows.parse().expect("a number of rows");
        self.cursors.insert(name.to_string(), CursorPosition::in_front_of(rows, true));
        let columns = vec![OutputColumn { name: "leave_open".into(), data_type: DataType::Text(None) }];
        let rows = vec![vec![Value::text(name)]];
        StatementResult { tag: "SELECT 1".into(), columns, rows, notices: Vec::new() }
    }

    /// FETCH, MOVE and CLOSE; `None`: it is none of them.
    fn use_cursor(&mut self, sql: &str) -> Option<StatementResult> {
        let cursor = parse_cursor_use(sql).ok()?;
        let mut given = StatementResult::default();
        let mut met = 0;
        match &cursor {
            CursorUse::Close(None) => self.cursors.clear(),
            CursorUse::Close(Some(name)) => drop(self.cursors.remove(name).expect("an open cursor")),
            CursorUse::Fetch { name, movement, gives } => {
                let moved = self.cursors.get_mut(name).expect("an open cursor").go(*movement);
                let moved = moved.expect("it may go back");
                met = moved.rows as u64;
                if *gives {
                    given.columns = self.cursor_columns(name).expect("its columns").to_vec();
                    given.rows = moved.positions().map(|at| vec![Value::Integer(at as i32)]).collect();
                }
            }
        }
        Some(StatementResult { tag: cursor.tag(met), ..given })
    }

    /// As a node counts: from the last of all numbers down, in every block.
    fn version(&self) -> u64 {
        if self.schema_changes == 0 { self.catalog.version } else { u64::MAX - self.schema_changes }
    }
}

impl TransactionBlock for FakeBlock {
    fn binding(&self) -> Binding {
        binding_of(self.version())
    }

    fn prepare(&mut self, sql: &str, types: &[DataType]) -> Result<Prepared, SqlError> {
        prepare(&self.inside, self.version(), sql, types)
    }

    fn catalog(&mut self) -> Result<Arc<Catalog>, SqlError> {
        Ok(with_temporary(&self.catalog, &self.temporary))
    }

    fn cursor_columns(&self, name: &str) -> Option<Arc<[OutputColumn]>> {
        let column = OutputColumn { name: "at".into(), data_type: DataType::Integer };
        self.cursors.get(name).map(|_| [column].into())
    }

    fn has_cursors(&self) -> bool {
        !self.cursors.is_empty()
    }

    fn set_read_only(&mut self, read_only: bool) -> Result<(), SqlError> {
        self.read_only = read_only;
        Ok(())
    }

    fn interrupt(&self) -> Arc<AtomicBool> {
        Arc::default()
    }

    fn run(&mut self, step: SessionStep) -> Result<StatementResult, SqlError> {
        self.steps.push(step.clone());
        let result = |tag: &str| Ok(StatementResult { tag: tag.into(), ..StatementResult::default() });
        match step {
            SessionStep::Run { sql, .. } | SessionStep::RunGiven { sql, .. } => {
                if let Some(result) = self.inside.lock.look(&sql) {
                    return result;
                }
                let sql = without_session(&sql);
                let lower = sql.to_lowercase();
                if lower.contains("slow") {
                    std::thread::sleep(Duration::from_millis(1_500));
                }
                if lower.contains("fail") {
                    return Err(SqlError::new(
                        SqlState::CHECK_VIOLATION,
                        "new row violates check constraint",
                    ));
                }
                if let Some(given) = self.use_cursor(sql) {
                    return Ok(given);
                }
                if let Some(cursor) = lower.strip_prefix("select leave_open ") {
                    let (name, rows) = cursor.split_once(' ').expect("a name and a number of rows");
                    return Ok(self.leave_open(name, rows));
                }
                if let Some(count) = lower.strip_prefix("select series ") {
                    let rows = (1..=count.parse().unwrap()).map(|n| vec![Value::Integer(n)]).collect();
                    let columns = vec![OutputColumn { name: "n".into(), data_type: DataType::Integer }];
                    let tag = format!("SELECT {count}");
                    return Ok(StatementResult { tag, columns, rows, notices: Vec::new() });
                }
                if let Some((columns, row)) = values(&lower) {
                    let (tag, notices) = ("SELECT 1".into(), Vec::new());
                    return Ok(StatementResult { tag, columns, rows: vec![row], notices });
                }
                if lower.starts_with("select") {
                    let columns = vec![OutputColumn { name: "n".into(), data_type: DataType::Integer }];
                    let rows = vec![vec![Value::Integer(1)]];
                    return Ok(StatementResult {
                        tag: "SELECT 1".into(),
                        columns,
                        rows,
                        notices: Vec::new(),
                    });
                }
                if self.read_only {
                    let message = "cannot execute this in a read-only transaction";
                    return Err(SqlError::new(SqlState::READ_ONLY_TRANSACTION, message));
                }
                if let Some(name) = lower.strip_prefix("create temp table ") {
                    create_table(&mut self.temporary, name);
                    return result("CREATE TABLE");
                }
                if let Some(next) = changed_schema(&self.catalog, &lower) {
                    self.schema_changes += 1;
                    self.catalog = Arc::new(Catalog { version: self.version(), ..next });
                }
                self.writes = true;
                result(&tag(sql))
            }
            SessionStep::Insert { rows, .. } => {
                self.writes = true;
                result(&format!("COPY {}", rows.len()))
            }
            SessionStep::Savepoint(name) => {
                self.savepoints.push((name, self.catalog.clone()));
                result("SAVEPOINT")
            }
            SessionStep::RollbackTo(name) | SessionStep::Release(name) => {
                if let Some((_, catalog)) = self.savepoints.iter().rfind(|(known, _)| *known == name) {
                    self.schema_changes += u64::from(self.schema_changes > 0);
                    self.catalog = catalog.clone();
                    return result("ROLLBACK");
                }
                let message = format!("savepoint \"{name}\" does not exist");
                Err(SqlError::new(SqlState::INVALID_SAVEPOINT, message))
            }
        }
    }

    fn awaited_rows(&mut self) -> Vec<HeldRow> {
        Vec::new()
    }

    fn finish(self: Box<Self>) -> FinishedBlock {
        let (now_ms, results) = (0, Digest::ZERO);
        let payload = self.writes.then_some(Payload::Session { steps: self.steps, now_ms, results });
        FinishedBlock {
            payload,
            request: RequestId::default(),
            temporary: Box::new(FakeTemporaryTables { inside: self.inside, own: self.temporary }),
            row_locks: Box::new(()),
        }
    }
}

/// Knows `create temp table`, and `temp slow`, which goes on until it is released, or for a minute, whether anybody waits for it or not.
pub(super) struct FakeTemporaryTables {
    pub(super) inside: Inside,
    /// Nothing but these tables.
    pub(super) own: Catalog,
}

impl TemporaryTables for FakeTemporaryTables {
    fn prepare(&mut self, sql: &str, _: &[DataType]) -> Result<Option<Prepared>, SqlError> {
        let prepared = || {
            let (kind, version) = (StatementKind::Write, catalog().version);
            let prepared = describe(&self.inside, version, Vec::new(), (kind, Vec::new(), Plan::Slow));
            Prepared { temporary: true, ..prepared }
        };
        Ok((sql == "temp slow" || sql.to_lowercase().starts_with("create temp table ")).then(prepared))
    }

    fn catalog(&mut self) -> Result<Arc<Catalog>, SqlError> {
        Ok(with_temporary(&self.inside.catalog(), &self.own))
    }

    fn interrupt(&mut self) -> Arc<AtomicBool> {
        Arc::default()
    }

    fn run(&mut self, _: &str, payload: &Payload) -> Option<Result<Vec<StatementResult>, SqlError>> {
        if let Payload::Script { sql, .. } = payload
            && let Some(definition) = sql.to_lowercase().strip_prefix("create temp table ")
        {
            create_table(&mut self.own, definition);
            return Some(Ok(vec![StatementResult { tag: "CREATE TABLE".into(), ..Default::default() }]));
        }
        for _ in 0..6_000 {
            if self.inside.released.load(Ordering::SeqCst) {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Some(Ok(vec![StatementResult { tag: "SLOW".into(), ..StatementResult::default() }]))
    }

    fn begin_trial(&self, role: &str) -> Result<Box<dyn TransactionBlock>, SqlError> {
        self.begin(role, false)
    }

    fn begin(&self, _: &str, read_only: bool) -> Result<Box<dyn TransactionBlock>, SqlError> {
        let (inside, temporary) = (self.inside.clone(), self.own.clone());
        inside.begun.fetch_add(1, Ordering::SeqCst);
        let catalog = inside.catalog();
        let (schema_changes, writes, steps, savepoints) = (0, false, Vec::new(), Vec::new());
        let cursors = BTreeMap::new();
        let block = FakeBlock {
            inside,
            catalog,
            schema_changes,
            read_only,
            writes,
            steps,
            savepoints,
            temporary,
            cursors,
        };
        Ok(Box::new(block))
    }

    fn clear(&mut self) {
        self.own.tables.clear();
    }
}
