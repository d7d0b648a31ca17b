//! Binding: syntax tree to expression, with PostgreSQL's types and errors.

use crate::aggregate::Aggregate;
use crate::expression::build::fold;
use crate::expression::refusals::unsupported_expression;
use crate::expression::written::written_number;
use crate::expression::{Expression, Relations};
use crate::scope::VariableScope;
use crate::statement::{Level, QueryScope};
use crate::table::TablePlan;
use crate::window::WindowCall;
use sqlparser::ast::{self, Expr, Spanned};
use sqlparser::tokenizer::Span;
use std::cell::{Cell, RefCell};
use syntax::parse::{OPERATORS_MAX, too_deep};
use types::{DataType, SqlError, SqlState};

/// The row that column names are looked up in.
#[derive(Clone, Copy)]
pub enum Source<'a> {
    /// There is none.
    Nothing,
    /// There is none, and DEFAULT says so in its own words.
    Default,
    /// A table under the name that the statement gives it.
    Table {
        /// The table.
        table: &'a TablePlan,
        /// Its name or alias.
        name: &'a str,
    },
    /// The relations of a query.
    Relations(&'a Relations),
}

/// Binds the expressions of one clause.
pub struct Binder<'a> {
    pub(super) scope: &'a VariableScope,
    pub(super) source: Source<'a>,
    /// Aggregates found so far.
    pub(super) aggregates: RefCell<Vec<Aggregate>>,
    /// Window functions found so far.
    pub(super) windows: RefCell<Vec<WindowCall>>,
    /// The clause, where window functions are not allowed.
    pub(super) no_windows_in: Cell<Option<&'static str>>,
    /// The windows that have names.
    pub(super) named_windows: &'a [ast::NamedWindowDefinition],
    /// The clause, where aggregates are not allowed.
    pub(super) no_aggregates_in: Cell<Option<&'static str>>,
    depth: Cell<usize>,
    /// Where subqueries are bound, in queries.
    pub(super) query: Option<(QueryScope<'a>, &'a Level<'a>)>,
}

