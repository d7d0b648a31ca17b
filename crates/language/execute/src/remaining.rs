//! What a statement still has to do when it has changed its rows: references to look at, triggers to fire.

use crate::own::OwnRows;
use plan::command::UpdatePlan;
use plan::constraint::ForeignKeyPlan;
use plan::table::TablePlan;
use plan::trigger::TriggerPlan;
use rustc_hash::FxHashSet;
use state::RowId;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use types::{Index, Key, Row, TableId, TriggerEvent, Value};

/// What a statement has left to do. Each statement has its own, those that its triggers run included.
#[derive(Default)]
pub(super) struct Remaining {
    /// In order.
    pub unsettled: VecDeque<Unsettled>,
    /// The tables with triggers that it changes.
    pub begun: Vec<Begun>,
    /// Where it has WITH queries that change rows: what these know of one another.
    pub parts: Option<Parts>,
}

impl Remaining {
    /// Nothing.
    pub fn clear(&mut self) {
        self.unsettled.clear();
        self.begun.clear();
        self.parts = None;
    }

    pub fn begun(&self, table: TableId, event: TriggerEvent) -> Option<&Gathered> {
        let begun = self.begun.iter().find(|begun| begun.table == table && begun.event == event)?;
        Some(&begun.rows)
    }
}

/// A table that the running statement changes, itself or by cascading.
pub(super) struct Begun {
    pub table: TableId,
    pub event: TriggerEvent,
    pub rows: Gathered,
}

/// The rows of a statement before and after it, for OLD TABLE and NEW TABLE.
#[derive(Clone, Default)]
pub(super) struct ChangedRows {
    pub old: Rc<Vec<Vec<Value>>>,
    pub new: Rc<Vec<Vec<Value>>>,
}

/// The changed rows that are still being gathered.
pub(super) type Gathered = Rc<RefCell<ChangedRows>>;

/// An AFTER trigger that is to fire.
pub(super) struct Firing {
    pub trigger: Arc<TriggerPlan>,
    pub table: TableId,
    pub event: TriggerEvent,
    pub old: Option<Row>,
    pub new: Option<Row>,
    pub rows: Option<Gathered>,
}

/// What happens to a table or a row.
#[derive(Clone, Copy)]
pub(super) enum Event<'p> {
    /// INSERT
    Insert,
    /// UPDATE, which assigns these columns.
    Update(&'p UpdatePlan),
    /// DELETE
    Delete,
    /// TRUNCATE
    Truncate,
}

impl Event<'_> {
    pub fn kind(self) -> TriggerEvent {
        match self {
            Event::Insert => TriggerEvent::Insert,
            Event::Update(_) => TriggerEvent::Update,
            Event::Delete => TriggerEvent::Delete,
            Event::Truncate => TriggerEvent::Truncate,
        }
    }
}

/// What remains to be done about references when a statement ends.
pub(super) enum Unsettled {
    /// The row with this key of its own references this one.
    References(Arc<ForeignKeyPlan>, Key, Vec<Value>),
    /// An AFTER trigger is to fire.
    Fires(Box<Firing>),
    /// A key that may be referenced has gone (`None`), or its row has another one now.
    Gone(Arc<ForeignKeyPlan>, Vec<Value>, Option<Vec<Value>>),
    /// Rows have taken or freed a key of a unique index that can be deferred.
    Taken(Arc<TablePlan>, Arc<Index>, Key),
}

/// What the parts of a statement know of one another.
pub(super) struct Parts {
    /// The own rows that were there when the statement began.
    pub base: Arc<OwnRows>,
    /// Rows that parts have changed.
    pub changed: FxHashSet<RowId>,
    /// Those that the running part has changed.
    pub changing: Vec<RowId>,
}
