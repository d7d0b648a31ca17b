//! How far the clocks of other members are from this node's, as far as the blocks show that they propose.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::time::Duration;
use types::Charter;

/// Nobody is named whose clock is less far off: blocks take their time, and so do nodes that are busy.
const TOLERATED_MS: i64 = 10_000;

/// What was seen longer ago says nothing: somebody may have set the clock.
const REMEMBERED: Duration = Duration::from_secs(60);

/// What the newest block of a member showed.
struct Seen {
    /// Milliseconds by which its time was ahead of this node's clock.
    ahead_ms: i64,
    at: Duration,
}

/// By position of the member.
#[derive(Default)]
pub(crate) struct Clocks(Mutex<BTreeMap<u16, Seen>>);

impl Clocks {
    /// A member has just proposed a block of this time behind one of the time `parent_ms`; `now`: this node's clock, since 1970.
    pub(crate) fn see(&self, proposer: u16, (time_ms, parent_ms): (u64, u64), now: Duration) {
        // The earliest time that a block can have is its parent's, and not its proposer's.
        let ahead_ms = match time_ms > parent_ms.saturating_add(1) {
            true => milliseconds(time_ms) - milliseconds(now.as_millis() as u64),
            false => 0,
        };
        self.0.lock().insert(proposer, Seen { ahead_ms, at: now });
    }

    /// Whose clock is wrong, and what to do: this node's where most others' are as wrong as one another.
    pub(crate) fn trouble(&self, charter: &Charter, own: Option<u16>, now: Duration) -> Option<String> {
        let mut seen = self.0.lock();
        // Whoever sets this node's clock begins anew.
        seen.retain(|_, seen| now.abs_diff(seen.at) < REMEMBERED);
        let others = charter.members().filter(|(position, _)| Some(*position) != own);
        let of = |sign: i64| -> Vec<(&str, i64)> {
            let found = others.clone().filter_map(|(position, member)| {
                let ahead_ms = seen.get(&position)?.ahead_ms * sign;
                (ahead_ms > TOLERATED_MS).then_some((member.name.as_str(), ahead_ms))
            });
            found.collect()
        };
        let (ahead, behind) = (of(1), of(-1));
        let is_most = |some: &[(&str, i64)]| 2 * some.len() > others.clone().count();
        let least = |some: &[(&str, i64)]| some.iter().map(|(_, off)| off / 1000).min().unwrap_or_default();
        let names =
            |some: &[(&str, i64)]| some.iter().map(|(name, _)| *name).collect::<Vec<&str>>().join(", ");
        if is_most(&ahead) {
            let (seconds, names) = (least(&ahead), names(&ahead));
            return Some(format!(
                "this node's clock is {seconds} s behind those of {names}: set it; until then it votes late or not at all"
            ));
        }
        if is_most(&behind) {
            let (seconds, names) = (least(&behind), names(&behind));
            return Some(format!(
                "this node's clock is {seconds} s ahead of those of {names}: set it; until then others wait for its blocks, or go on \
                 without them"
            ));
        }
        (!ahead.is_empty()).then(|| {
            let (seconds, names) = (least(&ahead), names(&ahead));
            format!("{names}: a clock that is {seconds} s ahead of this node's; whose is wrong is to be set")
        })
    }
}

fn milliseconds(time: u64) -> i64 {
    i64::try_from(time).unwrap_or(i64::MAX / 2)
}

#[cfg(all(test, feature = "simulation"))]
mod tests {
    use super::*;
    use crate::simulation::charter;

    const NOW: Duration = Duration::from_secs(1_800_000_000);
    const HOUR: u64 = 3_600_000;

    /// Of four members: milliseconds by which the first ones' blocks are ahead.
    fn trouble(of: &[i64], after: Duration) -> Option<String> {
        let clocks = Clocks::default();
        for (proposer, ahead) in (0..).zip(of) {
            let timestamp_ms = (NOW.as_millis() as i64 + ahead) as u64;
            clocks.see(proposer, (timestamp_ms, timestamp_ms - 500), NOW);
        }
        clocks.trouble(&charter(1, 4), Some(3), NOW + after)
    }

    #[test]
    fn whose_clock_is_wrong_is_named() {
        let hour = HOUR as i64;
        let soon = Duration::from_secs(5);
        assert_eq!(trouble(&[0, -300, 900], soon), None);
        assert_eq!(trouble(&[0, 0, -hour], soon), None, "its blocks came late");
        let one = trouble(&[0, hour, -50], soon).expect("one is ahead");
        assert!(one.starts_with("org2: a clock that is 3600 s ahead"), "{one}");
        let behind = trouble(&[hour, hour + 500, 0], soon).expect("most are ahead");
        assert!(
            behind.starts_with("this node's clock is 3600 s behind those of org1, org2: set it"),
            "{behind}"
        );
        let ahead = trouble(&[-hour, -hour, -hour], soon).expect("all are behind");
        assert!(
            ahead.starts_with("this node's clock is 3600 s ahead of those of org1, org2, org3"),
            "{ahead}"
        );
        assert_eq!(trouble(&[0, hour, 0], REMEMBERED), None, "it is long ago");
        assert_eq!(
            trouble(&[hour, hour, hour], Duration::from_millis(HOUR)),
            None,
            "this node's clock was set"
        );
    }

    #[test]
    fn the_time_of_a_block_before_is_nobodys_clock() {
        let clocks = Clocks::default();
        let late = NOW.as_millis() as u64 + HOUR;
        clocks.see(0, (late + 1, late), NOW);
        assert_eq!(clocks.0.lock().get(&0).expect("it was seen").ahead_ms, 0);
    }
}
