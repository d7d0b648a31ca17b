//! What a procedure is compiled into: one list of instructions over one frame of values.
//!
//! Blocks, branches and loops are jumps, so that running needs no recursion but that of nested calls. Names, types
//! and conversions have been settled; an instruction only evaluates and stores.

use crate::fuse::obstacle::Obstacle;
use crate::late::{LateRow, LateRows, LateStatement, LateValue, NamedRecord};
use crate::target::{RowTarget, Store};
use execute::Described;
use plan::expression::Expression;
use plan::needs::Needs;
use plan::polymorphic::Callee;
use plan::statement::{BoundCall, BoundSelect, BoundStatement, KeyPart};
use plan::table::TablePlan;
use std::sync::Arc;
use syntax::parse::deferrals::SetConstraints;
use syntax::parse::notify::NotifyStatement;
use syntax::plpgsql::ast::{Condition, FetchKind, RaiseLevel, StackedItem};
use types::{ColumnSet, CompositeTypes, DataType, OutputColumn, SqlError, SqlState, TypeId};

/// A procedure, ready to run.
#[derive(Debug)]
pub struct CompiledProcedure {
    /// The instructions; the last one is `Instruction::Return`.
    pub code: Box<[Instruction]>,
    /// Values in the frame.
    pub slots: usize,
    /// Slots of the IN and INOUT parameters, in order.
    pub inputs: Box<[u16]>,
    /// Slots of the OUT and INOUT parameters, in order.
    pub outputs: Box<[u16]>,
    /// Slot of FOUND.
    pub found: u16,
    /// What values of composite types are.
    pub types: Arc<CompositeTypes>,
    /// Integer loops inside each other, at most.
    pub ranges: usize,
    /// Row loops inside each other, at most.
    pub cursors: usize,
    /// Loops over cursors inside each other, at most.
    pub cursor_loops: usize,
    /// Errors of STRICT show the variables of the query.
    pub print_strict_params: bool,
    /// Whether anything reads FOUND or ROW_COUNT.
    pub looks_at_matched: bool,
    /// What is wrong with statements that say so when they are run.
    pub missing: Box<[SqlError]>,
    /// Names of the variables by slot; empty where a slot has none.
    pub names: Box<[Box<str>]>,
    /// Its name and lines.
    pub described: Arc<Described>,
    /// What it gives to its caller.
    pub result: ResultForm,
    /// What its statements and expressions need, and which functions and procedures they call.
    pub needs: Needs,
    /// Its records, by number.
    pub records: Box<[NamedRecord]>,
    /// For the address of every read that is left: why it could not be fused.
    pub obstacles: Box<[(Address, Obstacle)]>,
}

impl CompiledProcedure {
    /// The procedures and functions that it calls, or that triggers call which it fires.
    pub fn calls(&self) -> &[Callee] {
        &self.needs.involved
    }
}

/// What a procedure or function gives to its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultForm {
    /// Its OUT and INOUT parameters as they stand at its end.
    Outputs,
    /// The value of RETURN.
    Value,
    /// `void`
    Void,
    /// The rows of RETURN NEXT and RETURN QUERY.
    Rows,
}

/// Position in the code.
pub type Address = u32;

