//! One checkpoint into a target.
//!
//! ```text
//!  writing.json ─▶ data files of all tables ─▶ proof ─▶ a commit per table that has changed ─▶ manifest ─▶ latest.json
//!   what to clean     nobody sees them                   each is a whole version                for who wants all tables
//!   up after a fall                                      of one table                           of one height
//! ```
//!
//! Until a table's commit is there, nobody sees its new data files; a commit is one file, which is there or not. So a reader sees
//! each table as it was at some checkpoint, whatever fails in between. `latest.json` names versions of all tables that
//! belong together.

use crate::data_file::{DataFile, FILE_BYTES};
use crate::delta::{Change, DeltaLog, LoggedFile, WrittenFile};
use crate::files::{FILE_ROWS, FileName, Planned, plan};
use crate::layout::Layout;
use crate::manifest::{
    KIND, LATEST, Manifest, ManifestTable, OWNER, Owner, WRITING, Writing, manifest_path, proof_path, to_json,
};
use crate::names::table_folder;
use crate::{LakehouseError, state_source::CertifiedState};
use crypto::Digest;
use state::StateNode;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use targets::Target;
use types::{Charter, Table};

/// Exports the checkpoints of one ledger into one target.
pub struct Exporter {
    target: Target,
    charter: Charter,
    /// Which node's folder the checkpoints come from.
    writer: String,
    /// Names of the tables that are exported; none: all.
    tables: Vec<String>,
    /// The target has been seen to be ours.
    is_claimed: bool,
}

/// What an export has done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Exported {
    /// Behind which block.
    pub height: u64,
    /// Tables at that height.
    pub tables: usize,
    /// Those that have a new version.
    pub changed: usize,
    /// Data files that were written.
    pub files: usize,
    /// Rows in these.
    pub rows: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Data files that stay as they were.
    pub kept_files: usize,
}

/// A table whose data files are written and that is not committed yet.
struct Prepared<'t> {
    log: DeltaLog<'t>,
    table: Arc<Table>,
    layout: Layout,
    rows: u64,
    removed: Vec<LoggedFile>,
    added: Vec<WrittenFile>,
    kept: usize,
}

impl Prepared<'_> {
    fn has_changed(&self) -> bool {
        !self.removed.is_empty() || !self.added.is_empty() || !self.log.has_layout(&self.layout)
    }
}

/// A table in the state's tree.
struct TableNodes {
    table: Arc<Table>,
    /// The nodes that are its groups.
    nodes: Range<usize>,
}

impl Exporter {
    /// `writer`: names the node's folder, so that two of them do not write into one target; `tables`: names of those that are
    /// exported, none for all.
    pub fn new(target: Target, charter: Charter, writer: String, tables: Vec<String>) -> Exporter {
        Exporter { target, charter, writer, tables, is_claimed: false }
    }

    /// Makes the target this writer's, whoever's it was. The one before must have stopped for good.
    ///
    /// # Errors
    /// The target cannot be written, or is another ledger's.
    pub async fn take_over(&mut self) -> Result<(), LakehouseError> {
        if let Some(owner) = self.owner().await? {
            self.check_ledger(&owner)?;
            self.target.write(OWNER, to_json(&self.own())).await?;
        }
        Ok(())
    }

    /// Height of the newest checkpoint that the target has whole; `None`: it has none.
    ///
    /// # Errors
    /// The target cannot be read, is another ledger's or another writer's, or has vanished.
    pub async fn newest(&mut self) -> Result<Option<u64>, LakehouseError> {
        self.claim().await?;
        let Some(bytes) = self.target.read(LATEST).await? else { return Ok(None) };
        let manifest: Manifest = self.parsed(LATEST, &bytes)?;
        Ok(Some(manifest.height))
    }

    fn own(&self) -> Owner {
        Owner {
            kind: KIND.to_string(),
            ledger: self.charter.ledger().to_string(),
            writer: self.writer.clone(),
        }
    }

    async fn owner(&self) -> Result<Option<Owner>, LakehouseError> {
        let bytes = self.target.read(OWNER).await?;
        bytes.map(|bytes| self.parsed(OWNER, &bytes)).transpose()
    }

    fn parsed<T: serde::de::DeserializeOwned>(&self, path: &str, bytes: &[u8]) -> Result<T, LakehouseError> {
        serde_json::from_slice(bytes).map_err(|error| LakehouseError::NotAnExport {
            target: self.target.address(),
            path: path.to_string(),
            what: error.to_string(),
        })
    }

    fn check_ledger(&self, owner: &Owner) -> Result<(), LakehouseError> {
        let (expected, found) = (self.charter.ledger(), &owner.ledger);
        match *found == expected.to_string() {
            true => Ok(()),
            false => Err(LakehouseError::OtherLedger {
                target: self.target.address(),
                expected,
                found: found.clone(),
            }),
        }
    }

