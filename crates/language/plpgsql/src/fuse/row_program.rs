//! A region as a command: its instructions, run on one row at the command's place.

use crate::fuse::flow::{Variables, live};
use crate::fuse::region::{Region, can_fail, named_row, query_of};
use crate::program::{Address, Form, FusedStatement, Instruction, RowProgram};
use crate::run::activation::FRAME_INLINE;
use crate::run::raise::{assert, case_not_found, raise};
use crate::run::store::{check_single, refuse_null, store_first};
use crate::variables::not_assigned;
use execute::sized;
use plan::expression::{Environment, Expression};
use plan::statement::{BoundSelect, BoundStatement};
use smallvec::SmallVec;
use state::{Command, CommandKind, RowChange, RowFunction, RowId};
use std::sync::Arc;
use types::session_format::Surroundings;
use types::{ColumnSet, Key, Row, SqlError, SqlState, Value};

/// What running on a row gave.
pub struct RowRun {
    /// What becomes of the row.
    pub change: Result<RowChange, SqlError>,
    /// Logical steps of the instructions and statements that have run.
    pub steps: u64,
    /// True where an error is that of a change, and not one that was raised or came from a condition.
    pub change_failed: bool,
}

/// A program with the values of its variables.
pub struct FusedFunction {
    program: Arc<RowProgram>,
    captured: SmallVec<[Value; 4]>,
    now: i64,
    around: Surroundings,
}

/// Puts the command in the place of its region. The code keeps its length, so that no address changes.
pub(crate) fn fuse_region(code: &mut [Instruction], region: &Region, variables: &Variables<'_>) {
    let mut statement = describe(code, region);
    let end = region.end as Address;
    let left = || Instruction::Jump { to: end };
    let mut taken: Vec<Instruction> =
        code[region.start..region.end].iter_mut().map(|place| std::mem::replace(place, left())).collect();
    let mut kept = Vec::with_capacity(taken.len());
    // By distance from the start: the address in the program.
    let mut addresses = Vec::with_capacity(taken.len() + 1);
    let mut hoisted = 0;
    for (distance, instruction) in taken.drain(..).enumerate() {
        addresses.push(kept.len() as Address);
        if region.hoisted.contains(&(region.start + distance)) {
            code[region.start + hoisted] = instruction;
            hoisted += 1;
        } else {
            kept.push(instruction);
        }
    }
    addresses.push(kept.len() as Address);
    for instruction in &mut kept {
        if let Instruction::Jump { to }
        | Instruction::JumpIf { to, .. }
        | Instruction::JumpUnless { to, .. } = instruction
        {
            *to = addresses[*to as usize - region.start];
        }
    }
    let live = live(&kept, variables);
    let captured = live[0].iter().filter(|slot| usize::from(*slot) < variables.slots).collect();
    statement.can_fail = kept.iter().any(can_fail);
    statement.program = Arc::new(RowProgram {
        code: kept.into(),
        slots: variables.slots,
        found: variables.found,
        types: variables.types.clone(),
        captured,
    });
    code[region.start + hoisted] = Instruction::Fused(Box::new(statement));
}

/// The command of a region, still without its program.
fn describe(code: &[Instruction], region: &Region) -> FusedStatement {
    let Ok(row) = named_row(&code[region.start]) else {
        unreachable!("a region begins with a statement that names its row")
    };
    let mut uses = ColumnSet::EXISTS;
    for address in (region.start..region.end).filter(|address| !region.hoisted.contains(address)) {
        let source = query_of(&code[address]).and_then(|query| query.source.table());
        uses |= source.map_or(ColumnSet::EMPTY, |source| source.columns);
    }
    let mut writes = ColumnSet::EMPTY;
    let mut certainly_written = ColumnSet::ALL;
    let mut form = Form::Delete;
    for address in &region.changes {
        let Instruction::Change(statement) = &code[*address] else { continue };
        match statement.as_ref() {
            BoundStatement::Update(update) => {
                uses |= update.plan.uses;
                writes |= update.plan.writes;
                certainly_written = both(certainly_written, update.plan.writes);
                let same_everywhere = |value: &Expression| {
                    let mut same = region.changes.len() == 1;
                    value.visit_slots(&mut |slot| same &= !region.written.contains(slot));
                    same
                };
                let known = update.plan.known().iter().filter(|(_, value)| same_everywhere(value));
                form = Form::Update(known.cloned().collect());
            }
            BoundStatement::Delete(delete) => {
                uses |= delete.plan.uses;
                writes = ColumnSet::ALL;
            }
            _ => {}
        }
    }
    let outside = region.repeated.iter().filter_map(|address| match &code[*address] {
        Instruction::Assign { slot, value } => Some((*slot, value.clone())),
        _ => None,
    });
    FusedStatement {
        table: row.table.clone(),
        key: row.key.to_vec().into(),
        program: Arc::new(RowProgram {
            code: [].into(),
            slots: 0,
            found: 0,
            types: Arc::default(),
            captured: [].into(),
        }),
        uses,
        writes,
        certainly_written,
        can_fail: true,
        form,
        assigned_outside: outside.collect(),
        end: region.end as Address,
    }
}