/// A step. Everything that is large is boxed, so that the list is compact.
#[derive(Debug)]
pub enum Instruction {
    /// `slot := value`, already of the variable's type.
    Assign { slot: u16, value: Expression },
    /// Ends with 22004 if the variable holds NULL.
    RefuseNull { slot: u16, variable: Box<str> },
    /// The variable holds NULL.
    Clear { slot: u16 },
    /// Ends with 55000 if no row has been assigned to the record with this flag.
    RequireRecord { flag: u16, record: Box<str> },
    /// Goes on elsewhere.
    Jump { to: Address },
    /// Goes on elsewhere if the condition is true.
    JumpIf { condition: Expression, to: Address },
    /// Goes on elsewhere if the condition is false or NULL.
    JumpUnless { condition: Expression, to: Address },
    /// Evaluates the bounds of an integer loop.
    RangeStart(Box<RangeStart>),
    /// Takes the next number, or leaves the loop and sets FOUND.
    RangeNext { range: u16, slot: u16, end: Address },
    /// Evaluates the query of a row loop.
    RowsStart(Box<RowsStart>),
    /// Takes the next row, or leaves the loop and sets FOUND.
    RowsNext { cursor: u16, stores: Box<[Store]>, record: Option<u16>, end: Address },
    /// A loop that had a turn was left early: FOUND is true.
    SetFound,
    /// FOUND is about to be read.
    LookAtFound,
    /// SELECT … INTO
    SelectInto(Box<SelectInto>),
    /// A subquery of an expression that comes next.
    Subquery(Box<SubqueryPlan>),
    /// What an oracle says, for an expression that comes next.
    Oracle { slot: u16, name: Expression },
    /// PERFORM
    Perform(Box<BoundSelect>),
    /// INSERT, UPDATE or DELETE without INTO.
    Change(Box<BoundStatement>),
    /// INSERT, UPDATE or DELETE … RETURNING … INTO
    ChangeInto(Box<ChangeInto>),
    /// CALL
    Call(Box<Call>),
    /// GET DIAGNOSTICS … = PG_CONTEXT
    Context { stores: Box<[Store]> },
    /// GET DIAGNOSTICS … = ROW_COUNT
    RowCount { stores: Box<[Store]> },
    /// RAISE
    Raise(Box<RaisePlan>),
    /// ASSERT
    Assert(Box<(Expression, Option<Expression>)>),
    /// CASE without ELSE, and nothing fits.
    CaseNotFound,
    /// Statements on one row as one command.
    Fused(Box<FusedStatement>),
    /// The end.
    Return,
    /// The end of a function with this value.
    ReturnValue { values: Box<[Expression]> },
    /// A function that gives a value has come to its end without one.
    NoReturn,
    /// One more row of the result.
    ReturnNext { values: Box<[Expression]> },
    /// RETURN QUERY
    ReturnQuery(Box<ReturnQuery>),
    /// The end of a function that gives the first of the rows so far, or NULL.
    ReturnFirst,
    /// An error that PostgreSQL finds when it comes here.
    Fail(Box<SqlError>),
    /// EXECUTE
    Execute(Box<Execute>),
    /// A value that is bound when it runs, for an expression that comes next.
    LateValue(Box<LateValue>),
    /// A statement of SQL that is bound when it runs.
    LateStatement(Box<LateStatement>),
    /// A whole record whose columns running tells, for the RETURN that comes next.
    LateRow(Box<LateRow>),
    /// A block begins whose errors go on at this address; what it has done is undone then.
    Protect { handlers: Address },
    /// So many of such blocks, and so many of their handlers, are left.
    Leave { blocks: u16, handlers: u16 },
    /// The error at hand is none of these conditions: goes on elsewhere.
    JumpUnlessCaught { conditions: Box<[Condition]>, to: Address },
    /// Code and message of the error at hand go into these variables.
    ShowError { state: u16, message: u16 },
    /// No handler fits: the error goes on.
    Rethrow,
    /// GET STACKED DIAGNOSTICS
    StackedDiagnostics { items: Box<[(StackedItem, Store)]> },
    /// OPEN, and the begin of a loop over a cursor.
    OpenCursor(Box<OpenCursor>),
    /// FETCH and MOVE
    FetchCursor(Box<FetchCursor>),
    /// SET CONSTRAINTS
    SetConstraints(Box<SetConstraints>),
    /// NOTIFY.
    Notify(Box<NotifyStatement>),
    /// CLOSE
    CloseCursor(Box<CursorVariable>),
    /// Takes the next row of a loop over a cursor, or leaves the loop and sets FOUND.
    CursorNext { level: u16, stores: Box<[Store]>, record: Option<u16>, end: Address },
    /// A loop over a cursor is left early.
    LeaveCursor { level: u16 },
    /// The key of the row that a cursor stands on goes into variables: WHERE CURRENT OF.
    CurrentRow(Box<CurrentRow>),
}

/// A variable that names a cursor.
#[derive(Clone, Debug)]
pub struct CursorVariable {
    pub slot: u16,
    pub name: Box<str>,
    /// CONSTANT: it cannot be given a name.
    pub constant: bool,
}

/// OPEN
#[derive(Debug)]
pub struct OpenCursor {
    pub variable: CursorVariable,
    /// What the parameters of the cursor's query get.
    pub arguments: Box<[(Store, Expression)]>,
    pub query: Arc<CursorQuery>,
    pub scroll: bool,
    /// The loop over it, by how many of such loops are around it.
    pub level: Option<u16>,
}

