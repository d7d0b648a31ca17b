//! The cursors of a session. The rows of a cursor are computed when it is declared, as those of any query of its transaction
//! block are: what the client can be given of them is in the block's digest from then on, and moving about in them reads
//! nothing, so that FETCH and MOVE are no steps of the block.

use super::cursor_command::{CursorCommand, Movement, Options};
use super::encode::ColumnsTold;
use super::script::{Class, Statement, classify};
use super::session::{Failure, INVALID_CURSOR_NAME, Session};
use super::statement::{ParsedStatement, empty_statement, shift};
use crate::limits;
use std::collections::BTreeMap;
use types::{MemoryShare, OutputColumn, SqlError, SqlState, StatementResult, Value};

/// `42P03` a cursor that exists already.
const DUPLICATE_CURSOR: SqlState = SqlState(*b"42P03");
/// `55000` a movement that the cursor does not make.
const NOT_IN_PREREQUISITE_STATE: SqlState = SqlState(*b"55000");

/// A statement about cursors that was bound.
pub(super) enum CursorStatement {
    Declare { name: String, options: Options, query: Box<ParsedStatement> },
    Fetch { name: String, movement: Movement, gives: bool },
    Close(Option<String>),
}

/// The open cursors of a session, by name.
#[derive(Default)]
pub(super) struct Cursors {
    open: BTreeMap<String, Cursor>,
    /// Cursors declared.
    declared: u64,
}

struct Cursor {
    columns: Vec<OutputColumn>,
    told: ColumnsTold,
    rows: Vec<Vec<Value>>,
    /// What the rows take.
    _memory: MemoryShare,
    /// 0 in front of the first row, one more than there are rows behind the last one.
    position: usize,
    options: Options,
    /// How many had been declared before.
    number: u64,
    /// The transaction that has declared it goes on.
    is_open: bool,
}

impl Cursor {
    fn values(&self) -> usize {
        self.columns.len().saturating_mul(self.rows.len()).saturating_add(1)
    }

    /// Goes somewhere, and gives the positions of the rows that it has met, from 1, in their order.
    fn go(&mut self, movement: Movement) -> Result<Vec<usize>, SqlError> {
        let (here, behind) = (self.position, self.rows.len() + 1);
        let away = |by: i64| {
            let by_rows = usize::try_from(by.unsigned_abs()).unwrap_or(usize::MAX);
            if by < 0 { here.saturating_sub(by_rows) } else { here.saturating_add(by_rows).min(behind) }
        };
        let on_row = |position: usize| (1..behind).contains(&position);
        let one = |position: usize| if on_row(position) { vec![position] } else { Vec::new() };
        let (there, met, goes_back): (usize, Vec<usize>, bool) = match movement {
            Movement::By(0) | Movement::Relative(0) => (here, one(here), on_row(here)),
            Movement::By(by) if by > 0 => (away(by), (here + 1..=away(by).min(behind - 1)).collect(), false),
            Movement::By(by) => (away(by), (away(by).max(1)..here).rev().collect(), true),
            Movement::ToEnd => (behind, (here + 1..behind).collect(), false),
            Movement::ToStart => (0, (1..here).rev().collect(), true),
            Movement::Relative(by) => (away(by), one(away(by)), by < 0),
            Movement::To(row) => {
                let rows = usize::try_from(row.unsigned_abs()).unwrap_or(usize::MAX);
                let there = if row < 0 { behind.saturating_sub(rows) } else { rows.min(behind) };
                (there, one(there), row < 0 || (there <= here && here > 0))
            }
        };
        if goes_back && self.options.forward_only {
            let error = SqlError::new(NOT_IN_PREREQUISITE_STATE, "cursor can only scan forward");
            return Err(error.hint("Declare it with SCROLL option to enable backward scan."));
        }
        self.position = there;
        Ok(met)
    }
}

impl Cursors {
    /// How many were declared so far.
    pub(super) fn declared(&self) -> u64 {
        self.declared
    }

    /// The columns of one, and what clients are told of them besides.
    pub(super) fn described(&self, name: &str) -> Option<(&[OutputColumn], &ColumnsTold)> {
        self.open.get(name).map(|cursor| (cursor.columns.as_slice(), &cursor.told))
    }

    /// Forgets those declared behind a savepoint.
    pub(super) fn forget_since(&mut self, declared: u64) {
        self.open.retain(|_, cursor| cursor.number < declared);
    }

