//! A member that starts again and again, beside one that never stops and keeps its schema in memory: both come to the same, and the first
//! does not begin at the beginning each time.

use super::four_members::{charter, key};
use super::opened_store::{BlockNote, CertifiedAt};
use super::part_store::{HeldPart, PartStore};
use super::schema_stores::SchemaStores;
use super::schemas::{PrivateSchemas, SchemasNode, State};
use crate::charters::DecidedCharters;
use crate::metrics::NodeMetrics;
use crate::pipeline::ExecutedState;
use crate::store_choice::{StoreChoice, StoreKind};
use bytes::Bytes;
use crossbeam_channel::{Receiver, never};
use crypto::Digest;
use engine::{Engine, Verifier};
use ledger::{BlockOutcome, BlockRecord, Disk, Ledger};
use ordering::ExchangeMessages;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sql::Library;
use state::{KeyRange, RowId, Snapshot};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use types::{
    Attested, AttestingMembers, Block, BlockDigest, BlockHeader, Charters, Credential, Identity, Key,
    KnownVersions, Outcome, OutcomeHeader, PartMembers, PartVotes, Payload, Receipt, SchemaAttestation,
    SchemaCertificate, SchemaMembers, SchemaOutcome, SignedTransaction, StatementResult, Table,
    TransactionId, transactions_root,
};

/// Other members, none of whom is there.
struct Nobody(Receiver<(u16, Bytes)>);

impl ExchangeMessages for Nobody {
    fn broadcast(&self, _: Bytes) {}

    fn messages(&self) -> &Receiver<(u16, Bytes)> {
        &self.0
    }

    fn tell(&self, _: u16, _: Bytes) {}

    fn told(&self) -> &Receiver<(u16, Bytes)> {
        &self.0
    }
}

/// Organisation 0 of four, with these stores of schemas. Nothing is executed yet.
pub(super) fn organisation(folder: &Path, stores: SchemaStores) -> PrivateSchemas {
    let (charter, known) = (Arc::new(charter()), KnownVersions::default());
    let engine = Engine::new(charter.clone(), &memory::Memory).expect("a known protocol");
    let charters = DecidedCharters::of(&engine, Charters::new(charter.clone()), known);
    let (ledger, _) = Ledger::open(folder.join("ledger"), charter.ledger()).expect("opened");
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
    let private = PrivateSchemas::new(SchemasNode {
        node_key: key(0),
        charters: Arc::new(charters),
        verifier: Arc::new(Verifier::new(&charter)),
        ledger: Arc::new(ledger),
        messages: Arc::new(Nobody(never())),
        parts: PartStore::open(&folder.join("schemas"), Disk::default()).expect("opened"),
        stores,
        disk: Disk::default(),
        only: None,
        faults: None,
        metrics: Arc::new(NodeMetrics::new()),
        pool: Arc::new(pool),
    });
    private.stands_on(engine.snapshot(), engine.library().clone());
    private
}

/// The number of schema `deal`, and of one that somebody else is a member of.
const DEAL: u32 = 1;
const OTHER: u32 = 2;
const SINCE: u64 = 1;

/// Of `deal`: organisations 0 to 2.
pub(super) fn members() -> Arc<SchemaMembers> {
    Arc::new(SchemaMembers { number: DEAL, since: SINCE, changed: SINCE, organisations: vec![0, 1, 2] })
}

impl PrivateSchemas {
    /// The node stands on this state of the ledger, which has no schemas.
    fn stands_on(&self, snapshot: Arc<dyn Snapshot>, library: Arc<Library>) {
        self.state.lock().ledger = Some((snapshot, library));
    }

    /// A schema begins that the ledger does not know.
    pub(super) fn begin_alone(&self, name: &str, members: &Arc<SchemaMembers>) {
        let mut state = self.state.lock();
        let State { schemas, ended, .. } = &mut *state;
        let schema = self.begin(name, members, self.tip().max(members.since), ended).expect("it begins");
        schemas.insert(members.number, schema);
    }

    /// The last block that a schema has executed.
    fn height_of(&self, number: u32) -> u64 {
        self.state.lock().schemas[&number].executor.height()
    }
}

/// A member that can stop and start.
struct Member {
    folder: PathBuf,
    choice: Option<StoreChoice>,
    private: Option<PrivateSchemas>,
    /// Where it began each time.
    began: Vec<u64>,
}

