//! What a block's scripts came to, read from what triggers have written: one net change per row, held against the state that the
//! block found.

use super::defence::{Defence, Undefended};
use crate::DatabaseError;
use crate::bookkeeping::StrangeRow;
use crate::dialect::{Dialect, value_of};
use crate::error::ErrorKind;
use crate::recorder;
use crate::session::{Session, TextRow};
use crate::shared_table::SharedTable;
use state::{AfterImage, RowId, Snapshot};
use std::collections::BTreeMap;
use types::{Key, Row, TableId};

/// What a row was before the block and is behind it.
struct Net {
    first: Option<Row>,
    last: Option<Row>,
    /// What has changed the row in between without a trigger having seen it.
    is_broken: bool,
}

/// What was found.
pub(super) struct Effects {
    /// One per row that differs from what it was, by table and key.
    pub(super) changes: Vec<AfterImage>,
    /// Rows that were not what the state says when the block's scripts came to them.
    pub(super) strange: Vec<StrangeRow>,
}

/// Reads what was written of the block at `height`, which found the state `before`.
pub(super) fn read(
    session: &mut dyn Session,
    tables: &[SharedTable],
    before: &dyn Snapshot,
    height: u64,
    undefended: &Undefended,
) -> Result<Effects, DatabaseError> {
    let Some(dialect) = tables.first().map(|table| table.dialect) else {
        return Ok(Effects { changes: Vec::new(), strange: Vec::new() });
    };
    let id = match dialect {
        Dialect::Postgres => "table_id::text",
        Dialect::MariaDb => "CAST(table_id AS CHAR)",
    };
    let changes = recorder::changes_table(dialect);
    let sql = format!("SELECT {id}, old, new FROM {changes} WHERE height = {height} ORDER BY number");
    let mut rows: BTreeMap<(TableId, Key), Net> = BTreeMap::new();
    for change in session.query(&sql)? {
        let (table, old, new) = decoded(tables, change)?;
        let key = key_of(table, old.as_ref().or(new.as_ref()))?;
        let net = rows.entry((table.table.id, key)).or_insert_with(|| Net {
            first: old.clone(),
            last: old.clone(),
            is_broken: false,
        });
        net.is_broken |= net.last != old;
        net.last = new;
    }
    compare(tables, before, rows, undefended.lacks(Defence::OldRows))
}

fn compare(
    tables: &[SharedTable],
    before: &dyn Snapshot,
    rows: BTreeMap<(TableId, Key), Net>,
    is_undefended: bool,
) -> Result<Effects, DatabaseError> {
    let (ids, nets): (Vec<RowId>, Vec<Net>) =
        rows.into_iter().map(|((table, key), net)| (RowId { table, key }, net)).unzip();
    let agreed = before.get_many(&ids).map_err(own_state)?;
    let mut effects = Effects { changes: Vec::new(), strange: Vec::new() };
    for ((row, net), agreed) in ids.into_iter().zip(nets).zip(agreed) {
        if (net.is_broken || net.first != agreed) && !is_undefended {
            effects.strange.extend(strange(tables, &row, net.first.as_ref(), agreed.as_ref()));
        } else if net.last != agreed {
            effects.changes.push(AfterImage { row, value: net.last });
        }
    }
    Ok(effects)
}

fn own_state(error: state::StoreError) -> DatabaseError {
    DatabaseError::new(ErrorKind::Other, format!("this node's own state: {error}"))
}

fn strange(
    tables: &[SharedTable],
    row: &RowId,
    found: Option<&Row>,
    agreed: Option<&Row>,
) -> Option<StrangeRow> {
    let table = tables.iter().find(|table| table.table.id == row.table)?;
    let shown = |row: &Row| table.shown_row(&table.texts(row));
    let key = table.shown_key(&table.key_of(&table.texts(found.or(agreed)?)));
    Some(StrangeRow {
        table: table.table.name.clone(),
        key,
        found: found.map(shown),
        agreed: agreed.map(shown),
    })
}

type Decoded<'t> = (&'t SharedTable, Option<Row>, Option<Row>);

/// A change: its table, the row before and the row behind.
fn decoded(tables: &[SharedTable], change: TextRow) -> Result<Decoded<'_>, DatabaseError> {
    let [id, old, new] = <[Option<String>; 3]>::try_from(change)
        .map_err(|_| unreadable("a change with three columns", "another one"))?;
    let id = id.unwrap_or_default();
    let table = tables.iter().find(|table| table.table.id.0.to_string() == id);
    let table = table.ok_or_else(|| unreadable("a table that is shared", &id))?;
    let row = |text: Option<String>| text.map(|text| row_of(table, &text)).transpose();
    Ok((table, row(old)?, row(new)?))
}

fn row_of(table: &SharedTable, text: &str) -> Result<Row, DatabaseError> {
    let fields = recorder::fields(text).filter(|fields| fields.len() == table.columns.len());
    let fields = fields.ok_or_else(|| unreadable(&format!("a row of {}", table.table.name), text))?;
    let columns = table.columns.iter().zip(&table.table.columns);
    let values = fields.into_iter().zip(columns).map(|(field, ((_, kind), column))| {
        value_of(table.dialect, kind, column.data_type, field)
            .map_err(|error| unreadable(&format!("a value of type {}", column.data_type), &error.message))
    });
    values.collect()
}

fn key_of(table: &SharedTable, row: Option<&Row>) -> Result<Key, DatabaseError> {
    let row = row.ok_or_else(|| unreadable("a row before or behind a change", "neither"))?;
    let key = Key::encode(table.key.iter().map(|ordinal| &row[*ordinal]));
    key.map_err(|error| DatabaseError::new(ErrorKind::Other, error.message))
}

fn unreadable(expected: &str, found: &str) -> DatabaseError {
    let found: String = found.chars().take(100).collect();
    DatabaseError::new(
        ErrorKind::Unfit,
        format!(
            "what triggers have written cannot be read: expected {expected}, found {found}; has somebody written there?"
        ),
    )
}
