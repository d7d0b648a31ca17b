//! Proofs of whole tables: that they had exactly these rows in the state at a checkpoint.
//!
//! ```text
//!  rows ──▶ ranges ──▶ leaves of groups ─┐ compared, one by one, with what the proof has
//!                                        ▼
//!  leaves of all tables and groups ──▶ root over them ──▶ state root, which a quorum has signed
//! ```
//!
//! The proof has the leaves and not the rows, so that it is small, and says of a wrong row which group it is in. A group's leaf
//! does not show whose rows it has. So a proof says of each table what stands behind its last group: nothing, the next table, or
//! a group of another table. Nobody can leave out a table's last rows.

use crate::receipt::check_bytes;
use crate::state::{TreeShape, state_root, table_leaf};
use crate::{ProofError, handovers};
use borsh::{BorshDeserialize, BorshSerialize};
use crypto::{Digest, merkle_root};
use types::{Charter, CheckpointCertificate, Handover, Key, Table, TableId, decode_exactly, encode};

/// What stands behind the last group of a table.
#[derive(Clone, PartialEq, Debug, BorshSerialize, BorshDeserialize)]
pub enum Behind {
    /// Nothing.
    Nothing,
    /// The definition of the next table.
    Table(Table),
    /// A group of something that has no definition: a sequence, or an index on expressions or with a condition.
    Group {
        /// Whose.
        table: TableId,
        /// Key of its first row.
        first: Key,
        /// Root over its ranges; over its rows, where ranges stand alone.
        content: Digest,
    },
}

/// A table that is proved.
#[derive(Clone, PartialEq, Debug, BorshSerialize, BorshDeserialize)]
pub struct TableGroups {
    /// Its definition.
    pub definition: Table,
    /// Which one of the leaves is the definition's.
    pub place: u64,
    /// How many groups its rows are in. Their leaves stand right behind.
    pub groups: u64,
    /// What stands behind these.
    pub behind: Behind,
}

/// Proves all rows of some tables, or of all, in the state at a checkpoint.
#[derive(Clone, PartialEq, Debug, BorshSerialize, BorshDeserialize)]
pub struct TablesProof {
    /// The tables, by their numbers.
    pub tables: Vec<TableGroups>,
    /// Leaves of the tree over all tables and groups.
    pub leaves: Vec<Digest>,
    /// Digest of the catalog.
    pub catalog: Digest,
    /// Digest of the ids that may not come again.
    pub requests: Digest,
    /// Certifies the state root.
    pub certificate: CheckpointCertificate,
    /// From the founding charter to the one that holds at the certificate's height; none where that is the founding one.
    pub handovers: Vec<Handover>,
}

/// What a proof proves of one table.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ProvedTable<'p> {
    /// Its definition.
    pub definition: &'p Table,
    /// Leaves of its groups: what its rows must hash to.
    pub groups: &'p [Digest],
    /// How rows are gathered into groups.
    pub shape: TreeShape,
}

impl TableGroups {
    /// Checks that these are all groups of the table, and gives their leaves.
    fn check<'p>(&self, leaves: &'p [Digest], shape: TreeShape) -> Result<&'p [Digest], ProofError> {
        let index = |number: u64| usize::try_from(number).ok();
        let place = index(self.place).filter(|place| *place < leaves.len());
        let place = place.ok_or(ProofError::Order("a table stands behind all leaves"))?;
        let (expected, found) = (leaves[place], table_leaf(&self.definition));
        if expected != found {
            return Err(ProofError::Path { what: "a table", root: "leaf of a table", expected, found });
        }
        let end = index(self.groups).and_then(|groups| (place + 1).checked_add(groups));
        let end = end.filter(|end| *end <= leaves.len());
        let end = end.ok_or(ProofError::Order("a table has more groups than there are leaves"))?;
        let (behind, found) = match &self.behind {
            Behind::Nothing => (None, None),
            Behind::Table(table) => (Some(table.id), Some(table_leaf(table))),
            Behind::Group { table, first, content } => {
                (Some(*table), Some(shape.leaf_of_content(*table, first, content)))
            }
        };
        if leaves.get(end) != found.as_ref() {
            return Err(ProofError::Order("something else stands behind the last group of a table"));
        }
        if behind.is_some_and(|behind| behind <= self.definition.id) {
            return Err(ProofError::Order("what stands behind the last group of a table is a part of it"));
        }
        Ok(&leaves[place + 1..end])
    }
}

impl TablesProof {
    /// The same, of a ledger whose charter was amended: `handovers` are all that it has. Those go along whose charters hold
    /// at the certificate's height.
    #[must_use]
    pub fn with_handovers(mut self, handovers: impl IntoIterator<Item = Handover>) -> TablesProof {
        self.handovers = handovers::needed(handovers, self.certificate.statement.height);
        self
    }

    /// Checks everything against the founding charter, and nothing else. Gives the tables: at the height of the certificate
    /// each had the rows whose groups have these leaves, and no other one.
    ///
    /// # Errors
    /// [`ProofError`] names what is wrong.
    pub fn verify(&self, charter: &Charter) -> Result<Vec<ProvedTable<'_>>, ProofError> {
        handovers::check_count(&self.handovers)?;
        let statement = &self.certificate.statement;
        let charters = handovers::follow(charter, &self.handovers, statement.height)?;
        let reign = charters.at(statement.height);
        reign.rules.check_certificate(&self.certificate)?;
        let found = state_root(&merkle_root(&self.leaves), &self.catalog, &self.requests);
        let expected = statement.state_root;
        if expected != found {
            return Err(ProofError::Path { what: "the tables", root: "state root", expected, found });
        }
        if !self.tables.is_sorted_by(|one, other| one.definition.id < other.definition.id) {
            return Err(ProofError::Order("its tables are not in the order of their numbers"));
        }
        let shape = TreeShape::of_number(reign.charter.execution_version);
        let mut proved = Vec::with_capacity(self.tables.len());
        for table in &self.tables {
            let groups = table.check(&self.leaves, shape)?;
            proved.push(ProvedTable { definition: &table.definition, groups, shape });
        }
        Ok(proved)
    }

    /// The canonical encoding.
    pub fn to_bytes(&self) -> Vec<u8> {
        encode(self)
    }

    /// Reads the canonical encoding. Proves nothing yet: [`TablesProof::verify`].
    ///
    /// # Errors
    /// [`ProofError::Malformed`] and [`ProofError::TooLarge`].
    pub fn from_bytes(bytes: &[u8]) -> Result<TablesProof, ProofError> {
        check_bytes(bytes.len())?;
        decode_exactly(bytes).map_err(|error| ProofError::Malformed(error.to_string()))
    }
}
