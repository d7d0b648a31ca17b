//! Members that do not run a node but send what they like. What they can do they do with their own key alone.

use super::network::AllChannels;
use super::wire::End;
use crate::bft::Shared;
use commonware_consensus::simplex::mocks::conflicter;
use commonware_cryptography::Sha256;
use commonware_p2p::utils::mux::Muxer;
use commonware_p2p::{Receiver as _, Recipients, Sender as _};
use commonware_runtime::{Clock as _, Spawner as _, Supervisor as _, deterministic::Context};
use crypto::sha256;
use std::sync::Arc;
use std::time::Duration;

/// How often garbage is sent on each channel.
const GARBAGE: Duration = Duration::from_millis(15);

/// Longer than any run.
const LONG: Duration = Duration::from_secs(1_000_000);

/// What a member does that runs no node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Adversary {
    /// Signs two contradicting votes whenever it votes.
    ConflictingVotes,
    /// Sends bytes without meaning on every channel, all the time.
    Garbage,
    /// Sends back to everybody whatever it hears, on the same channel: as it was, or with a bit flipped.
    Echo,
}

impl Adversary {
    pub(super) async fn run(
        self,
        context: Context,
        seed: u64,
        shared: Arc<Shared>,
        mut channels: AllChannels,
    ) {
        match self {
            Adversary::ConflictingVotes => {
                let scheme = shared.members.epochs.scheme(0).expect("the founding epoch");
                let (sender, receiver) = channels.remove(0);
                let (mux, mut handle) = Muxer::new(context.child("mux"), sender, receiver);
                mux.start();
                let Ok(votes) = handle.register(0).await else { return };
                let config = conflicter::Config { scheme: (*scheme).clone() };
                let adversary =
                    conflicter::Conflicter::<_, _, Sha256>::new(context.child("conflicter"), config);
                // The other channels stay open, and silent.
                let _ = adversary.start(votes).await;
                drop(channels);
            }
            Adversary::Garbage => {
                for (channel, (sender, receiver)) in channels.into_iter().enumerate() {
                    let chance = Chance { seed, channel: channel as u64, draws: 0 };
                    context
                        .child("garbage")
                        .with_attribute("channel", channel)
                        .spawn(move |context| garbage(context, (sender, receiver), chance));
                }
                context.sleep(LONG).await;
            }
            Adversary::Echo => {
                for (channel, pair) in channels.into_iter().enumerate() {
                    let chance = Chance { seed, channel: channel as u64, draws: 0 };
                    context
                        .child("echo")
                        .with_attribute("channel", channel)
                        .spawn(move |_| echo(pair, chance));
                }
                context.sleep(LONG).await;
            }
        }
    }
}

struct Chance {
    seed: u64,
    channel: u64,
    draws: u64,
}

impl Chance {
    fn next(&mut self) -> [u8; 32] {
        self.draws += 1;
        sha256(&[&self.seed.to_le_bytes(), &self.channel.to_le_bytes(), &self.draws.to_le_bytes()]).0
    }
}

async fn garbage(context: Context, (mut sender, receiver): End, mut chance: Chance) {
    loop {
        context.sleep(GARBAGE).await;
        let block = chance.next();
        let length = usize::from(u16::from_le_bytes([block[0], block[1]])) >> (block[2] % 16);
        let message: Vec<u8> = block.iter().copied().cycle().take(length).collect();
        let _ = sender.send(Recipients::All, message, false);
        // What the others say is not read, and stays their worry.
        let _ = &receiver;
    }
}

async fn echo((mut sender, mut receiver): End, mut chance: Chance) {
    while let Ok((_, message)) = receiver.recv().await {
        let mut message: Vec<u8> = message.as_ref().to_vec();
        let block = chance.next();
        if block[0].is_multiple_of(2) && !message.is_empty() {
            let place = usize::from(u16::from_le_bytes([block[1], block[2]])) % message.len();
            message[place] ^= 1 << (block[3] % 8);
        }
        let _ = sender.send(Recipients::All, message, false);
    }
}
