use crate::receipt::check_bytes;
use crate::state::{TreeShape, state_root, table_leaf};
use crate::{Path, ProofError, handovers};
use borsh::{BorshDeserialize, BorshSerialize};
use crypto::{Digest, leaf_hash};
use types::{Charter, CheckpointCertificate, Handover, Key, Row, Table, TableId, decode_exactly, encode};

/// A row in the tree over a state.
#[derive(Clone, PartialEq, Debug, BorshSerialize, BorshDeserialize)]
pub struct RowEntry {
    /// Its table.
    pub table: TableId,
    /// Its primary key.
    pub key: Key,
    /// Its values.
    pub row: Row,
    /// From the row to the root of its range.
    pub within: Path,
    /// First key of the range.
    pub first: Key,
    /// From the range to the root over all tables and ranges; from its group, where it is in one.
    pub across: Path,
}

/// A row in a tree with groups ([`TreeShape::Groups`]).
#[derive(Clone, PartialEq, Debug, BorshSerialize, BorshDeserialize)]
pub struct GroupedRow {
    /// The row and its range.
    pub row: RowEntry,
    /// From the range to the root of its group.
    pub ranges: Path,
    /// First key of the group.
    pub group: Key,
}

/// A table's definition in the tree.
#[derive(Clone, PartialEq, Debug, BorshSerialize, BorshDeserialize)]
pub struct TableEntry {
    /// Its definition.
    pub table: Table,
    /// From it to the root over all tables and groups.
    pub across: Path,
}

/// Something in the tree, by the order of which absence is proved.
#[derive(Clone, PartialEq, Debug, BorshSerialize, BorshDeserialize)]
pub enum Entry {
    /// Stands in front of the table's rows.
    Table(TableEntry),
    /// Stands behind the rows with smaller keys.
    Row(RowEntry),
    /// The same, in a tree with groups.
    Grouped(GroupedRow),
}

/// What there is under a key.
#[derive(Clone, PartialEq, Debug, BorshSerialize, BorshDeserialize)]
pub enum Found {
    /// This row.
    Row(RowEntry),
    /// Nothing: these stand side by side, and the key would be between them.
    Nothing {
        /// The key.
        key: Key,
        /// What stands before it; the table's definition at least.
        before: Box<Entry>,
        /// What stands behind it, if anything does.
        after: Option<Box<Entry>>,
    },
    /// This row, in a tree with groups.
    Grouped(GroupedRow),
}

/// Proves a row, or that there is none, in the state at a checkpoint.
#[derive(Clone, PartialEq, Debug, BorshSerialize, BorshDeserialize)]
pub struct RowProof {
    /// The table that was asked.
    pub table: TableEntry,
    /// What there is under the key.
    pub found: Found,
    /// Digest of the catalog.
    pub catalog: Digest,
    /// Digest of the ids that may not come again.
    pub requests: Digest,
    /// Certifies the state root.
    pub certificate: CheckpointCertificate,
    /// From the founding charter to the one that holds at the certificate's height; none where that is the founding one.
    pub handovers: Vec<Handover>,
}

impl RowEntry {
    fn leaf(&self) -> Digest {
        leaf_hash(&[encode(&self.key), encode(&self.row)].concat())
    }

    fn range(&self, shape: TreeShape) -> Digest {
        shape.range_leaf(self.table, &self.first, &self.within.root(self.leaf()))
    }

    fn nodes(&self) -> Digest {
        self.across.root(self.range(TreeShape::Ranges))
    }
}

impl GroupedRow {
    fn nodes(&self) -> Digest {
        let ranges = self.ranges.root(self.row.range(TreeShape::Groups));
        // One digest: the root over all ranges of the group.
        self.row.across.root(TreeShape::Groups.group_leaf(self.row.table, &self.group, &[ranges]))
    }
}

impl TableEntry {
    fn nodes(&self) -> Digest {
        self.across.root(table_leaf(&self.table))
    }
}

impl Entry {
    fn nodes(&self) -> Digest {
        match self {
            Entry::Table(entry) => entry.nodes(),
            Entry::Row(entry) => entry.nodes(),
            Entry::Grouped(entry) => entry.nodes(),
        }
    }

    /// From the root over everything down to it.
    fn paths(&self) -> Vec<&Path> {
        match self {
            Entry::Table(entry) => vec![&entry.across],
            Entry::Row(entry) => vec![&entry.across, &entry.within],
            Entry::Grouped(GroupedRow { row, ranges, .. }) => vec![&row.across, ranges, &row.within],
        }
    }

    /// Where it stands in the order of all: a table's definition before its rows.
    fn place(&self) -> (TableId, Option<&Key>) {
        match self {
            Entry::Table(entry) => (entry.table.id, None),
            Entry::Row(entry) | Entry::Grouped(GroupedRow { row: entry, .. }) => {
                (entry.table, Some(&entry.key))
            }
        }
    }

    fn is_last(&self) -> bool {
        self.paths().into_iter().all(Path::is_last)
    }

