//! Commands: what INSERT, UPDATE and DELETE make of one row, at whatever place they get in the order.

use crate::expression::{Capture, Environment, Expression, Kind, may_have_detail};
use crate::row_check::RowCheck;
use crate::statement::VisitSlot;
use crate::table::{TablePlan, may_be_too_long};
use smallvec::SmallVec;
use state::{Addition, Command, CommandKind, RowChange, RowFunction, RowId};
use std::sync::Arc;
use types::session_format::Surroundings;
use types::{ArithmeticOperator, ColumnSet, DataType, Key, Row, SqlError, Value};

/// Inserts a row that was checked when it was made.
struct InsertFunction {
    table: Arc<TablePlan>,
    row: Row,
}

impl RowFunction for InsertFunction {
    fn apply(&self, row: Option<&Row>) -> Result<RowChange, SqlError> {
        match row {
            None => Ok(RowChange::Put(self.row.clone())),
            Some(_) => Err(self.table.duplicate_key(&self.table.key_name, &self.table.key, &self.row)),
        }
    }
}

/// The command of an INSERT.
pub fn insert_command(table: &Arc<TablePlan>, key: Key, row: Row) -> Command {
    Command {
        row: RowId { table: table.id, key },
        function: Arc::new(InsertFunction { table: table.clone(), row: row.clone() }),
        kind: CommandKind::Insert(row),
        uses: ColumnSet::EXISTS,
        writes: ColumnSet::ALL,
        guard: None,
        can_fail: !table.key.is_empty(),
        addition: None,
    }
}

/// What an UPDATE does with one row, the same for every execution.
#[derive(Debug)]
pub struct UpdatePlan {
    /// The table.
    pub table: Arc<TablePlan>,
    /// What must be true of the row besides its key.
    filter: Option<Expression>,
    /// By ordinal, ascending.
    assignments: Vec<(u16, Assignment)>,
    /// Generated columns that these decide on, over the new row.
    computed: Vec<(u16, Expression)>,
    /// The values that do not depend on the row, over the statement's frame.
    known: Vec<(u16, Expression)>,
    /// Assigned columns in which NULL is refused.
    not_null: Vec<u16>,
    /// Positions of the table's checks that look at an assigned column, and of those that not all rows keep.
    checks: Vec<usize>,
    /// Variables that `filter` and the assignments need.
    capture: Capture,
    /// Columns that the command uses, with `exists`.
    pub uses: ColumnSet,
    /// Columns that it writes.
    pub writes: ColumnSet,
    /// It assigns a column of the primary key: the row goes from its key to another one, by two commands.
    pub moves: bool,
    /// False only if nothing but the known values can make it fail.
    can_fail: bool,
    /// The only assignment is `column = column ± amount` on an integer column; the flag: minus.
    addition: Option<(u16, bool, Expression)>,
    /// What policies ask of the new row.
    pub row_check: Option<Arc<RowCheck>>,
}

#[derive(Debug)]
enum Assignment {
    /// Position among the known values.
    Known(usize),
    /// Over the row and the captured values.
    Computed(Expression),
}

