//! One schema at one of its members: an engine with rows and a catalog of its own, which executes the schema's parts block by
//! block.

use super::agreed::{AgreedIn, KnownSigners};
use super::block::BlockOfParts;
use super::opened::{Definitions, OpenedBlock};
use super::opened_store::{BlockNote, CameBefore, CertifiedAt};
use super::part_store::PartStore;
use super::undecided::{Undecided, by_height, moves_by_height};
use super::view::SchemaView;
use crate::NodeError;
use crate::faults::{Defence, Faults};
use concurrency::parts::{Decided, PartsRule};
use crypto::{Digest, sha256};
use engine::{Engine, ExecutedSchemaBlock, SchemaBlock, SchemaEngine, VerifiedTransaction};
use state::{
    AfterImage, CheckpointHeader, CheckpointProgress, LiveRequests, Reopened, ResumePoint, Stores, Version,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use types::{
    BlockHeader, Catalog, Charter, ExecutionVersion, KnownVersions, Organisation, Outcome, PartMembers,
    SchemaBlockOutcome, SchemaMembers, SchemaOutcome, Statement, Table, TableId, TransactionId, limits,
};

/// At heights that this divides members attest a schema's outcome in which something has happened that stands in no certificate in
/// the ledger. Such a transaction in a schema in so many blocks costs nothing to speak of; and whoever waits for a proof of what has
/// just happened asks for a certificate at once.
const CERTIFIED_EVERY_BLOCKS: u64 = 16;
/// Own words on blocks that are compared with certificates which come into the ledger.
const ATTESTED_REMEMBERED: usize = 20_000;

const SECRET_DOMAIN: &[u8] = b"entente schema secret 1\0";
const OUTCOME_DOMAIN: &[u8] = b"entente salted schema outcome 1\0";

/// A schema has no checkpoints of its own, which members would attest: it can be made again from the ledger and the parts.
const NO_CHECKPOINTS: u32 = u32::MAX;

/// How a part has ended.
pub(super) struct EndedPart {
    pub(super) transaction: TransactionId,
    pub(super) outcome: Outcome,
}

/// A block that was executed in a schema.
pub(super) struct ExecutedParts {
    /// What this member attests, if anything.
    pub(super) outcome: Option<SchemaOutcome>,
    /// What can be shown of it, with the rows that it wrote; from execution version 5 on, where something has happened.
    pub(super) opened: Option<(OpenedBlock, Vec<AfterImage>)>,
    /// What is to be noted of it, if anything.
    pub(super) note: Option<BlockNote>,
    pub(super) ended: Vec<EndedPart>,
    /// What was decided in it.
    pub(super) decided: Vec<Decided>,
}

impl ExecutedParts {
    /// The certificate in it that covers most.
    pub(super) fn certified(&self) -> Option<CertifiedAt> {
        self.note.as_ref()?.certified
    }
}

/// Which schema is executed, and how.
#[derive(Clone, Copy)]
pub(super) struct Executed<'a> {
    pub(super) name: &'a str,
    pub(super) members: &'a Arc<SchemaMembers>,
    /// The one that held where the schema was created.
    pub(super) charter: &'a Charter,
    pub(super) known_versions: KnownVersions,
    /// What a test has switched off.
    pub(super) faults: Option<&'a Faults>,
}

/// A schema that this organisation is a member of.
pub(super) struct SchemaExecutor {
    name: Arc<str>,
    members: Arc<SchemaMembers>,
    engine: SchemaEngine,
    /// Transactions that have parts in other schemas, too.
    undecided: Undecided,
    /// Known to whoever has all parts so far, and to nobody else: outcomes that stand in blocks are told from it, so that nobody
    /// finds rows by trying.
    secret: Digest,
    attested: Attested,
    definitions: Definitions,
    signers: KnownSigners,
}