/// The columns of both sets.
fn both(left: ColumnSet, right: ColumnSet) -> ColumnSet {
    execute::without(left, execute::without(left, right))
}

impl FusedStatement {
    /// The program with the variables as they are now.
    pub fn function(&self, environment: &Environment<'_>) -> Arc<FusedFunction> {
        let value = |slot: &u16| environment.frame[usize::from(*slot)].clone();
        let captured = self.program.captured.iter().map(value).collect();
        let (program, now, around) = (self.program.clone(), environment.now, Surroundings::here());
        Arc::new(FusedFunction { program, captured, now, around })
    }

    /// The command on the row of this key, with a function of the same variables.
    pub fn command(&self, key: Key, function: Arc<FusedFunction>, environment: &Environment<'_>) -> Command {
        let kind = match &self.form {
            Form::Delete => CommandKind::Delete,
            Form::Update(known) => {
                let known = known.iter();
                let known = known
                    .filter_map(|(ordinal, value)| Some((*ordinal, value.evaluate(environment).ok()?)))
                    .collect();
                CommandKind::Update { known }
            }
        };
        Command {
            row: RowId { table: self.table.id, key },
            function,
            kind,
            uses: self.uses,
            writes: self.writes,
            guard: None,
            can_fail: self.can_fail,
            addition: None,
        }
    }
}

impl FusedFunction {
    /// Runs on the row as the simulation has it, where rows that are too long to store are refused.
    pub fn run(&self, row: Option<&Row>) -> RowRun {
        self.execute(row, true, true)
    }

    /// Runs where no row can have the key.
    pub fn run_without_key(&self) -> RowRun {
        self.execute(None, false, false)
    }

    fn execute(&self, row: Option<&Row>, has_key: bool, checks_size: bool) -> RowRun {
        let mut frame: SmallVec<[Value; FRAME_INLINE]> = SmallVec::new();
        frame.resize(self.program.slots, Value::Null);
        for (slot, value) in self.program.captured.iter().zip(&self.captured) {
            frame[usize::from(*slot)] = value.clone();
        }
        let mut running = Running {
            program: &self.program,
            frame,
            row: row.cloned(),
            change: RowChange::Unmatched,
            has_key,
            checks_size,
            now: self.now,
            steps: 0,
            changing: false,
        };
        let result = self.around.within(|| running.run());
        RowRun {
            steps: running.steps,
            change_failed: running.changing,
            change: result.map(|()| running.change),
        }
    }
}

impl RowFunction for FusedFunction {
    fn apply(&self, row: Option<&Row>) -> Result<RowChange, SqlError> {
        self.execute(row, true, false).change
    }
}

/// One run of a program.
struct Running<'p> {
    program: &'p RowProgram,
    frame: SmallVec<[Value; FRAME_INLINE]>,
    /// The row as the statements so far have left it.
    row: Option<Row>,
    /// What they have made of it.
    change: RowChange,
    /// False where no row can have the key: statements find nothing, and cost less.
    has_key: bool,
    checks_size: bool,
    now: i64,
    steps: u64,
    /// A change has begun and not ended.
    changing: bool,
}

