//! Endorsements for a batch of transactions that were executed on one state: whom to ask for what, what their answers
//! mean, and when it is enough. No network and no clock.

use super::endorser::Simulated;
use bytes::Bytes;
use crypto::Digest;
use engine::EndorsementBasis;
use std::collections::BTreeMap;
use types::{
    EndorsedSimulation, Endorsement, PROPOSALS_MAX, Policy, Proposal, ProposalAnswer, ProposalRefusal,
    ProposalReply, ProposalRequest, SignedTransaction, SqlError, SqlState,
};

/// Characters of what another node gives as its reason.
const REASON_CHARACTERS_MAX: usize = 1_000;
/// Siblings in a proof for one of so many proposals.
const SIBLINGS_MAX: usize = PROPOSALS_MAX.ilog2() as usize;

/// A batch of transactions on their way to enough endorsements. `T` stands for whatever a transaction belongs to.
pub(super) struct Collection<'a, T> {
    basis: &'a EndorsementBasis,
    /// Names of the organisations, by position.
    names: &'a [String],
    /// Who is asked first.
    preference: Vec<u16>,
    policies: Vec<Policy>,
    waiting: Vec<PendingProposal<T>>,
    /// Who does not answer at all, and why.
    unavailable: BTreeMap<u16, String>,
    ended: Vec<(T, Result<Bytes, SqlError>)>,
}

struct PendingProposal<T> {
    subject: T,
    bytes: Bytes,
    simulated: Simulated,
    /// Which of the policies.
    policy: usize,
    endorsements: Vec<Endorsement>,
    /// Who does not endorse this one, and why.
    refusals: BTreeMap<u16, String>,
    /// Somebody has found something else.
    diverging: bool,
    /// Some organisation does not agree to it.
    disagreed: bool,
}

/// What a choice of endorsers depends on: the policy, who does not endorse, and who has.
type Choice = (usize, Vec<u16>, Vec<u16>);

/// Transactions that one endorser is asked about.
pub(super) struct Question {
    pub(super) organisation: u16,
    /// Which transactions of the collection.
    pub(super) positions: Vec<usize>,
}

