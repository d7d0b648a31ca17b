//! Triggers: functions that run when rows of a table change.

use borsh::{BorshDeserialize, BorshSerialize};

/// When a trigger fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum TriggerTime {
    /// Before the row or the table changes.
    Before,
    /// When the statement has changed all its rows.
    After,
    /// Instead of a change of the view's row.
    Instead,
}

impl TriggerTime {
    /// As SQL and `TG_WHEN` say it.
    pub fn name(self) -> &'static str {
        match self {
            TriggerTime::Before => "BEFORE",
            TriggerTime::After => "AFTER",
            TriggerTime::Instead => "INSTEAD OF",
        }
    }
}

/// What is done to a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TriggerEvent {
    /// Rows are inserted.
    Insert,
    /// Rows are updated.
    Update,
    /// Rows are deleted.
    Delete,
    /// All rows are deleted at once.
    Truncate,
}

impl TriggerEvent {
    /// All of them, in the order in which PostgreSQL lists them.
    pub const ALL: [TriggerEvent; 4] =
        [TriggerEvent::Insert, TriggerEvent::Delete, TriggerEvent::Update, TriggerEvent::Truncate];

    /// As SQL and `TG_OP` say it.
    pub fn name(self) -> &'static str {
        match self {
            TriggerEvent::Insert => "INSERT",
            TriggerEvent::Update => "UPDATE",
            TriggerEvent::Delete => "DELETE",
            TriggerEvent::Truncate => "TRUNCATE",
        }
    }
}

/// Some of the events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct TriggerEvents {
    bits: u8,
}

impl TriggerEvents {
    /// With one more.
    #[must_use]
    pub fn with(self, event: TriggerEvent) -> TriggerEvents {
        TriggerEvents { bits: self.bits | TriggerEvents::bit(event) }
    }

    /// Whether this one is among them.
    pub fn contains(self, event: TriggerEvent) -> bool {
        self.bits & TriggerEvents::bit(event) != 0
    }

    /// Those that are among them.
    pub fn iter(self) -> impl Iterator<Item = TriggerEvent> {
        TriggerEvent::ALL.into_iter().filter(move |event| self.contains(*event))
    }

    fn bit(event: TriggerEvent) -> u8 {
        match event {
            TriggerEvent::Insert => 1,
            TriggerEvent::Update => 2,
            TriggerEvent::Delete => 4,
            TriggerEvent::Truncate => 8,
        }
    }
}

/// A trigger of a table or a view.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Trigger {
    /// Its name, which no other trigger of the table has: they fire in the order of their names.
    pub name: String,
    /// The function that it calls.
    pub function: String,
    /// What the function gets as `TG_ARGV`.
    pub arguments: Vec<String>,
    /// When it fires.
    pub time: TriggerTime,
    /// What it fires at.
    pub events: TriggerEvents,
    /// UPDATE OF: it fires only at an UPDATE that assigns one of them; empty where any UPDATE will do.
    pub columns: Vec<String>,
    /// Once for every row instead of once for the statement.
    pub per_row: bool,
    /// WHEN, as SQL over `old` and `new`.
    pub condition: Option<String>,
    /// OLD TABLE: the name of the rows before the statement.
    pub old_table: Option<String>,
    /// NEW TABLE: the name of the rows after the statement.
    pub new_table: Option<String>,
    /// It fires: ALTER TABLE … DISABLE TRIGGER has not switched it off.
    pub enabled: bool,
}

impl Trigger {
    /// What `TG_LEVEL` says.
    pub fn level(&self) -> &'static str {
        if self.per_row { "ROW" } else { "STATEMENT" }
    }

    /// Whether it fires once for the statement or once per row, at this time and event.
    pub fn fires(&self, time: TriggerTime, per_row: bool, event: TriggerEvent) -> bool {
        self.enabled && self.time == time && self.per_row == per_row && self.events.contains(event)
    }

    /// Whether the rows of the statement are kept for it.
    pub fn has_transition_tables(&self) -> bool {
        self.old_table.is_some() || self.new_table.is_some()
    }
}
