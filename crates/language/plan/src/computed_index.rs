//! Indexes whose entries are computed: on expressions, and of a part of the rows (WHERE).
//!
//! What such an index has of a row only SQL can say. So its entries are rows like others, by which whoever changes a row of the
//! table changes them too: one per row that has an entry, or one per part of an indexed value ([`types::IndexMethod::Inverted`]).
//! The key of an entry begins with the indexed values, and its column is the primary key. Columns that the index looks at are
//! assigned at simulation, as those of constraints are ([`crate::constraint`]).

use crate::expression::{Environment, Expression, is_same};
use crate::key_description::describe_key;
use state::{Command, CommandKind, RowChange, RowFunction, RowId};
use std::collections::BTreeMap;
use std::sync::Arc;
use types::{ColumnSet, Index, IndexMethod, Key, Row, SqlError, SqlState, Value};
use values::inverted::parts;

/// An index on expressions or with a predicate, bound.
#[derive(Debug)]
pub struct ComputedIndex {
    /// What the catalog has of it.
    pub index: Arc<Index>,
    /// What it has of a row, in order.
    pub keys: Vec<Expression>,
    /// WHERE
    pub predicate: Option<Expression>,
    /// How the parts of its key are called in errors.
    pub names: Vec<String>,
    /// Columns that decide on a row's entry.
    pub columns: ColumnSet,
    /// Ordinals of those that its key and its predicate look at.
    pub looked_at: Vec<u16>,
    /// Errors show no key, because roles may not read all of the table.
    pub hides_keys: bool,
}

impl ComputedIndex {
    /// What the index has of a row; `None` where it has no entry of it.
    ///
    /// # Errors
    /// What evaluating raises.
    pub fn values(&self, row: &[Value]) -> Result<Option<Vec<Value>>, SqlError> {
        let environment = Environment::new(row, &[], 0);
        if let Some(predicate) = &self.predicate
            && !predicate.is_true(&environment)?
        {
            return Ok(None);
        }
        self.keys.iter().map(|key| key.evaluate(&environment)).collect::<Result<_, _>>().map(Some)
    }

    /// The entries of a row that has this primary key, in order, and what the index has of the row in each: one, or none where the
    /// predicate is not true; of an inverted index one for each part of the value.
    ///
    /// # Errors
    /// As [`ComputedIndex::values`]; `54000` where its key in a unique index is too long.
    pub fn entries(&self, primary: &Key, row: &[Value]) -> Result<BTreeMap<Key, Vec<Value>>, SqlError> {
        let Some(values) = self.values(row)? else { return Ok(BTreeMap::new()) };
        let of_entries = match self.index.method {
            IndexMethod::Ordered => vec![values],
            IndexMethod::Inverted => values.iter().flat_map(parts).map(|part| vec![part]).collect(),
        };
        let with_key = |values: Vec<Value>| Ok((self.index.computed_entry(&values, primary)?, values));
        of_entries.into_iter().map(with_key).collect()
    }

    /// Whether two images of a row have the same in it, because they have the same in the columns that it looks at.
    pub fn has_same(&self, before: &[Value], after: &[Value]) -> bool {
        let mut ordinals = self.looked_at.iter().map(|ordinal| usize::from(*ordinal));
        ordinals.all(|ordinal| is_same(&before[ordinal], &after[ordinal]))
    }

    /// The key that no other row may have once this row is there; `None` where there is none.
    ///
    /// # Errors
    /// As [`ComputedIndex::entries`].
    pub fn taken(&self, row: &[Value]) -> Result<Option<Key>, SqlError> {
        let Some(values) = self.values(row)?.filter(|_| self.index.unique) else { return Ok(None) };
        let taken = self.index.unique_key(values.iter())?;
        Ok(taken.map(|taken| Key::computed_entry(&values, Some(&taken), &Key::default())))
    }

    /// Whether a column decides on what it has of a row.
    pub fn looks_at(&self, ordinal: u16) -> bool {
        self.looked_at.contains(&ordinal)
    }

    /// `(a, lower(b))`, as errors name its key.
    pub fn listed(&self) -> String {
        self.names.join(", ")
    }
}

/// The row that stands under an entry, and the primary key in such a row.
pub fn entry_row(primary: &Key) -> Row {
    Row::from(vec![Value::Bytea(primary.as_bytes().into())])
}

/// The primary key that an entry leads to.
pub fn primary_of(entry: &Row) -> Option<Key> {
    match entry.first() {
        Some(Value::Bytea(primary)) => Some(Key::from_bytes(primary)),
        _ => None,
    }
}

/// Takes or frees the place of an entry.
struct ChangeEntry {
    computed: Arc<ComputedIndex>,
    /// The primary key that it leads to, and what the index has of the row; `None`: the entry goes.
    of: Option<(Key, Vec<Value>)>,
}

impl RowFunction for ChangeEntry {
    fn apply(&self, row: Option<&Row>) -> Result<RowChange, SqlError> {
        match (&self.of, row) {
            (Some((primary, _)), None) => Ok(RowChange::Put(entry_row(primary))),
            (Some((_, values)), Some(_)) => Err(self.computed.duplicate(values)),
            (None, None) => Ok(RowChange::Unmatched),
            (None, Some(_)) => Ok(RowChange::Delete),
        }
    }
}

impl ComputedIndex {
    /// The error of a row whose key exists.
    #[cold]
    pub fn duplicate(&self, values: &[Value]) -> SqlError {
        let message = format!("duplicate key value violates unique constraint \"{}\"", self.index.name);
        let error = SqlError::new(SqlState::UNIQUE_VIOLATION, message);
        match self.hides_keys {
            true => error,
            false => error.detail(format!("{} already exists.", describe_key(&self.listed(), values))),
        }
    }
}

/// The command by which a row gets its entry, which fails at its place if another one has it.
pub fn put_entry(computed: &Arc<ComputedIndex>, entry: Key, primary: Key, values: Vec<Value>) -> Command {
    let kind = CommandKind::Insert(entry_row(&primary));
    // An error says them, and only an entry that nobody else may have ends with one.
    let values = if computed.index.unique { values } else { Vec::new() };
    entry_command(computed, entry, Some((primary, values)), kind)
}

/// The command by which an entry goes.
pub fn remove_entry(computed: &Arc<ComputedIndex>, entry: Key) -> Command {
    entry_command(computed, entry, None, CommandKind::Delete)
}

fn entry_command(
    computed: &Arc<ComputedIndex>,
    key: Key,
    of: Option<(Key, Vec<Value>)>,
    kind: CommandKind,
) -> Command {
    Command {
        row: RowId { table: computed.index.computed_entries(), key },
        can_fail: of.is_some(),
        function: Arc::new(ChangeEntry { computed: computed.clone(), of }),
        kind,
        uses: ColumnSet::EXISTS,
        writes: ColumnSet::ALL,
        guard: None,
        addition: None,
    }
}
