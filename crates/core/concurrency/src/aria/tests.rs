//! Reservations compared with conflicts pair by pair.

use super::decide;
use crate::harmony::tests::effects;
use crate::rw_edges::Pairs;
use crate::scanned_rows::ScannedRows;
use proptest::prelude::*;

/// The rules as they stand in `protocols.md`, over all pairs.
fn rejected(pairs: &Pairs, reordering: bool) -> Vec<u32> {
    let is_rejected = |number: &u32| {
        let smaller = || pairs.executed().filter(|other| other < number);
        let waw = smaller().any(|other| pairs.write_the_same(*number, other));
        let raw = smaller().any(|other| pairs.leads(*number, other));
        let war = smaller().any(|other| pairs.leads(other, *number));
        pairs.writes(*number) && (waw || if reordering { raw && war } else { raw })
    };
    pairs.executed().filter(is_rejected).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]
    #[test]
    fn decisions_equal_those_found_pair_by_pair(
        effects in prop::collection::vec(effects(), 0..9), reordering: bool,
    ) {
        let pairs = Pairs::of(effects);
        let decision = pairs.decide(|batch| decide(batch, reordering, ScannedRows::of(batch)));
        prop_assert_eq!(&decision.rejected, &rejected(&pairs, reordering));
        prop_assert_eq!(pairs.check(&decision), Ok(()));
    }

    #[test]
    fn beyond_the_bound_of_tests_decisions_are_still_sound(
        effects in prop::collection::vec(effects(), 0..9), reordering: bool, tests_max in 0..12usize,
    ) {
        let pairs = Pairs::of(effects);
        let decision = pairs.decide(|batch| {
            decide(batch, reordering, ScannedRows::of(batch).with_tests_max(tests_max))
        });
        prop_assert_eq!(pairs.check(&decision), Ok(()));
    }
}
