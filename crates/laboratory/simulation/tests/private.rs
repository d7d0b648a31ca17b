//! Networks whose organisations have schemas with members, from seeds: that they keep what is promised, whatever a member does, and that
//! the checks find out when something is switched off.

mod support;

use simulation::{Defence, Lie, Mutation, Plan, run_plan};
use support::{check, found};

/// Runs of every `make test`; `make soak` has many more.
const SEEDS: u64 = 3;

fn with(lie: Lie) -> impl Fn(u64) -> Plan + Sync {
    move |seed| Plan::with_part_lie(seed, Some(lie))
}

#[test]
fn networks_with_schemas_keep_every_promise() {
    check(1..=SEEDS, Plan::with_schemas);
}

#[test]
fn the_same_seed_gives_the_same_run_with_schemas() {
    let again = || run_plan(3, Plan::with_schemas(3), None);
    let first = again().expect("it keeps its promises");
    assert!(
        first.private.parts > 10 && first.private.crossing > 0 && first.private.canaries > 0,
        "{first:?}"
    );
    assert_eq!(again(), Ok(first));
}

#[test]
fn whoever_lies_about_parts_harms_nobody_else() {
    let lies = |seed: u64| Lie::PRIVATE[seed as usize % Lie::PRIVATE.len()];
    check(0..Lie::PRIVATE.len() as u64, |seed| Plan::with_part_lie(seed, Some(lies(seed))));
}

#[test]
fn parts_that_are_not_what_their_client_has_committed_to_would_be_found() {
    let (seed, error) = found(Mutation::Node(Defence::PartCommitments), 8, with(Lie::AltersParts));
    let is_found = ["agreement", "serial", "nobody stops"].iter().any(|what| error.contains(what));
    assert!(is_found, "seed {seed}: {error}");
}

#[test]
fn parts_that_too_few_members_hold_would_be_found() {
    let (seed, error) = found(Mutation::Node(Defence::HeldByQuorum), 8, with(Lie::WithholdsParts));
    assert!(error.contains("liveness"), "seed {seed}: {error}");
}

#[test]
fn votes_that_no_quorum_has_cast_would_be_found() {
    let (seed, error) = found(Mutation::Node(Defence::VotesOfQuorum), 8, with(Lie::SchemaCertificates));
    let is_found = ["atomic", "nobody stops"].iter().any(|what| error.contains(what));
    assert!(is_found, "seed {seed}: {error}");
}

#[test]
fn what_leaves_a_schema_and_comes_nowhere_would_be_found() {
    let plan = |seed| Plan::with_part_lie(seed, None);
    let (seed, error) = found(Mutation::Node(Defence::MovesCompared), 8, plan);
    assert!(error.contains("moves") || error.contains("atomic"), "seed {seed}: {error}");
}

#[test]
fn schemas_without_locks_would_be_found() {
    let plan = |seed| Plan::with_part_lie(seed, None);
    let (seed, error) = found(Mutation::Node(Defence::PartLocks), 8, plan);
    let is_found = ["serial", "nobody stops", "atomic"].iter().any(|what| error.contains(what));
    assert!(is_found, "seed {seed}: {error}");
}

#[test]
fn parts_that_are_handed_to_strangers_would_be_found() {
    let (seed, error) = found(Mutation::Node(Defence::MembersAlone), 8, with(Lie::AsksForParts));
    assert!(error.contains("private"), "seed {seed}: {error}");
}
