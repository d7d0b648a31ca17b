//! The compiler of one procedure: what it knows at a place of the body, and how it appends instructions.

use crate::compile::result_shape::ResultShape;
use crate::late_records::LateRecords;
use crate::position::line_ends;
use crate::program::{Address, CursorQuery, Instruction};
use crate::variables::{NamesUsed, Variables};
use plan::expression;
use plan::tables::Tables;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use types::{DataType, Language, OutputColumn, Procedure, SqlError, object_name};

/// The compiler of one procedure.
pub(crate) struct Compiler<'a> {
    pub(crate) tables: &'a Tables,
    pub(crate) variables: Variables,
    pub(crate) code: Vec<Instruction>,
    pub(crate) enclosing: Vec<Enclosing>,
    /// What handlers enclose.
    pub(crate) protected_code: Vec<Range<Address>>,
    /// The language of the body.
    pub(crate) language: Language,
    /// What is wrong with statements that say so when they are run.
    pub(crate) missing: Vec<SqlError>,
    /// What is wrong is in a declaration, and so with the whole body.
    pub(crate) at_once: bool,
    /// What the procedure or function gives back.
    pub(crate) result: ResultShape,
    pub(crate) ranges: Nesting,
    pub(crate) cursors: Nesting,
    pub(crate) cursor_loops: Nesting,
    /// Cursors with a query, by the slot of their variable.
    pub(crate) declared_cursors: BTreeMap<u16, Arc<DeclaredCursor>>,
    /// What is wrong with the names in queries of cursors, by the slot of their variable: it is said where they are opened.
    pub(crate) unbound_cursors: BTreeMap<u16, SqlError>,
    /// The columns of the query that a variable's cursor was opened for last, going down the body.
    pub(crate) opened_columns: BTreeMap<u16, Arc<[OutputColumn]>>,
    /// `#print_strict_params`
    pub(crate) print_strict_params: bool,
    /// Positions of the ends of the body's lines.
    pub(crate) line_ends: Vec<u32>,
    /// Where instructions come from.
    pub(crate) lines: Vec<(Address, u32, &'static str)>,
    /// The statements around the one that is compiled: line, and what it is.
    pub(crate) around: Vec<(u32, &'static str)>,
    pub(crate) looks_at_matched: bool,
    /// Statements around the one that is compiled which may leave it out.
    pub(crate) skippable: usize,
    /// A RETURN before it may have been taken.
    pub(crate) may_have_returned: bool,
    /// Slots of the OUT and INOUT parameters.
    pub(crate) outputs: Vec<u16>,
    /// Variables of composite types that the row of the statement at hand goes into, and the rows.
    pub(crate) packed: Vec<(u16, expression::Expression)>,
}

/// Things of which each level of nesting needs one.
#[derive(Default)]
pub(crate) struct Nesting {
    pub(crate) now: usize,
    pub most: usize,
}

impl Nesting {
    pub fn enter(&mut self) -> u16 {
        let index = self.now;
        self.now += 1;
        self.most = self.most.max(self.now);
        // The parser limits nesting to far less.
        index as u16
    }

    pub fn leave(&mut self) {
        self.now -= 1;
    }
}

/// A block or loop around the statement that is compiled.
pub(crate) struct Enclosing {
    pub label: Option<String>,
    /// Where CONTINUE goes; `None` for a block.
    pub next_turn: Option<Address>,
    /// FOR sets FOUND when it is left.
    pub sets_found: bool,
    /// Jumps to its end, which is not known yet.
    pub exits: Vec<Address>,
    /// Whether it has to do with errors.
    pub role: ErrorRole,
    /// It is a loop over a cursor, inside of so many others.
    pub cursor_level: Option<u16>,
}

/// What a block or loop is to errors inside of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ErrorRole {
    /// They go through it.
    #[default]
    None,
    /// Handlers stand behind it.
    Protects,
    /// It is a handler.
    Handles,
}

/// A cursor with a query.
#[derive(Debug)]
pub(crate) struct DeclaredCursor {
    /// SCROLL, NO SCROLL, or neither.
    pub scroll: Option<bool>,
    /// Name, slot and type of each parameter.
    pub parameters: Vec<(String, u16, DataType)>,
    pub query: Arc<CursorQuery>,
    /// What must be looked at before the query runs.
    pub used: NamesUsed,
}

impl<'a> Compiler<'a> {
    pub(crate) fn new(
        tables: &'a Tables,
        procedure: &Procedure,
        result: ResultShape,
        late: LateRecords,
    ) -> Result<Compiler<'a>, SqlError> {
        let body = Arc::from(procedure.body.as_str());
        let name = object_name(&procedure.name);
        let variables = Variables::new(name, body, tables.routines(), procedure.language, late)?;
        Ok(Compiler {
            tables,
            variables,
            code: Vec::new(),
            enclosing: Vec::new(),
            protected_code: Vec::new(),
            language: procedure.language,
            missing: Vec::new(),
            at_once: false,
            result,
            ranges: Nesting::default(),
            cursors: Nesting::default(),
            cursor_loops: Nesting::default(),
            declared_cursors: BTreeMap::new(),
            unbound_cursors: BTreeMap::new(),
            opened_columns: BTreeMap::new(),
            print_strict_params: false,
            line_ends: line_ends(&procedure.body),
            lines: Vec::new(),
            around: Vec::new(),
            looks_at_matched: false,
            skippable: 0,
            may_have_returned: false,
            outputs: Vec::new(),
            packed: Vec::new(),
        })
    }

    /// Appends an instruction and gives its address.
    pub(crate) fn emit(&mut self, instruction: Instruction) -> Address {
        let address = self.here();
        self.code.push(instruction);
        address
    }

    /// Address of the next instruction.
    pub(crate) fn here(&self) -> Address {
        // A body is far shorter than 4 GiB: it fits in a transaction.
        self.code.len() as Address
    }

    /// The jump at `address` goes to the next instruction.
    pub(crate) fn land(&mut self, address: Address) {
        let here = self.here();
        match &mut self.code[address as usize] {
            Instruction::Jump { to }
            | Instruction::JumpIf { to, .. }
            | Instruction::JumpUnless { to, .. }
            | Instruction::RangeNext { end: to, .. }
            | Instruction::RowsNext { end: to, .. }
            | Instruction::CursorNext { end: to, .. }
            | Instruction::Protect { handlers: to }
            | Instruction::JumpUnlessCaught { to, .. } => *to = here,
            _ => debug_assert!(false, "only jumps land"),
        }
    }

    pub(crate) fn land_all(&mut self, addresses: Vec<Address>) {
        for address in addresses {
            self.land(address);
        }
    }

    /// True where the statement may run more than once in a call.
    pub(crate) fn is_repeated(&self) -> bool {
        self.enclosing.iter().any(|enclosing| enclosing.next_turn.is_some())
    }
}