/// Whose rows a cursor has.
#[derive(Debug)]
pub struct CursorQuery {
    pub source: RowsSource,
    /// The columns of its rows; none where only EXECUTE tells.
    pub columns: Arc<[OutputColumn]>,
    /// The table whose primary key stands behind the columns.
    pub table: Option<Box<str>>,
}

/// FETCH and MOVE
#[derive(Debug)]
pub struct FetchCursor {
    pub variable: CursorVariable,
    pub kind: FetchKind,
    pub count: Count,
    /// `None`: MOVE.
    pub target: Option<FetchTarget>,
}

/// How far FETCH and MOVE go.
#[derive(Debug)]
pub enum Count {
    Constant(i64),
    All,
    Expression(Expression),
}

/// Where a row of a cursor goes.
#[derive(Debug)]
pub struct FetchTarget {
    pub target: RowTarget,
    /// Types that its columns are to have.
    pub wanted: Box<[DataType]>,
    /// Rows of other columns than these do not fit.
    pub record: Option<RecordColumns>,
}

/// The columns that a record has taken from a query.
#[derive(Debug)]
pub struct RecordColumns {
    /// Its name.
    pub record: Box<str>,
    /// Their names.
    pub columns: Box<[Box<str>]>,
}

/// WHERE CURRENT OF
#[derive(Debug)]
pub struct CurrentRow {
    pub cursor: CursorName,
    pub table: Box<str>,
    /// Where the columns of its key go.
    pub slots: Box<[u16]>,
}

/// How a cursor is named.
#[derive(Debug)]
pub enum CursorName {
    /// By a variable.
    Variable(CursorVariable),
    /// As it is.
    Literal(Box<str>),
}

/// The bounds of an integer loop.
#[derive(Debug)]
pub struct RangeStart {
    pub range: u16,
    pub first: Expression,
    pub last: Expression,
    pub step: Option<Expression>,
    pub reverse: bool,
}

/// The query of a row loop.
#[derive(Debug)]
pub struct RowsStart {
    pub cursor: u16,
    pub source: RowsSource,
    pub flag: Option<u16>,
}

/// Where rows come from.
#[derive(Debug)]
pub enum RowsSource {
    /// A query.
    Query(BoundSelect),
    /// A data-changing statement with RETURNING.
    Change(BoundStatement),
    /// EXECUTE
    Dynamic(Dynamic),
    /// A statement that is bound when it runs.
    Late(Box<LateRows>),
}

/// A statement whose text is computed.
#[derive(Debug)]
pub struct Dynamic {
    /// The text, of type text.
    pub text: Expression,
    /// `$1`, `$2`, …
    pub arguments: Box<[Expression]>,
    /// Types that the columns of its rows are to have; `None`: as they are.
    pub wanted: Option<Box<[DataType]>>,
}

/// EXECUTE
#[derive(Debug)]
pub struct Execute {
    pub dynamic: Dynamic,
    pub target: Option<RowTarget>,
}

/// RETURN QUERY
#[derive(Debug)]
pub struct ReturnQuery {
    pub source: RowsSource,
    /// Types of the columns of the result; `None`: whatever they are.
    pub types: Option<Box<[DataType]>>,
    /// The composite type that they become a value of.
    pub row: Option<DataType>,
    /// The domains that values of the result are held against, by column.
    pub domains: Box<[(usize, TypeId)]>,
}

/// SELECT … INTO
#[derive(Debug)]
pub struct SelectInto {
    pub query: BoundSelect,
    pub target: RowTarget,
}

/// A subquery of an expression.
#[derive(Debug)]
pub struct SubqueryPlan {
    pub query: BoundSelect,
    /// Where its value goes.
    pub slot: u16,
    /// EXISTS: the value if there is a row. Otherwise the value is that of the only row.
    pub exists: Option<bool>,
}

/// A change with RETURNING … INTO
#[derive(Debug)]
pub struct ChangeInto {
    pub statement: BoundStatement,
    pub target: RowTarget,
}

/// CALL. The procedure is looked up when it runs, so that its parameters' modes are not known here.
#[derive(Debug)]
pub struct Call {
    pub statement: BoundStatement,
    /// For every argument that is a variable: what it is.
    pub variables: Box<[Option<Variable>]>,
}

