//! The rounds: every system answers every query in turn, so that whatever else the machine does meets all alike.

use super::postgres;
use super::system::{Answer, Rows, System};
use crate::LaboratoryError;
use crate::median::median;
use std::time::{Duration, Instant};

/// How often, and how long at most.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rounds {
    /// On the clock.
    pub(crate) count: usize,
    /// What a query may take.
    pub(crate) limit: Option<Duration>,
}

/// What came of one query in one system.
pub(crate) struct Measured {
    /// Of which system.
    pub(crate) system: &'static str,
    ms: Vec<f64>,
    /// What the first run gave.
    rows: Rows,
    /// Whether all later runs gave the same.
    is_steady: bool,
    /// Where the rows of the last run came from, in a system that has several ways.
    pub(crate) from: Option<&'static str>,
    /// Why there are no rows.
    pub(crate) refusal: Option<LaboratoryError>,
}

impl Measured {
    /// From the first run, which is not on the clock.
    fn of(system: &'static str, first: Result<Answer, LaboratoryError>) -> Measured {
        let nothing = Measured {
            system,
            ms: Vec::new(),
            rows: Rows::default(),
            is_steady: true,
            from: None,
            refusal: None,
        };
        match first {
            Ok(Answer { rows, from, .. }) => Measured { rows, from, ..nothing },
            Err(error) => Measured { refusal: Some(error), ..nothing },
        }
    }

    fn add(&mut self, run: Result<Answer, LaboratoryError>) {
        match run {
            Ok(answer) => {
                self.ms.push(answer.ms);
                self.is_steady &= answer.rows == self.rows;
                self.from = answer.from;
            }
            Err(error) => self.refusal = Some(error),
        }
    }

    /// Milliseconds until all rows are there, the median over the rounds; `None` where the system has refused.
    pub(crate) fn ms(&self) -> Option<f64> {
        if self.refusal.is_none() { median(&self.ms) } else { None }
    }

    /// Where the rows of some run are not those of `postgres`; `None`: nowhere.
    pub(crate) fn difference(&self, postgres: &Measured) -> Option<String> {
        match [self, postgres].into_iter().find(|measured| !measured.is_steady) {
            Some(measured) => Some(format!("{} gives other rows at every run", measured.system)),
            None => self.rows.difference(&postgres.rows),
        }
    }

    /// Whether every run has given the rows of `postgres`; `None` where one of both has no rows.
    pub(crate) fn is_equal(&self, postgres: Option<&Measured>) -> Option<bool> {
        let postgres = postgres.filter(|_| self.refusal.is_none())?;
        postgres.refusal.is_none().then(|| self.difference(postgres).is_none())
    }
}

/// What PostgreSQL made of a query, where it was measured.
pub(crate) fn of_postgres(of_query: &[Measured]) -> Option<&Measured> {
    of_query.iter().find(|measured| measured.system == postgres::NAME)
}

/// Runs every query once to get warm, and so many times on the clock; gives by query and system what came of it. A system that has
/// refused a query, or has not ended it in time, is not asked it again. `progress` is told so, and also where rows are not
/// PostgreSQL's.
pub(crate) fn measure(
    queries: &[(&str, &str)],
    systems: &mut [Box<dyn System>],
    rounds: Rounds,
    progress: &mut dyn FnMut(&str),
) -> Vec<Vec<Measured>> {
    progress("every query runs once, to get warm");
    let mut measured: Vec<Vec<Measured>> = Vec::new();
    for (id, sql) in queries {
        let first =
            |system: &mut Box<dyn System>| Measured::of(system.name(), run(system, sql, rounds.limit));
        let of_query: Vec<Measured> = systems.iter_mut().map(first).collect();
        tell(id, &of_query, progress);
        measured.push(of_query);
    }
    for round in 1..=rounds.count {
        progress(&format!("round {round}/{}", rounds.count));
        for ((id, sql), of_query) in queries.iter().zip(&mut measured) {
            for (system, measured) in systems.iter_mut().zip(of_query) {
                if measured.refusal.is_none() {
                    measured.add(run(system, sql, rounds.limit));
                    if let Some(error) = &measured.refusal {
                        progress(&format!("{id} in {}: {error}", measured.system));
                    }
                }
            }
        }
    }
    measured
}

