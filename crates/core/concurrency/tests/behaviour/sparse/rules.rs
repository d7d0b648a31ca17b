//! What goes wrong without each rule: the smallest failures of the wrong variants of `sparse.py`, each under the variant's name.

use super::durable::{Durable, INITIAL, POLICY, at, contracts, row, transaction};
use super::network::joined;
use concurrency::parts::LedgerPosition;
use concurrency::sparse::{
    ContractId, EARLY_VERDICTS_MAX, Said, SparseError, SparsePeer, SparseStore, SparseTransaction, Verdict,
};
use state::StoreError;

const T1: LedgerPosition = LedgerPosition { height: 1, index: 0 };
const T2: LedgerPosition = LedgerPosition { height: 1, index: 1 };
const T3: LedgerPosition = LedgerPosition { height: 2, index: 0 };

/// A peer with the policies of its contracts and these rows.
fn peer(filter: &[u32], rows: &[(u32, u8)]) -> SparsePeer<Durable> {
    let policies = filter.iter().map(|contract| row(*contract, POLICY));
    let rows = rows.iter().map(|(contract, key)| row(*contract, *key));
    SparsePeer::open(contracts(filter), Durable::with(policies.chain(rows))).expect("memory")
}

fn receive(peer: &mut SparsePeer<Durable>, blocks: &[&[&SparseTransaction]]) {
    for block in blocks {
        let transactions = block.iter().map(|transaction| (*transaction).clone()).collect();
        peer.receive(peer.received() + 1, transactions).expect("the next block");
    }
}

fn ready(peer: &SparsePeer<Durable>) -> Vec<LedgerPosition> {
    peer.ready().collect()
}

fn validate(peer: &mut SparsePeer<Durable>, transactions: &[LedgerPosition]) {
    for transaction in transactions {
        assert_eq!(peer.validate(*transaction), Ok(true), "{transaction:?} is ready");
    }
}

fn hear(peer: &mut SparsePeer<Durable>, transaction: LedgerPosition, said: Said) {
    peer.hear(&Verdict { transaction, said }).expect("memory");
}

fn valid_for(numbers: &[u32]) -> Said {
    Said::ValidFor(contracts(numbers))
}

fn deferred(peer: &mut SparsePeer<Durable>) -> Vec<LedgerPosition> {
    peer.commit().expect("memory").expect("a block can be committed").deferred
}

fn verdict(peer: &SparsePeer<Durable>, transaction: LedgerPosition) -> Option<bool> {
    peer.store().verdict(transaction).expect("memory")
}

#[test]
fn edges_last_a_writer_waits_for_every_reader_and_not_for_the_last_one_alone() {
    let mut peer = peer(&[0], &[(0, 2)]);
    let early = transaction(T1, &[0]).reads(0, 2, Some(INITIAL)).done();
    let late = transaction(T2, &[0]).reads(0, 2, Some(INITIAL)).done();
    let writer = transaction(T3, &[0]).deletes(0, 2).done();
    receive(&mut peer, &[&[&early, &late], &[&writer]]);
    assert_eq!(ready(&peer), [T1, T2]);
    validate(&mut peer, &[T2]);
    assert_eq!(ready(&peer), [T1], "the last reader is gone, and the first one has still to read");
    validate(&mut peer, &[T1, T3]);
    assert_eq!((deferred(&mut peer), deferred(&mut peer)), (vec![], vec![]));
    assert_eq!([T1, T2, T3].map(|transaction| verdict(&peer, transaction)), [Some(true); 3]);
}

#[test]
fn edges_last_the_same_for_scanners_and_for_writers_that_others_have_refused() {
    let mut peer = peer(&[0], &[]);
    let writer = transaction(T1, &[0]).writes(0, 2).done();
    let refused = transaction(T2, &[0, 1]).writes(0, 3).done();
    let scanner = transaction(T3, &[0]).scans(0, 1, 9, &[(2, T1)]).done();
    let creator = transaction(at(2, 1), &[0]).writes(0, 5).done();
    receive(&mut peer, &[&[&writer, &refused], &[&scanner, &creator]]);
    hear(&mut peer, T2, Said::Invalid);
    assert_eq!(ready(&peer), [T1], "the scanner waits for the first writer, and the creator for the scanner");
    validate(&mut peer, &[T1, T3, at(2, 1)]);
    assert_eq!((deferred(&mut peer), deferred(&mut peer)), (vec![], vec![]));
    assert_eq!(verdict(&peer, T2), Some(false));
    assert_eq!((verdict(&peer, T3), verdict(&peer, at(2, 1))), (Some(true), Some(true)));
}

