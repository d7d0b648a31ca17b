//! What clients have signed and members have said, and whether it goes together.

use super::replay::{Admitted, Chain};
use super::statements::{read_all, read_notes};
use crate::history::serial;
use crate::workload::{Operation, Table, numbers};
use crypto::Digest;
use ledger::Ledger;
use node::simulation::{EndedAtMember, SimulatedNode};
use std::collections::{BTreeMap, BTreeSet};
use types::{Charters, Outcome, Receipt, SqlState, TransactionId, Value};

/// Orders of the parts of one block that are tried before the checker gives up.
const TRIES_MAX: u32 = 200_000;

/// Everything that is known of schemas.
#[derive(Default)]
pub(crate) struct Known {
    /// What each transaction does in its schemas, by name.
    signed: BTreeMap<TransactionId, BTreeMap<String, Operation>>,
    /// Transactions in which something leaves a schema that does not come into the other.
    wrong: BTreeSet<TransactionId>,
    answers: Vec<(TransactionId, usize, Receipt)>,
    /// How a part has ended, as the first member has said.
    ended: BTreeMap<(String, TransactionId), (u64, Outcome)>,
    /// In which order parts have ended, by schema.
    order: BTreeMap<String, Vec<TransactionId>>,
    /// What blocks came to in schemas, as the first member has said.
    outcomes: BTreeMap<(u32, u64), Digest>,
    /// For each node, how many ended parts it has been heard of since it started last.
    heard: BTreeMap<usize, (u64, usize)>,
}

/// What a run came to in its schemas.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PrivateCounts {
    /// Parts that the ledger has a place for.
    pub parts: u64,
    /// Transactions with parts in several schemas.
    pub crossing: u64,
    /// Those of them that took effect.
    pub committed: u64,
    /// Certificates of votes in blocks.
    pub certificates: u64,
    /// Times that a canary was seen where it may be.
    pub canaries: u64,
}

impl Known {
    pub(super) fn signed(&mut self, id: TransactionId, operations: BTreeMap<String, Operation>) {
        self.signed.insert(id, operations);
    }

    /// What leaves one of its schemas is not what comes into the other.
    pub(super) fn wrong(&mut self, id: TransactionId) {
        self.wrong.insert(id);
    }

    pub(super) fn answered(&mut self, id: TransactionId, node: usize, receipt: &Receipt) {
        self.answers.push((id, node, receipt.clone()));
    }

    /// All transactions that clients have signed.
    pub(crate) fn ids(&self) -> BTreeSet<TransactionId> {
        self.signed.keys().copied().collect()
    }

    /// Hears what a member's node has come to since it was heard last. `start`: how often it has started.
    ///
    /// # Errors
    /// It is not what others have come to, or a schema has stopped there.
    pub(crate) fn hear(&mut self, number: usize, start: u64, node: &SimulatedNode) -> Result<(), String> {
        let schemas = node.schemas();
        if let Some(stopped) =
            schemas.iter().find_map(|schema| Some((&schema.name, schema.stopped.as_ref()?)))
        {
            return Err(format!(
                "nobody stops: schema {} does not go on at node {number}: {}",
                stopped.0, stopped.1
            ));
        }
        let heard = self.heard.entry(number).or_default();
        if heard.0 != start {
            *heard = (start, 0);
        }
        let new = node.ended(heard.1);
        heard.1 += new.len();
        for EndedAtMember { transaction, schema, height, outcome } in new {
            let known = schemas.iter().find(|known| known.name == schema);
            self.compare_outcome(number, node, known.map_or(0, |known| known.number), height)?;
            let key = (schema, transaction);
            match self.ended.get(&key) {
                Some(before) if *before == (height, outcome.clone()) => {}
                Some(before) => {
                    return Err(format!(
                        "agreement: node {number} says that {transaction} has ended in {} at {height} with {outcome:?}, others: {before:?}",
                        key.0
                    ));
                }
                None => {
                    self.order.entry(key.0.clone()).or_default().push(transaction);
                    self.ended.insert(key, (height, outcome));
                }
            }
        }
        Ok(())
    }

