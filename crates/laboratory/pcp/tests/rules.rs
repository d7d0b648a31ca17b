//! What goes wrong under each variant of `pcp.py`: its smallest failures, message by message, each under the variant's name. Every test
//! runs under the corrected rules, where all is well, and under the variant's, where it is not.

use pcp::{
    Absent, Answer, Case, CasePart, CaseTransaction, HASHES_MAX, Message, OwnPart, Request, Rounds, Rules,
    Secret, Shard, ShardId, VARIANTS, attack_schemas,
};
use std::collections::BTreeSet;

const COUNTED: Rules = Rules { rounds: Rounds::Counted, ..Rules::CORRECTED };
const UNCHECKED: Rules = Rules { checks_dependencies: false, has_spare_round: false, ..Rules::CORRECTED };

/// `hashes`, and for each shard on whom it depends and whether it finds its part valid; `None`: it has none.
fn transaction(hashes: u32, shards: &[Option<(&[u32], bool)>]) -> CaseTransaction {
    let part = |(depends_on, is_endorsed): (&[u32], bool)| CasePart {
        depends_on: depends_on.iter().copied().map(ShardId).collect(),
        is_endorsed,
        ..CasePart::default()
    };
    let parts = (0..).map(ShardId).zip(shards).filter_map(|(shard, own)| Some((shard, part((*own)?))));
    CaseTransaction { hashes, parts: parts.collect() }
}

/// Shards that have got the transaction and have not validated it.
fn shards(rules: Rules, transaction: &CaseTransaction, count: u32) -> Vec<Shard> {
    let shard = |id| {
        let mut shard = Shard::new(ShardId(id), rules);
        shard.receive(transaction.own_part(0, ShardId(id)));
        shard
    };
    (0..count).map(shard).collect()
}

fn receiver(message: &Message) -> usize {
    match message {
        Message::Ask(request) => request.to.0 as usize,
        Message::Say(answer) => answer.to.0 as usize,
    }
}

/// All validate, and every message arrives, in the order in which they were sent.
fn run(rules: Rules, transaction: &CaseTransaction, count: u32) -> Vec<Option<bool>> {
    let mut shards = shards(rules, transaction, count);
    let mut messages = Vec::new();
    for shard in &mut shards {
        shard.validate(0);
        messages.extend(shard.take_sent());
    }
    deliver(&mut shards, messages);
    shards.iter().map(|shard| shard.decision(0)).collect()
}

fn deliver(shards: &mut [Shard], mut messages: Vec<Message>) {
    for _ in 0..1_000 {
        if messages.is_empty() {
            return;
        }
        let message = messages.remove(0);
        let to = receiver(&message);
        shards[to].hear(&message);
        messages.extend(shards[to].take_sent());
    }
    panic!("it finds no end");
}

#[test]
fn as_printed_malformed_sets_commit_without_asking_or_wait_for_ever() {
    let itself = transaction(2, &[Some((&[0, 1], true)), Some((&[], false))]);
    assert_eq!(run(Rules::CORRECTED, &itself, 2), [Some(false), Some(false)]);
    assert_eq!(run(Rules::PRINTED, &itself, 2), [Some(true), Some(false)], "n − δ is no round at all");
    let nobody = transaction(3, &[Some((&[1], true)), None]);
    assert_eq!(run(Rules::CORRECTED, &nobody, 2), [Some(false), None]);
    assert_eq!(run(Rules::PRINTED, &nobody, 2), [None, None], "who has no part is silent");
}

#[test]
fn absent_commit_a_part_that_depends_on_nothing_at_all_is_discarded() {
    let nobody = transaction(3, &[Some((&[1], true)), None]);
    assert_eq!(run(Rules::CORRECTED, &nobody, 2), [Some(false), None]);
    let no_objection = Rules { absent: Absent::Commits, ..Rules::CORRECTED };
    assert_eq!(run(no_objection, &nobody, 2), [Some(true), None]);
}

#[test]
fn deps_trusted_a_set_that_cannot_be_is_refused_and_nobody_asks_itself() {
    let itself = transaction(2, &[Some((&[0, 1], true)), Some((&[], false))]);
    assert_eq!(run(Rules::CORRECTED, &itself, 2), [Some(false), Some(false)]);
    assert_eq!(run(UNCHECKED, &itself, 2), [Some(true), Some(false)]);
    let too_many = transaction(2, &[Some((&[1, 2], true)), Some((&[], true)), Some((&[], true))]);
    assert_eq!(run(Rules::CORRECTED, &too_many, 3), [Some(false), Some(true), Some(true)]);
    assert_eq!(run(UNCHECKED, &too_many, 3)[0], Some(true), "three parts behind two hashes");
    let bogus = transaction(HASHES_MAX + 1, &[Some((&[], true))]);
    assert_eq!(run(Rules::CORRECTED, &bogus, 1), [Some(false)], "bogus hashes cost rounds");
}