impl<'a, T> Collection<'a, T> {
    /// Begins with what was found on `basis`.
    pub(super) fn new(
        basis: &'a EndorsementBasis,
        names: &'a [String],
        preference: Vec<u16>,
        simulated: impl IntoIterator<Item = (T, Bytes, Simulated)>,
    ) -> Collection<'a, T> {
        let mut collection = Collection {
            basis,
            names,
            preference,
            policies: Vec::new(),
            waiting: Vec::new(),
            unavailable: BTreeMap::new(),
            ended: Vec::new(),
        };
        // Most transactions of a batch need the same.
        let mut last: Option<(Vec<Policy>, usize)> = None;
        for (subject, bytes, simulated) in simulated {
            let needed = match basis.policies(&simulated.transaction.payload, &simulated.effects) {
                Ok(needed) => needed,
                Err(fault) => {
                    collection.ended.push((subject, Err(not_endorsed(fault.to_string()))));
                    continue;
                }
            };
            if needed.is_empty() {
                // A script that writes no table with a policy.
                collection.ended.push((subject, Ok(bytes)));
                continue;
            }
            let policy = match &last {
                Some((known, policy)) if *known == needed => *policy,
                _ => match collection.policy(&needed) {
                    Ok(policy) => {
                        last = Some((needed, policy));
                        policy
                    }
                    Err(error) => {
                        collection.ended.push((subject, Err(error)));
                        continue;
                    }
                },
            };
            collection.waiting.push(PendingProposal {
                subject,
                bytes,
                simulated,
                policy,
                endorsements: Vec::new(),
                refusals: BTreeMap::new(),
                diverging: false,
                disagreed: false,
            });
        }
        collection
    }

    fn policy(&mut self, needed: &[Policy]) -> Result<usize, SqlError> {
        let all = Policy::and(needed.iter().cloned()).map_err(|error| {
            not_endorsed(format!("the policies of what the transaction does are too much together: {error}"))
        })?;
        let all = all.expect("the ledger's policy, or that of a procedure");
        let known = self.policies.iter().position(|policy| *policy == all);
        Ok(known.unwrap_or_else(|| {
            self.policies.push(all);
            self.policies.len() - 1
        }))
    }

    /// Whom to ask next about what, so that every transaction is endorsed enough by as few as possible. Nothing, where all
    /// are, or cannot be.
    pub(super) fn questions(&mut self) -> Vec<Question> {
        let mut questions: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
        let mut chosen: BTreeMap<Choice, Option<Vec<u16>>> = BTreeMap::new();
        let waiting = std::mem::take(&mut self.waiting);
        for one in waiting {
            let excluded: Vec<u16> = one.refusals.keys().copied().collect();
            let endorsers = one.endorsements.iter().map(|endorsement| endorsement.organisation).collect();
            let needed = chosen
                .entry((one.policy, excluded, endorsers))
                .or_insert_with_key(|(policy, excluded, has)| self.choose(*policy, excluded, has));
            let Some(needed) = needed else {
                let error = self.not_enough(&one);
                self.ended.push((one.subject, Err(error)));
                continue;
            };
            let position = self.waiting.len();
            for organisation in needed {
                if one.endorsements.iter().all(|endorsement| endorsement.organisation != *organisation) {
                    questions.entry(*organisation).or_default().push(position);
                }
            }
            self.waiting.push(one);
        }
        let questions = questions.into_iter();
        questions.map(|(organisation, positions)| Question { organisation, positions }).collect()
    }

    /// Those of `has` count, wherever they are now, and come first.
    fn choose(&self, policy: usize, excluded: &[u16], has: &[u16]) -> Option<Vec<u16>> {
        let may = |position: &&u16| {
            !has.contains(position)
                && !excluded.contains(position)
                && !self.unavailable.contains_key(position)
        };
        let available: Vec<&str> = has
            .iter()
            .chain(self.preference.iter().filter(may))
            .map(|position| self.names[usize::from(*position)].as_str())
            .collect();
        let chosen = self.policies[policy].choose(&available)?;
        let position = |name: String| self.names.iter().position(|known| *known == name);
        Some(chosen.into_iter().filter_map(position).map(|position| position as u16).collect())
    }

    /// The state that they were found on.
    pub(super) fn basis(&self) -> &'a EndorsementBasis {
        self.basis
    }

    /// What a question is about.
    pub(super) fn simulated(&self, question: &Question) -> Vec<&Simulated> {
        question.positions.iter().map(|position| &self.waiting[*position].simulated).collect()
    }

    /// This node's organisation has judged what it is asked about: what is left for it to sign.
    pub(super) fn judged(
        &mut self,
        question: Question,
        verdicts: Vec<Result<(), ProposalRefusal>>,
    ) -> Question {
        let Question { organisation, positions } = question;
        let mut agreed = Vec::with_capacity(positions.len());
        for (position, verdict) in positions.into_iter().zip(verdicts) {
            match verdict {
                Ok(()) => agreed.push(position),
                Err(refusal) => self.waiting[position].refused(organisation, &refusal),
            }
        }
        Question { organisation, positions: agreed }
    }

    /// The request that asks a question of another node.
    pub(super) fn request(&self, question: &Question) -> ProposalRequest {
        let proposal = |position: &usize| {
            let one = &self.waiting[*position];
            Proposal { transaction: one.bytes.to_vec(), expected: Some(one.simulated.digest) }
        };
        let proposals = question.positions.iter().map(proposal).collect();
        ProposalRequest { height: Some(self.basis.height), proposals }
    }

    /// The same question, for this node itself, which has executed them: what it has to sign.
    pub(super) fn own(&self, question: &Question) -> Vec<(types::TransactionId, Digest)> {
        let found = |position: &usize| {
            let simulated = &self.waiting[*position].simulated;
            (simulated.transaction.id, simulated.digest)
        };
        question.positions.iter().map(found).collect()
    }

    /// This node has signed what [`Collection::own`] says.
    pub(super) fn signed(&mut self, question: &Question, endorsements: Vec<Endorsement>) {
        for (position, endorsement) in question.positions.iter().zip(endorsements) {
            self.waiting[*position].endorsements.push(endorsement);
        }
    }

    /// What another node has answered. Returns how many of its answers are something else than this node found.
    pub(super) fn answered(&mut self, question: &Question, reply: Result<ProposalReply, String>) -> u64 {
        let organisation = question.organisation;
        let height = self.basis.height;
        let answers = match reply {
            Ok(ProposalReply::Answers { height: found, answers })
                if found == height && answers.len() == question.positions.len() =>
            {
                answers
            }
            Ok(_) => {
                self.unavailable.insert(organisation, "it does not answer what it was asked".to_string());
                return 0;
            }
            Err(reason) => {
                self.unavailable.insert(organisation, excerpt(reason));
                return 0;
            }
        };
        let mut diverging = 0;
        for (position, answer) in question.positions.iter().zip(answers) {
            let waiting = &mut self.waiting[*position];
            let refusal = match answer {
                Ok(ProposalAnswer::Agreed(endorsement))
                    if (endorsement.organisation, endorsement.snapshot) == (organisation, height)
                        && endorsement.proof.leaves <= PROPOSALS_MAX as u64
                        && endorsement.proof.siblings.len() <= SIBLINGS_MAX =>
                {
                    waiting.endorsements.push(endorsement);
                    continue;
                }
                Ok(ProposalAnswer::Agreed(_)) => {
                    "its endorsement is another's, or for another state".to_string()
                }
                Ok(ProposalAnswer::Found { effects, .. }) => {
                    let difference = self.basis.difference(&waiting.simulated.effects, &effects);
                    match difference {
                        Some(difference) => format!("it found something else: {difference}"),
                        None => "it does not agree with what it found itself".to_string(),
                    }
                }
                Err(refusal @ (ProposalRefusal::Busy | ProposalRefusal::Disagrees(_))) => {
                    // It has found nothing, and so nothing else.
                    waiting.refused(organisation, &refusal);
                    continue;
                }
                Err(refusal) => refusal.to_string(),
            };
            waiting.diverging = true;
            waiting.refusals.insert(organisation, excerpt(refusal));
            diverging += 1;
        }
        diverging
    }

    /// Takes out those of which this holds.
    pub(super) fn take_where(&mut self, holds: impl Fn(&Simulated) -> bool) -> Vec<T> {
        let taken = self.waiting.extract_if(.., |one| holds(&one.simulated));
        taken.map(|one| one.subject).collect()
    }

    /// What is endorsed enough, when there are no more questions: by position, ready to be verified.
    pub(super) fn endorsed(&self) -> Vec<Result<Bytes, SqlError>> {
        let limit = self.basis.transaction_bytes_max as usize;
        self.waiting.iter().map(|one| one.endorsed(limit)).collect()
    }

    /// An organisation's endorsement of this transaction is forged.
    pub(super) fn forged(&mut self, position: usize, organisation: u16) {
        let waiting = &mut self.waiting[position];
        waiting.endorsements.retain(|endorsement| endorsement.organisation != organisation);
        waiting.refusals.insert(organisation, "its endorsement is not its signature".to_string());
    }

    /// Ends the collection with `endorsed`, by position: each transaction with its endorsements, or why it has not enough.
    pub(super) fn finish(
        self,
        endorsed: impl IntoIterator<Item = Result<Bytes, SqlError>>,
    ) -> Vec<(T, Result<Bytes, SqlError>)> {
        let endorsed = self.waiting.into_iter().map(|one| one.subject).zip(endorsed);
        self.ended.into_iter().chain(endorsed).collect()
    }

    fn not_enough(&self, one: &PendingProposal<T>) -> SqlError {
        let name = |position: &u16| self.names[usize::from(*position)].as_str();
        let by: Vec<&str> =
            one.endorsements.iter().map(|endorsement| name(&endorsement.organisation)).collect();
        let by = if by.is_empty() { "nobody".to_string() } else { by.join(", ") };
        let reasons = self.unavailable.iter().chain(&one.refusals);
        let reasons: Vec<String> =
            reasons.map(|(position, why)| format!("{}: {why}", name(position))).collect();
        let message =
            format!("the transaction is endorsed by {by} alone; its policy is {}", self.policies[one.policy]);
        if one.disagreed {
            let message = format!(
                "the script is not agreed to: its policy is {}, and {by} agrees",
                self.policies[one.policy]
            );
            return SqlError::new(SqlState::CHECK_VIOLATION, message).detail(reasons.join("\n"));
        }
        let error = match one.diverging {
            true => SqlError::new(SqlState::DATA_CORRUPTED, message).hint(
                "Nodes that hold the same data find the same: compare their state digests (entente status), and see \
                 whether the contract is the reason.",
            ),
            false => not_endorsed(message).hint("Submit it again when those who are missing are back."),
        };
        if reasons.is_empty() { error } else { error.detail(reasons.join("\n")) }
    }
}

