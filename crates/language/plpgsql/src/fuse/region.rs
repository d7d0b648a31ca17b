//! Finding regions: parts of the code that can be one command.

use crate::fuse::flow::{Flow, SlotSet, jump_target};
use crate::fuse::obstacle::Obstacle;
use crate::program::{Instruction, SelectInto};
use crate::target::{Coercion, Store};
use plan::expression::Expression;
use plan::row_locking::WhenHeld;
use plan::statement::{Access, BoundSelect, BoundStatement, Distinctness, From, KeyPart};
use plan::table::TablePlan;
use std::sync::Arc;
use syntax::plpgsql::ast::RaiseLevel;
use types::TriggerEvent;

/// Instructions of a region. Longer ones are not looked for, so that compiling takes linear time.
const REGION_MAX: usize = 64;
/// Ends that are tried for one beginning, for the same reason.
const REFUSED_MAX: usize = 8;
/// Instructions among which a later change is looked for, to say why a read stays.
const LOOKED_AT_MAX: usize = 1024;

/// A part of the code that can be one command.
#[derive(Debug)]
pub(crate) struct Region {
    /// Its first instruction, where it is entered.
    pub start: usize,
    /// The instruction behind it.
    pub end: usize,
    /// Reads of other rows, which go in front. Ascending.
    pub hoisted: Vec<usize>,
    /// Assignments that do not depend on the row and are used after the region: made once more behind it. Ascending.
    pub repeated: Vec<usize>,
    /// Where the row is changed.
    pub changes: Vec<usize>,
    /// Everything that the region itself writes, FOUND and ROW_COUNT included.
    pub written: SlotSet,
}

impl Region {
    pub fn contains(&self, address: usize) -> bool {
        (self.start..self.end).contains(&address)
    }
}

/// One row, as statements name it.
#[derive(Clone, Copy)]
pub(crate) struct NamedRow<'a> {
    pub table: &'a Arc<TablePlan>,
    pub key: &'a [KeyPart],
}

impl NamedRow<'_> {
    fn is(&self, other: &NamedRow<'_>) -> bool {
        self.table.id == other.table.id && self.key == other.key
    }
}

/// What an instruction is to a region.
enum Part {
    /// It reads the row.
    Read,
    /// It changes the row.
    Change,
    /// It reads other rows.
    OtherRead,
    /// It computes, decides or raises.
    Local,
    /// It cannot be in a region.
    Barrier(Obstacle),
}

/// The longest region that begins at `start` with a statement on one row, reads the row and changes it.
///
/// # Errors
/// Why there is none.
pub(crate) fn find(code: &[Instruction], flow: &Flow<'_>, start: usize) -> Result<Region, Obstacle> {
    let row = named_row(&code[start])?;
    let mut best: Option<(usize, Region)> = None;
    let mut refused: Vec<Obstacle> = Vec::new();
    let mut barrier = None;
    let (mut reads, mut changes, mut farthest) = (0, Vec::new(), start);
    for address in start..code.len().min(start + REGION_MAX) {
        match part(&code[address], &row) {
            Part::Read => reads += 1,
            Part::Change => changes.push(address),
            Part::OtherRead | Part::Local => {}
            Part::Barrier(obstacle) => {
                barrier = Some(obstacle);
                break;
            }
        }
        if let Some(target) = jump_target(&code[address]) {
            if target <= address {
                barrier = Some(Obstacle::Loop);
                break;
            }
            farthest = farthest.max(target);
        }
        let end = address + 1;
        let statements = reads + changes.len();
        let more = best.as_ref().is_none_or(|(known, _)| statements > *known);
        if refused.len() >= REFUSED_MAX {
            break;
        }
        if reads == 0 || changes.is_empty() || farthest > end || !more {
            continue;
        }
        match check(code, flow, &row, start..end, changes.clone()) {
            Ok(region) => best = Some((statements, region)),
            Err(obstacle) => refused.push(obstacle),
        }
    }
    if let Some((_, region)) = best {
        return Ok(region);
    }
    let mut later = code[start..].iter().take(LOOKED_AT_MAX);
    let changed_later = later.any(|instruction| matches!(part(instruction, &row), Part::Change));
    // The nearest end that was tried says best what is in the way.
    Err(match (refused.into_iter().next(), barrier) {
        (Some(obstacle), _) => obstacle,
        (None, Some(obstacle @ Obstacle::Returning)) => obstacle,
        (None, Some(Obstacle::Triggers(table))) if table == row.table.name => Obstacle::Triggers(table),
        (None, Some(obstacle)) if changed_later => obstacle,
        _ => Obstacle::NotChanged,
    })
}