impl Member {
    fn new(folder: PathBuf, choice: Option<StoreChoice>) -> Member {
        Member { folder, choice, private: None, began: Vec::new() }
    }

    fn private(&self) -> &PrivateSchemas {
        self.private.as_ref().expect("it runs")
    }

    fn start(&mut self) {
        let stores = match self.choice {
            Some(choice) => SchemaStores::of(choice, &self.folder.join("schemas")),
            None => SchemaStores::in_memory(),
        };
        let private = organisation(&self.folder, stores);
        private.begin_alone("deal", &members());
        let began = private.height_of(DEAL);
        assert_eq!(private.began(), [("deal".to_string(), began)]);
        self.began.push(began);
        self.private = Some(private);
        self.go_on();
    }

    fn stop(&mut self) {
        self.private = None;
    }

    fn take(&self, record: &BlockRecord, parts: &[HeldPart]) {
        let private = self.private();
        private.node.parts.put(parts.iter().cloned()).expect("stored");
        private.node.ledger.append(record).expect("it follows");
        private.node.ledger.flush().expect("flushed");
        private.recorded(record.block.header.height);
    }

    fn go_on(&self) {
        self.private().go_on(|_| {});
        assert_eq!(self.private().problem("deal"), None);
    }

    /// What it has attested of a block.
    fn attested(&self, height: u64) -> Option<SchemaOutcome> {
        Some(self.private().agreeing.lock().own((DEAL, height))?.statement.clone())
    }

    /// Rows with tables and keys, and the block that has written each.
    fn rows(&self) -> Vec<(RowId, String, Option<u64>)> {
        let state = self.private().state.lock();
        let schema = &state.schemas[&DEAL];
        let snapshot = schema.executor.view().snapshot;
        let mut rows = Vec::new();
        for table in snapshot.catalog().row_tables() {
            let mut visit = |key: &Key, row: &types::Row| {
                let id = RowId { table, key: key.clone() };
                let written = schema.opened.written(&id);
                rows.push((id, format!("{row:?}"), written));
                ControlFlow::Continue(())
            };
            snapshot.scan(table, &KeyRange::ALL, false, &mut visit).expect("readable");
        }
        rows
    }
}

/// Writes the ledger.
struct Writer {
    random: StdRng,
    client: Identity,
    ledger: Digest,
    height: u64,
    previous: Digest,
    /// Transactions over both schemas, with what the other schema's members say, and when.
    undecided: Vec<(u64, u32)>,
    transactions: Vec<TransactionId>,
}

impl Writer {
    fn new(seed: u64) -> Writer {
        let (ledger, own) = (charter().ledger(), key(100));
        let credential = Credential::issue(&key(1), 1, &ledger, &own.public_key());
        Writer {
            random: StdRng::seed_from_u64(seed),
            client: Identity::new(ledger, own, credential),
            ledger,
            height: 0,
            previous: ledger,
            undecided: Vec::new(),
            transactions: Vec::new(),
        }
    }

    fn sql(&mut self) -> String {
        let (id, n) = (self.random.random_range(0..50), self.random.random_range(0..1_000));
        match self.random.random_range(0..12) {
            0 => format!("CREATE TABLE deal.t{id} (id int PRIMARY KEY, n int)"),
            1 => "ALTER TABLE deal.t ADD COLUMN IF NOT EXISTS note text".to_string(),
            2 => format!("CREATE INDEX ON deal.t (n, id, {id})"),
            3 => format!("DELETE FROM deal.t WHERE id = {id}"),
            4 | 5 => format!("UPDATE deal.t SET n = n + {n} WHERE id >= {id}"),
            _ => format!("INSERT INTO deal.t (id, n) VALUES ({id}, {n})"),
        }
    }

    /// A transaction with a part in `deal`, perhaps with another one elsewhere.
    fn transaction(
        &mut self,
        sql: &str,
        is_crossing: bool,
    ) -> (SignedTransaction, HeldPart, StatementResult) {
        let payload = |sql: &str| Payload::Script { sql: sql.to_string(), parameters: vec![] };
        let mut payloads = vec![("deal".to_string(), payload(sql))];
        let mut result = PartMembers::to_result(&[]);
        if is_crossing {
            payloads.push(("other".to_string(), payload("SELECT 1")));
            let of = |schema: &str, number, organisations: &[u16]| PartMembers {
                schema: schema.to_string(),
                number,
                organisations: organisations.to_vec(),
            };
            result = PartMembers::to_result(&[of("deal", DEAL, &[0, 1, 2]), of("other", OTHER, &[0, 3])]);
        }
        let (signed, mut parts) = self.client.sign_parts(payloads, self.height + 500);
        let (transaction, schema) = (signed.transaction.id(), "deal".to_string());
        self.transactions.push(transaction);
        (signed, HeldPart { transaction, schema, part: parts.remove("deal").expect("it has one") }, result)
    }

