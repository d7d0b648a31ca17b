//! Blocks for a node that the topic does not bring any more: it asks one member after the other, each of which reads its own
//! ledger.

use super::RecordedBlocks;
use super::config::{BACKFILL_BLOCKS, BACKFILL_BYTES, BACKFILL_WAIT, PRESENCE};
use super::shared::Shared;
use crate::Delivery;
use crate::computation::off_the_reactor;
use crate::members::Peers;
use borsh::{BorshDeserialize, BorshSerialize};
use bytes::Bytes;
use commonware_cryptography::ed25519::PublicKey;
use commonware_macros::select;
use commonware_p2p::{Receiver, Recipients, Sender};
use commonware_runtime::{Clock, Handle, Metrics, Spawner};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering as Atomic};
use tokio::sync::mpsc;
use tracing::debug;
use types::{Block, decode_exactly, encode};

/// Questions that wait to be asked.
const QUESTIONS: usize = 16;

/// What members say to one another about blocks.
#[derive(BorshSerialize, BorshDeserialize, Debug)]
enum Said {
    /// The sender is there.
    Here,
    /// It lacks blocks from this height on.
    Wanted { from: u64 },
    /// Blocks from this height on, each with its certificate.
    Blocks { from: u64, blocks: Vec<(Vec<u8>, Vec<u8>)> },
}

type Answer = crossbeam_channel::Sender<Vec<Delivery>>;

/// Asks other members.
pub(super) struct Asking {
    questions: mpsc::Sender<(u64, usize)>,
    waiting: Mutex<BTreeMap<u64, Answer>>,
    /// How often; says whose turn it is.
    times: AtomicUsize,
}

impl Asking {
    /// With where the questions come out.
    pub(super) fn new() -> (Asking, mpsc::Receiver<(u64, usize)>) {
        let (questions, asked) = mpsc::channel(QUESTIONS);
        (Asking { questions, waiting: Mutex::default(), times: AtomicUsize::new(0) }, asked)
    }

    /// Asks one member, and waits for what it has from a height on; nothing of it is checked. Must not be called where others wait.
    pub(super) fn ask(&self, from: u64) -> Option<Vec<Delivery>> {
        let (answer, answered) = crossbeam_channel::bounded(1);
        self.waiting.lock().insert(from, answer);
        let times = self.times.fetch_add(1, Atomic::Relaxed);
        let asked = self.questions.try_send((from, times)).is_ok();
        let brought = answered.recv_timeout(BACKFILL_WAIT).ok().filter(|_| asked);
        self.waiting.lock().remove(&from);
        brought
    }

    fn answered(&self, from: u64, blocks: Vec<(Vec<u8>, Vec<u8>)>) {
        let Some(answer) = self.waiting.lock().remove(&from) else { return };
        let delivery = |(block, certificate): (Vec<u8>, Vec<u8>)| {
            let block = Block::from_bytes(&block.into()).ok()?;
            block.check_content().ok()?;
            Some(Delivery { block, certificate: certificate.into() })
        };
        // Whoever has asked may have stopped to wait.
        let _ = answer.try_send(blocks.into_iter().map_while(delivery).collect());
    }
}

/// Answers, asks, says that this node is there, and keeps the members connected.
pub(super) fn start<E, S, R>(
    context: E,
    (mut sender, mut receiver): (S, R),
    shared: Arc<Shared>,
    (blocks, mut tracked): (Arc<dyn RecordedBlocks>, Box<dyn Peers>),
    mut asked: mpsc::Receiver<(u64, usize)>,
) -> Handle<()>
where
    E: Spawner + Metrics + Clock,
    S: Sender<PublicKey = PublicKey>,
    R: Receiver<PublicKey = PublicKey>,
{
    context.spawn(move |context| async move {
        let mut here_at = shared.now();
        loop {
            let epochs = &shared.members.epochs;
            tracked.track(&epochs.charters(), epochs.epoch_at(shared.height() + 1));
            let wait = here_at.saturating_sub(shared.now());
            select! {
                question = asked.recv() => match question {
                    Some((from, times)) => {
                        let others = others(&shared);
                        if let Some(peer) = others.get(times % others.len().max(1)) {
                            let wanted = encode(&Said::Wanted { from });
                            sender.send(Recipients::One(peer.clone()), wanted, false);
                        }
                    }
                    None => return,
                },
                message = receiver.recv() => match message {
                    Ok((peer, message)) => {
                        let Some(member) = epochs.member(&peer) else { continue };
                        shared.heard.hear(member, shared.now());
                        match decode_exactly::<Said>(message.as_ref()) {
                            Ok(Said::Here) => {}
                            Ok(Said::Wanted { from }) => {
                                let blocks = blocks.clone();
                                let found = off_the_reactor(&context, move || recorded(&*blocks, from)).await;
                                if !found.is_empty() {
                                    let said = encode(&Said::Blocks { from, blocks: found });
                                    sender.send(Recipients::One(peer), said, false);
                                }
                            }
                            Ok(Said::Blocks { from, blocks }) => shared.asking.answered(from, blocks),
                            Err(_) => debug!(member, "ignored what asks for no blocks and brings none"),
                        }
                    }
                    Err(_) => return,
                },
                _ = context.sleep(wait) => {
                    here_at = shared.now() + PRESENCE;
                    sender.send(Recipients::All, encode(&Said::Here), false);
                },
            }
        }
    })
}

/// The other members, as far as charters are known.
fn others(shared: &Shared) -> Vec<PublicKey> {
    let (epochs, own) = (&shared.members.epochs, shared.members.epochs.own_key().clone());
    let members = epochs.charters().newest().charter.organisations.len() as u16;
    (0..members).filter_map(|member| epochs.key_of(member)).filter(|key| *key != own).collect()
}

/// What this node's ledger has from a height on, as much as goes into a message.
fn recorded(blocks: &dyn RecordedBlocks, from: u64) -> Vec<(Vec<u8>, Vec<u8>)> {
    let (mut found, mut bytes) = (Vec::new(), 0);
    for height in (from..).take(BACKFILL_BLOCKS as usize) {
        let Some(Delivery { block, certificate }) = blocks.block(height) else { break };
        let block = block.to_bytes();
        if !found.is_empty() && bytes + block.len() > BACKFILL_BYTES {
            break;
        }
        bytes += block.len();
        found.push((block, Bytes::into(certificate)));
    }
    found
}
