//! Four organisations that endorse, in one process, and a client of the first.

use crypto::{Digest, SecretKey};
use engine::{EndorsementBasis, Engine, ExecutedBlock, VerifiedBlock, Verifier};
use rand::RngExt;
use rand::rngs::StdRng;
use state::CheckpointProgress;
use std::sync::Arc;
use types::{
    BlockHeader, Charter, Charters, ClientId, Credential, EndorsedSimulation, EndorsementFault,
    ExecutionModel, Organisation, Outcome, OutcomeHeader, Payload, Pipeline, Place, RejectReason, RequestId,
    SignedTransaction, SqlError, Transaction, Value, endorse,
};

const ORGANISATIONS: u8 = 4;

/// A network of four organisations in one process.
pub struct Network {
    pub charter: Arc<Charter>,
    pub engine: Engine,
    pub verifier: Verifier,
    pub client: SecretKey,
    pub requests: u64,
    /// Everything ordered so far.
    pub ordered: Vec<(BlockHeader, Vec<bytes::Bytes>)>,
}

pub fn root(organisation: u8) -> SecretKey {
    SecretKey::from_bytes([10 + organisation; 32])
}

pub fn node(organisation: u8) -> SecretKey {
    SecretKey::from_bytes([20 + organisation; 32])
}

impl Network {
    /// Without any table.
    pub fn founded(protocol: &str, change: impl FnOnce(&mut Charter)) -> Network {
        let mut charter = Charter::with_defaults("endorsed", 1);
        charter.governance = "any".to_string();
        charter.execution = ExecutionModel::ExecuteOrderValidate;
        charter.protocol = protocol.to_string();
        for organisation in 0..ORGANISATIONS {
            charter.organisations.push(Organisation {
                name: ["anna", "bert", "carl", "dora"][usize::from(organisation)].to_string(),
                root_key: root(organisation).public_key(),
                node_key: node(organisation).public_key(),
                address: format!("127.0.0.1:{}", 7_000 + u16::from(organisation)),
                gateway: String::new(),
                removed: false,
                node_key_expires: None,
            });
        }
        change(&mut charter);
        let members = charter.organisations.len() as u8;
        (0..members).for_each(|organisation| charter.sign(usize::from(organisation), &root(organisation)));
        charter.check().expect("a good charter");
        let charter = Arc::new(charter);
        let engine = Engine::new(charter.clone(), &memory::Memory).expect("a known protocol");
        let verifier = Verifier::new(&charter);
        let client = SecretKey::from_bytes([9; 32]);
        Network { charter, engine, verifier, client, requests: 0, ordered: Vec::new() }
    }

    pub fn new(protocol: &str, change: impl FnOnce(&mut Charter)) -> Network {
        let mut network = Network::founded(protocol, change);
        let schema = [
            "CREATE TABLE account (id bigint PRIMARY KEY, balance bigint NOT NULL CHECK (balance >= 0))",
            "CREATE TABLE log (line text)",
            "CREATE PROCEDURE open(k bigint, b bigint) LANGUAGE plpgsql AS $$ BEGIN
                 INSERT INTO account VALUES (k, b); END $$",
            "CREATE PROCEDURE pay(a bigint, b bigint, x bigint, OUT rest bigint) LANGUAGE plpgsql AS $$ BEGIN
                 UPDATE account SET balance = balance - x WHERE id = a RETURNING balance INTO rest;
                 UPDATE account SET balance = balance + x WHERE id = b;
                 INSERT INTO log VALUES (a || ' to ' || b); END $$",
            "CREATE PROCEDURE total(OUT sum numeric) LANGUAGE plpgsql AS $$ BEGIN
                 SELECT sum(balance) INTO sum FROM account; END $$",
        ];
        for sql in schema {
            let change = network.proposal(Payload::Script { sql: sql.to_string(), parameters: vec![] });
            let executed = network.order(vec![change]);
            assert!(matches!(executed.receipts[0].outcome, Outcome::Committed(_)), "{:?}", executed.receipts);
        }
        let open = |id| call("open", &[id, 100]);
        let opened = (1..=4).map(open).map(|payload| network.endorsed(payload, &[0, 1])).collect();
        let executed = network.order(opened);
        assert!(executed.receipts.iter().all(|one| matches!(one.outcome, Outcome::Committed(_))));
        network
    }

    pub fn proposal(&mut self, payload: Payload) -> SignedTransaction {
        self.requests += 1;
        let mut request = [0; 16];
        request[..8].copy_from_slice(&self.requests.to_be_bytes());
        let (ledger, client) = (self.charter.ledger(), self.client.public_key());
        let expires_at = self.engine.height() + 50;
        Transaction { ledger, client, request: RequestId(request), expires_at, role: String::new(), payload }
            .sign(&self.client, Credential::issue(&root(0), 0, &ledger, &client))
    }

    /// What endorsers know now.
    pub fn basis(&self) -> EndorsementBasis {
        self.engine.endorsement_basis(1_800_000_000_000)
    }