/// The row that a statement on one row names.
pub(crate) fn named_row(instruction: &Instruction) -> Result<NamedRow<'_>, Obstacle> {
    let (table, access) = match instruction {
        Instruction::Change(statement) => match statement.as_ref() {
            BoundStatement::Update(update) if update.plan.table.triggers.at(TriggerEvent::Update).any => {
                return Err(Obstacle::Triggers(update.plan.table.name.clone()));
            }
            BoundStatement::Delete(delete) if delete.plan.table.triggers.at(TriggerEvent::Delete).any => {
                return Err(Obstacle::Triggers(delete.plan.table.name.clone()));
            }
            BoundStatement::Update(update)
                if update.plan.moves || update.plan.writes.intersects(update.plan.table.constrained) =>
            {
                return Err(Obstacle::Constrained);
            }
            BoundStatement::Update(update) => (&update.plan.table, &update.access),
            BoundStatement::Delete(delete) if delete.plan.table.holds_keys => {
                return Err(Obstacle::Constrained);
            }
            BoundStatement::Delete(delete) => (&delete.plan.table, &delete.access),
            _ => return Err(Obstacle::NotByKey),
        },
        Instruction::RowsStart(_) => return Err(Obstacle::RowLoop),
        Instruction::OpenCursor(_) => return Err(Obstacle::Cursor),
        _ => match query_of(instruction).and_then(|query| Some((query, query.source.table()?))) {
            Some((query, source)) if !matches!(source.access, Access::Key(_)) || is_plain(query) => {
                (&source.table, &source.access)
            }
            Some(_) => return Err(Obstacle::NotPlain),
            None => return Err(Obstacle::NotByKey),
        },
    };
    match access {
        Access::Key(key) => Ok(NamedRow { table, key }),
        Access::Range(_) | Access::Index(_) | Access::Found(_) => Err(Obstacle::NotByKey),
    }
}

/// The query of an instruction that reads at most one row into variables.
pub(crate) fn query_of(instruction: &Instruction) -> Option<&BoundSelect> {
    match instruction {
        Instruction::SelectInto(select) => Some(&select.query),
        Instruction::Subquery(plan) => Some(&plan.query),
        Instruction::Perform(query) => Some(query),
        _ => None,
    }
}

/// True where each row found by key gives one row of output.
fn is_plain(query: &BoundSelect) -> bool {
    query.grouping.is_none()
        && query.distinct == Distinctness::All
        && query.order.is_empty()
        && query.limit.is_none()
        && query.offset.is_none()
        // SKIP LOCKED and NOWAIT ask which rows are locked.
        && query.locks().is_none_or(|(_, locking)| locking.when_held == WhenHeld::GoOn)
}

