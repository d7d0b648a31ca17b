//! UNIQUE and FOREIGN KEY, bound: what a change of a row has to look at besides the row.
//!
//! Columns in such a constraint are assigned at simulation, and what they were and are computed from is read
//! (`protocols.md`, section 1), so that a constraint is held against values that nobody else of the batch changes:
//!
//! | constraint | what it adds to a change |
//! | --- | --- |
//! | UNIQUE | a command that takes the new key, which fails at its place if the key is taken there; one that frees the old key |
//! | FOREIGN KEY, a row that references | a read of whether the key exists that it references |
//! | FOREIGN KEY, a key that goes | a scan for rows that reference it |
//!
//! So an UPDATE of such a column is not fused. References and RESTRICT are looked at when the statement ends; what is deferrable
//! can wait for the end of the transaction (`execute::deferred`).
//!
//! ```text
//!  rows of a table ──entry_changes──▶ entries of its ordered indexes      follow from the rows; never written, stored or digested
//!                                     (NULL last; columns, primary key)
//!  INSERT, UPDATE ──take_key───────▶ keys taken in a unique index         rows like others: commands, digest, checkpoint
//!                 ──references─────▶ read of the key that is referenced
//!                 ──put_entry──────▶ entries of computed indexes         likewise (`computed_index`)
//!  DELETE, UPDATE ──free_key, scan of the rows that reference the key that goes
//! ```

use crate::command::{DeletePlan, UpdatePlan};
use crate::condition::Condition;
use crate::expression::Environment;
use crate::statement::{Access, KeyPart, resolve_key};
use crate::table::{TablePlan, describe_key, listed_columns};
use rustc_hash::FxHashMap;
use state::{Command, CommandKind, RowChange, RowFunction, RowId};
use std::sync::Arc;
use types::{
    Catalog, ColumnSet, Deferral, Index, Key, ReferentialAction, Row, SqlError, SqlState, TableId, Value,
};

/// A FOREIGN KEY constraint.
#[derive(Debug)]
pub struct ForeignKeyPlan {
    /// Its number.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// The table that references.
    pub child: Arc<TablePlan>,
    /// Ordinals of its columns.
    pub columns: Vec<u16>,
    /// The table that is referenced.
    pub parent: Arc<TablePlan>,
    /// Ordinals of its columns, in the order of `columns`.
    pub referenced: Vec<u16>,
    /// Where the referenced keys stand: those of the parent or of a unique index of it.
    pub keys: TableId,
    /// The referenced key, over the values of `columns` in their order.
    pub key: Vec<KeyPart>,
    /// Referenced keys say which of their values are NULL: NULLS NOT DISTINCT.
    pub marks_nulls: bool,
    /// ON DELETE
    pub on_delete: ReferentialAction,
    /// ON UPDATE
    pub on_update: ReferentialAction,
    /// How rows that reference a key are found, over the values of `referenced` in their order.
    pub access: Access,
    /// What must be true of them.
    pub filter: Option<Condition>,
    /// Columns that finding them looks at.
    pub filter_columns: ColumnSet,
    /// Removes one of them.
    pub delete: Arc<DeletePlan>,
    /// Assigns values to `columns`, in their order.
    pub assign: Arc<UpdatePlan>,
    /// The same where the key that they reference goes: it may assign some of them alone.
    pub set_on_delete: Arc<UpdatePlan>,
    /// When it is held.
    pub deferral: Deferral,
    /// MATCH FULL: all of its columns are NULL, or none.
    pub match_full: bool,
}

impl ForeignKeyPlan {
    /// Whether it has a generated column: an action does not change that. Version 7 allowed such actions.
    pub fn has_generated(&self) -> bool {
        self.columns.iter().any(|ordinal| self.child.columns[usize::from(*ordinal)].computed.is_some())
    }

    /// The key that values reference, none of which is NULL; `None` where no row can have it.
    ///
    /// # Errors
    /// What evaluating raises.
    pub fn parent_key(&self, environment: &Environment<'_>) -> Result<Option<Key>, SqlError> {
        let key = resolve_key(&self.key, environment)?;
        Ok(if self.marks_nulls { key.map(|key| key.without_nulls(self.key.len())) } else { key })
    }

    /// The error of a row that references a key which is not there.
    #[cold]
    pub fn not_present(&self, values: &[Value]) -> SqlError {
        let error = SqlError::new(SqlState::FOREIGN_KEY_VIOLATION, self.violated_by_row());
        if self.child.hides_keys {
            return error.detail(format!("Key is not present in table \"{}\".", self.parent.name));
        }
        let key = describe_key(&listed_columns(&self.child, &self.columns), values);
        error.detail(format!("{key} is not present in table \"{}\".", self.parent.name))
    }

    /// Whether values say nothing of what they reference, and MATCH FULL refuses that.
    pub fn mixes_nulls(&self, values: &[Value]) -> bool {
        let nulls = values.iter().filter(|value| value.is_null()).count();
        self.match_full && nulls > 0 && nulls < values.len()
    }