    /// All members come to the same in every block.
    fn compare_outcome(
        &mut self,
        number: usize,
        node: &SimulatedNode,
        schema: u32,
        height: u64,
    ) -> Result<(), String> {
        let Some(outcome) = node.schema_outcome(schema, height) else { return Ok(()) };
        let digest = types::Statement::digest(&outcome);
        match *self.outcomes.entry((schema, height)).or_insert(digest) == digest {
            true => Ok(()),
            false => Err(format!(
                "agreement: node {number} has come to something else in schema {schema} at {height}"
            )),
        }
    }

    /// Whether everything that has a place in this ledger is decided, and has ended at these members' nodes.
    ///
    /// # Errors
    /// The ledger is not one.
    pub(crate) fn is_settled(
        &self,
        ledger: &Ledger,
        charters: &Charters,
        nodes: &[&SimulatedNode],
    ) -> Result<bool, String> {
        let chain = Chain::of(ledger, charters)?;
        let has_all = |node: &&SimulatedNode| {
            let ended: BTreeSet<(TransactionId, String)> =
                node.ended(0).into_iter().map(|one| (one.transaction, one.schema)).collect();
            node.schemas().iter().all(|schema| {
                schema.height >= chain.height
                    && schema.undecided == 0
                    && chain.admitted.iter().all(|(id, admitted)| {
                        !admitted.schemas.contains(&schema.name)
                            || ended.contains(&(*id, schema.name.clone()))
                    })
            })
        };
        let is_ahead = self.ended.values().any(|(height, _)| *height > chain.height);
        Ok(!is_ahead && chain.is_settled() && nodes.iter().all(has_all))
    }

    /// Checks everything once more. `nodes`: of members, by their numbers; `members`: of each schema.
    ///
    /// # Errors
    /// The first promise that was not kept.
    pub(crate) fn check(
        &mut self,
        ledger: &Ledger,
        charters: &Charters,
        nodes: &[(usize, u16, &SimulatedNode)],
        members: &BTreeMap<String, BTreeSet<u16>>,
    ) -> Result<PrivateCounts, String> {
        let chain = Chain::of(ledger, charters)?;
        for (number, _, node) in nodes {
            for schema in node.schemas() {
                for height in 1..=chain.height {
                    self.compare_outcome(*number, node, schema.number, height)?;
                }
            }
        }
        chain.admitted.iter().try_for_each(|(id, admitted)| self.check_decided(id, admitted))?;
        for (schema, id) in self.ended.keys() {
            if !chain.admitted.contains_key(id) {
                return Err(format!("{id} has ended in {schema}, and has no place in the ledger"));
            }
        }
        self.check_answers(&chain)?;
        let crossing: Vec<&Admitted> = chain.admitted.values().filter(|one| one.is_crossing()).collect();
        for (schema, of) in members {
            let (height, table) = self.replay(schema, &chain)?;
            check_rows((schema, of), (height, &table), nodes)?;
        }
        Ok(PrivateCounts {
            parts: chain.admitted.values().map(|one| one.schemas.len() as u64).sum(),
            crossing: crossing.len() as u64,
            committed: crossing.iter().filter(|one| one.decided.is_some_and(|(_, commits)| commits)).count()
                as u64,
            certificates: chain.certificates,
            canaries: 0,
        })
    }

