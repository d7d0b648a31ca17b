use crate::chain::Chain;
use crate::content::ContentRules;
use crate::error::{AuditError, Fault, Part, RecordLocation, differs, equal};
use crate::schemas::{HeldParts, SchemaRules, SchemasReport};
use crate::signatures::SignatureRules;
use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use ledger::{
    Anchor, BlockOutcome, BlockRecord, LedgerError, LedgerFiles, Records, RedactedTransaction, StoredRecord,
    TornEnd,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use types::{Block, Charter, Charters, CheckpointCertificate, Receipt, TableId, TransactionId};

/// A piece is full with so many transactions or bytes.
const PIECE_TRANSACTIONS: u64 = 8_192;
const PIECE_BYTES: u64 = 8 << 20;
/// Pieces in memory per thread: one is checked, one waits.
const PIECES_PER_THREAD: usize = 2;
/// Characters of a receipt in an error.
const SHOWN: usize = 300;

/// Executes blocks in their order, from the charter on.
pub trait Replay {
    /// What the block comes to. `recorded`: the receipts that the ledger has for it.
    ///
    /// # Errors
    /// Why it cannot be executed.
    fn execute(&mut self, block: &Block, recorded: &[Receipt]) -> Result<BlockOutcome, String>;

    /// Executes what the block has for schemas with members whose parts are there, behind [`Replay::execute`], and holds what came of
    /// them against what their members have attested.
    ///
    /// # Errors
    /// In what they differ.
    fn execute_schemas(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// The certificate of the lowest certified checkpoint at or above a height whose state [`Replay::resume`] can take up; what it
    /// says the audit checks. `None` where there is no such checkpoint.
    ///
    /// # Errors
    /// Files cannot be read.
    fn checkpoint_from(&mut self, _height: u64) -> Result<Option<CheckpointCertificate>, String> {
        Ok(None)
    }

    /// Goes on from the state that a certificate proves, whatever was executed before.
    ///
    /// # Errors
    /// The state is not there, or not that one.
    fn resume(&mut self, certificate: &CheckpointCertificate) -> Result<(), String> {
        Err(format!("there is no state of height {}", certificate.statement.height))
    }

    /// What the members have agreed to redact, as the state of the last block says: the number of each proposal.
    fn redactions(&self) -> BTreeMap<u64, TransactionId> {
        BTreeMap::new()
    }

    /// Name of a table, for people.
    fn table_name(&self, table: TableId) -> String;
}

/// How a ledger is checked.
pub struct Options<'a> {
    /// Threads that check records.
    pub threads: usize,
    /// Executes what is recorded.
    pub replay: Option<&'a mut dyn Replay>,
    /// What the folder holds of schemas with members.
    pub parts: Option<Arc<dyn HeldParts>>,
}

impl Default for Options<'_> {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Options { threads, replay: None, parts: None }
    }
}

/// How far it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AuditProgress {
    /// Bytes checked.
    pub bytes: u64,
    /// Bytes of all files.
    pub bytes_total: u64,
    /// Height of the last block checked.
    pub height: u64,
    /// Transactions checked.
    pub transactions: u64,
    /// Blocks whose transactions are pruned: of these what is certified was checked.
    pub pruned_blocks: u64,
    /// Their transactions, as their headers count them.
    pub pruned_transactions: u64,
    /// Height of the last of them, 0 for none.
    pub pruned_to: u64,
    /// Transactions that are redacted: of these hash and place were checked.
    pub redacted: u64,
    /// Height of the block of the last of them, 0 for none.
    pub redacted_to: u64,
    /// Blocks that could not be executed again, because something of them or of those before them is redacted: a certified state
    /// behind them says what they came to.
    pub unexecuted_blocks: u64,
}

/// What was found.
#[derive(Debug, Default)]
pub struct Report {
    /// How far everything is right.
    pub checked: AuditProgress,
    /// Height of the first block: 1, or the one behind the certified checkpoint that the ledger's node joined from.
    pub first_height: u64,
    /// The highest height whose outcome a certificate in the ledger proves; those above are not certified yet.
    pub certified_height: u64,
    /// The charters that the blocks name; `None` where not even the beginning is right.
    pub charters: Option<Charters>,
    /// What was found of schemas with members.
    pub schemas: SchemasReport,
    /// A record at the end that a crash has torn or that is being written.
    pub torn: Option<TornEnd>,
    /// The first thing that is wrong.
    pub error: Option<AuditError>,
}

