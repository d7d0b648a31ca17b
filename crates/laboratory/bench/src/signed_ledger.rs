use bytes::Bytes;
use crypto::{Digest, SecretKey, merkle_root};
use engine::{Engine, EngineError, Verifier};
use ledger::{BlockOutcome, BlockRecord, Ledger, LedgerError, LedgerOptions};
use memory::Memory;
use ordering::{CertificateError, CertificateSigner};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rayon::prelude::*;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use types::{
    Attestation, Attested, Block, BlockHeader, Certificate, Charter, Charters, CheckpointCertificate,
    CheckpointRoot, Credential, Organisation, Outcome, OutcomeCertificate, OutcomeHeader, Payload, Receipt,
    RequestId, Statement, Transaction, transactions_root,
};
use workloads::Workload;

/// How many blocks a transaction stays valid.
const EXPIRY_BLOCKS: u64 = 20;

/// What a ledger is to be.
#[derive(Clone, Debug)]
pub struct SignedLedgerOptions {
    /// Distinguishes ledgers.
    pub nonce: u64,
    /// Organisations, all of whose nodes sign.
    pub organisations: usize,
    /// Keys of clients, which sign in turn.
    pub clients: usize,
    /// How many blocks behind an outcome the block stands that carries its certificate.
    pub certified_after: usize,
    /// How the ledger's files are kept.
    pub files: LedgerOptions,
}

impl Default for SignedLedgerOptions {
    fn default() -> SignedLedgerOptions {
        let files = LedgerOptions::default();
        SignedLedgerOptions { nonce: 1, organisations: 4, clients: 16, certified_after: 2, files }
    }
}

/// Why a ledger could not be made.
#[derive(Debug, thiserror::Error)]
pub enum SignedLedgerError {
    /// The charter cannot be written.
    #[error("cannot write {}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        error: std::io::Error,
    },
    /// The engine refuses.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The ledger's files.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The nodes' keys.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// Amended charters do not follow one another.
    #[error(transparent)]
    Charters(#[from] types::HandoverError),
    /// A statement of the set-up failed.
    #[error("the set-up failed: {0:?}")]
    SetUp(Box<Outcome>),
}

/// A ledger on disk with everything that a network writes: transactions that clients have signed, blocks that were executed,
/// certificates of a quorum. Its keys are known to everybody.
///
/// The folder is like a node's: `charter.toml` and `ledger/`.
pub struct SignedLedger {
    charter: Arc<Charter>,
    /// Those that blocks name.
    charters: Charters,
    nodes: Vec<SecretKey>,
    clients: Vec<(SecretKey, Credential)>,
    signer: CertificateSigner,
    verifier: Verifier,
    engine: Engine,
    ledger: Ledger,
    certified_after: usize,
    requests: u64,
    header: Digest,
    outcome: Digest,
    state: Digest,
    certified: u64,
    /// Outcomes whose certificate stands in no block yet.
    uncertified: VecDeque<OutcomeHeader>,
    /// What the next block is to carry.
    outcome_next: Option<OutcomeCertificate>,
    checkpoint_next: Option<CheckpointCertificate>,
}

