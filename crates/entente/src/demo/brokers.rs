//! Brokers of the demo's own, or those that were named, and the topic that orders.

use super::screen::Screen;
use crate::CommandError;
use crate::model::OrderingArguments;
use node::Network;
use ordering::kafka::{self, KafkaSettings};
use servers::KafkaServers;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;

/// Brokers that are started where none are named: one may end, and the others go on.
const BROKERS: usize = 3;

/// Asks for the broker to be killed that leads a topic, and started again after a while.
struct Kill {
    settings: KafkaSettings,
    down: Duration,
    /// Hears its port when it is killed.
    killed: oneshot::Sender<Result<u16, String>>,
    /// Hears when it is back.
    back: oneshot::Sender<Result<(), String>>,
}

/// A broker that was killed.
pub(crate) struct Killed {
    /// Where it listens when it is back.
    pub(crate) port: u16,
    back: oneshot::Receiver<Result<(), String>>,
}

impl Killed {
    /// Returns when it is back.
    pub(crate) async fn wait(self) -> Result<(), CommandError> {
        Ok(self.back.await.map_err(|_| "the brokers have ended")??)
    }
}

/// The brokers, where a topic orders.
#[derive(Clone)]
pub(crate) struct Brokers {
    settings: KafkaSettings,
    /// Where they are the demo's own.
    own: Option<Arc<Own>>,
}

/// The thread that has started brokers, with which they end.
struct Own {
    kills: Option<Sender<Kill>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Own {
    /// Nobody asks any more, so the thread ends, and what the brokers have written goes.
    fn drop(&mut self) {
        self.kills.take();
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::warn!("the thread of the brokers panicked");
        }
    }
}

impl Brokers {
    /// Starts brokers if a topic orders and none are named, makes the topic, and tells the nodes. They end with this process, or when
    /// this is dropped.
    pub(crate) fn start(
        ordering: &OrderingArguments,
        network: &Network,
        screen: &Screen,
    ) -> Result<Option<Brokers>, CommandError> {
        if !ordering.is_kafka() {
            return Ok(None);
        }
        let (addresses, own) = match ordering.brokers() {
            Some(addresses) => (addresses.to_string(), None),
            None => {
                screen.say(format!(
                    "starting {BROKERS} brokers of Kafka; their programs are fetched the first time"
                ));
                let (addresses, own) = start_own()?;
                (addresses, Some(Arc::new(own)))
            }
        };
        let settings = ordering.choose_topic(network, &addresses)?.settings(&network.charter.ledger());
        kafka::create_topic(&settings, settings.replicas_min, network.charter.block.bytes_max, &[])?;
        screen.say(format!("topic {} at {addresses} orders", settings.topic));
        Ok(Some(Brokers { settings, own }))
    }

    /// Kills the broker that leads the topic (`kill -9`), and starts it again after a while.
    pub(crate) async fn kill_leader(&self, down: Duration) -> Result<Killed, CommandError> {
        let kills = self.own.as_ref().and_then(|own| own.kills.as_ref());
        let kills = kills.ok_or("brokers that are not the demo's own are not killed")?;
        let ((killed, port), (back, is_back)) = (oneshot::channel(), oneshot::channel());
        let settings = self.settings.clone();
        kills.send(Kill { settings, down, killed, back }).map_err(|_| "the brokers have ended")?;
        let port = port.await.map_err(|_| "the brokers have ended")??;
        Ok(Killed { port, back: is_back })
    }

    /// Whether brokers may be killed.
    pub(crate) fn are_own(&self) -> bool {
        self.own.is_some()
    }
}

/// Starts brokers on a thread of theirs, with which they would end.
fn start_own() -> Result<(String, Own), CommandError> {
    let (kills, wanted) = channel();
    let (started, start) = channel();
    let thread = std::thread::Builder::new().name("brokers".to_string()).spawn(move || {
        let servers = match KafkaServers::start(BROKERS, &[]) {
            Ok(servers) => servers,
            Err(error) => return drop(started.send(Err(error.to_string()))),
        };
        if started.send(Ok(servers.addresses())).is_ok() {
            serve(servers, &wanted);
        }
    })?;
    let addresses = start.recv().map_err(|_| "the thread of the brokers has ended")??;
    Ok((addresses, Own { kills: Some(kills), thread: Some(thread) }))
}

fn serve(mut servers: KafkaServers, wanted: &Receiver<Kill>) {
    while let Ok(Kill { settings, down, killed, back }) = wanted.recv() {
        let number = leader(&servers, &settings);
        if let Ok(number) = number {
            servers.kill(number);
        }
        let port = number.as_ref().map(|number| servers.port(*number)).map_err(Clone::clone);
        // Whoever has asked may be gone.
        let _ = killed.send(port);
        let Ok(number) = number else { continue };
        std::thread::sleep(down);
        let started = servers.start_again(number).and_then(|()| servers.wait(number));
        let _ = back.send(started.map_err(|error| error.to_string()));
    }
}

/// Which of these brokers leads the topic.
fn leader(servers: &KafkaServers, settings: &KafkaSettings) -> Result<usize, String> {
    let leader = kafka::leader(settings).map_err(|error| error.to_string())?;
    let of = |number: &usize| leader.ends_with(&format!(":{}", servers.port(*number)));
    (0..servers.count()).find(of).ok_or_else(|| format!("{leader} leads, which is none of the demo's"))
}
