//! The syntax tree of a procedure's body. Positions count characters of the body from 1.

mod cursor;
mod raise;

use crate::parse::deferrals::SetConstraints;
use crate::parse::notify::NotifyStatement;
pub use cursor::*;
pub use raise::*;
use sqlparser::ast as sql;
use types::SqlState;

/// A whole body: one block.
#[derive(Clone, Debug, PartialEq)]
pub struct Body {
    /// What stands in front of the block.
    pub options: BodyOptions,
    /// The outermost block.
    pub block: Block,
}

/// `#option value` in front of a body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BodyOptions {
    /// `#variable_conflict`
    pub conflict: NameConflict,
    /// `#print_strict_params`: errors of STRICT show the variables of the query.
    pub print_strict_params: bool,
}

/// What a name is that is both a variable and a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NameConflict {
    /// An error.
    #[default]
    Error,
    /// The variable.
    Variable,
    /// The column.
    Column,
}

/// An identifier, lower-case unless it was quoted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The text.
    pub text: String,
    /// Where it stands.
    pub position: u32,
}

/// `[<<label>>] [DECLARE …] BEGIN … END`
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// The label in front of it.
    pub label: Option<Name>,
    /// Where its BEGIN stands.
    pub position: u32,
    /// Its variables, in order.
    pub declarations: Vec<Declaration>,
    /// Its statements, in order.
    pub statements: Vec<Statement>,
    /// EXCEPTION: what happens at an error; nothing where there are none.
    pub handlers: Vec<Handler>,
}

/// `WHEN condition OR condition THEN …`
#[derive(Clone, Debug, PartialEq)]
pub struct Handler {
    /// Where it begins.
    pub position: u32,
    /// One of them must be the error's.
    pub conditions: Vec<Condition>,
    /// What happens then.
    pub statements: Vec<Statement>,
}

/// A condition of a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// `OTHERS`: everything but a cancelled query and a failed ASSERT.
    Others,
    /// This code; with `000` at its end every code of its class.
    State(SqlState),
}

/// `EXECUTE text USING …`
#[derive(Clone, Debug, PartialEq)]
pub struct DynamicText {
    /// Gives the statement's text.
    pub text: Expression,
    /// `$1`, `$2`, … of it.
    pub arguments: Vec<Expression>,
}

/// Where the rows of a loop or of RETURN QUERY come from.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "the tree lives only while a procedure is compiled")]
pub enum RowSource {
    /// A statement.
    Static(Box<sql::Statement>),
    /// EXECUTE
    Dynamic(DynamicText),
}

/// One line of a DECLARE section.
#[derive(Clone, Debug, PartialEq)]
pub struct Declaration {
    /// The variable's name.
    pub name: Name,
    /// CONSTANT: refuses assignment.
    pub constant: bool,
    /// What it holds.
    pub declared: DeclaredType,
    /// NOT NULL: refuses NULL.
    pub not_null: bool,
    /// Its value on entry to the block; NULL where there is none.
    pub default: Option<Expression>,
}

/// The type in a declaration.
#[derive(Clone, Debug, PartialEq)]
pub enum DeclaredType {
    /// A type of SQL, and where its name stands.
    Scalar(sql::DataType, u32),
    /// `record`: a row whose columns the query decides.
    Record,
    /// `variable%TYPE` or `table.column%TYPE`.
    Like(Target),
    /// `table%ROWTYPE`, or the name of a table: a row of it.
    Row(Target),
    /// `ALIAS FOR name` or `ALIAS FOR $n`.
    Alias(Target),
    /// `CURSOR`: a refcursor with its query.
    Cursor {
        /// SCROLL, NO SCROLL, or neither.
        scroll: Option<bool>,
        /// What the query needs besides variables.
        parameters: Vec<CursorParameter>,
        /// The query.
        query: Box<sql::Statement>,
    },
}

/// A variable that is assigned, as it is written: `name`, `record.field`, `label.name` or `label.record.field`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The parts between the dots; at least one.
    pub parts: Vec<Name>,
}

impl Target {
    /// Where it begins.
    pub fn position(&self) -> u32 {
        self.parts.first().map_or(1, |part| part.position)
    }

    /// As it is written.
    pub fn text(&self) -> String {
        self.parts.iter().map(|part| part.text.as_str()).collect::<Vec<_>>().join(".")
    }
}

/// A step from a value to what it holds.
#[derive(Clone, Debug, PartialEq)]
pub enum PathStep {
    /// `[subscript]`
    Element(Box<Expression>),
    /// `[from:to]`, either of which may be missing
    Slice(Option<Box<Expression>>, Option<Box<Expression>>),
    /// `.name`, behind a subscript
    Field(Name),
}

