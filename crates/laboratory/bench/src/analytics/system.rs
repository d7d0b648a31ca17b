//! What all systems have in common: they answer a query with rows of text, and say how long it took.

use crate::LaboratoryError;

/// The most that a floating point number may be away from an exact one, in parts of it.
const FLOATING_ERROR_MAX: f64 = 1e-12;

/// A database with all rows.
pub(super) trait System {
    /// As records name it.
    fn name(&self) -> &'static str;

    /// Answers a query.
    fn run(&mut self, sql: &str) -> Result<Answer, LaboratoryError>;
}

/// What a query gave.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    /// From the question until all rows are there.
    pub(super) ms: f64,
    pub(super) rows: Rows,
}

/// Rows as their system writes them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Rows {
    pub(super) cells: Vec<Vec<Option<String>>>,
    /// By column: whether it came as floating point numbers.
    pub(super) floating: Vec<bool>,
}

impl Rows {
    /// Rows without floating point numbers.
    pub(super) fn exact(cells: Vec<Vec<Option<String>>>) -> Rows {
        Rows { cells, floating: Vec::new() }
    }

    /// Whether these are PostgreSQL's rows: the same texts, but a floating point number only has to be so close that its
    /// double precision does not tell it from PostgreSQL's exact one.
    pub(super) fn are_those_of(&self, postgres: &Rows) -> bool {
        let is_floating = |column| self.floating.get(column).copied().unwrap_or(false);
        let is_same = |(column, (own, theirs)): (usize, (&Option<String>, &Option<String>))| {
            own == theirs || is_floating(column) && is_close(own.as_deref(), theirs.as_deref())
        };
        let is_same_row = |(own, theirs): (&Vec<Option<String>>, &Vec<Option<String>>)| {
            own.len() == theirs.len() && own.iter().zip(theirs).enumerate().all(is_same)
        };
        self.cells.len() == postgres.cells.len() && self.cells.iter().zip(&postgres.cells).all(is_same_row)
    }
}

fn is_close(own: Option<&str>, theirs: Option<&str>) -> bool {
    let number = |text: Option<&str>| text?.parse::<f64>().ok();
    let (Some(own), Some(theirs)) = (number(own), number(theirs)) else { return false };
    (own - theirs).abs() <= FLOATING_ERROR_MAX * theirs.abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(cells: &[&[&str]]) -> Rows {
        let row = |row: &&[&str]| row.iter().map(|cell| Some((*cell).to_string())).collect();
        Rows::exact(cells.iter().map(row).collect())
    }

    #[test]
    fn texts_are_the_same_and_floating_point_numbers_close() {
        let postgres = rows(&[&["a", "25.5020370000000000"], &["b", "0.05"]]);
        assert!(postgres.are_those_of(&postgres));
        let mut other = rows(&[&["a", "25.502037"], &["b", "0.05000000000000001"]]);
        assert!(!other.are_those_of(&postgres), "an exact number has its digits");
        other.floating = vec![false, true];
        assert!(other.are_those_of(&postgres));
        other.cells[1][1] = Some("0.0500000001".to_string());
        assert!(!other.are_those_of(&postgres));
        other.cells[1][1] = None;
        assert!(!other.are_those_of(&postgres), "NULL is no number");
        assert!(!rows(&[]).are_those_of(&postgres) && !postgres.are_those_of(&rows(&[])));
    }
}
