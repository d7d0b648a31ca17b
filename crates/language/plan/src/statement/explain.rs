//! EXPLAIN of a statement: how rows are found and joined, and what that registers for conflict detection.

use crate::condition::Condition;
use crate::expression::{Capture, Expression, Names};
use crate::statement::{
    Access, BoundSelect, BoundStatement, ConflictAction, Distinctness, From, InsertSource, JoinKind,
    OnConflict, Relation, Scanned, SetOperation, SortKey,
};
use crate::table::TablePlan;
use types::{ColumnSet, TriggerEvent};

/// The lines of EXPLAIN; `None` for what is explained otherwise.
pub fn explain(statement: &BoundStatement) -> Option<Vec<String>> {
    let mut plan = Plan { lines: Vec::new(), depth: 0, kept: Vec::new() };
    plan.statement(statement).then_some(plan.lines)
}

/// The lines so far.
struct Plan {
    lines: Vec<String>,
    depth: usize,
    /// Numbers and names of the WITH queries whose rows are kept.
    kept: Vec<(usize, String)>,
}

impl Plan {
    /// Adds the lines of a statement. False: it is explained otherwise.
    fn statement(&mut self, statement: &BoundStatement) -> bool {
        match statement {
            BoundStatement::Select(select) => self.select(select),
            BoundStatement::Insert(insert) => {
                self.line(format!("Insert into {}", insert.table.name));
                self.depth += 1;
                match &insert.on_conflict {
                    None => {}
                    Some(OnConflict { action: ConflictAction::Nothing, .. }) => {
                        self.line("a row whose key exists is left out: reads existence")
                    }
                    Some(OnConflict { action: ConflictAction::Update { uses, .. }, .. }) => {
                        let uses = columns(&insert.table, *uses);
                        self.line(format!("a row whose key exists is changed: reads {uses} of it"));
                    }
                }
                match &insert.source {
                    InsertSource::Rows(rows) => self.line(format!("{} given", counted(rows.len(), "row"))),
                    InsertSource::Select(select, _) => self.select(select),
                }
                let mut events = vec![TriggerEvent::Insert];
                if let Some(OnConflict { action: ConflictAction::Update { .. }, .. }) = &insert.on_conflict {
                    events.push(TriggerEvent::Update);
                }
                self.triggers(&insert.table, &events);
            }
            BoundStatement::Update(update) => {
                let table = &update.plan.table;
                let writes = columns(table, update.plan.writes);
                let moves = if update.plan.moves { ", and move the row to another key" } else { "" };
                self.line(format!("Update {}: commands that write {writes}{moves}", table.name));
                self.change(table, &update.access, update.filter.as_ref(), TriggerEvent::Update);
            }
            BoundStatement::Delete(delete) => {
                let table = &delete.plan.table;
                self.line(format!("Delete from {}: commands", table.name));
                let event =
                    if delete.truncation.is_some() { TriggerEvent::Truncate } else { TriggerEvent::Delete };
                self.change(table, &delete.access, delete.filter.as_ref(), event);
            }
            BoundStatement::With(with) => {
                let depth = self.depth;
                for change in &with.changes {
                    self.line(format!("With {}, once", change.name));
                    self.depth = depth + 1;
                    self.statement(&change.statement);
                    self.depth = depth;
                    self.kept.push((change.number, change.name.clone()));
                }
                self.statement(&with.main);
            }
            BoundStatement::Call(_) | BoundStatement::Explain(_) => return false,
        }
        true
    }

    fn line(&mut self, text: impl AsRef<str>) {
        self.lines.push(format!("{}{}", "  ".repeat(self.depth), text.as_ref()));
    }

