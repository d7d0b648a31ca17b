//! Triggers of a catalog: which fire at what, and what their functions are given.

use crate::expand_rows::{expand_rows, span_of_row};
use crate::expression::written::first_subquery;
use crate::expression::{Binder, Expression, Kind, NamedRelation, Relations, Source};
use crate::polymorphic::Callee;
use crate::scope::VariableScope;
use crate::table::TablePlan;
use crate::tables::Tables;
use sqlparser::ast::Expr;
use std::collections::BTreeMap;
use std::sync::Arc;
use syntax::parse::parse_expression;
use types::{
    Array, Catalog, DataType, ElementType, Procedure, Row, SqlError, SqlState, Trigger, TriggerEvent, Value,
    schema_of,
};

/// By which numbers the relations of OLD TABLE and NEW TABLE are known; those of recursive queries are small.
pub const OLD_TABLE: usize = usize::MAX - 1;
/// See [`OLD_TABLE`].
pub const NEW_TABLE: usize = usize::MAX;

/// What PostgreSQL calls a trigger that cannot be: `invalid_object_definition`.
pub const INVALID_DEFINITION: SqlState = SqlState(*b"42P17");

/// A trigger of a table, bound: when it fires, and what its function gets.
#[derive(Debug)]
pub struct TriggerPlan {
    /// Its place among the triggers of its catalog.
    pub number: usize,
    /// As the catalog has it.
    pub definition: Arc<Trigger>,
    /// What it calls.
    pub function: Arc<Procedure>,
    /// UPDATE OF, as ordinals.
    columns: Vec<u16>,
    /// WHEN, over the columns of the row before and then those of the row after.
    pub condition: Option<Result<Expression, SqlError>>,
    /// What WHEN calls.
    pub called_by_condition: Vec<Callee>,
    /// Columns of the table.
    width: usize,
    /// `TG_NAME`, `TG_WHEN` and `TG_LEVEL`.
    what: [Value; 3],
    /// The table as `TG_RELID` and the names after it say it, then `TG_NARGS` and `TG_ARGV`.
    whose: [Value; 6],
}

/// The tables and views of a catalog that have triggers, each with these.
pub fn triggered<'c>(
    tables: &'c Tables,
    catalog: &'c Catalog,
) -> impl Iterator<Item = (&'c Arc<TablePlan>, &'c BTreeMap<String, Arc<Trigger>>)> {
    let of_tables = catalog.triggers.iter().filter_map(|(id, triggers)| Some((tables.by_id(*id)?, triggers)));
    let of_views = catalog.views.values().filter_map(|view| {
        let target = tables.view(&view.name)?.target()?;
        Some((target, &view.triggers))
    });
    of_tables.chain(of_views)
}

impl TriggerPlan {
    /// Binds a trigger of a table, or of a view as [`TablePlan::of_view`] has it; `None` where its function is not there. `number`: its place among those of the catalog.
    pub fn new(
        tables: &Tables,
        catalog: &Catalog,
        table: &TablePlan,
        definition: &Arc<Trigger>,
        number: usize,
    ) -> Option<TriggerPlan> {
        let function = catalog.procedures.get(&definition.function)?.clone();
        let condition = definition.condition.as_deref();
        let condition = condition.map(|sql| {
            let scope = VariableScope::for_procedure(None).with_routines(tables.routines());
            bind_condition(&scope, table, definition, &parse_expression(sql, tables.version())?)
        });
        let text = |text: &str| Value::text(text);
        let count = i32::try_from(definition.arguments.len()).unwrap_or(i32::MAX);
        // They have been held against the limits when the trigger was made.
        let arguments = arguments_value(&definition.arguments).unwrap_or_default();
        let whose = [
            Value::Integer(table.id.object_identifier()),
            text(&table.name),
            text(&table.name),
            text(schema_of(&table.relation)),
            Value::Integer(count),
            arguments,
        ];
        let mut called_by_condition = Vec::new();
        if let Some(Ok(condition)) = &condition {
            condition.visit_calls(&mut |call| called_by_condition.push(call.callee.clone()));
        }
        let columns = definition.columns.iter().filter_map(|name| table.ordinal(name));
        Some(TriggerPlan {
            number,
            columns: columns.map(|ordinal| ordinal as u16).collect(),
            condition,
            called_by_condition,
            width: table.columns.len(),
            what: [text(&definition.name), text(definition.time.name()), text(definition.level())],
            whose,
            definition: definition.clone(),
            function,
        })
    }

    /// Whether an UPDATE that assigns columns as `assigns` says is one that it fires at.
    pub fn is_for_update(&self, assigns: impl Fn(u16) -> bool) -> bool {
        self.columns.is_empty() || self.columns.iter().any(|ordinal| assigns(*ordinal))
    }

    /// Columns of its table.
    pub fn width(&self) -> usize {
        self.width
    }

    /// What the function gets, as far as it is the same for all rows: `None` is a value of a row.
    pub fn known_inputs(&self, event: TriggerEvent) -> Vec<Option<Value>> {
        let (old, new) = self.has_rows(event);
        let mut inputs = Vec::with_capacity(2 * (self.width + 1) + 10);
        for there in [new, old] {
            inputs.push(Some(flag(there)));
            inputs.extend(std::iter::repeat_n(if there { None } else { Some(Value::Null) }, self.width));
        }
        inputs.extend(self.constants(event).cloned().map(Some));
        inputs
    }