/// Says which systems have refused a query, and whose rows are not PostgreSQL's.
fn tell(id: &str, of_query: &[Measured], progress: &mut dyn FnMut(&str)) {
    let expected = of_postgres(of_query);
    for measured in of_query {
        if let Some(error) = &measured.refusal {
            progress(&format!("{id} in {}: {error}", measured.system));
        } else if measured.is_equal(expected) == Some(false) {
            let found = expected.and_then(|expected| measured.difference(expected)).unwrap_or_default();
            progress(&format!("{id} in {}: other rows: {found}", measured.system));
        }
    }
}

/// An answer, or what the system says; whatever it says, time was over where it was.
fn run(system: &mut Box<dyn System>, sql: &str, limit: Option<Duration>) -> Result<Answer, LaboratoryError> {
    let start = Instant::now();
    let answer = system.run(sql, limit);
    match limit {
        Some(limit) if answer.is_err() && start.elapsed() >= limit => {
            Err(LaboratoryError::Late { seconds: limit.as_secs_f64() })
        }
        _ => answer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives a row with this text, waits for so long before, and counts how often it was asked.
    struct Plain {
        name: &'static str,
        text: &'static str,
        wait: Duration,
        asked: usize,
    }

    impl System for Plain {
        fn name(&self) -> &'static str {
            self.name
        }

        fn run(&mut self, sql: &str, limit: Option<Duration>) -> Result<Answer, LaboratoryError> {
            self.asked += 1;
            let refused = |error: &str| LaboratoryError::Answer {
                system: self.name,
                request: sql.to_string(),
                error: error.to_string(),
            };
            if limit.is_some_and(|limit| limit < self.wait) {
                std::thread::sleep(limit.unwrap_or_default());
                return Err(refused("interrupted"));
            }
            if self.asked > 2 {
                return Err(refused("asked too often"));
            }
            let rows = Rows::exact(vec![vec![Some(self.text.to_string())]]);
            Ok(Answer { ms: 1.0, rows, from: None })
        }
    }

    fn plain(name: &'static str, text: &'static str, wait_ms: u64) -> Box<dyn System> {
        Box::new(Plain { name, text, wait: Duration::from_millis(wait_ms), asked: 0 })
    }

    fn measured(systems: &mut [Box<dyn System>], count: usize) -> (Vec<Measured>, Vec<String>) {
        let mut said = Vec::new();
        let rounds = Rounds { count, limit: Some(Duration::from_millis(20)) };
        let mut found =
            measure(&[("q", "SELECT 1")], systems, rounds, &mut |text| said.push(text.to_string()));
        (found.remove(0), said)
    }

    #[test]
    fn other_rows_are_told_with_the_first_difference() {
        let mut systems = [plain("entente", "a", 0), plain("postgres", "b", 0)];
        let (found, said) = measured(&mut systems, 1);
        let equal: Vec<Option<bool>> =
            found.iter().map(|measured| measured.is_equal(of_postgres(&found))).collect();
        assert_eq!(equal, [Some(false), Some(true)]);
        assert_eq!(said[1], "q in entente: other rows: `a` in row 1, column 1, PostgreSQL has `b`");
        assert_eq!(found.iter().map(Measured::ms).collect::<Vec<_>>(), [Some(1.0), Some(1.0)]);
    }

    #[test]
    fn who_does_not_end_in_time_has_no_rows_and_is_not_asked_again() {
        let mut systems = [plain("entente", "a", 1_000), plain("postgres", "a", 0)];
        let (found, said) = measured(&mut systems, 1);
        assert_eq!(found[0].ms(), None);
        assert_eq!(found[0].is_equal(of_postgres(&found)), None);
        assert_eq!(found[1].is_equal(of_postgres(&found)), Some(true));
        assert_eq!(said[1..], ["q in entente: not ended after 0.02 s", "round 1/1"]);
    }

    #[test]
    fn who_refuses_in_a_later_round_has_no_time() {
        let mut systems = [plain("postgres", "a", 0)];
        let (found, said) = measured(&mut systems, 2);
        assert_eq!(found[0].ms(), None);
        let refusal = "q in postgres: postgres does not answer SELECT 1: asked too often";
        assert_eq!(said.last().map(String::as_str), Some(refusal));
    }
}