#[test]
fn fate_key_who_has_read_the_version_that_is_written_is_judged() {
    let mut peer = peer(&[0], &[(0, 1)]);
    let writer = transaction(T1, &[0]).writes(0, POLICY).writes(0, 1).done();
    let reader = transaction(T3, &[0]).policy(0, Some(T1)).reads(0, 1, Some(T1)).done();
    let scanner = transaction(at(2, 1), &[0]).policy(0, Some(T1)).scans(0, 1, 9, &[(1, T1)]).done();
    let stale = transaction(at(2, 2), &[0]).policy(0, Some(T1)).reads(0, 1, Some(INITIAL)).done();
    let old_policy = transaction(at(2, 3), &[0]).done();
    let old_scan = transaction(at(2, 4), &[0]).policy(0, Some(T1)).scans(0, 1, 9, &[(1, INITIAL)]).done();
    receive(&mut peer, &[&[&writer], &[&reader, &scanner, &stale, &old_policy, &old_scan]]);
    validate(&mut peer, &[T1]);
    assert_eq!(ready(&peer), [T3, at(2, 1)], "the others' fate is sealed: nobody looks at them");
    validate(&mut peer, &[T3, at(2, 1)]);
    assert_eq!((deferred(&mut peer), deferred(&mut peer)), (vec![], vec![]));
    let verdicts = (0..5).map(|index| verdict(&peer, at(2, index)));
    assert_eq!(verdicts.collect::<Vec<_>>(), [true, true, false, false, false].map(Some));
}

#[test]
fn fate_seven_who_is_ahead_of_this_peer_waits_for_what_it_has_read() {
    let mut peer = peer(&[0], &[(0, 1), (0, 2)]);
    let writer = transaction(T1, &[0]).writes(0, 1).deletes(0, 2).done();
    let reader = transaction(T3, &[0]).reads(0, 1, Some(T1)).done();
    let absent = transaction(at(2, 1), &[0]).reads(0, 2, None).done();
    let phantom = transaction(at(2, 2), &[0]).scans(0, 2, 3, &[]).done();
    receive(&mut peer, &[&[&writer], &[&reader, &absent, &phantom]]);
    assert_eq!(ready(&peer), [T1], "the endorsers had applied T1, this peer has not");
    validate(&mut peer, &[T1, T3, at(2, 1), at(2, 2)]);
    assert_eq!((deferred(&mut peer), deferred(&mut peer)), (vec![], vec![]));
    let verdicts = (0..3).map(|index| verdict(&peer, at(2, index)));
    assert_eq!(verdicts.collect::<Vec<_>>(), [Some(true); 3], "who read what was deleted as absent, too");
}

#[test]
fn defer_fate_whatever_waits_for_a_deferred_one_is_deferred() {
    let mut peer = peer(&[0], &[]);
    let shared = transaction(T1, &[0, 1]).reads(0, 2, None).done();
    let same_block = transaction(T2, &[0]).writes(0, 2).done();
    let later = transaction(T3, &[0]).writes(0, 2).done();
    receive(&mut peer, &[&[&shared, &same_block]]);
    assert_eq!(deferred(&mut peer), [T1, T2], "T2 writes what T1 has read: T1's fate does not depend on it");
    receive(&mut peer, &[&[&later]]);
    assert_eq!(ready(&peer), [T1]);
    assert_eq!(deferred(&mut peer), [T3]);
    validate(&mut peer, &[T1]);
    assert_eq!(ready(&peer), [], "T1 is not decided");
    hear(&mut peer, T1, valid_for(&[1]));
    validate(&mut peer, &[T2, T3]);
    assert_eq!([T1, T2, T3].map(|transaction| verdict(&peer, transaction)), [Some(true); 3]);
    assert_eq!(peer.store().rows[&row(0, 2)], T3);
    assert!(peer.store().deferred.is_empty());
}