    /// Outcomes of both schemas, which decide what waits, or leave it to the window.
    fn certificates(&mut self, twin: &Member) -> Option<(SignedTransaction, StatementResult)> {
        let said = twin.attested(self.height);
        let mut certificates = Vec::new();
        let sign = |statement: SchemaOutcome, who: &[u16]| {
            let sign = |member: &u16| {
                (*member, SchemaAttestation::sign(statement.clone(), *member, &key(*member)).signature)
            };
            SchemaCertificate { signatures: who.iter().map(sign).collect(), statement: statement.clone() }
        };
        let is_due = |said: &SchemaOutcome| !said.votes.is_empty() || said.height.is_multiple_of(16);
        if let Some(said) = said.filter(is_due).filter(|_| self.random.random_bool(0.8)) {
            certificates.push(sign(said, &[0, 1]));
        }
        for (height, index) in std::mem::take(&mut self.undecided) {
            let (yes, no) = match self.random.random_range(0..4) {
                0 => continue,
                1 => (vec![], vec![index]),
                _ => (vec![index], vec![]),
            };
            let votes = vec![PartVotes { height, yes, no }];
            let (ledger, outcome) = (self.ledger, crypto::sha256(&[&height.to_le_bytes()]));
            let statement =
                SchemaOutcome { ledger, schema: OTHER, height: self.height, outcome, votes, moves: vec![] };
            certificates.push(sign(statement, &[0, 3]));
        }
        if certificates.is_empty() {
            return None;
        }
        let attesting = |schema: &str, number, organisations: &[u16]| AttestingMembers {
            schema: schema.to_string(),
            number,
            changed: SINCE,
            organisations: organisations.to_vec(),
        };
        let result = AttestingMembers::to_result(&[
            attesting("deal", DEAL, &[0, 1, 2]),
            attesting("other", OTHER, &[0, 3]),
        ]);
        let signed = self.client.sign_repeatable(Payload::SchemaOutcomes { certificates }, self.height + 9);
        Some((signed, result))
    }

    /// The next block, and the parts in it.
    fn next(&mut self, twin: &Member) -> (BlockRecord, Vec<HeldPart>) {
        let (mut transactions, mut results, mut parts) = (Vec::new(), Vec::new(), Vec::new());
        if let Some((signed, result)) = self.certificates(twin) {
            transactions.push(signed);
            results.push(result);
        }
        self.height += 1;
        let is_first = self.height == SINCE + 1;
        let count = match is_first {
            true => 1,
            false if self.random.random_bool(0.08) => self.random.random_range(1..4),
            false => 0,
        };
        for _ in 0..count {
            let is_crossing = !is_first && self.random.random_bool(0.3);
            let sql = match is_first {
                true => "CREATE TABLE deal.t (id int PRIMARY KEY, n int)".to_string(),
                false => self.sql(),
            };
            let (signed, part, result) = self.transaction(&sql, is_crossing);
            if is_crossing {
                self.undecided.push((self.height, transactions.len() as u32));
            }
            transactions.push(signed);
            results.push(result);
            parts.push(part);
        }
        (self.record(&transactions, results), parts)
    }

    fn record(&mut self, transactions: &[SignedTransaction], results: Vec<StatementResult>) -> BlockRecord {
        let (height, ledger) = (self.height, self.ledger);
        let bytes: Vec<Bytes> = transactions.iter().map(|one| Bytes::from(one.to_bytes())).collect();
        let header = BlockHeader {
            ledger,
            height,
            timestamp_ms: height * 100,
            previous: self.previous,
            transactions_root: transactions_root(&bytes),
            transactions: bytes.len() as u32,
            proposer: 0,
            certified_height: 0,
            attested: Attested::default().digest(),
            charters: ledger,
        };
        self.previous = header.digest();
        let receipt = |(index, (one, result)): (u32, (&SignedTransaction, StatementResult))| Receipt {
            transaction: one.transaction.id(),
            height,
            index,
            outcome: Outcome::Committed(vec![result]),
        };
        let receipts = (0..).zip(transactions.iter().zip(results)).map(receipt).collect();
        let outcome = OutcomeHeader {
            ledger,
            height,
            block: header.digest(),
            previous: ledger,
            receipts_root: Digest::ZERO,
            state_digest: Digest::ZERO,
            charters: ledger,
        };
        BlockRecord {
            block: Block { header, attested: Attested::default(), transactions: bytes },
            certificate: Bytes::from_static(b"final"),
            outcome: BlockOutcome { receipts, digest: BlockDigest::default(), header: outcome },
        }
    }
}

