//! One sparse peer.

use super::early::{Early, Heard};
use super::graph::WaitingGraph;
use super::judged_rows::JudgedRows;
use super::store::{Record, SparseStore};
use super::transaction::{ContractId, SparseTransaction, Version};
use super::verdict::{Question, Said, Told, Verdict};
use crate::parts::LedgerPosition;
use state::StoreError;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// A block that is durable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommittedBlock {
    /// Its height.
    pub height: u64,
    /// Those of its transactions that are decided, and whether they are valid.
    pub decided: Vec<(LedgerPosition, bool)>,
    /// Those that are decided later.
    pub deferred: Vec<LedgerPosition>,
}

/// What a new peer needs, beside the rows of its contracts and their policies, to go on from a committed block.
#[derive(Clone, PartialEq, Debug)]
pub struct HandOver {
    /// The block's height.
    pub height: u64,
    /// Rows whose versions are below this belong to it.
    pub before: Version,
    /// What is undecided in it, with what it does in those contracts: the new peer's deferred transactions.
    pub undecided: Vec<SparseTransaction>,
}

/// Why a peer cannot go on. After [`SparseError::Store`] it starts again from its store.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SparseError {
    /// Blocks come one after the other.
    #[error("expected block {expected}, found block {found}")]
    Height {
        /// The next one.
        expected: u64,
        /// The one that came.
        found: u64,
    },
    /// Transactions come in the order of the ledger, each of the block's own height.
    #[error("expected a transaction of block {height} behind the one before it, found height {}, position {}", .found.height, .found.index)]
    Order {
        /// The block's height.
        height: u64,
        /// The transaction that came.
        found: LedgerPosition,
    },
    /// A part that the peer is to validate is not there.
    #[error(
        "expected what the transaction at height {}, position {} does in contract {}, found nothing; ask for the whole block",
        .transaction.height, .transaction.index, .contract.0
    )]
    MissingPart {
        /// Of which transaction.
        transaction: LedgerPosition,
        /// In which contract.
        contract: ContractId,
    },
    /// A peer hands over contracts that it holds.
    #[error("expected contracts that this peer holds, found contract {}", .0.0)]
    NotHeld(ContractId),
    /// The state cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A transaction that is decided, and whose block is not committed.
struct Judged {
    transaction: Arc<SparseTransaction>,
    is_valid: bool,
}

/// Validates what concerns the contracts that it holds. Everything but the store is made again after a crash: see [`Self::open`].
///
/// `receive` as fast as memory allows ([`Self::waiting`]), `validate` what is ready, `hear` what others tell, `commit` whenever that is
/// possible, and tell others what [`Self::take_told`] gives.
pub struct SparsePeer<Store> {
    filter: BTreeSet<ContractId>,
    store: Store,
    /// Height of the last block that has come.
    received: u64,
    /// Transactions of the blocks that are not committed, with those that concern this peer alone.
    blocks: VecDeque<Vec<LedgerPosition>>,
    graph: WaitingGraph,
    judged: BTreeMap<LedgerPosition, Judged>,
    judged_rows: JudgedRows,
    early: Early,
    told: Vec<Told>,
}

impl<Store: SparseStore> SparsePeer<Store> {
    /// Goes on from what is durable. `filter`: the contracts that it holds.
    ///
    /// # Errors
    /// The store cannot be read, or has a deferred transaction without its parts.
    pub fn open(filter: BTreeSet<ContractId>, store: Store) -> Result<SparsePeer<Store>, SparseError> {
        let mut deferred = store.deferred()?;
        deferred.sort_by_key(|transaction| transaction.position);
        let mut peer = SparsePeer {
            received: store.height(),
            filter,
            store,
            blocks: VecDeque::new(),
            graph: WaitingGraph::default(),
            judged: BTreeMap::new(),
            judged_rows: JudgedRows::default(),
            early: Early::default(),
            told: Vec::new(),
        };
        for transaction in deferred {
            let transaction = peer.concerning(transaction)?;
            peer.graph.add(Arc::new(transaction), Heard::default(), true);
        }
        Ok(peer)
    }

    /// What is durable.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Gives up everything that is not.
    pub fn into_store(self) -> Store {
        self.store
    }

    /// The contracts that it holds.
    pub fn filter(&self) -> &BTreeSet<ContractId> {
        &self.filter
    }

    /// Height of the last block that has come.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Transactions that are not decided, deferred ones among them: as long as others do not answer, their number grows with each block.
    pub fn waiting(&self) -> usize {
        self.graph.len()
    }