impl SignedLedger {
    /// An empty ledger in a folder that has none. `change` may change the charter before its members sign it.
    ///
    /// # Errors
    /// [`SignedLedgerError`].
    pub fn create(
        folder: &Path,
        options: SignedLedgerOptions,
        change: impl FnOnce(&mut Charter),
    ) -> Result<SignedLedger, SignedLedgerError> {
        let key = |kind: u8, number: usize| {
            let mut bytes = [kind; 32];
            bytes[..8].copy_from_slice(&(number as u64).to_le_bytes());
            SecretKey::from_bytes(bytes)
        };
        let members = 0..options.organisations;
        let roots: Vec<SecretKey> = members.clone().map(|member| key(1, member)).collect();
        let nodes: Vec<SecretKey> = members.clone().map(|member| key(2, member)).collect();
        let mut charter = Charter::with_defaults("signed", options.nonce);
        charter.governance = "any".to_string();
        charter.organisations = members
            .map(|member| Organisation {
                name: format!("org{}", member + 1),
                root_key: roots[member].public_key(),
                node_key: nodes[member].public_key(),
                address: format!("127.0.0.1:{}", 7_000 + member),
                gateway: String::new(),
                removed: false,
                node_key_expires: None,
            })
            .collect();
        change(&mut charter);
        roots.iter().enumerate().for_each(|(member, root)| charter.sign(member, root));
        let charter = Arc::new(charter);
        let path = folder.join("charter.toml");
        std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::write(&path, charter.to_toml()))
            .map_err(|error| SignedLedgerError::File { path, error })?;
        let digest = charter.ledger();
        let clients = (0..options.clients.max(1))
            .map(|number| {
                let (member, client) = (number % roots.len(), key(3, number));
                let credential =
                    Credential::issue(&roots[member], member as u16, &digest, &client.public_key());
                (client, credential)
            })
            .collect();
        let (ledger, _) = Ledger::open_with(folder.join("ledger"), digest, options.files)?;
        Ok(SignedLedger {
            signer: CertificateSigner::new(&charter, &nodes)?,
            verifier: Verifier::new(&charter),
            engine: Engine::new(charter.clone(), &Memory)?,
            charters: Charters::new(charter.clone()),
            charter,
            nodes,
            clients,
            ledger,
            certified_after: options.certified_after,
            requests: 0,
            header: digest,
            outcome: digest,
            state: digest,
            certified: 0,
            uncertified: VecDeque::new(),
            outcome_next: None,
            checkpoint_next: None,
        })
    }

    /// The charter.
    pub fn charter(&self) -> &Arc<Charter> {
        &self.charter
    }

    /// The state that the transactions have led to.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// What has been written.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Signed transactions for the next block, under requests that nobody has used.
    pub fn transactions(&mut self, payloads: Vec<Payload>) -> Vec<Bytes> {
        let (first, height) = (self.requests, self.engine.height());
        self.requests += payloads.len() as u64;
        let sign = |(number, payload): (usize, Payload)| {
            let request = first + number as u64;
            let (key, credential) = &self.clients[request as usize % self.clients.len()];
            let mut bytes = [0; 16];
            bytes[..8].copy_from_slice(&request.to_be_bytes());
            let transaction = Transaction {
                ledger: self.charter.ledger(),
                client: key.public_key(),
                request: RequestId(bytes),
                expires_at: height + EXPIRY_BLOCKS,
                role: String::new(),
                payload,
            };
            Bytes::from(transaction.sign(key, *credential).to_bytes())
        };
        payloads.into_par_iter().enumerate().map(sign).collect()
    }

    /// Executes the next block and records it, with a certificate of an earlier outcome. `forge` may change what it came to
    /// before the members attest that.
    ///
    /// # Errors
    /// [`SignedLedgerError`].
    pub fn append(
        &mut self,
        transactions: Vec<Bytes>,
        forge: impl FnOnce(&mut BlockOutcome),
    ) -> Result<Vec<Receipt>, SignedLedgerError> {
        let height = self.engine.height() + 1;
        let attested = self.attested()?;
        let charter = self.charters.at(height).charter.clone();
        let header = BlockHeader {
            ledger: self.charter.ledger(),
            height,
            timestamp_ms: 1_800_000_000_000 + height,
            previous: self.header,
            transactions_root: transactions_root(&transactions),
            transactions: transactions.len() as u32,
            proposer: (height % self.nodes.len() as u64) as u16,
            certified_height: self.certified,
            attested: attested.digest(),
            charters: self.charters.digest(),
        };
        let block = Block { header, attested, transactions };
        let verified = self.verifier.verify_block(&self.charters, &block);
        let executed = self.engine.execute(&verified)?;
        self.verifier.forget(&verified);
        let mut outcome =
            BlockOutcome { receipts: executed.receipts, digest: executed.digest, header: executed.outcome };
        forge(&mut outcome);
        let leaves: Vec<Digest> = outcome.receipts.iter().map(Receipt::leaf).collect();
        self.state = outcome.digest.chain(self.state, height);
        outcome.header = OutcomeHeader {
            previous: self.outcome,
            receipts_root: merkle_root(&leaves),
            state_digest: self.state,
            ..outcome.header
        };
        self.header = block.header.digest();
        self.outcome = outcome.header.digest();
        self.uncertified.push_back(outcome.header.clone());
        if charter.version > 0 {
            self.signer = CertificateSigner::new(&charter, &self.nodes)?;
        }
        let certificate = self.signer.sign(&block);
        let record = BlockRecord { block, certificate, outcome };
        self.ledger.append(&record)?;
        Ok(record.outcome.receipts)
    }

    /// The next block carries a certificate of this, whatever it says.
    pub fn attest_outcome(&mut self, statement: OutcomeHeader) {
        self.outcome_next = Some(self.certificate(statement));
    }

    /// The next block carries a certificate of this, whatever it says.
    pub fn attest_checkpoint(&mut self, statement: CheckpointRoot) {
        self.checkpoint_next = Some(self.certificate(statement));
    }

    /// What all nodes say together.
    pub fn certificate<T: Statement>(&self, statement: T) -> Certificate<T> {
        let sign = |(member, key): (u16, &SecretKey)| {
            (member, Attestation::sign(statement.clone(), member, key).signature)
        };
        let signatures = (0u16..).zip(&self.nodes).map(sign).collect();
        Certificate { statement, signatures }
    }

    /// The certificate that is due, and those that were asked for.
    fn attested(&mut self) -> Result<Attested, SignedLedgerError> {
        let mut due = None;
        while self.uncertified.len() > self.certified_after {
            due = self.uncertified.pop_front();
        }
        let outcome = self.outcome_next.take().or_else(|| due.map(|header| self.certificate(header)));
        if let Some(certificate) = &outcome {
            self.certified = certificate.statement.height;
        }
        // What the certified outcome names and no block before carries; keys stay as they were founded.
        let named = outcome.as_ref().map_or(self.charters.digest(), |outcome| outcome.statement.charters);
        let decided = Charters::of(&self.engine.state().catalog().governance);
        let charters = decided.and_then(|decided| decided.between(&self.charters.digest(), &named));
        let charters = charters.unwrap_or_default();
        let attested = Attested { outcome, checkpoint: self.checkpoint_next.take(), charters };
        self.charters.follow(&attested)?;
        Ok(attested)
    }

    /// Creates the tables and procedures of a workload and loads its rows, a block for each.
    ///
    /// # Errors
    /// [`SignedLedgerError`].
    pub fn set_up(&mut self, workload: &dyn Workload) -> Result<(), SignedLedgerError> {
        let script = |sql: &str| Payload::Script { sql: sql.to_string(), parameters: vec![] };
        let mut payloads: Vec<Payload> = workload.set_up().into_iter().map(script).collect();
        payloads.extend(workload.portions().map(|rows| Payload::Insert {
            table: rows.table.to_string(),
            columns: rows.columns.iter().map(|column| column.to_string()).collect(),
            rows: rows.rows,
        }));
        for payload in payloads {
            let transactions = self.transactions(vec![payload]);
            for receipt in self.append(transactions, |_| ())? {
                if !matches!(receipt.outcome, Outcome::Committed(_)) {
                    return Err(SignedLedgerError::SetUp(Box::new(receipt.outcome)));
                }
            }
        }
        Ok(())
    }

    /// Blocks of calls of a workload, which follow from the seed.
    ///
    /// # Errors
    /// [`SignedLedgerError`].
    pub fn run(
        &mut self,
        workload: &dyn Workload,
        blocks: impl IntoIterator<Item = u32>,
        seed: u64,
    ) -> Result<(), SignedLedgerError> {
        let (mut random, mut number) = (StdRng::seed_from_u64(seed), 0..);
        for block in blocks {
            let calls = number.by_ref().take(block as usize);
            let payloads = calls.map(|number| workload.call(number, &mut random).into_payload()).collect();
            let transactions = self.transactions(payloads);
            self.append(transactions, |_| ())?;
        }
        Ok(())
    }

    /// Makes everything durable and closes the files.
    ///
    /// # Errors
    /// [`SignedLedgerError`].
    pub fn finish(self) -> Result<(), SignedLedgerError> {
        self.ledger.flush()?;
        self.ledger.settle_indexes();
        Ok(())
    }
}