    /// What has several parts has ended in all of its schemas as the chain has decided, where it was decided.
    fn check_decided(&self, id: &TransactionId, admitted: &Admitted) -> Result<(), String> {
        for schema in &admitted.schemas {
            let Some((height, outcome)) = self.ended.get(&(schema.clone(), *id)) else {
                return Err(format!("ends: {id} at {:?} has not ended in {schema}", admitted.position));
            };
            let took_effect = matches!(outcome, Outcome::Committed(_));
            let differs = matches!(outcome, Outcome::Aborted(error) if error.state == SqlState(*b"23000"));
            let is_wrong = self.wrong.contains(id);
            if took_effect && is_wrong || differs && !is_wrong {
                return Err(format!(
                    "moves: {id} at {:?} has ended in {schema} with {outcome:?}; what leaves a schema {} come into the other",
                    admitted.position,
                    if is_wrong { "does not" } else { "does" }
                ));
            }
            match admitted.decided {
                Some((decided, commits)) if *height != decided || took_effect != commits => {
                    return Err(format!(
                        "atomic: {id} at {:?} is decided at {decided} ({commits}), and ended in {schema} at {height} with {outcome:?}",
                        admitted.position
                    ));
                }
                None if is_undone(outcome) || matches!(outcome, Outcome::Rejected(_) | Outcome::Conflict) => {
                    return Err(format!("{id} has one part, and ended in {schema} with {outcome:?}"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// What clients have heard is what happened.
    fn check_answers(&self, chain: &Chain) -> Result<(), String> {
        for (id, node, Receipt { height, outcome, .. }) in &self.answers {
            if matches!(outcome, Outcome::Rejected(_)) {
                continue;
            }
            let admitted = chain.admitted.get(id).ok_or_else(|| {
                format!("durability: node {node} says that {id} ended with {outcome:?}, and it has no place")
            })?;
            let of = |schema: &String| self.ended.get(&(schema.clone(), *id));
            let known: Vec<&(u64, Outcome)> = admitted.schemas.iter().filter_map(of).collect();
            let commits = known.iter().all(|(_, known)| matches!(known, Outcome::Committed(_)));
            let is_right = known.iter().map(|(known, _)| *known).max() == Some(*height)
                && matches!(outcome, Outcome::Committed(_)) == commits;
            if !is_right {
                return Err(format!(
                    "answers: node {node} says of {id} {outcome:?} at {height}, it was {known:?}"
                ));
            }
        }
        Ok(())
    }

    /// The rows of a schema behind everything that has taken effect in it, in some order that explains each outcome: parts of later
    /// blocks stand behind those of earlier ones.
    fn replay(&self, schema: &str, chain: &Chain) -> Result<(u64, Table), String> {
        let mut blocks: BTreeMap<u64, Vec<(&Operation, &Outcome)>> = BTreeMap::new();
        for id in self.order.get(schema).into_iter().flatten() {
            let Some((height, outcome)) = self.ended.get(&(schema.to_string(), *id)) else { continue };
            let Some(operation) = self.signed.get(id).and_then(|parts| parts.get(schema)) else {
                return Err(format!("{id} took effect in {schema}, and no client has signed it"));
            };
            let is_crossing = chain.admitted.get(id).is_some_and(Admitted::is_crossing);
            // Voted against on a state that is gone: what its client hears is no part of the state.
            if !is_crossing || matches!(outcome, Outcome::Committed(_)) {
                blocks.entry(*height).or_default().push((operation, outcome));
            }
        }
        let (mut table, mut newest) = (Table::default(), 0);
        for (height, waiting) in blocks {
            let mut tries = TRIES_MAX;
            table = serial(&table, &waiting, &mut tries).ok_or_else(|| {
                let gave_up = if tries == 0 { " among those tried" } else { "" };
                format!("serial: no order{gave_up} of what ended in {schema} at {height} explains {waiting:?} on {table:?}")
            })?;
            newest = height;
        }
        Ok((newest, table))
    }
}

/// Whether a transaction of several schemas was decided against.
fn is_undone(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Aborted(error) if error.state == SqlState::TRANSACTION_ROLLBACK)
}

/// The members' clients see these rows, and all the same of what the model has not; nobody else sees a table.
fn check_rows(
    (schema, members): (&str, &BTreeSet<u16>),
    (height, table): (u64, &Table),
    nodes: &[(usize, u16, &SimulatedNode)],
) -> Result<(), String> {
    let row = |(row, (version, balance)): (&i64, &(i64, i64))| vec![*row, *version, *balance];
    let expected: Vec<Vec<i64>> = table.iter().map(row).collect();
    let mut notes: Option<Vec<Vec<Value>>> = None;
    for (number, organisation, node) in nodes {
        let read = node.query(&read_all(schema));
        if !members.contains(organisation) {
            match read {
                Ok(_) => {
                    return Err(format!("private: node {number} has a table in {schema}, and is no member"));
                }
                Err(_) => continue,
            }
        }
        let (_, rows) = read.map_err(|error| format!("node {number}: {error:?}"))?;
        if numbers(&rows).as_ref() != Some(&expected) {
            return Err(format!(
                "serial: node {number} holds {rows:?} in {schema}, expected {expected:?} behind {height}"
            ));
        }
        let (_, found) =
            node.query(&read_notes(schema)).map_err(|error| format!("node {number}: {error:?}"))?;
        match notes.get_or_insert_with(|| found.clone()) == &found {
            true => {}
            false => {
                return Err(format!(
                    "agreement: node {number} holds {found:?} in {schema}, others {notes:?}"
                ));
            }
        }
    }
    Ok(())
}
