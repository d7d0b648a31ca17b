//! The little language of `value_model.py`: rows with two numbers `a` and `b`, programs of a few operations.

use serde_json::Value as Json;
use state::{
    Addition, AfterImage, Command, CommandKind, Effects, Footprint, KeyRange, Overlay, PlainState, Read,
    Region, RowChange, RowFunction, RowId, RowPredicate, Scan, Simulate, Snapshot, StoreError, Watched,
};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use types::{Catalog, ColumnSet, Key, Row, SqlError, SqlState, StatementResult, TableId, Value};

pub const TABLE: TableId = TableId(7);
pub const A: u16 = 0;
pub const B: u16 = 1;

/// What an update assigns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Formula {
    Add(i64),
    Multiply(i64),
    Set(i64),
    /// Another column plus this.
    Use(u16, i64),
}

/// A CHECK: not negative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Check {
    Column(u16),
    Sum,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Update {
    pub key: u8,
    pub column: u16,
    pub formula: Formula,
    /// WHERE: this column is at least that.
    pub condition: Option<(u16, i64)>,
    pub check: Option<Check>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    Read(u8, u16),
    /// Reads a value and sets a column to it plus one: `(key, column)`, `(read key, read column)`.
    Move((u8, u16), (u8, u16)),
    Update(Update),
    /// IF FOUND THEN … ELSE …
    Found(Option<Update>, Option<Update>),
    Insert(u8, i64, i64),
    Delete(u8),
    /// Keys of all rows with `a` and `b` at least these.
    Scan(i64, i64),
    Raise,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Program(pub Vec<Operation>);

pub fn read(key: u8, column: u16) -> Operation {
    Operation::Read(key, column)
}

/// Without condition and check.
pub fn update(key: u8, column: u16, formula: Formula) -> Update {
    Update { key, column, formula, condition: None, check: None }
}

pub fn add(key: u8, column: u16, amount: i64) -> Operation {
    Operation::Update(update(key, column, Formula::Add(amount)))
}

pub fn set(key: u8, column: u16, value: i64) -> Operation {
    Operation::Update(update(key, column, Formula::Set(value)))
}

pub fn program(operations: &[Operation]) -> Program {
    Program(operations.to_vec())
}

pub fn row_id(key: u8) -> RowId {
    RowId { table: TABLE, key: Key::from_bytes(&[key]) }
}

pub fn row(a: i64, b: i64) -> Row {
    [Value::BigInt(a), Value::BigInt(b)].into()
}

pub fn number(row: &Row, column: u16) -> i64 {
    match row[usize::from(column)] {
        Value::BigInt(value) => value,
        ref other => panic!("expected a bigint, found {other:?}"),
    }
}

/// A state with these rows.
pub fn table(rows: &[(u8, i64, i64)]) -> PlainState {
    let mut state = PlainState::default();
    for (key, a, b) in rows {
        state.apply(&AfterImage { row: row_id(*key), value: Some(row(*a, *b)) });
    }
    state
}

/// The rows of a state.
pub fn rows(state: &PlainState) -> Vec<(u8, i64, i64)> {
    let rows = state.tables.get(&TABLE).into_iter().flatten();
    rows.map(|(key, row)| (key.as_bytes()[0], number(row, A), number(row, B))).collect()
}

pub fn column(ordinal: u16) -> ColumnSet {
    ColumnSet::column(usize::from(ordinal))
}

fn error(state: SqlState, message: &str) -> SqlError {
    SqlError::new(state, message)
}

impl RowFunction for Update {
    fn apply(&self, row: Option<&Row>) -> Result<RowChange, SqlError> {
        let Some(row) = row else { return Ok(RowChange::Unmatched) };
        if self.condition.is_some_and(|(column, least)| number(row, column) < least) {
            return Ok(RowChange::Unmatched);
        }
        let value = match self.formula {
            Formula::Add(amount) => number(row, self.column) + amount,
            Formula::Multiply(factor) => number(row, self.column) * factor,
            Formula::Set(value) => value,
            Formula::Use(column, amount) => number(row, column) + amount,
        };
        let mut values = row.to_vec();
        values[usize::from(self.column)] = Value::BigInt(value);
        let row: Row = values.into();
        let checked = match self.check {
            None => 0,
            Some(Check::Column(column)) => number(&row, column),
            Some(Check::Sum) => number(&row, A) + number(&row, B),
        };
        if checked < 0 { Err(error(SqlState::CHECK_VIOLATION, "check")) } else { Ok(RowChange::Put(row)) }
    }
}

impl Update {
    fn command(&self) -> Command {
        let mut uses = ColumnSet::EXISTS;
        match self.formula {
            Formula::Add(_) | Formula::Multiply(_) => uses |= column(self.column),
            Formula::Use(other, _) => uses |= column(other),
            Formula::Set(_) => {}
        }
        uses |= self.condition.map_or(ColumnSet::EMPTY, |(other, _)| column(other));
        uses |= match self.check {
            None => ColumnSet::EMPTY,
            Some(Check::Column(other)) => column(other),
            Some(Check::Sum) => column(A) | column(B),
        };
        let known = match self.formula {
            Formula::Set(value) => vec![(self.column, Value::BigInt(value))],
            _ => vec![],
        };
        let addition = match self {
            Update { formula: Formula::Add(amount), condition: None, check: None, .. } => {
                Some(Addition::new(self.column, *amount, i64::MIN, i64::MAX))
            }
            _ => None,
        };
        Command {
            row: row_id(self.key),
            function: Arc::new(*self),
            kind: CommandKind::Update { known },
            uses,
            writes: column(self.column),
            guard: None,
            can_fail: self.check.is_some() || addition.is_some(),
            addition,
        }
    }
}

struct Insert(Row);

impl RowFunction for Insert {
    fn apply(&self, row: Option<&Row>) -> Result<RowChange, SqlError> {
        match row {
            None => Ok(RowChange::Put(self.0.clone())),
            Some(_) => Err(error(SqlState::UNIQUE_VIOLATION, "dup")),
        }
    }
}

struct Delete;

impl RowFunction for Delete {
    fn apply(&self, row: Option<&Row>) -> Result<RowChange, SqlError> {
        Ok(row.map_or(RowChange::Unmatched, |_| RowChange::Delete))
    }
}

/// Both columns are at least these.
pub struct AtLeast(pub i64, pub i64);

impl AtLeast {
    fn matches(&self, row: &Row) -> bool {
        number(row, A) >= self.0 && number(row, B) >= self.1
    }
}

impl RowPredicate for AtLeast {
    fn may_match(&self, known: &[Option<Value>]) -> bool {
        let at_least = |column: usize, least: i64| match known.get(column) {
            Some(Some(Value::BigInt(value))) => *value >= least,
            Some(Some(_)) => false,
            Some(None) | None => true,
        };
        at_least(0, self.0) && at_least(1, self.1)
    }
}

/// A simulation under way.
struct Run<'a> {
    snapshot: &'a dyn Snapshot,
    state: Overlay<'a>,
    found: bool,
    /// Position of the command that `found` is about.
    last: Option<usize>,
    trace: Vec<Vec<Value>>,
    reads: Vec<Read>,
    scans: Vec<Scan>,
    commands: Vec<Command>,
    /// Of the rows it has commands on: what they used.
    uses: BTreeMap<RowId, ColumnSet>,
}