    /// The target is this ledger's and this writer's, from now on where it was nobody's.
    async fn claim(&mut self) -> Result<(), LakehouseError> {
        if !self.is_claimed && self.owner().await?.is_none() {
            // Somebody may be quicker: then it is theirs.
            self.target.create(OWNER, to_json(&self.own())).await?;
        }
        self.check_owner().await?;
        self.is_claimed = true;
        Ok(())
    }

    /// The target is still there, and ours.
    async fn check_owner(&self) -> Result<(), LakehouseError> {
        let address = || self.target.address();
        let owner = self.owner().await?;
        let owner = owner.ok_or_else(|| LakehouseError::Vanished { target: address(), file: OWNER })?;
        self.check_ledger(&owner)?;
        match owner.writer == self.writer {
            true => Ok(()),
            false => Err(LakehouseError::OtherWriter {
                target: address(),
                expected: self.writer.clone(),
                found: owner.writer,
            }),
        }
    }

    /// Removes the data files of an attempt that has failed: they are in no version of a table.
    async fn clean_up(&self) -> Result<(), LakehouseError> {
        let Some(bytes) = self.target.read(WRITING).await? else { return Ok(()) };
        let writing: Writing = self.parsed(WRITING, &bytes)?;
        for folder in &writing.folders {
            let log = DeltaLog::open(&self.target, folder, None).await?;
            let known: BTreeSet<String> = log.files().into_iter().map(|file| file.path).collect();
            for name in self.target.list(folder).await? {
                if name.contains(&writing.attempt) && !known.contains(&name) {
                    self.target.remove_left(folder, &name).await?;
                }
            }
        }
        Ok(self.target.remove(WRITING).await?)
    }

    /// Exports a checkpoint. What fails leaves each table as it was or as it is at this checkpoint, and can be tried again.
    ///
    /// # Errors
    /// What the target, the state or the proof is lacking.
    pub async fn export(&mut self, state: &CertifiedState) -> Result<Exported, LakehouseError> {
        let height = state.height();
        let tables = self.tables_of(state)?;
        let ids: Vec<_> = tables.iter().map(|one| one.table.id).collect();
        let proof = state.kept.prove_tables(&ids, state.certificate.clone())?;
        let proof = proof.with_handovers(state.handovers.iter().cloned());
        // Nothing leaves the node that nobody could verify.
        proof.verify(&self.charter)?;
        self.claim().await?;
        self.clean_up().await?;
        let writing = self.writing(height, &tables);
        self.target.write(WRITING, to_json(&writing)).await?;
        let mut prepared = Vec::with_capacity(tables.len());
        for table in tables {
            prepared.push(self.prepare(state, table, &writing.attempt).await?);
        }
        self.target.write(&proof_path(height), proof.to_bytes()).await?;
        // A folder that is mounted no more would be made anew.
        self.check_owner().await?;
        let mut exported = Exported {
            height,
            tables: prepared.len(),
            changed: 0,
            files: 0,
            rows: 0,
            bytes: 0,
            kept_files: 0,
        };
        let mut written = Vec::with_capacity(prepared.len());
        for table in prepared {
            written.push(self.commit(table, state, &mut exported).await?);
        }
        let manifest = to_json(&Manifest::new(&state.certificate, written));
        self.target.write(&manifest_path(height), manifest.clone()).await?;
        self.target.write(LATEST, manifest).await?;
        self.target.remove(WRITING).await?;
        Ok(exported)
    }

    fn writing(&self, height: u64, tables: &[TableNodes]) -> Writing {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let now = now.map_or(0, |since| since.as_nanos()).to_le_bytes();
        let attempt = crypto::sha256(&[self.writer.as_bytes(), &height.to_le_bytes(), &now]).to_string();
        Writing {
            kind: KIND.to_string(),
            height,
            attempt: format!("{height}-{}", &attempt[..16]),
            folders: tables.iter().map(|one| table_folder(&one.table.name)).collect(),
        }
    }

    /// The tables that are exported, in the order of their numbers.
    fn tables_of(&self, state: &CertifiedState) -> Result<Vec<TableNodes>, LakehouseError> {
        let catalog = state.kept.catalog();
        if let Some(name) = self.tables.iter().find(|name| !catalog.tables.contains_key(*name)) {
            return Err(LakehouseError::NoTable {
                name: name.clone(),
                height: state.height(),
                known: catalog.tables.keys().cloned().collect::<Vec<_>>().join(", "),
            });
        }
        let nodes = state.kept.tree().nodes();
        let mut found = Vec::new();
        for (place, node) in nodes.iter().enumerate() {
            let StateNode::Table(table) = node else { continue };
            if self.tables.is_empty() || self.tables.contains(&table.name) {
                let groups = nodes[place + 1..].iter().take_while(|node| node.table() == table.id).count();
                found.push(TableNodes { table: table.clone(), nodes: place + 1..place + 1 + groups });
            }
        }
        Ok(found)
    }

