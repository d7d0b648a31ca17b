//! EXPLAIN CALL: what a procedure reads, what it changes by commands, and why a read could not be avoided.

use crate::analysis::Runs;
use crate::fuse::flow::Surroundings;
use crate::fuse::obstacle::Obstacle;
use crate::fuse::{guarded_changes, query_of, reads_rows};
use crate::program::{Address, CompiledProcedure, FusedStatement, Instruction, RaiseMessage, RaisePlan};
use plan::expression::{Capture, Expression, Names};
use plan::statement::{Access, BoundSelect, BoundStatement, From, InsertSource};
use plan::table::TablePlan;
use types::{ColumnSet, ParameterMode, Procedure};

/// The lines of EXPLAIN CALL.
pub fn explain(definition: &Procedure, procedure: &CompiledProcedure) -> Vec<String> {
    let parameters = definition.parameters.iter().map(|parameter| {
        let mode = match parameter.mode {
            ParameterMode::In => "",
            ParameterMode::Out => "OUT ",
            ParameterMode::InOut => "INOUT ",
            ParameterMode::Variadic => "VARIADIC ",
        };
        format!("{mode}{} {}", parameter.name, parameter.data_type.family())
    });
    let mut explained = Explained {
        procedure,
        guarded: guarded_changes(
            &procedure.code,
            &Surroundings {
                slots: procedure.slots,
                found: procedure.found,
                outputs: &procedure.outputs,
                types: &procedure.types,
                protected: &[],
            },
        ),
        lines: vec![format!("CALL {}({})", definition.name, parameters.collect::<Vec<_>>().join(", "))],
        registered: 0,
        avoided: 0,
    };
    for (address, instruction) in procedure.code.iter().enumerate() {
        explained.instruction(address, instruction);
    }
    let Explained { mut lines, registered, avoided, .. } = explained;
    lines.push(format!("Reads registered: {registered}, avoided by fusion: {avoided}"));
    lines
}

/// The lines so far.
struct Explained<'p> {
    procedure: &'p CompiledProcedure,
    /// By address: whether somebody looks at how many rows the change matched.
    guarded: Vec<bool>,
    lines: Vec<String>,
    registered: usize,
    avoided: usize,
}