impl UpdatePlan {
    /// `assignments`: ordinal and value, cast to the column's type. `filter`: what the command itself asks of the row.
    pub fn new(
        table: Arc<TablePlan>,
        filter: Vec<Expression>,
        mut assignments: Vec<(u16, Expression)>,
    ) -> UpdatePlan {
        assignments.sort_by_key(|(ordinal, _)| *ordinal);
        let writes = assignments
            .iter()
            .fold(ColumnSet::EMPTY, |set, (ordinal, _)| set | ColumnSet::column(usize::from(*ordinal)));
        let computed: Vec<(u16, Expression)> =
            table.computed_from(writes).map(|(ordinal, value)| (ordinal, value.clone())).collect();
        // DEFAULT is all that can be assigned to them.
        assignments.retain(|(ordinal, _)| computed.iter().all(|(known, _)| known != ordinal));
        let writes =
            computed.iter().fold(writes, |set, (ordinal, _)| set | ColumnSet::column(usize::from(*ordinal)));
        let ordinals: Vec<u16> =
            assignments.iter().map(|(ordinal, _)| *ordinal).chain(computed.iter().map(|one| one.0)).collect();
        let assigned = |ordinal: usize| ordinals.iter().any(|known| usize::from(*known) == ordinal);
        let checks: Vec<usize> = (0..table.checks.len())
            .filter(|index| {
                let check = &table.checks[*index];
                // As PostgreSQL: a change of a row that has never been held against it is refused.
                !check.valid
                    || check.condition.any(&mut |expression| {
                        matches!(expression.kind, Kind::Column(ordinal) if assigned(usize::from(ordinal)))
                    })
            })
            .collect();
        let moves = ordinals.iter().any(|ordinal| table.key.contains(ordinal));
        let looked_at = checks.iter().map(|index| &table.checks[*index].condition);
        let looked_at = looked_at.chain(computed.iter().map(|(_, value)| value));
        let mut uses = columns_beside(looked_at, &assigned);
        let is_not_null = |ordinal: &u16| table.columns[usize::from(*ordinal)].not_null;
        let not_null: Vec<u16> = ordinals.iter().copied().filter(is_not_null).collect();
        let addition = match (filter.is_empty() && computed.is_empty(), assignments.as_slice()) {
            (true, [(ordinal, value)]) => addition_of(&table, *ordinal, value),
            _ => None,
        };
        let mut capture = Capture::default();
        let filter = crate::condition::conjunction(filter).map(|mut filter| {
            uses |= filter.columns();
            capture.renumber(&mut filter);
            filter
        });
        let mut can_fail = filter.as_ref().is_some_and(Expression::can_fail)
            || !checks.is_empty()
            || computed.iter().any(|(ordinal, value)| value.can_fail() || not_null.contains(ordinal));
        let mut known = Vec::new();
        let assignments = assignments
            .into_iter()
            .map(|(ordinal, mut value)| {
                if value.is_row_independent() {
                    known.push((ordinal, value));
                    return (ordinal, Assignment::Known(known.len() - 1));
                }
                uses |= value.columns();
                can_fail |= value.can_fail() || not_null.contains(&ordinal);
                capture.renumber(&mut value);
                (ordinal, Assignment::Computed(value))
            })
            .collect();
        UpdatePlan {
            table,
            filter,
            assignments,
            computed,
            known,
            not_null,
            checks,
            capture,
            uses,
            writes,
            moves,
            can_fail,
            addition,
            row_check: None,
        }
    }

    /// The same where policies ask something of the new row, which is looked at as a whole then.
    #[must_use]
    pub fn checking(self, row_check: Option<Arc<RowCheck>>) -> UpdatePlan {
        UpdatePlan { row_check, ..self }
    }

    /// Whether an error of this command may show the row, or come from its length: then it looks at all columns.
    pub fn may_show_row(&self) -> bool {
        let lengthens = |ordinal: u16| {
            let data_type = self.table.columns[usize::from(ordinal)].data_type;
            matches!(data_type, DataType::Text(_) | DataType::Numeric(_) | DataType::Unknown)
        };
        let computed = self.assignments.iter().filter_map(|(_, assignment)| match assignment {
            Assignment::Computed(value) => Some(value),
            Assignment::Known(_) => None,
        });
        let known = self.known.iter().map(|(_, value)| value);
        self.row_check.is_some()
            || !self.checks.is_empty()
            || !self.computed.is_empty()
            || !self.not_null.is_empty()
            || self.filter.iter().chain(computed).chain(known).any(may_have_detail)
            || (self.assignments.iter().any(|(ordinal, _)| lengthens(*ordinal))
                && may_be_too_long(&self.table))
    }

    /// The values that are the same for every row. An error is kept: it is raised only if a row matches.
    pub fn known_values(&self, environment: &Environment<'_>) -> KnownValues {
        self.known.iter().map(|(_, value)| value.evaluate(environment).map_err(Box::new)).collect()
    }

    /// Whether it assigns a column.
    pub fn assigns(&self, ordinal: u16) -> bool {
        self.assignments.iter().any(|(assigned, _)| *assigned == ordinal)
            || self.computed.iter().any(|(assigned, _)| *assigned == ordinal)
    }

    /// The command on one row.
    ///
    /// # Errors
    /// What capturing raises.
    pub fn command(
        self: &Arc<UpdatePlan>,
        key: Key,
        known: &KnownValues,
        environment: &Environment<'_>,
    ) -> Result<Command, SqlError> {
        self.planned(key, known, environment).map(|planned| planned.command)
    }