/// What this member has attested of a schema, from execution version 5 on.
struct Attested {
    /// The last block in which something has happened, and what stands for it.
    last: (u64, Digest),
    /// The highest height that a certificate in the ledger is about.
    certified: u64,
    /// Own words on blocks behind that.
    words: BTreeMap<u64, Digest>,
}

impl SchemaExecutor {
    /// The empty schema behind the block that has created it.
    ///
    /// # Errors
    /// Its rows cannot be kept, or not be executed.
    pub(super) fn begin(of: Executed<'_>, stores: &dyn Stores) -> Result<SchemaExecutor, NodeError> {
        let Executed { name, members, charter, .. } = of;
        let own = Arc::new(own_charter(name, members, charter));
        let ledger = own.ledger();
        let header =
            CheckpointHeader { ledger, height: members.since, state_digest: ledger, outcome: ledger };
        let catalog = Arc::new(Catalog::of_schema(name, members, own.clone()));
        let state = stores.begin(Version::after_block(members.since), catalog)?.finish()?;
        let point = ResumePoint { header, progress: CheckpointProgress::default() };
        let reopened = Reopened { point, state, live: LiveRequests::new() };
        let first = SchemaBlockOutcome::first(&charter.ledger(), members.number);
        let attested = Attested { last: (0, first), certified: 0, words: BTreeMap::new() };
        SchemaExecutor::on(of, own, reopened, (Digest::ZERO, attested, Definitions::default()))
    }

    /// The schema as an earlier process has left it, where nothing of it waited.
    ///
    /// # Errors
    /// Why it is not to be taken up: it is that of another schema, or cannot be executed.
    pub(super) fn resume(
        of: Executed<'_>,
        reopened: Reopened,
        before: &mut CameBefore,
        charter_at: &dyn Fn(u64) -> Arc<Charter>,
    ) -> Result<SchemaExecutor, String> {
        let Executed { name, members, charter, .. } = of;
        let own = Arc::new(own_charter(name, members, charter));
        let (expected, found) = (own.ledger(), reopened.point.header.ledger);
        if found != expected {
            return Err(format!("expected the rows of {expected}, found those of {found}"));
        }
        let CameBefore { secret, last, certified, attested, .. } = before;
        let (secret, last, certified) = (*secret, *last, *certified);
        let first = SchemaBlockOutcome::first(&charter.ledger(), members.number);
        let opens = |said: &&SchemaOutcome| is_opened(&charter_at(said.height));
        let behind = attested.iter().filter(|said| said.height > certified).filter(opens);
        let words = behind.map(|said| (said.height, said.digest())).collect();
        let attested = Attested { last: last.unwrap_or((0, first)), certified, words };
        let definitions = std::mem::take(&mut before.definitions);
        let resumed = SchemaExecutor::on(of, own, reopened, (secret, attested, definitions));
        resumed.map_err(|error| error.to_string())
    }

    fn on(
        Executed { name, members, known_versions, faults, .. }: Executed<'_>,
        charter: Arc<Charter>,
        Reopened { point, state, live }: Reopened,
        (secret, attested, definitions): (Digest, Attested, Definitions),
    ) -> Result<SchemaExecutor, NodeError> {
        let ResumePoint { header, progress } = point;
        let engine = Engine::continued(charter, (&header, progress), (state, live), known_versions)?;
        let mut engine = SchemaEngine::new(engine);
        if Faults::lack(faults, Defence::PartLocks) {
            engine = engine.without(PartsRule::Locks);
        }
        let has = |defence| !Faults::lack(faults, defence);
        let undecided = Undecided::with((has(Defence::VotesOfQuorum), has(Defence::MovesCompared)));
        let (name, members) = (Arc::from(name), members.clone());
        let signers = KnownSigners::default();
        Ok(SchemaExecutor { name, members, engine, undecided, secret, attested, definitions, signers })
    }

    pub(super) fn name(&self) -> &Arc<str> {
        &self.name
    }

    pub(super) fn members(&self) -> &Arc<SchemaMembers> {
        &self.members
    }

