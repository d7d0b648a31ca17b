//! Which variables a bound statement reads. Fusion relies on this list being complete.

use super::{
    Access, BoundDelete, BoundInsert, BoundSelect, BoundStatement, BoundUpdate, InsertSource, Returning,
    Scanned,
};
use crate::expression::{Capture, Expression};
use crate::predicate::Condition;

/// Gets every slot that is read, some of them several times.
pub(crate) type VisitSlot<'v> = dyn FnMut(u16) + 'v;

impl BoundStatement {
    /// Visits the slots that it reads.
    pub fn visit_slots(&self, visit: &mut VisitSlot<'_>) {
        match self {
            BoundStatement::Select(select) => select.visit_slots(visit),
            BoundStatement::Insert(insert) => insert.visit_slots(visit),
            BoundStatement::Update(update) => update.visit_slots(visit),
            BoundStatement::Delete(delete) => delete.visit_slots(visit),
            BoundStatement::Call(call) => visit_all(&call.arguments, visit),
            BoundStatement::Explain(_) => {}
        }
    }
}

impl BoundSelect {
    /// Visits the slots that it reads.
    pub fn visit_slots(&self, visit: &mut VisitSlot<'_>) {
        let BoundSelect {
            source,
            filter,
            grouping,
            projection,
            columns: _,
            distinct: _,
            order,
            reverse: _,
            limit,
            offset,
        } = self;
        if let Some(Scanned { table: _, access, filter, columns: _, filter_columns: _ }) = source {
            access.visit_slots(visit);
            visit_condition(filter.as_ref(), visit);
        }
        if let Some(grouping) = grouping {
            visit_all(&grouping.keys, visit);
            for aggregate in &grouping.aggregates {
                visit_all(&aggregate.argument, visit);
                visit_all(&aggregate.filter, visit);
            }
            visit_all(&grouping.having, visit);
        }
        visit_all(filter, visit);
        visit_all(projection, visit);
        order.iter().for_each(|key| key.expression.visit_slots(visit));
        visit_all(limit, visit);
        visit_all(offset, visit);
    }
}

impl BoundInsert {
    fn visit_slots(&self, visit: &mut VisitSlot<'_>) {
        match &self.source {
            InsertSource::Rows(rows) => rows.iter().for_each(|row| visit_all(row, visit)),
            InsertSource::Select(select, targets) => {
                select.visit_slots(visit);
                visit_all(targets, visit);
            }
        }
        visit_returning(self.returning.as_ref(), visit);
    }
}

impl BoundUpdate {
    fn visit_slots(&self, visit: &mut VisitSlot<'_>) {
        self.plan.visit_slots(visit);
        self.access.visit_slots(visit);
        visit_condition(self.filter.as_ref(), visit);
        visit_returning(self.returning.as_ref(), visit);
    }
}

impl BoundDelete {
    fn visit_slots(&self, visit: &mut VisitSlot<'_>) {
        self.plan.visit_slots(visit);
        self.access.visit_slots(visit);
        visit_condition(self.filter.as_ref(), visit);
        visit_returning(self.returning.as_ref(), visit);
    }
}

impl Access {
    /// Visits the slots that it reads.
    pub fn visit_slots(&self, visit: &mut VisitSlot<'_>) {
        let parts = match self {
            Access::Key(parts) => return parts.iter().for_each(|part| part.value.visit_slots(visit)),
            Access::Range { equal, lower, upper } => {
                let bounds = [lower, upper].into_iter().flatten().map(|(part, _)| part);
                equal.iter().chain(bounds)
            }
        };
        parts.for_each(|part| part.value.visit_slots(visit));
    }
}

impl Expression {
    /// Visits the slots that it reads.
    pub fn visit_slots(&self, visit: &mut VisitSlot<'_>) {
        self.any(&mut |expression| {
            if let Some(slot) = expression.as_slot() {
                visit(slot as u16);
            }
            false
        });
    }
}

impl Capture {
    /// Visits the slots that are captured.
    pub fn visit_slots(&self, visit: &mut VisitSlot<'_>) {
        self.slots.iter().for_each(|slot| visit(*slot));
    }
}

fn visit_all<'e>(expressions: impl IntoIterator<Item = &'e Expression>, visit: &mut VisitSlot<'_>) {
    expressions.into_iter().for_each(|expression| expression.visit_slots(visit));
}

fn visit_condition(condition: Option<&Condition>, visit: &mut VisitSlot<'_>) {
    if let Some(condition) = condition {
        condition.capture.visit_slots(visit);
    }
}

fn visit_returning(returning: Option<&Returning>, visit: &mut VisitSlot<'_>) {
    if let Some(returning) = returning {
        visit_all(&returning.projection, visit);
    }
}