    /// Takes the next block: all of its transactions, or those that concern this peer.
    ///
    /// # Errors
    /// The block is another one, or lacks what this peer is to validate; nothing of it counts then. The store fails.
    pub fn receive(&mut self, height: u64, transactions: Vec<SparseTransaction>) -> Result<(), SparseError> {
        let expected = self.received.saturating_add(1);
        if height != expected {
            return Err(SparseError::Height { expected, found: height });
        }
        let mut last = None;
        let mut concerning = Vec::new();
        for transaction in transactions {
            let found = transaction.position;
            if found.height != height || last.is_some_and(|last| found.index <= last) {
                return Err(SparseError::Order { height, found });
            }
            last = Some(found.index);
            if !transaction.contracts.is_disjoint(&self.filter) {
                concerning.push(Arc::new(self.concerning(transaction)?));
            }
        }
        self.received = height;
        self.blocks.push_back(concerning.iter().map(|transaction| transaction.position).collect());
        let mut early = self.early.take(height);
        for transaction in concerning {
            let position = transaction.position;
            let heard = early.remove(&position).unwrap_or_default();
            let is_invalid = heard.invalid;
            self.graph.add(transaction, heard, false);
            if is_invalid {
                self.decide(position, false)?;
            }
        }
        Ok(())
    }

    /// The transactions whose parts can be validated, in the order of the ledger.
    pub fn ready(&self) -> impl Iterator<Item = LedgerPosition> {
        self.graph.ready()
    }

    /// Validates this peer's part of a transaction. False: it is not ready.
    ///
    /// # Errors
    /// The store fails.
    pub fn validate(&mut self, position: LedgerPosition) -> Result<bool, SparseError> {
        let Some(waiting) = self.graph.get(position).filter(|_| self.graph.is_ready(position)) else {
            return Ok(false);
        };
        let transaction = waiting.transaction.clone();
        if !self.judged_rows.is_current(&transaction, &self.store)? {
            self.tell(&transaction, Said::Invalid);
            self.decide(position, false)?;
            return Ok(true);
        }
        self.graph.validated(position);
        let own = &self.filter & &transaction.contracts;
        self.tell(&transaction, Said::ValidFor(own.clone()));
        if let Some(waiting) = self.graph.get_mut(position) {
            waiting.heard.contracts.extend(own);
        }
        self.decide_if_known(position)?;
        Ok(true)
    }

