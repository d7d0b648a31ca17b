//! Members' words that they hold transactions' parts, as they come in, and what is handed to ordering with them.
//!
//! ```text
//! execution version 4:  each transaction ─▶ members' endorsements ─▶ the transaction with them
//! from version 5 on:    a list of transactions ─▶ one signature of each member ─▶ HeldParts, transaction, transaction, …  in one block
//! ```

use super::asking::Answered;
use super::held::Verified;
use super::message::{Message, packed};
use super::part_store::HeldPart;
use super::schemas::PrivateSchemas;
use crate::submission::{Submitted, Submitter};
use bytes::Bytes;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::sync::mpsc;
use types::{
    AnswerAt, EndorsedEffects, EndorsedSimulation, Endorsement, ExecutionVersion, HeldParts, Holder,
    Identity, Payload, SchemaMembers, SignedTransaction, SubmissionReply, TransactionId, encode,
};

/// A transaction in schemas with members, as its client has signed it, with its parts.
pub(super) struct ToHold {
    pub(super) parts: Vec<PartToHold>,
    pub(super) signed: SignedTransaction,
    pub(super) id: TransactionId,
}

pub(super) struct PartToHold {
    pub(super) members: Arc<SchemaMembers>,
    pub(super) held: HeldPart,
}

/// Transactions that stand in one block, with what their members say of all of them; each by itself where nothing is said of all.
pub(crate) struct Bundle {
    /// An encoded transaction, which comes first.
    pub(crate) word: Option<Bytes>,
    /// Encoded.
    pub(crate) transactions: Vec<Bytes>,
}

impl Bundle {
    /// Has transactions ordered with what members say of them; replies come by their positions among all of these. Verifies signatures, so
    /// it is called on a thread that may work.
    pub(crate) fn submit(
        bundles: Vec<Bundle>,
        submitter: &Submitter,
        (answer_at, replies): (AnswerAt, &mpsc::Sender<SubmissionReply>),
    ) {
        // Nobody waits for the words themselves.
        let (nobody, _) = mpsc::channel(1);
        let mut position = 0;
        for Bundle { word, transactions } in bundles {
            let words = word.map(|bytes| Submitted {
                position: 0,
                bytes,
                answer_at: AnswerAt::Recorded,
                replies: nobody.clone(),
            });
            let has_words = words.is_some();
            let submitted = transactions.into_iter().map(|bytes| {
                position += 1;
                Submitted { position: position - 1, bytes, answer_at, replies: replies.clone() }
            });
            let submitted: Vec<Submitted> = words.into_iter().chain(submitted).collect();
            match has_words {
                true => submitter.submit_together(submitted),
                false => submitter.submit(submitted),
            }
        }
    }
}

/// A bundle, and the positions of its transactions among those that somebody asked for.
pub(super) type ReadyBundle = (Bundle, Vec<usize>);

/// A member's word on one transaction.
enum Word {
    /// On this transaction alone.
    Alone(Endorsement),
    /// In a list of several: its number.
    InList(usize),
}

/// How far members are with a transaction.
#[derive(Default)]
struct Progress {
    /// [`ToHold::least_height`]
    least_height: u64,
    words: BTreeMap<u16, Word>,
    refused: BTreeMap<u16, String>,
}

impl Progress {
    /// Takes a member's word of this height, unless it does not count: then the member is asked again.
    fn take(&mut self, member: u16, height: u64, word: Word) {
        let least = self.least_height;
        if height < least {
            let late =
                format!("it is at height {height}, and a schema has changed its members at height {least}");
            self.refused.insert(member, late);
        } else {
            self.words.insert(member, word);
        }
    }
}

/// How far members are with all transactions that somebody asks for together.
pub(super) struct Collecting<'a> {
    schemas: &'a PrivateSchemas,
    /// What members say in one block of all transactions of a list; else each transaction comes with its endorsements.
    in_lists: bool,
    transactions: &'a [ToHold],
    /// Positions of the transactions that are asked for together.
    groups: Vec<Vec<usize>>,
    progress: FxHashMap<TransactionId, Progress>,
    lists: Vec<HeldParts>,
    verified: Verified,
}

impl ToHold {
    /// All members of its schemas.
    fn members(&self) -> BTreeSet<u16> {
        self.parts.iter().flat_map(|part| part.members.organisations.iter().copied()).collect()
    }

    /// The least height at which a member's word counts: who has become a member since may hold the part of another schema alone.
    fn least_height(&self) -> u64 {
        let several = self.parts.len() > 1;
        self.parts.iter().map(|part| part.members.changed).max().filter(|_| several).unwrap_or(0)
    }

    /// The first schema of which too few members are among these.
    fn too_few(&self, words: &BTreeMap<u16, Word>) -> Option<&PartToHold> {
        let count = |part: &PartToHold| words.keys().filter(|member| part.members.has(**member)).count();
        self.parts.iter().find(|part| count(part) < part.members.quorum())
    }

