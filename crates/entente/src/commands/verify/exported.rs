use super::proof::{newest, signers};
use crate::CommandError;
use bench::grouped;
use lakehouse::{Target, verify_export};
use types::Charter;

/// Checks the tables of an export and says what they prove.
pub(super) fn verify(target: &str, height: Option<u64>, charter: &Charter) -> Result<(), CommandError> {
    let target = Target::open(target)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let verified = runtime.block_on(verify_export(&target, charter, height))?;
    let certificate = &verified.proof.certificate;
    println!(
        "behind block {} these tables had these rows, and no others:",
        grouped(certificate.statement.height)
    );
    for table in &verified.tables {
        println!("  {}, version {}: {} rows", table.name, table.version, grouped(table.rows));
    }
    let members = certificate.signatures.iter().map(|(member, _)| *member);
    let signers = signers(newest(charter, &verified.proof.handovers), members);
    println!("attested by {signers}, root {}", certificate.statement.state_root);
    Ok(())
}
