//! Proofs of rows, made from the newest checkpoint of this node that a quorum has attested, or from what a schema's members have
//! attested of it.

use crate::private::{self, PrivateSchemas};
use crate::published::Published;
use ledger::{Ledger, LedgerError};
use sql::Reader;
use std::sync::Arc;
use types::{
    Catalog, CheckpointCertificate, Handover, OutcomeCertificate, SqlError, SqlState, TransactionId,
    catalog_name, object_name, quoted_catalog_name, schema_of,
};

/// The object is not in the state that it must be in.
const NOT_CERTIFIED: SqlState = SqlState(*b"55000");
const ASK: &str =
    "CHECKPOINT makes one; ask again when a quorum of organisations has attested it, in a moment.";

/// What proofs are made from.
pub(crate) struct ProvenFrom<'a> {
    pub(crate) published: &'a Published,
    pub(crate) ledger: &'a Ledger,
    /// Those that this organisation is a member of.
    pub(crate) schemas: &'a PrivateSchemas,
}

impl ProvenFrom<'_> {
    /// Proves what stands under a primary key: JSON. `reader`: who asks; `table`: its name as SQL has it, looked for in the schemas
    /// of `path`; `key`: the values of the primary key as text. In a schema with members it proves what the last block has left there
    /// that wrote it.
    ///
    /// # Errors
    /// As `gateway::Database::row_proof`.
    pub(crate) fn row(
        &self,
        reader: &Reader,
        (table, path): (&str, &[String]),
        key: &[String],
    ) -> Result<String, SqlError> {
        let library = self.published.library();
        let name = find(library.catalog(), table, path)
            .map_err(|missing| self.hidden(library.catalog(), table).unwrap_or(missing))?;
        check_may_read(self.published, reader, &name)?;
        let schema = schema_of(&name);
        if library.catalog().members_of(schema).is_none() {
            return self.row_of_all(&name, key);
        }
        let table = library.catalog().tables.get(&name).ok_or_else(|| private::no_member(schema))?;
        let proof = self.schemas.row_proof((schema, table), &table.key_of_texts(key)?, self.covering())?;
        Ok(proof.to_json())
    }

    /// Why nothing is known here of a table: its schema has members, and this organisation is none.
    fn hidden(&self, catalog: &Catalog, table: &str) -> Option<SqlError> {
        let (schema, _) = parts(table)?;
        let schema = schema.filter(|schema| catalog.members_of(schema).is_some())?;
        let is_member = self.schemas.is_member(&schema);
        (!is_member).then(|| private::no_member(&schema))
    }

    /// Proves how a transaction has ended in a schema with members: JSON. `schema`: its name alone.
    ///
    /// # Errors
    /// `42501` for whoever is no administrator, and where this organisation is no member of the schema; as [`PrivateSchemas::receipt_proof`].
    pub(crate) fn receipt_in_schema(
        &self,
        id: &TransactionId,
        reader: &Reader,
        schema: &[String],
    ) -> Result<String, SqlError> {
        let [schema] = schema else {
            let message = "expected a transaction's id and the name of one schema";
            return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
        };
        if !reader.principal.is_administrator() {
            let message = format!("permission denied for schema {schema}");
            return Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message)
                .hint("Its members' administrators see how transactions have ended in it."));
        }
        Ok(self.schemas.receipt_proof((id, schema), self.covering())?.to_json())
    }

    /// A certificate of outcomes that stands in no block yet, of a height or a later one.
    fn covering(&self) -> impl Fn(u64) -> Option<OutcomeCertificate> {
        |height| self.published.certified().covering(height)
    }

    /// A row of a table that everybody has, at the newest checkpoint that a quorum has attested.
    fn row_of_all(&self, name: &str, key: &[String]) -> Result<String, SqlError> {
        let Some(checkpoint) = self.published.certified().checkpoint() else {
            let message = "no checkpoint of this node is certified yet";
            return Err(SqlError::new(NOT_CERTIFIED, message).hint(ASK));
        };
        let (kept, certificate) = (&checkpoint.kept, checkpoint.certificate.clone());
        let height = certificate.statement.height;
        let Some(table) = kept.catalog().tables.get(name) else {
            let message = format!(
                "table \"{}\" is newer than the newest certified checkpoint, of height {height}",
                object_name(name)
            );
            return Err(SqlError::new(NOT_CERTIFIED, message).hint(ASK));
        };
        let key = table.key_of_texts(key)?;
        let handovers = handovers(self.ledger, &certificate).map_err(|error| {
            tracing::error!(height, %error, "the handovers of amended charters cannot be read");
            SqlError::new(SqlState::INTERNAL_ERROR, "the ledger cannot be read; the node's log says more")
        })?;
        match kept.prove(table.id, &key, certificate) {
            Ok(Some(proof)) => Ok(proof.with_handovers(handovers).to_json()),
            Ok(None) => Err(SqlError::new(
                SqlState::INTERNAL_ERROR,
                "the checkpoint's tree lacks a table of its catalog",
            )),
            Err(error) => {
                tracing::error!(height, %error, "a row of the checkpoint cannot be read");
                let message =
                    format!("the checkpoint of height {height} cannot be read; the node's log says more");
                Err(SqlError::new(SqlState::INTERNAL_ERROR, message)
                    .hint("The next one takes its place. Ask another node."))
            }
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

/// Whoever may SELECT from the table may have its rows proved. A proof asks no policy, so it is refused where policies count.
fn check_may_read(published: &Published, reader: &Reader, name: &str) -> Result<(), SqlError> {
    let (library, snapshot) = published.at_one_height();
    let security = library.catalog().tables.get(name).map(|table| &table.row_security);
    let is_administrator = reader.principal.is_administrator();
    if security.is_some_and(|security| security.counts_for(is_administrator)) {
        return Err(SqlError::unsupported("the proof of a row of a table with row-level security")
            .hint("An administrator may ask for it, unless the table has FORCE ROW LEVEL SECURITY."));
    }
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