    pub fn endorse(
        &self,
        basis: &EndorsementBasis,
        proposal: SignedTransaction,
        endorsers: &[u8],
    ) -> Result<SignedTransaction, SqlError> {
        let id = proposal.transaction.id();
        let client = ClientId { key: proposal.transaction.client, request: proposal.transaction.request };
        let effects = basis.simulate(
            (id, client),
            &types::Principal::default(),
            &Arc::new(proposal.transaction.payload.clone()),
        )?;
        let one = [(id, effects.digest())];
        let endorsements = endorsers.iter().flat_map(|organisation| {
            endorse(
                &node(*organisation),
                u16::from(*organisation),
                &self.charter.ledger(),
                basis.height,
                &one,
            )
        });
        let simulation = EndorsedSimulation { endorsements: endorsements.collect(), effects };
        Ok(SignedTransaction { endorsed: Some(Box::new(simulation)), ..proposal })
    }

    pub fn endorsed(&mut self, payload: Payload, endorsers: &[u8]) -> SignedTransaction {
        let proposal = self.proposal(payload);
        self.endorse(&self.basis(), proposal, endorsers).expect("it can be simulated")
    }

    pub fn check(&self, height: u64, transactions: &[bytes::Bytes]) -> Vec<engine::Judged> {
        let charters = Charters::of(&self.engine.state().catalog().governance);
        let charters = charters.unwrap_or_else(|| Charters::new(self.charter.clone()));
        self.verifier.check(Place { charters: &charters, height }, transactions)
    }

    /// The next block, as everybody gets it.
    pub fn block(&self, transactions: &[SignedTransaction]) -> (VerifiedBlock, Vec<bytes::Bytes>) {
        let header = BlockHeader {
            ledger: self.charter.ledger(),
            height: self.engine.height() + 1,
            timestamp_ms: 1_800_000_000_000,
            previous: Digest::ZERO,
            transactions_root: Digest::ZERO,
            transactions: transactions.len() as u32,
            proposer: 0,
            certified_height: 0,
            attested: Digest::ZERO,
            charters: self.charter.ledger(),
        };
        let bytes: Vec<bytes::Bytes> = transactions.iter().map(|one| one.to_bytes().into()).collect();
        let transactions = self.check(header.height, &bytes);
        (VerifiedBlock { digest: header.digest(), header, transactions }, bytes)
    }

    pub fn order(&mut self, transactions: Vec<SignedTransaction>) -> ExecutedBlock {
        let (block, bytes) = self.block(&transactions);
        self.ordered.push((block.header.clone(), bytes));
        self.engine.execute(&block).expect("the next block")
    }

    /// The state as a checkpoint has it.
    pub fn checkpoint(&self) -> Vec<u8> {
        let (header, live) = (self.engine.checkpoint_header(), self.engine.live().content());
        let (snapshot, mut bytes) = (self.engine.state().snapshot(), Vec::new());
        state::write_checkpoint(&header, snapshot.as_ref(), &live, &mut bytes).expect("memory");
        bytes
    }

    /// Executes everything ordered so far on a fresh engine that foresees some blocks; receipts and digests, and how
    /// many blocks it foresaw.
    pub fn replay_on_the_graph(
        &self,
        pool: &rayon::ThreadPool,
        rng: &mut StdRng,
    ) -> (Vec<(Digest, Digest, CheckpointProgress)>, usize) {
        let engine = Engine::new(self.charter.clone(), &memory::Memory).expect("a known protocol");
        let mut engine = engine.with_pipeline(Pipeline::Graph).expect("a known protocol");
        let verified = |(header, bytes): &(BlockHeader, Vec<bytes::Bytes>)| VerifiedBlock {
            digest: header.digest(),
            header: header.clone(),
            transactions: self.check(header.height, bytes),
        };
        let blocks: Vec<VerifiedBlock> = self.ordered.iter().map(verified).collect();
        let (mut found, mut foreseen, mut looked_at) = (Vec::new(), 0, 0);
        for (number, block) in blocks.iter().enumerate() {
            foreseen = foreseen.max(number);
            let most = number + rng.random_range(0..5);
            let executed = pool.install(|| {
                while foreseen < most.min(blocks.len()) && engine.foresee(&blocks[foreseen]) {
                    foreseen += 1;
                    looked_at += 1;
                }
                engine.execute(block).expect("the next block")
            });
            let OutcomeHeader { receipts_root, state_digest, .. } = executed.outcome;
            found.push((receipts_root, state_digest, engine.checkpoint_progress()));
        }
        (found, looked_at)
    }

    pub fn outcomes(&mut self, transactions: Vec<SignedTransaction>) -> Vec<Outcome> {
        self.order(transactions).receipts.into_iter().map(|receipt| receipt.outcome).collect()
    }

    pub fn balance(&self, id: i64) -> i64 {
        let table = self.engine.library().catalog().tables["account"].id;
        let key = types::Key::encode([&Value::BigInt(id)]).expect("a key");
        let row = state::Snapshot::get(self.engine.state().snapshot().as_ref(), table, &key);
        let row = row.expect("memory can be read").expect("an account");
        match row[1] {
            Value::BigInt(balance) => balance,
            ref other => panic!("{other:?}"),
        }
    }
}

pub fn call(procedure: &str, arguments: &[i64]) -> Payload {
    let arguments = arguments.iter().map(|argument| Value::BigInt(*argument)).collect();
    Payload::Call { procedure: procedure.to_string(), arguments }
}

pub fn fault(outcome: &Outcome) -> &EndorsementFault {
    match outcome {
        Outcome::Rejected(RejectReason::Endorsement(fault)) => fault,
        other => panic!("{other:?}"),
    }
}

pub fn script(sql: &str) -> Payload {
    Payload::Script { sql: sql.to_string(), parameters: vec![] }
}