#[test]
fn limit_printed_who_has_no_part_may_stand_behind_the_last_hash() {
    // Shard 2 depends on shard 1, which depends on shard 0, which has no part, and on itself.
    let parts = transaction(2, &[None, Some((&[0, 1], true)), Some((&[1], true))]);
    let decide = |rules| {
        let mut shards = shards(rules, &parts, 3);
        shards[2].validate(0);
        shards[1].validate(0);
        // Shard 2 asks before shard 0 has answered shard 1.
        let asks = shards[2].take_sent();
        let first = shards[1].take_sent();
        deliver(&mut shards, asks);
        deliver(&mut shards, first);
        [shards[1].decision(0), shards[2].decision(0)]
    };
    assert_eq!(decide(Rules::CORRECTED), [Some(false), Some(false)]);
    let printed = Rules { has_spare_round: false, ..Rules::CORRECTED };
    assert_eq!(decide(printed), [Some(false), Some(true)]);
}

#[test]
fn counted_never_repeated_a_lost_request_stops_its_caller_for_ever() {
    let chain = transaction(3, &[Some((&[], true)), Some((&[0], true))]);
    let lost = |rules: Rules| {
        let mut shards = shards(rules, &chain, 2);
        shards[0].validate(0);
        shards[1].validate(0);
        let lost = shards[1].take_sent();
        assert_eq!(lost.len(), 1);
        let open = shards[1].open_requests().filter(|_| rules.repeats_requests);
        let again: Vec<Message> = open.map(Message::Ask).collect();
        deliver(&mut shards, again);
        shards[1].decision(0)
    };
    assert_eq!(lost(Rules::CORRECTED), Some(true));
    assert_eq!(lost(Rules { repeats_requests: false, ..COUNTED }), None);
}

#[test]
fn counted_repeated_a_lost_pair_of_answers_stops_two_shards_for_ever() {
    let ring = transaction(2, &[Some((&[1], true)), Some((&[0], true))]);
    let lost_pair = |rules| {
        let mut shards = shards(rules, &ring, 2);
        shards.iter_mut().for_each(|shard| shard.validate(0));
        let asks: Vec<Message> = shards.iter_mut().flat_map(Shard::take_sent).collect();
        for ask in asks {
            shards[receiver(&ask)].hear(&ask);
        }
        let lost: Vec<Message> = shards.iter_mut().flat_map(Shard::take_sent).collect();
        assert!(lost.len() == 2 && lost.iter().all(|lost| matches!(lost, Message::Say(_))));
        for _ in 0..10 {
            let again: Vec<Message> =
                shards.iter().flat_map(Shard::open_requests).map(Message::Ask).collect();
            deliver(&mut shards, again);
        }
        [shards[0].decision(0), shards[1].decision(0)]
    };
    assert_eq!(lost_pair(Rules::CORRECTED), [Some(true), Some(true)]);
    assert_eq!(lost_pair(COUNTED), [None, None], "both wait for the other's next round");
}

#[test]
fn replay_an_old_answer_without_a_round_tears_a_transaction_apart() {
    // Shard 1 depends on shard 2, which depends on shard 0, which finds its part invalid.
    let chain = transaction(3, &[Some((&[], false)), Some((&[2], true)), Some((&[0], true))]);
    let replayed = |rules| {
        let mut shards = shards(rules, &chain, 3);
        shards.iter_mut().for_each(|shard| shard.validate(0));
        let (asks, late) = (shards[1].take_sent(), shards[2].take_sent());
        shards[2].hear(&asks[0]);
        let old = shards[2].take_sent();
        assert_eq!(old.len(), 1, "it believes that its part commits: it has not asked yet");
        for _ in 0..5 {
            shards[1].hear(&old[0]);
        }
        let next = shards[1].take_sent();
        deliver(&mut shards, late);
        deliver(&mut shards, next);
        [shards[1].decision(0), shards[2].decision(0)]
    };
    assert_eq!(replayed(Rules::CORRECTED), [Some(false), Some(false)]);
    assert_eq!(replayed(COUNTED), [Some(true), Some(false)]);
}