impl Running<'_> {
    fn run(&mut self) -> Result<(), SqlError> {
        let program = self.program;
        let mut at = 0;
        while let Some(instruction) = program.code.get(at) {
            if matches!(instruction, Instruction::Return) {
                // The instruction behind the region is one too, and is charged there.
                return Ok(());
            }
            self.steps += 1;
            let environment = Environment::new(&[], &self.frame, self.now);
            let mut next = at + 1;
            match instruction {
                Instruction::Assign { slot, value } => {
                    let value = value.evaluate(&environment)?;
                    self.frame[usize::from(*slot)] = value;
                }
                Instruction::RefuseNull { slot, variable } => {
                    refuse_null(&self.frame[usize::from(*slot)], variable)?;
                }
                Instruction::Clear { slot } => self.frame[usize::from(*slot)] = Value::Null,
                Instruction::RequireRecord { flag, record } => {
                    if self.frame[usize::from(*flag)].is_null() {
                        return Err(not_assigned(record));
                    }
                }
                Instruction::Jump { to } => next = *to as usize,
                Instruction::JumpIf { condition, to } => {
                    if condition.is_true(&environment)? {
                        next = *to as usize;
                    }
                }
                Instruction::JumpUnless { condition, to } => {
                    if !condition.is_true(&environment)? {
                        next = *to as usize;
                    }
                }
                // FOUND comes from the program's own statements: nobody else sees it.
                Instruction::LookAtFound => {}
                Instruction::Raise(plan) => {
                    // What the client would get is not fused.
                    raise(plan, &environment)?;
                }
                Instruction::Assert(assertion) => assert(&assertion.0, assertion.1.as_ref(), &environment)?,
                Instruction::CaseNotFound => return Err(case_not_found()),
                statement => self.statement(statement)?,
            }
            at = next;
        }
        Ok(())
    }

    /// A statement of SQL on the row.
    fn statement(&mut self, statement: &Instruction) -> Result<(), SqlError> {
        let found = usize::from(self.program.found);
        match statement {
            Instruction::SelectInto(select) => {
                let row = self.select(&select.query)?;
                if select.target.strict {
                    check_single(usize::from(row.is_some()))?;
                }
                self.frame[found] = Value::Boolean(row.is_some());
                store_first(&mut self.frame, &select.target, row, &self.program.types)
            }
            Instruction::Perform(query) => {
                let row = self.select(query)?;
                self.frame[found] = Value::Boolean(row.is_some());
                Ok(())
            }
            Instruction::Subquery(plan) => {
                let row = self.select(&plan.query)?;
                self.frame[usize::from(plan.slot)] = match plan.exists {
                    Some(value) => Value::Boolean(if row.is_some() { value } else { !value }),
                    None => row.and_then(|row| row.into_iter().next()).unwrap_or(Value::Null),
                };
                Ok(())
            }
            Instruction::Change(statement) => {
                let matched = self.change(statement)?;
                self.frame[found] = Value::Boolean(matched);
                Ok(())
            }
            other => {
                let message = format!("an instruction that works on no row was fused: {other:?}");
                Err(SqlError::new(SqlState::INTERNAL_ERROR, message))
            }
        }
    }

    /// The output of a SELECT that reads the row.
    fn select(&mut self, query: &BoundSelect) -> Result<Option<Vec<Value>>, SqlError> {
        // Looking the key up is a step, and so is each row of the result.
        self.steps += u64::from(self.has_key);
        let Some(row) = &self.row else { return Ok(None) };
        let filter = query.source.table().and_then(|source| source.filter.as_ref());
        let environment = Environment::new(row, &self.frame, self.now);
        if let Some(filter) = filter
            && !filter.is_true_in(&environment)?
        {
            return Ok(None);
        }
        let output = query.projection.iter().map(|expression| expression.evaluate(&environment));
        let output = output.collect::<Result<Vec<Value>, SqlError>>()?;
        self.steps += 1;
        Ok(Some(output))
    }

    /// Changes the row; gives whether it matched.
    fn change(&mut self, statement: &BoundStatement) -> Result<bool, SqlError> {
        // The statement is a step, and so is the row.
        self.steps += 1 + u64::from(self.has_key);
        if !self.has_key {
            return Ok(false);
        }
        self.changing = true;
        let environment = Environment::new(&[], &self.frame, self.now);
        let change = match statement {
            BoundStatement::Update(update) => update.plan.change_in(self.row.as_ref(), &environment)?,
            BoundStatement::Delete(delete) => delete.plan.change_in(self.row.as_ref(), &environment)?,
            other => {
                let message = format!("a statement that changes no row was fused: {other:?}");
                return Err(SqlError::new(SqlState::INTERNAL_ERROR, message));
            }
        };
        let change = if self.checks_size { sized(change)? } else { change };
        self.changing = false;
        match &change {
            RowChange::Unmatched => return Ok(false),
            RowChange::Put(row) => self.row = Some(row.clone()),
            RowChange::Delete => self.row = None,
        }
        self.change = change;
        Ok(true)
    }
}
