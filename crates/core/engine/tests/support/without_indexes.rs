//! Random transactions on a ledger with indexes that only find rows, beside the same ledger without them: under every protocol that
//! executes after ordering they end as in a serial run there.

use super::histories::{self, History, PROTOCOLS, after, replay};
use super::script;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use sql::Library;
use state::{AfterImage, PlainState, RowId};
use std::sync::Arc;
use types::Payload;

const BATCHES: usize = 3;
const TRANSACTIONS: u32 = 6;

/// One of the templates, with a small number in the place of each `#` and one of the texts in that of each `@`, now and then NULL.
pub fn statement(random: &mut StdRng, templates: &[&str], texts: [&str; 3]) -> String {
    let template = templates.choose(random).expect("there are some");
    let mut text = String::new();
    for character in template.chars() {
        match character {
            '#' if random.random_bool(0.04) => text.push_str("NULL"),
            '#' => text.push_str(&random.random_range(1..=4).to_string()),
            '@' if random.random_bool(0.08) => text.push_str("NULL"),
            '@' => text.push_str(texts.choose(random).expect("three")),
            other => text.push(other),
        }
    }
    text
}

/// What of a random history is each test's own.
pub struct Histories<'a> {
    /// How many.
    pub count: u64,
    /// The ledger without the indexes.
    pub plain: Arc<Library>,
    /// With them; their numbers come after everything else's.
    pub indexed: Arc<Library>,
    /// A random statement.
    pub statement: &'a dyn Fn(&mut StdRng) -> String,
    /// What must hold of every state.
    pub check: &'a dyn Fn(&PlainState),
}

impl Histories<'_> {
    /// Runs them under every protocol. Gives how many transactions have committed and aborted under each.
    pub fn run(&self) -> Vec<(usize, usize)> {
        let mut counts = vec![(0, 0); PROTOCOLS.len()];
        for seed in 0..self.count {
            let mut random = StdRng::seed_from_u64(seed);
            let initial = after(&self.indexed, (0..12).map(|_| self.transaction(&mut random)));
            (self.check)(&initial);
            let history: History = (0..BATCHES)
                .map(|_| (0..TRANSACTIONS).map(|_| self.transaction(&mut random)).collect())
                .collect();
            for (id, count) in PROTOCOLS.iter().zip(&mut counts) {
                let (committed, aborted) = self.run_one(id, &initial, &history);
                (count.0, count.1) = (count.0 + committed, count.1 + aborted);
            }
        }
        eprintln!("{PROTOCOLS:?}: {counts:?} committed and aborted");
        counts
    }

    fn transaction(&self, random: &mut StdRng) -> Arc<Payload> {
        let count = [1, 1, 2, 2, 3].choose(random).expect("five");
        let statements: Vec<String> = (0..*count).map(|_| (self.statement)(random)).collect();
        Arc::new(script(&statements.join("; ")))
    }

    /// Runs a history under a protocol, checks it against the serializability checker, and replays it serially on the ledger
    /// without the indexes.
    fn run_one(&self, id: &str, initial: &PlainState, history: &History) -> (usize, usize) {
        let ran = histories::run(id, &self.indexed, initial, history);
        (self.check)(&ran.state);
        let mut serial = PlainState::new(self.plain.catalog().clone());
        let is_known = |table| self.plain.catalog().row_tables().any(|known| known == table);
        for (table, rows) in initial.tables.iter().filter(|(table, _)| !table.is_index()) {
            for (key, row) in rows.iter().filter(|_| is_known(*table)) {
                let row_id = RowId { table: *table, key: key.clone() };
                serial.apply(&AfterImage { row: row_id, value: Some(row.clone()) });
            }
        }
        let (mut committed, mut aborted) = (0, 0);
        let serial = replay(&ran, &self.plain, serial, history, |_, result| {
            committed += usize::from(result.is_ok());
            aborted += usize::from(result.is_err());
        });
        for (table, rows) in serial.tables.iter().filter(|(table, _)| !table.is_index()) {
            assert_eq!(ran.state.tables.get(table), Some(rows), "{id}: table {}", table.0);
        }
        (committed, aborted)
    }
}
