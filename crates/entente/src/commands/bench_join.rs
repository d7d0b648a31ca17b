//! `entente bench join`: how long a node takes to the newest block of a ledger by executing all blocks, and by joining from a
//! certified checkpoint and executing those behind it.

use crate::CommandError;
use crate::store::StoreArguments;
use bench::{SignedLedger, SignedLedgerOptions, grouped};
use clap::Args;
use engine::{Engine, Verifier};
use ledger::{Anchor, BlockOutcome, BlockRecord, Ledger};
use node::joining::{Fetch, Fetched, KeptCheckpoint, Message, Server, Shelf, Staging};
use ordering::CertificateVerifier;
use proofs::state::TreeShape;
use serde::Serialize;
use state::{BlockEnd, CheckpointProgress, ResumePoint, Stores};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use types::{Charter, Charters, CheckpointRoot};

/// Blocks that are recorded with one flush.
const GROUP_BLOCKS: u64 = 64;

/// Measure how long a late node takes to join.
///
/// Makes a ledger of Smallbank calls as a network of four would have written it, with a certified checkpoint near its end.
/// Then a node with an empty folder gets to the newest block twice: by verifying, executing and recording all blocks, and by
/// fetching the checkpoint in pieces from three others, checking them, and doing so with the blocks behind it. Blocks and
/// messages come from memory and disk: no network is measured.
///
/// Example: entente bench join --transactions 1000000 --store disk --json join.json
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct JoinArguments {
    /// Calls in the ledger
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    transactions: u64,
    /// Calls in a block
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=65_000))]
    per_block: u32,
    /// Customers of Smallbank
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(2..=10_000_000))]
    customers: u64,
    /// Blocks behind the checkpoint
    #[arg(long, default_value_t = 50)]
    behind: u64,
    #[command(flatten)]
    store: StoreArguments,
    /// Where the ledger is made; a temporary folder by default, which goes afterwards
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
    /// Where to write the record
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Serialize)]
struct JoinRecord {
    /// Calls in the ledger.
    transactions: u64,
    /// Blocks of the ledger, those that set it up included.
    blocks: u64,
    /// Blocks behind the checkpoint.
    behind: u64,
    /// Where the late node keeps rows.
    store: &'static str,
    /// By executing every block.
    replay_seconds: f64,
    /// By the checkpoint, and executing the blocks behind it.
    join_seconds: f64,
    /// Of those, until the whole checkpoint was there and checked.
    fetch_seconds: f64,
    /// How many times faster joining is.
    ratio: f64,
    /// Bytes of outline and pieces.
    bytes: u64,
    /// Pieces.
    pieces: usize,
}

