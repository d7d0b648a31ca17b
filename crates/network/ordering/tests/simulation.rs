//! Whole networks from a seed. The harness checks every run: nodes hold the same blocks, without gaps, each with a
//! good certificate, and every submitted transaction exactly once.

use ordering::Delivery;
use ordering::simulation::{
    AnyBytes, Event, LinkQuality, Report, Scenario, SimulatedNode, Simulation, charter, node_key,
    organisation, root_key,
};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use types::{CharterChange, accept_membership};

fn run(seed: u64, scenario: Scenario) -> (Report, Vec<Vec<Delivery>>) {
    run_as(Simulation::new(seed, scenario))
}

/// The same ordered by Raft, whose members do not lie: what scenarios do with votes is not for them.
fn raft(seed: u64, scenario: Scenario) -> Simulation {
    let mut simulation = Simulation::new(seed, scenario);
    let mut charter = (*simulation.charter).clone();
    charter.ordering = "raft".to_string();
    simulation.charter = Arc::new(charter);
    simulation
}

fn run_as(simulation: Simulation) -> (Report, Vec<Vec<Delivery>>) {
    let (seed, scenario) = (simulation.seed, simulation.scenario);
    let added = |change: &&(u64, CharterChange)| {
        matches!(change.1, CharterChange::AddOrganisation { .. } | CharterChange::ReplaceNodeKey { .. })
    };
    let nodes = simulation.charter.organisations.len() + simulation.changes.iter().filter(added).count();
    let blocks: Vec<_> = (0..nodes).map(|_| Arc::new(Mutex::new(Vec::new()))).collect();
    let nodes = blocks.iter().map(|blocks| {
        let blocks = blocks.clone();
        SimulatedNode::new(Arc::new(AnyBytes), move |delivery| blocks.lock().push(delivery))
    });
    let report =
        simulation.run(nodes.collect()).unwrap_or_else(|error| panic!("{scenario:?}, seed {seed}: {error}"));
    let blocks = blocks.iter().map(|blocks| std::mem::take(&mut *blocks.lock())).collect();
    (report, blocks)
}

#[test]
fn a_healthy_network_orders_everything_soon_and_idles_quietly() {
    let (report, blocks) = run(1, Scenario::Happy);
    assert_eq!(report.crashes, 0);
    for blocks in &blocks {
        for (position, delivery) in blocks.iter().enumerate() {
            assert_eq!(delivery.block.header.height, position as u64 + 1);
        }
    }
    // Blocks of an idle network carry what the one before came to; of a busy one some later.
    assert!(report.certified.0 + 5 > report.height, "{report:?}");
    assert!(report.certified.1 + 8 + 5 > report.height, "{report:?}");
    // Transactions come every 150 ms; each needs its node's turn, at most four blocks away.
    assert!(report.height < 300, "{report:?}");
}

#[test]
fn a_healthy_raft_group_orders_everything_under_one_leader() {
    let (report, blocks) = run_as(raft(1, Scenario::Happy));
    let leaders: std::collections::BTreeSet<u16> =
        blocks[0].iter().map(|delivery| delivery.block.header.proposer).collect();
    assert_eq!(leaders.len(), 1, "{report:?}");
    assert!(report.certified.0 + 5 > report.height, "{report:?}");
}

#[test]
fn a_raft_group_survives_kills_loss_partitions_and_late_members() {
    let crashes =
        [Scenario::CrashAndRestart, Scenario::Loss, Scenario::PartitionAndHeal, Scenario::LateJoiner]
            .into_iter()
            .flat_map(|scenario| seeds().map(move |seed| (seed, scenario)))
            .map(|(seed, scenario)| run_as(raft(seed, scenario)).0.crashes)
            .sum::<u64>();
    assert!(crashes > 0);
}

/// From second 1 to second 9, a node reaches itself and as many members behind it as make half of all; it hears all of them.
fn heard_by_half(node: usize) -> Vec<(Duration, Event)> {
    let deaf = [2, 3].map(|behind| Event::Link(node, (node + behind) % 4, LinkQuality::DEAD));
    let from = deaf.map(|event| (Duration::from_secs(1), event));
    from.into_iter().chain([(Duration::from_secs(9), Event::Links(LinkQuality::GOOD))]).collect()
}

