//! Clocks: how far this node's is from those of the others.

use super::finding::Findings;

const CLOCK: &str = "clock";
/// Nobody is named whose clock is less far off: connections are made within this time, and ordering tolerates as much.
pub(super) const TOLERATED_MS: i64 = 10_000;

/// By how many milliseconds a clock is ahead of the one that asked. `took_ms`: from the question to the answer.
pub(super) fn ahead_ms(theirs_ms: u64, asked_ms: u64, took_ms: u64) -> i64 {
    theirs_ms as i64 - (asked_ms + took_ms / 2) as i64
}

/// `others`: members, and by how many milliseconds each one's clock is ahead of this node's.
pub(super) fn check(others: &[(String, i64)], findings: &mut Findings) {
    if others.is_empty() {
        return findings.warning(
            CLOCK,
            "no other member's clock could be asked",
            "see that this machine's clock is kept right (timedatectl, chronyc tracking); a running node names clocks in its status",
        );
    }
    let mut sorted: Vec<i64> = others.iter().map(|(_, ahead)| *ahead).collect();
    sorted.sort_unstable();
    let middle = sorted[sorted.len() / 2];
    let names = |off: &dyn Fn(i64) -> bool| {
        let named = others.iter().filter(|(_, ahead)| off(*ahead)).map(|(name, _)| name.as_str());
        named.collect::<Vec<_>>().join(", ")
    };
    let agreeing = others.iter().filter(|(_, ahead)| (ahead - middle).abs() <= TOLERATED_MS).count();
    // This node's clock counts as one voice: against it stand more that agree.
    let own_is_off = middle.abs() > TOLERATED_MS && agreeing > 1;
    let advice = "set it, and have it kept right (systemd-timesyncd, chrony): with more than ten seconds between them nodes do not connect, \
                  and blocks are waited for";
    if own_is_off {
        let (seconds, which) = (middle.abs() / 1_000, if middle > 0 { "behind" } else { "ahead of" });
        let whose = names(&|ahead| (ahead - middle).abs() <= TOLERATED_MS);
        findings.problem(CLOCK, format!("this node's clock is {seconds} s {which} those of {whose}"), advice);
    }
    let right = if own_is_off { middle } else { 0 };
    for (name, ahead) in others {
        let off = ahead - right;
        if off.abs() > TOLERATED_MS {
            let (seconds, which) = (off.abs() / 1_000, if off > 0 { "ahead of" } else { "behind" });
            let whom = if own_is_off { "those of the others" } else { "this node's" };
            let found = format!("the clock of {name} is {seconds} s {which} {whom}");
            match others.len() {
                1 => findings.problem(CLOCK, format!("{found}; whose is wrong is not known"), advice),
                _ => findings.warning(CLOCK, found, format!("tell {name}: {advice}")),
            }
        }
    }
    if findings.is_well(CLOCK) {
        let most = others.iter().map(|(_, ahead)| ahead.abs()).max().unwrap_or_default();
        let whose = names(&|_| true);
        findings.ok(CLOCK, format!("at most {} s from those of {whose}", (most + 500) / 1_000));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Level;

    const HOUR: i64 = 3_600_000;

    fn found(ahead: &[i64]) -> Vec<(Level, String)> {
        let others: Vec<(String, i64)> =
            ahead.iter().zip(2..).map(|(ahead, number)| (format!("org{number}"), *ahead)).collect();
        let mut findings = Findings::default();
        check(&others, &mut findings);
        findings.0.into_iter().map(|finding| (finding.level, finding.found)).collect()
    }

    #[test]
    fn whose_clock_is_an_hour_off_is_named() {
        assert_eq!(
            found(&[0, 400, -900]),
            [(Level::Ok, "at most 1 s from those of org2, org3, org4".to_string())]
        );
        let behind =
            (Level::Problem, "this node's clock is 3600 s behind those of org2, org3, org4".to_string());
        assert_eq!(found(&[HOUR, HOUR, HOUR + 500]), [behind]);
        let ahead = found(&[-HOUR, -HOUR, -HOUR]);
        assert_eq!(ahead[0].1, "this node's clock is 3600 s ahead of those of org2, org3, org4");
        let other = (Level::Warning, "the clock of org3 is 3600 s ahead of this node's".to_string());
        assert_eq!(found(&[0, HOUR, 100]), [other]);
        let both = found(&[HOUR, HOUR, 2 * HOUR]);
        assert_eq!(both[0].1, "this node's clock is 3600 s behind those of org2, org3");
        assert_eq!(both[1].1, "the clock of org4 is 3600 s ahead of those of the others");
        let one = found(&[HOUR]);
        assert_eq!(one[0].0, Level::Problem);
        assert!(one[0].1.ends_with("whose is wrong is not known"));
        assert_eq!(found(&[])[0].0, Level::Warning);
    }

    #[test]
    fn an_answer_is_compared_with_the_middle_of_the_way() {
        assert_eq!(ahead_ms(10_100, 10_000, 200), 0);
        assert_eq!(ahead_ms(10_000, 10_000, 200), -100);
    }
}