impl<T> PendingProposal<T> {
    fn refused(&mut self, organisation: u16, refusal: &ProposalRefusal) {
        self.disagreed |= matches!(refusal, ProposalRefusal::Disagrees(_));
        self.refusals.insert(organisation, excerpt(refusal.to_string()));
    }

    fn endorsed(&self, limit: usize) -> Result<Bytes, SqlError> {
        let mut signed = SignedTransaction::from_bytes(&self.bytes)
            .map_err(|error| SqlError::new(SqlState::PROTOCOL_VIOLATION, error.to_string()))?;
        let (effects, endorsements) = (self.simulated.effects.clone(), self.endorsements.clone());
        signed.endorsed = Some(Box::new(EndorsedSimulation { effects, endorsements }));
        let bytes = signed.to_bytes();
        let found = bytes.len();
        if found > limit {
            let message = format!(
                "with what it does and its endorsements the transaction has {found} bytes, the limit is {limit} \
                 (block.transaction_bytes_max of the charter)"
            );
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
                .hint("Split it into several transactions."));
        }
        Ok(bytes.into())
    }
}

/// The beginning of what another node says, which may be long.
fn excerpt(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(REASON_CHARACTERS_MAX) {
        text.truncate(end);
        text.push('…');
    }
    text
}

fn not_endorsed(message: String) -> SqlError {
    SqlError::new(SqlState::CANNOT_CONNECT_NOW, message)
}