    fn select(&mut self, select: &BoundSelect) {
        let depth = self.depth;
        let mut steps = Vec::new();
        if select.limit.is_some() || select.offset.is_some() {
            steps.push("Limit".to_string());
        }
        match &select.distinct {
            Distinctness::All => {}
            Distinctness::Distinct => steps.push("Distinct".to_string()),
            Distinctness::On(expressions) => {
                steps.push(format!("Distinct on {}", counted(expressions.len(), "expression")));
            }
        }
        if !select.order.is_empty() {
            steps.push(format!("Sort by {}", sort_keys(select, &select.order)));
        }
        if !select.windows.is_empty() {
            steps.push(counted(select.windows.len(), "window function"));
        }
        if let Some(grouping) = &select.grouping {
            let keys = counted(grouping.keys.len(), "key");
            let aggregates = counted(grouping.aggregates.len(), "aggregate");
            let having = if grouping.having.is_some() { ", HAVING" } else { "" };
            steps.push(format!("Group by {keys}, {aggregates}{having}"));
        }
        if select.filter.is_some() {
            steps.push("Filter by conditions that no relation could take".to_string());
        }
        for step in steps {
            self.line(step);
            self.depth += 1;
        }
        match &select.source {
            From::Nothing => self.line("One row"),
            From::Table(scanned) => self.table(scanned, select.reverse),
            From::Relation(relation) => self.relation(relation),
        }
        self.subqueries(select);
        self.depth = depth;
    }

    fn subqueries(&mut self, select: &BoundSelect) {
        for subquery in select.subqueries() {
            let alone = subquery.arguments.is_empty();
            let when = if alone { "once, if its value is asked for" } else { "for the rows around it" };
            self.line(format!("Subquery, run {when}"));
            self.depth += 1;
            self.select(&subquery.query);
            self.depth -= 1;
        }
    }

    fn relation(&mut self, relation: &Relation) {
        match relation {
            Relation::Table(scanned) => self.table(scanned, false),
            Relation::Query { query, filter, .. } => {
                self.line(if filter.is_some() { "Query, filtered" } else { "Query" });
                self.depth += 1;
                self.select(query);
                self.depth -= 1;
            }
            Relation::Values(rows) => self.line(format!("{} given", counted(rows.len(), "row"))),
            Relation::Function { function, .. } => self.line(function.explanation()),
            Relation::Call(call) => self.line(format!("Rows of {}()", call.callee.name)),
            Relation::Set { operation, all, sides } => {
                let name = match operation {
                    SetOperation::Union => "Union",
                    SetOperation::Intersect => "Intersect",
                    SetOperation::Except => "Except",
                };
                self.line(format!("{name}{}", if *all { " all" } else { "" }));
                self.depth += 1;
                sides.iter().for_each(|side| self.select(side));
                self.depth -= 1;
            }
            Relation::Recursive { sides, .. } => {
                self.line("Recursive: the second query runs on what was found last, until it finds nothing");
                self.depth += 1;
                sides.iter().for_each(|side| self.select(side));
                self.depth -= 1;
            }
            Relation::Working(number) => {
                match self.kept.iter().find(|(known, _)| known == number).map(|(_, name)| name.clone()) {
                    Some(name) => self.line(format!("Rows that {name} returns")),
                    None => self.line("Rows that were found last"),
                }
            }
            Relation::Join(join) => {
                let kind = match join.kind {
                    JoinKind::Inner => "Join",
                    JoinKind::Left => "Left join",
                    JoinKind::Right => "Right join",
                    JoinKind::Full => "Full join",
                };
                let how = match (join.dependent, join.equal.len()) {
                    (true, _) => "the right side is read for every row of the left one".to_string(),
                    (false, 0) => "every row with every row".to_string(),
                    (false, count) => format!("matched by {}", counted(count, "equality")),
                };
                let rest = if join.condition.is_some() { ", then filtered" } else { "" };
                self.line(format!("{kind}: {how}{rest}"));
                self.depth += 1;
                self.relation(&join.left);
                self.relation(&join.right);
                self.depth -= 1;
            }
        }
    }

    fn table(&mut self, scanned: &Scanned, reverse: bool) {
        let Scanned { table, access, filter, columns: looked_at, past, .. } = scanned;
        let conditions =
            conditions(table, access, filter.as_ref().map(|filter| (&*filter.expression, &filter.capture)));
        let how = match access {
            Access::Key(_) => "Row by key of".to_string(),
            Access::Range(interval) if interval.is_whole() => "Scan of".to_string(),
            Access::Range(_) => "Scan of a range of the key of".to_string(),
            Access::Index(access) => format!("Scan of {} of", access.shown()),
            Access::Found(_) => "Rows of".to_string(),
        };
        let backwards = if reverse { ", backwards" } else { "" };
        let registers = match access {
            Access::Key(_) => "registers a read of",
            _ => "registers a scan of",
        };
        if past.is_some() {
            self.line(format!("{how} {}{conditions}{backwards}, as it was; registers nothing", table.name));
            return;
        }
        let looked_at = columns(table, *looked_at);
        self.line(format!("{how} {}{conditions}{backwards}; {registers} {looked_at}", table.name));
    }