#[test]
fn votes_once_who_waits_asks_again_and_is_answered_from_what_is_recorded() {
    let shared = transaction(T1, &[0, 1]).done();
    let refused = transaction(T2, &[0, 1]).reads(1, 4, Some(INITIAL)).done();
    let (mut waits, mut knows) = (peer(&[0], &[]), peer(&[1], &[]));
    receive(&mut waits, &[&[&shared, &refused]]);
    receive(&mut knows, &[&[&shared, &refused]]);
    validate(&mut waits, &[T1, T2]);
    validate(&mut knows, &[T1, T2]);
    drop(knows.take_told());
    let questions: Vec<_> = waits.open_questions().collect();
    assert_eq!(questions.len(), 2);
    assert_eq!(questions[0].contracts, contracts(&[1]));
    let answered = |knows: &SparsePeer<Durable>, transaction| {
        knows.answer(transaction).expect("memory").map(|verdict| verdict.said)
    };
    assert_eq!(answered(&knows, T1), Some(valid_for(&[1])), "it has validated its part");
    assert_eq!(answered(&knows, T2), Some(Said::Invalid), "its block is not committed");
    hear(&mut knows, T1, valid_for(&[0]));
    assert_eq!(deferred(&mut knows), []);
    let knows = SparsePeer::open(contracts(&[1]), knows.into_store()).expect("memory");
    assert_eq!(answered(&knows, T1), Some(Said::Valid), "it is recorded, and the peer has started again");
    assert_eq!(answered(&knows, T2), Some(Said::Invalid));
    assert_eq!(answered(&knows, T3), None);
    hear(&mut waits, T1, Said::Valid);
    hear(&mut waits, T2, Said::Invalid);
    assert_eq!((waits.waiting(), deferred(&mut waits)), (0, vec![]));
    assert_eq!(waits.open_questions().count(), 0);
}

#[test]
fn votes_once_a_peer_that_starts_again_asks_for_what_it_had_heard() {
    let mut peer = peer(&[0], &[]);
    let shared = transaction(T1, &[0, 1, 2]).writes(0, 1).done();
    receive(&mut peer, &[&[&shared]]);
    validate(&mut peer, &[T1]);
    hear(&mut peer, T1, valid_for(&[1]));
    assert_eq!(deferred(&mut peer), [T1]);
    let mut peer = SparsePeer::open(contracts(&[0]), peer.into_store()).expect("memory");
    let questions: Vec<_> = peer.open_questions().map(|question| question.contracts).collect();
    assert_eq!(questions, [contracts(&[1, 2])]);
    hear(&mut peer, T1, Said::Valid);
    assert_eq!(
        verdict(&peer, T1),
        None,
        "its own part is to be validated first: what is before it may be open"
    );
    validate(&mut peer, &[T1]);
    assert_eq!((verdict(&peer, T1), peer.store().rows[&row(0, 1)]), (Some(true), T1));
}

#[test]
fn early_dropped_what_is_heard_before_the_block_counts_when_it_comes() {
    let mut peer = peer(&[1], &[]);
    let (shared, refused) = (transaction(T1, &[0, 1]).done(), transaction(T2, &[0, 1]).done());
    hear(&mut peer, T1, valid_for(&[0]));
    hear(&mut peer, T2, Said::Invalid);
    receive(&mut peer, &[&[&shared, &refused]]);
    assert_eq!(ready(&peer), [T1], "T2 is decided");
    validate(&mut peer, &[T1]);
    assert_eq!(peer.waiting(), 0);
    assert_eq!(deferred(&mut peer), []);
    assert_eq!((verdict(&peer, T1), verdict(&peer, T2)), (Some(true), Some(false)));
}

