//! Clients of one organisation that sign and submit without end.

use super::route::Route;
use super::submission::Submission;
use super::tally::Tally;
use super::{Submit, finished};
use client::ClientError;
use rand::SeedableRng;
use rand::rngs::StdRng;
use std::sync::Arc;
use std::time::{Duration, Instant};
use types::SignedTransaction;
use workloads::smallbank::Smallbank;

/// How far ahead the expiry heights lie.
const EXPIRY_BLOCKS: u64 = 2_000;
/// How often an open loop submits what is due.
const OPEN_LOOP_TICK: Duration = Duration::from_millis(20);

pub(super) struct Worker {
    pub(super) route: Arc<Route>,
    pub(super) tally: Arc<Tally>,
    smallbank: Smallbank,
    submit: Submit,
    random: StdRng,
}

impl Worker {
    pub(super) fn new(
        route: Arc<Route>,
        tally: Arc<Tally>,
        (smallbank, submit): (Smallbank, Submit),
        seed: u64,
    ) -> Worker {
        Worker { route, tally, smallbank, submit, random: StdRng::seed_from_u64(seed) }
    }

    pub(super) fn sign(&mut self, count: usize) -> Vec<SignedTransaction> {
        let expires_at = self.tally.height() + EXPIRY_BLOCKS;
        (0..count)
            .map(|_| {
                let payload = match self.submit {
                    Submit::ChainifyScripts => self.smallbank.next_script(&mut self.random),
                    Submit::Calls | Submit::ChainifyCalls => {
                        self.smallbank.next_call(&mut self.random).into_payload()
                    }
                };
                self.route.own_client().identity().sign(payload, expires_at)
            })
            .collect()
    }

    pub(super) async fn closed_loop(mut self, transactions: usize) -> Result<(), ClientError> {
        while !self.tally.is_stopped() {
            let submission = Submission::new(self.route.home(), self.sign(transactions));
            submission.until_answered(&self.route, &self.tally).await?;
        }
        Ok(())
    }

    pub(super) async fn open_loop(mut self, rate: f64) -> Result<(), ClientError> {
        let (start, mut sent) = (Instant::now(), 0_u64);
        let mut submissions = tokio::task::JoinSet::new();
        let mut ticks = tokio::time::interval(OPEN_LOOP_TICK);
        while !self.tally.is_stopped() {
            ticks.tick().await;
            let due = (start.elapsed().as_secs_f64() * rate) as u64 - sent;
            if due > 0 {
                sent += due;
                let submission = Submission::new(self.route.home(), self.sign(due as usize));
                let (route, tally) = (self.route.clone(), self.tally.clone());
                submissions.spawn(async move { submission.until_answered(&route, &tally).await });
            }
            while let Some(ended) = submissions.try_join_next() {
                finished(ended)?;
            }
        }
        while let Some(ended) = submissions.join_next().await {
            finished(ended)?;
        }
        Ok(())
    }
}
