//! Precision locking: what a transaction has read, as predicates, and whether a write would have changed that
//! (2.3.1; Jordan, Banerjee, Batman 1981; Neumann, Mühlbauer, Kemper 2015).

/// Rows of a table whose column lies between two values, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Which column.
    pub column: usize,
    /// The least value.
    pub from: i64,
    /// The greatest value.
    pub to: i64,
}

/// Which rows a transaction has looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rows {
    /// One that it knew.
    One(u32),
    /// All that meet the conditions, whether or not there were any.
    Where(Vec<Condition>),
}

/// What a transaction has read of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Predicate {
    /// Which table.
    pub table: usize,
    /// Which rows.
    pub rows: Rows,
    /// Which columns of these rows, a bit for each.
    pub columns: u64,
}

/// A value that was replaced; in an inserted row there was none before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    pub(crate) column: usize,
    pub(crate) before: i64,
    pub(crate) after: i64,
}

/// What a committed transaction did to a row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written<'a> {
    pub(crate) table: usize,
    pub(crate) row: u32,
    pub(crate) is_inserted: bool,
    /// The columns that it wrote.
    pub(crate) cells: &'a [Cell],
    /// The values of the table's keys.
    pub(crate) keys: &'a [i64],
}

impl Predicate {
    /// Whether a write would have changed what was read.
    pub(crate) fn meets(&self, written: &Written<'_>) -> bool {
        if self.table != written.table {
            return false;
        }
        let writes = |columns: u64| written.cells.iter().any(|cell| columns >> cell.column & 1 == 1);
        match &self.rows {
            Rows::One(row) => *row == written.row && writes(self.columns),
            Rows::Where(conditions) => {
                let asked = conditions.iter().fold(self.columns, |all, one| all | 1 << one.column);
                let before = |cell: &Cell| cell.before;
                let after = |cell: &Cell| cell.after;
                writes(asked)
                    && ((!written.is_inserted && may_match(conditions, written, before))
                        || may_match(conditions, written, after))
            }
        }
    }
}

/// Whether no condition is certainly false. A column that the write neither changed nor has as a key may have any value.
fn may_match(conditions: &[Condition], written: &Written<'_>, image: impl Fn(&Cell) -> i64) -> bool {
    conditions.iter().all(|condition| {
        let cell = written.cells.iter().find(|cell| cell.column == condition.column);
        let known = cell.map(&image).or_else(|| written.keys.get(condition.column).copied());
        known.is_none_or(|value| (condition.from..=condition.to).contains(&value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meets(rows: Rows, columns: u64, is_inserted: bool, cells: &[(usize, i64, i64)]) -> bool {
        let cells: Vec<Cell> = cells
            .iter()
            .map(|(column, before, after)| Cell { column: *column, before: *before, after: *after })
            .collect();
        let written = Written { table: 1, row: 5, is_inserted, cells: &cells, keys: &[10, 20] };
        let predicate = |table| Predicate { table, rows: rows.clone(), columns };
        assert!(!predicate(0).meets(&written));
        predicate(1).meets(&written)
    }

    fn between(column: usize, from: i64, to: i64) -> Rows {
        Rows::Where(vec![Condition { column, from, to }])
    }

    #[test]
    fn only_writes_that_would_have_changed_the_answer_meet_a_predicate() {
        let update = [(3, 100, 200)];
        assert!(meets(Rows::One(5), 1 << 3, false, &update));
        assert!(!meets(Rows::One(5), 1 << 2, false, &update) && !meets(Rows::One(4), 1 << 3, false, &update));
        // Conditions on keys.
        assert!(meets(between(0, 10, 10), 1 << 3, false, &update));
        assert!(!meets(between(0, 11, 99), 1 << 3, false, &update));
        assert!(!meets(between(0, 10, 10), 1 << 2, false, &update));
        // Conditions on the column that is written: before, after, neither.
        assert!(
            meets(between(3, 90, 110), 1, false, &update) && meets(between(3, 190, 210), 1, false, &update)
        );
        assert!(!meets(between(3, 110, 190), 1, false, &update));
        // Nothing is known of column 2.
        assert!(meets(between(2, 0, 0), 1 << 3, false, &update));
        // An inserted row was not there before.
        let insert = [(0, 0, 10), (1, 0, 20), (2, 0, 7)];
        assert!(meets(between(2, 5, 9), 1, true, &insert) && !meets(between(2, 0, 0), 1, true, &insert));
        // Both conditions must be met.
        let both = |to| {
            Rows::Where(vec![Condition { column: 0, from: 10, to: 10 }, Condition { column: 1, from: 0, to }])
        };
        assert!(meets(both(20), 1 << 3, false, &update) && !meets(both(19), 1 << 3, false, &update));
    }
}