#[cfg(test)]
mod tests {
    use super::super::endorser::{Endorser, Sources};
    use super::super::states::RecentStates;
    use super::*;
    use crate::charters::DecidedCharters;
    use crate::store_failure::StoreHealth;
    use crypto::SecretKey;
    use engine::{Engine, VerifiedBlock, VerifiedTransaction, Verifier};
    use state::Stores;
    use state::conformance::{FailingStores, Failures, Operation};
    use std::sync::Arc;
    use std::time::Duration;
    use types::{
        BlockHeader, Charter, Charters, ExecutionModel, Identity, KnownVersions, Organisation, Outcome,
        Payload, Value, endorse, transactions_root,
    };

    const SCHEMA: &str = "CREATE TABLE note (id bigint PRIMARY KEY, text text NOT NULL);
        CREATE TABLE gold (id bigint PRIMARY KEY) WITH (endorsement_policy = 'd')";

    /// A ledger of a, b, c and d that any two endorse, at height 1.
    struct Network {
        charter: Arc<Charter>,
        charters: Arc<DecidedCharters>,
        basis: EndorsementBasis,
        client: Identity,
        nodes: Vec<SecretKey>,
        names: Vec<String>,
        ledger: Digest,
    }

    impl Network {
        fn new() -> Network {
            Network::on(&memory::Memory)
        }

        fn on(stores: &dyn Stores) -> Network {
            let key = |number: u8| SecretKey::from_bytes([number; 32]);
            let mut charter = Charter::with_defaults("test", 1);
            charter.governance = "any".into();
            charter.execution = ExecutionModel::ExecuteOrderValidate;
            charter.protocol = "occ".into();
            charter.endorsement.policy = "2 of (a, b, c, d)".into();
            let names: Vec<String> = ["a", "b", "c", "d"].map(String::from).to_vec();
            for (number, name) in (0u8..).zip(&names) {
                charter.organisations.push(Organisation {
                    name: name.clone(),
                    root_key: key(10 + number).public_key(),
                    node_key: key(20 + number).public_key(),
                    address: String::new(),
                    gateway: String::new(),
                    removed: false,
                    node_key_expires: None,
                });
            }
            let (charter, ledger) = (Arc::new(charter.clone()), charter.ledger());
            let client = Identity::issue(ledger, &key(10), 0);
            let mut engine = Engine::new(charter.clone(), stores).expect("a charter");
            let schema = client.sign(Payload::Script { sql: SCHEMA.into(), parameters: vec![] }, 9);
            let bytes = [Bytes::from(schema.to_bytes())];
            let header = BlockHeader {
                ledger,
                height: 1,
                timestamp_ms: 1_000,
                previous: ledger,
                transactions_root: transactions_root(&bytes),
                transactions: 1,
                proposer: 0,
                certified_height: 0,
                attested: types::Attested::default().digest(),
                charters: ledger,
            };
            let transactions = Verifier::new(&charter)
                .check(types::Place { charters: &types::Charters::new(charter.clone()), height: 1 }, &bytes);
            let block = VerifiedBlock { digest: header.digest(), header, transactions };
            let executed = engine.execute(&block).expect("the first block");
            assert!(matches!(executed.receipts[0].outcome, Outcome::Committed(_)), "{:?}", executed.receipts);
            let nodes = (0..4).map(|number| key(20 + number)).collect();
            let (basis, known) = (engine.endorsement_basis(1_000), KnownVersions::default());
            let charters = Arc::new(DecidedCharters::of(&engine, Charters::new(charter.clone()), known));
            Network { charter, charters, basis, client, nodes, names, ledger }
        }