/// Whoever leads sends its blocks to half of the members only: the others find another leader, and all hold the same blocks.
#[test]
fn a_leader_that_half_of_the_members_hear_stops_nobody_for_long() {
    for node in 0..4 {
        for mut simulation in [raft(1, Scenario::Happy), Simulation::new(1, Scenario::Happy)] {
            simulation.events = heard_by_half(node);
            let ordering = simulation.charter.ordering.clone();
            let (_, blocks) = run_as(simulation);
            // It was half heard from second 1 on; there are blocks with transactions before it was heard by all again.
            let times =
                blocks[(node + 2) % 4].iter().filter(|delivery| !delivery.block.transactions.is_empty());
            let before = times.map(|delivery| delivery.block.header.timestamp_ms);
            let before = before.filter(|time| (4_000..9_000).contains(time)).count();
            assert!(before > 0, "{ordering}, node {node}");
        }
    }
}

/// A member that gets blocks from others while its own log lacks them may be killed before the log has caught up: its ledger is
/// ahead of its log then, and nothing has been rolled back.
#[test]
fn a_raft_member_that_is_killed_while_its_ledger_is_ahead_of_its_log_comes_back() {
    let mut crashes = 0;
    // The first member leads, whom nothing has happened to.
    let leader = 0;
    for tenths in 0..12 {
        let mut simulation = raft(tenths, Scenario::Happy);
        // Whoever does not hear the leader hears of its blocks from the other half, again and again.
        let deaf = (leader + 2) % 4;
        let mut events = Vec::new();
        for round in 0..4 {
            let at = |ms: u64| Duration::from_millis(1_500 + round * 2_500 + ms);
            events.push((at(0), Event::Link(leader, deaf, LinkQuality::DEAD)));
            events.push((at(900 + tenths * 100), Event::Crash(deaf)));
            events.push((at(1_200 + tenths * 100), Event::Restart(deaf)));
            events.push((at(2_450), Event::Links(LinkQuality::GOOD)));
        }
        simulation.events = events;
        crashes += run_as(simulation).0.crashes;
    }
    assert!(crashes > 0);
}

/// So many members that blocks are sent without the transactions that everybody has.
#[test]
fn many_members_order_everything_whatever_happens() {
    let scenarios = [Scenario::Happy, Scenario::Loss, Scenario::CrashAndRestart, Scenario::PartitionAndHeal];
    let crashes = scenarios.map(|scenario| {
        let mut charter = charter(3, 9);
        charter.block.idle_ms = 300;
        let charter = Arc::new(charter);
        run_as(Simulation { charter, ..Simulation::new(3, scenario) }).0.crashes
    });
    assert!(crashes.iter().sum::<u64>() > 0);
}

#[test]
fn the_same_seed_gives_the_same_raft_run() {
    let report = run_as(raft(9, Scenario::CrashAndRestart)).0;
    assert_eq!(report, run_as(raft(9, Scenario::CrashAndRestart)).0);
    assert_ne!(report.fingerprint, run_as(raft(10, Scenario::CrashAndRestart)).0.fingerprint);
}

#[test]
fn nodes_that_are_killed_come_back_and_nothing_is_lost() {
    for seed in [1, 2] {
        assert!(run(seed, Scenario::CrashAndRestart).0.crashes > 0);
    }
}

#[test]
fn loss_delays_but_loses_nothing() {
    run(1, Scenario::Loss);
}

#[test]
fn halves_that_cannot_reach_each_other_wait_and_go_on_together() {
    run(1, Scenario::PartitionAndHeal);
}

#[test]
fn a_node_that_joins_late_gets_every_block_from_the_first() {
    let (_, blocks) = run(1, Scenario::LateJoiner);
    assert_eq!(blocks[3].first().map(|delivery| delivery.block.header.height), Some(1));
}

#[test]
fn a_node_with_conflicting_votes_cannot_fork_the_others() {
    assert!(run(1, Scenario::ConflictingVotes).1[0].is_empty());
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let report = run(9, Scenario::CrashAndRestart).0;
    assert_eq!(report, run(9, Scenario::CrashAndRestart).0);
    assert_ne!(report.fingerprint, run(10, Scenario::CrashAndRestart).0.fingerprint);
}

#[test]
fn ordering_waits_for_certificates_and_goes_on_when_they_come() {
    for (seed, scenario) in [(1, Scenario::Happy), (3, Scenario::Loss)] {
        let mut simulation = Simulation::new(seed, scenario);
        let mut charter = (*simulation.charter).clone();
        charter.outcome_lag_blocks = 4;
        simulation.charter = Arc::new(charter);
        let (from, to) = (Duration::from_secs(2), Duration::from_secs(12));
        simulation.silence = from..to;
        // Every run checks that blocks with transactions keep their distance.
        let (report, blocks) = run_as(simulation);
        let within = |delivery: &&Delivery| {
            let time = Duration::from_millis(delivery.block.header.timestamp_ms);
            time > from + Duration::from_secs(2) && time < to
        };
        let meanwhile: Vec<_> = blocks[0].iter().filter(within).collect();
        // Certificates that were made before the silence still come into blocks. Behind the last of them there are four blocks that may
        // have transactions, and six empty ones.
        let certified = meanwhile.last().map(|delivery| delivery.block.header.certified_height);
        let behind = |delivery: &&&Delivery| Some(delivery.block.header.certified_height) == certified;
        let behind: Vec<_> = meanwhile.iter().filter(behind).collect();
        let with = behind.iter().filter(|delivery| !delivery.block.transactions.is_empty()).count();
        assert!(with <= 4, "seed {seed}: {with} blocks with transactions, {report:?}");
        assert!(behind.len() <= 10, "seed {seed}: {} blocks, {report:?}", behind.len());
        let last = blocks[0].last().expect("blocks");
        assert!(Duration::from_millis(last.block.header.timestamp_ms) > to);
    }
}

