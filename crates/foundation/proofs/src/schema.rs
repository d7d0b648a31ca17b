use crate::receipt::check_bytes;
use crate::salted::{definition_digest, push_row, salted_leaf};
use crate::{HEADERS_MAX, Path, ProofError, ReceiptProof, handovers};
use borsh::{BorshDeserialize, BorshSerialize};
use crypto::Digest;
use types::{
    AttestingMembers, Charter, Key, Outcome, Receipt, Row, SchemaBlockOutcome, SchemaCertificate, Table,
    decode_exactly, encode,
};

/// What leads from a receipt or a row of a schema with members to what its members have attested.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub struct SchemaEvidence {
    /// Stands in front of what is proved, in its leaf. That of another leaf does not follow from it.
    pub salt: Digest,
    /// From the leaf to the root.
    pub path: Path,
    /// What the block of the leaf came to in the schema, and those behind it up to the one that is attested.
    pub blocks: Vec<SchemaBlockOutcome>,
    /// The word of a quorum of the members.
    pub certificate: SchemaCertificate,
    /// The receipt of the transaction that has brought the certificate into the ledger: all organisations say with it who the
    /// members of the schema were.
    pub members: ReceiptProof,
}

/// Proves how a transaction has ended in a schema with members: to anybody who has the charter, and of nothing else in the schema.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub struct SchemaReceiptProof {
    /// What is proved. Its height is that of the block in which the transaction has taken effect in the schema, its position that
    /// among those that have ended there.
    pub receipt: Receipt,
    /// Why.
    pub evidence: SchemaEvidence,
}

/// Proves that a block has left a row of a schema with members so, or that there was none any more.
#[derive(Clone, PartialEq, Debug, BorshSerialize, BorshDeserialize)]
pub struct SchemaRowProof {
    /// The table's definition behind that block.
    pub table: Table,
    /// The row's primary key.
    pub key: Key,
    /// Its values; `None`: the block has deleted it.
    pub row: Option<Row>,
    /// Why.
    pub evidence: SchemaEvidence,
}

/// What a proof says of the schema.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProvedInSchema {
    /// Its name.
    pub schema: String,
    /// Height of the block that has made it so.
    pub height: u64,
    /// Members that have attested it, by their position in the charter.
    pub members: Vec<u16>,
}

impl SchemaEvidence {
    /// Height of the block that the leaf is of; 0 where there is none.
    pub fn height(&self) -> u64 {
        self.blocks.first().map_or(0, |block| block.height)
    }