        fn simulated<T>(&self, subject: T, sql: &str, parameters: Vec<Value>) -> (T, Bytes, Simulated) {
            let signed = self.client.sign(Payload::Script { sql: sql.into(), parameters }, 9);
            let bytes = Bytes::from(signed.to_bytes());
            let transaction = Arc::new(VerifiedTransaction::from(signed));
            let effects = self
                .basis
                .simulate((transaction.id, transaction.client), &transaction.principal, &transaction.payload)
                .expect("it runs");
            let digest = effects.digest();
            (subject, bytes, Simulated { transaction, effects, digest })
        }

        fn note(&self, number: i64) -> (i64, Bytes, Simulated) {
            self.simulated(number, "INSERT INTO note VALUES ($1, 'x')", vec![Value::BigInt(number)])
        }

        fn collection(&self, of: Vec<(i64, Bytes, Simulated)>) -> Collection<'_, i64> {
            Collection::new(&self.basis, &self.names, vec![0, 1, 2, 3], of)
        }

        /// Answers a question as an honest endorser.
        fn reply(&self, collection: &Collection<'_, i64>, question: &Question) -> ProposalReply {
            let key = &self.nodes[usize::from(question.organisation)];
            let endorsements =
                endorse(key, question.organisation, &self.ledger, 1, &collection.own(question));
            let answers = endorsements.into_iter().map(|one| Ok(ProposalAnswer::Agreed(one))).collect();
            ProposalReply::Answers { height: 1, answers }
        }
    }

    fn asked(questions: &[Question]) -> Vec<(u16, usize)> {
        questions.iter().map(|question| (question.organisation, question.positions.len())).collect()
    }

    #[test]
    fn as_few_as_the_policies_need_are_asked_and_everybody_once() {
        let network = Network::new();
        let gold = network.simulated(7, "INSERT INTO gold VALUES (7)", vec![]);
        let mut collection = network.collection(vec![network.note(1), network.note(2), gold]);
        let questions = collection.questions();
        assert_eq!(asked(&questions), [(0, 3), (1, 2), (3, 1)]);
        for question in &questions {
            assert_eq!(collection.request(question).proposals.len(), question.positions.len());
            let reply = network.reply(&collection, question);
            assert_eq!(collection.answered(question, Ok(reply)), 0);
        }
        assert!(asked(&collection.questions()).is_empty());
        let endorsed = collection.endorsed();
        let ended = collection.finish(endorsed);
        assert_eq!(ended.iter().map(|(subject, _)| *subject).collect::<Vec<_>>(), [1, 2, 7]);
        for (_, bytes) in ended {
            let signed = SignedTransaction::from_bytes(&bytes.expect("endorsed")).expect("a transaction");
            assert_eq!(signed.endorsed.expect("with effects").endorsements.len(), 2);
        }
    }

    #[test]
    fn who_is_absent_or_differs_or_forges_is_replaced_until_nobody_is_left() {
        let network = Network::new();
        let mut collection = network.collection(vec![network.note(1), network.note(2)]);
        let questions = collection.questions();
        assert_eq!(asked(&questions), [(0, 2), (1, 2)]);
        let own = collection.own(&questions[0]);
        collection.signed(&questions[0], endorse(&network.nodes[0], 0, &network.ledger, 1, &own));
        // b finds something else for the second.
        let ProposalReply::Answers { height, mut answers } = network.reply(&collection, &questions[1]) else {
            panic!("answers")
        };
        let other = network.note(3).2.effects;
        let Ok(ProposalAnswer::Agreed(endorsement)) = answers[1].clone() else { panic!("it agrees") };
        answers[1] = Ok(ProposalAnswer::Found { effects: other, endorsement });
        assert_eq!(collection.answered(&questions[1], Ok(ProposalReply::Answers { height, answers })), 1);
        let questions = collection.questions();
        assert_eq!(asked(&questions), [(2, 1)]);
        // c is not there at all.
        collection.answered(&questions[0], Err("it cannot be reached".into()));
        let questions = collection.questions();
        assert_eq!(asked(&questions), [(3, 1)]);
        // d agrees, but its signature turns out to be forged.
        let reply = network.reply(&collection, &questions[0]);
        assert_eq!(collection.answered(&questions[0], Ok(reply)), 0);
        assert!(asked(&collection.questions()).is_empty());
        assert!(collection.endorsed().iter().all(Result::is_ok));
        collection.forged(1, 3);
        assert!(asked(&collection.questions()).is_empty());
        let endorsed = collection.endorsed();
        let mut ended = collection.finish(endorsed);
        ended.sort_by_key(|(subject, _)| *subject);
        assert!(ended[0].1.is_ok());
        let error = ended[1].1.as_ref().expect_err("nobody is left").clone();
        assert_eq!(error.state, SqlState::DATA_CORRUPTED);
        assert!(error.message.contains("endorsed by a alone; its policy is 2 of (a, b, c, d)"), "{error:?}");
        let detail = error.detail.expect("who and why");
        let found = "b: it found something else: change 1: the row of table note with key";
        for says in
            [found, "becomes (2, x) against", "c: it cannot be reached", "d: its endorsement is not its"]
        {
            assert!(detail.contains(says), "{detail}");
        }
    }

    #[test]
    fn an_endorsement_counts_wherever_its_endorser_is_now() {
        let network = Network::new();
        let gold = network.simulated(7, "INSERT INTO gold VALUES (7)", vec![]);
        let mut collection = network.collection(vec![network.note(1), gold]);
        let questions = collection.questions();
        assert_eq!(asked(&questions), [(0, 2), (1, 1), (3, 1)]);
        for question in &questions {
            let reply = network.reply(&collection, question);
            // b is away from the beginning, d later.
            let reply = if question.organisation == 1 { Err("away".to_string()) } else { Ok(reply) };
            collection.answered(question, reply);
        }
        for other in [2, 3] {
            let questions = collection.questions();
            assert_eq!(asked(&questions), [(other, 1)]);
            collection.answered(&questions[0], Err("away".into()));
        }
        assert!(asked(&collection.questions()).is_empty());
        let endorsed = collection.endorsed();
        let ended = collection.finish(endorsed);
        let fate = |subject| ended.iter().find(|(one, _)| *one == subject).map(|(_, fate)| fate.is_ok());
        assert_eq!((fate(1), fate(7)), (Some(false), Some(true)));
    }

    #[test]
    fn answers_to_something_else_count_as_none() {
        let network = Network::new();
        let one = || {
            let mut collection = network.collection(vec![network.note(1)]);
            let question = collection.questions().remove(1);
            let reply = network.reply(&collection, &question);
            let ProposalReply::Answers { answers, .. } = reply else { panic!("answers") };
            (collection, question, answers)
        };
        let (mut collection, question, answers) = one();
        collection.answered(&question, Ok(ProposalReply::Answers { height: 0, answers }));
        assert!(collection.unavailable.contains_key(&1), "another state");
        let (mut collection, question, _) = one();
        collection.answered(&question, Ok(ProposalReply::Answers { height: 1, answers: vec![] }));
        assert!(collection.unavailable.contains_key(&1), "too few answers");
        let (mut collection, question, mut answers) = one();
        let Ok(ProposalAnswer::Agreed(endorsement)) = &mut answers[0] else { panic!("it agrees") };
        endorsement.organisation = 2;
        collection.answered(&question, Ok(ProposalReply::Answers { height: 1, answers }));
        assert!(collection.waiting[0].refusals[&1].contains("another's"));
        // A proof that makes the transaction too long, or belongs to more proposals than there can be.
        for (siblings, leaves) in [(12, 2), (11, 4_096)] {
            let (mut collection, question, mut answers) = one();
            let Ok(ProposalAnswer::Agreed(endorsement)) = &mut answers[0] else { panic!("it agrees") };
            endorsement.proof.siblings = vec![Digest::ZERO; siblings];
            endorsement.proof.leaves = leaves;
            collection.answered(&question, Ok(ProposalReply::Answers { height: 1, answers }));
            assert!(collection.waiting[0].refusals.contains_key(&1), "{siblings}, {leaves}");
        }
        let (mut collection, question, _) = one();
        let long = ProposalRefusal::Rejected(types::RejectReason::Malformed("x".repeat(100_000)));
        collection.answered(&question, Ok(ProposalReply::Answers { height: 1, answers: vec![Err(long)] }));
        assert!(collection.waiting[0].refusals[&1].len() < 2_000);
        let (mut collection, question, _) = one();
        let refusal = Err(ProposalRefusal::Aborted(SqlError::new(SqlState::CHECK_VIOLATION, "no")));
        collection.answered(&question, Ok(ProposalReply::Answers { height: 1, answers: vec![refusal] }));
        assert!(collection.waiting[0].refusals[&1].contains("23514: no"));
    }

    /// What is on its disk is no property of a transaction.
    #[test]
    fn an_endorser_whose_store_fails_does_not_say_that_the_transaction_does() {
        let (failures, noted) = (Arc::new(Failures::default()), Arc::new(StoreHealth::default()));
        let network = Network::on(&FailingStores::new(Arc::new(memory::Memory), failures.clone()));
        let (_, bytes, _) = network.simulated(1, "UPDATE note SET text = 'y' WHERE id = 1", Vec::new());
        let states = Arc::new(RecentStates::new(network.basis.clone(), noted.clone()));
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
        let (key, charters) = (network.nodes[1].clone(), network.charters.clone());
        let verifier = Arc::new(Verifier::new(&network.charter));
        let endorser = Endorser::new((1, key), charters, verifier, states, Sources::default(), pool);
        let simulate = || {
            let found = endorser.simulate(&endorser.newest(), std::slice::from_ref(&bytes), Duration::MAX);
            found.into_iter().next().expect("one for each").map(|found| found.digest)
        };
        assert!(simulate().is_ok());
        failures.fail(Operation::Read, 0);
        assert!(matches!(simulate(), Err((_, ProposalRefusal::Busy))));
        assert!(failures.have_struck() && noted.failure().is_some());
    }

    #[test]
    fn who_has_too_much_to_do_has_not_found_something_else() {
        let network = Network::new();
        let mut collection = network.collection(vec![network.note(1)]);
        let questions = collection.questions();
        assert_eq!(asked(&questions), [(0, 1), (1, 1)]);
        let reply = network.reply(&collection, &questions[0]);
        collection.answered(&questions[0], Ok(reply));
        let busy = || Ok(ProposalReply::Answers { height: 1, answers: vec![Err(ProposalRefusal::Busy)] });
        assert_eq!(collection.answered(&questions[1], busy()), 0);
        // Others are asked instead.
        for other in [2, 3] {
            let questions = collection.questions();
            assert_eq!(asked(&questions), [(other, 1)]);
            assert_eq!(collection.answered(&questions[0], busy()), 0);
        }
        assert!(collection.questions().is_empty());
        let error = collection.finish(Vec::new()).remove(0).1.expect_err("nobody has the time");
        assert_eq!(error.state, SqlState::CANNOT_CONNECT_NOW, "{error:?}");
        assert!(error.detail.is_some_and(|detail| detail.contains("b: it has too much to do")));
    }

    #[test]
    fn what_is_too_large_with_its_endorsements_is_refused() {
        let network = Network::new();
        let (text, sql) = (Value::text("x".repeat(900 * 1024)), "INSERT INTO note VALUES ($1, $2)");
        let large = |number| {
            let values = vec![Value::BigInt(number), text.clone()];
            network.simulated(number, sql, values)
        };
        let collection = network.collection(vec![large(1), network.note(2)]);
        assert!(collection.endorsed().iter().all(Result::is_ok), "1,800 KiB");
        let twice = "INSERT INTO note VALUES ($1, $3), ($2, $3)";
        let values = vec![Value::BigInt(1), Value::BigInt(2), text.clone()];
        let collection = network.collection(vec![network.simulated(1, twice, values)]);
        let error = collection.endorsed().remove(0).expect_err("2,700 KiB");
        assert_eq!(error.state, SqlState::PROGRAM_LIMIT_EXCEEDED);
        assert!(error.message.contains("block.transaction_bytes_max"), "{error:?}");
    }
}