    /// Takes what another peer says.
    ///
    /// # Errors
    /// The store fails.
    pub fn hear(&mut self, verdict: &Verdict) -> Result<(), SparseError> {
        let Verdict { transaction, said } = verdict;
        match self.graph.get_mut(*transaction) {
            Some(waiting) => {
                waiting.heard.note(said);
                waiting.heard.keep_only(&waiting.transaction.contracts);
                self.decide_if_known(*transaction)
            }
            None if transaction.height > self.received => {
                self.early.keep(*transaction, said);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// What is to be told to others since the last call.
    pub fn take_told(&mut self) -> Vec<Told> {
        std::mem::take(&mut self.told)
    }

    /// What this peer waits to hear: to be asked again from time to time, because messages are lost and peers start again.
    pub fn open_questions(&self) -> impl Iterator<Item = Question> {
        self.graph.iter().filter_map(|(transaction, waiting)| {
            let others = &waiting.transaction.contracts - &self.filter;
            let contracts = waiting.heard.missing(&others);
            (!contracts.is_empty()).then_some(Question { transaction, contracts })
        })
    }

    /// Answers another peer; `None`: this one does not know, or does not hold the transaction.
    ///
    /// # Errors
    /// The store fails.
    pub fn answer(&self, transaction: LedgerPosition) -> Result<Option<Verdict>, SparseError> {
        let whole = |is_valid| if is_valid { Said::Valid } else { Said::Invalid };
        let said = match (self.graph.get(transaction), self.judged.get(&transaction)) {
            (Some(waiting), _) => {
                waiting.is_validated.then(|| Said::ValidFor(&self.filter & &waiting.transaction.contracts))
            }
            (None, Some(judged)) => Some(whole(judged.is_valid)),
            (None, None) => self.store.verdict(transaction)?.map(whole),
        };
        Ok(said.map(|said| Verdict { transaction, said }))
    }

    /// Commits the next block; what is not decided of it because of others is deferred. `None`: it has not come, or something of it can
    /// be validated here.
    ///
    /// # Errors
    /// The store fails.
    pub fn commit(&mut self) -> Result<Option<CommittedBlock>, SparseError> {
        let Some(block) = self.blocks.front() else { return Ok(None) };
        let height = self.store.height() + 1;
        let mut record = Record { block: Some(height), ..Record::default() };
        for position in block {
            match (self.judged.get(position), self.graph.get(*position)) {
                (Some(Judged { transaction, is_valid }), _) => {
                    record.verdicts.push((*position, *is_valid));
                    if *is_valid {
                        record.changes.extend(transaction.writes().map(|write| (*position, write)));
                    }
                }
                (None, Some(waiting)) => {
                    let is_shared = !waiting.transaction.contracts.is_subset(&self.filter);
                    // What waits here waits for something that is deferred: all else before it in the order is decided.
                    if !is_shared && self.graph.is_ready(*position) {
                        return Ok(None);
                    }
                    record.deferred.push(&waiting.transaction);
                }
                (None, None) => {}
            }
        }
        self.store.record(&record)?;
        let decided = record.verdicts;
        let deferred: Vec<LedgerPosition> =
            record.deferred.iter().map(|transaction| transaction.position).collect();
        for (position, _) in &decided {
            if let Some(judged) = self.judged.remove(position) {
                self.judged_rows.recorded(&judged.transaction);
            }
        }
        for position in &deferred {
            if let Some(waiting) = self.graph.get_mut(*position) {
                waiting.is_deferred = true;
            }
        }
        self.blocks.pop_front();
        Ok(Some(CommittedBlock { height, decided, deferred }))
    }

    /// What a new peer that is to hold these contracts needs to go on from the last committed block, with the rows of the same moment.
    ///
    /// # Errors
    /// This peer does not hold them all.
    pub fn hand_over(&self, contracts: &BTreeSet<ContractId>) -> Result<HandOver, SparseError> {
        if let Some(other) = contracts.difference(&self.filter).next() {
            return Err(SparseError::NotHeld(*other));
        }
        let height = self.store.height();
        let undecided = self.graph.iter().filter(|(_, waiting)| {
            waiting.is_deferred && !waiting.transaction.contracts.is_disjoint(contracts)
        });
        let undecided = undecided.map(|(_, waiting)| (*waiting.transaction).clone().under(contracts));
        let before = Version { height: height.saturating_add(1), index: 0 };
        Ok(HandOver { height, before, undecided: undecided.collect() })
    }

    /// A transaction with this peer's parts alone.
    fn concerning(&self, transaction: SparseTransaction) -> Result<SparseTransaction, SparseError> {
        let held = &transaction.contracts & &self.filter;
        if let Some(contract) = held.iter().find(|contract| !transaction.parts.contains_key(contract)) {
            let (transaction, contract) = (transaction.position, *contract);
            return Err(SparseError::MissingPart { transaction, contract });
        }
        Ok(transaction.under(&held))
    }

    fn tell(&mut self, transaction: &SparseTransaction, said: Said) {
        if transaction.contracts.len() > 1 {
            let verdict = Verdict { transaction: transaction.position, said };
            self.told.push(Told { verdict, contracts: transaction.contracts.clone() });
        }
    }

    fn decide_if_known(&mut self, position: LedgerPosition) -> Result<(), SparseError> {
        let Some(waiting) = self.graph.get(position) else { return Ok(()) };
        if waiting.heard.invalid {
            return self.decide(position, false);
        }
        if waiting.is_validated && waiting.heard.missing(&waiting.transaction.contracts).is_empty() {
            return self.decide(position, true);
        }
        Ok(())
    }

    /// A transaction is decided, and with it those whose fate it seals.
    fn decide(&mut self, position: LedgerPosition, is_valid: bool) -> Result<(), SparseError> {
        let Some(transaction) = self.settle(position, is_valid)? else { return Ok(()) };
        if is_valid {
            for fated in self.graph.fated_by(&transaction) {
                if let Some(fated) = self.settle(fated, false)? {
                    self.tell(&fated, Said::Invalid);
                }
            }
        }
        Ok(())
    }

    /// Takes a transaction out of the graph. What it writes is to be seen by then: whoever waited for it may be next.
    fn settle(
        &mut self,
        position: LedgerPosition,
        is_valid: bool,
    ) -> Result<Option<Arc<SparseTransaction>>, SparseError> {
        let Some(waiting) = self.graph.get(position) else { return Ok(None) };
        let transaction = waiting.transaction.clone();
        if waiting.is_deferred {
            let mut record = Record { verdicts: vec![(position, is_valid)], ..Record::default() };
            if is_valid {
                record.changes.extend(transaction.writes().map(|write| (position, write)));
            }
            self.store.record(&record)?;
        } else {
            if is_valid {
                self.judged_rows.write(&transaction);
            }
            self.judged.insert(position, Judged { transaction: transaction.clone(), is_valid });
        }
        self.graph.remove(position);
        Ok(Some(transaction))
    }
}
