//! Validators and holders in one process.
#![allow(dead_code, reason = "each test file uses its part")]

use parking_lot::{Mutex, RwLock};
use sparse::{Holder, KnownHolder, KnownHolders, Link, LinkFailure, Placement, SharedStores};
use state::{StoreError, Stores};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use types::Charter;

/// Holders are processes of their own: whoever waits for them keeps none of their threads.
fn pool() -> &'static rayon::ThreadPool {
    static POOL: OnceLock<rayon::ThreadPool> = OnceLock::new();
    POOL.get_or_init(|| rayon::ThreadPoolBuilder::new().num_threads(2).build().expect("threads"))
}

/// Waits as for another process: without doing other work of the pool that it was asked on.
fn answer(holder: &Holder, question: &[u8]) -> Vec<u8> {
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| pool().install(|| holder.answer(question)));
        asked.join().expect("a holder answers whatever comes")
    })
}

/// A link to a holder in this process, which may start again or stop answering.
pub struct Local {
    name: String,
    holder: RwLock<Option<Arc<Holder>>>,
    make: Box<dyn Fn() -> Holder + Send + Sync>,
    asked: AtomicU64,
    /// The question of this number, counted from now on, is not answered.
    fails_at: AtomicU64,
    pub bytes: AtomicU64,
    /// What else happens while a question is on its way.
    pub meanwhile: Mutex<Option<Box<dyn Fn() + Send>>>,
    /// What was asked, where that is kept.
    pub heard: Mutex<Option<Vec<Vec<u8>>>>,
}

impl Local {
    pub fn new(name: String, make: impl Fn() -> Holder + Send + Sync + 'static) -> Arc<Local> {
        let holder = RwLock::new(Some(Arc::new(make())));
        let (asked, fails_at, bytes) = (AtomicU64::new(0), AtomicU64::new(u64::MAX), AtomicU64::new(0));
        let (heard, meanwhile) = (Mutex::new(None), Mutex::new(None));
        Arc::new(Local { name, holder, make: Box::new(make), asked, fails_at, bytes, heard, meanwhile })
    }

    /// The process of the holder ends, and another one begins.
    pub fn restart(&self) {
        let mut holder = self.holder.write();
        // One process at a time has the folder.
        *holder = None;
        *holder = Some(Arc::new((self.make)()));
    }

    /// The process that answers now.
    pub fn process(&self) -> Arc<Holder> {
        self.holder.read().clone().expect("a process")
    }

    /// It ends before it answers the question behind so many.
    pub fn fail_after(&self, questions: u64) {
        self.fails_at.store(self.asked.load(Ordering::SeqCst) + questions, Ordering::SeqCst);
    }
}

impl Link for Local {
    fn ask(&self, question: &[u8]) -> Result<Vec<u8>, LinkFailure> {
        self.bytes.fetch_add(question.len() as u64, Ordering::Relaxed);
        if let Some(heard) = &mut *self.heard.lock() {
            heard.push(question.to_vec());
        }
        // What it does may be a question, too.
        let meanwhile = self.meanwhile.lock().take();
        if let Some(meanwhile) = &meanwhile {
            meanwhile();
        }
        let number = self.asked.fetch_add(1, Ordering::SeqCst);
        let holder = self.holder.read().clone().expect("a process");
        if number == self.fails_at.load(Ordering::SeqCst) {
            // Whether the question has arrived, nobody knows.
            if number.is_multiple_of(2) {
                answer(&holder, question);
            }
            drop(holder);
            self.restart();
            return Err(LinkFailure("the connection was lost".into()));
        }
        Ok(answer(&holder, question))
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn try_again(&self, _: &LinkFailure) -> bool {
        true
    }
}

/// What a validator remembers of its holders, beside its store.
#[derive(Default)]
pub struct Known(Mutex<Vec<KnownHolder>>);

impl KnownHolders for Known {
    fn known(&self) -> Vec<KnownHolder> {
        self.0.lock().clone()
    }

    fn remember(&self, known: &[KnownHolder]) -> Result<(), StoreError> {
        *self.0.lock() = known.to_vec();
        Ok(())
    }
}

/// Every table somewhere: at one of so many holders, or at the validator.
pub fn scattered(holders: usize, seed: u64) -> Placement {
    Placement::by(holders, move |name| {
        let mut hasher = DefaultHasher::new();
        (name, seed).hash(&mut hasher);
        let place = hasher.finish() as usize % (holders + 1);
        (place < holders).then_some(place)
    })
}

/// Stores of a validator with holders, and the links to these. `stores`: of the validator (0) and of each holder.
pub fn shared(
    charter: &Charter,
    placement: &Placement,
    stores: impl Fn(usize) -> Arc<dyn Stores> + Clone + Send + Sync + 'static,
) -> (Arc<SharedStores>, Vec<Arc<Local>>) {
    shared_with(charter, placement, stores, &Arc::default())
}

/// The same with what a validator knows of its holders.
pub fn shared_with(
    charter: &Charter,
    placement: &Placement,
    stores: impl Fn(usize) -> Arc<dyn Stores> + Clone + Send + Sync + 'static,
    known: &Arc<Known>,
) -> (Arc<SharedStores>, Vec<Arc<Local>>) {
    let links: Vec<Arc<Local>> = (0..placement.holders())
        .map(|number| {
            let (stores, placement) = (stores.clone(), placement.clone());
            Local::new(format!("holder-{number}"), move || {
                Holder::new(stores(number + 1), placement.clone(), number)
            })
        })
        .collect();
    let to = links.iter().map(|link| link.clone() as Arc<dyn Link>).collect();
    let shared = SharedStores::new(stores(0), charter.ledger(), placement.clone(), to, known.clone());
    (Arc::new(shared), links)
}

/// The same for a suite that says no ledger.
pub fn unshared(
    placement: &Placement,
    stores: impl Fn(usize) -> Arc<dyn Stores> + Clone + Send + Sync + 'static,
) -> SharedStores {
    let holder = |number: usize| {
        let (stores, placement) = (stores.clone(), placement.clone());
        Local::new(format!("holder-{number}"), move || {
            Holder::new(stores(number + 1), placement.clone(), number)
        }) as Arc<dyn Link>
    };
    let links = (0..placement.holders()).map(holder).collect();
    SharedStores::new(
        stores(0),
        crypto::Digest([1; 32]),
        placement.clone(),
        links,
        Arc::new(Known::default()),
    )
}