    /// The transaction block has ended.
    pub(super) fn end_block(&mut self, committed: bool) {
        self.open.retain(|_, cursor| !cursor.is_open || (committed && cursor.options.hold));
        self.open.values_mut().for_each(|cursor| cursor.is_open = false);
    }

    /// Forgets one; false where there is none.
    pub(super) fn close(&mut self, name: &str) -> bool {
        self.open.remove(name).is_some()
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.open.clear();
    }

    fn check_name(&self, name: &str) -> Result<(), SqlError> {
        match self.open.contains_key(name) {
            true => Err(SqlError::new(DUPLICATE_CURSOR, format!("cursor \"{name}\" already exists"))),
            false => Ok(()),
        }
    }

    fn declare(
        &mut self,
        name: &str,
        options: Options,
        (result, told): (StatementResult, ColumnsTold),
        memory: MemoryShare,
        is_open: bool,
    ) -> Result<(), SqlError> {
        let StatementResult { columns, rows, .. } = result;
        let number = self.declared;
        let cursor = Cursor { columns, told, rows, _memory: memory, position: 0, options, number, is_open };
        let values = self.open.values().map(Cursor::values).fold(cursor.values(), usize::saturating_add);
        let (count, most) = (limits::CURSORS_MAX, limits::CURSOR_VALUES_MAX);
        if self.open.len() >= count || values > most {
            let message = format!(
                "a session has at most {count} open cursors (CURSORS_MAX) with {most} values (CURSOR_VALUES_MAX)"
            );
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message).hint(
                "CLOSE what is not needed any more, or let COPY TO STDOUT give the rows as they are found.",
            ));
        }
        self.declared += 1;
        self.open.insert(name.to_string(), cursor);
        Ok(())
    }

    fn find(&mut self, name: &str) -> Result<&mut Cursor, SqlError> {
        let missing = || SqlError::new(INVALID_CURSOR_NAME, format!("cursor \"{name}\" does not exist"));
        self.open.get_mut(name).ok_or_else(missing)
    }
}

