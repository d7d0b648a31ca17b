//! An organisation whose rows somebody has changed, and one that ends: heights of all over time (paper 002, figure 4.12).

use super::network::{ChainifyNetwork, ORGANISATIONS};
use super::record::{HeightsAt, RecoveryRecord};
use crate::CommandError;
use client::Client;
use std::time::{Duration, Instant};

/// Load before the row is changed.
const BEFORE: Duration = Duration::from_secs(8);
/// Load after the first organisation is back, and after the third has ended.
const AFTER: Duration = Duration::from_secs(8);
/// How often heights are looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// An organisation that is not back by then has failed.
const PATIENCE: Duration = Duration::from_secs(120);
/// An organisation is level with the others up to so many blocks below the highest.
const LEVEL_BLOCKS: u64 = 3;
const ENDLESS: Duration = Duration::from_secs(86_400);
const CLIENTS: usize = 8;
/// Nearly every block has a script that looks at the first customer's accounts.
const SKEW: f64 = 1.1;
/// The organisation that ends.
const ENDS: usize = 2;

/// What is seen while a load goes on.
struct Watch<'a> {
    clients: &'a [Client],
    start: Instant,
    seen: Vec<HeightsAt>,
}

/// What the first organisation says of itself.
struct First {
    /// Its outcome is not that of a quorum, and it makes its state again.
    away: bool,
    /// It has found a row that somebody else has changed, and put it right.
    put_right: bool,
    level: bool,
}

impl Watch<'_> {
    fn now(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    async fn look(&mut self) -> First {
        tokio::time::sleep(LOOK_AGAIN).await;
        let (mut heights, mut first) = (Vec::new(), First { away: true, put_right: false, level: false });
        let mut lowest_certified = None;
        for (position, client) in self.clients.iter().enumerate() {
            let status = client.status().await.ok();
            if let (0, Some(status)) = (position, &status) {
                first.away = status.not_serving.is_some();
                first.put_right = status.database.as_ref().is_some_and(|database| database.strange_rows > 0);
                lowest_certified = Some(status.certified_height);
            }
            heights.push(status.map(|status| status.height));
        }
        let highest = heights.iter().flatten().max().copied().unwrap_or_default();
        first.level = heights[0].is_some_and(|height| height + LEVEL_BLOCKS >= highest)
            && lowest_certified.is_some_and(|certified| certified + LEVEL_BLOCKS * 4 >= highest);
        self.seen.push(HeightsAt { seconds: self.now(), heights });
        first
    }

    async fn look_for(&mut self, time: Duration) {
        let until = Instant::now() + time;
        while Instant::now() < until {
            self.look().await;
        }
    }

    async fn look_until(
        &mut self,
        what: &str,
        mut reached: impl FnMut(First) -> bool,
    ) -> Result<f64, CommandError> {
        let until = Instant::now() + PATIENCE;
        while !reached(self.look().await) {
            if Instant::now() > until {
                return Err(format!("{what} within {PATIENCE:?}").into());
            }
        }
        Ok(self.now())
    }

    /// Blocks per second that the fourth organisation, which nothing happens to, executed between two moments.
    fn rate(&self, from: f64, to: f64) -> f64 {
        let at = |moment: f64| {
            let before = self.seen.iter().rev().find(|seen| seen.seconds <= moment);
            before.and_then(|seen| seen.heights[ORGANISATIONS - 1]).unwrap_or_default() as f64
        };
        (at(to) - at(from)) / (to - from).max(0.1)
    }

    /// The longest time between two moments in which none of these organisations executed a block.
    fn longest_pause(&self, (from, to): (f64, f64), organisations: &[usize]) -> f64 {
        let (mut longest, mut since, mut last) = (0.0_f64, from, 0);
        for seen in self.seen.iter().filter(|seen| seen.seconds >= from && seen.seconds <= to) {
            let heights = organisations.iter().filter_map(|organisation| seen.heights[*organisation]);
            let height = heights.max().unwrap_or_default();
            if height > last {
                (since, last) = (seen.seconds, height);
            }
            longest = longest.max(seen.seconds - since);
        }
        longest
    }
}

/// A load, a row that is changed under it, an organisation that comes back, and another one that ends.
pub(super) fn measure(
    network: &mut ChainifyNetwork,
    databases: &str,
    paper_recovery_seconds: f64,
) -> Result<RecoveryRecord, CommandError> {
    let load = network.prepare_load(CLIENTS, SKEW, true)?;
    let handle = load.handle();
    let clients = network.clients().to_vec();
    let task = network.runtime().spawn(load.run(ENDLESS, |_| {}));
    let mut watch = Watch { clients: &clients, start: Instant::now(), seen: Vec::new() };
    network.runtime().block_on(watch.look_for(BEFORE));
    network.change_a_row()?;
    let changed_seconds = watch.now();
    let mut made_again = false;
    let found = watch.look_until("nobody noticed the changed row", |first| {
        made_again |= first.away;
        first.away || first.put_right
    });
    let found_seconds = network.runtime().block_on(found)?;
    let back = watch.look_until("the first organisation did not come back", |first| {
        made_again |= first.away;
        !first.away && first.level
    });
    let recovered_seconds = network.runtime().block_on(back)?;
    network.runtime().block_on(watch.look_for(AFTER));
    network.kill(ENDS)?;
    let killed_seconds = watch.now();
    network.runtime().block_on(watch.look_for(AFTER));
    handle.stop();
    network.restart(ENDS)?;
    network.runtime().block_on(task)??;
    network.check()?;
    Ok(RecoveryRecord {
        databases: databases.to_string(),
        found_by: if made_again { "another outcome than a quorum's" } else { "the row's old image" },
        changed_seconds,
        found_seconds,
        recovered_seconds,
        standstill_seconds: watch.longest_pause((changed_seconds, recovered_seconds), &[0]),
        recovery_seconds: recovered_seconds - found_seconds,
        paper_recovery_seconds,
        others_blocks_per_second: [
            watch.rate(1.0, changed_seconds),
            watch.rate(found_seconds, recovered_seconds),
        ],
        killed_seconds,
        pause_after_kill_seconds: watch.longest_pause((killed_seconds, f64::MAX), &[0, ORGANISATIONS - 1]),
        heights: watch.seen,
    })
}
