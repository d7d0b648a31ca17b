use crate::CommandError;
use proofs::{ProvedInSchema, ReceiptProof, RowProof, SchemaReceiptProof, SchemaRowProof, is_of_schema};
use std::path::Path;
use types::{Charter, Handover, Notifications, Outcome, Receipt};

/// Checks the proof in a file and says what it proves.
pub(super) fn verify_receipt(path: &Path, charter: &Charter) -> Result<(), CommandError> {
    let failed = |error: &dyn std::fmt::Display| CommandError::from(format!("{}: {error}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| failed(&error))?;
    if is_of_schema(&text) {
        let proof = SchemaReceiptProof::from_json(&text).map_err(|error| failed(&error))?;
        let proved = proof.verify(charter).map_err(|error| failed(&error))?;
        let (receipt, newest) = (&proof.receipt, newest(charter, &proof.evidence.members.handovers));
        println!("transaction {} {}, in {}", receipt.transaction, outcome(receipt), place(&proved));
        println!("attested by {}", signers(newest, proved.members.iter().copied()));
        return Ok(());
    }
    let proof = ReceiptProof::from_json(&text).map_err(|error| failed(&error))?;
    let receipt = proof.verify(charter).map_err(|error| failed(&error))?;
    let signers = signers(
        newest(charter, &proof.handovers),
        proof.certificate.signatures.iter().map(|(member, _)| *member),
    );
    println!(
        "transaction {} {}, at height {}, position {}",
        receipt.transaction,
        outcome(receipt),
        receipt.height,
        receipt.index
    );
    println!("attested by {}, at height {}", signers, proof.certificate.statement.height);
    Ok(())
}

/// Checks the proof of a row in a file and says what it proves. `key`: the values that it must be about; none for whatever.
pub(super) fn verify_row(path: &Path, key: &[String], charter: &Charter) -> Result<(), CommandError> {
    let failed = |error: &dyn std::fmt::Display| CommandError::from(format!("{}: {error}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| failed(&error))?;
    if is_of_schema(&text) {
        let proof = SchemaRowProof::from_json(&text).map_err(|error| failed(&error))?;
        return verify_schema_row(&proof, key, charter).map_err(|error| failed(&error));
    }
    let proof = RowProof::from_json(&text).map_err(|error| failed(&error))?;
    let found = proof.verify(charter).map_err(|error| failed(&error))?.is_some();
    let (table, statement) = (&proof.table.table, &proof.certificate.statement);
    let asked = match key {
        [] => None,
        key => Some(table.key_of_texts(key).map_err(|error| failed(&error.message))?),
    };
    if asked.as_ref().is_some_and(|asked| asked != proof.key()) {
        return Err(failed(&"it is about another key than the one that --key names"));
    }
    let (name, height) = (&table.name, statement.height);
    match proof.named_values().filter(|_| found) {
        Some(values) => {
            println!("table {name} had this row behind block {height}");
            for (column, value) in values {
                println!("  {column} = {}", value.as_deref().unwrap_or("NULL"));
            }
        }
        None => {
            let which = match asked {
                Some(_) => format!("the key {}", key.join(", ")),
                None => format!(
                    "the key whose bytes are {}; --key compares it with values",
                    hexadecimal(proof.key().as_bytes())
                ),
            };
            println!("table {name} had no row behind block {height} under {which}");
        }
    }
    let charter = newest(charter, &proof.handovers);
    let signers = signers(charter, proof.certificate.signatures.iter().map(|(member, _)| *member));
    println!("attested by {signers}, root {}", statement.state_root);
    Ok(())
}

/// The same of a row of a schema with members.
fn verify_schema_row(proof: &SchemaRowProof, key: &[String], charter: &Charter) -> Result<(), CommandError> {
    let proved = proof.verify(charter)?;
    if !key.is_empty() && proof.table.key_of_texts(key).map_err(|error| error.message)? != proof.key {
        return Err("it is about another key than the one that --key names".into());
    }
    let (name, place) = (&proof.table.name, place(&proved));
    match proof.named_values() {
        Some(values) => {
            println!("table {name} was left with this row by {place}; later blocks may have changed it");
            for (column, value) in values {
                println!("  {column} = {}", value.as_deref().unwrap_or("NULL"));
            }
        }
        None => println!(
            "table {name} was left without a row by {place} under the key whose bytes are {}; later blocks may have inserted one",
            hexadecimal(proof.key.as_bytes())
        ),
    }
    let newest = newest(charter, &proof.evidence.members.handovers);
    println!("attested by {}", signers(newest, proved.members.iter().copied()));
    Ok(())
}

fn place(proved: &ProvedInSchema) -> String {
    format!("schema {}, block {}", proved.schema, proved.height)
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The last charter: it has the names of all organisations.
pub(super) fn newest<'a>(founding: &'a Charter, handovers: &'a [Handover]) -> &'a Charter {
    let amended = handovers.iter().flat_map(|handover| &handover.charters).next_back();
    amended.map_or(founding, |amended| &amended.charter)
}

/// Names of members.
pub(super) fn signers(charter: &Charter, members: impl Iterator<Item = u16>) -> String {
    let names = members.filter_map(|member| charter.organisations.get(usize::from(member)));
    names.map(|member| member.name.as_str()).collect::<Vec<_>>().join(", ")
}

fn outcome(receipt: &Receipt) -> String {
    match &receipt.outcome {
        Outcome::Committed(results) => match Notifications::split(results).0.last() {
            Some(result) => format!("has committed: {}", result.tag),
            None => "has committed".to_string(),
        },
        Outcome::Aborted(error) => format!("has aborted: {error}"),
        Outcome::Conflict => "was given up because of a conflict".to_string(),
        Outcome::Rejected(reason) => format!("was rejected: {reason}"),
    }
}
