//! Statements that cannot be compiled and may yet never run: what is wrong with them is said when they are run.
//!
//! PL/pgSQL looks for names when it comes to a statement. So a routine may be created before the tables and functions that it uses,
//! and a trigger function may serve several tables, and have statements that are meant for others. A routine is compiled anew with
//! every change of the catalog: once what is missing is there, its statement is one like any other.

use crate::compile::compiler::Compiler;
use crate::program::{Address, Instruction};
use crate::shape::RecordState;
use plan::trigger::is_wrong_target;
use types::{ExecutionVersion, Language, SqlError, SqlState};

/// How far a program is made.
pub(crate) struct ProgramPoint {
    here: Address,
    enclosing: usize,
    blocks: usize,
    protected: usize,
    ranges: usize,
    cursors: usize,
    cursor_loops: usize,
    loops: usize,
    around: usize,
    records: Vec<RecordState>,
}

impl Compiler<'_> {
    /// How far the program is made.
    pub(crate) fn place(&self) -> ProgramPoint {
        ProgramPoint {
            here: self.here(),
            enclosing: self.enclosing.len(),
            blocks: self.variables.blocks(),
            protected: self.protected_code.len(),
            ranges: self.ranges.now,
            cursors: self.cursors.now,
            cursor_loops: self.cursor_loops.now,
            loops: self.variables.loops.len(),
            around: self.around.len(),
            records: self.variables.record_states(),
        }
    }

    /// What is wrong with a statement is said when it is run, where PostgreSQL says it then: a name that stands for nothing, or for
    /// several things. Before version 9 only in a trigger function, for a statement that may be left out.
    ///
    /// # Errors
    /// The error itself where PostgreSQL says it at once.
    pub(crate) fn fail_later(&mut self, start: ProgramPoint, error: SqlError) -> Result<(), SqlError> {
        // That a relation of REFERENCING cannot be changed, PostgreSQL says when it is tried.
        let is_late = match self.looks_late() {
            // What follows from a name that stands for nothing may be refused for that alone.
            true => {
                let follows = error.state == SqlState::FEATURE_NOT_SUPPORTED && !self.missing.is_empty();
                is_of_names(&error) || follows
            }
            false => self.result.is_triggered_row() && self.is_left_out(&error),
        };
        let is_wrong_target = self.result.is_triggered_row() && is_wrong_target(&error);
        if self.at_once || !(is_late || is_wrong_target) {
            return Err(error);
        }
        if self.looks_late() {
            self.missing.push(error.clone());
        }
        let ProgramPoint { here, enclosing, blocks, protected, .. } = start;
        self.code.truncate(here as usize);
        self.packed.clear();
        self.lines.retain(|(address, ..)| *address < here);
        self.around.truncate(start.around);
        if let Some((line, what)) = self.around.last().copied() {
            self.mark_place(line, what);
        }
        self.enclosing.truncate(enclosing);
        for around in &mut self.enclosing {
            around.exits.retain(|exit| *exit < here);
        }
        self.variables.back_to_blocks(blocks);
        self.variables.loops.truncate(start.loops);
        self.variables.restore(&start.records);
        self.protected_code.truncate(protected);
        (self.ranges.now, self.cursors.now) = (start.ranges, start.cursors);
        self.cursor_loops.now = start.cursor_loops;
        self.emit(Instruction::Fail(Box::new(SqlError { position: None, ..error })));
        Ok(())
    }

    /// Whether names in the body are looked for when its statements run.
    pub(super) fn looks_late(&self) -> bool {
        self.language == Language::PlPgSql && self.tables.version() >= ExecutionVersion::V9
    }

    /// Before version 9: the statement names what is not there, and may be left out.
    fn is_left_out(&self, error: &SqlError) -> bool {
        let is_name = matches!(
            error.state,
            SqlState::UNDEFINED_TABLE | SqlState::UNDEFINED_COLUMN | SqlState::UNDEFINED_FUNCTION
        );
        is_name && (self.skippable > 0 || self.may_have_returned)
    }

    /// What PostgreSQL finds wrong when it comes to a statement: SQLSTATE and SQLERRM outside of handlers.
    pub(super) fn fail_when_run(&mut self, start: usize, error: SqlError) -> Result<(), SqlError> {
        let names = ["sqlstate", "sqlerrm"];
        let is_late = error.state == SqlState::UNDEFINED_COLUMN
            && names.iter().any(|name| error.message == format!("column \"{name}\" does not exist"));
        if !is_late {
            return Err(error);
        }
        self.code.truncate(start);
        self.emit(Instruction::Fail(Box::new(error)));
        Ok(())
    }
}

/// Whether an error is about what a name stands for.
pub(super) fn is_of_names(error: &SqlError) -> bool {
    matches!(
        error.state,
        SqlState::UNDEFINED_TABLE
            | SqlState::UNDEFINED_COLUMN
            | SqlState::UNDEFINED_FUNCTION
            | SqlState::UNDEFINED_OBJECT
            | SqlState::UNDEFINED_PARAMETER
            | SqlState::AMBIGUOUS_COLUMN
            | SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE
    )
}