impl<'a> Binder<'a> {
    /// For expressions without aggregates.
    pub fn new(scope: &'a VariableScope, source: Source<'a>) -> Binder<'a> {
        Binder {
            scope,
            source,
            aggregates: RefCell::default(),
            windows: RefCell::default(),
            no_windows_in: Cell::new(Some("this clause")),
            named_windows: &[],
            no_aggregates_in: Cell::new(Some("WHERE")),
            depth: Cell::new(0),
            query: None,
        }
    }

    /// For the expressions of a query, which may hold subqueries and name the columns of enclosing queries.
    pub fn in_query(self, query: QueryScope<'a>, level: &'a Level<'a>) -> Binder<'a> {
        Binder { query: Some((query, level)), ..self }
    }

    /// The query that the expressions belong to, among nested ones.
    pub fn enclosing(&self) -> Option<(QueryScope<'a>, &'a Level<'a>)> {
        self.query
    }

    /// Says in which clause the expressions stand; `None`: where aggregates are allowed.
    pub fn in_clause(&self, clause: Option<&'static str>) -> &Self {
        self.no_aggregates_in.set(clause);
        self
    }

    /// The windows that have names.
    pub fn with_windows(self, named_windows: &'a [ast::NamedWindowDefinition]) -> Binder<'a> {
        Binder { named_windows, ..self }
    }

    /// Says in which clause the expressions stand; `None`: where window functions are allowed.
    pub fn no_windows_in(&self, clause: Option<&'static str>) -> &Self {
        self.no_windows_in.set(clause);
        self
    }

    /// The window functions that were met.
    pub fn take_windows(&self) -> Vec<WindowCall> {
        self.windows.take()
    }

    /// The aggregates that were met.
    pub fn take_aggregates(&self) -> Vec<Aggregate> {
        self.aggregates.take()
    }

    /// Binds an expression; a literal of unknown type stays one.
    ///
    /// # Errors
    /// Unknown names, wrong types, what is not supported.
    pub fn bind(&self, expr: &Expr) -> Result<Expression, SqlError> {
        let depth = self.depth.get();
        if depth >= OPERATORS_MAX {
            return Err(too_deep());
        }
        self.depth.set(depth + 1);
        let bound = self.bind_one(expr).map(fold);
        self.depth.set(depth);
        bound
    }

    /// Binds an expression that becomes a value of `target`. A number that is written out becomes a double without a
    /// numeric between, which holds fewer digits than PostgreSQL's.
    ///
    /// # Errors
    /// As [`Binder::bind`].
    pub fn bind_towards(&self, expr: &Expr, target: DataType) -> Result<Expression, SqlError> {
        if let Some(bytes) = self.long_bytes(expr, target)? {
            return Ok(bytes);
        }
        match (target, written_number(expr)) {
            (DataType::Double | DataType::Real, Some(text)) => {
                Ok(Expression::constant(types::parse_value(&text, target)?, target))
            }
            _ => self.bind(expr),
        }
    }

    /// Binds an expression whose type must be known in the end: what is not is text.
    ///
    /// # Errors
    /// As [`Binder::bind`].
    pub fn bind_known(&self, expr: &Expr) -> Result<Expression, SqlError> {
        let bound = self.bind(expr)?;
        self.known(bound)
    }

    pub(super) fn known(&self, expression: Expression) -> Result<Expression, SqlError> {
        match expression.data_type {
            DataType::Unknown => self.cast_to(expression, DataType::Text(None)),
            DataType::Record => self.known_fields(expression),
            _ => Ok(expression),
        }
    }

    /// Binds a condition.
    ///
    /// # Errors
    /// `42804` where it is not boolean; as [`Binder::bind`].
    pub fn bind_condition(&self, expr: &Expr, clause: &str) -> Result<Expression, SqlError> {
        let condition = self.bind(expr)?;
        self.boolean(condition, clause, expr.span())
    }

    fn boolean(&self, condition: Expression, clause: &str, span: Span) -> Result<Expression, SqlError> {
        match condition.data_type {
            DataType::Boolean => Ok(condition),
            DataType::Unknown => self.cast_to(condition, DataType::Boolean),
            other => {
                let message =
                    format!("argument of {clause} must be type boolean, not type {}", other.family());
                Err(self.at(SqlError::new(SqlState::DATATYPE_MISMATCH, message), span))
            }
        }
    }

    /// Variables and parameters.
    pub fn scope(&self) -> &VariableScope {
        self.scope
    }

    /// The error at the span's position.
    pub fn at(&self, error: SqlError, span: Span) -> SqlError {
        self.scope.located(error, span)
    }

    /// The dispatch; each group has its own function, which keeps the stack of the recursion small.
    fn bind_one(&self, expr: &Expr) -> Result<Expression, SqlError> {
        match expr {
            Expr::Nested(inner) => self.bind(inner),
            Expr::Tuple(parts) => self.bind_row_of(parts),
            Expr::Identifier(name) => self.bind_name(name),
            Expr::CompoundIdentifier(parts) => self.bind_qualified(parts),
            Expr::Value(value) => self.bind_literal(value),
            Expr::BinaryOp { left, op, right } => self.bind_binary(expr, left, op, right),
            Expr::UnaryOp { op, expr } => self.bind_unary(*op, expr),
            Expr::Cast { .. } | Expr::TypedString(_) => self.bind_cast(expr),
            Expr::Interval(interval) => self.bind_interval(interval),
            Expr::AtTimeZone { timestamp, time_zone } => self.bind_at_time_zone(timestamp, time_zone),
            Expr::Function(function) => self.bind_function(function),
            Expr::IsNull(_)
            | Expr::IsNotNull(_)
            | Expr::IsTrue(_)
            | Expr::IsNotTrue(_)
            | Expr::IsFalse(_)
            | Expr::IsNotFalse(_)
            | Expr::IsUnknown(_)
            | Expr::IsNotUnknown(_) => self.bind_is(expr),
            Expr::IsDistinctFrom(left, right) => self.bind_distinct(true, left, right),
            Expr::IsNotDistinctFrom(left, right) => self.bind_distinct(false, left, right),
            Expr::Between { expr, negated, low, high } => self.bind_between(expr, *negated, low, high),
            Expr::InList { expr, list, negated } => self.bind_in_list(expr, list, *negated),
            Expr::Like { negated, any: false, expr, pattern, escape_char } => {
                self.bind_like(*negated, false, expr, pattern, escape_char.as_ref())
            }
            Expr::ILike { negated, any: false, expr, pattern, escape_char } => {
                self.bind_like(*negated, true, expr, pattern, escape_char.as_ref())
            }
            Expr::Case { operand, conditions, else_result, .. } => {
                self.bind_case(operand.as_deref(), conditions, else_result.as_deref())
            }
            Expr::Ceil { .. }
            | Expr::Floor { .. }
            | Expr::Position { .. }
            | Expr::Substring { .. }
            | Expr::Trim { .. }
            | Expr::Overlay { .. }
            | Expr::Extract { .. } => self.bind_syntax_function(expr),
            Expr::SimilarTo { negated, expr, pattern, escape_char } => {
                self.bind_similar(*negated, expr, pattern, escape_char.as_ref())
            }
            Expr::Collate { expr: inner, collation } => self.bind_collate(inner, collation),
            Expr::Array(array) => self.bind_array(array),
            Expr::CompoundFieldAccess { root, access_chain } => self.bind_access(root, access_chain),
            Expr::AnyOp { left, compare_op, right, .. } if !is_query(right) => {
                self.bind_quantified(left, compare_op, right, true)
            }
            Expr::AllOp { left, compare_op, right } if !is_query(right) => {
                self.bind_quantified(left, compare_op, right, false)
            }
            Expr::Subquery(_)
            | Expr::Exists { .. }
            | Expr::InSubquery { .. }
            | Expr::AnyOp { .. }
            | Expr::AllOp { .. }
                if self.query.is_some() =>
            {
                self.bind_subquery_expression(expr)
            }
            _ => Err(self.at(unsupported_expression(expr), expr.span())),
        }
    }

    fn bind_collate(&self, inner: &Expr, collation: &ast::ObjectName) -> Result<Expression, SqlError> {
        match collation.to_string().trim_matches('"') {
            "C" | "POSIX" | "default" | "pg_catalog.default" => self.bind(inner),
            other => Err(SqlError::unsupported(format_args!("the collation \"{other}\""))
                .hint("Text compares by bytes: COLLATE \"C\".")),
        }
    }
}

fn is_query(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_query(inner),
        Expr::Subquery(_) => true,
        _ => false,
    }
}