/// A member whose ledger ends with the block that has written this row.
pub(super) fn written_row(folder: &Path) -> (PrivateSchemas, Table, Key) {
    let mut member = Member::new(folder.to_path_buf(), None);
    member.start();
    let mut writer = Writer::new(7);
    for sql in ["", "CREATE TABLE deal.t (id int PRIMARY KEY, n int)", "INSERT INTO deal.t VALUES (1, 10)"] {
        writer.height += 1;
        let (signed, part, result) = writer.transaction(sql, false);
        let (transactions, results) =
            if sql.is_empty() { (vec![], vec![]) } else { (vec![signed], vec![result]) };
        member.take(&writer.record(&transactions, results), &[part]);
        member.go_on();
    }
    let rows = member.rows();
    let [(RowId { table, key }, _, Some(3))] = &rows[..] else { panic!("{rows:?}") };
    let private = member.private.take().expect("it runs");
    let snapshot = private.state.lock().schemas[&DEAL].executor.view().snapshot;
    let mut tables = snapshot.catalog().tables.values();
    let table = tables.find(|known| known.id == *table).expect("it was created");
    let table = Table::clone(table);
    (private, table, key.clone())
}

/// The next block, which the ledger does not have yet, has brought a certificate of the last one.
pub(super) fn executed_ahead(private: &PrivateSchemas) {
    let height = private.tip();
    let certified = Some(CertifiedAt { height, block: height + 1, index: 0, number: 0 });
    let (secret, definitions) = (Digest::ZERO, Vec::new());
    let note = BlockNote { height: height + 1, secret, definitions, attested: None, certified };
    let mut state = private.state.lock();
    let schema = state.schemas.get_mut(&DEAL).expect("it has begun");
    schema.opened.put(&note, None).expect("written");
}

/// Both say the same of everything.
fn agree(twin: &Member, member: &Member, writer: &Writer) {
    let height = writer.height;
    assert_eq!(twin.private().height_of(DEAL), height);
    assert_eq!(member.private().height_of(DEAL), height);
    assert_eq!(member.attested(height), twin.attested(height), "height {height}");
    assert_eq!(member.rows(), twin.rows(), "height {height}");
    let last: Vec<(TransactionId, &str)> =
        writer.transactions.iter().rev().take(100).map(|id| (*id, "deal")).collect();
    assert_eq!(member.private().ended(&last), twin.private().ended(&last), "height {height}");
    let states = (twin.private().state.lock(), member.private().state.lock());
    let (expected, found) = (&states.0.schemas[&DEAL], &states.1.schemas[&DEAL]);
    assert_eq!(found.executor.certified(), expected.executor.certified());
    assert_eq!(found.executor.undecided().count(), expected.executor.undecided().count());
    for at in (SINCE..=height).step_by(7) {
        assert_eq!(found.opened.covering(at), expected.opened.covering(at), "height {at}");
    }
    let blocks = |schema: &super::schemas::Schema| {
        let blocks = schema.opened.blocks(SINCE, height).read().collect::<Result<Vec<_>, _>>();
        blocks.expect("readable")
    };
    assert_eq!(blocks(found), blocks(expected), "height {height}");
}

/// Both execute so many blocks.
fn go_together(blocks: usize, (twin, member): (&Member, &Member), writer: &mut Writer) {
    for _ in 0..blocks {
        let (record, parts) = writer.next(twin);
        twin.take(&record, &parts);
        member.take(&record, &parts);
        twin.go_on();
        member.go_on();
    }
}

