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
//! So an UPDATE of such a column is not fused. References and RESTRICT are looked at when the statement ends.
//!
//! ```text
//!  rows of a table ──entry_changes──▶ entries of its ordered indexes      follow from the rows; never written, stored or digested
//!                                     (NULL last; columns, primary key)
//!  INSERT, UPDATE ──take_key───────▶ keys taken in a unique index         rows like others: commands, digest, checkpoint
//!                 ──references─────▶ read of the key that is referenced
//!  DELETE, UPDATE ──free_key, scan of the rows that reference the key that goes
//! ```

use crate::command::{DeletePlan, UpdatePlan};
use crate::expression::{Binder, Comparison, Expression, Source};
use crate::predicate::Condition;
use crate::scope::VariableScope;
use crate::statement::{Access, KeyPart};
use crate::table::{TablePlan, describe_key, listed_columns};
use rustc_hash::FxHashMap;
use state::{Command, CommandKind, RowChange, RowFunction, RowId};
use std::sync::Arc;
use types::{
    Catalog, ColumnSet, ForeignKey, Index, Key, ReferentialAction, Row, SqlError, SqlState, TableId, Value,
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
}

impl ForeignKeyPlan {
    fn new(
        foreign_key: &ForeignKey,
        child: &Arc<TablePlan>,
        parent: &Arc<TablePlan>,
    ) -> Result<ForeignKeyPlan, SqlError> {
        let index = parent.indexes.iter().find(|index| Some(index.number) == foreign_key.index);
        let (keys, order) = match index {
            Some(index) => (index.unique_entries(), index.columns.as_slice()),
            None => (parent.id, parent.key.as_slice()),
        };
        let type_of = |table: &TablePlan, ordinal: u16| table.columns[usize::from(ordinal)].data_type;
        let part = |ordinal: &u16| {
            let place = foreign_key.referenced.iter().position(|referenced| referenced == ordinal);
            let place = place.unwrap_or_default();
            let value = Expression::slot(place, type_of(child, foreign_key.columns[place]).family());
            KeyPart { value, data_type: type_of(parent, *ordinal) }
        };
        let scope = VariableScope::for_procedure(None);
        let binder = Binder::new(&scope, Source::Table { table: child, name: &child.name });
        let mut conditions = Vec::new();
        let mut assignments = Vec::new();
        for (place, (ordinal, referenced)) in
            foreign_key.columns.iter().zip(&foreign_key.referenced).enumerate()
        {
            let data_type = type_of(child, *ordinal);
            let column = Expression::column(usize::from(*ordinal), data_type);
            let value = Expression::slot(place, type_of(parent, *referenced).family());
            conditions.push(binder.compare(Comparison::Equal, column, value.clone())?);
            let name = &child.columns[usize::from(*ordinal)].name;
            assignments.push((*ordinal, binder.assign_to_column(value, name, data_type)?));
        }
        let (access, rest) = Access::plan(child, conditions);
        let filter_columns = rest.iter().fold(access.columns(), |set, condition| set | condition.columns());
        Ok(ForeignKeyPlan {
            number: foreign_key.number,
            name: foreign_key.name.clone(),
            child: child.clone(),
            columns: foreign_key.columns.clone(),
            parent: parent.clone(),
            referenced: foreign_key.referenced.clone(),
            keys,
            key: order.iter().map(part).collect(),
            on_delete: foreign_key.on_delete,
            on_update: foreign_key.on_update,
            filter: Condition::all(rest),
            access,
            filter_columns,
            delete: Arc::new(DeletePlan::new(child.clone(), Vec::new())),
            assign: Arc::new(UpdatePlan::new(child.clone(), Vec::new(), assignments)),
        })
    }

    /// The error of a row that references a key which is not there.
    #[cold]
    pub fn not_present(&self, values: &[Value]) -> SqlError {
        let message = format!(
            "insert or update on table \"{}\" violates foreign key constraint \"{}\"",
            self.child.name, self.name
        );
        let key = describe_key(&listed_columns(&self.child, &self.columns), values);
        SqlError::new(SqlState::FOREIGN_KEY_VIOLATION, message)
            .detail(format!("{key} is not present in table \"{}\".", self.parent.name))
    }

    /// The error of a key that goes while a row references it.
    #[cold]
    pub fn still_referenced(&self, values: &[Value]) -> SqlError {
        let message = format!(
            "update or delete on table \"{}\" violates foreign key constraint \"{}\" on table \"{}\"",
            self.parent.name, self.name, self.child.name
        );
        let key = describe_key(&listed_columns(&self.parent, &self.referenced), values);
        SqlError::new(SqlState::FOREIGN_KEY_VIOLATION, message)
            .detail(format!("{key} is still referenced from table \"{}\".", self.child.name))
    }
}

/// The FOREIGN KEY constraints of a catalog, from both sides.
#[derive(Clone, Debug, Default)]
pub struct ForeignKeys {
    // In the order of their numbers.
    by_child: FxHashMap<TableId, Vec<Arc<ForeignKeyPlan>>>,
    by_parent: FxHashMap<TableId, Vec<Arc<ForeignKeyPlan>>>,
}

impl ForeignKeys {
    /// Binds every constraint.
    ///
    /// # Errors
    /// What is wrong with one.
    pub fn new(
        catalog: &Catalog,
        tables: &FxHashMap<TableId, Arc<TablePlan>>,
    ) -> Result<ForeignKeys, SqlError> {
        let mut found = ForeignKeys::default();
        for (child, foreign_keys) in &catalog.foreign_keys {
            for foreign_key in foreign_keys {
                let (Some(child), Some(parent)) = (tables.get(child), tables.get(&foreign_key.parent)) else {
                    continue;
                };
                let plan = Arc::new(ForeignKeyPlan::new(foreign_key, child, parent)?);
                found.by_child.entry(child.id).or_default().push(plan.clone());
                found.by_parent.entry(parent.id).or_default().push(plan);
            }
        }
        found.by_parent.values_mut().for_each(|plans| plans.sort_by_key(|plan| plan.number));
        Ok(found)
    }

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
    let unique = catalog.indexes_of(table).iter().filter(|index| index.unique);
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