fn part(instruction: &Instruction, row: &NamedRow<'_>) -> Part {
    if instruction.expressions().iter().any(|expression| expression.runs_anything()) {
        return Part::Barrier(Obstacle::Call);
    }
    if matches!(instruction, Instruction::Raise(plan) if matches!(plan.level, RaiseLevel::Message(_))) {
        return Part::Barrier(Obstacle::Message);
    }
    match instruction {
        Instruction::Assign { .. }
        | Instruction::RefuseNull { .. }
        | Instruction::Clear { .. }
        | Instruction::RequireRecord { .. }
        | Instruction::Jump { .. }
        | Instruction::JumpIf { .. }
        | Instruction::JumpUnless { .. }
        | Instruction::LookAtFound
        | Instruction::Raise(_)
        | Instruction::Assert(_)
        | Instruction::CaseNotFound
        // Whether it leaves at the end of the region is checked there.
        | Instruction::Return => Part::Local,
        Instruction::SelectInto(select) if select.target.record.is_some() => Part::Barrier(Obstacle::Execute),
        Instruction::SelectInto(_) | Instruction::Subquery(_) | Instruction::Perform(_) => {
            match named_row(instruction) {
                Ok(named) if named.is(row) => Part::Read,
                _ => Part::OtherRead,
            }
        }
        Instruction::Change(statement) => match statement.as_ref() {
            BoundStatement::Update(_) | BoundStatement::Delete(_) => match named_row(instruction) {
                Ok(named) if named.is(row) => Part::Change,
                Err(obstacle @ Obstacle::Triggers(_)) => Part::Barrier(obstacle),
                _ => Part::Barrier(Obstacle::OtherChange(changed_table(statement))),
            },
            statement => Part::Barrier(Obstacle::OtherChange(changed_table(statement))),
        },
        Instruction::ChangeInto(_) => Part::Barrier(Obstacle::Returning),
        Instruction::Call(_) => Part::Barrier(Obstacle::Call),
        Instruction::Oracle { .. } => Part::Barrier(Obstacle::Oracle),
        Instruction::SetConstraints(_) => Part::Barrier(Obstacle::Constraints),
        Instruction::Notify(_) => Part::Barrier(Obstacle::Notifies),
        Instruction::RowCount { .. } | Instruction::Context { .. } => Part::Barrier(Obstacle::RowCount),
        Instruction::SetFound => Part::Barrier(Obstacle::Leaves),
        Instruction::RangeStart(_)
        | Instruction::RangeNext { .. }
        | Instruction::RowsStart(_)
        | Instruction::RowsNext { .. }
        | Instruction::CursorNext { .. } => Part::Barrier(Obstacle::Loop),
        Instruction::OpenCursor(_)
        | Instruction::FetchCursor(_)
        | Instruction::CloseCursor(_)
        | Instruction::LeaveCursor { .. }
        | Instruction::CurrentRow(_) => Part::Barrier(Obstacle::Cursor),
        Instruction::ReturnValue { .. }
        | Instruction::ReturnFirst
        | Instruction::NoReturn
        | Instruction::ReturnNext { .. }
        | Instruction::ReturnQuery(_)
        | Instruction::Fail(_) => Part::Barrier(Obstacle::Leaves),
        Instruction::Execute(_)
        | Instruction::LateValue(_)
        | Instruction::LateStatement(_)
        | Instruction::LateRow(_) => Part::Barrier(Obstacle::Execute),
        Instruction::Protect { .. }
        | Instruction::Leave { .. }
        | Instruction::JumpUnlessCaught { .. }
        | Instruction::ShowError { .. }
        | Instruction::Rethrow
        | Instruction::StackedDiagnostics { .. } => Part::Barrier(Obstacle::Handler),
        Instruction::Fused(_) => Part::Barrier(Obstacle::Overlaps),
    }
}

/// The table that a statement changes.
pub(crate) fn changed_table(statement: &BoundStatement) -> String {
    match statement {
        BoundStatement::Insert(insert) => insert.table.name.clone(),
        BoundStatement::Update(update) => update.plan.table.name.clone(),
        BoundStatement::Delete(delete) => delete.plan.table.name.clone(),
        BoundStatement::With(with) => {
            with.statements().map(changed_table).find(|table| !table.is_empty()).unwrap_or_default()
        }
        BoundStatement::Select(_) | BoundStatement::Call(_) | BoundStatement::Explain(_) => String::new(),
    }
}

/// What has been seen of a region on the way from its start to its end.
struct Walk {
    /// Instructions from here on are certainly run, where the region is and no error comes.
    unconditional_from: usize,
    /// Variables read and written by what stays in the region.
    read: SlotSet,
    written: SlotSet,
    /// Variables that do not have behind the region, after the repeated assignments, what they had at its end.
    dirty: SlotSet,
    hoisted: Vec<usize>,
    repeatable: Vec<usize>,
}

