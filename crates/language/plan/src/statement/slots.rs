//! Which variables a bound statement reads. Fusion relies on this list being complete.

use crate::condition::Condition;
use crate::expression::{Capture, Expression, Kind, RoutineCall, Subquery};
use crate::statement::visit::{VisitExpression, VisitSlot};
use crate::statement::{
    Access, BoundDelete, BoundInsert, BoundSelect, BoundStatement, BoundUpdate, ConflictAction, Distinctness,
    From, InsertSource, OnConflict, Returning, Scanned,
};
use std::sync::Arc;

impl BoundStatement {
    /// Visits the slots that it reads.
    pub fn visit_slots(&self, visit: &mut VisitSlot<'_>) {
        match self {
            BoundStatement::Select(select) => select.visit_slots(visit),
            BoundStatement::Insert(insert) => insert.visit_slots(visit),
            BoundStatement::Update(update) => update.visit_slots(visit),
            BoundStatement::Delete(delete) => delete.visit_slots(visit),
            BoundStatement::With(with) => with.statements().for_each(|part| part.visit_slots(visit)),
            BoundStatement::Call(call) => visit_all(&call.arguments, visit),
            BoundStatement::Explain(_) => {}
        }
    }
}

impl BoundSelect {
    /// Visits the slots that it reads.
    pub fn visit_slots(&self, visit: &mut VisitSlot<'_>) {
        self.visit_expressions(&mut |expression| {
            expression.any(&mut |inner| {
                if let Kind::Slot(slot) = inner.kind {
                    visit(slot);
                }
                false
            });
        });
        self.visit_queries(&mut |query| query.visit_slots(visit));
    }

    /// Visits the queries in its FROM and its expressions, each once however many expressions have it: ORDER BY and GROUP
    /// BY repeat what stands in the output, and nested queries would be visited twice as often with every level.
    pub fn visit_queries(&self, visit: &mut dyn FnMut(&BoundSelect)) {
        if let From::Relation(relation) = &self.source {
            relation.visit_queries(visit);
        }
        self.subqueries().iter().for_each(|subquery| visit(&subquery.query));
    }

    /// The subqueries of its expressions, each once.
    pub fn subqueries(&self) -> Vec<Subquery> {
        let mut found: Vec<Subquery> = Vec::new();
        self.visit_expressions(&mut |expression| {
            expression.any(&mut |inner| {
                if let Kind::Subquery(subquery) = &inner.kind
                    && !found.iter().any(|known| Arc::ptr_eq(&known.query, &subquery.query))
                {
                    found.push(subquery.as_ref().clone());
                }
                false
            });
        });
        found
    }

    /// Visits the expressions of the query, without those of the queries inside of it.
    pub fn visit_expressions(&self, visit: &mut VisitExpression<'_>) {
        let BoundSelect {
            source,
            filter,
            grouping,
            windows,
            projection,
            columns: _,
            distinct,
            order,
            reverse: _,
            limit,
            offset,
            ties: _,
            has_subqueries: _,
            literals: _,
            origins: _,
            lock: _,
        } = self;
        match source {
            From::Nothing => {}
            From::Table(scanned) => scanned.visit_expressions(visit),
            From::Relation(relation) => relation.visit_expressions(visit),
        }
        if let Distinctness::On(expressions) = distinct {
            expressions.iter().for_each(&mut *visit);
        }
        if let Some(grouping) = grouping {
            let aggregated = grouping.aggregates.iter().flat_map(|aggregate| aggregate.expressions());
            let expressions = grouping.keys.iter().chain(aggregated).chain(&grouping.having);
            expressions.for_each(&mut *visit);
        }
        windows.iter().flat_map(|window| window.expressions()).for_each(&mut *visit);
        let ordered = order.iter().map(|key| &key.expression);
        filter.iter().chain(projection).chain(ordered).chain(limit).chain(offset).for_each(visit);
    }

    /// Visits the calls of functions in it and in the queries inside of it.
    pub fn visit_calls(&self, visit: &mut dyn FnMut(&RoutineCall)) {
        self.visit_expressions(&mut |expression| expression.visit_calls(visit));
        if let From::Relation(relation) = &self.source {
            relation.visit_calls(visit);
        }
        self.visit_queries(&mut |query| query.visit_calls(visit));
    }

    /// Visits the tables that it reads, those of the queries inside of it included.
    pub fn visit_tables(&self, visit: &mut dyn FnMut(&Scanned)) {
        match &self.source {
            From::Nothing => {}
            From::Table(scanned) => visit(scanned),
            From::Relation(relation) => relation.visit_tables(visit),
        }
        self.visit_queries(&mut |query| query.visit_tables(visit));
    }
}

impl Scanned {
    /// Visits the expressions that say which rows are read.
    pub fn visit_expressions(&self, visit: &mut VisitExpression<'_>) {
        let Scanned { table: _, access, filter, columns: _, filter_columns: _, keyed: _, locking: _, past } =
            self;
        past.iter().for_each(|height| visit(height));
        access.parts().for_each(|part| visit(&part.value));
        filter.iter().flat_map(|filter| &filter.capture.sources).for_each(visit);
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
        if let Some(OnConflict { action: ConflictAction::Update { values, condition, .. }, .. }) =
            &self.on_conflict
        {
            visit_all(values.iter().chain(condition), visit);
        }
        visit_returning(self.returning.as_ref(), visit);
    }
}

impl BoundUpdate {
    fn visit_slots(&self, visit: &mut VisitSlot<'_>) {
        // What a query has found the plan takes from the row that was found.
        if !matches!(self.access, Access::Found(_)) {
            self.plan.visit_slots(visit);
        }
        self.access.visit_slots(visit);
        visit_condition(self.filter.as_ref(), visit);
        visit_returning(self.returning.as_ref(), visit);
    }
}

impl BoundDelete {
    fn visit_slots(&self, visit: &mut VisitSlot<'_>) {
        // What a query has found the plan takes from the row that was found.
        if !matches!(self.access, Access::Found(_)) {
            self.plan.visit_slots(visit);
        }
        self.access.visit_slots(visit);
        visit_condition(self.filter.as_ref(), visit);
        visit_returning(self.returning.as_ref(), visit);
    }
}

impl Access {
    /// Visits the slots that it reads.
    pub fn visit_slots(&self, visit: &mut VisitSlot<'_>) {
        self.parts().for_each(|part| part.value.visit_slots(visit));
        if let Access::Found(select) = self {
            select.visit_slots(visit);
        }
    }
}

impl Expression {
    /// Visits the slots that it reads.
    pub fn visit_slots(&self, visit: &mut VisitSlot<'_>) {
        self.any(&mut |expression| {
            match &expression.kind {
                Kind::Slot(slot) => visit(*slot),
                Kind::Subquery(subquery) => subquery.query.visit_slots(visit),
                _ => {}
            }
            false
        });
    }
}

impl Capture {
    /// Visits the slots that are captured.
    pub fn visit_slots(&self, visit: &mut VisitSlot<'_>) {
        visit_all(&self.sources, visit);
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