#[test]
fn secrets_who_is_not_in_the_proposals_cannot_tell_a_part_from_none() {
    let chain = transaction(2, &[Some((&[], true)), Some((&[0], true)), None]);
    let asked = |rules, to: u32, secret| {
        let mut shards = shards(rules, &chain, 3);
        shards.iter_mut().for_each(|shard| shard.validate(0));
        shards[to as usize].take_sent();
        let request = Request { from: ShardId(2), to: ShardId(to), transaction: 0, round: 1, secret };
        shards[to as usize].hear(&Message::Ask(request));
        match shards[to as usize].take_sent().as_slice() {
            [Message::Say(Answer { belief, is_final, .. })] => Some((*belief, *is_final)),
            _ => None,
        }
    };
    let guess = Secret(crypto::sha256(&[b"a guess"]));
    let right = chain.own_part(0, ShardId(1)).expect("it has one").dependencies[&ShardId(0)];
    assert_eq!(asked(Rules::CORRECTED, 0, right), Some((true, true)));
    assert_eq!(asked(Rules::CORRECTED, 0, guess), Some((false, true)));
    assert_eq!(asked(Rules::CORRECTED, 1, guess), Some((false, true)), "whether it is decided or not");
    assert_eq!(asked(Rules::CORRECTED, 2, guess), Some((false, true)), "as who has no part");
    let printed = Rules { asks_for_secrets: false, ..Rules::CORRECTED };
    assert_eq!(asked(printed, 0, guess), Some((true, true)));
}

/// A ring of three in which shards 0 and 1 find their parts invalid, and shard 1 says "commit" to shard 2.
#[test]
fn liar_a_lying_shard_breaks_atomicity_and_a_lying_schema_does_not() {
    let ring = transaction(4, &[Some((&[2], false)), Some((&[0], false)), Some((&[1], true))]);
    let mut shards = shards(Rules::CORRECTED, &ring, 3);
    shards.iter_mut().for_each(|shard| shard.validate(0));
    let asks = shards[2].take_sent();
    assert_eq!(receiver(&asks[0]), 1);
    let Message::Ask(Request { from, to, transaction: number, round, .. }) = asks[0] else {
        panic!("it asks")
    };
    let lie = Answer { from: to, to: from, transaction: number, round, belief: true, is_final: true };
    shards[2].hear(&Message::Say(lie));
    assert_eq!((shards[0].decision(0), shards[2].decision(0)), (Some(false), Some(true)), "torn");

    let case = Case { shards: 3, transactions: vec![ring] };
    for seed in 0..200 {
        let attacked = attack_schemas(&case, ShardId(1), seed).expect("nobody commits what is not prepared");
        assert_eq!((attacked.torn, attacked.committed), (0, 0), "seed {seed}");
    }
    let valid = transaction(3, &[Some((&[], true)), Some((&[], true)), Some((&[], true))]);
    let case = Case { shards: 3, transactions: vec![valid] };
    let outcomes: BTreeSet<(usize, usize)> = (0..200)
        .map(|seed| attack_schemas(&case, ShardId(1), seed).expect("it goes on"))
        .map(|attacked| (attacked.torn, attacked.committed))
        .collect();
    assert_eq!(outcomes, [(0, 0), (0, 1)].into(), "the liar decides whether, and not for whom");
}

#[test]
fn what_others_send_without_end_takes_no_memory() {
    let mut shard = Shard::new(ShardId(0), Rules::CORRECTED);
    let secret = Secret(crypto::sha256(&[b"a guess"]));
    for number in 0..2 * pcp::WAITING_REQUESTS_MAX as u64 {
        let request =
            Request { from: ShardId(1), to: ShardId(0), transaction: number, round: u32::MAX, secret };
        shard.hear(&Message::Ask(request));
    }
    assert_eq!(shard.take_sent(), []);
    for _ in 0..2 * pcp::WAITING_REQUESTS_MAX {
        shard.receive(None);
    }
    assert_eq!(shard.take_sent().len(), pcp::WAITING_REQUESTS_MAX, "the others must be repeated");
    shard.receive(Some(OwnPart { hashes: u32::MAX, is_endorsed: true, ..OwnPart::default() }));
    shard.validate(shard.received() - 1);
    assert_eq!(shard.decision(shard.received() - 1), Some(false));
    assert_eq!(VARIANTS[0].rules, Rules::CORRECTED);
}
