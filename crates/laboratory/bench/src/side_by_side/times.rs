//! Milliseconds of a query in the systems side by side, as cells of a table.

use super::{DUCKDB, ENTENTE, POSTGRES};

/// Titles of [`Times::cells`].
pub(crate) const TITLES: [&str; 5] =
    ["entente ms", "postgres ms", "duckdb ms", "postgres/entente", "entente/duckdb"];

/// Milliseconds by system; `None`: it was left out, or has refused.
#[derive(Default)]
pub(crate) struct Times {
    entente: Option<f64>,
    postgres: Option<f64>,
    duckdb: Option<f64>,
}

impl Times {
    /// What `ms` says of each system.
    pub(crate) fn of(ms: impl Fn(&str) -> Option<f64>) -> Times {
        Times { entente: ms(ENTENTE), postgres: ms(POSTGRES), duckdb: ms(DUCKDB) }
    }

    /// Adds those of another query.
    pub(crate) fn add(&mut self, other: &Times) {
        let add = |sum: &mut Option<f64>, ms: Option<f64>| {
            if let Some(ms) = ms {
                *sum = Some(sum.unwrap_or(0.0) + ms);
            }
        };
        add(&mut self.entente, other.entente);
        add(&mut self.postgres, other.postgres);
        add(&mut self.duckdb, other.duckdb);
    }

    /// The times, and their ratios.
    pub(crate) fn cells(&self) -> [String; 5] {
        let ratio =
            |above: Option<f64>, below: Option<f64>| Some(above? / below.filter(|below| *below > 0.0)?);
        let of_postgres = ratio(self.postgres, self.entente);
        let of_duckdb = ratio(self.entente, self.duckdb);
        [self.entente, self.postgres, self.duckdb, of_postgres, of_duckdb]
            .map(|number| number.map_or_else(|| "–".to_string(), |number| format!("{number:.2}")))
    }
}