    /// Members have come or left.
    pub(super) fn change_members(&mut self, members: &Arc<SchemaMembers>) {
        self.members = members.clone();
    }

    /// Height of the last block that was executed.
    pub(super) fn height(&self) -> u64 {
        self.engine.height()
    }

    pub(super) fn view(&self) -> SchemaView {
        SchemaView { members: self.members.clone(), snapshot: self.engine.snapshot() }
    }

    /// Transactions that have parts in other schemas, too, and wait for votes.
    pub(super) fn undecided(&self) -> &Undecided {
        &self.undecided
    }

    /// The highest height that a certificate in the ledger is about.
    pub(super) fn certified(&self) -> u64 {
        self.attested.certified
    }

    /// Whose word is to bring this outcome into the ledger: a quorum of them certifies what stands in no certificate yet. `asked`:
    /// somebody waits for it.
    pub(super) fn needs_certificate(&self, outcome: &SchemaOutcome, asked: bool) -> Option<PartMembers> {
        let (height, members) = (outcome.height, &self.members);
        let is_open = self.attested.words.contains_key(&height) && height >= members.changed;
        (is_open && (asked || height.is_multiple_of(CERTIFIED_EVERY_BLOCKS))).then(|| PartMembers {
            schema: self.name.to_string(),
            number: members.number,
            organisations: members.organisations.clone(),
        })
    }

    /// A table's definition, now or before, that leaves of rows name so.
    pub(super) fn definition(&self, digest: &Digest) -> Option<Arc<Table>> {
        self.definitions.of(digest).cloned()
    }

    /// The digests of a table's definitions.
    pub(super) fn definitions_of(&self, table: TableId) -> Vec<Digest> {
        self.definitions.of_table(table).copied().collect()
    }

    /// Executes the next block, with parts from this store. `Err` in `Ok`: this transaction's part is not here.
    ///
    /// # Errors
    /// The schema cannot go on.
    pub(super) fn execute(
        &mut self,
        block: &BlockOfParts,
        parts: &PartStore,
        charter_at: &dyn Fn(u64) -> Arc<Charter>,
    ) -> Result<Result<ExecutedParts, Arc<VerifiedTransaction>>, NodeError> {
        let (header, mut own, mut secret) = (&block.header, Vec::new(), self.secret);
        let (charter, ledger) = (charter_at(header.height), header.ledger);
        let (known, schema) = (&mut self.signers, &self.name);
        let mut agreed = AgreedIn { known, ledger, schema, charter: &charter };
        for ordered in block.transactions.iter().filter(|ordered| ordered.concerns(&self.name)) {
            let Some(part) = parts.get(&ordered.transaction.id, &self.name)? else {
                return Ok(Err(ordered.transaction.clone()));
            };
            secret = sha256(&[SECRET_DOMAIN, &secret.0, &part.salt]);
            own.push(agreed.part(ordered, part, header.timestamp_ms));
        }
        let decisions = self.undecided.block(block, &self.name, charter_at);
        let decided = decisions.clone();
        let certified = self.follow_certificates(block, charter_at)?;
        let undecided = self.undecided.count() > 0;
        // A node stops in front of a block whose rules it does not know.
        let version =
            ExecutionVersion::of_number(charter.execution_version).unwrap_or(ExecutionVersion::NEWEST);
        let block = SchemaBlock { header: header.clone(), decisions, parts: own, undecided, version };
        let executed = self.engine.execute(block)?;
        let is_secret_new = std::mem::replace(&mut self.secret, secret) != secret;
        let (outcome, opened) = match is_opened(&charter_at(header.height)) {
            true => self.attest_opened(header, &executed),
            false => (self.attest(header, &executed), None),
        };
        let is_noted = is_secret_new || executed.is_due || outcome.is_some() || certified.is_some();
        let note = is_noted.then(|| BlockNote {
            height: header.height,
            secret,
            definitions: self.definitions.take_new(),
            attested: outcome.clone(),
            certified,
        });
        let mut changes = executed.changes;
        changes.retain(|image| self.definitions.has(image.row.table));
        let opened = opened.map(|opened| (opened, changes));
        let ended = executed.ended.into_iter();
        let ended = ended.map(|(transaction, outcome)| EndedPart { transaction, outcome }).collect();
        Ok(Ok(ExecutedParts { outcome, opened, note, ended, decided }))
    }

