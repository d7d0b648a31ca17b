//! Fetching a certified checkpoint from members of whom some lie, are silent or go away; and going on after a kill.
#![allow(missing_docs)]

use bench::{SignedLedger, SignedLedgerOptions};
use crypto::Digest;
use ledger::Anchor;
use node::joining::{Fetch, Fetched, Item, Message, Served, Server, Shelf, Staging};
use proofs::state::TreeShape;
use state::conformance::{FailingStores, Failures, Operation};
use state::{StateOutline, StatePiece, StateTree, Stores, content_digest};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use types::{Charter, CheckpointRoot, Outcome, Payload, encode};

const STEP: Duration = Duration::from_millis(5);

/// A ledger with its state behind the last block.
struct Source {
    signed: SignedLedger,
    _folder: TempDir,
}

/// What honest members hand out.
struct Copy {
    anchor: Anchor,
    outline: Vec<u8>,
    pieces: Vec<Option<Vec<u8>>>,
}

impl Served for Copy {
    fn anchor(&self) -> &Anchor {
        &self.anchor
    }

    fn outline(&self) -> Result<Vec<u8>, String> {
        Ok(self.outline.clone())
    }

    fn piece(&self, number: usize) -> Result<Option<Vec<u8>>, String> {
        Ok(self.pieces.get(number).cloned().flatten())
    }
}

impl Source {
    fn new() -> Source {
        let folder = tempfile::tempdir().expect("a folder");
        let options = SignedLedgerOptions { clients: 2, ..SignedLedgerOptions::default() };
        let lag = |charter: &mut Charter| charter.outcome_lag_blocks = 4;
        let mut signed = SignedLedger::create(folder.path(), options, lag).expect("an empty folder");
        let workload = workloads::workload("smallbank", 1_500, 0.0).expect("such a workload");
        signed.set_up(workload.as_ref()).expect("it is set up");
        signed.run(workload.as_ref(), [50, 50], 1).expect("it runs");
        Source { signed, _folder: folder }
    }

    /// With two amendments: the first holds at the end, the second is only known.
    fn amended() -> Source {
        let mut source = Source::new();
        for (milliseconds, blocks) in [("200", 16), ("300", 5)] {
            let sql = format!("SELECT entente.set_charter('block.idle_ms', '{milliseconds}')");
            let set = source.signed.transactions(vec![Payload::Script { sql, parameters: Vec::new() }]);
            let receipts = source.signed.append(set, |_| ()).expect("appends");
            assert!(matches!(receipts[0].outcome, Outcome::Committed(_)), "{:?}", receipts[0].outcome);
            for _ in 0..blocks {
                source.signed.append(Vec::new(), |_| ()).expect("appends");
            }
        }
        source
    }

    fn go_on(&mut self) {
        let workload = workloads::workload("smallbank", 1_500, 0.0).expect("such a workload");
        self.signed.run(workload.as_ref(), [4], 2).expect("it runs");
    }

    fn copy(&self) -> Arc<Copy> {
        let (snapshot, live) =
            (self.signed.engine().state().snapshot(), self.signed.engine().live().content());
        let shape = TreeShape::at(snapshot.catalog(), self.signed.engine().height());
        let tree = StateTree::new(snapshot.as_ref(), &live, shape).expect("memory can be read");
        let (ledger, height) = (self.signed.ledger(), self.signed.engine().height());
        let outcome = ledger.outcome_header(height).expect("reads").expect("such a height");
        let (block, certificate) = ledger.block(height).expect("reads").expect("such a height");
        let statement = CheckpointRoot {
            ledger: outcome.ledger,
            height,
            outcome: outcome.digest(),
            state_root: tree.root(),
        };
        let checkpoint = self.signed.certificate(statement);
        let anchor = Anchor {
            header: block.header,
            certificate: certificate.to_vec(),
            outcome,
            checkpoint,
            handovers: ledger.handovers(self.charter().ledger()).expect("reads"),
        };
        let piece = |number| {
            StatePiece::new(&tree, snapshot.as_ref(), number)
                .expect("memory can be read")
                .map(|piece| encode(&piece))
        };
        let pieces = (0..tree.nodes().len()).map(piece).collect();
        Arc::new(Copy {
            anchor,
            outline: encode(&StateOutline::new(&tree, snapshot.as_ref(), &live)),
            pieces,
        })
    }