    /// Checks that a quorum of the schema's members has attested a leaf of one of the trees of its block.
    fn verify(
        &self,
        charter: &Charter,
        (what, content): (&'static str, &[u8]),
        (root, root_of): (&'static str, impl Fn(&SchemaBlockOutcome) -> Digest),
    ) -> Result<ProvedInSchema, ProofError> {
        self.check_size()?;
        let proved = self.check_certificate(charter)?;
        let mut expected = self.certificate.statement.outcome;
        for block in self.blocks.iter().rev() {
            let found = block.digest();
            if found != expected {
                return Err(ProofError::Header { height: block.height, expected, found });
            }
            expected = block.previous;
        }
        let Some(block) = self.blocks.first() else {
            return Err(ProofError::Order("no block of the schema stands in the proof"));
        };
        let (expected, found) = (root_of(block), self.path.root(salted_leaf(&self.salt, content)));
        match expected == found {
            true => Ok(proved),
            false => Err(ProofError::Path { what, root, expected, found }),
        }
    }

    /// Whether enough of those have signed of whom the ledger says that they were the members.
    fn check_certificate(&self, charter: &Charter) -> Result<ProvedInSchema, ProofError> {
        let receipt = self.members.verify(charter)?;
        let Outcome::Committed(results) = &receipt.outcome else {
            return Err(ProofError::Order("the ledger has not taken the schema's outcome in"));
        };
        let statement = &self.certificate.statement;
        let named = AttestingMembers::of_results(results).into_iter();
        let named = named.filter(|members| members.were_at(statement.height, receipt.height));
        let Some(members) = named.into_iter().find(|members| members.number == statement.schema) else {
            return Err(ProofError::Order("the ledger does not say who the schema's members were"));
        };
        self.certificate.check_count(&members.organisations)?;
        // They lead to the charter of a later height.
        let certified = self.members.certificate.statement.height;
        let charters = handovers::follow(charter, &self.members.handovers, certified)?;
        self.certificate.check_signed(&charters.at(statement.height).rules)?;
        let signers = self.certificate.signatures.iter().map(|(member, _)| *member);
        Ok(ProvedInSchema {
            schema: members.schema,
            height: self.height(),
            members: signers.filter(|signer| members.organisations.contains(signer)).collect(),
        })
    }

    pub(crate) fn check_size(&self) -> Result<(), ProofError> {
        self.path.check_size()?;
        self.members.check_size()?;
        match self.blocks.len() {
            0..=HEADERS_MAX => Ok(()),
            found => Err(ProofError::TooLarge { what: "blocks of the schema", found, limit: HEADERS_MAX }),
        }
    }
}

impl SchemaReceiptProof {
    /// Checks everything against the founding charter, and nothing else.
    ///
    /// # Errors
    /// [`ProofError`] names what is wrong.
    pub fn verify(&self, charter: &Charter) -> Result<ProvedInSchema, ProofError> {
        let (leaf, root) = (("the receipt", encode(&self.receipt)), "receipts root of the schema");
        let proved = self.evidence.verify(
            charter,
            (leaf.0, &leaf.1),
            (root, |block: &SchemaBlockOutcome| block.receipts),
        )?;
        match proved.height == self.receipt.height {
            true => Ok(proved),
            false => Err(ProofError::Height { expected: self.receipt.height, found: proved.height }),
        }
    }

    /// The canonical encoding.
    pub fn to_bytes(&self) -> Vec<u8> {
        encode(self)
    }

    /// Reads the canonical encoding. Proves nothing yet: [`SchemaReceiptProof::verify`].
    ///
    /// # Errors
    /// [`ProofError::Malformed`] and [`ProofError::TooLarge`].
    pub fn from_bytes(bytes: &[u8]) -> Result<SchemaReceiptProof, ProofError> {
        let proof: SchemaReceiptProof = read(bytes)?;
        proof.evidence.check_size()?;
        Ok(proof)
    }
}

impl SchemaRowProof {
    /// Checks everything against the founding charter, and nothing else. The row may have been changed since: what is proved is what
    /// the block has left.
    ///
    /// # Errors
    /// [`ProofError`] names what is wrong.
    pub fn verify(&self, charter: &Charter) -> Result<ProvedInSchema, ProofError> {
        let mut content = Vec::new();
        push_row(&mut content, &definition_digest(&self.table), &self.key, self.row.as_ref());
        let root = "rows root of the schema";
        self.evidence.verify(charter, ("the row", &content), (root, |block: &SchemaBlockOutcome| block.rows))
    }

    /// The canonical encoding.
    pub fn to_bytes(&self) -> Vec<u8> {
        encode(self)
    }

    /// Reads the canonical encoding. Proves nothing yet: [`SchemaRowProof::verify`].
    ///
    /// # Errors
    /// [`ProofError::Malformed`] and [`ProofError::TooLarge`].
    pub fn from_bytes(bytes: &[u8]) -> Result<SchemaRowProof, ProofError> {
        let proof: SchemaRowProof = read(bytes)?;
        proof.evidence.check_size()?;
        Ok(proof)
    }
}

fn read<T: BorshDeserialize>(bytes: &[u8]) -> Result<T, ProofError> {
    check_bytes(bytes.len())?;
    decode_exactly(bytes).map_err(|error| ProofError::Malformed(error.to_string()))
}