/// Records of a ledger in the order of their heights, wherever they are.
pub trait RecordSource: Iterator<Item = Result<StoredRecord, LedgerError>> + Send {
    /// What was found behind the last record, once that has been read.
    fn torn(&self) -> Option<TornEnd> {
        None
    }
}

impl RecordSource for Records {
    fn torn(&self) -> Option<TornEnd> {
        Records::torn(self).cloned()
    }
}

/// What of a ledger is checked.
pub struct Ledger<'l> {
    /// The records.
    pub records: Box<dyn RecordSource + 'l>,
    /// The block in front of the first one, where the ledger does not begin at height 1, and what names it in errors.
    pub anchor: Option<(Anchor, PathBuf)>,
    /// Bytes of all records, about, to tell how far it is.
    pub bytes: u64,
}

/// Checks the files of a ledger's folder, up to where they go now. `progress` hears of every piece.
///
/// # Errors
/// [`ordering::CertificateError`] where a member's key is none; a charter that passed its check has only good ones. What is
/// wrong with the ledger is in the report.
pub fn audit(
    charter: &Charter,
    folder: impl AsRef<Path>,
    options: Options<'_>,
    progress: &mut dyn FnMut(&AuditProgress),
) -> Result<Report, ordering::CertificateError> {
    let files = match LedgerFiles::open(folder, charter.ledger()) {
        Ok(files) => files,
        Err(error) => return Ok(Report { error: Some(error.into()), ..Report::default() }),
    };
    let anchor = files.anchor().map(|anchor| (anchor.clone(), files.anchor_path()));
    let bytes = files.bytes();
    audit_records(charter, Ledger { records: Box::new(files.records()), anchor, bytes }, options, progress)
}

/// Checks records, wherever they come from. Their heights are checked like everything else that they say.
///
/// # Errors
/// As [`audit`].
pub fn audit_records(
    charter: &Charter,
    ledger: Ledger<'_>,
    options: Options<'_>,
    progress: &mut dyn FnMut(&AuditProgress),
) -> Result<Report, ordering::CertificateError> {
    let founding = Arc::new(charter.clone());
    let Ledger { records, anchor, bytes } = ledger;
    let first_height = anchor.as_ref().map_or(1, |(anchor, _)| anchor.height() + 1);
    let wrong = |(anchor, path): &(Anchor, PathBuf), (part, what)| {
        let place = RecordLocation { path: path.clone(), offset: 0, height: anchor.height() };
        AuditError::Wrong { place, part, what }
    };
    let charters = match anchor.as_ref().map(|begin| (begin, begin.0.charters(&founding))) {
        None => Charters::new(founding),
        Some((_, Ok(charters))) => charters,
        Some((begin, Err(what))) => {
            let error = Some(wrong(begin, (Part::Charters, what)));
            return Ok(Report { first_height, error, ..Report::default() });
        }
    };
    let rules = Arc::new(Rules::new(&charters, options.parts)?);
    let begins = match &anchor {
        Some(_) if options.replay.is_some() => Err(AuditError::NoReplay { first: first_height }),
        Some(begin) => rules.content.check_anchor(&begin.0).map_err(|fault| wrong(begin, fault)),
        None => Ok(()),
    };
    if let Err(error) = begins {
        return Ok(Report { first_height, error: Some(error), ..Report::default() });
    }
    let mut consumer = Consumer {
        chain: Chain::new(charters.clone(), anchor.as_ref().map(|(anchor, _)| anchor)),
        replay: options.replay,
        resumes: None,
        redacted: Vec::new(),
        schemas: SchemasReport::default(),
        checked: AuditProgress { bytes_total: bytes, height: first_height - 1, ..AuditProgress::default() },
        progress,
    };
    let (torn, error) = consumer.check(ReaderParts { records, charters, rules }, options.threads.max(1));
    let error = error.or_else(|| consumer.check_consent());
    let Consumer { chain, checked, schemas, .. } = consumer;
    let (up_to, certified) = (checked.pruned_to, chain.certified());
    let error = error.or((certified < up_to).then_some(AuditError::PrunedUncertified { up_to, certified }));
    let up_to = checked.redacted_to;
    let error = error.or((certified < up_to).then_some(AuditError::RedactedUncertified { up_to, certified }));
    let charters = Some(chain.charters().clone());
    Ok(Report { checked, first_height, certified_height: chain.certified(), charters, schemas, torn, error })
}

struct Rules {
    content: ContentRules,
    signatures: SignatureRules,
    schemas: SchemaRules,
    parts: Option<Arc<dyn HeldParts>>,
}

