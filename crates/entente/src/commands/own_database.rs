//! The organisation's own database that `node.toml` names: its address, and what a node does with it.

use crate::CommandError;
use chainify::{Address, OwnDatabase, OwnDatabaseOptions, OwnRules, ScriptDatabase, ScriptDatabaseOptions};
use node::{NodeFolder, NodeOptions};
use std::sync::Arc;
use types::ExecutionModel;

/// What keeps tables in the organisation's own database or executes scripts there, where `node.toml` names one, and what judges
/// scripts by its rules.
pub(super) fn use_database(folder: &NodeFolder, options: &mut NodeOptions) -> Result<(), CommandError> {
    let own = own_address(folder)?;
    if folder.charter.execution == ExecutionModel::WhateverThenAgree {
        options.judge = Some(Arc::new(OwnRules::new(&folder.path, own.clone())));
    }
    let (Some(config), Some(address)) = (&folder.config.database, own) else { return Ok(()) };
    if folder.charter.execution == ExecutionModel::WhateverThenAgree {
        if folder.config.row_history_megabytes.is_some() {
            let message = "node.toml: row_history_megabytes: the history of rows says which transaction has changed a row, and a \
                           database that executes scripts does not; leave it out";
            return Err(message.into());
        }
        let database = ScriptDatabase::new(ScriptDatabaseOptions {
            address,
            node: folder.node_key.public_key(),
            connections: config.connections.unwrap_or(chainify::CONNECTIONS).clamp(1, 256),
            as_sets: true,
            takes_ledger_rows: config.take_ledger_rows,
        });
        options.own_execution = Some(Arc::new(database));
        return Ok(());
    }
    options.own_database = Some(Arc::new(OwnDatabase::new(OwnDatabaseOptions {
        address,
        tables: config.tables.clone(),
        scan_seconds: config.scan_seconds,
        takes_ledger_rows: config.take_ledger_rows,
    })));
    Ok(())
}

/// The organisation's own database, with its password, where `node.toml` names one.
pub(super) fn own_address(folder: &NodeFolder) -> Result<Option<Address>, CommandError> {
    let Some(config) = &folder.config.database else { return Ok(None) };
    let mut address: Address = config.url.parse()?;
    if let Some(password) = folder.database_password()? {
        address.password = Some(password);
    }
    Ok(Some(address))
}
