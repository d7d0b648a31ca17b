//! What all systems have in common: they answer a query with rows of text, and say how long it took.

use crate::LaboratoryError;
use std::time::Duration;

/// The most that a floating point number may be away from an exact one, in parts of it.
const FLOATING_ERROR_MAX: f64 = 1e-12;

/// A database with all rows.
pub(crate) trait System {
    /// As records name it.
    fn name(&self) -> &'static str;

    /// Answers a query; with a limit it gives up soon after so long.
    fn run(&mut self, sql: &str, limit: Option<Duration>) -> Result<Answer, LaboratoryError>;
}

/// The rows of a table, as the first system counts them; none where there is no system.
pub(crate) fn count(systems: &mut [Box<dyn System>], table: &str) -> Result<u64, LaboratoryError> {
    let [first, ..] = systems else { return Ok(0) };
    let sql = format!("SELECT count(*) FROM {table}");
    let rows = first.run(&sql, None)?.rows.cells;
    let number = rows.first().and_then(|row| row.first()?.as_ref()?.parse().ok());
    number.ok_or_else(|| LaboratoryError::Answer {
        system: first.name(),
        request: sql,
        error: format!("expected a number, found {rows:?}"),
    })
}

/// What a query gave.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// From the question until all rows are there.
    pub(crate) ms: f64,
    pub(crate) rows: Rows,
    /// Where the rows come from, in a system that has several ways.
    pub(crate) from: Option<&'static str>,
}

/// Rows as their system writes them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Rows {
    pub(crate) cells: Vec<Vec<Option<String>>>,
    /// By column: whether it came as floating point numbers.
    pub(crate) floating: Vec<bool>,
    /// Whether values of `char(n)` come with the spaces that fill them up.
    pub(crate) is_padded: bool,
}

impl Rows {
    /// Rows without floating point numbers, and with the spaces of `char(n)`.
    pub(crate) fn exact(cells: Vec<Vec<Option<String>>>) -> Rows {
        Rows { cells, floating: Vec::new(), is_padded: true }
    }

    /// The first place where these are not PostgreSQL's rows; `None`: they are. A text has to be the same. Two things are evened
    /// out where a system has other types: a floating point number only has to be so close that its double precision does not
    /// tell it from PostgreSQL's exact one, and the spaces that fill `char(n)` up may be missing.
    pub(crate) fn difference(&self, postgres: &Rows) -> Option<String> {
        for (number, (own, theirs)) in self.cells.iter().zip(&postgres.cells).enumerate() {
            if own.len() != theirs.len() {
                return Some(format!("{} columns, PostgreSQL has {}", own.len(), theirs.len()));
            }
            for (column, (own, theirs)) in own.iter().zip(theirs).enumerate() {
                if !self.is_same(column, own.as_deref(), theirs.as_deref()) {
                    let shown = |cell: &Option<String>| {
                        cell.as_ref().map_or_else(|| "NULL".to_string(), |text| format!("`{text}`"))
                    };
                    let (row, column) = (number + 1, column + 1);
                    let (own, theirs) = (shown(own), shown(theirs));
                    return Some(format!("{own} in row {row}, column {column}, PostgreSQL has {theirs}"));
                }
            }
        }
        let (own, theirs) = (self.cells.len(), postgres.cells.len());
        (own != theirs).then(|| format!("{own} rows, PostgreSQL has {theirs}"))
    }

    fn is_same(&self, column: usize, own: Option<&str>, theirs: Option<&str>) -> bool {
        own == theirs
            || self.floating.get(column).copied().unwrap_or(false) && is_close(own, theirs)
            || !self.is_padded && own == theirs.map(|text| text.trim_end_matches(' '))
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
        assert_eq!(postgres.difference(&postgres), None);
        let mut other = rows(&[&["a", "25.502037"], &["b", "0.05000000000000001"]]);
        let found = other.difference(&postgres).expect("an exact number has its digits");
        assert_eq!(found, "`25.502037` in row 1, column 2, PostgreSQL has `25.5020370000000000`");
        other.floating = vec![false, true];
        assert_eq!(other.difference(&postgres), None);
        other.cells[1][1] = Some("0.0500000001".to_string());
        assert!(other.difference(&postgres).is_some());
        other.cells[1][1] = None;
        let found = other.difference(&postgres).expect("NULL is no number");
        assert_eq!(found, "NULL in row 2, column 2, PostgreSQL has `0.05`");
    }

    #[test]
    fn missing_and_additional_rows_and_columns_are_differences() {
        let postgres = rows(&[&["a"], &["b"]]);
        let expected = |found: &Rows, text: &str| {
            assert_eq!(found.difference(&postgres).as_deref(), Some(text));
        };
        expected(&rows(&[]), "0 rows, PostgreSQL has 2");
        expected(&rows(&[&["a"], &["b"], &["c"]]), "3 rows, PostgreSQL has 2");
        expected(&rows(&[&["a", "x"], &["b", "y"]]), "2 columns, PostgreSQL has 1");
    }

    #[test]
    fn only_a_system_that_does_not_fill_char_up_may_leave_its_spaces_out() {
        let postgres = rows(&[&["FRANCE    "]]);
        let mut other = rows(&[&["FRANCE"]]);
        assert!(other.difference(&postgres).is_some());
        other.is_padded = false;
        assert_eq!(other.difference(&postgres), None);
        other.cells[0][0] = Some(" FRANCE".to_string());
        assert!(other.difference(&postgres).is_some(), "spaces in front count");
    }
}
