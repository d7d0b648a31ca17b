//! Proofs of rows as JSON.

use crate::json::{
    JSON_FACTOR, JsonSibling, JsonSignature, from_hex, malformed, parse, path, signatures, to_hex,
};
use crate::receipt::check_bytes;
use crate::{Entry, Found, GroupedRow, ProofError, RowEntry, RowProof, TableEntry, handovers};
use borsh::BorshDeserialize;
use crypto::Digest;
use serde::{Deserialize, Serialize};
use types::{Certificate, CheckpointRoot, Key, Table, TableId, decode_exactly, encode, format_value};

const ROW_KIND: &str = "entente row proof 1";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonRowProof {
    kind: String,
    /// These four say what the rest says; they must. `row` is null where there is no such row.
    table: String,
    height: u64,
    key: String,
    row: Option<Vec<JsonValue>>,
    /// The table's definition, in its canonical encoding, and its way to the root over all tables.
    definition: JsonTable,
    found: JsonFound,
    catalog: String,
    requests: String,
    certificate: JsonCheckpoint,
    /// Their canonical encodings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    handovers: Vec<String>,
}

#[derive(PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct JsonValue {
    column: String,
    value: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonTable {
    encoding: String,
    across: Vec<JsonSibling>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonRow {
    table: u32,
    key: String,
    row: String,
    within: Vec<JsonSibling>,
    first: String,
    /// Where the row's range is in a group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    group: Option<JsonGroup>,
    across: Vec<JsonSibling>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonGroup {
    within: Vec<JsonSibling>,
    first: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum JsonEntry {
    Table(JsonTable),
    Row(JsonRow),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum JsonFound {
    Row(JsonRow),
    Nothing { before: JsonEntry, after: Option<JsonEntry> },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonCheckpoint {
    statement: JsonRoot,
    signatures: Vec<JsonSignature>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonRoot {
    ledger: String,
    height: u64,
    outcome: String,
    state_root: String,
}

impl RowProof {
    /// For people and other languages.
    pub fn to_json(&self) -> String {
        let Certificate { statement, signatures } = &self.certificate;
        let json = JsonRowProof {
            kind: ROW_KIND.to_string(),
            table: self.table.table.name.clone(),
            height: statement.height,
            key: to_hex(self.key().as_bytes()),
            row: self.values(),
            definition: JsonTable::new(&self.table),
            found: match &self.found {
                Found::Row(entry) => JsonFound::Row(JsonRow::new(entry)),
                Found::Grouped(entry) => JsonFound::Row(JsonRow::grouped(entry)),
                Found::Nothing { before, after, .. } => JsonFound::Nothing {
                    before: JsonEntry::new(before),
                    after: after.as_deref().map(JsonEntry::new),
                },
            },
            catalog: self.catalog.to_string(),
            requests: self.requests.to_string(),
            certificate: JsonCheckpoint {
                statement: JsonRoot {
                    ledger: statement.ledger.to_string(),
                    height: statement.height,
                    outcome: statement.outcome.to_string(),
                    state_root: statement.state_root.to_string(),
                },
                signatures: signatures.iter().map(JsonSignature::new).collect(),
            },
            handovers: handovers::to_json(&self.handovers),
        };
        serde_json::to_string(&json).expect("text and numbers are JSON")
    }

    /// Reads what [`RowProof::to_json`] wrote. Proves nothing yet: [`RowProof::verify`].
    ///
    /// # Errors
    /// [`ProofError::Malformed`] and [`ProofError::TooLarge`].
    pub fn from_json(text: &str) -> Result<RowProof, ProofError> {
        check_bytes(text.len() / JSON_FACTOR)?;
        let json: JsonRowProof =
            serde_json::from_str(text).map_err(|error| ProofError::Malformed(error.to_string()))?;
        if json.kind != ROW_KIND {
            return Err(malformed(format!("its kind is `{}`, not `{ROW_KIND}`", json.kind)));
        }
        let digest = |text: &str| parse::<Digest>(text, "a digest");
        let key = Key::from_bytes(&from_hex(&json.key)?);
        let found = match &json.found {
            JsonFound::Row(row) => match row.entry()? {
                Entry::Grouped(row) => Found::Grouped(row),
                Entry::Row(row) => Found::Row(row),
                Entry::Table(_) => return Err(malformed("a table where a row is expected".to_string())),
            },
            JsonFound::Nothing { before, after } => Found::Nothing {
                key: key.clone(),
                before: Box::new(before.entry()?),
                after: after.as_ref().map(JsonEntry::entry).transpose()?.map(Box::new),
            },
        };
        let JsonRoot { ledger, height, outcome, state_root } = &json.certificate.statement;
        let statement = CheckpointRoot {
            ledger: digest(ledger)?,
            height: *height,
            outcome: digest(outcome)?,
            state_root: digest(state_root)?,
        };
        let proof = RowProof {
            table: json.definition.entry()?,
            found,
            catalog: digest(&json.catalog)?,
            requests: digest(&json.requests)?,
            certificate: Certificate { statement, signatures: signatures(&json.certificate.signatures)? },
            handovers: handovers::from_json(&json.handovers)?,
        };
        proof.check_size()?;
        let said = (json.table, json.height, key, json.row);
        let expected = (proof.table.table.name.clone(), *height, proof.key().clone(), proof.values());
        match said == expected {
            true => Ok(proof),
            false => Err(malformed("table, height, key and row are not those of the proof".to_string())),
        }
    }

    /// The row's values as text, by column, if there is a row.
    pub fn named_values(&self) -> Option<Vec<(&str, Option<String>)>> {
        let entry = self.found.row()?;
        let columns = self.table.table.columns.iter().map(|column| column.name.as_str());
        Some(columns.zip(entry.row.iter().map(format_value)).collect())
    }

    fn values(&self) -> Option<Vec<JsonValue>> {
        Some(JsonValue::all(self.named_values()?))
    }
}

impl JsonValue {
    /// Values by column.
    pub(crate) fn all(named: Vec<(&str, Option<String>)>) -> Vec<JsonValue> {
        let value = |(column, value): (&str, _)| JsonValue { column: column.to_string(), value };
        named.into_iter().map(value).collect()
    }
}

impl JsonTable {
    fn new(entry: &TableEntry) -> JsonTable {
        JsonTable { encoding: to_hex(&encode(&entry.table)), across: JsonSibling::all(&entry.across) }
    }

    fn entry(&self) -> Result<TableEntry, ProofError> {
        Ok(TableEntry {
            table: decode::<Table>(&self.encoding, "a table's definition")?,
            across: path(&self.across)?,
        })
    }
}

impl JsonRow {
    fn new(entry: &RowEntry) -> JsonRow {
        JsonRow {
            table: entry.table.0,
            key: to_hex(entry.key.as_bytes()),
            row: to_hex(&encode(&entry.row)),
            within: JsonSibling::all(&entry.within),
            first: to_hex(entry.first.as_bytes()),
            group: None,
            across: JsonSibling::all(&entry.across),
        }
    }

    fn grouped(entry: &GroupedRow) -> JsonRow {
        let group =
            JsonGroup { within: JsonSibling::all(&entry.ranges), first: to_hex(entry.group.as_bytes()) };
        JsonRow { group: Some(group), ..JsonRow::new(&entry.row) }
    }

    fn entry(&self) -> Result<Entry, ProofError> {
        let row = RowEntry {
            table: TableId(self.table),
            key: Key::from_bytes(&from_hex(&self.key)?),
            row: decode(&self.row, "a row")?,
            within: path(&self.within)?,
            first: Key::from_bytes(&from_hex(&self.first)?),
            across: path(&self.across)?,
        };
        let Some(JsonGroup { within, first }) = &self.group else { return Ok(Entry::Row(row)) };
        Ok(Entry::Grouped(GroupedRow {
            row,
            ranges: path(within)?,
            group: Key::from_bytes(&from_hex(first)?),
        }))
    }
}

impl JsonEntry {
    fn new(entry: &Entry) -> JsonEntry {
        match entry {
            Entry::Table(entry) => JsonEntry::Table(JsonTable::new(entry)),
            Entry::Row(entry) => JsonEntry::Row(JsonRow::new(entry)),
            Entry::Grouped(entry) => JsonEntry::Row(JsonRow::grouped(entry)),
        }
    }

    fn entry(&self) -> Result<Entry, ProofError> {
        Ok(match self {
            JsonEntry::Table(table) => Entry::Table(table.entry()?),
            JsonEntry::Row(row) => row.entry()?,
        })
    }
}

pub(crate) fn decode<T: BorshDeserialize>(text: &str, what: &str) -> Result<T, ProofError> {
    decode_exactly(&from_hex(text)?).map_err(|error| malformed(format!("the encoding of {what}: {error}")))
}
