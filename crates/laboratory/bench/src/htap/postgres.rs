//! PostgreSQL with its default settings, as a user would have it beside.

use super::asking::{Answers, ask_alone, beside};
use super::record::{HtapRecord, Seen};
use super::{HtapOptions, Measured};
use crate::LaboratoryError;
use crate::postgres::{self, connect};
use std::path::Path;
use tokio::runtime::Runtime;
use tokio_postgres::Client;
use workloads::Tpcc;

pub(super) const NAME: &str = "postgres";

/// A server with TPC-C, and what its loads came to.
pub(super) struct Postgres {
    server: postgres::Postgres,
    nobody_asks: Seen,
    questions: Seen,
    idle: Seen,
}

impl Postgres {
    pub(super) fn load(workload: &Tpcc) -> Result<Postgres, LaboratoryError> {
        let server = postgres::Postgres::start()?;
        server.load(workload)?;
        let (nobody_asks, questions, idle) = (Seen::default(), Seen::default(), Seen::default());
        Ok(Postgres { server, nobody_asks, questions, idle })
    }
}

impl Measured for Postgres {
    fn round(&mut self, workload: &Tpcc, options: &HtapOptions, seed: u64) -> Result<(), LaboratoryError> {
        let run = || Ok(self.server.run(workload, options.seconds, seed)?);
        self.nobody_asks.add(&run()?)?;
        let folder = self.server.socket_folder();
        let (timed, answered) = beside(options.every, || Session::connect(&folder), run)?;
        self.questions.add(&timed)?;
        self.questions.asked.add(answered);
        self.idle.asked.add(ask_alone(&mut Session::connect(&folder)?)?);
        Ok(())
    }

    fn records(&self, options: &HtapOptions) -> Vec<HtapRecord> {
        let Postgres { nobody_asks, questions, idle, .. } = self;
        [("nobody_asks", nobody_asks), ("questions", questions), ("idle", idle)]
            .map(|(load, seen)| seen.record((NAME, load), options.warehouses, nobody_asks, idle))
            .into()
    }
}

/// A session that asks.
struct Session {
    runtime: Runtime,
    client: Client,
}

impl Session {
    fn connect(folder: &Path) -> Result<Session, LaboratoryError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(LaboratoryError::file("start tokio for", folder))?;
        let client = runtime.block_on(connect(folder))?;
        let mut session = Session { runtime, client };
        session.answer("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED")?;
        Ok(session)
    }
}

impl Answers for Session {
    fn answer(&mut self, sql: &str) -> Result<(), LaboratoryError> {
        let answer = self.runtime.block_on(self.client.simple_query(sql));
        answer.map(|_| ()).map_err(|error| LaboratoryError::Answer {
            system: NAME,
            request: sql.to_string(),
            error: error.to_string(),
        })
    }
}
