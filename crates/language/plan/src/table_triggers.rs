//! The triggers of a table, as far as statements have to know of them.

use std::sync::Arc;
use types::{Trigger, TriggerEvent, TriggerTime};

/// What fires at an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fires {
    /// Anything.
    pub any: bool,
    /// Something that may change or leave out a row.
    pub before_row: bool,
    /// Something that gets the rows, one by one or all of them.
    pub rows: bool,
    /// Something that gets all of them.
    pub tables: bool,
}

/// The triggers of a table, as far as statements have to know of them.
#[derive(Clone, Debug, Default)]
pub struct TableTriggers {
    /// In the order of their names.
    all: Vec<Arc<Trigger>>,
    insert: Fires,
    update: Fires,
    delete: Fires,
    truncate: Fires,
}

impl TableTriggers {
    /// Those of a table.
    pub fn new<'c>(triggers: impl Iterator<Item = &'c Arc<Trigger>>) -> TableTriggers {
        let all: Vec<Arc<Trigger>> = triggers.filter(|trigger| trigger.enabled).cloned().collect();
        let fires = |event| {
            let mut fires = Fires::default();
            for trigger in all.iter().filter(|trigger| trigger.events.contains(event)) {
                fires.any = true;
                fires.before_row |= trigger.per_row && trigger.time == TriggerTime::Before;
                fires.tables |= trigger.has_transition_tables();
                fires.rows |= trigger.per_row || trigger.has_transition_tables();
            }
            fires
        };
        let [insert, delete, update, truncate] = TriggerEvent::ALL.map(fires);
        TableTriggers { all, insert, update, delete, truncate }
    }

    /// What fires at an event.
    pub fn at(&self, event: TriggerEvent) -> Fires {
        match event {
            TriggerEvent::Insert => self.insert,
            TriggerEvent::Update => self.update,
            TriggerEvent::Delete => self.delete,
            TriggerEvent::Truncate => self.truncate,
        }
    }

    /// Those that fire at an event, in the order of their names and in words.
    pub fn described(&self, event: TriggerEvent) -> impl Iterator<Item = String> {
        self.all.iter().filter(move |trigger| trigger.events.contains(event)).map(move |trigger| {
            let what = if trigger.per_row { "each row" } else { "the statement" };
            let time = trigger.time.name().to_lowercase();
            let when = if trigger.condition.is_some() { ", where its WHEN holds" } else { "" };
            let (name, event, function) = (&trigger.name, event.name(), &trigger.function);
            format!("Trigger {name}: {time} {event} of {what} runs {function}(){when}")
        })
    }

    /// Names of the functions that they call.
    pub fn functions(&self) -> impl Iterator<Item = &str> {
        self.all.iter().map(|trigger| trigger.function.as_str())
    }
}
