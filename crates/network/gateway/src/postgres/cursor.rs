//! The cursors of a session. The rows of a cursor are computed when it is declared, as those of any query of its transaction
//! block are: what the client can be given of them is in the block's digest from then on, and moving about in them reads
//! nothing, so that FETCH and MOVE are no steps of the block.
//!
//! A cursor that a function has left open is the block's: other functions may move it on. FETCH, MOVE and CLOSE of such a cursor are
//! steps, which every node runs again.
//!
//! ```text
//!  FETCH FROM c ─┬▶ the session has declared c: its rows are here
//!                ├▶ a function of the open block has left c open: a step of the block
//!                └▶ 34000
//! ```

use super::cursor_command::{CursorCommand, Options};
use super::encode::ColumnsTold;
use super::script::{Class, Statement, classify};
use super::session::{Failure, INVALID_CURSOR_NAME, Session};
use super::statement::{Body, ParsedStatement, empty_statement, shift};
use crate::limits;
use std::collections::BTreeMap;
use std::sync::Arc;
use syntax::parse::cursor::CursorUse;
use types::{
    CursorPosition, MemoryShare, Moved, Movement, OutputColumn, SessionStep, SqlError, SqlState,
    StatementResult, Value,
};

/// `42P03` a cursor that exists already.
const DUPLICATE_CURSOR: SqlState = SqlState(*b"42P03");

/// A statement about cursors that was bound.
pub(super) enum CursorStatement {
    Declare { name: String, options: Options, query: Box<ParsedStatement> },
    Use(CursorUse),
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
    position: CursorPosition,
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

