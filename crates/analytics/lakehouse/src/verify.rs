//! Whether an export is what a quorum has certified: from the founding charter alone.
//!
//! ```text
//!  charter ─▶ certificate ─▶ state root ─▶ leaves of each table's groups ◀─compared─ rows of the data files
//!                 └── in the proof, beside the tables ──┘                            that the log names
//! ```
//!
//! Names, heights and versions that stand beside the tables are read to find things, and compared with what is proved.

use crate::LakehouseError;
use crate::data_file::DataRows;
use crate::delta::DeltaLog;
use crate::layout::Layout;
use crate::manifest::{KIND, LATEST, Manifest, ManifestTable, OWNER, Owner, manifest_path, proof_path};
use crate::names::table_folder;
use bytes::Bytes;
use crypto::Digest;
use proofs::{ProvedTable, TablesProof};
use state::{HashedGroup, TableHashing};
use std::collections::VecDeque;
use targets::Target;
use types::{Charter, Key, Row, Table, format_value};

/// What is right.
#[derive(Clone, Debug)]
pub struct VerifiedExport {
    /// The certificate, and what proves the tables.
    pub proof: TablesProof,
    /// The tables: which version of each, and how many rows.
    pub tables: Vec<ManifestTable>,
}

/// Checks all rows of an export. `height`: of which checkpoint; the newest one without.
///
/// # Errors
/// The first thing that is wrong.
pub async fn verify_export(
    target: &Target,
    charter: &Charter,
    height: Option<u64>,
) -> Result<VerifiedExport, LakehouseError> {
    let export = Export { target, charter };
    export.check_owner().await?;
    let manifest = export.manifest(height).await?;
    let path = proof_path(manifest.height);
    let proof = TablesProof::from_bytes(&export.needed(&path).await?)?;
    let proved = proof.verify(charter)?;
    export.check_manifest(&manifest, &proof)?;
    if let Some(unproved) =
        manifest.tables.iter().find(|table| proved.iter().all(|proved| proved.definition.name != table.name))
    {
        let what = format!("table {}", unproved.name);
        return Err(LakehouseError::different(what, "a table that the proof has", "another one"));
    }
    let mut tables = Vec::with_capacity(proved.len());
    for table in &proved {
        let listed = manifest.tables.iter().find(|listed| listed.name == table.definition.name);
        let listed = listed.ok_or_else(|| {
            let what = format!("table {}", table.definition.name);
            LakehouseError::different(
                what,
                format!("a version of it in {}", manifest_path(manifest.height)),
                "none",
            )
        })?;
        let rows = export.check_table(table, listed).await?;
        tables.push(ManifestTable { rows, ..listed.clone() });
    }
    Ok(VerifiedExport { proof, tables })
}

/// An export that is checked.
struct Export<'e> {
    target: &'e Target,
    charter: &'e Charter,
}