    /// The command on one row, and what it does.
    ///
    /// # Errors
    /// What capturing raises.
    pub fn planned(
        self: &Arc<UpdatePlan>,
        key: Key,
        known: &KnownValues,
        environment: &Environment<'_>,
    ) -> Result<PlannedUpdate, SqlError> {
        let known_fails = self.known.iter().zip(known).any(|((ordinal, _), value)| match value {
            Ok(value) => value.is_null() && self.not_null.contains(ordinal),
            Err(_) => true,
        });
        let values = self.known.iter().zip(known);
        let values =
            values.filter_map(|((ordinal, _), value)| value.as_ref().ok().map(|v| (*ordinal, v.clone())));
        let kind = CommandKind::Update { known: values.collect() };
        let addition =
            self.addition.as_ref().and_then(|addition| self.bounded_addition(addition, environment));
        let function = Arc::new(UpdateFunction {
            plan: self.clone(),
            known: known.clone(),
            captured: self.capture.values(environment).collect::<Result<_, _>>()?,
            now: environment.now,
            around: Surroundings::here(),
        });
        let command = Command {
            row: RowId { table: self.table.id, key },
            function: function.clone(),
            kind,
            uses: self.uses,
            writes: self.writes,
            guard: None,
            can_fail: self.can_fail || known_fails,
            addition,
        };
        Ok(PlannedUpdate { command, function })
    }

    fn bounded_addition(
        &self,
        (ordinal, minus, amount): &(u16, bool, Expression),
        environment: &Environment<'_>,
    ) -> Option<Addition> {
        let amount = amount.evaluate(environment).ok()?.as_integer()?;
        let amount = if *minus { amount.checked_neg()? } else { amount };
        let (smallest, largest) = self.table.columns[usize::from(*ordinal)].data_type.integer_range()?;
        Some(Addition::new(*ordinal, amount, smallest, largest).with_check(!self.checks.is_empty()))
    }
}

/// The columns that expressions over the new row look at besides those that are assigned.
fn columns_beside<'e>(
    looked_at: impl Iterator<Item = &'e Expression>,
    assigned: &dyn Fn(usize) -> bool,
) -> ColumnSet {
    let mut uses = ColumnSet::EXISTS;
    for over_row in looked_at {
        over_row.any(&mut |expression| {
            if let Kind::Column(ordinal) = expression.kind
                && !assigned(usize::from(ordinal))
            {
                uses |= ColumnSet::column(usize::from(ordinal));
            }
            false
        });
    }
    uses
}

/// `column = column ± amount` on an integer column that is never NULL, with an amount that is the same for every row.
fn addition_of(table: &TablePlan, ordinal: u16, value: &Expression) -> Option<(u16, bool, Expression)> {
    let column = &table.columns[usize::from(ordinal)];
    let integer = |data_type: DataType| matches!(data_type, DataType::Integer | DataType::BigInt);
    if !column.not_null || !integer(column.data_type) {
        return None;
    }
    let value = match &value.kind {
        Kind::Assign(operand) | Kind::Cast(operand) if integer(operand.data_type) => operand,
        _ => value,
    };
    let Kind::Arithmetic(operator, operands) = &value.kind else { return None };
    let [left, right] = operands.as_ref();
    let is_column = |operand: &Expression| operand.kind == Kind::Column(ordinal);
    let amount = match operator {
        ArithmeticOperator::Add if is_column(left) => right,
        ArithmeticOperator::Add if is_column(right) => left,
        ArithmeticOperator::Subtract if is_column(left) => right,
        _ => return None,
    };
    let minus = *operator == ArithmeticOperator::Subtract;
    (amount.is_row_independent() && integer(amount.data_type)).then(|| (ordinal, minus, amount.clone()))
}

/// Values of an UPDATE that do not depend on the row, or the errors that computing them gave.
pub type KnownValues = SmallVec<[Result<Value, Box<SqlError>>; 1]>;

/// What an UPDATE does with one row at its place.
pub struct UpdateFunction {
    plan: Arc<UpdatePlan>,
    known: KnownValues,
    captured: SmallVec<[Value; 1]>,
    now: i64,
    around: Surroundings,
}

/// The command of an UPDATE on one row, and what it does.
pub struct PlannedUpdate {
    /// The command.
    pub command: Command,
    /// Its function.
    pub function: Arc<UpdateFunction>,
}

impl UpdateFunction {
    /// Whether it is about a row.
    ///
    /// # Errors
    /// What evaluation raises.
    pub fn matches(&self, row: &Row) -> Result<bool, SqlError> {
        self.around.within(|| self.plan.matches(&Environment::new(row, &self.captured, self.now)))
    }

    /// What it makes of a row, which nobody has held against NOT NULL and CHECK yet; `None` where it is not about the row.
    ///
    /// # Errors
    /// What evaluation raises.
    pub fn new_row(&self, row: &Row) -> Result<Option<Row>, SqlError> {
        self.around.within(|| self.plan.new_row(row, &self.known, &self.captured, self.now))
    }
}

