//! Databases side by side: the same tables in Entente, in PostgreSQL and in DuckDB, asked the same queries, one thread each.
//!
//! ```text
//!  Table::rows ──▶ Entente::load
//!      └──▶ files ──▶ Postgres::load, DuckDb::load
//!  queries ──▶ System::run, round by round ──▶ Measured
//! ```

mod duckdb;
mod entente;
mod files;
mod place;
mod postgres;
mod rounds;
mod system;
mod table;
mod times;

pub(crate) use duckdb::NAME as DUCKDB;
pub(crate) use entente::{FROM_COLUMNS, NAME as ENTENTE};
pub use place::EntentePlace;
pub(crate) use postgres::NAME as POSTGRES;
pub(crate) use rounds::{Measured, Rounds, measure, of_postgres};
pub(crate) use system::{System, count};
pub(crate) use table::Table;
pub(crate) use times::{TITLES, Times};

use crate::LaboratoryError;
use duckdb::DuckDb;
use entente::Entente;
use files::Files;
use postgres::Postgres;
use sql::RunFragments;
use std::sync::Arc;

/// All systems that can be measured.
pub(crate) const SYSTEMS: [&str; 3] = [ENTENTE, POSTGRES, DUCKDB];

/// What is to be loaded, and into which systems.
pub(crate) struct Wanted<'w> {
    /// Some of [`SYSTEMS`].
    pub(crate) systems: &'w [String],
    pub(crate) tables: &'w [Table],
    /// PostgreSQL's `shared_buffers`.
    pub(crate) postgres_megabytes: u64,
    /// Who runs fragments of Entente's queries on columns; `None`: they run row by row.
    pub(crate) fragments: Option<Arc<dyn RunFragments>>,
    pub(crate) place: EntentePlace,
}

/// Whether all names are those of systems.
pub(crate) fn check(systems: &[String]) -> Result<(), LaboratoryError> {
    let expected = "some of entente, postgres and duckdb";
    if systems.is_empty() {
        return Err(LaboratoryError::option("--systems", expected, "none"));
    }
    match systems.iter().find(|name| !SYSTEMS.contains(&name.as_str())) {
        Some(found) => Err(LaboratoryError::option("--systems", expected, format_args!("`{found}`"))),
        None => Ok(()),
    }
}

impl Wanted<'_> {
    /// The systems that can be had, with all rows. `progress` is told what is being done, and which system is left out and why.
    ///
    /// # Errors
    /// None can be had; a system does not take the rows.
    pub(crate) fn load(
        &self,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Vec<Box<dyn System>>, LaboratoryError> {
        // What may be missing comes first, so that one hears of it at once.
        let postgres = self.start(POSTGRES, progress, || Ok(Postgres::start(self.postgres_megabytes)?));
        let duckdb = self.start(DUCKDB, progress, DuckDb::start);
        let mut systems: Vec<Box<dyn System>> = Vec::new();
        if self.has(ENTENTE) {
            progress("rows are loaded into Entente");
            systems.push(Box::new(Entente::load(&self.place, self.tables, self.fragments.clone())?));
        }
        let files = match (&postgres, &duckdb) {
            (None, None) if systems.is_empty() => {
                return Err(LaboratoryError::Missing {
                    expected: "at least one of the systems that --systems names".to_string(),
                    found: "none that can be had here".to_string(),
                });
            }
            (None, None) => return Ok(systems),
            _ => {
                progress("rows are written to files");
                Files::write(self.tables)?
            }
        };
        if let Some(postgres) = postgres {
            progress("rows are loaded into PostgreSQL");
            systems.push(Box::new(postgres.load(self.tables, &files)?));
        }
        if let Some(duckdb) = duckdb {
            progress("rows are loaded into DuckDB");
            systems.push(Box::new(duckdb.load(self.tables, &files)?));
        }
        Ok(systems)
    }

    fn has(&self, name: &str) -> bool {
        self.systems.iter().any(|system| system == name)
    }

    /// A system that is asked for; `None`, and a word why, where it cannot be had.
    fn start<S>(
        &self,
        name: &str,
        progress: &mut dyn FnMut(&str),
        start: impl FnOnce() -> Result<S, LaboratoryError>,
    ) -> Option<S> {
        if !self.has(name) {
            return None;
        }
        progress(&format!("{name} is started"));
        start().inspect_err(|error| progress(&format!("{name} is left out: {error}"))).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_that_cannot_be_had_is_left_out_with_its_reason() {
        let systems = ["duckdb".to_string()];
        let (fragments, place) = (None, EntentePlace::default());
        let wanted = Wanted { systems: &systems, tables: &[], postgres_megabytes: 256, fragments, place };
        let mut said = Vec::new();
        let missing = LaboratoryError::Missing { expected: "python3".to_string(), found: "none".to_string() };
        let mut progress = |text: &str| said.push(text.to_string());
        assert!(wanted.start::<()>("duckdb", &mut progress, || Err(missing)).is_none());
        assert!(wanted.start("postgres", &mut progress, || Ok(())).is_none(), "nobody asks for it");
        assert_eq!(said, ["duckdb is started", "duckdb is left out: expected python3, found none"]);
    }
}
