//! Proofs of rows, made from the newest checkpoint of this node that a quorum has attested.

use crate::published::Published;
use ledger::{Ledger, LedgerError};
use sql::Reader;
use std::sync::Arc;
use types::{
    Catalog, CheckpointCertificate, Handover, SqlError, SqlState, catalog_name, object_name,
    quoted_catalog_name, schema_of,
};

/// The object is not in the state that it must be in.
const NOT_CERTIFIED: SqlState = SqlState(*b"55000");
const ASK: &str =
    "CHECKPOINT makes one; ask again when a quorum of organisations has attested it, in a moment.";

/// Proves what stands under a primary key: JSON. `reader`: who asks; `table`: its name as SQL has it, looked for in the schemas
/// of `path`; `key`: the values of the primary key as text.
///
/// # Errors
/// As `gateway::Database::row_proof`.
pub(crate) fn row_proof(
    (published, ledger): (&Published, &Ledger),
    reader: &Reader,
    (table, path): (&str, &[String]),
    key: &[String],
) -> Result<String, SqlError> {
    let library = published.library();
    let name = find(library.catalog(), table, path)?;
    check_may_read(published, reader, &name)?;
    if library.catalog().members_of(schema_of(&name)).is_some() {
        return Err(SqlError::unsupported("a proof of a row in a schema with members"));
    }
    let Some(checkpoint) = published.certified().checkpoint() else {
        let message = "no checkpoint of this node is certified yet";
        return Err(SqlError::new(NOT_CERTIFIED, message).hint(ASK));
    };
    let (kept, certificate) = (&checkpoint.kept, checkpoint.certificate.clone());
    let height = certificate.statement.height;
    let Some(table) = kept.catalog().tables.get(&name) else {
        let message = format!(
            "table \"{}\" is newer than the newest certified checkpoint, of height {height}",
            object_name(&name)
        );
        return Err(SqlError::new(NOT_CERTIFIED, message).hint(ASK));
    };
    let key = table.key_of_texts(key)?;
    let handovers = handovers(ledger, &certificate).map_err(|error| {
        tracing::error!(height, %error, "the handovers of amended charters cannot be read");
        SqlError::new(SqlState::INTERNAL_ERROR, "the ledger cannot be read; the node's log says more")
    })?;
    match kept.prove(table.id, &key, certificate) {
        Ok(Some(proof)) => Ok(proof.with_handovers(handovers).to_json()),
        Ok(None) => {
            Err(SqlError::new(SqlState::INTERNAL_ERROR, "the checkpoint's tree lacks a table of its catalog"))
        }
        Err(error) => {
            tracing::error!(height, %error, "a row of the checkpoint cannot be read");
            let message =
                format!("the checkpoint of height {height} cannot be read; the node's log says more");
            Err(SqlError::new(SqlState::INTERNAL_ERROR, message)
                .hint("The next one takes its place. Ask another node."))
        }
    }
}

/// What proves the charters that the ledger's blocks name up to the checkpoint.
fn handovers(ledger: &Ledger, certificate: &CheckpointCertificate) -> Result<Vec<Handover>, LedgerError> {
    let (founding, height) = (certificate.statement.ledger, certificate.statement.height);
    match ledger.header(height)?.is_none_or(|header| header.charters == founding) {
        true => Ok(Vec::new()),
        false => ledger.handovers(founding),
    }
}

/// The name in the catalog of a table: the first of the path that has it.
fn find(catalog: &Catalog, given: &str, path: &[String]) -> Result<String, SqlError> {
    let missing = || SqlError::new(SqlState::UNDEFINED_TABLE, format!("relation \"{given}\" does not exist"));
    let (schema, table) = parts(given).ok_or_else(missing)?;
    let names: Vec<String> = match schema {
        Some(schema) => vec![catalog_name(&schema, &table)],
        None => path.iter().map(|schema| catalog_name(schema, &table)).collect(),
    };
    let is_other =
        |name: &&String| catalog.views.contains_key(*name) || catalog.sequences.contains_key(*name);
    if let Some(found) = names.iter().find(|name| catalog.tables.contains_key(*name)) {
        return Ok(found.clone());
    }
    match names.iter().find(is_other) {
        Some(_) => Err(SqlError::new(SqlState(*b"42809"), format!("\"{table}\" is not a table"))),
        None => Err(missing()),
    }
}

/// Schema and table of a name as SQL has it: in lower case unless in quotes.
fn parts(given: &str) -> Option<(Option<String>, String)> {
    let (mut names, mut name, mut quoted) = (Vec::new(), String::new(), false);
    let mut characters = given.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if quoted && characters.peek() == Some(&'"') => name.extend(characters.next()),
            '"' => quoted = !quoted,
            '.' if !quoted => names.push(std::mem::take(&mut name)),
            character if quoted => name.push(character),
            character => name.extend(character.to_lowercase()),
        }
    }
    names.push(name);
    if quoted || names.iter().any(String::is_empty) {
        return None;
    }
    let table = names.pop()?;
    match names.len() {
        0 | 1 => Some((names.pop(), table)),
        _ => None,
    }
}

/// Whoever may SELECT from the table may have its rows proved.
fn check_may_read(published: &Published, reader: &Reader, name: &str) -> Result<(), SqlError> {
    let (library, snapshot) = published.at_one_height();
    let select = format!("SELECT * FROM {} LIMIT 0", quoted_catalog_name(name));
    let prepared = sql::prepare(&Arc::clone(&library), &select, &[])?;
    prepared.query_as(reader, snapshot.as_ref(), &[]).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_sql_has_them() {
        let plain = |schema: Option<&str>, table: &str| Some((schema.map(str::to_string), table.to_string()));
        assert_eq!(parts("Accounts"), plain(None, "accounts"));
        assert_eq!(parts("Sales.\"The \"\"Orders\"\".2\""), plain(Some("sales"), "The \"Orders\".2"));
        for wrong in ["", ".", "a.", ".a", "a.b.c", "\"a", "a.\"\""] {
            assert_eq!(parts(wrong), None, "{wrong}");
        }
    }
}
