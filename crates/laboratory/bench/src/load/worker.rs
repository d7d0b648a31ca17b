//! Clients of one organisation that sign and submit without end.

use super::route::Route;
use super::submission::Submission;
use super::tally::Tally;
use super::{Submit, finished};
use client::ClientError;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::sync::Arc;
use std::time::{Duration, Instant};
use types::{Payload, SignedTransaction};
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
                    Submit::CallsInSchemas { schemas, crossing_percent } => {
                        self.call_in_schemas(schemas, crossing_percent)
                    }
                };
                self.route.own_client().identity().sign(payload, expires_at)
            })
            .collect()
    }

    fn call_in_schemas(&mut self, schemas: u8, crossing_percent: u8) -> Payload {
        let bank = self.random.random_range(0..schemas);
        let payload = match self.random.random_range(0..100) < crossing_percent {
            false => self.smallbank.next_call(&mut self.random).into_payload(),
            true => {
                let other = (bank + self.random.random_range(1..schemas.max(2))) % schemas;
                let procedure = format!("pay_bank{}", other + 1);
                Payload::Call { procedure, arguments: self.smallbank.payment(&mut self.random) }
            }
        };
        match payload {
            Payload::Call { procedure, arguments } => {
                Payload::Call { procedure: format!("bank{}.{procedure}", bank + 1), arguments }
            }
            other => other,
        }
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
