//! What the figures of several measurements are made of.

use crate::CommandError;
use std::time::Duration;

/// What this process has computed so far, on all its threads.
pub(super) fn processor_time() -> Result<Duration, CommandError> {
    use nix::sys::resource::{UsageWho, getrusage};
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    let of = |time: nix::sys::time::TimeVal| {
        Duration::from_micros(time.tv_sec() as u64 * 1_000_000 + time.tv_usec() as u64)
    };
    Ok(of(usage.user_time()) + of(usage.system_time()))
}

/// The middle one; there is at least one.
pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    (values[values.len() / 2] + values[(values.len() - 1) / 2]) / 2.0
}

/// The least value that `part` of all are not above: the greatest of fewer than a hundred for 0.99. There is at least one.
pub(super) fn quantile(mut values: Vec<f64>, part: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let rank = (values.len() as f64 * part).ceil() as usize;
    values[rank.clamp(1, values.len()) - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_a_middle_and_a_ninety_ninth_part() {
        assert_eq!((median(vec![3.0, 1.0, 2.0]), median(vec![4.0, 1.0])), (2.0, 2.5));
        let hundred: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!((quantile(hundred.clone(), 0.99), quantile(hundred, 1.0)), (99.0, 100.0));
        assert_eq!(quantile(vec![7.0, 5.0], 0.99), 7.0);
    }
}