impl Run<'_> {
    fn read(&mut self, key: u8, ordinal: u16) -> Result<Option<i64>, SqlError> {
        let id = row_id(key);
        let own = self.uses.get(&id).copied().unwrap_or_default();
        self.reads.push(Read { row: id.clone(), columns: column(ordinal) | ColumnSet::EXISTS | own });
        let value = self.state.current(&id)?.map(|row| number(&row, ordinal));
        self.trace.push(vec![value.map_or(Value::Null, Value::BigInt)]);
        Ok(value)
    }

    fn command(&mut self, command: Command) -> Result<(), SqlError> {
        *self.uses.entry(command.row.clone()).or_default() |= command.uses;
        let change = command.function.apply(self.state.current(&command.row)?.as_ref())?;
        self.found = change != RowChange::Unmatched;
        match change {
            RowChange::Unmatched => {}
            RowChange::Put(row) => self.state.set(command.row.clone(), Some(row))?,
            RowChange::Delete => self.state.set(command.row.clone(), None)?,
        }
        self.last = Some(self.commands.len());
        self.commands.push(command);
        Ok(())
    }

    fn scan(&mut self, predicate: AtLeast) -> Result<(), SqlError> {
        let all = column(A) | column(B) | ColumnSet::EXISTS;
        for row in self.uses.keys() {
            self.reads.push(Read { row: row.clone(), columns: all });
        }
        let keys = |snapshot: &dyn Snapshot| {
            let mut keys = Vec::new();
            let scanned = snapshot.scan(TABLE, &KeyRange::ALL, false, &mut |key, row| {
                if predicate.matches(row) {
                    keys.push(key.clone());
                }
                ControlFlow::Continue(())
            });
            scanned.map(|()| keys)
        };
        // The boolean tells a list of one key from a value read.
        let numbers = keys(&self.state)?.into_iter().map(|key| Value::BigInt(key.as_bytes()[0].into()));
        let seen = std::iter::once(Value::Boolean(true)).chain(numbers).collect();
        let result = keys(self.snapshot)?;
        self.trace.push(seen);
        self.scans.push(Scan {
            table: TABLE,
            range: KeyRange::ALL,
            columns: all,
            predicate_columns: column(A) | column(B),
            predicate: Some(Arc::new(predicate)),
            result,
        });
        Ok(())
    }

    fn step(&mut self, operation: &Operation) -> Result<(), SqlError> {
        let guard = None;
        let all = ColumnSet::ALL;
        let (uses, addition) = (ColumnSet::EXISTS, None);
        match *operation {
            Operation::Read(key, column) => {
                self.read(key, column)?;
            }
            Operation::Move((key, column), (from, from_column)) => match self.read(from, from_column)? {
                None => (self.found, self.last) = (false, None),
                Some(value) => {
                    let formula = Formula::Set(value + 1);
                    let update = Update { key, column, formula, condition: None, check: None };
                    self.command(update.command())?;
                }
            },
            Operation::Update(update) => self.command(update.command())?,
            Operation::Found(then, otherwise) => {
                if let Some(last) = self.last {
                    self.commands[last].guard = Some(self.found);
                }
                if let Some(update) = if self.found { then } else { otherwise } {
                    self.command(update.command())?;
                }
            }
            Operation::Insert(key, a, b) => {
                let (row, values) = (row_id(key), row(a, b));
                let kind = CommandKind::Insert(values.clone());
                let function = Arc::new(Insert(values));
                let can_fail = true;
                self.command(Command { row, function, kind, uses, writes: all, guard, can_fail, addition })?;
            }
            Operation::Delete(key) => {
                let (row, function, kind) = (row_id(key), Arc::new(Delete), CommandKind::Delete);
                let can_fail = false;
                self.command(Command { row, function, kind, uses, writes: all, guard, can_fail, addition })?;
            }
            Operation::Scan(a, b) => self.scan(AtLeast(a, b))?,
            Operation::Raise => return Err(error(SqlState::RAISE_EXCEPTION, "raise")),
        }
        Ok(())
    }
}

