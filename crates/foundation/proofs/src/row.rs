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
    /// From the range to the root over all ranges.
    pub across: Path,
}

/// A table's definition in the tree.
#[derive(Clone, PartialEq, Debug, BorshSerialize, BorshDeserialize)]
pub struct TableEntry {
    /// Its definition.
    pub table: Table,
    /// From it to the root over all ranges.
    pub across: Path,
}

/// Something in the tree, by the order of which absence is proved.
#[derive(Clone, PartialEq, Debug, BorshSerialize, BorshDeserialize)]
pub enum Entry {
    /// Stands in front of the table's rows.
    Table(TableEntry),
    /// Stands behind the rows with smaller keys.
    Row(RowEntry),
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

    fn nodes(&self) -> Digest {
        let rows = self.within.root(self.leaf());
        self.across.root(TreeShape::Ranges.range_leaf(self.table, &self.first, &rows))
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
        }
    }

    fn paths(&self) -> (Option<&Path>, &Path) {
        match self {
            Entry::Table(entry) => (None, &entry.across),
            Entry::Row(entry) => (Some(&entry.within), &entry.across),
        }
    }

    /// Where it stands in the order of all: a table's definition before its rows.
    fn place(&self) -> (TableId, Option<&Key>) {
        match self {
            Entry::Table(entry) => (entry.table.id, None),
            Entry::Row(entry) => (entry.table, Some(&entry.key)),
        }
    }

    fn is_first_of_range(&self) -> bool {
        self.paths().0.is_none_or(Path::is_first)
    }

    fn is_last_of_range(&self) -> bool {
        self.paths().0.is_none_or(Path::is_last)
    }

    /// Whether nothing stands between the two, of which both lead to the same root.
    fn is_next_to(&self, after: &Entry) -> bool {
        let ((left, left_across), (right, right_across)) = (self.paths(), after.paths());
        match (left, right) {
            (Some(left), Some(right)) if left_across == right_across => left.is_next_to(right),
            _ => self.is_last_of_range() && after.is_first_of_range() && left_across.is_next_to(right_across),
        }
    }
}

impl RowProof {
    /// The key that was asked for.
    pub fn key(&self) -> &Key {
        match &self.found {
            Found::Row(entry) => &entry.key,
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
        match &self.found {
            Found::Row(entry) => {
                leads("the row", entry.nodes())?;
                match entry.table == table {
                    true => Ok(Some(&entry.row)),
                    false => Err(ProofError::Order("the row is one of another table")),
                }
            }
            Found::Nothing { key, before, after } => {
                leads("what stands before the key", before.nodes())?;
                let place = (table, Some(key));
                if before.place() >= place {
                    return Err(ProofError::Order("what should stand before the key does not"));
                }
                let Some(after) = after else {
                    let last = before.is_last_of_range() && before.paths().1.is_last();
                    return match last {
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
        let check = |entry: &Entry| {
            let (within, across) = entry.paths();
            within.map_or(Ok(()), Path::check_size).and_then(|()| across.check_size())
        };
        handovers::check_count(&self.handovers)?;
        self.table.across.check_size()?;
        match &self.found {
            Found::Row(entry) => entry.within.check_size().and_then(|()| entry.across.check_size()),
            Found::Nothing { before, after, .. } => {
                check(before)?;
                after.as_deref().map_or(Ok(()), check)
            }
        }
    }
}