    /// Stands for the whole state and everything before, and says nothing to others than members.
    fn salted_state(&self, executed: &ExecutedSchemaBlock) -> Digest {
        sha256(&[OUTCOME_DOMAIN, &self.secret.0, &executed.outcome.digest().0])
    }

    fn says(&self, header: &BlockHeader, executed: &ExecutedSchemaBlock, outcome: Digest) -> SchemaOutcome {
        let votes = by_height(&executed.votes);
        SchemaOutcome {
            ledger: header.ledger,
            schema: self.members.number,
            height: header.height,
            outcome,
            votes,
            moves: moves_by_height(&executed.moves),
        }
    }

    /// What this member says of a block up to execution version 4.
    fn attest(&self, header: &BlockHeader, executed: &ExecutedSchemaBlock) -> Option<SchemaOutcome> {
        happened(executed).then(|| self.says(header, executed, self.salted_state(executed)))
    }

    /// What this member says of a block, and what can be shown of it.
    fn attest_opened(
        &mut self,
        header: &BlockHeader,
        executed: &ExecutedSchemaBlock,
    ) -> (Option<SchemaOutcome>, Option<OpenedBlock>) {
        let height = header.height;
        let opened = happened(executed).then(|| {
            self.definitions.follow(self.engine.snapshot().catalog());
            OpenedBlock::new(
                (height, self.attested.last.1, executed.settled),
                (&self.secret, self.salted_state(executed)),
                &executed.ended,
                (&executed.changes, &self.definitions),
            )
        });
        if let Some(opened) = &opened {
            self.attested.last = (height, opened.outcome.digest());
        }
        let (last, digest) = self.attested.last;
        let is_due = height.is_multiple_of(CERTIFIED_EVERY_BLOCKS) && last > self.attested.certified;
        if opened.is_none() && !is_due {
            return (None, None);
        }
        let outcome = self.says(header, executed, digest);
        self.attested.words.insert(height, outcome.digest());
        if self.attested.words.len() > ATTESTED_REMEMBERED {
            self.attested.words.pop_first();
        }
        (Some(outcome), opened)
    }

    /// Holds certificates in a block against what this member has attested.
    ///
    /// # Errors
    /// A quorum says something else.
    fn follow_certificates(
        &mut self,
        block: &BlockOfParts,
        charter_at: &dyn Fn(u64) -> Arc<Charter>,
    ) -> Result<Option<CertifiedAt>, NodeError> {
        let mut certified = None;
        for ordered in &block.certificates {
            let statement = &ordered.certificate.statement;
            let (height, (index, number)) = (statement.height, ordered.place);
            let Some(own) =
                self.attested.words.get(&height).filter(|_| statement.schema == self.members.number)
            else {
                continue;
            };
            if !ordered.counts(charter_at, block.header.height) {
                continue;
            }
            if *own != statement.digest() {
                return Err(NodeError::SchemaDiffers { height, block: block.header.height });
            }
            self.attested.words = self.attested.words.split_off(&(height + 1));
            self.attested.certified = height;
            let number = number as u32;
            certified = Some(CertifiedAt { height, block: block.header.height, index, number });
        }
        Ok(certified)
    }
}

/// Whether what members attest opens piece by piece.
fn is_opened(charter: &Charter) -> bool {
    charter.execution_version >= ExecutionVersion::V5.number()
}

/// Whether there is anything in it that others might want to know.
fn happened(executed: &ExecutedSchemaBlock) -> bool {
    !executed.ended.is_empty() || !executed.votes.is_empty()
}

