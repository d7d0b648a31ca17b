//! Proofs of what happened in schemas with members as JSON.

use crate::json::{
    JSON_FACTOR, JsonReceiptProof, JsonSibling, JsonSignature, from_hex, malformed, outcome, parse, path,
    signatures, to_hex,
};
use crate::json_row::{JsonValue, decode};
use crate::receipt::check_bytes;
use crate::{ProofError, SchemaEvidence, SchemaReceiptProof, SchemaRowProof};
use crypto::Digest;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use types::{
    Certificate, Key, PartMoves, PartVotes, Receipt, Row, SchemaBlockOutcome, SchemaOutcome, Table, encode,
    format_value,
};

const RECEIPT_KIND: &str = "entente schema receipt proof 1";
const ROW_KIND: &str = "entente schema row proof 1";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonSchemaReceiptProof {
    kind: String,
    /// These four say what the receipt says; they must.
    transaction: String,
    height: u64,
    index: u32,
    outcome: String,
    /// Its canonical encoding.
    receipt: String,
    evidence: JsonEvidence,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonSchemaRowProof {
    kind: String,
    /// These three say what the rest says; they must. `values` is null where the block has deleted the row.
    table: String,
    height: u64,
    values: Option<Vec<JsonValue>>,
    /// Canonical encodings.
    definition: String,
    key: String,
    row: String,
    evidence: JsonEvidence,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonEvidence {
    salt: String,
    path: Vec<JsonSibling>,
    blocks: Vec<JsonBlock>,
    certificate: JsonSchemaCertificate,
    members: JsonReceiptProof,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonBlock {
    height: u64,
    previous: String,
    settled: u64,
    receipts: String,
    rows: String,
    state: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonSchemaCertificate {
    statement: JsonStatement,
    signatures: Vec<JsonSignature>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonStatement {
    ledger: String,
    schema: u32,
    height: u64,
    outcome: String,
    votes: Vec<JsonVotes>,
    /// From execution version 6 on, where something moves between schemas.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    moves: Vec<JsonMoves>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonMoves {
    height: u64,
    index: u32,
    with: u32,
    digest: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonVotes {
    height: u64,
    yes: Vec<u32>,
    no: Vec<u32>,
}

impl SchemaReceiptProof {
    /// For people and other languages.
    pub fn to_json(&self) -> String {
        let json = JsonSchemaReceiptProof {
            kind: RECEIPT_KIND.to_string(),
            transaction: self.receipt.transaction.to_string(),
            height: self.receipt.height,
            index: self.receipt.index,
            outcome: outcome(&self.receipt).to_string(),
            receipt: to_hex(&encode(&self.receipt)),
            evidence: JsonEvidence::new(&self.evidence),
        };
        serde_json::to_string(&json).expect("text and numbers are JSON")
    }

    /// Reads what [`SchemaReceiptProof::to_json`] wrote. Proves nothing yet: [`SchemaReceiptProof::verify`].
    ///
    /// # Errors
    /// [`ProofError::Malformed`] and [`ProofError::TooLarge`].
    pub fn from_json(text: &str) -> Result<SchemaReceiptProof, ProofError> {
        let json: JsonSchemaReceiptProof = read(text)?;
        check_kind(&json.kind, RECEIPT_KIND)?;
        let receipt: Receipt = decode(&json.receipt, "the receipt")?;
        let said = (json.transaction.as_str(), json.height, json.index, json.outcome.as_str());
        let transaction = receipt.transaction.to_string();
        if said != (transaction.as_str(), receipt.height, receipt.index, outcome(&receipt)) {
            return Err(malformed(
                "transaction, height, index and outcome are not the receipt's".to_string(),
            ));
        }
        Ok(SchemaReceiptProof { receipt, evidence: json.evidence.evidence()? })
    }
}

impl SchemaRowProof {
    /// For people and other languages.
    pub fn to_json(&self) -> String {
        let json = JsonSchemaRowProof {
            kind: ROW_KIND.to_string(),
            table: self.table.name.clone(),
            height: self.evidence.height(),
            values: self.values(),
            definition: to_hex(&encode(&self.table)),
            key: to_hex(self.key.as_bytes()),
            row: to_hex(&encode(&self.row)),
            evidence: JsonEvidence::new(&self.evidence),
        };
        serde_json::to_string(&json).expect("text and numbers are JSON")
    }

    /// Reads what [`SchemaRowProof::to_json`] wrote. Proves nothing yet: [`SchemaRowProof::verify`].
    ///
    /// # Errors
    /// [`ProofError::Malformed`] and [`ProofError::TooLarge`].
    pub fn from_json(text: &str) -> Result<SchemaRowProof, ProofError> {
        let json: JsonSchemaRowProof = read(text)?;
        check_kind(&json.kind, ROW_KIND)?;
        let proof = SchemaRowProof {
            table: decode::<Table>(&json.definition, "a table's definition")?,
            key: Key::from_bytes(&from_hex(&json.key)?),
            row: decode::<Option<Row>>(&json.row, "a row")?,
            evidence: json.evidence.evidence()?,
        };
        let said = (json.table.as_str(), json.height, json.values);
        match said == (proof.table.name.as_str(), proof.evidence.height(), proof.values()) {
            true => Ok(proof),
            false => Err(malformed("table, height and values are not those of the proof".to_string())),
        }
    }

    /// The row's values as text, by column; nothing where the block has deleted it.
    pub fn named_values(&self) -> Option<Vec<(&str, Option<String>)>> {
        let columns = self.table.columns.iter().map(|column| column.name.as_str());
        Some(columns.zip(self.row.as_ref()?.iter().map(format_value)).collect())
    }

    fn values(&self) -> Option<Vec<JsonValue>> {
        Some(JsonValue::all(self.named_values()?))
    }
}

/// Whether JSON says that it is a proof of what happened in a schema with members.
pub fn is_of_schema(text: &str) -> bool {
    #[derive(Deserialize)]
    struct Kind {
        kind: String,
    }
    let said = serde_json::from_str::<Kind>(text);
    said.is_ok_and(|said| [RECEIPT_KIND, ROW_KIND].contains(&said.kind.as_str()))
}

fn read<T: DeserializeOwned>(text: &str) -> Result<T, ProofError> {
    check_bytes(text.len() / JSON_FACTOR)?;
    serde_json::from_str(text).map_err(|error| ProofError::Malformed(error.to_string()))
}

fn check_kind(found: &str, expected: &str) -> Result<(), ProofError> {
    match found == expected {
        true => Ok(()),
        false => Err(malformed(format!("its kind is `{found}`, not `{expected}`"))),
    }
}

impl JsonMoves {
    fn new(PartMoves { height, index, with, digest }: &PartMoves) -> JsonMoves {
        JsonMoves { height: *height, index: *index, with: *with, digest: digest.to_string() }
    }

    fn moves(&self) -> Result<PartMoves, ProofError> {
        let JsonMoves { height, index, with, digest: text } = self;
        Ok(PartMoves { height: *height, index: *index, with: *with, digest: digest(text)? })
    }
}

impl JsonEvidence {
    fn new(evidence: &SchemaEvidence) -> JsonEvidence {
        let Certificate { statement, signatures } = &evidence.certificate;
        let votes = statement.votes.iter().cloned();
        JsonEvidence {
            salt: evidence.salt.to_string(),
            path: JsonSibling::all(&evidence.path),
            blocks: evidence.blocks.iter().map(JsonBlock::new).collect(),
            certificate: JsonSchemaCertificate {
                statement: JsonStatement {
                    ledger: statement.ledger.to_string(),
                    schema: statement.schema,
                    height: statement.height,
                    outcome: statement.outcome.to_string(),
                    votes: votes.map(|PartVotes { height, yes, no }| JsonVotes { height, yes, no }).collect(),
                    moves: statement.moves.iter().map(JsonMoves::new).collect(),
                },
                signatures: signatures.iter().map(JsonSignature::new).collect(),
            },
            members: JsonReceiptProof::new(&evidence.members),
        }
    }

    fn evidence(self) -> Result<SchemaEvidence, ProofError> {
        let JsonSchemaCertificate { statement, signatures: signed } = self.certificate;
        let votes = statement.votes.into_iter();
        let statement = SchemaOutcome {
            ledger: digest(&statement.ledger)?,
            schema: statement.schema,
            height: statement.height,
            outcome: digest(&statement.outcome)?,
            votes: votes.map(|JsonVotes { height, yes, no }| PartVotes { height, yes, no }).collect(),
            moves: statement.moves.iter().map(JsonMoves::moves).collect::<Result<_, _>>()?,
        };
        let evidence = SchemaEvidence {
            salt: digest(&self.salt)?,
            path: path(&self.path)?,
            blocks: self.blocks.iter().map(JsonBlock::block).collect::<Result<_, _>>()?,
            certificate: Certificate { statement, signatures: signatures(&signed)? },
            members: self.members.proof()?,
        };
        evidence.check_size()?;
        Ok(evidence)
    }
}

impl JsonBlock {
    fn new(block: &SchemaBlockOutcome) -> JsonBlock {
        JsonBlock {
            height: block.height,
            previous: block.previous.to_string(),
            settled: block.settled,
            receipts: block.receipts.to_string(),
            rows: block.rows.to_string(),
            state: block.state.to_string(),
        }
    }

    fn block(&self) -> Result<SchemaBlockOutcome, ProofError> {
        Ok(SchemaBlockOutcome {
            height: self.height,
            previous: digest(&self.previous)?,
            settled: self.settled,
            receipts: digest(&self.receipts)?,
            rows: digest(&self.rows)?,
            state: digest(&self.state)?,
        })
    }
}

fn digest(text: &str) -> Result<Digest, ProofError> {
    parse(text, "a digest")
}