#[test]
fn finish_after_a_deferred_one_is_in_the_store_before_it_leaves_the_graph() {
    let mut peer = peer(&[0], &[(0, 1)]);
    let shared = transaction(T1, &[0, 1]).writes(0, 1).done();
    let behind = transaction(T3, &[0]).writes(0, 1).done();
    receive(&mut peer, &[&[&shared], &[&behind]]);
    validate(&mut peer, &[T1]);
    assert_eq!(deferred(&mut peer), [T1]);
    let mut store = peer.into_store();
    store.is_full = true;
    let mut peer = SparsePeer::open(contracts(&[0]), store).expect("memory");
    receive(&mut peer, &[&[&behind]]);
    validate(&mut peer, &[T1]);
    let full = StoreError::write("the store", "no space left on device");
    let told = Verdict { transaction: T1, said: valid_for(&[1]) };
    assert_eq!(peer.hear(&told), Err(SparseError::Store(full)));
    assert_eq!((ready(&peer), peer.waiting()), (vec![], 2), "nobody comes in front of what is not written");
    peer.hear(&told).expect("there is room again");
    assert_eq!((verdict(&peer, T1), peer.store().rows[&row(0, 1)]), (Some(true), T1));
    validate(&mut peer, &[T3]);
    assert_eq!(deferred(&mut peer), []);
    assert_eq!(peer.store().rows[&row(0, 1)], T3, "the later one stands");
}

#[test]
fn snapshot_plain_a_new_peer_gets_what_is_undecided() {
    let mut source = peer(&[0, 1], &[]);
    let shared = transaction(T1, &[0, 2]).writes(0, 2).done();
    let other = transaction(T2, &[1, 2]).writes(1, 2).done();
    receive(&mut source, &[&[&shared, &other]]);
    assert_eq!(deferred(&mut source), [T1, T2]);
    let mut new = joined(&source, &contracts(&[0]));
    assert_eq!((new.received(), ready(&new)), (1, vec![T1]), "T2 does not concern it");
    validate(&mut new, &[T1]);
    hear(&mut new, T1, valid_for(&[2]));
    assert_eq!(new.store().rows.get(&row(0, 2)), Some(&T1));
    assert_eq!(source.hand_over(&contracts(&[0, 7])), Err(SparseError::NotHeld(ContractId(7))));
}

#[test]
fn snapshot_range_a_new_peer_gets_the_rows_of_the_last_block_too() {
    let mut source = peer(&[0], &[(0, 1)]);
    receive(&mut source, &[&[&transaction(T1, &[0]).writes(0, 2).done()]]);
    validate(&mut source, &[T1]);
    assert_eq!(deferred(&mut source), []);
    let new = joined(&source, &contracts(&[0]));
    assert_eq!(new.store().rows, source.store().rows);
    assert_eq!(new.store().rows.get(&row(0, 2)), Some(&T1));
}

/// SmartFabric, section 4.3.1: Tables 3 to 5.
#[test]
fn the_papers_three_peers_end_as_in_its_tables() {
    let (t1, t2, t3) = (at(1, 0), at(1, 1), at(1, 2));
    let old = Some(INITIAL);
    let first = transaction(t1, &[1]).reads(1, 7, old).writes(1, 7).done();
    let second = transaction(t2, &[1, 2]).reads(2, 3, old).writes(1, 4).done();
    let third = transaction(t3, &[1, 2, 3]).reads(1, 4, old).reads(2, 5, old).reads(3, 6, old);
    let third = third.writes(1, 4).writes(2, 3).writes(3, 6).done();
    let rows: [&[(u32, u8)]; 3] = [&[(1, 4), (1, 7)], &[(2, 3), (2, 5)], &[(3, 6)]];
    let mut peers: Vec<_> = (0..3).map(|peer| self::peer(&[peer as u32 + 1], rows[peer])).collect();
    let block = [&first, &second, &third];
    peers.iter_mut().for_each(|peer| receive(peer, &[&block]));
    assert_eq!(peers.iter().map(ready).collect::<Vec<_>>(), [vec![t1, t2], vec![t2], vec![t3]]);
    validate(&mut peers[0], &[t1, t2]);
    validate(&mut peers[1], &[t2]);
    validate(&mut peers[2], &[t3]);
    assert_eq!(ready(&peers[1]), [], "T3 waits for T2, which waits for P1");
    hear(&mut peers[0], t2, valid_for(&[2]));
    let told: Vec<_> = peers[0].take_told().into_iter().map(|told| told.verdict).collect();
    let invalid = Verdict { transaction: t3, said: Said::Invalid };
    assert_eq!(told, [Verdict { transaction: t2, said: valid_for(&[1]) }, invalid.clone()]);
    hear(&mut peers[1], t2, valid_for(&[1]));
    peers[1..].iter_mut().for_each(|peer| peer.hear(&invalid).expect("memory"));
    peers.iter_mut().for_each(|peer| assert_eq!(deferred(peer), []));
    assert_eq!([t1, t2, t3].map(|one| verdict(&peers[0], one)), [Some(true), Some(true), Some(false)]);
    assert_eq!(peers[0].store().rows[&row(1, 4)], t2);
    assert_eq!(peers[1].store().rows[&row(2, 3)], INITIAL, "T2 does not write to S2, and T3 not at all");
    assert_eq!((verdict(&peers[2], t2), verdict(&peers[2], t3)), (None, Some(false)));
}