    /// Writes the data files that a table lacks.
    async fn prepare(
        &self,
        state: &CertifiedState,
        TableNodes { table, nodes }: TableNodes,
        attempt: &str,
    ) -> Result<Prepared<'_>, LakehouseError> {
        let folder = table_folder(&table.name);
        let log = DeltaLog::open(&self.target, &folder, None).await?;
        log.check_ledger(&self.charter.ledger().to_string())?;
        let layout = Layout::of(&table);
        let tree = state.kept.tree();
        let groups: Vec<(u64, Digest)> =
            nodes.clone().map(|node| (u64::from(tree.nodes()[node].rows()), tree.leaves()[node])).collect();
        let files = log.files();
        // Files of other columns do not stay, whatever rows they have.
        let has_layout = log.has_layout(&layout);
        let name =
            |file: &LoggedFile| FileName::read(&file.path).filter(|_| has_layout && !file.has_deletions);
        let names: Vec<Option<FileName>> = files.iter().map(name).collect();
        let (mut added, mut kept) = (Vec::new(), BTreeSet::new());
        for planned in plan(&groups, &names) {
            match planned {
                Planned::Kept { file, .. } => {
                    kept.insert(file);
                }
                Planned::Written { groups: range } => {
                    let writing = Writer { target: &self.target, state, table: &table, layout: &layout };
                    let place = (nodes.start, &groups[..]);
                    added.extend(writing.write(place, range, (&folder, attempt)).await?);
                }
            }
        }
        let removed = files.into_iter().enumerate().filter(|(number, _)| !kept.contains(number));
        Ok(Prepared {
            rows: groups.iter().map(|(rows, _)| rows).sum(),
            removed: removed.map(|(_, file)| file).collect(),
            added,
            kept: kept.len(),
            log,
            table,
            layout,
        })
    }

    async fn commit(
        &self,
        mut prepared: Prepared<'_>,
        state: &CertifiedState,
        exported: &mut Exported,
    ) -> Result<ManifestTable, LakehouseError> {
        let version = match prepared.has_changed() {
            false => prepared.log.version().unwrap_or_default(),
            true => {
                let change = Change {
                    table: &prepared.table,
                    layout: &prepared.layout,
                    ledger: self.charter.ledger().to_string(),
                    height: state.height(),
                    state_root: state.certificate.statement.state_root.to_string(),
                    removed: std::mem::take(&mut prepared.removed),
                    added: std::mem::take(&mut prepared.added),
                };
                exported.changed += 1;
                exported.files += change.added.len();
                exported.rows += change.added.iter().map(|file| file.rows).sum::<u64>();
                exported.bytes += change.added.iter().map(|file| file.bytes as u64).sum::<u64>();
                prepared.log.commit(&change).await?
            }
        };
        exported.kept_files += prepared.kept;
        let name = prepared.table.name.clone();
        Ok(ManifestTable { folder: table_folder(&name), name, version, rows: prepared.rows })
    }
}

/// Writes data files of one table.
struct Writer<'w> {
    target: &'w Target,
    state: &'w CertifiedState,
    table: &'w Table,
    layout: &'w Layout,
}

impl Writer<'_> {
    /// Writes some groups of the table into one file or several. `first`: the node of its first group.
    async fn write(
        &self,
        (first, groups): (usize, &[(u64, Digest)]),
        range: Range<usize>,
        (folder, attempt): (&str, &str),
    ) -> Result<Vec<WrittenFile>, LakehouseError> {
        let failed = |error: parquet::errors::ParquetError| LakehouseError::Columns {
            table: self.table.name.clone(),
            what: error.to_string(),
        };
        let (tree, snapshot) = (self.state.kept.tree(), self.state.kept.snapshot());
        let mut written = Vec::new();
        let mut begin = range.start;
        while begin < range.end {
            let (mut file, mut end) = (DataFile::new(self.layout).map_err(failed)?, begin);
            while end < range.end && file.rows() < FILE_ROWS && file.bytes() < FILE_BYTES {
                // They are compared with the tree: what is damaged is not exported.
                file.add(&tree.rows(snapshot.as_ref(), first + end)?).map_err(failed)?;
                end += 1;
            }
            let rows = file.rows();
            let content = file.finish().map_err(failed)?;
            let path = FileName::new(&groups[begin..end], attempt).to_text();
            let bytes = content.len();
            self.target.write(&format!("{folder}/{path}"), content).await?;
            written.push(WrittenFile { path, bytes, rows });
            begin = end;
        }
        Ok(written)
    }
}
