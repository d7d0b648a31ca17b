//! Triggers as `pg_trigger`, `information_schema.triggers` and `pg_get_triggerdef` show them.

use crate::cell::{Cell, NamedRow};
use crate::objects::{Objects, Relation, object_identifier, shown_name, without_parentheses};
use crate::routines::routine_identifier;
use std::sync::Arc;
use types::{Catalog, DATABASE, Table, Trigger, TriggerEvent, TriggerTime, View, object_name, schema_of};
use values::quote_ident;

/// A trigger.
#[derive(Clone, Debug)]
pub(crate) struct TriggerObject {
    pub(crate) oid: i32,
    pub(crate) definition: String,
    /// The same with the table's schema.
    pub(crate) qualified: String,
    trigger: Arc<Trigger>,
    /// What it runs, as SQL.
    statement: String,
    function: i32,
    /// UPDATE OF, as numbers from 1.
    columns: Vec<i64>,
}

impl TriggerObject {
    /// Whether it fires instead of this.
    pub(crate) fn is_instead_of(&self, event: TriggerEvent) -> bool {
        self.trigger.fires(TriggerTime::Instead, true, event)
    }

    pub(crate) fn name(&self) -> &str {
        &self.trigger.name
    }
}

/// The triggers of a table.
pub(crate) fn of_table(table: &Table, catalog: &Catalog) -> Vec<TriggerObject> {
    let first = object_identifier(1_400_000_000, 300, table.id.0);
    let ordinal = |column: &String| table.ordinal(column);
    objects_of(&table.name, catalog.triggers_of(table.id), first, &ordinal, catalog)
}

/// The triggers of a view, the one of this number by name.
pub(crate) fn of_view(number: usize, view: &View, catalog: &Catalog) -> Vec<TriggerObject> {
    let first = 1_210_000_000 + 300 * number as i32;
    objects_of(&view.name, view.triggers.values(), first, &|_| None, catalog)
}

fn objects_of<'c>(
    name: &str,
    triggers: impl Iterator<Item = &'c Arc<Trigger>>,
    first: i32,
    ordinal: &dyn Fn(&String) -> Option<usize>,
    catalog: &Catalog,
) -> Vec<TriggerObject> {
    let qualified = format!("{}.{}", quote_ident(schema_of(name)), quote_ident(object_name(name)));
    let object = |(number, trigger): (usize, &Arc<Trigger>)| {
        let function = catalog.procedures.keys().position(|name| *name == trigger.function);
        let columns = trigger.columns.iter().filter_map(ordinal);
        TriggerObject {
            oid: first + number as i32,
            definition: definition(&shown_name(name), trigger),
            qualified: definition(&qualified, trigger),
            trigger: trigger.clone(),
            statement: statement(trigger),
            function: function.map_or(0, routine_identifier),
            columns: columns.map(|ordinal| ordinal as i64 + 1).collect(),
        }
    };
    triggers.enumerate().map(object).collect()
}

fn statement(trigger: &Trigger) -> String {
    let arguments = trigger.arguments.iter().map(|argument| format!("'{}'", argument.replace('\'', "''")));
    let arguments = arguments.collect::<Vec<_>>().join(", ");
    format!("EXECUTE FUNCTION {}({arguments})", shown_name(&trigger.function))
}

/// As `pg_get_triggerdef` prints it.
fn definition(table: &str, trigger: &Trigger) -> String {
    let columns = trigger.columns.iter().map(|column| quote_ident(column)).collect::<Vec<_>>().join(", ");
    let events = trigger.events.iter().map(|event| match event {
        TriggerEvent::Update if !columns.is_empty() => format!("UPDATE OF {columns}"),
        event => event.name().to_string(),
    });
    let mut text = format!(
        "CREATE TRIGGER {} {} {} ON {}",
        quote_ident(&trigger.name),
        trigger.time.name(),
        events.collect::<Vec<_>>().join(" OR "),
        table
    );
    if trigger.has_transition_tables() {
        text.push_str(" REFERENCING");
    }
    for (which, name) in [("OLD", &trigger.old_table), ("NEW", &trigger.new_table)] {
        if let Some(name) = name {
            text.push_str(&format!(" {which} TABLE AS {}", quote_ident(name)));
        }
    }
    text.push_str(&format!(" FOR EACH {}", trigger.level()));
    if let Some(condition) = &trigger.condition {
        text.push_str(&format!(" WHEN ({})", without_parentheses(condition)));
    }
    format!("{text} {}", statement(trigger))
}

/// The rows of `pg_trigger`.
pub(crate) fn system_rows(objects: &Objects) -> Vec<NamedRow> {
    let row = |relation: &Relation, object: &TriggerObject| {
        let trigger = &object.trigger;
        let events = trigger.events.iter().map(|event| match event {
            TriggerEvent::Insert => 4,
            TriggerEvent::Delete => 8,
            TriggerEvent::Update => 16,
            TriggerEvent::Truncate => 32,
        });
        let time = match trigger.time {
            TriggerTime::Before => 2,
            TriggerTime::After => 0,
            TriggerTime::Instead => 64,
        };
        let kind = i32::from(trigger.per_row) + time + events.sum::<i32>();
        let optional = |name: &Option<String>| name.clone().map_or(Cell::Null, Cell::Text);
        vec![
            ("oid", object.oid.into()),
            ("tgrelid", relation.oid.into()),
            ("tgname", trigger.name.clone().into()),
            ("tgfoid", object.function.into()),
            ("tgtype", kind.into()),
            ("tgenabled", if trigger.enabled { "O".into() } else { "D".into() }),
            ("tgisinternal", false.into()),
            ("tgnargs", (trigger.arguments.len() as i32).into()),
            ("tgattr", Cell::Integers(object.columns.clone())),
            ("tgargs", Cell::Null),
            ("tgqual", Cell::Null),
            ("tgoldtable", optional(&trigger.old_table)),
            ("tgnewtable", optional(&trigger.new_table)),
        ]
    };
    let relations = objects.relations.iter();
    relations.flat_map(|relation| relation.triggers.iter().map(move |object| row(relation, object))).collect()
}

/// The rows of `information_schema.triggers`: one for every event of a trigger.
pub(crate) fn information_rows(objects: &Objects) -> Vec<NamedRow> {
    let mut rows = Vec::new();
    for relation in &objects.relations {
        for object in &relation.triggers {
            let trigger = &object.trigger;
            for event in trigger.events.iter().filter(|event| *event != TriggerEvent::Truncate) {
                let same = |other: &&TriggerObject| {
                    other.trigger.fires(trigger.time, trigger.per_row, event)
                        && other.trigger.name <= trigger.name
                };
                let order = relation.triggers.iter().filter(same).count();
                let optional = |text: &Option<String>| text.clone().map_or(Cell::Null, Cell::Text);
                rows.push(vec![
                    ("trigger_catalog", DATABASE.into()),
                    ("trigger_schema", relation.schema_name.clone().into()),
                    ("trigger_name", trigger.name.clone().into()),
                    ("event_manipulation", event.name().into()),
                    ("event_object_catalog", DATABASE.into()),
                    ("event_object_schema", relation.schema_name.clone().into()),
                    ("event_object_table", relation.name.clone().into()),
                    ("action_order", (order as i32).into()),
                    ("action_condition", optional(&trigger.condition)),
                    ("action_statement", object.statement.clone().into()),
                    ("action_orientation", trigger.level().into()),
                    ("action_timing", trigger.time.name().into()),
                    ("action_reference_old_table", optional(&trigger.old_table)),
                    ("action_reference_new_table", optional(&trigger.new_table)),
                ]);
            }
        }
    }
    rows
}