/// The charter that a schema is executed with: the ledger's, where every member may change what the schema defines. Its name makes
/// digests those of this schema alone.
///
/// Who may do something was said when the ledger admitted the transaction, by the charter of then. So all positions are taken: an
/// organisation that comes into the ledger later can become a member.
fn own_charter(name: &str, members: &SchemaMembers, charter: &Charter) -> Charter {
    let mut own = Charter {
        name: format!("schema {name} {} of {}", members.number, charter.ledger()),
        governance: "any".to_string(),
        checkpoint_blocks: NO_CHECKPOINTS,
        ..charter.clone()
    };
    for organisation in &mut own.organisations {
        organisation.removed = false;
    }
    while own.organisations.len() < limits::ORGANISATIONS_MAX {
        let name = format!("organisation {}", own.organisations.len() + 1);
        let unnamed = Organisation { name, ..own.organisations[0].clone() };
        own.organisations.push(unnamed);
    }
    own
}

#[cfg(test)]
mod tests {
    use super::super::block::{OrderedCertificate, OrderedParts};
    use super::super::four_members::{charter, key};
    use super::super::part_store::HeldPart;
    use super::*;
    use concurrency::parts::LedgerPosition;
    use types::{
        AttestingMembers, Credential, Identity, Payload, SchemaAttestation, SchemaCertificate, decode_exactly,
    };

    /// A schema of three of four organisations at one member, with what it holds.
    struct Member {
        executor: SchemaExecutor,
        parts: PartStore,
        charter: Arc<Charter>,
        height: u64,
        _folder: tempfile::TempDir,
    }

    fn members() -> Arc<SchemaMembers> {
        Arc::new(SchemaMembers { number: 7, since: 1, changed: 1, organisations: vec![0, 1, 2] })
    }

    fn deal<'a>(members: &'a Arc<SchemaMembers>, charter: &'a Charter) -> Executed<'a> {
        let known_versions = KnownVersions::default();
        Executed { name: "deal", members, charter, known_versions, faults: None }
    }

    impl Member {
        fn new(version: ExecutionVersion) -> Member {
            let charter = Arc::new(Charter { execution_version: version.number(), ..charter() });
            let folder = tempfile::tempdir().expect("a folder");
            let parts = PartStore::open(folder.path(), ledger::Disk::default()).expect("opened");
            let executor =
                SchemaExecutor::begin(deal(&members(), &charter), &memory::Memory).expect("it begins");
            Member { executor, parts, charter, height: 1, _folder: folder }
        }

        fn ordered(&self, request: u8, sql: &str) -> OrderedParts {
            let (client, ledger) = (key(9), self.charter.ledger());
            let credential = Credential::issue(&key(0), 0, &ledger, &client.public_key());
            let identity = Identity::new(ledger, client, credential);
            let payload = Payload::Script { sql: sql.to_string(), parameters: vec![] };
            let (signed, mut parts) = identity.sign_parts([("deal".to_string(), payload)], 1_000);
            let transaction = signed.transaction.id();
            let mut part = parts.remove("deal").expect("its part");
            // Members that are compared hold the same.
            part.salt = [request; 32];
            let held = HeldPart { transaction, schema: "deal".into(), part };
            self.parts.put([held]).expect("stored");
            let position = LedgerPosition { height: self.height + 1, index: 0 };
            OrderedParts { position, transaction: Arc::new(signed.into()), members: [].into() }
        }

        fn next(
            &mut self,
            transactions: Vec<OrderedParts>,
            certificates: Vec<OrderedCertificate>,
        ) -> Result<ExecutedParts, NodeError> {
            self.height += 1;
            let header = BlockHeader {
                ledger: self.charter.ledger(),
                height: self.height,
                timestamp_ms: self.height,
                previous: Digest::ZERO,
                transactions_root: Digest::ZERO,
                transactions: 0,
                proposer: 0,
                certified_height: 0,
                attested: Digest::ZERO,
                charters: self.charter.ledger(),
            };
            let block = BlockOfParts { header, transactions, certificates };
            let charter = self.charter.clone();
            let executed = self.executor.execute(&block, &self.parts, &|_| charter.clone())?;
            Ok(executed.unwrap_or_else(|missing| panic!("{} is missing", missing.id)))
        }