    /// What the function gets.
    pub fn inputs(&self, event: TriggerEvent, old: Option<&Row>, new: Option<&Row>) -> Vec<Value> {
        let mut inputs = Vec::with_capacity(2 * (self.width + 1) + 10);
        for row in [new, old] {
            inputs.push(flag(row.is_some()));
            match row {
                Some(row) => inputs.extend(row.iter().cloned()),
                None => inputs.extend(std::iter::repeat_n(Value::Null, self.width)),
            }
        }
        inputs.extend(self.constants(event).cloned());
        inputs
    }

    fn has_rows(&self, event: TriggerEvent) -> (bool, bool) {
        let old = matches!(event, TriggerEvent::Update | TriggerEvent::Delete);
        let new = matches!(event, TriggerEvent::Insert | TriggerEvent::Update);
        (old && self.definition.per_row, new && self.definition.per_row)
    }

    /// In the order of the compiled trigger function's variables.
    fn constants(&self, event: TriggerEvent) -> impl Iterator<Item = &Value> {
        self.what.iter().chain(std::iter::once(event_name(event))).chain(&self.whose)
    }
}

/// `TG_ARGV`: NULL where there are no arguments.
///
/// # Errors
/// `54000` for more than an array holds.
pub fn arguments_value(arguments: &[String]) -> Result<Value, SqlError> {
    let element = ElementType::new(DataType::Text(None)).filter(|_| !arguments.is_empty());
    let Some(element) = element else { return Ok(Value::Null) };
    let texts = arguments.iter().map(|argument| Value::text(argument.as_str())).collect();
    Ok(Value::Array(Arc::new(Array::new(element, texts)?)))
}

const WRONG_TARGET: &str = "cannot be the target of a modifying statement";

/// The error of a statement that changes a relation of REFERENCING.
pub fn wrong_target(relation: &str) -> SqlError {
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, format!("relation \"{relation}\" {WRONG_TARGET}"))
}

/// Whether an error is that.
pub fn is_wrong_target(error: &SqlError) -> bool {
    error.state == SqlState::FEATURE_NOT_SUPPORTED && error.message.ends_with(WRONG_TARGET)
}

/// Whether a record has a row.
fn flag(there: bool) -> Value {
    if there { Value::Boolean(true) } else { Value::Null }
}

fn event_name(event: TriggerEvent) -> &'static Value {
    static NAMES: std::sync::LazyLock<[Value; 4]> =
        std::sync::LazyLock::new(|| TriggerEvent::ALL.map(|event| Value::text(event.name())));
    let [insert, delete, update, truncate] = &*NAMES;
    match event {
        TriggerEvent::Insert => insert,
        TriggerEvent::Update => update,
        TriggerEvent::Delete => delete,
        TriggerEvent::Truncate => truncate,
    }
}

/// Binds WHEN.
///
/// # Errors
/// `42P17` for a row that there is not; what is wrong with the condition.
pub fn bind_condition(
    scope: &VariableScope,
    table: &TablePlan,
    trigger: &Trigger,
    condition: &Expr,
) -> Result<Expression, SqlError> {
    let columns: Vec<(String, DataType)> =
        table.columns.iter().map(|column| (column.name.clone(), column.data_type)).collect();
    let names: Vec<String> = columns.iter().map(|(name, _)| name.clone()).collect();
    let mut written_out = condition.clone();
    expand_rows(&mut written_out, &|row| matches!(row, "old" | "new").then(|| names.clone()));
    if let Some(span) = first_subquery(condition) {
        let message = "cannot use subquery in trigger WHEN condition";
        return Err(scope.located(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message), span));
    }
    let width = columns.len();
    let relation = |name: &str, first: usize| NamedRelation {
        name: name.to_string(),
        table: None,
        schema: None,
        catalogued: None,
        columns: columns.clone(),
        first,
        hidden: Vec::new(),
        keyed: false,
        may_be_missing: false,
        row_type: None,
        records: Vec::new(),
        origins: Vec::new(),
    };
    let names = Relations {
        relations: vec![relation("old", 0), relation("new", width)],
        merged: Vec::new(),
        joins: Vec::new(),
    };
    let binder = Binder::new(scope, Source::Relations(&names));
    let bound = binder.in_clause(Some("trigger WHEN conditions")).bind_condition(&written_out, "WHEN")?;
    let looks_at = |new: bool| {
        bound.any(&mut |inner| matches!(inner.kind, Kind::Column(at) if (usize::from(at) >= width) == new))
    };
    let refused = |message: &str, row: &str| {
        let error = SqlError::new(INVALID_DEFINITION, message);
        Err(match span_of_row(condition, row) {
            Some(span) => scope.located(error, span),
            None => error,
        })
    };
    for (new, name) in [(false, "old"), (true, "new")] {
        let missing = if new { TriggerEvent::Delete } else { TriggerEvent::Insert };
        if !looks_at(new) {
            continue;
        }
        if !trigger.per_row {
            return refused("statement trigger's WHEN condition cannot reference column values", name);
        }
        if trigger.events.contains(missing) {
            let message = format!(
                "{} trigger's WHEN condition cannot reference {} values",
                missing.name(),
                name.to_uppercase()
            );
            return refused(&message, name);
        }
    }
    Ok(bound)
}