    /// The triggers that fire at these events.
    fn triggers(&mut self, table: &TablePlan, events: &[TriggerEvent]) {
        for event in events {
            table.triggers.described(*event).for_each(|line| self.line(line));
        }
    }

    fn change(
        &mut self,
        table: &TablePlan,
        access: &Access,
        filter: Option<&Condition>,
        event: TriggerEvent,
    ) {
        self.depth += 1;
        match access {
            Access::Key(_) if table.triggers.at(event).rows => {
                let conditions = conditions(table, access, None);
                self.line(format!("Row by key{conditions}; registers a read of all columns"));
            }
            Access::Key(_) => {
                self.line(format!("Row by key{}; registers nothing", conditions(table, access, None)));
            }
            Access::Range(_) | Access::Index(_) => {
                let asked = filter.map(|filter| (&*filter.expression, &filter.capture));
                let looked_at =
                    columns(table, asked.map_or(ColumnSet::EXISTS, |(expression, _)| expression.columns()));
                let conditions = conditions(table, access, asked);
                let how = match access {
                    Access::Index(access) => format!("{} of ", access.shown()),
                    _ => String::new(),
                };
                self.line(format!(
                    "Scan of {how}{}{conditions}; registers a scan of {looked_at}",
                    table.name
                ));
            }
            Access::Found(select) => {
                self.line("Rows that a query finds");
                self.depth += 1;
                self.select(select);
                self.depth -= 1;
            }
        }
        self.triggers(table, &[event]);
        self.depth -= 1;
    }
}

fn counted(count: usize, what: &str) -> String {
    match (count, what.strip_suffix('y')) {
        (1, _) => format!("1 {what}"),
        (_, Some(stem)) if what != "key" => format!("{count} {stem}ies"),
        _ => format!("{count} {what}s"),
    }
}

fn sort_keys(select: &BoundSelect, keys: &[SortKey]) -> String {
    let name = |key: &SortKey| {
        let column = key.output.and_then(|position| select.columns.get(position));
        let name = column.map_or_else(|| "an expression".to_string(), |column| column.name.clone());
        format!("{name}{}", if key.descending { " DESC" } else { "" })
    };
    keys.iter().map(name).collect::<Vec<_>>().join(", ")
}

fn column_name(table: &TablePlan, ordinal: u16) -> String {
    let column = table.columns.get(usize::from(ordinal));
    column.map_or_else(|| format!("column {}", ordinal + 1), |column| column.name.clone())
}

/// The WHERE that a table answers itself.
fn conditions(table: &TablePlan, access: &Access, filter: Option<(&Expression, &Capture)>) -> String {
    let variable = |slot: u16| format!("${}", slot + 1);
    let text = |expression: &Expression, capture: Option<&Capture>| {
        let column = |ordinal: u16| column_name(table, ordinal);
        let captured = |slot: u16| match capture.and_then(|capture| capture.sources.get(usize::from(slot))) {
            Some(source) => source.describe(Names { column: &column, variable: &variable }),
            None => variable(slot),
        };
        expression.describe(Names { column: &column, variable: &captured })
    };
    let mut found: Vec<String> = match access {
        Access::Key(parts) => {
            let named = table.key.iter().zip(parts);
            named
                .map(|(ordinal, part)| {
                    format!("{} = {}", column_name(table, *ordinal), text(&part.value, None))
                })
                .collect()
        }
        // The filter has all the conditions.
        Access::Range(_) | Access::Index(_) | Access::Found(_) => Vec::new(),
    };
    found.extend(filter.map(|(expression, capture)| text(expression, Some(capture))));
    if found.is_empty() { String::new() } else { format!(" WHERE {}", found.join(" AND ")) }
}

/// The names of columns; existence belongs to all of them and is not named.
pub fn columns(table: &TablePlan, set: ColumnSet) -> String {
    if set == ColumnSet::ALL {
        return "all columns".to_string();
    }
    let named = |ordinal: &usize| set.intersects(ColumnSet::column(*ordinal));
    let names: Vec<&str> =
        (0..table.columns.len()).filter(named).map(|ordinal| table.columns[ordinal].name.as_str()).collect();
    if names.is_empty() { "existence".to_string() } else { names.join(", ") }
}