#[test]
fn blocks_and_parts_that_cannot_be_are_refused_and_nothing_of_them_counts() {
    let mut peer = peer(&[0, 1], &[]);
    let good = transaction(T1, &[0, 1]).scans(0, 9, 1, &[]).done();
    let late = SparseError::Height { expected: 1, found: 2 };
    assert_eq!(peer.receive(2, vec![good.clone()]), Err(late));
    let other = transaction(T3, &[0]).done();
    let order = |found| SparseError::Order { height: 1, found };
    assert_eq!(peer.receive(1, vec![good.clone(), other]), Err(order(T3)));
    assert_eq!(peer.receive(1, vec![good.clone(), good.clone()]), Err(order(T1)));
    let without = good.clone().under(&contracts(&[0]));
    let missing = SparseError::MissingPart { transaction: T1, contract: ContractId(1) };
    assert_eq!(peer.receive(1, vec![without.clone()]), Err(missing.clone()));
    let deferred = [(T1, without)].into();
    let store = Durable { deferred, ..Durable::default() };
    assert_eq!(SparsePeer::open(contracts(&[0, 1]), store).err(), Some(missing));
    assert_eq!((peer.received(), peer.waiting()), (0, 0));
    assert_eq!((peer.validate(T1), peer.commit()), (Ok(false), Ok(None)));
    receive(&mut peer, &[&[&good]]);
    assert_eq!(peer.commit(), Ok(None), "its own part can be validated here");
    validate(&mut peer, &[T1]);
    assert_eq!(peer.waiting(), 0, "an interval without any key has nothing in it");
}

/// With an edge for each pair this would take minutes.
#[test]
fn a_hot_row_costs_as_much_as_it_is_touched() {
    let mut peer = peer(&[0], &[(0, 1)]);
    let touching = |index: u32| match index % 4 {
        0 | 1 => transaction(at(1, index), &[0]).writes(0, 1).done(),
        2 => transaction(at(1, index), &[0]).reads(0, 1, Some(INITIAL)).done(),
        _ => transaction(at(1, index), &[0]).scans(0, 1, 9, &[(1, INITIAL)]).done(),
    };
    const COUNT: u32 = 40_000;
    let block: Vec<SparseTransaction> = (0..COUNT).map(touching).collect();
    peer.receive(1, block).expect("the first block");
    for index in (0..COUNT).filter(|index| index % 4 < 2) {
        assert_eq!(ready(&peer), [at(1, index)]);
        validate(&mut peer, &[at(1, index)]);
    }
    let committed = peer.commit().expect("memory").expect("it is decided");
    assert!(committed.decided.iter().all(|(position, is_valid)| *is_valid == (position.index % 4 < 2)));
    assert_eq!(peer.store().rows[&row(0, 1)], at(1, COUNT - 3));
}

#[test]
fn what_is_heard_without_end_takes_no_memory_and_is_asked_for_again() {
    let mut peer = peer(&[0], &[]);
    for index in 1..=EARLY_VERDICTS_MAX as u32 {
        hear(&mut peer, at(1, index), Said::Invalid);
    }
    hear(&mut peer, T1, Said::Invalid);
    receive(&mut peer, &[&[&transaction(T1, &[0, 1]).done()]]);
    assert_eq!(peer.waiting(), 1, "there was no room for the last one");
    assert_eq!(peer.open_questions().count(), 1);
    hear(&mut peer, T1, Said::Invalid);
    hear(&mut peer, T1, Said::Valid);
    assert_eq!(peer.waiting(), 0, "decided once");
}
