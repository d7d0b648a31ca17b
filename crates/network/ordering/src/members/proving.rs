//! Whether those who answer at members' addresses are the members: a connection of the kind that nodes make, which is closed once
//! the other side has proved its key.

use super::committee;
use super::network::handshake;
use crate::OrderingError;
use commonware_runtime::{
    Clock as _, Network as _, Runner as _, Spawner as _, Supervisor as _, tokio as runtime,
};
use commonware_stream::Upgrader as _;
use crypto::{PublicKey, SecretKey};
use std::net::SocketAddr;
use std::time::Duration;
use types::Charter;

/// What the crate for connections puts behind the ledger's name before it shakes hands.
const STREAM: &[u8] = b"_STREAM";
/// No message is read or written.
const MESSAGE_BYTES_MAX: u32 = 1_024;

/// After this time somebody who has not proved the key is asked again.
const AGAIN: Duration = Duration::from_millis(200);

/// What came of asking whoever answers at an address for the proof of a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Proving {
    /// It has the key.
    Proved,
    /// Nobody answers there.
    Unreachable(String),
    /// Somebody answers, and closes the connection or says nothing instead of proving the key: it does not have it, or it does not
    /// take this node (it has a connection with this key already, its charter does not have the key, or the clocks are too far
    /// apart).
    NotProved(String),
}

/// Asks whoever answers at these addresses to prove the keys that are given with them, in this ledger, as the node with the key
/// `own`. Gives what came of each, in the same order, after this time at most.
///
/// # Errors
/// The threads for it cannot be had.
pub fn prove_members(
    founding: &Charter,
    own: &SecretKey,
    members: Vec<(PublicKey, SocketAddr)>,
    patience: Duration,
) -> Result<Vec<Proving>, OrderingError> {
    let namespace = [committee::namespace(founding), STREAM.to_vec()].concat();
    let settings = runtime::Config::new().with_worker_threads(1).with_max_blocking_threads(2);
    let folder = settings.storage_directory().clone();
    let handshake = handshake(own);
    let run = move || {
        runtime::Runner::new(settings).start(|context| async move {
            let tasks = members.into_iter().map(|(key, address)| {
                let (namespace, handshake) = (namespace.clone(), handshake.clone());
                context.child("proving").spawn(move |context| async move {
                    let Some(key) = committee::public_key(&key) else {
                        return Proving::NotProved("its key is no curve point".to_string());
                    };
                    let mut last = Proving::Unreachable(format!("no answer within {patience:?}"));
                    let asking = async {
                        loop {
                            let (sink, stream) = match context.dial(address).await {
                                Ok(connection) => connection,
                                Err(error) => {
                                    last = Proving::Unreachable(error.to_string());
                                    return;
                                }
                            };
                            last = Proving::NotProved(format!("no answer within {patience:?}"));
                            let shaking = handshake.clone().dial(
                                context.child("handshake"),
                                &namespace,
                                MESSAGE_BYTES_MAX,
                                key.clone(),
                                stream,
                                sink,
                            );
                            last = match shaking.await {
                                Ok(_) => Proving::Proved,
                                Err(error) => Proving::NotProved(error.to_string()),
                            };
                            if last == Proving::Proved {
                                return;
                            }
                            // It may be trying to connect with this node at the moment, and takes nobody else meanwhile.
                            context.sleep(AGAIN).await;
                        }
                    };
                    commonware_macros::select! {
                        _ = asking => {},
                        _ = context.sleep(patience) => {},
                    }
                    last
                })
            });
            let came = futures::future::join_all(tasks).await;
            came.into_iter()
                .map(|came| came.unwrap_or_else(|error| Proving::Unreachable(error.to_string())))
                .collect()
        })
    };
    // The runtime must not run inside of another one.
    let thread = std::thread::Builder::new().name("proving".to_string()).spawn(run);
    let thread = thread.map_err(|error| OrderingError::Ended(error.to_string()))?;
    let came = thread.join().map_err(|_| OrderingError::Ended("asking the members panicked".to_string()));
    // The runtime makes a folder for itself, and nothing is kept in it.
    let _ = std::fs::remove_dir_all(folder);
    came
}
