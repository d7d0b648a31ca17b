//! The collaborative scheduler (Block-STM, section 3.2, algorithms 4 and 5): an ordered set of executions to do and one
//! of validations to do, each a counter that threads draw from and that falls back when something has to be done again.
//!
//! ```text
//!                  next_task                finish_execution
//!      Ready(i) ─────────────▶ Executing(i) ────────────────▶ Executed(i)
//!         ▲                        │ add_dependency                │ try_abort
//!         │    resume, i + 1       ▼                               ▼
//!         └──────────────────── Aborting(i) ◀──────────────────────┘
//! ```
//!
//! A task is *active* from before it is drawn until its end is accounted for. All is done when both counters have passed
//! the end, nothing is active, and no counter fell back while that was looked at. Whoever leaves the counter of active
//! tasks does so exactly once per task, also where drawing a number brought none (in the paper's text
//! `finish_validation` leaves twice there).
//!
//! All atomics are sequentially consistent: that nothing is active and no counter fell back is read from several of
//! them.

use super::synchronization::{AtomicBool, AtomicUsize, Mutex, Ordering};

/// An execution of a transaction, by how often it was begun anew before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Incarnation {
    pub(super) transaction: u32,
    pub(super) number: u32,
}

/// Something for a thread to do. Each ends with one of the scheduler's `finish_…` or with
/// [`Scheduler::add_dependency`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Task {
    Execute(Incarnation),
    Validate(Incarnation),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Status {
    Ready,
    Executing,
    Executed,
    Aborting,
}

/// Keeps counters that many threads write off each other's cache lines.
#[repr(align(128))]
struct Apart<T>(T);

struct Transaction {
    /// Number of its incarnation, and how far that is.
    status: Mutex<(u32, Status)>,
    /// Transactions that met an ESTIMATE of this one and wait for its next incarnation.
    dependents: Mutex<Vec<u32>>,
}

pub(super) struct Scheduler {
    transactions: Vec<Transaction>,
    /// The smallest transaction that may have to be executed.
    execution: Apart<AtomicUsize>,
    /// The smallest transaction that may have to be validated.
    validation: Apart<AtomicUsize>,
    /// How often one of these two fell back.
    falls: Apart<AtomicUsize>,
    active: Apart<AtomicUsize>,
    done: Apart<AtomicBool>,
}

impl Scheduler {
    pub(super) fn new(transactions: usize) -> Scheduler {
        let ready = || Transaction { status: Mutex::new((0, Status::Ready)), dependents: Mutex::default() };
        let zero = || Apart(AtomicUsize::new(0));
        Scheduler {
            transactions: (0..transactions).map(|_| ready()).collect(),
            execution: zero(),
            validation: zero(),
            falls: zero(),
            active: zero(),
            done: Apart(AtomicBool::new(transactions == 0)),
        }
    }

    /// Whether every transaction is executed and valid.
    pub(super) fn is_done(&self) -> bool {
        self.done.0.load(Ordering::SeqCst)
    }

    /// Nobody takes another task: a thread panicked, and no result will be read.
    pub(super) fn stop(&self) {
        self.done.0.store(true, Ordering::SeqCst);
    }

    /// The next thing to do; `None`: nothing at the moment.
    pub(super) fn next_task(&self) -> Option<Task> {
        let validation = self.validation.0.load(Ordering::SeqCst);
        if validation < self.execution.0.load(Ordering::SeqCst) {
            let draw = |transaction| self.executed(transaction);
            self.draw(&self.validation.0, draw).map(Task::Validate)
        } else {
            let draw = |transaction| self.try_incarnate(transaction);
            self.draw(&self.execution.0, draw).map(Task::Execute)
        }
    }

    fn draw(
        &self,
        counter: &AtomicUsize,
        task: impl FnOnce(u32) -> Option<Incarnation>,
    ) -> Option<Incarnation> {
        if counter.load(Ordering::SeqCst) >= self.transactions.len() {
            self.check_done();
            return None;
        }
        self.active.0.fetch_add(1, Ordering::SeqCst);
        let transaction = counter.fetch_add(1, Ordering::SeqCst);
        let task = if transaction < self.transactions.len() { task(transaction as u32) } else { None };
        if task.is_none() {
            self.leave();
        }
        task
    }

    fn leave(&self) {
        self.active.0.fetch_sub(1, Ordering::SeqCst);
    }