impl Export<'_> {
    fn not_an_export(&self, path: &str, what: String) -> LakehouseError {
        LakehouseError::NotAnExport { target: self.target.address(), path: path.to_string(), what }
    }

    async fn needed(&self, path: &str) -> Result<Bytes, LakehouseError> {
        let found = self.target.read(path).await?;
        found.ok_or_else(|| self.not_an_export(path, "it is not there".to_string()))
    }

    async fn check_owner(&self) -> Result<(), LakehouseError> {
        let owner: Owner = serde_json::from_slice(&self.needed(OWNER).await?)
            .map_err(|error| self.not_an_export(OWNER, error.to_string()))?;
        let expected = self.charter.ledger();
        match owner.ledger == expected.to_string() {
            true => Ok(()),
            false => Err(LakehouseError::OtherLedger {
                target: self.target.address(),
                expected,
                found: owner.ledger,
            }),
        }
    }

    async fn manifest(&self, height: Option<u64>) -> Result<Manifest, LakehouseError> {
        let path = height.map_or(LATEST.to_string(), manifest_path);
        let manifest: Manifest = serde_json::from_slice(&self.needed(&path).await?)
            .map_err(|error| self.not_an_export(&path, error.to_string()))?;
        if manifest.kind != KIND {
            return Err(self.not_an_export(&path, format!("its kind is {:?}, not {KIND:?}", manifest.kind)));
        }
        match height {
            Some(height) if manifest.height != height => {
                Err(LakehouseError::different(format!("the height in {path}"), height, manifest.height))
            }
            _ => Ok(manifest),
        }
    }

    /// What people read beside the tables is what the certificate says.
    fn check_manifest(&self, manifest: &Manifest, proof: &TablesProof) -> Result<(), LakehouseError> {
        let certified = Manifest::new(&proof.certificate, manifest.tables.clone());
        let fields = [
            ("ledger", &certified.ledger, &manifest.ledger),
            ("outcome", &certified.outcome, &manifest.outcome),
            ("state root", &certified.state_root, &manifest.state_root),
        ];
        for (what, expected, found) in fields {
            if expected != found {
                return Err(LakehouseError::different(
                    format!("the {what} in the manifest"),
                    expected,
                    found,
                ));
            }
        }
        if certified.height != manifest.height {
            let (expected, found) = (certified.height, manifest.height);
            return Err(LakehouseError::different("the height in the manifest", expected, found));
        }
        match certified.signatures == manifest.signatures {
            true => Ok(()),
            false => Err(LakehouseError::different(
                "the signatures in the manifest",
                "those of the certificate",
                "others",
            )),
        }
    }

    /// Checks the rows of a table, and gives how many there are.
    async fn check_table(
        &self,
        proved: &ProvedTable<'_>,
        listed: &ManifestTable,
    ) -> Result<u64, LakehouseError> {
        let (table, folder) = (proved.definition, table_folder(&proved.definition.name));
        if listed.folder != folder {
            return Err(LakehouseError::different(
                format!("the folder of table {}", table.name),
                folder,
                &listed.folder,
            ));
        }
        let log = DeltaLog::open(self.target, &folder, Some(listed.version)).await?;
        if log.version() != Some(listed.version) {
            return Err(self.not_an_export(&folder, format!("it has no version {}", listed.version)));
        }
        log.check_ledger(&self.charter.ledger().to_string())?;
        let known = [Layout::of(table), Layout::of_plain_arrays(table)];
        let layout = known.iter().find(|layout| log.has_layout(layout)).unwrap_or(&known[0]);
        if !log.has_layout(layout) {
            let what = format!("the columns of table {}, version {}", table.name, listed.version);
            return Err(LakehouseError::different(what, "those of its certified definition", "others"));
        }
        let mut files = Vec::new();
        for file in log.files() {
            let wrong = |what: &str| LakehouseError::Rows {
                table: table.name.clone(),
                file: file.path.clone(),
                what: what.to_string(),
            };
            if file.has_deletions {
                return Err(wrong("somebody has deleted rows of it"));
            }
            let content = self.content(table, &folder, &file.path).await?;
            let mut rows = DataRows::new(layout, content, (&table.name, &file.path))?;
            // Files without rows have no place.
            if let Some((first, _)) = rows.next()?.into_iter().next() {
                files.push((first, file.path));
            }
        }
        files.sort();
        let mut checking = Checking::new(proved, listed.rows);
        for (number, (_, path)) in files.iter().enumerate() {
            let content = self.content(table, &folder, path).await?;
            let mut reading = DataRows::new(layout, content, (&table.name, path))?;
            checking.files.push(path.clone());
            loop {
                let rows = reading.next()?;
                if rows.is_empty() {
                    break;
                }
                for (key, row) in rows {
                    checking.row(number, key, row)?;
                }
            }
        }
        checking.finish(&folder)
    }

    async fn content(&self, table: &Table, folder: &str, path: &str) -> Result<Bytes, LakehouseError> {
        let found = self.target.read(&format!("{folder}/{path}")).await?;
        found.ok_or_else(|| LakehouseError::Rows {
            table: table.name.clone(),
            file: path.to_string(),
            what: "the log names it, and it is not there".to_string(),
        })
    }
}

/// A row that is in no group yet.
struct Waiting {
    file: usize,
    key: Key,
    row: Row,
}