impl Session {
    /// Binds a statement about cursors.
    pub(super) async fn parse_cursor(
        &mut self,
        statement: &Statement<'_>,
        command: CursorCommand<'_>,
        given: Vec<u32>,
    ) -> Result<(ParsedStatement, CursorStatement), Failure> {
        let none = empty_statement(given.clone());
        Ok(match command {
            CursorCommand::Declare { name, options, query } => {
                let class = classify(&query, &*self.known_tables()?);
                if !matches!(class, Class::Read | Class::Catalogue) {
                    let message = "DECLARE CURSOR must not contain data-modifying statements in WITH";
                    return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).into());
                }
                let parsed = Box::pin(self.parse(&query, class, given)).await;
                let parsed = parsed
                    .map_err(|failure| shift(failure, statement.text, query.start - statement.start))?;
                let (given, parameters) = (parsed.given.clone(), parsed.parameters.clone());
                let declare = CursorStatement::Declare { name, options, query: Box::new(parsed) };
                (ParsedStatement { given, parameters, ..none }, declare)
            }
            CursorCommand::Fetch { name, movement, gives } => {
                // One that is not there is missed when it is run.
                let described = self.cursors.described(&name).filter(|_| gives);
                let (columns, told) =
                    described.map(|(columns, told)| (columns.to_vec(), told.clone())).unwrap_or_default();
                let returns_rows = !columns.is_empty();
                let fetch = CursorStatement::Fetch { name, movement, gives };
                (ParsedStatement { columns, told, returns_rows, ..none }, fetch)
            }
            CursorCommand::Close(name) => (none, CursorStatement::Close(name)),
        })
    }

    /// Runs a statement about cursors.
    pub(super) async fn cursor_statement(
        &mut self,
        statement: &CursorStatement,
        parameters: Vec<Value>,
    ) -> Result<StatementResult, Failure> {
        let tagged = |tag: String| StatementResult { tag, ..StatementResult::default() };
        Ok(match statement {
            CursorStatement::Declare { name, options, query } => {
                if self.block.is_none() && !options.hold {
                    let message = "DECLARE CURSOR can only be used in transaction blocks";
                    return Err(SqlError::new(SqlState::NO_ACTIVE_TRANSACTION, message).into());
                }
                self.cursors.check_name(name)?;
                let mut result = Box::pin(self.execute_statement(query, parameters)).await?;
                let notices = std::mem::take(&mut result.notices);
                let (memory, in_block) = (self.share_of(&result)?, self.block.is_some());
                self.cursors.declare(name, *options, (result, query.told.clone()), memory, in_block)?;
                StatementResult { notices, ..tagged("DECLARE CURSOR".to_string()) }
            }
            CursorStatement::Fetch { name, movement, gives } => {
                let cursor = self.cursors.find(name)?;
                let met = cursor.go(*movement)?;
                if !gives {
                    return Ok(tagged(format!("MOVE {}", met.len())));
                }
                let rows = met.iter().filter_map(|row| cursor.rows.get(row - 1).cloned());
                let (columns, rows) = (cursor.columns.clone(), rows.collect());
                StatementResult { columns, rows, ..tagged(format!("FETCH {}", met.len())) }
            }
            CursorStatement::Close(None) => {
                self.cursors.clear();
                self.portals.clear();
                tagged("CLOSE CURSOR ALL".to_string())
            }
            CursorStatement::Close(Some(name)) => {
                if !self.cursors.close(name) && self.portals.remove(name).is_none() {
                    self.cursors.find(name)?;
                }
                tagged("CLOSE CURSOR".to_string())
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cursor(rows: i32, forward_only: bool) -> Cursor {
        Cursor {
            columns: Vec::new(),
            told: ColumnsTold::default(),
            _memory: MemoryShare::default(),
            rows: (1..=rows).map(|row| vec![Value::Integer(row)]).collect(),
            position: 0,
            options: Options { forward_only, hold: false },
            number: 0,
            is_open: true,
        }
    }

    #[test]
    fn cursors_move_as_in_postgresql() {
        // Each with what PostgreSQL 15 gives on a cursor over three rows.
        let mut three = cursor(3, false);
        for (movement, expected) in [
            (Movement::By(0), vec![]),
            (Movement::By(2), vec![1, 2]),
            (Movement::By(0), vec![2]),
            (Movement::By(2), vec![3]),
            (Movement::By(1), vec![]),
            (Movement::By(-1), vec![3]),
            (Movement::ToStart, vec![2, 1]),
            (Movement::By(-1), vec![]),
            (Movement::ToEnd, vec![1, 2, 3]),
            (Movement::By(-2), vec![3, 2]),
            (Movement::To(-1), vec![3]),
            (Movement::To(1), vec![1]),
            (Movement::Relative(2), vec![3]),
            (Movement::Relative(-5), vec![]),
            (Movement::By(3), vec![1, 2, 3]),
            (Movement::By(1), vec![]),
            (Movement::To(0), vec![]),
            (Movement::To(7), vec![]),
            (Movement::By(i64::MIN), vec![3, 2, 1]),
            (Movement::By(i64::MAX), vec![1, 2, 3]),
            (Movement::To(i64::MIN), vec![]),
        ] {
            assert_eq!(three.go(movement), Ok(expected), "{movement:?}");
        }
    }

    #[test]
    fn there_are_not_too_many() {
        let (mut cursors, none) = (Cursors::default(), Options::default());
        let mut declare =
            |name: String| cursors.declare(&name, none, Default::default(), MemoryShare::default(), true);
        for number in 0..limits::CURSORS_MAX {
            assert_eq!(declare(format!("c{number}")), Ok(()));
        }
        let error = declare("more".to_string()).expect_err("too many");
        assert_eq!(error.state, SqlState::PROGRAM_LIMIT_EXCEEDED);
    }

    #[test]
    fn one_without_scroll_only_goes_forward() {
        let mut three = cursor(3, true);
        assert_eq!(three.go(Movement::To(1)), Ok(vec![1]));
        assert_eq!(three.go(Movement::By(1)), Ok(vec![2]));
        for movement in [
            Movement::By(-1),
            Movement::By(0),
            Movement::To(1),
            Movement::To(-1),
            Movement::ToStart,
            Movement::Relative(-1),
        ] {
            assert_eq!(
                three.go(movement).expect_err("back").state,
                NOT_IN_PREREQUISITE_STATE,
                "{movement:?}"
            );
        }
        assert_eq!(three.go(Movement::ToEnd), Ok(vec![3]), "it has not moved");
    }
}