    fn check_done(&self) {
        let falls = self.falls.0.load(Ordering::SeqCst);
        let (execution, validation) =
            (self.execution.0.load(Ordering::SeqCst), self.validation.0.load(Ordering::SeqCst));
        if execution.min(validation) >= self.transactions.len()
            && self.active.0.load(Ordering::SeqCst) == 0
            && self.falls.0.load(Ordering::SeqCst) == falls
        {
            self.done.0.store(true, Ordering::SeqCst);
        }
    }

    fn fall_back(&self, counter: &AtomicUsize, transaction: u32) {
        counter.fetch_min(transaction as usize, Ordering::SeqCst);
        self.falls.0.fetch_add(1, Ordering::SeqCst);
    }

    /// Begins an incarnation, if one is due.
    fn try_incarnate(&self, transaction: u32) -> Option<Incarnation> {
        let mut status = self.transactions[transaction as usize].status.lock();
        let (number, Status::Ready) = *status else { return None };
        *status = (number, Status::Executing);
        Some(Incarnation { transaction, number })
    }

    /// The incarnation of a transaction that can be validated.
    fn executed(&self, transaction: u32) -> Option<Incarnation> {
        let (number, Status::Executed) = *self.transactions[transaction as usize].status.lock() else {
            return None;
        };
        Some(Incarnation { transaction, number })
    }

    /// Ends the execution of an incarnation that cannot be what counts: it met an ESTIMATE of `blocking`, and its next
    /// one begins when that has run again. False if it has run by now: then the caller executes at once.
    #[must_use]
    pub(super) fn add_dependency(&self, transaction: u32, blocking: u32) -> bool {
        debug_assert!(blocking < transaction, "an ESTIMATE is of a smaller number");
        {
            // Both locks: who ends the execution of `blocking` changes its status first and takes the list then.
            let mut dependents = self.transactions[blocking as usize].dependents.lock();
            if self.transactions[blocking as usize].status.lock().1 == Status::Executed {
                return false;
            }
            self.transactions[transaction as usize].status.lock().1 = Status::Aborting;
            dependents.push(transaction);
        }
        self.leave();
        true
    }

    fn set_ready(&self, transaction: u32) {
        let mut status = self.transactions[transaction as usize].status.lock();
        debug_assert_eq!(status.1, Status::Aborting, "transaction {transaction}");
        *status = (status.0 + 1, Status::Ready);
    }

    /// Ends an execution whose writes are recorded. `wrote_new`: it wrote a row that its last incarnation did not, so
    /// whoever comes later may have missed it.
    pub(super) fn finish_execution(&self, incarnation: Incarnation, wrote_new: bool) -> Option<Task> {
        let transaction = &self.transactions[incarnation.transaction as usize];
        {
            let mut status = transaction.status.lock();
            debug_assert_eq!(*status, (incarnation.number, Status::Executing));
            status.1 = Status::Executed;
        }
        let dependents = std::mem::take(&mut *transaction.dependents.lock());
        for dependent in &dependents {
            self.set_ready(*dependent);
        }
        if let Some(first) = dependents.iter().min() {
            self.fall_back(&self.execution.0, *first);
        }
        if self.validation.0.load(Ordering::SeqCst) > incarnation.transaction as usize {
            if !wrote_new {
                return Some(Task::Validate(incarnation));
            }
            self.fall_back(&self.validation.0, incarnation.transaction);
        }
        self.leave();
        None
    }

    /// Whether the caller is the one to abort the incarnation, which turned out to be invalid. It turns the writes into
    /// ESTIMATEs before it ends the validation.
    pub(super) fn try_abort(&self, incarnation: Incarnation) -> bool {
        let mut status = self.transactions[incarnation.transaction as usize].status.lock();
        let found = *status == (incarnation.number, Status::Executed);
        if found {
            status.1 = Status::Aborting;
        }
        found
    }

    /// Ends a validation.
    pub(super) fn finish_validation(&self, transaction: u32, aborted: bool) -> Option<Task> {
        if aborted {
            self.set_ready(transaction);
            self.fall_back(&self.validation.0, transaction + 1);
            if self.execution.0.load(Ordering::SeqCst) > transaction as usize
                && let Some(incarnation) = self.try_incarnate(transaction)
            {
                return Some(Task::Execute(incarnation));
            }
        }
        self.leave();
        None
    }
}
