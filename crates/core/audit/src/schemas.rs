//! What a ledger says of schemas with members, and whether the parts that a folder holds are those of the ledger. What is in a schema
//! its members' folders alone tell: of all others it is checked that a quorum has signed.

use crate::error::{Fault, Part as RecordPart};
use ledger::BlockRecord;
use std::sync::Arc;
use types::{
    AttestingMembers, Charters, ExecutionVersion, Outcome, Part, PartCommitment, Payload, SchemaCertificate,
    SignedTransaction, TransactionId,
};

/// Findings that are named; more are counted.
const NAMED_MAX: usize = 20;

/// The parts that a member's folder holds.
pub trait HeldParts: Send + Sync {
    /// Whether any of a schema is there: who has none is no member.
    fn is_of(&self, schema: &str) -> bool;

    /// The part of a transaction in a schema, if it is there.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn part(&self, transaction: &TransactionId, schema: &str) -> Result<Option<Part>, String>;
}

/// What was found of schemas with members.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SchemasReport {
    /// Transactions with parts in such schemas that the ledger has admitted.
    pub transactions: u64,
    /// Certificates of schemas' outcomes that a quorum of the members has signed of whom the ledger says that they were it.
    pub certificates: u64,
    /// Good signatures under those of which the ledger does not say who the members were: it does from execution version 5 on.
    pub unnamed: u64,
    /// Certificates that say nothing: whoever signs a transaction can make one up.
    pub uncounted: Named,
    /// Parts that are what their clients have committed to.
    pub parts: u64,
    /// Parts of schemas of which the folder has others.
    pub missing: Named,
    /// Parts of schemas of which the folder has none.
    pub elsewhere: u64,
}

/// Things of which the first ones are named.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Named {
    /// How many there are.
    pub count: u64,
    /// The first of them.
    pub first: Vec<String>,
}

impl Named {
    fn add(&mut self, what: String) {
        self.count += 1;
        if self.first.len() < NAMED_MAX {
            self.first.push(what);
        }
    }

    fn extend(&mut self, others: Named) {
        self.count += others.count;
        let room = NAMED_MAX.saturating_sub(self.first.len());
        self.first.extend(others.first.into_iter().take(room));
    }
}

impl SchemasReport {
    /// Adds what was found behind.
    pub(crate) fn extend(&mut self, others: SchemasReport) {
        self.transactions += others.transactions;
        self.certificates += others.certificates;
        self.unnamed += others.unnamed;
        self.uncounted.extend(others.uncounted);
        self.parts += others.parts;
        self.missing.extend(others.missing);
        self.elsewhere += others.elsewhere;
    }
}

/// What records are checked against.
pub(crate) struct SchemaRules {
    /// Of all heights that it is asked about.
    charters: Charters,
    parts: Option<Arc<dyn HeldParts>>,
}

impl SchemaRules {
    pub(crate) fn new(charters: Charters, parts: Option<Arc<dyn HeldParts>>) -> SchemaRules {
        SchemaRules { charters, parts }
    }

    /// What a record says of schemas, with the ids of its transactions.
    ///
    /// # Errors
    /// A part in the folder is another one than its client has committed to.
    pub(crate) fn check(&self, record: &BlockRecord, ids: &[TransactionId]) -> Result<SchemasReport, Fault> {
        let mut found = SchemasReport::default();
        let transactions = record.block.transactions.iter().zip(ids).zip(&record.outcome.receipts);
        for ((bytes, id), receipt) in transactions {
            let index = receipt.index;
            let concerns =
                SignedTransaction::has_parts(bytes) || SignedTransaction::has_schema_outcomes(bytes);
            let Outcome::Committed(results) = &receipt.outcome else { continue };
            let Some(signed) = concerns.then(|| SignedTransaction::from_bytes(bytes).ok()).flatten() else {
                continue;
            };
            match &signed.transaction.payload {
                Payload::Parts { parts } => {
                    found.transactions += 1;
                    for part in parts {
                        let checked = self.check_part((&signed, id, receipt.height), part, parts, &mut found);
                        checked.map_err(|what| (RecordPart::Held(index), what))?;
                    }
                }
                Payload::SchemaOutcomes { certificates } | Payload::MovingOutcomes { certificates } => {
                    let members = AttestingMembers::of_results(results);
                    for certificate in certificates {
                        self.count((certificate, &members), (receipt.height, index), &mut found);
                    }
                }
                _ => {}
            }
        }
        Ok(found)
    }

    fn check_part(
        &self,
        (signed, id, height): (&SignedTransaction, &TransactionId, u64),
        PartCommitment { schema, .. }: &PartCommitment,
        parts: &[PartCommitment],
        found: &mut SchemasReport,
    ) -> Result<(), String> {
        let Some(held) = self.parts.as_ref().filter(|held| held.is_of(schema)) else {
            found.elsewhere += 1;
            return Ok(());
        };
        match held.part(id, schema)? {
            Some(part) => {
                let checked = part.check(&self.charters.ledger(), schema, &signed.client_id(), parts);
                checked.map_err(|fault| fault.to_string())?;
                found.parts += 1;
            }
            None => found
                .missing
                .add(format!("height {height}: the part of transaction {id} in schema \"{schema}\"")),
        }
        Ok(())
    }

    /// Counts a certificate, or says why it does not count.
    fn count(
        &self,
        (certificate, members): (&SchemaCertificate, &[AttestingMembers]),
        (height, index): (u64, u32),
        found: &mut SchemasReport,
    ) {
        let statement = &certificate.statement;
        let mut says_nothing = |why: String| {
            let (schema, of) = (statement.schema, statement.height);
            let what =
                format!("height {height}, transaction {index}: schema number {schema} at height {of}: {why}");
            found.uncounted.add(what);
        };
        if statement.height > height {
            return says_nothing("it is about a block that is still to come".to_string());
        }
        if let Err(error) = certificate.check_signed(&self.charters.at(statement.height).rules) {
            return says_nothing(error.to_string());
        }
        let version = self.charters.at(height).charter.execution_version;
        if version < ExecutionVersion::V5.number() {
            found.unnamed += 1;
            return;
        }
        let Some(members) = members.iter().find(|members| members.number == statement.schema) else {
            return says_nothing("there is no such schema any more".to_string());
        };
        if !members.were_at(statement.height, height) {
            return says_nothing(format!("its members have changed at height {}", members.changed));
        }
        match certificate.check_count(&members.organisations) {
            Ok(()) => found.certificates += 1,
            Err(error) => says_nothing(error.to_string()),
        }
    }
}