    fn charter(&self) -> &Charter {
        self.signed.charter()
    }

    /// Whether what was fetched is the state of the ledger.
    fn check(&self, fetched: &Fetched) {
        let checkpoint = &fetched.checkpoint;
        let expected =
            content_digest(self.signed.engine().state().snapshot().as_ref()).expect("memory can be read");
        assert_eq!(
            content_digest(checkpoint.state.snapshot().as_ref()).expect("memory can be read"),
            expected
        );
        assert_eq!(checkpoint.header, self.signed.engine().checkpoint_header());
        assert!(checkpoint.live.content().iter().eq(self.signed.engine().live().content().iter()));
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Behaviour {
    Honest,
    /// It answers nothing.
    Silent,
    /// It answers questions about offers alone.
    Mute,
    /// It has no checkpoint.
    Empty,
    /// It offers a state that nobody has signed.
    Forger,
    /// It offers something with the certificate of something else.
    Stale,
    /// Its outline is another one.
    WrongOutline,
    /// Every item of it is longer than anything.
    Endless,
    /// Everything has a byte more than it says.
    Overlong,
    /// A byte of each piece is wrong.
    WrongPieces,
    /// Pieces are those of other numbers.
    Swapped,
    /// It forgets the state after some parts.
    Forgetful,
    /// A byte of what proves the charters is wrong.
    WrongHandovers,
    /// The first of those is missing.
    MissingHandovers,
    /// They stand in another order.
    ReorderedHandovers,
    /// It offers charters that nobody has decided on.
    OtherCharters,
    /// It puts them where they do not belong.
    HandoversInOffer,
}

/// Of a ledger whose charter was amended.
const AMENDED: [Behaviour; 5] = [
    Behaviour::WrongHandovers,
    Behaviour::MissingHandovers,
    Behaviour::ReorderedHandovers,
    Behaviour::OtherCharters,
    Behaviour::HandoversInOffer,
];

const BEHAVIOURS: [Behaviour; 12] = [
    Behaviour::Honest,
    Behaviour::Silent,
    Behaviour::Mute,
    Behaviour::Empty,
    Behaviour::Forger,
    Behaviour::Stale,
    Behaviour::WrongOutline,
    Behaviour::Endless,
    Behaviour::Overlong,
    Behaviour::WrongPieces,
    Behaviour::Swapped,
    Behaviour::Forgetful,
];

impl Behaviour {
    /// Whether it is found out as soon as it is asked for a piece.
    fn lies(self) -> bool {
        !matches!(
            self,
            Behaviour::Honest | Behaviour::Silent | Behaviour::Mute | Behaviour::Empty | Behaviour::Forgetful
        )
    }
}

struct Peer {
    behaviour: Behaviour,
    server: Server,
    parts: usize,
}

impl Peer {
    fn new(behaviour: Behaviour, copy: &Arc<Copy>) -> Peer {
        let shelf = Arc::new(Shelf::default());
        if behaviour != Behaviour::Empty {
            shelf.put(Some(copy.clone()));
        }
        Peer { behaviour, server: Server::new(shelf, 4), parts: 0 }
    }

    fn answer(&mut self, copy: &Copy, message: &Message, now: Duration) -> Option<Message> {
        let mut answer = self.server.answer(0, message, now)?;
        match (self.behaviour, &mut answer) {
            (Behaviour::Silent, _) | (Behaviour::Mute, Message::Part { .. }) => return None,
            (Behaviour::Forger, Message::Offer(Some(offer))) => {
                offer.checkpoint.statement.state_root = Digest([7; 32]);
            }
            (Behaviour::Stale, Message::Offer(Some(offer))) => {
                offer.header.height += 10;
                offer.outcome.height += 10;
            }
            (Behaviour::WrongOutline, Message::Part { item: Item::Outline, bytes, .. }) => bytes[3] ^= 1,
            (Behaviour::Endless, Message::Part { total, .. }) => *total = u64::MAX,
            (Behaviour::Overlong, Message::Part { bytes, .. }) => bytes.push(0),
            (Behaviour::WrongPieces, Message::Part { item: Item::Piece(_), bytes, .. }) => {
                let middle = bytes.len() / 2;
                bytes[middle] ^= 1;
            }
            (Behaviour::Swapped, Message::Part { item: Item::Piece(number), total, bytes, .. }) => {
                let others = copy.pieces.iter().enumerate().filter(|(other, _)| *other != *number as usize);
                let other = others.filter_map(|(_, piece)| piece.clone()).next().expect("there are several");
                (*total, *bytes) = (other.len() as u64, other);
            }
            (Behaviour::WrongHandovers, Message::Part { item: Item::Handovers, bytes, .. }) => {
                let middle = bytes.len() / 2;
                bytes[middle] ^= 1;
            }
            (Behaviour::MissingHandovers, Message::Part { item: Item::Handovers, total, bytes, .. }) => {
                *bytes = encode(&copy.anchor.handovers[1..].to_vec());
                *total = bytes.len() as u64;
            }
            (Behaviour::ReorderedHandovers, Message::Part { item: Item::Handovers, total, bytes, .. }) => {
                *bytes = encode(&copy.anchor.handovers.iter().rev().cloned().collect::<Vec<_>>());
                *total = bytes.len() as u64;
            }
            (Behaviour::OtherCharters, Message::Offer(Some(offer))) => {
                offer.header.charters = Digest([7; 32]);
            }
            (Behaviour::HandoversInOffer, Message::Offer(Some(offer))) => {
                offer.handovers.clone_from(&copy.anchor.handovers);
            }
            (Behaviour::Forgetful, Message::Part { root, .. }) => {
                self.parts += 1;
                if self.parts > 3 {
                    return Some(Message::Gone(*root));
                }
            }
            _ => {}
        }
        Some(answer)
    }
}

/// A node that joins, with three members that help it or do not.
struct Run {
    fetch: Fetch,
    now: Duration,
}

impl Run {
    fn new(source: &Source, above: u64, folder: &Path) -> Run {
        Run::into(Arc::new(memory::Memory), source, above, folder)
    }

    fn into(stores: Arc<dyn Stores>, source: &Source, above: u64, folder: &Path) -> Run {
        let staging = Staging::open(folder).expect("opens");
        let fetch = Fetch::new(source.charter(), 0, above, staging, stores, Duration::ZERO);
        Run { fetch: fetch.expect("a good charter"), now: Duration::ZERO }
    }

    /// Until the checkpoint is there, or nothing more can come of it, or `stop` says so.
    fn run(&mut self, copy: &Copy, peers: &mut [Peer], stop: impl Fn(&Fetch) -> bool) -> Option<Fetched> {
        while !self.fetch.has_failed(self.now) && !stop(&self.fetch) {
            self.now += STEP;
            for (member, message) in self.fetch.tick(self.now) {
                let bytes = message.to_bytes().expect("a short message");
                let message = Message::from_bytes(&bytes).expect("a message");
                let Some(answer) = peers[usize::from(member) - 1].answer(copy, &message, self.now) else {
                    continue;
                };
                let bytes = answer.to_bytes().expect("a short message");
                let answer = Message::from_bytes(&bytes).expect("a message");
                if let Some(fetched) = self.fetch.hear(member, answer, self.now) {
                    return Some(fetched);
                }
            }
        }
        None
    }
}

#[test]
fn one_honest_member_is_enough_whatever_the_others_do() {
    let source = Source::new();
    let copy = source.copy();
    for one in BEHAVIOURS {
        for other in BEHAVIOURS {
            // Liars come first, so that they are asked first.
            let mut peers = [one, other, Behaviour::Honest].map(|behaviour| Peer::new(behaviour, &copy));
            let folder = tempfile::tempdir().expect("a folder");
            let mut run = Run::new(&source, 0, folder.path());
            let fetched = run.run(&copy, &mut peers, |_| false);
            let fetched = fetched.unwrap_or_else(|| panic!("{one:?}, {other:?}: {:?}", run.fetch.progress()));
            source.check(&fetched);
            let progress = run.fetch.progress();
            assert_eq!((progress.checked, progress.height), (progress.pieces, copy.anchor.height()));
            assert!(progress.pieces > 5, "{progress:?}");
            let most = [one, other].iter().filter(|behaviour| behaviour.lies()).count();
            assert!(progress.liars <= most, "{one:?}, {other:?}: {progress:?}");
            if one.lies() && one != Behaviour::WrongOutline && one != Behaviour::Endless {
                assert!(progress.liars >= 1, "{one:?}, {other:?}: {progress:?}");
            }
            assert!(run.now < Duration::from_secs(40), "{one:?}, {other:?}: {:?}", run.now);
        }
    }
}

#[test]
fn charters_are_proved_from_the_founding_one_whatever_the_others_do() {
    let source = Source::amended();
    let copy = source.copy();
    assert_eq!(copy.anchor.handovers.len(), 2);
    for one in BEHAVIOURS.into_iter().chain(AMENDED) {
        for other in [Behaviour::Honest, Behaviour::Mute].into_iter().chain(AMENDED) {
            let mut peers = [one, other, Behaviour::Honest].map(|behaviour| Peer::new(behaviour, &copy));
            let folder = tempfile::tempdir().expect("a folder");
            let mut run = Run::new(&source, 0, folder.path());
            let fetched = run.run(&copy, &mut peers, |_| false);
            let fetched = fetched.unwrap_or_else(|| panic!("{one:?}, {other:?}: {:?}", run.fetch.progress()));
            source.check(&fetched);
            assert_eq!(fetched.anchor, copy.anchor, "{one:?}, {other:?}");
            let charters = fetched.anchor.charters(source.signed.charter()).expect("they prove themselves");
            assert_eq!(charters.digest(), run.fetch.charters().digest());
            assert_eq!(charters.at(copy.anchor.height()).charter.version, 1);
        }
        // Nobody else: those who lie about charters are found out, and nothing comes of it.
        if AMENDED.contains(&one) {
            let mut peers = [one; 3].map(|behaviour| Peer::new(behaviour, &copy));
            let folder = tempfile::tempdir().expect("a folder");
            let mut run = Run::new(&source, 0, folder.path());
            assert!(run.run(&copy, &mut peers, |_| false).is_none(), "{one:?}");
            assert_eq!(run.fetch.progress().liars, 3, "{one:?}");
            // Good handovers are believed, whatever comes with them.
            let proved = run.fetch.charters().digest() != source.charter().ledger();
            assert_eq!(proved, one == Behaviour::HandoversInOffer, "{one:?}");
        }
    }
}

#[test]
fn without_an_honest_member_nothing_is_believed_and_it_ends() {
    let source = Source::new();
    let copy = source.copy();
    for behaviour in BEHAVIOURS.into_iter().filter(|behaviour| *behaviour != Behaviour::Honest) {
        let mut peers = [behaviour; 3].map(|behaviour| Peer::new(behaviour, &copy));
        let folder = tempfile::tempdir().expect("a folder");
        let mut run = Run::new(&source, 0, folder.path());
        if behaviour == Behaviour::Forgetful {
            // What it gives is right: bit by bit all of it comes.
            continue;
        }
        let fetched = run.run(&copy, &mut peers, |_| false);
        assert!(fetched.is_none() && run.fetch.has_failed(run.now), "{behaviour:?}");
        if behaviour == Behaviour::Empty {
            assert!(run.now < Duration::from_secs(1), "everybody has answered: {:?}", run.now);
        }
    }
    // A checkpoint that is not ahead is of no use.
    let mut peers = [Behaviour::Honest; 3].map(|behaviour| Peer::new(behaviour, &copy));
    let folder = tempfile::tempdir().expect("a folder");
    let mut run = Run::new(&source, copy.anchor.height(), folder.path());
    assert!(run.run(&copy, &mut peers, |_| false).is_none());
    assert!(run.now < Duration::from_secs(1));
}

/// Nobody is blamed for it, and no state comes of it that lacks rows: the last of the pieces on the disk was taken for there.
#[test]
fn a_store_that_fails_while_pieces_come_or_are_taken_from_the_disk_ends_it() {
    let source = Source::new();
    let copy = source.copy();
    let honest = || [Behaviour::Honest; 3].map(|behaviour| Peer::new(behaviour, &copy));
    let staged = tempfile::tempdir().expect("a folder");
    Run::new(&source, 0, staged.path()).run(&copy, &mut honest(), |_| false).expect("it is fetched");
    let empty = tempfile::tempdir().expect("a folder");
    let adds = 2 * copy.pieces.iter().flatten().count() as u64;
    for times in 0..adds {
        for folder in [staged.path(), &empty.path().join(times.to_string())] {
            let failures = Arc::new(Failures::default());
            failures.fail(Operation::Add, times);
            let stores = Arc::new(FailingStores::new(Arc::new(memory::Memory), failures.clone()));
            let mut run = Run::into(stores, &source, 0, folder);
            let fetched = run.run(&copy, &mut honest(), |_| false);
            assert!(fetched.is_none(), "a state without rows, after {times} of {adds}");
            assert!(failures.have_struck() && run.fetch.store_failure().is_some());
            assert_eq!(run.fetch.progress().liars, 0);
        }
    }
}

#[test]
fn a_node_that_is_killed_goes_on_with_what_it_had_also_from_another_checkpoint() {
    let mut source = Source::new();
    let copy = source.copy();
    let honest = |copy: &Arc<Copy>| [Behaviour::Honest; 3].map(|behaviour| Peer::new(behaviour, copy));
    let pieces = copy.pieces.iter().flatten().count();
    for killed_at in 0..pieces {
        let folder = tempfile::tempdir().expect("a folder");
        let mut run = Run::new(&source, 0, folder.path());
        let done = run.run(&copy, &mut honest(&copy), |fetch| fetch.progress().checked > killed_at);
        drop(run);
        if done.is_some() {
            continue;
        }
        let mut again = Run::new(&source, 0, folder.path());
        let fetched = again.run(&copy, &mut honest(&copy), |_| false).expect("it goes on");
        source.check(&fetched);
        assert!(again.fetch.progress().staged > killed_at, "{:?}", again.fetch.progress());
    }

    // What the disk makes of it is found and fetched again.
    let folder = tempfile::tempdir().expect("a folder");
    let mut run = Run::new(&source, 0, folder.path());
    run.run(&copy, &mut honest(&copy), |_| false).expect("it is fetched");
    let path = folder.path().join("pieces");
    let bytes = std::fs::read(&path).expect("reads");
    for at in (0..bytes.len()).step_by(bytes.len() / 40) {
        let mut changed = bytes.clone();
        changed[at] ^= 0x40;
        std::fs::write(&path, &changed).expect("writes");
        let mut again = Run::new(&source, 0, folder.path());
        let fetched = again.run(&copy, &mut honest(&copy), |_| false).expect("it goes on");
        source.check(&fetched);
        assert!(again.fetch.progress().staged < pieces, "byte {at}");
    }
    for cut in [0, 1, 39, 40, 41, bytes.len() - 1] {
        std::fs::write(&path, &bytes[..cut]).expect("writes");
        let mut again = Run::new(&source, 0, folder.path());
        source.check(&again.run(&copy, &mut honest(&copy), |_| false).expect("it goes on"));
    }

    // Most of the next checkpoint is in the one before.
    std::fs::write(&path, &bytes).expect("writes");
    source.go_on();
    let next = source.copy();
    let mut again = Run::new(&source, copy.anchor.height(), folder.path());
    let fetched = again.run(&next, &mut honest(&next), |_| false).expect("it goes on");
    source.check(&fetched);
    let progress = again.fetch.progress();
    assert!(progress.staged > 0 && progress.staged < progress.pieces, "{progress:?}");
}

#[test]
fn nobody_gets_more_than_its_share() {
    let source = Source::new();
    let copy = source.copy();
    let mut peer = Peer::new(Behaviour::Honest, &copy);
    let root = copy.anchor.checkpoint.statement.state_root;
    let asked = Message::AskPart { root, item: Item::Outline, offset: 0 };
    let mut answers = 0;
    for millisecond in 0..1_000 {
        for _ in 0..10 {
            let answer = peer.server.answer(1, &asked, Duration::from_millis(millisecond));
            answers += usize::from(answer.is_some());
        }
    }
    assert!((400..500).contains(&answers), "{answers} of 10,000");
    let now = Duration::from_secs(2);
    assert!(peer.server.answer(9, &asked, now).is_none(), "no member");
    for (item, offset) in [
        (Item::Outline, u64::MAX),
        (Item::Piece(u32::MAX), 0),
        (Item::Piece(0), 0),
        (Item::Piece(1), 1 << 40),
    ] {
        // Number 0 is the definition of a table.
        assert_eq!(peer.server.answer(1, &Message::AskPart { root, item, offset }, now), None, "{item:?}");
    }
    let other = Digest([1; 32]);
    let asked = Message::AskPart { root: other, item: Item::Outline, offset: 0 };
    assert_eq!(peer.server.answer(1, &asked, now), Some(Message::Gone(other)));
    assert_eq!(Message::from_bytes(b"no message"), None);
    assert_eq!(Message::from_bytes(&vec![0; 1 << 20]), None);
}