fn starts_again_and_again(seed: u64, choice: StoreChoice) -> Vec<u64> {
    let folder = tempfile::tempdir().expect("a folder");
    let mut twin = Member::new(folder.path().join("twin"), None);
    let mut member = Member::new(folder.path().join("member"), Some(choice));
    let mut writer = Writer::new(seed);
    twin.start();
    member.start();
    for _ in 0..3_400 {
        let (record, parts) = writer.next(&twin);
        twin.take(&record, &parts);
        member.take(&record, &parts);
        twin.go_on();
        if writer.random.random_bool(0.2) {
            member.go_on();
        }
        if writer.random.random_bool(0.002) {
            member.stop();
            member.start();
            agree(&twin, &member, &writer);
        }
    }
    member.go_on();
    agree(&twin, &member, &writer);
    member.began
}

#[test]
fn a_member_that_starts_goes_on_where_its_schema_stands_and_comes_to_the_same() {
    let disk = StoreChoice { kind: StoreKind::Disk, memory_megabytes: Some(16) };
    for (seed, choice) in (1..=4).zip([StoreChoice::default(), disk].into_iter().cycle()) {
        let began = starts_again_and_again(seed, choice);
        let resumed = began.iter().filter(|height| **height > SINCE).count();
        assert!(resumed > 0 && began.last().is_some_and(|last| *last >= 1_000), "seed {seed}: {began:?}");
    }
}

#[test]
fn a_member_whose_outcome_is_not_that_of_the_others_begins_at_the_beginning() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut twin = Member::new(folder.path().join("twin"), None);
    let mut member = Member::new(folder.path().join("member"), Some(StoreChoice::default()));
    let mut writer = Writer::new(5);
    twin.start();
    member.start();
    go_together(1_300, (&twin, &member), &mut writer);
    member.stop();
    member.start();
    member.private().differs(&members(), writer.height);
    let problem = member.private().problem("deal").expect("it has stopped");
    assert!(problem.contains("is not that of the other members"), "{problem}");
    member.stop();
    member.start();
    agree(&twin, &member, &writer);
    go_together(1_300, (&twin, &member), &mut writer);
    member.stop();
    member.start();
    let [_, first, second, third] = member.began[..] else { panic!("{:?}", member.began) };
    assert!(first > SINCE && second == SINCE && third > SINCE, "{:?}", member.began);
}

/// What is done to the folder of a node's schemas, and how it is called.
type Damage = (&'static str, fn(&Path));

/// What it takes up is damaged, or some of it is missing.
#[test]
fn whatever_is_damaged_the_member_comes_to_the_same() {
    let damages: [Damage; 4] = [
        ("the end of what blocks came to is missing", |schemas| {
            let path = schemas.join("opened-1.log");
            let length = std::fs::metadata(&path).expect("it is there").len();
            let file = std::fs::File::options().write(true).open(&path).expect("it is there");
            file.set_len(length / 2).expect("cut");
        }),
        ("a byte of it is another one", |schemas| {
            let path = schemas.join("opened-1.log");
            let mut bytes = std::fs::read(&path).expect("it is there");
            let middle = bytes.len() / 3;
            bytes[middle] ^= 1;
            std::fs::write(&path, bytes).expect("written");
        }),
        ("it is gone", |schemas| {
            std::fs::remove_file(schemas.join("opened-1.log")).expect("it is there");
        }),
        ("the rows are damaged", |schemas| {
            let stores = std::fs::read_dir(schemas.join("state-1")).expect("a folder").flatten();
            for store in stores.filter(|entry| entry.path().is_dir()) {
                for file in std::fs::read_dir(store.path().join("tables")).expect("a folder").flatten() {
                    let mut bytes = std::fs::read(file.path()).expect("it is there");
                    let (first, last) = (bytes.len() / 4, bytes.len() * 3 / 4);
                    (first..last).step_by(50).for_each(|at| bytes[at] ^= 4);
                    std::fs::write(file.path(), bytes).expect("written");
                }
            }
        }),
    ];
    let folder = tempfile::tempdir().expect("a folder");
    let mut twin = Member::new(folder.path().join("twin"), None);
    let mut member = Member::new(folder.path().join("member"), Some(StoreChoice::default()));
    let mut writer = Writer::new(9);
    twin.start();
    member.start();
    for (what, damage) in damages {
        go_together(1_300, (&twin, &member), &mut writer);
        member.stop();
        member.start();
        let began = member.began.last().copied();
        assert!(began.is_some_and(|began| began > SINCE), "{what}: whole, it is taken up");
        member.stop();
        damage(&member.folder.join("schemas"));
        member.start();
        assert_eq!(member.began.last(), Some(&SINCE), "{what}");
        agree(&twin, &member, &writer);
    }
}