        fn run(&mut self, request: u8, sql: &str) -> ExecutedParts {
            let ordered = self.ordered(request, sql);
            self.next(vec![ordered], vec![]).expect("executed")
        }

        /// An idle block.
        fn idle(&mut self) -> ExecutedParts {
            self.next(vec![], vec![]).expect("executed")
        }
    }

    fn certificate(statement: SchemaOutcome, who: &[u16], changed: u64) -> OrderedCertificate {
        let sign = |member: &u16| {
            (*member, SchemaAttestation::sign(statement.clone(), *member, &key(*member)).signature)
        };
        let signatures = who.iter().map(sign).collect();
        let attesting = AttestingMembers {
            schema: "deal".into(),
            number: 7,
            changed,
            organisations: members().organisations.clone(),
        };
        OrderedCertificate::new(SchemaCertificate { signatures, statement }, (3, 0), Some(attesting))
    }

    const TABLE: &str = "CREATE TABLE deal.t (id int PRIMARY KEY, n int)";

    #[test]
    fn members_attest_what_happens_and_until_a_certificate_covers_it_at_heights_that_16_divides() {
        let mut member = Member::new(ExecutionVersion::V5);
        assert!(member.idle().outcome.is_none(), "nothing has happened");
        let created = member.run(1, TABLE);
        let (first, opened) =
            (created.outcome.expect("attested"), created.opened.expect("it can be shown").0);
        assert_eq!((first.height, first.outcome), (3, opened.outcome.digest()));
        let ledger = member.charter.ledger();
        assert_eq!(opened.outcome.previous, SchemaBlockOutcome::first(&ledger, 7));
        assert_eq!(opened.outcome.settled, 3);
        let second = member.run(2, "INSERT INTO deal.t VALUES (1, 10)").opened.expect("it can be shown").0;
        assert_eq!(second.outcome.previous, opened.outcome.digest(), "a chain");
        let attested: Vec<Option<SchemaOutcome>> = (5..=32).map(|_| member.idle().outcome).collect();
        let heights: Vec<u64> = attested.iter().flatten().map(|outcome| outcome.height).collect();
        assert_eq!(heights, [16, 32]);
        let last = attested[27].clone().expect("of height 32");
        assert_eq!(last.outcome, second.outcome.digest(), "nothing has happened since");
        assert!(member.executor.needs_certificate(&last, false).is_some());
        assert!(member.executor.needs_certificate(&first, false).is_none(), "16 does not divide 3");
        assert!(member.executor.needs_certificate(&first, true).is_some(), "somebody waits for it");
        let certified = member.next(vec![], vec![certificate(last.clone(), &[0, 2], 1)]).expect("executed");
        let at = CertifiedAt { height: 32, block: 33, index: 3, number: 0 };
        assert_eq!(certified.certified(), Some(at));
        assert!(member.executor.needs_certificate(&last, true).is_none());
        assert!((34..100).all(|_| member.idle().outcome.is_none()), "an idle schema costs nothing");
    }