    /// The error of a row of which MATCH FULL refuses that some columns are NULL, and others not.
    #[cold]
    pub fn mixed_nulls(&self) -> SqlError {
        let detail = "MATCH FULL does not allow mixing of null and nonnull key values.";
        SqlError::new(SqlState::FOREIGN_KEY_VIOLATION, self.violated_by_row()).detail(detail)
    }

    fn violated_by_row(&self) -> String {
        format!(
            "insert or update on table \"{}\" violates foreign key constraint \"{}\"",
            self.child.name, self.name
        )
    }

    /// The error of a key that goes while a row references it.
    #[cold]
    pub fn still_referenced(&self, values: &[Value]) -> SqlError {
        let message = format!(
            "update or delete on table \"{}\" violates foreign key constraint \"{}\" on table \"{}\"",
            self.parent.name, self.name, self.child.name
        );
        let error = SqlError::new(SqlState::FOREIGN_KEY_VIOLATION, message);
        if self.parent.hides_keys {
            return error.detail(format!("Key is still referenced from table \"{}\".", self.child.name));
        }
        let key = describe_key(&listed_columns(&self.parent, &self.referenced), values);
        error.detail(format!("{key} is still referenced from table \"{}\".", self.child.name))
    }
}

/// The FOREIGN KEY constraints of a catalog, from both sides.
#[derive(Clone, Debug, Default)]
pub struct ForeignKeys {
    // In the order of their numbers.
    pub(crate) by_child: FxHashMap<TableId, Vec<Arc<ForeignKeyPlan>>>,
    pub(crate) by_parent: FxHashMap<TableId, Vec<Arc<ForeignKeyPlan>>>,
}

impl ForeignKeys {
    /// Those of a table that references others.
    pub fn of_child(&self, table: TableId) -> &[Arc<ForeignKeyPlan>] {
        self.by_child.get(&table).map_or(&[], Vec::as_slice)
    }

    /// Those that reference a table.
    pub fn of_parent(&self, table: TableId) -> &[Arc<ForeignKeyPlan>] {
        self.by_parent.get(&table).map_or(&[], Vec::as_slice)
    }
}

/// Columns of a table whose changes a constraint has to see: those of unique indexes, those that reference, and those
/// that are referenced. Gives them, and whether one of the first or last kind is there, so that a DELETE is seen too.
pub fn constrained_columns(catalog: &Catalog, table: TableId) -> (ColumnSet, bool) {
    let set = |columns: &[u16]| {
        columns.iter().fold(ColumnSet::EMPTY, |set, c| set | ColumnSet::column(usize::from(*c)))
    };
    let unique = catalog.indexes_of(table).iter().filter(|index| index.unique && !index.is_computed());
    let unique = unique.fold(ColumnSet::EMPTY, |all, index| all | index.column_set());
    let own =
        catalog.foreign_keys_of(table).iter().fold(ColumnSet::EMPTY, |all, key| all | set(&key.columns));
    let referenced = catalog.foreign_keys.values().flatten().filter(|key| key.parent == table);
    let referenced = referenced.fold(ColumnSet::EMPTY, |all, key| all | set(&key.referenced));
    let held = unique | referenced;
    (held | own, !held.is_empty())
}

/// Takes or frees a key of a unique index.
struct TakeKey {
    table: Arc<TablePlan>,
    index: Arc<Index>,
    /// The row that takes the key; `None`: it is freed.
    taken_by: Option<Row>,
}

impl RowFunction for TakeKey {
    fn apply(&self, row: Option<&Row>) -> Result<RowChange, SqlError> {
        match (&self.taken_by, row) {
            (Some(_), None) => Ok(RowChange::Put(Row::default())),
            (Some(taken_by), Some(_)) => {
                Err(self.table.duplicate_key(&self.index.name, &self.index.columns, taken_by))
            }
            (None, None) => Ok(RowChange::Unmatched),
            (None, Some(_)) => Ok(RowChange::Delete),
        }
    }
}

/// The command by which a row takes a key of a unique index.
pub fn take_key(table: &Arc<TablePlan>, index: &Arc<Index>, key: Key, row: Row) -> Command {
    let kind = CommandKind::Insert(Row::default());
    unique_command(table, index, key, Some(row), kind)
}

/// The command that frees a key of a unique index.
pub fn free_key(table: &Arc<TablePlan>, index: &Arc<Index>, key: Key) -> Command {
    unique_command(table, index, key, None, CommandKind::Delete)
}

fn unique_command(
    table: &Arc<TablePlan>,
    index: &Arc<Index>,
    key: Key,
    taken_by: Option<Row>,
    kind: CommandKind,
) -> Command {
    Command {
        row: RowId { table: index.unique_entries(), key },
        can_fail: taken_by.is_some(),
        function: Arc::new(TakeKey { table: table.clone(), index: index.clone(), taken_by }),
        kind,
        uses: ColumnSet::EXISTS,
        writes: ColumnSet::ALL,
        guard: None,
        addition: None,
    }
}