impl RowFunction for UpdateFunction {
    fn apply(&self, row: Option<&Row>) -> Result<RowChange, SqlError> {
        self.around.within(|| self.plan.change(row, &self.known, &self.captured, self.now))
    }
}

impl UpdatePlan {
    /// What the UPDATE makes of a row. `known`: the values that do not depend on it; `captured`: those of the
    /// captured variables.
    pub fn change(
        &self,
        row: Option<&Row>,
        known: &KnownValues,
        captured: &[Value],
        now: i64,
    ) -> Result<RowChange, SqlError> {
        let plan = self;
        let new_row = match row {
            Some(row) => plan.new_row(row, known, captured, now)?,
            None => None,
        };
        let Some(new_row) = new_row else { return Ok(RowChange::Unmatched) };
        let environment = Environment::new(&new_row, &[], now);
        for index in
            plan.checks.iter().filter(|index| plan.table.is_of_partitions(&plan.table.checks[**index]))
        {
            plan.hold(*index, &environment, &new_row)?;
        }
        for ordinal in &plan.not_null {
            if new_row[usize::from(*ordinal)].is_null() {
                return Err(plan.table.null_violation(usize::from(*ordinal), &new_row));
            }
        }
        for index in
            plan.checks.iter().filter(|index| !plan.table.is_of_partitions(&plan.table.checks[**index]))
        {
            plan.hold(*index, &environment, &new_row)?;
        }
        Ok(RowChange::Put(new_row))
    }

    /// Holds the new row against the check at this position.
    fn hold(&self, index: usize, environment: &Environment<'_>, new_row: &Row) -> Result<(), SqlError> {
        let check = &self.table.checks[index];
        match check.is_violated(environment)? {
            true => Err(self.table.check_violation(check, new_row)),
            false => Ok(()),
        }
    }

    fn matches(&self, environment: &Environment<'_>) -> Result<bool, SqlError> {
        self.filter.as_ref().map_or(Ok(true), |filter| filter.is_true(environment))
    }

    /// The row with what is assigned; `None` where the filter does not hold.
    fn new_row(
        &self,
        row: &Row,
        known: &KnownValues,
        captured: &[Value],
        now: i64,
    ) -> Result<Option<Row>, SqlError> {
        let plan = self;
        let environment = Environment::new(row, captured, now);
        if !plan.matches(&environment)? {
            return Ok(None);
        }
        let mut new_row: Row = row.iter().cloned().collect();
        let values = Arc::get_mut(&mut new_row).expect("nobody else has the new row yet");
        for (ordinal, assignment) in &plan.assignments {
            values[usize::from(*ordinal)] = match assignment {
                Assignment::Known(index) => match &known[*index] {
                    Ok(value) => value.clone(),
                    Err(error) => return Err(SqlError::clone(error)),
                },
                Assignment::Computed(value) => value.evaluate(&environment)?,
            };
        }
        let environment = Environment::new(values, &[], now);
        let computed = plan.computed.iter().map(|(_, value)| value.evaluate(&environment));
        let computed = computed.collect::<Result<SmallVec<[Value; 1]>, SqlError>>()?;
        for ((ordinal, _), value) in plan.computed.iter().zip(computed) {
            values[usize::from(*ordinal)] = value;
        }
        Ok(Some(new_row))
    }

    /// The same with all variables at hand, as a fused command has them.
    pub fn change_in(&self, row: Option<&Row>, environment: &Environment<'_>) -> Result<RowChange, SqlError> {
        let captured =
            self.capture.values(environment).collect::<Result<SmallVec<[Value; 2]>, SqlError>>()?;
        self.change(row, &self.known_values(environment), &captured, environment.now)
    }

    /// Visits the slots that it reads.
    pub fn visit_slots(&self, visit: &mut VisitSlot<'_>) {
        self.known.iter().for_each(|(_, value)| value.visit_slots(visit));
        self.capture.visit_slots(visit);
    }

    /// The statement's parts in words; `text` describes an expression, over captured variables where it gets them.
    pub fn texts(&self, text: &DescribeCaptured<'_>) -> UpdateTexts {
        let captured = Some(&self.capture);
        let assignments = self.assignments.iter().map(|(ordinal, assignment)| {
            let value = match assignment {
                Assignment::Known(index) => text(&self.known[*index].1, None),
                Assignment::Computed(value) => text(value, captured),
            };
            (*ordinal, value)
        });
        UpdateTexts {
            assignments: assignments.collect(),
            filter: self.filter.as_ref().map(|filter| text(filter, captured)),
        }
    }