/// A variable as an argument of CALL.
#[derive(Debug)]
pub struct Variable {
    pub slot: u16,
    pub data_type: DataType,
    /// The domain that its values are held against.
    pub domain: Option<TypeId>,
    pub not_null: Option<Box<str>>,
    /// Its name if it is a CONSTANT.
    pub constant: Option<Box<str>>,
}

impl Call {
    pub fn new(call: BoundCall, variables: Vec<Option<Variable>>) -> Call {
        Call { statement: BoundStatement::Call(call), variables: variables.into() }
    }
}

/// RAISE
#[derive(Debug)]
pub struct RaisePlan {
    /// EXCEPTION ends the call; below it everything is evaluated, and perhaps said.
    pub level: RaiseLevel,
    /// The code without ERRCODE.
    pub state: SqlState,
    /// The message without MESSAGE.
    pub message: RaiseMessage,
    /// USING, in order.
    pub options: Box<[(syntax::plpgsql::ast::RaiseOption, Expression)]>,
}

/// What RAISE says.
#[derive(Debug)]
pub enum RaiseMessage {
    /// Text between the arguments, one more than there are arguments.
    Format { pieces: Box<[Box<str>]>, arguments: Box<[Expression]> },
    /// The condition's name.
    Condition(Box<str>),
    /// The code, or the name that ERRCODE gives.
    Code,
}

/// Statements on one row that are one command.
#[derive(Debug)]
pub struct FusedStatement {
    pub(crate) table: Arc<TablePlan>,
    pub(crate) key: Box<[KeyPart]>,
    pub(crate) program: Arc<RowProgram>,
    /// Columns that the program looks at.
    pub(crate) uses: ColumnSet,
    /// Columns that it may write.
    pub(crate) writes: ColumnSet,
    /// Columns that it has written where it matches.
    pub(crate) certainly_written: ColumnSet,
    pub(crate) can_fail: bool,
    pub(crate) form: Form,
    /// Assigned in the program without looking at the row and used after it, in order.
    pub(crate) assigned_outside: Box<[(u16, Expression)]>,
    pub(crate) end: Address,
}

/// What kind of command it is.
#[derive(Debug)]
pub(crate) enum Form {
    /// With the values that depend neither on the row nor on what the program assigns, where it has only one UPDATE.
    Update(Box<[(u16, Expression)]>),
    Delete,
}

/// The instructions, with addresses from 0; an address beyond them is the end.
#[derive(Debug)]
pub struct RowProgram {
    pub code: Box<[Instruction]>,
    pub(crate) slots: usize,
    pub(crate) found: u16,
    pub(crate) types: Arc<CompositeTypes>,
    /// Variables that it reads before it writes them.
    pub(crate) captured: Box<[u16]>,
}

impl FusedStatement {
    /// What names the row.
    pub fn key(&self) -> &[KeyPart] {
        &self.key
    }

    /// The row's table.
    pub fn table(&self) -> &TablePlan {
        &self.table
    }

    /// What runs on the row.
    pub fn program(&self) -> &RowProgram {
        &self.program
    }

    /// Columns that it looks at, and columns that it may write.
    pub fn columns(&self) -> (ColumnSet, ColumnSet) {
        (self.uses, self.writes)
    }

    /// True where an error of one of its changes may show the row, or come from the row's length.
    pub fn may_show_row(&self) -> bool {
        self.program.code.iter().any(|instruction| match instruction {
            Instruction::Change(statement) => match statement.as_ref() {
                BoundStatement::Update(update) => update.plan.may_show_row(),
                BoundStatement::Delete(delete) => delete.plan.may_show_row(),
                _ => false,
            },
            _ => false,
        })
    }

    /// Columns that it has written where it matches, whatever it decided.
    pub fn certainly_written(&self) -> ColumnSet {
        self.certainly_written
    }

    /// Assignments to be made once more after it, in order. They succeed: they have been made in it.
    pub fn assigned_outside(&self) -> &[(u16, Expression)] {
        &self.assigned_outside
    }

    /// Address of the next instruction.
    pub fn end(&self) -> usize {
        self.end as usize
    }

    /// Visits the variables that it reads.
    pub(crate) fn visit_slots(&self, visit: &mut dyn FnMut(u16)) {
        self.key.iter().for_each(|part| part.value.visit_slots(visit));
        self.program.captured.iter().for_each(|slot| visit(*slot));
        self.assigned_outside.iter().for_each(|(_, value)| value.visit_slots(visit));
    }
}
