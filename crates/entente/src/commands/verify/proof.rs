use crate::CommandError;
use proofs::ReceiptProof;
use std::path::Path;
use types::{Charter, Outcome, Receipt};

/// Checks the proof in a file and says what it proves.
pub(super) fn verify_receipt(path: &Path, charter: &Charter) -> Result<(), CommandError> {
    let failed = |error: &dyn std::fmt::Display| CommandError::from(format!("{}: {error}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| failed(&error))?;
    let proof = ReceiptProof::from_json(&text).map_err(|error| failed(&error))?;
    let receipt = proof.verify(charter).map_err(|error| failed(&error))?;
    let members = proof.certificate.signatures.iter();
    let signers: Vec<&str> = members
        .filter_map(|(member, _)| charter.organisations.get(usize::from(*member)))
        .map(|member| member.name.as_str())
        .collect();
    println!(
        "transaction {} {}, at height {}, position {}",
        receipt.transaction,
        outcome(receipt),
        receipt.height,
        receipt.index
    );
    println!("attested by {}, at height {}", signers.join(", "), proof.certificate.statement.height);
    Ok(())
}

fn outcome(receipt: &Receipt) -> String {
    match &receipt.outcome {
        Outcome::Committed(results) => match results.last() {
            Some(result) => format!("has committed: {}", result.tag),
            None => "has committed".to_string(),
        },
        Outcome::Aborted(error) => format!("has aborted: {error}"),
        Outcome::Conflict => "was given up because of a conflict".to_string(),
        Outcome::Rejected(reason) => format!("was rejected: {reason}"),
    }
}