impl Explained<'_> {
    fn instruction(&mut self, address: usize, instruction: &Instruction) {
        if reads_rows(instruction) {
            if let Some(Runs::Query(query)) = instruction.runs() {
                self.read(address, query);
            }
            return;
        }
        match instruction {
            // What it gives is the caller's.
            Instruction::ReturnQuery(_) => {}
            Instruction::Call(call) => {
                if let BoundStatement::Call(call) = &call.statement {
                    let text = format!("Call: {0}, explained by EXPLAIN CALL {0}(…)", call.procedure);
                    self.lines.push(text);
                }
            }
            Instruction::Fused(fused) => self.fused(address, fused),
            other => match other.runs() {
                Some(Runs::Statement(statement)) => self.change(address, statement),
                Some(Runs::Dynamic(_) | Runs::Late(_)) => {
                    self.lines.push("Execute: known when it runs".to_string());
                }
                Some(Runs::Query(_)) | None => {}
            },
        }
    }

    fn variable(&self, slot: u16) -> String {
        match self.procedure.names.get(usize::from(slot)).map(Box::as_ref) {
            Some("") | None => format!("${slot}"),
            Some(name) if name.starts_with("__") => "the value of a subquery or CASE".to_string(),
            Some(name) => name.to_string(),
        }
    }

    fn text(&self, expression: &Expression, table: Option<&TablePlan>, captured: Option<&Capture>) -> String {
        let column = |ordinal: u16| column_name(table, ordinal);
        let variable = |slot: u16| match captured {
            Some(capture) => match capture.sources.get(usize::from(slot)) {
                Some(source) => self.text(source, None, None),
                None => self.variable(slot),
            },
            None => self.variable(slot),
        };
        expression.describe(Names { column: &column, variable: &variable })
    }

    /// The WHERE that an access and what is left of the conditions come from.
    fn conditions(&self, table: &TablePlan, access: &Access, filter: Option<String>) -> String {
        let key = |position: usize, operator: &str, value: &Expression| {
            let ordinal = table.key.get(position).copied().unwrap_or_default();
            format!("{} {operator} {}", column_name(Some(table), ordinal), self.text(value, None, None))
        };
        let mut conditions: Vec<String> = match access {
            Access::Key(parts) => {
                parts.iter().enumerate().map(|(position, part)| key(position, "=", &part.value)).collect()
            }
            // The filter has all the conditions.
            Access::Range(_) | Access::Index(_) => Vec::new(),
            Access::Found(select) => vec![format!("found by a query of {}", select.tables().join(", "))],
        };
        conditions.extend(filter);
        if conditions.is_empty() { String::new() } else { format!(" WHERE {}", conditions.join(" AND ")) }
    }

    fn select(&self, query: &BoundSelect) -> String {
        let source = match &query.source {
            From::Table(source) => source,
            From::Nothing | From::Relation(_) => return format!("columns of {}", query.tables().join(", ")),
        };
        let filter = source
            .filter
            .as_ref()
            .map(|filter| self.text(&filter.expression, Some(&source.table), Some(&filter.capture)));
        let where_clause = self.conditions(&source.table, &source.access, filter);
        format!("columns {} of {}{where_clause}", columns(&source.table, source.columns), source.table.name)
    }

    fn read(&mut self, address: usize, query: &BoundSelect) {
        let why = self.procedure.obstacles.iter().find(|(known, _)| *known == address as Address);
        let why = why.map_or(&Obstacle::NotChanged, |(_, obstacle)| obstacle);
        let why = why.describe(&|slot| self.variable(slot));
        self.read_with(query, &why);
    }

    /// A query that reads rows, and why.
    fn read_with(&mut self, query: &BoundSelect, why: &str) {
        if !query.reads_rows() {
            return;
        }
        let by_key = query.source.table().is_some_and(|source| matches!(source.access, Access::Key(_)));
        let what = if by_key { "Read" } else { "Scan" };
        self.lines.push(format!("{what}: {}", self.select(query)));
        self.lines.push(format!("  not avoided: {why}"));
        self.registered += 1;
    }

    /// The change in the form of SQL.
    fn change_text(&self, statement: &BoundStatement) -> String {
        match statement {
            BoundStatement::Insert(insert) => format!("INSERT INTO {}", insert.table.name),
            BoundStatement::Update(update) => {
                let table = &update.plan.table;
                let texts = update.plan.texts(&|value, captured| self.text(value, Some(table), captured));
                let filter = update
                    .filter
                    .as_ref()
                    .map(|filter| self.text(&filter.expression, Some(table), Some(&filter.capture)));
                let assignments: Vec<String> = texts
                    .assignments
                    .into_iter()
                    .map(|(ordinal, value)| format!("{} = {value}", column_name(Some(table), ordinal)))
                    .collect();
                let where_clause = self.conditions(table, &update.access, texts.filter.or(filter));
                format!("UPDATE {} SET {}{where_clause}", table.name, assignments.join(", "))
            }
            BoundStatement::Delete(delete) => {
                let table = &delete.plan.table;
                let asked =
                    delete.plan.filter_text(&|value, captured| self.text(value, Some(table), captured));
                let filter = delete
                    .filter
                    .as_ref()
                    .map(|filter| self.text(&filter.expression, Some(table), Some(&filter.capture)));
                let where_clause = self.conditions(table, &delete.access, asked.or(filter));
                format!("DELETE FROM {}{where_clause}", table.name)
            }
            BoundStatement::With(with) => {
                let texts: Vec<String> = with.statements().map(|part| self.change_text(part)).collect();
                texts
                    .iter()
                    .filter(|text| !text.is_empty())
                    .map(String::as_str)
                    .collect::<Vec<_>>()
                    .join("; ")
            }
            BoundStatement::Select(_) | BoundStatement::Call(_) | BoundStatement::Explain(_) => String::new(),
        }
    }

    fn change(&mut self, address: usize, statement: &BoundStatement) {
        if let BoundStatement::With(with) = statement {
            return with.statements().for_each(|part| match part {
                BoundStatement::Select(select) => self.read_with(select, "its rows are asked for"),
                part => self.change(address, part),
            });
        }
        self.lines.push(format!("Command: {}", self.change_text(statement)));
        if let Some((table, event)) = statement.change() {
            let described = table.triggers.described(event);
            self.lines.extend(described.map(|line| format!("  {line}")));
        }
        let (table, access, uses, filter_columns) = match statement {
            BoundStatement::Update(update) => {
                (&update.plan.table, &update.access, update.plan.uses, update.filter_columns)
            }
            BoundStatement::Delete(delete) => {
                (&delete.plan.table, &delete.access, delete.plan.uses, delete.filter_columns)
            }
            BoundStatement::Insert(insert) => {
                if let InsertSource::Select(select, _) = &insert.source {
                    self.read_with(select, "its rows are inserted");
                }
                return;
            }
            _ => return,
        };
        self.lines.push(format!("  uses {}", columns(table, uses)));
        if let Access::Found(select) = access {
            self.read_with(select, "it finds the rows");
        }
        if matches!(access, Access::Range(_) | Access::Index(_)) {
            let scanned = columns(table, filter_columns | ColumnSet::EXISTS);
            self.lines.push(format!("Scan: columns {scanned} of {} to find the rows", table.name));
            self.lines.push(format!("  not avoided: {}", Obstacle::NotByKey.describe(&|_| String::new())));
            self.registered += 1;
        }
        if statement.returns_rows() {
            self.lines.push("  RETURNING registers what it shows as read".to_string());
            self.registered += 1;
        }
        self.guard(address);
    }

    fn guard(&mut self, address: usize) {
        if self.guarded.get(address).copied().unwrap_or_default() {
            self.lines
                .push("  guard: whether a row matched, because FOUND or ROW_COUNT is looked at".to_string());
        }
    }

    fn fused(&mut self, address: usize, fused: &FusedStatement) {
        let table = fused.table();
        let key: Vec<String> = table
            .key
            .iter()
            .zip(fused.key())
            .map(|(ordinal, part)| {
                let column = column_name(Some(table), *ordinal);
                format!("{column} = {}", self.text(&part.value, None, None))
            })
            .collect();
        self.lines.push(format!("Fused command: {} WHERE {}", table.name, key.join(" AND ")));
        for instruction in &fused.program().code {
            let line = match instruction {
                Instruction::Assign { slot, value } => {
                    format!("{} := {}", self.variable(*slot), self.text(value, None, None))
                }
                Instruction::JumpUnless { condition, .. } => {
                    format!("if {}", self.text(condition, None, None))
                }
                Instruction::JumpIf { condition, .. } => {
                    format!("unless {}", self.text(condition, None, None))
                }
                Instruction::Assert(assertion) => format!("assert {}", self.text(&assertion.0, None, None)),
                Instruction::Raise(plan) => raise_text(plan),
                Instruction::Change(statement) => self.change_text(statement),
                read => match query_of(read) {
                    Some(query) => {
                        self.avoided += 1;
                        format!("avoided read: {}", self.select(query))
                    }
                    None => continue,
                },
            };
            self.lines.push(format!("  {line}"));
        }
        let (uses, writes) = fused.columns();
        self.lines.push(format!("  uses {}, writes {}", columns(table, uses), columns(table, writes)));
        self.guard(address);
    }
}

fn raise_text(plan: &RaisePlan) -> String {
    let text = match &plan.message {
        RaiseMessage::Format { pieces, .. } => format!("'{}'", pieces.join("%")),
        RaiseMessage::Condition(name) => name.to_string(),
        RaiseMessage::Code => "the error of its options".to_string(),
    };
    format!("raise {text}")
}

fn column_name(table: Option<&TablePlan>, ordinal: u16) -> String {
    let column = table.and_then(|table| table.columns.get(usize::from(ordinal)));
    column.map_or_else(|| format!("column {}", ordinal + 1), |column| column.name.clone())
}

/// The names of columns; existence belongs to all of them and is not named.
fn columns(table: &TablePlan, set: ColumnSet) -> String {
    if set == ColumnSet::ALL {
        return "all".to_string();
    }
    let named = |ordinal: &usize| set.intersects(ColumnSet::column(*ordinal));
    let names: Vec<&str> =
        (0..table.columns.len()).filter(named).map(|ordinal| table.columns[ordinal].name.as_str()).collect();
    if names.is_empty() { "existence".to_string() } else { names.join(", ") }
}
