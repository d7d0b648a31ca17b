//! Commits in block order compared with the rules over all pairs.

use super::decide;
use crate::harmony::tests::effects;
use crate::rw_edges::Pairs;
use crate::scanned_rows::ScannedRows;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// The rules as they stand in `protocols.md`, over all pairs.
fn rejected(pairs: &Pairs) -> BTreeSet<u32> {
    let mut rejected = BTreeSet::new();
    for number in pairs.executed() {
        let committed = pairs.executed().filter(|other| *other < number && !rejected.contains(other));
        if committed.into_iter().any(|other| pairs.write_the_same(number, other)) {
            rejected.insert(number);
        }
        if rejected.contains(&number) {
            continue;
        }
        for near in pairs.executed().filter(|near| *near > number) {
            let far = pairs.executed().any(|far| pairs.leads(far, near) && !rejected.contains(&far));
            if pairs.leads(near, number) && far {
                rejected.insert(near);
            }
        }
    }
    rejected
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]
    #[test]
    fn decisions_equal_those_found_pair_by_pair(effects in prop::collection::vec(effects(), 0..9)) {
        let pairs = Pairs::of(effects);
        let decision = pairs.decide(|batch| decide(batch, ScannedRows::of(batch)));
        prop_assert_eq!(decision.rejected.iter().copied().collect::<BTreeSet<_>>(), rejected(&pairs));
        prop_assert_eq!(pairs.check(&decision), Ok(()));
    }

    #[test]
    fn beyond_the_bound_of_tests_decisions_are_still_sound(
        effects in prop::collection::vec(effects(), 0..9), tests_max in 0..12usize,
    ) {
        let pairs = Pairs::of(effects);
        let decision = pairs.decide(|batch| decide(batch, ScannedRows::of(batch).with_tests_max(tests_max)));
        prop_assert_eq!(pairs.check(&decision), Ok(()));
    }
}
