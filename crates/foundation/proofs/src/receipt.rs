use crate::{HEADERS_MAX, PROOF_BYTES_MAX, Path, ProofError, handovers};
use borsh::{BorshDeserialize, BorshSerialize};
use crypto::Digest;
use types::{Charter, Handover, OutcomeCertificate, OutcomeHeader, Receipt, decode_exactly, encode};

/// Proves how a transaction has ended: to anybody who has the charter, and without believing whoever hands it on.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub struct ReceiptProof {
    /// What is proved.
    pub receipt: Receipt,
    /// From the receipt to the receipts root of its block.
    pub path: Path,
    /// The outcome headers from the receipt's height up to the one before the certified one; none where the receipt's
    /// own is certified.
    pub headers: Vec<OutcomeHeader>,
    /// Certifies the outcome of the receipt's height or of a later one.
    pub certificate: OutcomeCertificate,
    /// From the founding charter to the one that holds at the certificate's height; none where that is the founding one.
    pub handovers: Vec<Handover>,
}

impl ReceiptProof {
    /// The proof of receipt `index` of a block. `receipts`: all of the block; `headers`: the outcome headers from its
    /// height on, up to below the height of the certificate. Nothing where there is no such receipt.
    pub fn new(
        receipts: &[Receipt],
        index: u32,
        headers: Vec<OutcomeHeader>,
        certificate: OutcomeCertificate,
    ) -> Option<ReceiptProof> {
        let leaves: Vec<Digest> = receipts.iter().map(Receipt::leaf).collect();
        ReceiptProof::of_leaves(
            receipts.get(index as usize)?,
            (leaves.as_slice(), index),
            headers,
            certificate,
        )
    }

    /// The same, where of other receipts of the block nothing but [`Receipt::leaf`] is known.
    pub fn of_leaves(
        receipt: &Receipt,
        (leaves, index): (&[Digest], u32),
        headers: Vec<OutcomeHeader>,
        certificate: OutcomeCertificate,
    ) -> Option<ReceiptProof> {
        let path = Path::new(leaves, index as usize)?;
        Some(ReceiptProof { receipt: receipt.clone(), path, headers, certificate, handovers: Vec::new() })
    }

    /// The same, of a ledger whose charter was amended: `handovers` are all that it has. Those go along whose charters hold
    /// at the certificate's height.
    #[must_use]
    pub fn with_handovers(mut self, handovers: impl IntoIterator<Item = Handover>) -> ReceiptProof {
        self.handovers = handovers::needed(handovers, self.certificate.statement.height);
        self
    }

    /// Checks everything against the founding charter, and nothing else. What it gives has happened.
    ///
    /// # Errors
    /// [`ProofError`] names what is wrong.
    pub fn verify(&self, charter: &Charter) -> Result<&Receipt, ProofError> {
        self.check_size()?;
        let height = self.certificate.statement.height;
        let charters = handovers::follow(charter, &self.handovers, height)?;
        charters.at(height).rules.check_certificate(&self.certificate)?;
        // Digests lead downwards: what is certified chains the header below it, and so on.
        let mut reached = &self.certificate.statement;
        for header in self.headers.iter().rev() {
            let (expected, found) = (reached.previous, header.digest());
            if expected != found {
                return Err(ProofError::Header { height: header.height, expected, found });
            }
            reached = header;
        }
        if reached.height != self.receipt.height {
            return Err(ProofError::Height { expected: self.receipt.height, found: reached.height });
        }
        let (expected, found) = (reached.receipts_root, self.path.root(self.receipt.leaf()));
        if expected != found {
            let (what, root) = ("the receipt", "receipts root");
            return Err(ProofError::Path { what, root, expected, found });
        }
        Ok(&self.receipt)
    }

    /// The canonical encoding.
    pub fn to_bytes(&self) -> Vec<u8> {
        encode(self)
    }

    /// Reads the canonical encoding. Proves nothing yet: [`ReceiptProof::verify`].
    ///
    /// # Errors
    /// [`ProofError::Malformed`] and [`ProofError::TooLarge`].
    pub fn from_bytes(bytes: &[u8]) -> Result<ReceiptProof, ProofError> {
        check_bytes(bytes.len())?;
        let proof: ReceiptProof =
            decode_exactly(bytes).map_err(|error| ProofError::Malformed(error.to_string()))?;
        proof.check_size()?;
        Ok(proof)
    }

    pub(crate) fn check_size(&self) -> Result<(), ProofError> {
        self.path.check_size()?;
        handovers::check_count(&self.handovers)?;
        match self.headers.len() {
            0..=HEADERS_MAX => Ok(()),
            found => Err(ProofError::TooLarge { what: "outcome headers", found, limit: HEADERS_MAX }),
        }
    }
}

pub(crate) fn check_bytes(found: usize) -> Result<(), ProofError> {
    match found {
        0..=PROOF_BYTES_MAX => Ok(()),
        _ => Err(ProofError::TooLarge { what: "bytes", found, limit: PROOF_BYTES_MAX }),
    }
}