/// Compares the groups that a table's rows make with those that are proved.
struct Checking<'p> {
    proved: &'p ProvedTable<'p>,
    hashing: TableHashing,
    waiting: VecDeque<Waiting>,
    files: Vec<String>,
    /// Groups that were compared.
    groups: usize,
    rows: u64,
    /// Rows that the manifest promises: only words depend on it.
    listed: u64,
    last: Option<Key>,
    /// The first group that is wrong: where it is.
    wrong: Option<(String, String)>,
}

impl<'p> Checking<'p> {
    fn new(proved: &'p ProvedTable<'p>, listed: u64) -> Checking<'p> {
        Checking {
            proved,
            hashing: TableHashing::new(proved.shape, proved.definition.id),
            waiting: VecDeque::new(),
            files: Vec::new(),
            groups: 0,
            rows: 0,
            listed,
            last: None,
            wrong: None,
        }
    }

    fn row(&mut self, file: usize, key: Key, row: Row) -> Result<(), LakehouseError> {
        if self.last.as_ref().is_some_and(|last| *last >= key) {
            let what = match self.last.as_ref() == Some(&key) {
                true => "stands twice",
                false => "does not stand in the order of keys",
            };
            return Err(LakehouseError::Rows {
                table: self.proved.definition.name.clone(),
                file: self.files[file].clone(),
                what: format!("the row with {} {what}", self.shown(&key, &row)),
            });
        }
        self.last = Some(key.clone());
        self.rows += 1;
        let made = self.hashing.add(key.clone(), row.clone());
        self.waiting.push_back(Waiting { file, key, row });
        made.into_iter().for_each(|group| self.group(&group));
        Ok(())
    }

    fn group(&mut self, group: &HashedGroup) {
        let rows: Vec<Waiting> =
            self.waiting.drain(..(group.rows as usize).min(self.waiting.len())).collect();
        let expected: Option<&Digest> = self.proved.groups.get(self.groups);
        self.groups += 1;
        if self.wrong.is_some() || expected == Some(&group.leaf) {
            return;
        }
        let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return };
        let (from, to) = (self.shown(&first.key, &first.row), self.shown(&last.key, &last.row));
        let mut files: Vec<&str> = rows.iter().map(|row| self.files[row.file].as_str()).collect();
        files.dedup();
        self.wrong = Some((files.join(", "), format!("the rows from {from} to {to}")));
    }

    /// The primary key of a row, for people.
    fn shown(&self, key: &Key, row: &Row) -> String {
        let table = self.proved.definition;
        if table.primary_key.is_empty() {
            return format!("the hidden key {}", hexadecimal(key.as_bytes()));
        }
        let part = |ordinal: &u16| {
            let column = table.columns.get(usize::from(*ordinal))?;
            let value = format_value(row.get(usize::from(*ordinal))?)?;
            Some(format!("{} = {value}", column.name))
        };
        table.primary_key.iter().filter_map(part).collect::<Vec<_>>().join(", ")
    }

    fn finish(mut self, folder: &str) -> Result<u64, LakehouseError> {
        let hashing = std::mem::replace(
            &mut self.hashing,
            TableHashing::new(self.proved.shape, self.proved.definition.id),
        );
        hashing.finish().iter().for_each(|group| self.group(group));
        if self.wrong.is_none() && self.groups == self.proved.groups.len() {
            return Ok(self.rows);
        }
        let how = match self.rows.cmp(&self.listed) {
            std::cmp::Ordering::Less => format!(
                "{} rows are missing: the export had {}, there are {}",
                self.listed - self.rows,
                self.listed,
                self.rows
            ),
            std::cmp::Ordering::Greater => format!(
                "{} rows were added: the export had {}, there are {}",
                self.rows - self.listed,
                self.listed,
                self.rows
            ),
            std::cmp::Ordering::Equal => "a row was changed".to_string(),
        };
        let (file, place) = self.wrong.unwrap_or_else(|| (folder.to_string(), "its last rows".to_string()));
        Err(LakehouseError::Rows {
            table: self.proved.definition.name.clone(),
            file,
            what: format!("{place} are not those that the certificate proves: {how}"),
        })
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