/// Records that are checked together.
#[derive(Default)]
struct Piece {
    records: Vec<StoredRecord>,
    /// What comes behind them.
    error: Option<LedgerError>,
}

/// Records that are right by themselves, up to the first that is not.
struct CheckedPiece {
    records: Vec<(StoredRecord, BlockRecord, SchemasReport)>,
    error: Option<AuditError>,
}

/// What a reader begins with.
struct ReaderParts<'l> {
    records: Box<dyn RecordSource + 'l>,
    charters: Charters,
    rules: Arc<Rules>,
}

/// Reads pieces and has them checked, as many at a time as there are permits.
struct Reader<'l> {
    records: Box<dyn RecordSource + 'l>,
    /// Those that records before name, and the rules under them.
    charters: Charters,
    rules: Arc<Rules>,
    permitted: Receiver<()>,
    results: Sender<(u64, CheckedPiece)>,
}

impl Reader<'_> {
    fn run(mut self, threads: usize) -> Result<Option<TornEnd>, AuditError> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|number| format!("audit {number}"))
            .build()
            .map_err(|error| LedgerError::Io {
                action: "start threads to check",
                path: "the ledger".into(),
                source: std::io::Error::other(error),
            })?;
        for number in 0.. {
            // An error says that nobody wants to know any more.
            if self.permitted.recv().is_err() {
                break;
            }
            let (piece, rules) = self.next_piece();
            if piece.records.is_empty() && piece.error.is_none() {
                break;
            }
            let (results, last) = (self.results.clone(), piece.error.is_some());
            pool.spawn(move || {
                let _ = results.send((number, rules.check(piece)));
            });
            if last {
                break;
            }
        }
        Ok(self.records.torn())
    }

    /// Records that are checked under the same rules, and these. A piece ends with the record that carries an amended
    /// charter, which takes effect several heights later.
    fn next_piece(&mut self) -> (Piece, Arc<Rules>) {
        let mut piece = Piece::default();
        let rules = self.rules.clone();
        let (mut transactions, mut bytes) = (0, 0);
        while transactions < PIECE_TRANSACTIONS && bytes < PIECE_BYTES {
            match self.records.next() {
                None => break,
                Some(Ok(record)) => {
                    transactions += u64::from(record.summary().header.transactions);
                    bytes += record.bytes();
                    let amends = record.summary().header.charters != self.charters.digest();
                    if amends {
                        self.amend(&record);
                    }
                    piece.records.push(record);
                    if amends {
                        break;
                    }
                }
                Some(Err(error)) => {
                    piece.error = Some(error);
                    break;
                }
            }
        }
        (piece, rules)
    }

    /// Takes the charters that a record carries. Nothing here is believed: what is wrong with them is found when the record
    /// is checked, and nothing behind it counts then.
    fn amend(&mut self, record: &StoredRecord) {
        let Ok(record) = record.decode_what_is_kept() else { return };
        if self.charters.follow(&record.block.attested) == Ok(true)
            && let Ok(rules) = Rules::new(&self.charters, self.rules.parts.clone())
        {
            self.rules = Arc::new(rules);
        }
    }
}

fn wrong(stored: &StoredRecord, (part, what): Fault) -> AuditError {
    let (path, height) = (stored.path().to_path_buf(), stored.summary().header.height);
    AuditError::Wrong { place: RecordLocation { path, offset: stored.offset(), height }, part, what }
}

impl Rules {
    fn new(
        charters: &Charters,
        parts: Option<Arc<dyn HeldParts>>,
    ) -> Result<Rules, ordering::CertificateError> {
        let (content, signatures) = (ContentRules::new(charters)?, SignatureRules::new(charters.clone()));
        let schemas = SchemaRules::new(charters.clone(), parts.clone());
        Ok(Rules { content, signatures, schemas, parts })
    }