    /// As many of these members as are needed, and no more: more would say nothing more.
    fn enough(&self, words: &BTreeMap<u16, Word>) -> Vec<u16> {
        let mut enough = Vec::new();
        for member in words.keys() {
            let counts = |part: &PartToHold| {
                let held = enough.iter().filter(|known| part.members.has(**known)).count();
                part.members.has(*member) && held < part.members.quorum()
            };
            if self.parts.iter().any(counts) {
                enough.push(*member);
            }
        }
        enough
    }

    fn schemas(&self) -> Vec<&str> {
        self.parts.iter().map(|part| part.held.schema.as_str()).collect()
    }

    fn size(&self) -> usize {
        self.parts.iter().map(|part| encode(&part.held).len()).sum::<usize>()
            + self.signed.to_bytes().len()
            + 8
    }
}

impl<'a> Collecting<'a> {
    /// Nobody has said anything yet but this member, at this height.
    pub(super) fn begin(
        schemas: &'a PrivateSchemas,
        transactions: &'a [ToHold],
        height: u64,
    ) -> Collecting<'a> {
        let charter = schemas.node.charters.at(height + 1);
        // A block of one transaction has no room for what is said of it.
        let in_lists =
            charter.execution_version >= ExecutionVersion::V5.number() && charter.block.transactions_max > 1;
        // Members of the same schemas hold the same: they are asked for the same list.
        let mut by_schemas: BTreeMap<Vec<&str>, Vec<usize>> = BTreeMap::new();
        for (position, one) in transactions.iter().enumerate() {
            by_schemas.entry(one.schemas()).or_default().push(position);
        }
        let most = charter.block.transactions_max as usize - usize::from(in_lists);
        let groups =
            by_schemas.into_values().flat_map(|positions| packed(positions, |at| transactions[*at].size()));
        let groups: Vec<Vec<usize>> =
            groups.flat_map(|group| group.chunks(most).map(<[usize]>::to_vec).collect::<Vec<_>>()).collect();
        let progress = transactions
            .iter()
            .map(|one| (one.id, Progress { least_height: one.least_height(), ..Progress::default() }))
            .collect();
        let (lists, verified) = (Vec::new(), Verified::default());
        let mut collecting =
            Collecting { schemas, in_lists, transactions, groups, progress, lists, verified };
        collecting.own_words(height);
        collecting
    }

    /// What this member says.
    fn own_words(&mut self, height: u64) {
        for group in self.groups.clone() {
            let ids: Vec<TransactionId> = group.iter().map(|at| self.transactions[*at].id).collect();
            if self.in_lists {
                if let Some(word) = self.schemas.sign_together(ids, height) {
                    self.take_list(word);
                }
                continue;
            }
            for (id, endorsement) in ids.iter().zip(self.schemas.sign(&ids, height)) {
                if let Some(progress) = self.progress.get_mut(id) {
                    progress.take(endorsement.organisation, endorsement.snapshot, Word::Alone(endorsement));
                }
            }
        }
    }

    /// Whether enough members hold a transaction's parts.
    pub(super) fn is_enough(&self, one: &ToHold) -> bool {
        self.progress.get(&one.id).is_some_and(|known| one.too_few(&known.words).is_none())
    }

    /// Whether they hold the parts of all.
    pub(super) fn is_complete(&self) -> bool {
        self.transactions.iter().all(|one| self.is_enough(one))
    }

    /// What members are to be asked who have not said anything yet of transactions that are open, list by list: those who hold the same
    /// parts get the same message.
    pub(super) fn to_ask(&self) -> Vec<(Vec<u16>, Message)> {
        let mut asked = Vec::new();
        for group in &self.groups {
            let mut open: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
            for at in group {
                let one = &self.transactions[*at];
                let known = self.progress.get(&one.id).filter(|_| !self.is_enough(one));
                let Some(Progress { words, .. }) = known else { continue };
                for member in one.members().into_iter().filter(|member| !words.contains_key(member)) {
                    open.entry(member).or_default().push(*at);
                }
            }
            let mut alike: BTreeMap<(Vec<&str>, Vec<usize>), Vec<u16>> = BTreeMap::new();
            for (member, open) in open {
                // All of a group have parts in the same schemas.
                let parts = open.first().into_iter().flat_map(|at| &self.transactions[*at].parts);
                let held = parts.filter(|part| part.members.has(member));
                let schemas = held.map(|part| part.held.schema.as_str()).collect();
                alike.entry((schemas, open)).or_default().push(member);
            }
            asked.extend(
                alike.into_iter().map(|((schemas, open), members)| (members, self.message(&schemas, &open))),
            );
        }
        asked
    }

    /// Asks for the parts in these schemas to be held.
    fn message(&self, schemas: &[&str], open: &[usize]) -> Message {
        let parts = |at: &usize| {
            let ToHold { parts, signed, .. } = &self.transactions[*at];
            let held =
                parts.iter().map(|part| &part.held).filter(|held| schemas.contains(&held.schema.as_str()));
            (signed.to_bytes(), held.cloned().collect())
        };
        let parts = open.iter().map(parts).collect();
        match self.in_lists {
            true => Message::HoldTogether(parts),
            false => Message::Hold(parts),
        }
    }

    /// Takes what a member has answered.
    pub(super) fn note(&mut self, answered: Answered) {
        match answered {
            Answered::Held { transaction, member, endorsement } => {
                let Some(progress) = self.progress.get_mut(&transaction) else { return };
                if self.schemas.is_held(&transaction, member, &endorsement, &mut self.verified) {
                    progress.take(member, endorsement.snapshot, Word::Alone(endorsement));
                } else {
                    progress.refused.insert(member, "its signature is not its own".to_string());
                }
            }
            Answered::HeldTogether { member, word } => {
                if self.schemas.is_word_of(member, &word) {
                    self.take_list(word);
                    return;
                }
                for id in &word.transactions {
                    if let Some(progress) = self.progress.get_mut(id) {
                        progress.refused.insert(member, "its signature is not its own".to_string());
                    }
                }
            }
            Answered::Refused { transaction, member, reason } => {
                if let Some(progress) = self.progress.get_mut(&transaction) {
                    progress.refused.insert(member, reason);
                }
            }
        }
    }

    /// Takes a member's word, which it has signed.
    fn take_list(&mut self, HeldParts { transactions, holders }: HeldParts) {
        let same = self.lists.iter().position(|list| list.transactions == transactions);
        let number = same.unwrap_or(self.lists.len());
        for id in &transactions {
            if let Some(progress) = self.progress.get_mut(id) {
                holders.iter().for_each(|Holder { organisation, height, .. }| {
                    progress.take(*organisation, *height, Word::InList(number));
                });
            }
        }
        match same {
            Some(number) => {
                let list = &mut self.lists[number].holders;
                list.retain(|known| holders.iter().all(|holder| holder.organisation != known.organisation));
                list.extend(holders);
            }
            None => self.lists.push(HeldParts { transactions, holders }),
        }
    }

    /// What is handed to ordering: transactions that enough members hold. `session` signs what carries members' words.
    pub(super) fn bundles(&self, session: &Identity) -> Vec<ReadyBundle> {
        let mut bundles = Vec::new();
        for group in &self.groups {
            let ready: Vec<usize> =
                group.iter().copied().filter(|at| self.is_enough(&self.transactions[*at])).collect();
            if ready.is_empty() {
                continue;
            }
            let word = self.in_lists.then(|| self.word_on(&ready, session));
            let transactions = ready.iter().map(|at| self.endorsed(&self.transactions[*at])).collect();
            bundles.push((Bundle { word, transactions }, ready));
        }
        bundles
    }

    /// Why a transaction is not among them: its first schema of which too few members hold their part.
    pub(super) fn missing<'b>(&'b self, one: &'b ToHold) -> Option<Missing<'b>> {
        let Progress { words, refused, .. } = self.progress.get(&one.id)?;
        one.too_few(words).map(|part| Missing { part, held: words.keys().copied().collect(), refused })
    }

    /// A transaction with its endorsements, where there are some.
    fn endorsed(&self, one: &ToHold) -> Bytes {
        let words = self.progress.get(&one.id).map(|known| &known.words);
        let enough = words.map(|words| one.enough(words)).unwrap_or_default();
        let alone = |member: &u16| match words?.get(member)? {
            Word::Alone(endorsement) => Some(endorsement.clone()),
            Word::InList(_) => None,
        };
        let endorsements: Vec<Endorsement> = enough.iter().filter_map(alone).collect();
        if endorsements.is_empty() {
            return Bytes::from(one.signed.to_bytes());
        }
        let endorsed = Some(Box::new(EndorsedSimulation { effects: EndorsedEffects::held(), endorsements }));
        Bytes::from(SignedTransaction { endorsed, ..one.signed.clone() }.to_bytes())
    }

    /// What members say of these transactions: the lists, each with those whose word somebody needs.
    fn word_on(&self, positions: &[usize], session: &Identity) -> Bytes {
        let mut needed: BTreeMap<usize, BTreeSet<u16>> = BTreeMap::new();
        let mut expires_at = 0;
        for one in positions.iter().map(|at| &self.transactions[*at]) {
            expires_at = expires_at.max(one.signed.transaction.expires_at);
            let Some(Progress { words, .. }) = self.progress.get(&one.id) else { continue };
            for member in one.enough(words) {
                if let Some(Word::InList(number)) = words.get(&member) {
                    needed.entry(*number).or_default().insert(member);
                }
            }
        }
        let list = |(number, members): (usize, BTreeSet<u16>)| {
            let HeldParts { transactions, holders } = &self.lists[number];
            let of = |holder: &&Holder| members.contains(&holder.organisation);
            HeldParts {
                transactions: transactions.clone(),
                holders: holders.iter().filter(of).cloned().collect(),
            }
        };
        let held: Vec<HeldParts> = needed.into_iter().map(list).collect();
        Bytes::from(session.sign_repeatable(Payload::HeldParts { held }, expires_at).to_bytes())
    }
}

/// What a transaction lacks.
pub(super) struct Missing<'a> {
    pub(super) part: &'a PartToHold,
    /// Who holds it.
    pub(super) held: Vec<u16>,
    /// Who does not, and why.
    pub(super) refused: &'a BTreeMap<u16, String>,
}