/// Organisation number `number` comes in, with the node of this number.
fn add(simulation: &Simulation, number: usize) -> CharterChange {
    let organisation = organisation(number);
    let acceptance = accept_membership(&simulation.charter.ledger(), &organisation, &root_key(number));
    CharterChange::AddOrganisation { organisation, acceptance }
}

fn remove(number: usize) -> CharterChange {
    CharterChange::RemoveOrganisation { name: format!("org{}", number + 1) }
}

/// The node of number `node` takes the place of that of organisation `number`.
fn replace(number: usize, node: usize) -> CharterChange {
    CharterChange::ReplaceNodeKey {
        name: format!("org{}", number + 1),
        node_key: node_key(node).public_key(),
        expires: None,
    }
}

/// Seeds per scenario and change; more with `SEEDS=20`.
fn seeds() -> std::ops::RangeInclusive<u64> {
    1..=std::env::var("SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(1)
}

/// Runs a change of members in every scenario: the harness checks that every member of the end holds the same blocks and
/// every transaction, each block certified by the members of its height, and that the change is in force.
fn change(of: impl Fn(&Simulation) -> Vec<(u64, CharterChange)>) {
    for (ordering, scenario) in
        ["bft", "raft"].into_iter().flat_map(|name| Scenario::ALL.map(|scenario| (name, scenario)))
    {
        for seed in seeds() {
            let mut simulation = match ordering {
                "raft" if scenario == Scenario::ConflictingVotes => continue,
                "raft" => raft(seed, scenario),
                _ => Simulation::new(seed, scenario),
            };
            let mut charter = (*simulation.charter).clone();
            // Changes take effect 14 blocks after they are decided.
            charter.outcome_lag_blocks = 4;
            simulation.charter = Arc::new(charter);
            simulation.changes = of(&simulation);
            run_as(simulation);
        }
    }
}

#[test]
fn a_member_comes_in() {
    change(|simulation| vec![(5, add(simulation, 4))]);
}

#[test]
fn a_key_is_replaced() {
    change(|_| vec![(5, replace(2, 4))]);
}

/// The first member leads a Raft group that nothing has happened to.
#[test]
fn whoever_leads_leaves_or_gets_another_key() {
    change(|simulation| vec![(5, add(simulation, 4)), (7, remove(0))]);
    change(|_| vec![(5, replace(0, 4))]);
}

#[test]
fn a_member_comes_in_and_another_leaves_at_once() {
    // The second change is decided before the first is in force, and takes effect one block later at the earliest.
    change(|simulation| vec![(5, add(simulation, 4)), (7, remove(1))]);
}

/// A node that starts again has forgotten the block that its epoch began with: it goes on from the newest one that was finalized
/// by itself.
#[test]
fn members_that_forget_blocks_go_on_in_an_epoch_whose_beginning_they_have_forgotten() {
    let mut crashes = 0;
    for seed in seeds() {
        let mut simulation = Simulation::new(seed, Scenario::CrashAndRestart);
        simulation.changes = vec![(3, add(&simulation, 4)), (12, remove(1))];
        (simulation.keeps, simulation.duration) = (Some(1), Duration::from_secs(100));
        let report = run_as(simulation).0;
        // 64 of the newest stay, and what is in their file.
        assert!(report.height > 180, "{report:?}");
        crashes += report.crashes;
    }
    assert!(crashes > 10, "{crashes} crashes");
}

#[test]
fn members_come_and_go_and_parameters_change() {
    let set = |parameter: &str, value: &str| CharterChange::SetParameter {
        parameter: parameter.to_string(),
        value: value.to_string(),
    };
    change(|simulation| {
        vec![
            (3, add(simulation, 4)),
            (3, set("outcome_lag_blocks", "8")),
            (4, set("block.idle_ms", "200")),
            (25, remove(1)),
            (60, replace(2, 5)),
        ]
    });
}