    fn check(&self, piece: Piece) -> CheckedPiece {
        let (mut blocks, mut error) = (Vec::new(), piece.error.map(AuditError::File));
        for stored in &piece.records {
            let checked = stored.decode_what_is_kept().map_err(AuditError::File).and_then(|record| {
                let summary = stored.summary();
                let ids = match (summary.pruned, summary.redacted) {
                    (true, _) => self.content.check_pruned(summary, &record).map(|()| Vec::new()),
                    (false, true) => {
                        let redacted = stored.redacted().map_err(AuditError::File)?;
                        self.content.check_redacted(summary, &record, &redacted)
                    }
                    (false, false) => self.content.check(summary, &record),
                };
                ids.map(|ids| (record, ids)).map_err(|fault| wrong(stored, fault))
            });
            match checked {
                Ok(block) => blocks.push(block),
                Err(found) => {
                    error = Some(found);
                    break;
                }
            }
        }
        if let Err((number, fault)) = self.signatures.check(&blocks) {
            error = Some(wrong(&piece.records[number], fault));
            blocks.truncate(number);
        }
        let mut records = Vec::with_capacity(blocks.len());
        for (stored, (record, ids)) in piece.records.into_iter().zip(blocks) {
            match self.schemas.check(&record, &ids) {
                Ok(found) => records.push((stored, record, found)),
                Err(fault) => {
                    error = Some(wrong(&stored, fault));
                    break;
                }
            }
        }
        CheckedPiece { records, error }
    }
}

/// Takes checked pieces in order and checks what holds between records.
struct Consumer<'r, 'p> {
    chain: Chain,
    replay: Option<&'r mut dyn Replay>,
    /// Where execution goes on behind something that is redacted.
    resumes: Option<CheckpointCertificate>,
    /// What is redacted, where replay will say what the members have agreed to.
    redacted: Vec<(RecordLocation, RedactedTransaction)>,
    schemas: SchemasReport,
    checked: AuditProgress,
    progress: &'p mut dyn FnMut(&AuditProgress),
}

