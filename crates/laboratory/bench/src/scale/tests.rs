use super::*;

fn options(members: usize, ordering: &str) -> ScaleOptions {
    ScaleOptions {
        members: vec![members],
        networks: vec![ScaleNetwork::World],
        orderings: vec![ordering.to_string()],
        // A fraction of what the network could do: without optimisation everything takes long.
        calls: 1_000,
        duration: Duration::from_secs(1),
        seed: 1,
    }
}

fn measured(members: usize, ordering: &str) -> ScaleRecord {
    scale(&options(members, ordering), &mut |_| ()).expect("the network goes on").remove(0)
}

#[test]
fn every_service_is_measured_and_many_members_get_blocks_without_their_transactions() {
    let few = [measured(4, "bft"), measured(4, "raft")];
    let many = measured(8, "bft");
    for record in few.iter().chain([&many]) {
        assert!(record.throughput_tps > 500.0 && record.latency_ms.p50 > 0.0, "{record:?}");
    }
    // Transactions have some 270 bytes. Three others get them with the block; seven have most of them already, but for
    // the leader's own, which are an eighth.
    let leaders = |record: &ScaleRecord| record.leader_bytes_per_transaction.expect("it is counted");
    assert!(few.iter().all(|record| leaders(record) > 3.0 * 230.0), "{few:?}");
    assert!(leaders(&many) < 7.0 * 135.0, "{many:?}");
    // Each member sends its own transactions to the others, once.
    assert!(many.member_bytes_per_transaction.is_some_and(|bytes| bytes < 8.0 * 60.0), "{many:?}");
}

#[test]
fn options_that_make_no_sense_are_refused_with_what_was_expected() {
    let refused = |members: usize, ordering: &str, seconds: u64| {
        let mut options = options(members, ordering);
        (options.duration, options.calls) =
            (Duration::from_secs(seconds), if members == 5 { 1 } else { 1_000 });
        scale(&options, &mut |_| ()).expect_err("it makes no sense").to_string()
    };
    assert_eq!(refused(3, "bft", 1), "--members: expected 4 to 80, found 3");
    assert_eq!(refused(81, "bft", 1), "--members: expected 4 to 80, found 81");
    assert_eq!(refused(5, "bft", 1), "--calls: expected 100 to 25000, found 1");
    assert_eq!(refused(4, "pow", 1), "--ordering: expected bft or raft, found pow");
    assert_eq!(refused(4, "bft", 0), "--seconds: expected 1 to 600, found 0");
}