/// Whether these instructions are equivalent to one command on the row.
fn check(
    code: &[Instruction],
    flow: &Flow<'_>,
    row: &NamedRow<'_>,
    range: std::ops::Range<usize>,
    changes: Vec<usize>,
) -> Result<Region, Obstacle> {
    if flow.jumps_into(range.start + 1..range.end).any(|from| !range.contains(&from)) {
        return Err(Obstacle::EnteredInside);
    }
    let returns = code[range.clone()].iter().any(|instruction| matches!(instruction, Instruction::Return));
    if returns && !matches!(code.get(range.end), Some(Instruction::Return)) {
        return Err(Obstacle::Leaves);
    }
    let delete = |address: &usize| match &code[*address] {
        Instruction::Change(statement) => matches!(statement.as_ref(), BoundStatement::Delete(_)),
        _ => false,
    };
    if changes.iter().any(delete) && !changes.iter().all(delete) {
        return Err(Obstacle::MixedChanges);
    }
    let mut walk = Walk {
        unconditional_from: range.start,
        read: SlotSet::new(flow.variables),
        written: SlotSet::new(flow.variables),
        dirty: SlotSet::new(flow.variables),
        hoisted: Vec::new(),
        repeatable: Vec::new(),
    };
    for address in range.clone() {
        walk.step(code, flow, row, &range, address)?;
    }
    check_found(code, flow, &range, &changes, &walk)?;
    for part in row.key {
        let mut assigned = None;
        part.value.visit_slots(&mut |slot| {
            if walk.written.contains(slot) {
                assigned = Some(slot);
            }
        });
        if let Some(slot) = assigned {
            return Err(Obstacle::KeyAssigned(slot));
        }
    }
    let after = &flow.live[range.end];
    let special = |slot: &u16| *slot == flow.variables.found || *slot == flow.variables.row_count;
    if let Some(slot) = walk.dirty.iter().find(|slot| !special(slot) && after.contains(*slot)) {
        return Err(Obstacle::UsedLater(slot));
    }
    let repeated = needed(code, flow, after, &walk.repeatable);
    let Walk { hoisted, written, .. } = walk;
    Ok(Region { start: range.start, end: range.end, hoisted, repeated, changes, written })
}

impl Walk {
    fn step(
        &mut self,
        code: &[Instruction],
        flow: &Flow<'_>,
        row: &NamedRow<'_>,
        range: &std::ops::Range<usize>,
        address: usize,
    ) -> Result<(), Obstacle> {
        let instruction = &code[address];
        let unconditional = address >= self.unconditional_from;
        if matches!(instruction, Instruction::Return) {
            self.unconditional_from = range.end;
        } else if let Some(target) = jump_target(instruction) {
            self.unconditional_from = self.unconditional_from.max(target);
        }
        if matches!(part(instruction, row), Part::OtherRead) {
            if !unconditional || !self.can_come_first(flow, instruction) {
                return Err(Obstacle::OtherRead(table_read(instruction)));
            }
            self.hoisted.push(address);
            return Ok(());
        }
        let mut clean = true;
        flow.variables.reads(instruction, &mut |slot| {
            clean &= !self.dirty.contains(slot);
            self.read.insert(slot);
        });
        let found = flow.variables.found;
        let repeatable = match instruction {
            Instruction::Assign { slot, .. } => unconditional && clean && *slot != found,
            _ => false,
        };
        flow.variables.writes(instruction, &mut |slot| {
            self.written.insert(slot);
            match repeatable {
                true => self.dirty.remove(slot),
                false => self.dirty.insert(slot),
            }
        });
        if repeatable {
            self.repeatable.push(address);
        }
        Ok(())
    }

    /// Whether reading other rows can as well stand in front of all that stays in the region so far.
    fn can_come_first(&self, flow: &Flow<'_>, instruction: &Instruction) -> bool {
        let mut fits = true;
        let variables = flow.variables;
        variables.reads(instruction, &mut |slot| fits &= !self.written.contains(slot));
        variables.writes(instruction, &mut |slot| {
            // Nobody looks at FOUND where something is put in front; that is checked for the whole region.
            let special = slot == variables.found || slot == variables.row_count;
            fits &= special || !(self.read.contains(slot) || self.written.contains(slot));
        });
        fits && !can_fail(instruction)
    }
}