/// An expression of SQL.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    /// The tree; its spans count lines and columns of the body.
    pub expression: sql::Expr,
    /// Where it begins.
    pub position: u32,
}

/// An argument of CALL or of a cursor, with its name where it is given.
pub type Argument = (Option<Name>, Expression);

/// `INTO [STRICT] targets`
#[derive(Clone, Debug, PartialEq)]
pub struct IntoClause {
    /// No row and more than one are errors.
    pub strict: bool,
    /// One record, or scalars.
    pub targets: Vec<Target>,
}

/// A statement and where it begins.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// Where it begins.
    pub position: u32,
    /// What it does.
    pub kind: StatementKind,
}

/// A condition and what happens where it is true.
#[derive(Clone, Debug, PartialEq)]
pub struct Branch {
    /// The condition.
    pub condition: Expression,
    /// What happens.
    pub statements: Vec<Statement>,
}

/// One `WHEN value, value THEN …` of a CASE statement.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseBranch {
    /// Values that are compared with the operand, or one condition where there is no operand.
    pub values: Vec<Expression>,
    /// What happens.
    pub statements: Vec<Statement>,
}

/// What a statement does.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "the tree lives only while a procedure is compiled")]
pub enum StatementKind {
    /// A nested block.
    Block(Block),
    /// `target := value`
    Assign {
        /// The variable.
        target: Target,
        /// The way to what is assigned in it, from the first subscript on; empty where all of it is.
        path: Vec<PathStep>,
        /// Its new value.
        value: Expression,
    },
    /// `IF … ELSIF … ELSE … END IF`
    If {
        /// IF and every ELSIF.
        branches: Vec<Branch>,
        /// ELSE.
        otherwise: Vec<Statement>,
    },
    /// `CASE … END CASE`
    Case {
        /// `CASE operand`
        operand: Option<Expression>,
        /// Every WHEN.
        branches: Vec<CaseBranch>,
        /// ELSE; where there is none and nothing fits, that is an error.
        otherwise: Option<Vec<Statement>>,
    },
    /// `LOOP … END LOOP`
    Loop {
        /// The label in front of it.
        label: Option<Name>,
        /// What is repeated.
        body: Vec<Statement>,
    },
    /// `WHILE condition LOOP … END LOOP`
    While {
        /// The label in front of it.
        label: Option<Name>,
        /// Evaluated before each turn.
        condition: Expression,
        /// What is repeated.
        body: Vec<Statement>,
    },
    /// `FOR variable IN [REVERSE] first..last [BY step] LOOP … END LOOP`
    ForRange {
        /// The label in front of it.
        label: Option<Name>,
        /// A new integer variable.
        variable: Name,
        /// Downwards.
        reverse: bool,
        /// Where it begins.
        first: Expression,
        /// Where it ends.
        last: Expression,
        /// How far each turn goes; 1 where there is none.
        step: Option<Expression>,
        /// What is repeated.
        body: Vec<Statement>,
    },
    /// `FOR targets IN query LOOP … END LOOP`
    ForRows {
        /// The label in front of it.
        label: Option<Name>,
        /// One record, or scalars.
        targets: Vec<Target>,
        /// Whose rows.
        query: RowSource,
        /// What is repeated.
        body: Vec<Statement>,
    },
    /// `FOR record IN cursor [(arguments)] LOOP … END LOOP`
    ForCursor {
        /// The label in front of it.
        label: Option<Name>,
        /// A new record.
        record: Name,
        /// A cursor with a query.
        cursor: Name,
        /// What its parameters get.
        arguments: Option<Vec<Argument>>,
        /// What is repeated.
        body: Vec<Statement>,
    },
    /// `FOREACH targets IN ARRAY array LOOP … END LOOP`
    ForElements {
        /// The label in front of it.
        label: Option<Name>,
        /// One scalar.
        targets: Vec<Target>,
        /// SLICE: dimensions of what each turn gets.
        slice: u32,
        /// Whose elements.
        array: Expression,
        /// What is repeated.
        body: Vec<Statement>,
    },
    /// `EXIT [label] [WHEN condition]`
    Exit {
        /// Which block or loop; the innermost loop where there is none.
        label: Option<Name>,
        /// Only where this is true.
        condition: Option<Expression>,
    },
    /// `CONTINUE [label] [WHEN condition]`
    Continue {
        /// Which loop; the innermost where there is none.
        label: Option<Name>,
        /// Only where this is true.
        condition: Option<Expression>,
    },
    /// SELECT, INSERT, UPDATE or DELETE.
    Sql {
        /// The statement without INTO.
        statement: Box<sql::Statement>,
        /// Where its row goes.
        into: Option<IntoClause>,
        /// WHERE CURRENT OF: the row that this cursor stands on.
        current_of: Option<Name>,
    },
    /// `PERFORM …`: a SELECT whose rows nobody wants.
    Perform {
        /// The SELECT.
        query: Box<sql::Statement>,
    },
    /// `CALL procedure(arguments)`
    Call {
        /// The procedure.
        procedure: Name,
        /// Its arguments in order, with their names where they are given.
        arguments: Vec<Argument>,
    },
    /// `EXECUTE text [INTO …] [USING …]`
    Execute {
        /// What is run.
        dynamic: DynamicText,
        /// Where its row goes.
        into: Option<IntoClause>,
    },
    /// `OPEN …`
    Open {
        /// The cursor.
        cursor: Target,
        /// SCROLL, NO SCROLL, or neither.
        scroll: Option<bool>,
        /// Whose rows it has.
        source: OpenSource,
    },
    /// `FETCH …` and `MOVE …`
    Fetch {
        /// The cursor.
        cursor: Target,
        /// Where it goes.
        direction: FetchDirection,
        /// Where the row goes; `None`: MOVE.
        into: Option<IntoClause>,
    },
    /// `CLOSE cursor`
    Close {
        /// The cursor.
        cursor: Target,
    },
    /// `SET CONSTRAINTS …`
    SetConstraints(SetConstraints),
    /// `NOTIFY …`
    Notify(NotifyStatement),
    /// `GET STACKED DIAGNOSTICS target = item, …`
    GetStackedDiagnostics {
        /// What each gets.
        items: Vec<(Target, StackedItem)>,
    },
    /// `GET DIAGNOSTICS target = item, …`
    GetDiagnostics {
        /// What each gets.
        items: Vec<(Target, DiagnosticsItem)>,
    },
    /// `RAISE …`
    Raise(Raise),
    /// `ASSERT condition [, message]`
    Assert {
        /// False and NULL are failures.
        condition: Expression,
        /// What the error says.
        message: Option<Expression>,
    },
    /// `RETURN [value]`
    Return(Option<Expression>),
    /// `RETURN NEXT [value]`
    ReturnNext(Option<Expression>),
    /// `RETURN QUERY …`
    ReturnQuery(RowSource),
    /// `NULL`
    Null,
}