pub(crate) fn run(arguments: &JoinArguments) -> Result<(), CommandError> {
    let temporary = tempfile::tempdir()?;
    let folder = arguments.folder.clone().unwrap_or_else(|| temporary.path().to_path_buf());
    let blocks = arguments.transactions.div_ceil(u64::from(arguments.per_block));
    let behind = arguments.behind.min(blocks - 1);
    println!("{} calls in {} blocks are made and signed", grouped(arguments.transactions), grouped(blocks));
    let source = Source::create(arguments, &folder, (blocks, behind))?;

    let choice = arguments.store.choice();
    let start = Instant::now();
    let stores = choice.open(&temporary.path().join("replayed-state"))?;
    let engine = Engine::new(source.charter.clone(), stores.as_ref())?;
    let replayed = source.follow(engine, &temporary.path().join("replayed"), None)?;
    drop(stores);
    let replay_seconds = start.elapsed().as_secs_f64();
    println!("executing every block: {replay_seconds:.2} s");

    let start = Instant::now();
    let stores = choice.open(&temporary.path().join("joined-state"))?;
    let (fetched, bytes, pieces) = source.fetch(&temporary.path().join("joining"), &stores)?;
    let fetch_seconds = start.elapsed().as_secs_f64();
    let joined = source.join(fetched, &temporary.path().join("joined"))?;
    let join_seconds = start.elapsed().as_secs_f64();
    if replayed != joined || replayed != source.state_digest {
        return Err("both ways must lead to the state of the ledger".into());
    }
    let record = JoinRecord {
        transactions: arguments.transactions,
        blocks: source.ledger.tip().map_or(0, |(height, _)| height),
        behind,
        store: choice.kind.name(),
        replay_seconds,
        join_seconds,
        fetch_seconds,
        ratio: replay_seconds / join_seconds,
        bytes,
        pieces,
    };
    println!(
        "from a checkpoint of {} bytes in {pieces} pieces, and {behind} blocks: {join_seconds:.2} s, {:.1} times faster",
        grouped(bytes),
        record.ratio
    );
    if let Some(path) = &arguments.json {
        let text = serde_json::to_string_pretty(&record)?;
        std::fs::write(path, text + "\n")
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    Ok(())
}

/// The ledger of the others, and their checkpoint.
struct Source {
    charter: Arc<Charter>,
    ledger: Ledger,
    state_digest: crypto::Digest,
    shelf: Arc<Shelf>,
}

impl Source {
    fn create(
        arguments: &JoinArguments,
        folder: &Path,
        (blocks, behind): (u64, u64),
    ) -> Result<Source, CommandError> {
        let workload = workloads::workload("smallbank", arguments.customers, 0.0)?;
        let mut signed = SignedLedger::create(folder, SignedLedgerOptions::default(), |_| ())?;
        signed.set_up(workload.as_ref())?;
        let last = arguments.transactions - (blocks - 1) * u64::from(arguments.per_block);
        let sizes = |from: u64, to: u64| {
            let size = move |block| if block + 1 == blocks { last as u32 } else { arguments.per_block };
            (from..to).map(size)
        };
        signed.run(workload.as_ref(), sizes(0, blocks - behind), 1)?;

        let (header, live) = (signed.engine().checkpoint_header(), signed.engine().live().content());
        let (state, shape) =
            (signed.engine().state(), TreeShape::at(&signed.engine().state().catalog(), header.height));
        let kept = state.keep_checkpoint(&header, state.snapshot(), live, shape)?;
        let kept = kept.ok_or("the store is open")?;
        let missing = || format!("the ledger has no block {}", header.height);
        let outcome = signed.ledger().outcome_header(header.height)?.ok_or_else(missing)?;
        let (block, certificate) = signed.ledger().block(header.height)?.ok_or_else(missing)?;
        let checkpoint = signed.certificate(CheckpointRoot {
            ledger: header.ledger,
            height: header.height,
            outcome: header.outcome,
            state_root: kept.tree().root(),
        });
        let anchor = Anchor {
            header: block.header,
            certificate: certificate.to_vec(),
            outcome,
            checkpoint,
            handovers: Vec::new(),
        };
        let shelf = Arc::new(Shelf::default());
        shelf.put(Some(Arc::new(KeptCheckpoint { anchor, kept: Arc::new(kept) })));

        signed.run(workload.as_ref(), sizes(blocks - behind, blocks), 2)?;
        let (charter, state_digest) = (signed.charter().clone(), signed.engine().state_digest());
        signed.finish()?;
        let (ledger, _) = Ledger::open(folder.join("ledger"), charter.ledger())?;
        Ok(Source { charter, ledger, state_digest, shelf })
    }

    /// As a node does with blocks from ordering: certificates and signatures are verified, blocks executed, recorded and
    /// flushed. Gives the state digest.
    fn follow(
        &self,
        mut engine: Engine,
        folder: &Path,
        anchor: Option<Anchor>,
    ) -> Result<crypto::Digest, CommandError> {
        let (ledger, _) = Ledger::open(folder, self.charter.ledger())?;
        if let Some(anchor) = anchor {
            ledger.begin_behind(anchor)?;
        }
        let (certificates, verifier) =
            (CertificateVerifier::new(Charters::new(self.charter.clone()))?, Verifier::new(&self.charter));
        let charters = certificates.charters();
        for record in self.ledger.blocks_from(engine.height() + 1) {
            let BlockRecord { block, certificate, .. } = record?;
            certificates.verify(&block.header, &certificate)?;
            let verified = verifier.verify_block(charters, &block);
            let executed = engine.execute(&verified)?;
            verifier.forget(&verified);
            let outcome = BlockOutcome {
                receipts: executed.receipts,
                digest: executed.digest,
                header: executed.outcome,
            };
            ledger.append(&BlockRecord { block, certificate, outcome })?;
            if engine.height().is_multiple_of(GROUP_BLOCKS) {
                ledger.flush()?;
            }
        }
        ledger.flush()?;
        Ok(engine.state_digest())
    }

    /// From three members, with the pace that they allow.
    fn fetch(&self, folder: &Path, stores: &Arc<dyn Stores>) -> Result<(Fetched, u64, usize), CommandError> {
        let members = self.charter.organisations.len();
        let start = Instant::now();
        let mut fetch =
            Fetch::new(&self.charter, 0, 0, Staging::open(folder)?, stores.clone(), Duration::ZERO)?;
        let mut servers: Vec<Server> =
            (0..members).map(|_| Server::new(self.shelf.clone(), members)).collect();
        while !fetch.has_failed(start.elapsed()) {
            let asked = fetch.tick(start.elapsed());
            if asked.is_empty() {
                std::thread::sleep(Duration::from_millis(1));
            }
            for (member, message) in asked {
                let now = start.elapsed();
                let Some(answer) = servers[usize::from(member)].answer(0, &message, now) else { continue };
                // As on the way.
                let answer = answer.to_bytes().and_then(|bytes| Message::from_bytes(&bytes));
                let answer = answer.ok_or("expected messages that can be sent")?;
                if let Some(fetched) = fetch.hear(member, answer, start.elapsed()) {
                    let progress = fetch.progress();
                    return Ok((fetched, progress.bytes, progress.pieces));
                }
            }
        }
        Err(format!("the checkpoint cannot be fetched: {:?}", fetch.progress()).into())
    }

    /// Makes the checkpoint durable and goes on behind it.
    fn join(&self, fetched: Fetched, folder: &Path) -> Result<crypto::Digest, CommandError> {
        let Fetched { anchor, checkpoint } = fetched;
        let (header, live) = (checkpoint.header, checkpoint.live);
        let (state, progress) = (&checkpoint.state, CheckpointProgress::at(header.height));
        let (point, admitted) = (ResumePoint { header, progress }, live.content().iter().collect());
        state.end_block(BlockEnd {
            point,
            admitted,
            is_resumable: true,
            is_checkpoint: true,
            is_due: false,
        })?;
        let shape = TreeShape::at(&state.catalog(), header.height);
        drop(state.keep_checkpoint(&header, state.snapshot(), live.content(), shape)?);
        let engine = Engine::at(
            self.charter.clone(),
            (&header, CheckpointProgress::at(header.height)),
            checkpoint.state,
            live,
        )?;
        self.follow(engine, &folder.join("ledger"), Some(anchor))
    }
}