    /// Whether nothing stands between the two, of which both lead to the same root. Equal paths from the same root lead to the
    /// same leaf, below which the next ones begin at the same root again. Where they part for the first time, one goes along
    /// the right edge of what it leads to, and the other along the left edge.
    fn is_next_to(&self, after: &Entry) -> bool {
        let (left, right) = (self.paths(), after.paths());
        let same = left.iter().zip(&right).take_while(|(left, right)| left == right).count();
        match (left[same..].split_first(), right[same..].split_first()) {
            (Some((left, left_below)), Some((right, right_below))) => {
                left.is_next_to(right)
                    && left_below.iter().all(|path| path.is_last())
                    && right_below.iter().all(|path| path.is_first())
            }
            _ => false,
        }
    }
}

impl Found {
    /// The row, if there is one.
    pub fn row(&self) -> Option<&RowEntry> {
        match self {
            Found::Row(entry) | Found::Grouped(GroupedRow { row: entry, .. }) => Some(entry),
            Found::Nothing { .. } => None,
        }
    }

    /// All paths that it has of its own.
    fn paths(&self) -> Vec<&Path> {
        match self {
            Found::Row(row) => vec![&row.across, &row.within],
            Found::Grouped(GroupedRow { row, ranges, .. }) => vec![&row.across, ranges, &row.within],
            Found::Nothing { before, after, .. } => {
                before.paths().into_iter().chain(after.iter().flat_map(|after| after.paths())).collect()
            }
        }
    }
}

impl RowProof {
    /// The key that was asked for.
    pub fn key(&self) -> &Key {
        match &self.found {
            Found::Row(entry) | Found::Grouped(GroupedRow { row: entry, .. }) => &entry.key,
            Found::Nothing { key, .. } => key,
        }
    }

    /// The same, of a ledger whose charter was amended: `handovers` are all that it has. Those go along whose charters hold
    /// at the certificate's height.
    #[must_use]
    pub fn with_handovers(mut self, handovers: impl IntoIterator<Item = Handover>) -> RowProof {
        self.handovers = handovers::needed(handovers, self.certificate.statement.height);
        self
    }

    /// Checks everything against the founding charter, and nothing else. Gives the row, if there is one: that is how it was at the
    /// height of the certificate.
    ///
    /// # Errors
    /// [`ProofError`] names what is wrong.
    pub fn verify(&self, charter: &Charter) -> Result<Option<&Row>, ProofError> {
        self.check_size()?;
        let height = self.certificate.statement.height;
        let charters = handovers::follow(charter, &self.handovers, height)?;
        charters.at(height).rules.check_certificate(&self.certificate)?;
        let nodes = self.table.nodes();
        let found = state_root(&nodes, &self.catalog, &self.requests);
        let expected = self.certificate.statement.state_root;
        if expected != found {
            return Err(ProofError::Path { what: "the table", root: "state root", expected, found });
        }
        let leads = |what, found| match found == nodes {
            true => Ok(()),
            false => Err(ProofError::Path { what, root: "root over all tables", expected: nodes, found }),
        };
        let table = self.table.table.id;
        let found_row = |entry: &RowEntry, leads_to| {
            leads("the row", leads_to)?;
            match entry.table == table {
                true => Ok(()),
                false => Err(ProofError::Order("the row is one of another table")),
            }
        };
        match &self.found {
            Found::Row(entry) => found_row(entry, entry.nodes()).map(|()| Some(&entry.row)),
            Found::Grouped(entry) => found_row(&entry.row, entry.nodes()).map(|()| Some(&entry.row.row)),
            Found::Nothing { key, before, after } => {
                leads("what stands before the key", before.nodes())?;
                let place = (table, Some(key));
                if before.place() >= place {
                    return Err(ProofError::Order("what should stand before the key does not"));
                }
                let Some(after) = after else {
                    return match before.is_last() {
                        true => Ok(None),
                        false => Err(ProofError::Order("something stands behind what should be the last")),
                    };
                };
                leads("what stands behind the key", after.nodes())?;
                if after.place() <= place {
                    return Err(ProofError::Order("what should stand behind the key does not"));
                }
                match before.is_next_to(after) {
                    true => Ok(None),
                    false => Err(ProofError::Order("something stands between what should be neighbours")),
                }
            }
        }
    }

    /// The canonical encoding.
    pub fn to_bytes(&self) -> Vec<u8> {
        encode(self)
    }

    /// Reads the canonical encoding. Proves nothing yet: [`RowProof::verify`].
    ///
    /// # Errors
    /// [`ProofError::Malformed`] and [`ProofError::TooLarge`].
    pub fn from_bytes(bytes: &[u8]) -> Result<RowProof, ProofError> {
        check_bytes(bytes.len())?;
        let proof: RowProof =
            decode_exactly(bytes).map_err(|error| ProofError::Malformed(error.to_string()))?;
        proof.check_size()?;
        Ok(proof)
    }

    pub(crate) fn check_size(&self) -> Result<(), ProofError> {
        handovers::check_count(&self.handovers)?;
        self.table.across.check_size()?;
        self.found.paths().into_iter().try_for_each(Path::check_size)
    }
}