impl Simulate for Program {
    fn simulate(&self, snapshot: &dyn Snapshot) -> Result<Effects, StoreError> {
        let watched = Watched::new(snapshot);
        let mut run = Run {
            snapshot: &watched,
            state: Overlay::new(&watched),
            found: false,
            last: None,
            trace: vec![],
            reads: vec![],
            scans: vec![],
            commands: vec![],
            uses: BTreeMap::new(),
        };
        let mut result = Ok(());
        for operation in &self.0 {
            result = run.step(operation);
            if result.is_err() {
                break;
            }
        }
        if result.is_err() {
            run.commands.clear();
            run.reads.extend(run.uses.into_iter().map(|(row, columns)| Read { row, columns }));
        }
        let rows = run.trace;
        drop(run.state);
        let effects = Effects {
            reads: run.reads,
            scans: run.scans,
            commands: run.commands,
            result: result.map(|()| {
                vec![StatementResult { tag: String::new(), columns: vec![], rows, notices: Vec::new() }]
            }),
            steps: self.0.len() as u64,
            catalog: None,
        };
        watched.check(effects)
    }

    fn footprint(&self, _: &Catalog) -> Result<Footprint, SqlError> {
        let mut footprint = Footprint::default();
        self.0.iter().for_each(|operation| touch(operation, &mut footprint));
        Ok(footprint)
    }
}

