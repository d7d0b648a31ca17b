//! Proofs of receipts as JSON, and what all proofs have in common there: digests, keys and signatures as hexadecimal digits, what is hashed as a whole as its encoding.

use crate::receipt::check_bytes;
use crate::{Path, ProofError, ReceiptProof, Sibling, handovers};
use crypto::{Digest, Signature};
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::str::FromStr;
use types::{Certificate, Outcome, OutcomeHeader, Receipt, decode_exactly, encode};

const RECEIPT_KIND: &str = "entente receipt proof 1";
/// JSON takes more than twice the bytes of the encoding.
pub(crate) const JSON_FACTOR: usize = 4;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct JsonReceiptProof {
    kind: String,
    /// These four say what the receipt says; they must.
    transaction: String,
    height: u64,
    index: u32,
    outcome: String,
    /// Its canonical encoding.
    receipt: String,
    path: Vec<JsonSibling>,
    headers: Vec<JsonHeader>,
    certificate: JsonCertificate,
    /// Their canonical encodings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    handovers: Vec<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct JsonSibling {
    left: bool,
    digest: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonHeader {
    ledger: String,
    height: u64,
    block: String,
    previous: String,
    receipts_root: String,
    state_digest: String,
    charters: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonCertificate {
    statement: JsonHeader,
    signatures: Vec<JsonSignature>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct JsonSignature {
    organisation: u16,
    signature: String,
}

impl ReceiptProof {
    /// For people and other languages.
    pub fn to_json(&self) -> String {
        serde_json::to_string(&JsonReceiptProof::new(self)).expect("text and numbers are JSON")
    }

    /// Reads what [`ReceiptProof::to_json`] wrote. Proves nothing yet: [`ReceiptProof::verify`].
    ///
    /// # Errors
    /// [`ProofError::Malformed`] and [`ProofError::TooLarge`].
    pub fn from_json(text: &str) -> Result<ReceiptProof, ProofError> {
        check_bytes(text.len() / JSON_FACTOR)?;
        let json: JsonReceiptProof =
            serde_json::from_str(text).map_err(|error| ProofError::Malformed(error.to_string()))?;
        json.proof()
    }
}

impl JsonReceiptProof {
    pub(crate) fn new(proof: &ReceiptProof) -> JsonReceiptProof {
        JsonReceiptProof {
            kind: RECEIPT_KIND.to_string(),
            transaction: proof.receipt.transaction.to_string(),
            height: proof.receipt.height,
            index: proof.receipt.index,
            outcome: outcome(&proof.receipt).to_string(),
            receipt: to_hex(&encode(&proof.receipt)),
            path: JsonSibling::all(&proof.path),
            headers: proof.headers.iter().map(JsonHeader::new).collect(),
            certificate: JsonCertificate {
                statement: JsonHeader::new(&proof.certificate.statement),
                signatures: proof.certificate.signatures.iter().map(JsonSignature::new).collect(),
            },
            handovers: handovers::to_json(&proof.handovers),
        }
    }

    pub(crate) fn proof(self) -> Result<ReceiptProof, ProofError> {
        let json = self;
        if json.kind != RECEIPT_KIND {
            return Err(malformed(format!("its kind is `{}`, not `{RECEIPT_KIND}`", json.kind)));
        }
        let receipt: Receipt = decode_exactly(&from_hex(&json.receipt)?)
            .map_err(|error| malformed(format!("the receipt's encoding: {error}")))?;
        let said = (json.transaction.as_str(), json.height, json.index, json.outcome.as_str());
        let transaction = receipt.transaction.to_string();
        if said != (transaction.as_str(), receipt.height, receipt.index, outcome(&receipt)) {
            return Err(malformed(
                "transaction, height, index and outcome are not the receipt's".to_string(),
            ));
        }
        let path = path(&json.path)?;
        let headers = json.headers.iter().map(JsonHeader::header).collect::<Result<_, _>>()?;
        let certificate = Certificate {
            statement: json.certificate.statement.header()?,
            signatures: signatures(&json.certificate.signatures)?,
        };
        let handovers = handovers::from_json(&json.handovers)?;
        let proof = ReceiptProof { receipt, path, headers, certificate, handovers };
        proof.check_size()?;
        Ok(proof)
    }
}

impl JsonHeader {
    fn new(header: &OutcomeHeader) -> JsonHeader {
        JsonHeader {
            ledger: header.ledger.to_string(),
            height: header.height,
            block: header.block.to_string(),
            previous: header.previous.to_string(),
            receipts_root: header.receipts_root.to_string(),
            state_digest: header.state_digest.to_string(),
            charters: header.charters.to_string(),
        }
    }

    fn header(&self) -> Result<OutcomeHeader, ProofError> {
        let digest = |text: &str| parse::<Digest>(text, "a digest");
        Ok(OutcomeHeader {
            ledger: digest(&self.ledger)?,
            height: self.height,
            block: digest(&self.block)?,
            previous: digest(&self.previous)?,
            receipts_root: digest(&self.receipts_root)?,
            state_digest: digest(&self.state_digest)?,
            charters: digest(&self.charters)?,
        })
    }
}

impl JsonSibling {
    pub(crate) fn all(path: &Path) -> Vec<JsonSibling> {
        let one = |sibling: &Sibling| JsonSibling { left: sibling.left, digest: sibling.digest.to_string() };
        path.0.iter().map(one).collect()
    }
}

impl JsonSignature {
    pub(crate) fn new((organisation, signature): &(u16, Signature)) -> JsonSignature {
        JsonSignature { organisation: *organisation, signature: signature.to_string() }
    }
}

pub(crate) fn path(siblings: &[JsonSibling]) -> Result<Path, ProofError> {
    let sibling = |one: &JsonSibling| Ok(Sibling { left: one.left, digest: parse(&one.digest, "a digest")? });
    siblings.iter().map(sibling).collect::<Result<_, ProofError>>().map(Path)
}

pub(crate) fn signatures(signatures: &[JsonSignature]) -> Result<Vec<(u16, Signature)>, ProofError> {
    let signature = |one: &JsonSignature| Ok((one.organisation, parse(&one.signature, "a signature")?));
    signatures.iter().map(signature).collect()
}

pub(crate) fn outcome(receipt: &Receipt) -> &'static str {
    match receipt.outcome {
        Outcome::Committed(_) => "committed",
        Outcome::Aborted(_) => "aborted",
        Outcome::Conflict => "conflict",
        Outcome::Rejected(_) => "rejected",
    }
}

pub(crate) fn malformed(what: String) -> ProofError {
    ProofError::Malformed(what)
}

pub(crate) fn parse<T: FromStr>(text: &str, what: &str) -> Result<T, ProofError> {
    text.parse().map_err(|_| malformed(format!("expected {what} as hexadecimal digits, found {text:?}")))
}

pub(crate) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

pub(crate) fn from_hex(text: &str) -> Result<Vec<u8>, ProofError> {
    let digit = |digit: u8| char::from(digit).to_digit(16).map(|digit| digit as u8);
    let pair = |pair: &[u8]| Some(digit(*pair.first()?)? << 4 | digit(*pair.get(1)?)?);
    let bytes: Option<Vec<u8>> = text.as_bytes().chunks(2).map(pair).collect();
    bytes.ok_or_else(|| malformed("expected an even number of hexadecimal digits".to_string()))
}
