use crate::CommandError;
use audit::{HeldParts, SchemasReport};
use bench::grouped;
use node::{FolderParts, ReplayedSchema};
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;
use types::{Part, TransactionId};

/// The parts of schemas with members in a folder.
pub(super) struct Held(pub(super) Arc<FolderParts>);

impl HeldParts for Held {
    fn is_of(&self, schema: &str) -> bool {
        self.0.schemas().contains(schema)
    }

    fn part(&self, transaction: &TransactionId, schema: &str) -> Result<Option<Part>, String> {
        self.0.part(transaction, schema).map_err(|error| error.to_string())
    }
}

/// Those of a node's folder, or of the one that its `ledger` is in.
pub(super) fn held(path: &Path) -> Result<Option<Arc<FolderParts>>, CommandError> {
    if let Some(found) = FolderParts::open(path)? {
        return Ok(Some(Arc::new(found)));
    }
    let whole = path.canonicalize()?;
    let is_inside = whole.file_name().is_some_and(|name| name == "ledger");
    match whole.parent().filter(|_| is_inside) {
        Some(folder) => Ok(FolderParts::open(folder)?.map(Arc::new)),
        None => Ok(None),
    }
}

/// What is written for programs about schemas with members.
#[derive(Serialize)]
pub(super) struct SchemasRecord {
    transactions: u64,
    certificates: u64,
    unnamed_certificates: u64,
    uncounted_certificates: u64,
    parts: u64,
    missing_parts: u64,
    damaged_parts: usize,
    parts_elsewhere: u64,
    replayed: Vec<ReplayedRecord>,
}

#[derive(Serialize)]
struct ReplayedRecord {
    schema: String,
    height: u64,
    certificates: u64,
    lacks: Option<String>,
}

impl SchemasRecord {
    pub(super) fn new(
        report: &SchemasReport,
        held: Option<&FolderParts>,
        replayed: &[ReplayedSchema],
    ) -> SchemasRecord {
        let replayed = replayed.iter().map(|schema| ReplayedRecord {
            schema: schema.name.clone(),
            height: schema.height,
            certificates: schema.certificates,
            lacks: schema.lacks.map(|transaction| transaction.to_string()),
        });
        SchemasRecord {
            transactions: report.transactions,
            certificates: report.certificates,
            unnamed_certificates: report.unnamed,
            uncounted_certificates: report.uncounted.count,
            parts: report.parts,
            missing_parts: report.missing.count,
            damaged_parts: held.map_or(0, |held| held.damaged().len()),
            parts_elsewhere: report.elsewhere,
            replayed: replayed.collect(),
        }
    }
}

/// Says what was found, where there are such schemas.
pub(super) fn print(report: &SchemasReport, held: Option<&FolderParts>, replayed: &[ReplayedSchema]) {
    let SchemasReport { transactions, certificates, unnamed, uncounted, parts, missing, elsewhere } = report;
    if *transactions + certificates + unnamed + uncounted.count == 0 {
        return;
    }
    println!(
        "{} transactions have parts in schemas with members; {} certificates of what these came to are signed by quorums of the \
         members",
        grouped(*transactions),
        grouped(*certificates)
    );
    if *unnamed > 0 {
        println!(
            "{} more are signed; who the members were the ledger says from execution version 5 on",
            grouped(*unnamed)
        );
    }
    named("certificates say nothing, as anybody can bring some", uncounted.count, &uncounted.first);
    if let Some(held) = held.filter(|held| !held.schemas().is_empty()) {
        let names: Vec<&str> = held.schemas().iter().map(String::as_str).collect();
        println!(
            "{} parts of {} are those that their clients have signed",
            grouped(*parts),
            names.join(", ")
        );
        named("parts are not in the folder", missing.count, &missing.first);
        if let Some(at) = held.torn() {
            println!(
                "{} ends in the record that begins at byte {at}: torn by a crash, or being written",
                held.path().display()
            );
        }
    }
    if *elsewhere > 0 {
        println!(
            "{} parts of schemas of which the folder has none could not be checked: their members' folders have them",
            grouped(*elsewhere)
        );
    }
    for ReplayedSchema { name, height, certificates, lacks } in replayed {
        println!(
            "schema {name} was executed up to height {}: {} certificates say the same",
            grouped(*height),
            grouped(*certificates)
        );
        if let Some(missing) = lacks {
            println!(
                "what is behind could not be executed: the part of transaction {missing} is not in the folder"
            );
        }
    }
}

fn named(what: &str, count: u64, first: &[String]) {
    if count == 0 {
        return;
    }
    println!("{} {what}:", grouped(count));
    first.iter().for_each(|one| println!("  {one}"));
    if count > first.len() as u64 {
        println!("  …");
    }
}

/// The first thing that is wrong with the file of parts.
pub(super) fn first_damage(held: &FolderParts) -> Option<String> {
    let (path, at) = (held.path().display(), held.damaged().first()?);
    Some(format!(
        "{path}, byte {at}: the record of a part is not what was written; a node asks other members for such parts when it starts"
    ))
}