/// What an operation may touch, in either of its branches.
fn touch(operation: &Operation, footprint: &mut Footprint) {
    let mut command = |key: u8, uses: ColumnSet, writes: ColumnSet| {
        footprint.read(Region::row(TABLE, row_id(key).key, uses));
        footprint.write(Region::row(TABLE, row_id(key).key, writes));
    };
    match operation {
        Operation::Read(key, ordinal) => {
            command(*key, column(*ordinal) | ColumnSet::EXISTS, ColumnSet::EMPTY);
        }
        Operation::Move((key, ordinal), (from, from_ordinal)) => {
            command(*from, column(*from_ordinal) | ColumnSet::EXISTS, ColumnSet::EMPTY);
            command(*key, ColumnSet::EXISTS, column(*ordinal));
        }
        Operation::Update(update) => command(update.key, update.command().uses, column(update.column)),
        Operation::Found(then, otherwise) => {
            for update in [then, otherwise].into_iter().flatten() {
                command(update.key, update.command().uses, column(update.column));
            }
        }
        Operation::Insert(key, ..) | Operation::Delete(key) => {
            command(*key, ColumnSet::EXISTS, ColumnSet::ALL);
        }
        Operation::Scan(..) => footprint.read(Region {
            table: TABLE,
            range: KeyRange::ALL,
            columns: column(A) | column(B) | ColumnSet::EXISTS,
        }),
        Operation::Raise => {}
    }
}

/// Reads the form in which `value_model.py` writes programs.
pub fn parse(program: &Json) -> Program {
    Program(list(program).iter().map(parse_operation).collect())
}

fn list(json: &Json) -> &[Json] {
    json.as_array().unwrap_or_else(|| panic!("expected a list, found {json}"))
}

fn parse_number(json: &Json) -> i64 {
    json.as_i64().unwrap_or_else(|| panic!("expected a number, found {json}"))
}

fn parse_column(json: &Json) -> u16 {
    match json.as_str() {
        Some("a") => A,
        Some("b") => B,
        _ => panic!("expected a column, found {json}"),
    }
}

fn parse_operation(json: &Json) -> Operation {
    let parts = list(json);
    let key = |position: usize| parse_number(&parts[position]) as u8;
    let place = |position: usize| (key(position), parse_column(&parts[position + 1]));
    match parts[0].as_str().unwrap() {
        "R" => Operation::Read(key(1), parse_column(&parts[2])),
        "V" => Operation::Move(place(1), place(3)),
        "U" => Operation::Update(parse_update(json)),
        "F" => {
            let branch = |json: &Json| (!json.is_null()).then(|| parse_update(json));
            Operation::Found(branch(&parts[1]), branch(&parts[2]))
        }
        "I" => Operation::Insert(key(1), parse_number(&parts[2]), parse_number(&parts[3])),
        "D" => Operation::Delete(key(1)),
        "S" => Operation::Scan(parse_number(&parts[1]), parse_number(&parts[2])),
        "X" => Operation::Raise,
        other => panic!("expected an operation, found {other}"),
    }
}

fn parse_update(json: &Json) -> Update {
    let parts = list(json);
    let formula = list(&parts[3]);
    let formula = match formula[0].as_str().unwrap() {
        "add" => Formula::Add(parse_number(&formula[1])),
        "mul" => Formula::Multiply(parse_number(&formula[1])),
        "set" => Formula::Set(parse_number(&formula[1])),
        "use" => Formula::Use(parse_column(&formula[1]), parse_number(&formula[2])),
        other => panic!("expected a formula, found {other}"),
    };
    let condition = parts[4].as_array().map(|parts| (parse_column(&parts[0]), parse_number(&parts[1])));
    let check = match parts[5].as_str() {
        None => None,
        Some("sum") => Some(Check::Sum),
        Some(_) => Some(Check::Column(parse_column(&parts[5]))),
    };
    Update { key: parse_number(&parts[1]) as u8, column: parse_column(&parts[2]), formula, condition, check }
}
