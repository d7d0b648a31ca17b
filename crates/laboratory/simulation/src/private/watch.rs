//! Who hears what: a canary that reaches somebody who is no member of its schema is a violation.

use bytes::Bytes;
use crossbeam_channel::Receiver;
use ordering::{
    CertificateError, Delivery, ExchangeMessages, Ordering, OrderingStatus, Services, SubmitError,
};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use types::{BlockHeader, TransactionId};

/// What every canary has in it, in small letters or capitals.
const ANY: [&[u8]; 2] = [b"CANARY ", b"canary_"];

/// Canaries, and who may see them.
#[derive(Default)]
pub(crate) struct Watch(Mutex<Watched>);

#[derive(Default)]
struct Watched {
    canaries: Vec<Canary>,
    seen: Option<String>,
    /// Messages and files that were looked through and had canaries where they may be.
    found: u64,
}

/// Text that stands in parts of one schema alone.
struct Canary {
    text: String,
    may_see: BTreeSet<u16>,
}

impl Watch {
    /// From now on this text may stand in what these organisations see.
    pub(crate) fn expect(&self, text: &str, may_see: &BTreeSet<u16>) {
        let (text, may_see) = (text.to_string(), may_see.clone());
        self.0.lock().canaries.push(Canary { text, may_see });
    }

    /// This organisation may see all canaries that have this in them, also those that it may not yet.
    pub(crate) fn allow(&self, text: &str, member: u16) {
        for canary in self.0.lock().canaries.iter_mut().filter(|canary| canary.text.contains(text)) {
            canary.may_see.insert(member);
        }
    }

    /// Looks through what an organisation gets to see; `None`: everybody does.
    pub(crate) fn look(&self, bytes: &[u8], who: Option<u16>, what: impl Fn() -> String) {
        if !ANY.iter().any(|any| has(bytes, any)) {
            return;
        }
        let mut watched = self.0.lock();
        let may = |canary: &&Canary| who.is_none_or(|who| !canary.may_see.contains(&who));
        let seen = watched.canaries.iter().filter(may).find(|canary| has(bytes, canary.text.as_bytes()));
        match seen.map(|canary| format!("private: {:?} in {}", canary.text, what())) {
            Some(seen) => drop(watched.seen.get_or_insert(seen)),
            None => watched.found += 1,
        }
    }

    /// Looks through all files under a folder.
    pub(crate) fn look_through(&self, folder: &Path, who: u16) -> std::io::Result<()> {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            match path.is_dir() {
                true => self.look_through(&path, who)?,
                false => self.look(&std::fs::read(&path)?, Some(who), || path.display().to_string()),
            }
        }
        Ok(())
    }

    /// The first canary that was where it may not be.
    pub(crate) fn seen(&self) -> Option<String> {
        self.0.lock().seen.clone()
    }

    /// How often canaries were where they may be.
    pub(crate) fn found(&self) -> u64 {
        self.0.lock().found
    }
}

fn has(bytes: &[u8], text: &[u8]) -> bool {
    bytes.windows(text.len()).any(|window| window == text)
}

/// What the network gives to a node, where everything that leaves the node is looked through.
pub(crate) struct WatchedServices {
    inner: Services,
    node: usize,
    watch: Arc<Watch>,
}

impl WatchedServices {
    pub(crate) fn around(inner: Services, node: usize, watch: Arc<Watch>) -> Services {
        let certifying = inner.certifying.clone();
        let watched = Arc::new(WatchedServices { inner, node, watch });
        Services { ordering: watched.clone(), certifying, messages: watched }
    }

    /// Looks through what is handed to ordering.
    fn look(&self, transactions: &[Bytes]) {
        for transaction in transactions {
            self.watch
                .look(transaction, None, || format!("a transaction that node {} has ordered", self.node));
        }
    }
}

impl Ordering for WatchedServices {
    fn submit(&self, transactions: Vec<Bytes>) -> Vec<Result<TransactionId, SubmitError>> {
        self.look(&transactions);
        self.inner.ordering.submit(transactions)
    }

    fn submit_together(&self, transactions: Vec<Bytes>) -> Vec<Result<TransactionId, SubmitError>> {
        self.look(&transactions);
        self.inner.ordering.submit_together(transactions)
    }

    fn deliveries(&self) -> &Receiver<Delivery> {
        self.inner.ordering.deliveries()
    }

    fn acknowledge(&self, height: u64) {
        self.inner.ordering.acknowledge(height);
    }

    fn skip_to(&self, header: &BlockHeader, certificate: &[u8]) -> Result<(), CertificateError> {
        self.inner.ordering.skip_to(header, certificate)
    }

    fn read(&self, height: u64) -> Option<Delivery> {
        self.inner.ordering.read(height)
    }

    fn forget_below(&self, height: u64) {
        self.inner.ordering.forget_below(height);
    }

    fn status(&self) -> OrderingStatus {
        self.inner.ordering.status()
    }

    fn metrics(&self) -> String {
        self.inner.ordering.metrics()
    }

    fn stop(&self) {
        self.inner.ordering.stop();
    }
}

impl ExchangeMessages for WatchedServices {
    fn broadcast(&self, message: Bytes) {
        self.watch.look(&message, None, || format!("a message of node {} to all", self.node));
        self.inner.messages.broadcast(message);
    }

    fn messages(&self) -> &Receiver<(u16, Bytes)> {
        self.inner.messages.messages()
    }

    fn tell(&self, member: u16, message: Bytes) {
        self.watch
            .look(&message, Some(member), || format!("a message of node {} to member {member}", self.node));
        self.inner.messages.tell(member, message);
    }

    fn told(&self) -> &Receiver<(u16, Bytes)> {
        self.inner.messages.told()
    }
}
