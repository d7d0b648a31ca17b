//! A database is no copy any more.

use crate::address::Address;
use crate::dialect::Dialect;
use crate::{DatabaseError, bookkeeping, guard, recorder, session};

/// Takes the triggers away that refuse writes or record what scripts do, and what the database remembers of being a copy. Rows stay. Gives the tables.
///
/// # Errors
/// The database cannot be reached, or a node still writes to it.
pub fn forget(address: &Address) -> Result<Vec<String>, DatabaseError> {
    let dialect = Dialect::from(address.kind);
    let mut session = session::connect(address)?;
    bookkeeping::lock(&mut *session, address.kind, &address.database)?;
    bookkeeping::create(&mut *session, dialect)?;
    let tables: Vec<String> = bookkeeping::tables(&mut *session, dialect)?.into_keys().collect();
    for table in &tables {
        guard::remove(&mut *session, dialect, table)?;
        recorder::remove(&mut *session, dialect, table)?;
    }
    bookkeeping::forget(&mut *session, dialect)?;
    Ok(tables)
}