    /// Goes somewhere; after an error it has not moved.
    fn go(&mut self, movement: Movement) -> Result<Moved, SqlError> {
        let mut position = self.position;
        let moved = position.go(movement)?;
        self.position = position;
        Ok(moved)
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

    /// Their names.
    fn names(&self) -> impl Iterator<Item = &str> {
        self.open.keys().map(String::as_str)
    }

    fn has(&self, name: &str) -> bool {
        self.open.contains_key(name)
    }

    /// Forgets one; false where there is none.
    pub(super) fn close(&mut self, name: &str) -> bool {
        self.open.remove(name).is_some()
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.open.clear();
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
        let position = CursorPosition::in_front_of(rows.len(), !options.forward_only);
        let cursor = Cursor { columns, told, rows, _memory: memory, position, options, number, is_open };
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
            CursorCommand::Use(cursor) => {
                // One that is not there is missed when it is run.
                let (columns, told) = self.described_use(&cursor).unwrap_or_default();
                let returns_rows = !columns.is_empty();
                (ParsedStatement { columns, told, returns_rows, ..none }, CursorStatement::Use(cursor))
            }
        })
    }

    /// The columns of what a statement gives that uses a cursor, where the cursor is there.
    fn described_use(&self, cursor: &CursorUse) -> Option<(Vec<OutputColumn>, ColumnsTold)> {
        match cursor {
            CursorUse::Fetch { name, gives: true, .. } => self.described_cursor(name),
            CursorUse::Fetch { gives: false, .. } | CursorUse::Close(_) => None,
        }
    }

    /// The columns of a cursor that the session or a function has opened, and what clients are told of them besides.
    pub(super) fn described_cursor(&self, name: &str) -> Option<(Vec<OutputColumn>, ColumnsTold)> {
        if let Some((columns, told)) = self.cursors.described(name) {
            return Some((columns.to_vec(), told.clone()));
        }
        Some((self.left_open(name)?.to_vec(), ColumnsTold::default()))
    }

    /// The columns of a cursor that a function of the open block has left open.
    fn left_open(&self, name: &str) -> Option<Arc<[OutputColumn]>> {
        self.open_statements()?.lock().as_ref()?.cursor_columns(name)
    }

    fn has_left_open(&self) -> bool {
        self.open_statements()
            .is_some_and(|block| block.lock().as_ref().is_some_and(|block| block.has_cursors()))
    }

    /// A statement as it is when it is bound: FETCH gives the columns of the cursor that is open then. As in PostgreSQL, where portals and not
    /// prepared statements say what a FETCH gives.
    pub(super) fn bound_now(&self, statement: Arc<ParsedStatement>) -> Arc<ParsedStatement> {
        let Body::Cursor(CursorStatement::Use(cursor)) = &statement.body else { return statement };
        match self.described_use(cursor).filter(|(columns, _)| *columns != statement.columns) {
            None => statement,
            Some((columns, told)) => Arc::new(ParsedStatement {
                sql: statement.sql.clone(),
                body: Body::Cursor(CursorStatement::Use(cursor.clone())),
                columns,
                told,
                returns_rows: true,
                ..empty_statement(statement.given.clone())
            }),
        }
    }

    fn check_cursor_name(&self, name: &str) -> Result<(), SqlError> {
        match self.cursors.has(name) || self.left_open(name).is_some() {
            true => Err(SqlError::new(DUPLICATE_CURSOR, format!("cursor \"{name}\" already exists"))),
            false => Ok(()),
        }
    }

    /// Refuses a statement of the open block of which a function has opened a cursor that is called as one of the session: the
    /// function did not know that.
    ///
    /// # Errors
    /// `42P03`
    pub(super) fn check_left_open(&self) -> Result<(), SqlError> {
        match self.cursors.names().find(|name| self.left_open(name).is_some()) {
            Some(name) => Err(SqlError::new(DUPLICATE_CURSOR, format!("cursor \"{name}\" already in use"))),
            None => Ok(()),
        }
    }

    /// Runs a statement about cursors.
    pub(super) async fn cursor_statement(
        &mut self,
        statement: &CursorStatement,
        (sql, parameters): (&str, Vec<Value>),
    ) -> Result<StatementResult, Failure> {
        let tagged = |tag: String| StatementResult { tag, ..StatementResult::default() };
        Ok(match statement {
            CursorStatement::Declare { name, options, query } => {
                if self.block.is_none() && !options.hold {
                    let message = "DECLARE CURSOR can only be used in transaction blocks";
                    return Err(SqlError::new(SqlState::NO_ACTIVE_TRANSACTION, message).into());
                }
                self.check_cursor_name(name)?;
                let mut result = Box::pin(self.execute_statement(query, parameters)).await?;
                let notices = std::mem::take(&mut result.notices);
                let (memory, in_block) = (self.share_of(&result)?, self.block.is_some());
                self.cursors.declare(name, *options, (result, query.told.clone()), memory, in_block)?;
                StatementResult { notices, ..tagged("DECLARE CURSOR".to_string()) }
            }
            CursorStatement::Use(cursor) => self.use_cursor(cursor, sql).await?,
        })
    }

    /// Runs FETCH, MOVE or CLOSE.
    async fn use_cursor(&mut self, cursor: &CursorUse, sql: &str) -> Result<StatementResult, SqlError> {
        let step = || SessionStep::Run { sql: sql.to_string(), parameters: Vec::new() };
        let tagged = |rows: usize| StatementResult { tag: cursor.tag(rows as u64), ..Default::default() };
        match cursor {
            CursorUse::Fetch { name, .. } | CursorUse::Close(Some(name))
                if !self.cursors.has(name) && self.left_open(name).is_some() =>
            {
                self.run_in_block(step()).await
            }
            CursorUse::Fetch { name, movement, gives } => {
                let cursor = self.cursors.find(name)?;
                let moved = cursor.go(*movement)?;
                if !gives {
                    return Ok(tagged(moved.rows));
                }
                let rows = moved.positions().filter_map(|row| cursor.rows.get(row - 1).cloned());
                let (columns, rows) = (cursor.columns.clone(), rows.collect());
                Ok(StatementResult { columns, rows, ..tagged(moved.rows) })
            }
            CursorUse::Close(None) => {
                if self.has_left_open() {
                    self.run_in_block(step()).await?;
                }
                self.cursors.clear();
                self.portals.clear();
                Ok(tagged(0))
            }
            CursorUse::Close(Some(name)) => {
                if !self.cursors.close(name) && self.portals.remove(name).is_none() {
                    self.cursors.find(name)?;
                }
                Ok(tagged(0))
            }
        }
    }

    /// Closes the cursor or portal of this name, if there is one: what the message Close asks for.
    pub(super) async fn close_portal(&mut self, name: &str) -> Result<(), SqlError> {
        self.portals.remove(name);
        // A statement cannot name the portal without a name, nor run in a block that has failed.
        let cannot_be_said = name.is_empty() || self.block.as_ref().is_some_and(|block| block.failed);
        if !self.cursors.close(name) && !cannot_be_said && self.left_open(name).is_some() {
            let sql = format!("CLOSE \"{}\"", name.replace('"', "\"\""));
            self.run_in_block(SessionStep::Run { sql, parameters: Vec::new() }).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_cursor_that_must_not_go_back_stays_where_it_is() {
        let rows: Vec<Vec<Value>> = (1..=3).map(|row| vec![Value::Integer(row)]).collect();
        let mut cursor = Cursor {
            columns: Vec::new(),
            told: ColumnsTold::default(),
            _memory: MemoryShare::default(),
            position: CursorPosition::in_front_of(rows.len(), false),
            rows,
            options: Options { forward_only: true, hold: false },
            number: 0,
            is_open: true,
        };
        let mut met = |movement| {
            let moved = cursor.go(movement).map_err(|error| error.state.to_string());
            moved.map(|moved| moved.positions().collect::<Vec<_>>())
        };
        assert_eq!(met(Movement::By(2)), Ok(vec![1, 2]));
        assert_eq!(met(Movement::To(-1)), Err("55000".to_string()));
        assert_eq!(met(Movement::ToEnd), Ok(vec![3]), "it has not moved");
    }
}