impl Consumer<'_, '_> {
    /// Has everything read and checked. Gives what is torn at the end, and the first error.
    fn check(&mut self, parts: ReaderParts<'_>, threads: usize) -> (Option<TornEnd>, Option<AuditError>) {
        let ReaderParts { records, charters, rules } = parts;
        let (permits, permitted) = bounded(threads * PIECES_PER_THREAD);
        let (results, checked) = unbounded();
        for _ in 0..threads * PIECES_PER_THREAD {
            // There is room for all of them.
            let _ = permits.send(());
        }
        std::thread::scope(|scope| {
            let reader = Reader { records, charters, rules, permitted, results };
            let reading = scope.spawn(move || reader.run(threads));
            let error = self.run(&checked, permits);
            drop(checked);
            match reading.join() {
                Ok(Ok(torn)) => (torn, error),
                Ok(Err(failed)) => (None, error.or(Some(failed))),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    /// Gives back a permit for each piece that is done; without permits the reader ends.
    fn run(&mut self, pieces: &Receiver<(u64, CheckedPiece)>, permits: Sender<()>) -> Option<AuditError> {
        let (mut waiting, mut next) = (BTreeMap::new(), 0);
        while let Ok((number, piece)) = pieces.recv() {
            waiting.insert(number, piece);
            while let Some(CheckedPiece { records, error }) = waiting.remove(&next) {
                for (stored, record, schemas) in records {
                    if stored.summary().pruned && self.replay.is_some() {
                        return Some(AuditError::PrunedReplay { height: stored.summary().header.height });
                    }
                    if let Err(error) = self.find_resumption(&stored) {
                        return Some(error);
                    }
                    if let Err(fault) = self.add(&stored, &record) {
                        return Some(wrong(&stored, fault));
                    }
                    self.schemas.extend(schemas);
                }
                (self.progress)(&self.checked);
                if error.is_some() {
                    return error;
                }
                next += 1;
                // An error says that the reader is at the end.
                let _ = permits.send(());
            }
        }
        None
    }

    fn add(&mut self, stored: &StoredRecord, record: &BlockRecord) -> Result<(), Fault> {
        self.chain.add(record)?;
        if self.resumes.is_some() {
            self.skip(record)?;
        } else if let Some(replay) = &mut self.replay {
            let executed = replay.execute(&record.block, &record.outcome.receipts);
            let executed =
                executed.map_err(|what| (Part::OutcomeHeader, format!("cannot execute: {what}")))?;
            if executed != record.outcome {
                compare(&executed, &record.outcome, |table| replay.table_name(table))?;
            }
            replay.execute_schemas().map_err(|what| (Part::SchemaOutcome, what))?;
        }
        let checked = &mut self.checked;
        checked.bytes += stored.bytes();
        checked.height = record.block.header.height;
        checked.transactions += record.block.transactions.len() as u64;
        if stored.summary().pruned {
            checked.pruned_blocks += 1;
            checked.pruned_transactions += u64::from(record.block.header.transactions);
            checked.pruned_to = checked.height;
        }
        Ok(())
    }

    /// Counts what is redacted in a record, and finds where execution goes on behind it.
    fn find_resumption(&mut self, stored: &StoredRecord) -> Result<(), AuditError> {
        let (height, redacted) = (stored.summary().header.height, stored.redacted()?);
        if redacted.is_empty() {
            return Ok(());
        }
        self.checked.redacted += redacted.len() as u64;
        self.checked.redacted_to = height;
        let Some(replay) = &mut self.replay else { return Ok(()) };
        let place = RecordLocation { path: stored.path().to_path_buf(), offset: stored.offset(), height };
        self.redacted.extend(redacted.into_iter().map(|one| (place.clone(), one)));
        if self.resumes.is_none() {
            let found = replay.checkpoint_from(height);
            let found = found.map_err(|what| wrong(stored, (Part::CheckpointCertificate, what)))?;
            self.resumes = Some(found.ok_or(AuditError::RedactedReplay { height })?);
        }
        Ok(())
    }

    /// Leaves a block to the certificate of a state behind it, and takes that up where it stands.
    fn skip(&mut self, record: &BlockRecord) -> Result<(), Fault> {
        self.checked.unexecuted_blocks += 1;
        let (height, part) = (record.block.header.height, Part::CheckpointCertificate);
        let Some(certificate) = self.resumes.take_if(|one| one.statement.height == height) else {
            return Ok(());
        };
        equal(part, "of the ledger", record.outcome.header.ledger, certificate.statement.ledger)?;
        let rules = &self.chain.charters().at(height).rules;
        rules.check_certificate(&certificate).map_err(|error| (part, error.to_string()))?;
        let (expected, found) = (record.outcome.header.digest(), certificate.statement.outcome);
        equal(part, "of the folder, of the outcome", expected, found)?;
        let Some(replay) = &mut self.replay else { return Ok(()) };
        replay.resume(&certificate).map_err(|what| (part, what))
    }

    /// Whether the members have agreed to what is redacted, as the state behind all blocks says.
    fn check_consent(&self) -> Option<AuditError> {
        let replay = self.replay.as_ref()?;
        if self.resumes.is_some() {
            return Some(AuditError::RedactedReplay { height: self.checked.redacted_to });
        }
        let agreed = replay.redactions();
        let without =
            self.redacted.iter().find(|(_, one)| agreed.get(&one.proposal) != Some(&one.transaction));
        without.map(|(place, one)| {
            let what = format!(
                "expected a redaction of transaction {} that the members have agreed to, found proposal {}, which is none",
                one.transaction, one.proposal
            );
            AuditError::Wrong { place: place.clone(), part: Part::Transaction(one.index), what }
        })
    }
}

/// Says in what two outcomes differ.
fn compare(
    executed: &BlockOutcome,
    recorded: &BlockOutcome,
    table_name: impl Fn(TableId) -> String,
) -> Result<(), Fault> {
    let shown = |receipt: &Receipt| format!("{:?}", receipt.outcome).chars().take(SHOWN).collect::<String>();
    for ((one, other), index) in executed.receipts.iter().zip(&recorded.receipts).zip(0u32..) {
        equal(Part::Receipt(index), "by execution", shown(one), shown(other))?;
        if one != other {
            return Err((Part::Receipt(index), "expected another outcome by execution".to_string()));
        }
    }
    let (one, other) = (&executed.digest, &recorded.digest);
    let roots = |tables: &[types::TableDigest]| -> BTreeMap<TableId, crypto::Digest> {
        tables.iter().map(|table| (table.table, table.root)).collect()
    };
    let (ours, theirs) = (roots(&one.tables), roots(&other.tables));
    for table in ours.keys().chain(theirs.keys()) {
        let (expected, found) = (ours.get(table), theirs.get(table));
        if expected != found {
            let shown =
                |root: Option<&crypto::Digest>| root.map_or("no change".to_string(), |root| root.to_string());
            let what = format!("by execution in table {}", table_name(*table));
            return Err(differs(Part::StateDigest, &what, shown(expected), shown(found)));
        }
    }
    equal(Part::StateDigest, "by execution the catalog", one.catalog, other.catalog)?;
    equal(Part::StateDigest, "by execution the requests", one.requests, other.requests)?;
    let (one, other) = (executed.header.digest(), recorded.header.digest());
    equal(Part::OutcomeHeader, "by execution", one, other)?;
    Err((Part::OutcomeHeader, "expected the outcome of execution".to_string()))
}