    /// Ordinals and expressions of the values that do not depend on the row.
    pub fn known(&self) -> &[(u16, Expression)] {
        &self.known
    }

    /// False only if no row and no variables make it fail.
    pub fn can_ever_fail(&self) -> bool {
        let fails =
            |(ordinal, value): &(u16, Expression)| value.can_fail() || self.not_null.contains(ordinal);
        self.can_fail || self.known.iter().any(fails)
    }
}

/// What a DELETE does with one row, the same for every execution.
#[derive(Debug)]
pub struct DeletePlan {
    /// The table.
    pub table: Arc<TablePlan>,
    filter: Option<Expression>,
    capture: Capture,
    /// Columns that the command uses, with `exists`.
    pub uses: ColumnSet,
    can_fail: bool,
}

impl DeletePlan {
    /// `filter`: what the command itself asks of the row.
    pub fn new(table: Arc<TablePlan>, filter: Vec<Expression>) -> DeletePlan {
        let mut capture = Capture::default();
        let mut filter = crate::condition::conjunction(filter);
        if let Some(filter) = &mut filter {
            capture.renumber(filter);
        }
        let uses = filter.as_ref().map_or(ColumnSet::EMPTY, Expression::columns) | ColumnSet::EXISTS;
        let can_fail = filter.as_ref().is_some_and(Expression::can_fail);
        DeletePlan { table, filter, capture, uses, can_fail }
    }

    /// As [`UpdatePlan::may_show_row`].
    pub fn may_show_row(&self) -> bool {
        self.filter.as_ref().is_some_and(may_have_detail)
    }

    /// The command on one row.
    ///
    /// # Errors
    /// What capturing raises.
    pub fn command(
        self: &Arc<DeletePlan>,
        key: Key,
        environment: &Environment<'_>,
    ) -> Result<Command, SqlError> {
        Ok(Command {
            row: RowId { table: self.table.id, key },
            function: Arc::new(DeleteFunction {
                plan: self.clone(),
                captured: self.capture.values(environment).collect::<Result<_, _>>()?,
                now: environment.now,
                around: Surroundings::here(),
            }),
            kind: CommandKind::Delete,
            uses: self.uses,
            writes: ColumnSet::ALL,
            guard: None,
            can_fail: self.can_fail,
            addition: None,
        })
    }
}

struct DeleteFunction {
    plan: Arc<DeletePlan>,
    captured: SmallVec<[Value; 2]>,
    now: i64,
    around: Surroundings,
}

impl RowFunction for DeleteFunction {
    fn apply(&self, row: Option<&Row>) -> Result<RowChange, SqlError> {
        self.around.within(|| self.plan.change(row, &self.captured, self.now))
    }
}

impl DeletePlan {
    /// What the DELETE makes of a row. `captured`: the values of the captured variables.
    pub fn change(&self, row: Option<&Row>, captured: &[Value], now: i64) -> Result<RowChange, SqlError> {
        let Some(row) = row else { return Ok(RowChange::Unmatched) };
        match &self.filter {
            Some(filter) => {
                let environment = Environment::new(row, captured, now);
                Ok(if filter.is_true(&environment)? { RowChange::Delete } else { RowChange::Unmatched })
            }
            None => Ok(RowChange::Delete),
        }
    }

    /// The same with all variables at hand, as a fused command has them.
    pub fn change_in(&self, row: Option<&Row>, environment: &Environment<'_>) -> Result<RowChange, SqlError> {
        let captured =
            self.capture.values(environment).collect::<Result<SmallVec<[Value; 2]>, SqlError>>()?;
        self.change(row, &captured, environment.now)
    }

    /// Visits the slots that it reads.
    pub fn visit_slots(&self, visit: &mut VisitSlot<'_>) {
        self.capture.visit_slots(visit);
    }

    /// False only if no row and no variables make it fail.
    pub fn can_ever_fail(&self) -> bool {
        self.can_fail
    }

    /// What it asks of the row besides the key, in words.
    pub fn filter_text(&self, text: &DescribeCaptured<'_>) -> Option<String> {
        self.filter.as_ref().map(|filter| text(filter, Some(&self.capture)))
    }
}

/// Describes an expression; with what its variables were captured from, where they were.
pub type DescribeCaptured<'a> = dyn Fn(&Expression, Option<&Capture>) -> String + 'a;

/// An UPDATE in words.
pub struct UpdateTexts {
    /// By ordinal.
    pub assignments: Vec<(u16, String)>,
    /// What it asks of the row besides the key.
    pub filter: Option<String>,
}