impl StatementKind {
    /// Whether it has statements inside that it may leave out.
    pub fn has_statements(&self) -> bool {
        matches!(
            self,
            StatementKind::If { .. }
                | StatementKind::Case { .. }
                | StatementKind::Loop { .. }
                | StatementKind::While { .. }
                | StatementKind::ForRange { .. }
                | StatementKind::ForRows { .. }
                | StatementKind::ForCursor { .. }
                | StatementKind::ForElements { .. }
        )
    }

    /// What PostgreSQL calls it in PG_CONTEXT; `None` for what is no statement there.
    pub fn described(&self) -> Option<&'static str> {
        Some(match self {
            StatementKind::Block(_) | StatementKind::Null => return None,
            StatementKind::Assign { .. } => "at assignment",
            StatementKind::If { .. } => "at IF",
            StatementKind::Case { .. } => "at CASE",
            StatementKind::Loop { .. } => "at LOOP",
            StatementKind::While { .. } => "at WHILE",
            StatementKind::ForRange { .. } => "at FOR with integer loop variable",
            StatementKind::ForRows { query: RowSource::Static(_), .. } => "at FOR over SELECT rows",
            StatementKind::ForRows { .. } => "at FOR over EXECUTE statement",
            StatementKind::ForCursor { .. } => "at FOR over cursor",
            StatementKind::ForElements { .. } => "at FOREACH over array",
            StatementKind::Exit { .. } => "at EXIT",
            StatementKind::Continue { .. } => "at CONTINUE",
            StatementKind::Sql { .. } | StatementKind::SetConstraints(_) | StatementKind::Notify(_) => {
                "at SQL statement"
            }
            StatementKind::Perform { .. } => "at PERFORM",
            StatementKind::Call { .. } => "at CALL",
            StatementKind::Execute { .. } => "at EXECUTE",
            StatementKind::Open { .. } => "at OPEN",
            StatementKind::Fetch { into: Some(_), .. } => "at FETCH",
            StatementKind::Fetch { into: None, .. } => "at MOVE",
            StatementKind::Close { .. } => "at CLOSE",
            StatementKind::GetStackedDiagnostics { .. } => "at GET STACKED DIAGNOSTICS",
            StatementKind::GetDiagnostics { .. } => "at GET DIAGNOSTICS",
            StatementKind::Raise(_) => "at RAISE",
            StatementKind::Assert { .. } => "at ASSERT",
            StatementKind::Return(_) => "at RETURN",
            StatementKind::ReturnNext(_) => "at RETURN NEXT",
            StatementKind::ReturnQuery(_) => "at RETURN QUERY",
        })
    }
}