    #[test]
    fn a_quorum_that_says_something_else_stops_the_schema_and_a_minority_says_nothing() {
        let of = |change: &dyn Fn(&mut SchemaOutcome), who: &[u16], changed: u64| {
            let mut member = Member::new(ExecutionVersion::V5);
            let mut outcome = member.run(1, TABLE).outcome.expect("attested");
            change(&mut outcome);
            let next = member.next(vec![], vec![certificate(outcome, who, changed)]);
            next.map(|executed| executed.certified().map(|at| at.height))
        };
        let other = |outcome: &mut SchemaOutcome| outcome.outcome.0[0] ^= 1;
        assert_eq!(of(&|_| (), &[0, 1], 1).expect("the same"), Some(2));
        assert!(matches!(of(&other, &[0, 1], 1), Err(NodeError::SchemaDiffers { height: 2, block: 3 })));
        assert_eq!(of(&other, &[1], 1).expect("one of three"), None);
        assert_eq!(of(&other, &[1, 3], 1).expect("and a stranger"), None);
        assert_eq!(of(&|_| (), &[0, 1], 3).expect("they have become members behind it"), None);
        let wrong = |change: &dyn Fn(&mut SchemaOutcome)| of(change, &[0, 1], 1).expect("it says nothing");
        assert_eq!(wrong(&|outcome| outcome.schema = 8), None);
        assert_eq!(wrong(&|outcome| outcome.height = 90), None, "of a block that is still to come");
        assert_eq!(wrong(&|outcome| outcome.ledger = Digest::ZERO), None);
    }

    #[test]
    fn a_schema_of_version_4_attests_what_it_did_and_nothing_can_be_shown() {
        let mut member = Member::new(ExecutionVersion::V4);
        let created = member.run(1, TABLE);
        let outcome = created.outcome.expect("attested");
        assert!(created.opened.is_none());
        let (secret, state) = (member.executor.secret, member.executor.attested.last);
        assert_eq!(state, (0, SchemaBlockOutcome::first(&member.charter.ledger(), 7)));
        assert_eq!(secret, sha256(&[SECRET_DOMAIN, &Digest::ZERO.0, &[1; 32]]));
        assert!((3..40).all(|_| member.idle().outcome.is_none()));
        let next = member.next(vec![], vec![certificate(outcome, &[0, 1, 2], 1)]);
        assert_eq!(next.expect("executed").certified(), None);
    }

    #[test]
    fn rows_and_receipts_of_every_block_are_shown_by_every_member_alike() {
        let statements = [
            TABLE,
            "INSERT INTO deal.t SELECT n, n FROM generate_series(1, 20) AS n",
            "UPDATE deal.t SET n = n * 2 WHERE id > 5",
            "INSERT INTO deal.t VALUES (1, 1)",
            "ALTER TABLE deal.t ADD COLUMN note text",
            "DELETE FROM deal.t WHERE id < 3",
        ];
        let (mut first, mut second) = (Member::new(ExecutionVersion::V5), Member::new(ExecutionVersion::V5));
        for (request, sql) in (1..).zip(statements) {
            let ordered = first.ordered(request, sql);
            let (id, schema) = (ordered.transaction.id, "deal".to_string());
            let part = first.parts.get(&id, &schema).expect("readable").expect("stored");
            second.parts.put([HeldPart { transaction: id, schema, part }]).expect("stored");
            let one = first.next(vec![ordered.clone()], vec![]).expect("executed");
            let other = second.next(vec![ordered], vec![]).expect("executed");
            assert_eq!(one.outcome, other.outcome);
            let (opened, changes) = one.opened.expect("it can be shown");
            let shown = opened.receipt_of(&id).expect("it has ended");
            let receipt: types::Receipt = decode_exactly(shown.content).expect("a receipt");
            assert_eq!(receipt.outcome, one.ended[0].outcome);
            let mut rows = 0;
            for AfterImage { row, value } in changes.iter().filter(|image| image.row.table.is_made()) {
                let definitions = first.executor.definitions_of(row.table).into_iter();
                let begins =
                    definitions.map(|digest| [&digest.0, types::encode(&row.key).as_slice()].concat());
                let shown = begins.into_iter().find_map(|begin| {
                    let shown = opened.row_of(&begin)?;
                    Some(shown.content[begin.len()..].to_vec())
                });
                assert_eq!(shown, Some(types::encode(value)), "{sql}");
                rows += 1;
            }
            // A table that gets another shape has its rows written again.
            assert_eq!(rows, [0, 20, 15, 0, 20, 2][usize::from(request) - 1], "{sql}");
        }
    }
}