/// FOUND and ROW_COUNT must be those of the same statements as before.
fn check_found(
    code: &[Instruction],
    flow: &Flow<'_>,
    range: &std::ops::Range<usize>,
    changes: &[usize],
    walk: &Walk,
) -> Result<(), Obstacle> {
    let variables = flow.variables;
    let sets_found = matches!(
        code[range.start],
        Instruction::SelectInto(_) | Instruction::Perform(_) | Instruction::Change(_)
    );
    if walk.read.contains(variables.found) && (!sets_found || !walk.hoisted.is_empty()) {
        return Err(Obstacle::EarlierFound);
    }
    // A read in front of a change would find the row unchanged.
    if let (Some(last), Some(first)) = (walk.hoisted.last(), changes.first())
        && last > first
    {
        return Err(Obstacle::OtherRead(table_read(&code[*last])));
    }
    let after = &flow.live[range.end];
    if !after.contains(variables.found) && !after.contains(variables.row_count) {
        return Ok(());
    }
    let [change] = changes else { return Err(Obstacle::FoundUsedLater) };
    let mut set_afterwards = false;
    for instruction in &code[change + 1..range.end] {
        variables.writes(instruction, &mut |slot| {
            set_afterwards |= slot == variables.found || slot == variables.row_count;
        });
    }
    if set_afterwards || !always_passes(code, range, *change) {
        return Err(Obstacle::FoundUsedLater);
    }
    Ok(())
}

/// Whether every way through the region leads over the instruction at `change`.
fn always_passes(code: &[Instruction], range: &std::ops::Range<usize>, change: usize) -> bool {
    let mut reached = vec![false; range.len() + 1];
    reached[0] = true;
    for address in range.clone() {
        if !reached[address - range.start] || address == change {
            continue;
        }
        let instruction = &code[address];
        if matches!(instruction, Instruction::Return) {
            return false;
        }
        if let Some(target) = jump_target(instruction) {
            reached[target - range.start] = true;
        }
        if !instruction.never_goes_on() {
            reached[address + 1 - range.start] = true;
        }
    }
    !reached[range.len()]
}

/// Of the assignments that can be made once more, those that somebody needs.
fn needed(code: &[Instruction], flow: &Flow<'_>, after: &SlotSet, repeatable: &[usize]) -> Vec<usize> {
    let mut wanted = after.clone();
    let mut needed = Vec::new();
    for address in repeatable.iter().rev() {
        let Instruction::Assign { slot, .. } = &code[*address] else { continue };
        if wanted.contains(*slot) {
            wanted.remove(*slot);
            flow.variables.reads(&code[*address], &mut |slot| wanted.insert(slot));
            needed.push(*address);
        }
    }
    needed.reverse();
    needed
}

fn table_read(instruction: &Instruction) -> String {
    let source = query_of(instruction).and_then(|query| query.source.table());
    source.map_or_else(|| "no table".to_string(), |source| source.table.name.clone())
}

/// False only where the instruction never ends the call with an error, the limit on steps left aside.
pub(crate) fn can_fail(instruction: &Instruction) -> bool {
    match instruction {
        Instruction::Assign { value, .. } => value.can_fail(),
        Instruction::JumpIf { condition, .. } | Instruction::JumpUnless { condition, .. } => {
            condition.can_fail()
        }
        Instruction::Clear { .. }
        | Instruction::Jump { .. }
        | Instruction::LookAtFound
        | Instruction::Return => false,
        Instruction::SelectInto(select) => {
            let SelectInto { query, target } = select.as_ref();
            target.strict || target.stores.iter().any(store_can_fail) || query_can_fail(query)
        }
        Instruction::Perform(query) => query_can_fail(query),
        // Where there is no EXISTS, a second row is an error.
        Instruction::Subquery(plan) => query_can_fail(&plan.query) || !reads_one_row(&plan.query),
        Instruction::Change(statement) => match statement.as_ref() {
            BoundStatement::Update(update) => update.plan.can_ever_fail(),
            BoundStatement::Delete(delete) => delete.plan.can_ever_fail(),
            _ => true,
        },
        _ => true,
    }
}

fn reads_one_row(query: &BoundSelect) -> bool {
    match &query.source {
        From::Nothing => !query.has_subqueries,
        From::Table(source) => matches!(source.access, Access::Key(_)),
        From::Relation(_) => false,
    }
}

fn store_can_fail(store: &Store) -> bool {
    store.coercion != Coercion::None || store.not_null.is_some()
}

fn query_can_fail(query: &BoundSelect) -> bool {
    let Some(source) = query.source.table() else { return true };
    source.access.parts().any(|part| !part.cannot_fail())
        || source.filter.as_ref().is_some_and(|filter| filter.expression.can_fail())
        || query.projection.iter().any(Expression::can_fail)
        || !is_plain(query)
}
