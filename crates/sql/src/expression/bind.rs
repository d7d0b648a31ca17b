//! Binding: syntax tree to expression, with PostgreSQL's types and errors.

use super::bind_array::is_empty_array;
use super::bind_row::row_of;
use super::convert::fold;
use super::names::bind_data_type;
use super::{Comparison, Expression, Kind, LikeForm, Relations};
use crate::aggregate::Aggregate;
use crate::scope::{Variable, VariableScope, name_of};
use crate::statement::{Level, QueryScope};
use crate::table::TablePlan;
use crate::window::WindowCall;
use sqlparser::ast::{self, BinaryOperator, Expr, Ident, Spanned, UnaryOperator, ValueWithSpan};
use sqlparser::tokenizer::Span;
use std::cell::{Cell, RefCell};
use types::{
    ArithmeticOperator, DataType, Numeric, OperatorTypes, SqlError, SqlState, Value, arithmetic_result,
    common_type, comparison_type, limits, negate, operator_types,
};

/// The row that column names are looked up in.
#[derive(Clone, Copy)]
pub(crate) enum Source<'a> {
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
pub(crate) struct Binder<'a> {
    pub(super) scope: &'a VariableScope,
    source: Source<'a>,
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

/// Nesting of expressions: the parser counts parentheses, this also chains of operators.
pub(crate) const OPERATORS_MAX: usize = 256;

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
            | Expr::Extract { .. } => self.bind_syntax_function(expr),
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

    fn bind_name(&self, ident: &Ident) -> Result<Expression, SqlError> {
        let name = name_of(ident)?;
        let column = self.visible(&[&name]).map_err(|error| self.at(error, ident.span))?;
        let variable = self.scope.resolve(&[&name]);
        match (column, variable) {
            (Some(_), Some(_)) if !self.scope.columns_come_first() => Err(self.ambiguous(&name, ident.span)),
            (Some(column), _) => Ok(column),
            (None, Some(variable)) => Ok(variable_expression(variable)),
            (None, None) => Err(self.at(self.no_column(&name), ident.span)),
        }
    }

    fn column(&self, name: &str) -> Result<Option<Expression>, SqlError> {
        match self.source {
            Source::Table { table, .. } => Ok(table
                .ordinal(name)
                .map(|ordinal| Expression::column(ordinal, table.columns[ordinal].data_type))),
            Source::Relations(relations) => relations.column(name),
            Source::Nothing | Source::Default => Ok(None),
        }
    }

    /// The column that a name stands for, here or in an enclosing query.
    ///
    /// # Errors
    /// `42702` where several have it; `42703` where the relation named does not.
    fn visible(&self, parts: &[&str]) -> Result<Option<Expression>, SqlError> {
        let own = match (self.source, parts) {
            (_, [name]) => self.column(name)?,
            (Source::Relations(relations), [relation, name]) => {
                relations.qualified(relation, name).transpose()?
            }
            (Source::Table { name: table, .. }, [relation, name]) if table == *relation => {
                self.column(name)?
            }
            _ => None,
        };
        let enclosing = self.query.and_then(|(_, level)| Some((level, level.parent?)));
        match (own, enclosing) {
            (Some(own), _) => Ok(Some(own)),
            (None, Some((level, parent))) => Ok(parent.visible(parts)?.map(|found| level.argument(found))),
            (None, None) => Ok(None),
        }
    }

    fn ambiguous(&self, name: &str, span: Span) -> SqlError {
        let error =
            SqlError::new(SqlState::AMBIGUOUS_COLUMN, format!("column reference \"{name}\" is ambiguous"))
                .detail("It could refer to either a PL/pgSQL variable or a table column.");
        self.at(error, span)
    }

    fn no_column(&self, name: &str) -> SqlError {
        if let Source::Default = self.source {
            return SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "cannot use column reference in DEFAULT expression",
            );
        }
        if self.scope.is_record(name) {
            return SqlError::unsupported(format_args!("the whole row \"{name}\" as a value"))
                .hint("Name its fields.");
        }
        let is_relation = match self.source {
            Source::Table { name: table, .. } => table == name,
            Source::Relations(relations) => relations.relation(name).is_some(),
            Source::Nothing | Source::Default => false,
        };
        if is_relation {
            return SqlError::unsupported(format_args!("the whole row \"{name}\" as a value"))
                .hint("Name its columns.");
        }
        SqlError::new(SqlState::UNDEFINED_COLUMN, format!("column \"{name}\" does not exist"))
    }

    fn bind_qualified(&self, parts: &[Ident]) -> Result<Expression, SqlError> {
        let names = parts.iter().map(name_of).collect::<Result<Vec<_>, _>>()?;
        let span = parts.first().map_or(Span::empty(), |part| part.span);
        let parts: Vec<&str> = match names.as_slice() {
            [schema, rest @ ..] if schema == "public" && rest.len() == 2 => rest,
            all => all,
        }
        .iter()
        .map(String::as_str)
        .collect();
        let [qualifier, name] = parts.as_slice() else {
            let what = format_args!("the qualified name {}", names.join("."));
            return Err(self.at(SqlError::unsupported(what), span));
        };
        if matches!(self.source, Source::Table { name: table, .. } if table == *qualifier) {
            if let Some(column) = self.column(name)? {
                return match self.scope.resolve(&parts) {
                    Some(_) => Err(self.ambiguous(&parts.join("."), span)),
                    None => Ok(column),
                };
            }
            if self.scope.resolve(&parts).is_none() {
                let message = format!("column {qualifier}.{name} does not exist");
                return Err(self.at(SqlError::new(SqlState::UNDEFINED_COLUMN, message), span));
            }
        }
        if !matches!(self.source, Source::Table { .. })
            && let Some(column) = self.visible(&parts).map_err(|error| self.at(error, span))?
        {
            return match self.scope.resolve(&parts) {
                Some(_) => Err(self.ambiguous(&parts.join("."), span)),
                None => Ok(column),
            };
        }
        match self.scope.resolve(&parts) {
            Some(variable) => Ok(variable_expression(variable)),
            None if self.scope.is_record(qualifier) => {
                let message = format!("record \"{qualifier}\" has no field \"{name}\"");
                Err(self.at(SqlError::new(SqlState::UNDEFINED_COLUMN, message), span))
            }
            None => {
                let hidden = match self.source {
                    Source::Table { table, .. } => table.name == *qualifier,
                    Source::Relations(relations) => {
                        let mut relations = relations.relations.iter();
                        relations.any(|relation| relation.table.as_deref() == Some(*qualifier))
                    }
                    Source::Nothing | Source::Default => false,
                };
                let error = match hidden {
                    true => SqlError::new(
                        SqlState::UNDEFINED_TABLE,
                        format!("invalid reference to FROM-clause entry for table \"{qualifier}\""),
                    )
                    .hint("Use the alias that the statement gives the table."),
                    false => SqlError::new(
                        SqlState::UNDEFINED_TABLE,
                        format!("missing FROM-clause entry for table \"{qualifier}\""),
                    ),
                };
                Err(self.at(error, span))
            }
        }
    }

    fn bind_literal(&self, value: &ValueWithSpan) -> Result<Expression, SqlError> {
        let unknown = |text: &str| Expression::constant(Value::text(text), DataType::Unknown);
        Ok(match &value.value {
            ast::Value::Number(text, false) => {
                number(text, false).map_err(|error| self.at(error, value.span))?
            }
            ast::Value::SingleQuotedString(text) | ast::Value::EscapedStringLiteral(text) => {
                check_literal(text)?;
                unknown(text)
            }
            ast::Value::DollarQuotedString(text) => {
                check_literal(&text.value)?;
                unknown(&text.value)
            }
            ast::Value::Boolean(truth) => Expression::constant(Value::Boolean(*truth), DataType::Boolean),
            ast::Value::Null => Expression::constant(Value::Null, DataType::Unknown),
            ast::Value::Placeholder(name) => {
                let number = name.strip_prefix('$').and_then(|digits| digits.parse().ok());
                let Some(number) = number else {
                    let error =
                        SqlError::new(SqlState::SYNTAX_ERROR, format!("syntax error at or near \"{name}\""));
                    return Err(self.at(error, value.span));
                };
                let parameter = self.scope.parameter(number);
                variable_expression(parameter.map_err(|error| self.at(error, value.span))?)
            }
            other => {
                let what = format_args!("the literal {other}");
                return Err(self.at(SqlError::unsupported(what), value.span));
            }
        })
    }

    fn bind_unary(&self, op: UnaryOperator, operand: &Expr) -> Result<Expression, SqlError> {
        match op {
            UnaryOperator::Not => {
                let operand = self.bind_condition(operand, "NOT")?;
                Ok(boolean(Kind::Not(Box::new(operand))))
            }
            UnaryOperator::Minus | UnaryOperator::Plus => {
                if let (UnaryOperator::Minus, Expr::Value(value)) = (op, operand)
                    && let ast::Value::Number(text, false) = &value.value
                {
                    return number(text, true);
                }
                let operand = self.bind(operand)?;
                let operand = match operand.data_type {
                    DataType::Unknown => self.cast_to(operand, DataType::Double)?,
                    _ => operand,
                };
                if arithmetic_result(ArithmeticOperator::Add, operand.data_type, operand.data_type).is_none()
                {
                    return Err(no_operator(&format!("{op} {}", operand.data_type)));
                }
                if op == UnaryOperator::Plus {
                    return Ok(operand);
                }
                let data_type = operand.data_type.family();
                Ok(Expression { kind: Kind::Negate(Box::new(operand)), data_type })
            }
            UnaryOperator::BitwiseNot
            | UnaryOperator::PGAbs
            | UnaryOperator::PGSquareRoot
            | UnaryOperator::PGCubeRoot => {
                let bound = self.bind(operand)?;
                self.bind_operator(&op.to_string(), vec![bound], operand.span())
            }
            other => Err(SqlError::unsupported(format_args!("the operator {other}"))),
        }
    }

    fn bind_binary(
        &self,
        whole: &Expr,
        left: &Expr,
        op: &BinaryOperator,
        right: &Expr,
    ) -> Result<Expression, SqlError> {
        use ArithmeticOperator::{Add, Divide, Multiply, Remainder, Subtract};
        let comparison = match op {
            BinaryOperator::And | BinaryOperator::Or => return self.bind_logical(whole, op),
            BinaryOperator::Plus => return self.bind_arithmetic(Add, left, right),
            BinaryOperator::Minus => return self.bind_arithmetic(Subtract, left, right),
            BinaryOperator::Multiply => return self.bind_arithmetic(Multiply, left, right),
            BinaryOperator::Divide => return self.bind_arithmetic(Divide, left, right),
            BinaryOperator::Modulo => return self.bind_arithmetic(Remainder, left, right),
            BinaryOperator::StringConcat => return self.bind_concatenation(left, right),
            BinaryOperator::PGLikeMatch => return self.bind_like(false, false, left, right, None),
            BinaryOperator::PGNotLikeMatch => return self.bind_like(true, false, left, right, None),
            BinaryOperator::PGILikeMatch => return self.bind_like(false, true, left, right, None),
            BinaryOperator::PGNotILikeMatch => return self.bind_like(true, true, left, right, None),
            BinaryOperator::AtArrow | BinaryOperator::ArrowAt | BinaryOperator::PGOverlap => {
                return self.bind_array_operator(left, op, right);
            }
            BinaryOperator::BitwiseAnd
            | BinaryOperator::BitwiseOr
            | BinaryOperator::PGBitwiseXor
            | BinaryOperator::PGBitwiseShiftLeft
            | BinaryOperator::PGBitwiseShiftRight
            | BinaryOperator::PGExp => {
                let operands = vec![self.bind(left)?, self.bind(right)?];
                return self.bind_operator(&op.to_string(), operands, left.span());
            }
            other => Comparison::of(other),
        };
        let Some(comparison) = comparison else {
            let error = SqlError::unsupported(format_args!("the operator {op}"));
            return Err(self.at(error, left.span()));
        };
        if let (Some(left_row), Some(right_row)) = (row_of(left), row_of(right)) {
            return self
                .compare_rows(comparison, left_row, right_row)
                .map_err(|error| self.at(error, left.span()));
        }
        let (left_bound, right_bound) = (self.bind(left)?, self.bind(right)?);
        self.compare(comparison, left_bound, right_bound).map_err(|error| self.at(error, left.span()))
    }

    /// A chain of ANDs or ORs becomes one node, without recursion along the chain.
    fn bind_logical(&self, whole: &Expr, op: &BinaryOperator) -> Result<Expression, SqlError> {
        let clause = if *op == BinaryOperator::And { "AND" } else { "OR" };
        let mut operands = Vec::new();
        let mut rest = whole;
        loop {
            match rest {
                Expr::BinaryOp { left, op: next, right } if next == op => {
                    operands.push(right.as_ref());
                    rest = left;
                }
                first => {
                    operands.push(first);
                    break;
                }
            }
        }
        let mut bound = Vec::with_capacity(operands.len());
        for operand in operands.into_iter().rev() {
            let operand = self.bind_condition(operand, clause)?;
            match operand.kind {
                Kind::And(inner) if clause == "AND" => bound.extend(inner),
                Kind::Or(inner) if clause == "OR" => bound.extend(inner),
                kind => bound.push(boolean(kind)),
            }
        }
        Ok(boolean(if clause == "AND" { Kind::And(bound) } else { Kind::Or(bound) }))
    }

    fn bind_arithmetic(
        &self,
        op: ArithmeticOperator,
        left: &Expr,
        right: &Expr,
    ) -> Result<Expression, SqlError> {
        let span = left.span();
        let (left, right) = (self.bind(left)?, self.bind(right)?);
        self.arithmetic(op, left, right).map_err(|error| self.at(error, span))
    }

    pub(super) fn arithmetic(
        &self,
        op: ArithmeticOperator,
        left: Expression,
        right: Expression,
    ) -> Result<Expression, SqlError> {
        let (from, to) = (left.data_type, right.data_type);
        let Some(OperatorTypes { left: left_type, right: right_type, result }) = operator_types(op, from, to)
        else {
            let form = format!("{} {op} {}", from.family(), to.family());
            return Err(if is_ambiguous(op, from, to) { not_unique(&form) } else { no_operator(&form) });
        };
        let left = self.number_operand(left, left_type)?;
        let right = self.number_operand(right, right_type)?;
        Ok(Expression { kind: Kind::Arithmetic(op, Box::new([left, right])), data_type: result })
    }

    /// Integers of all widths meet as they are: arithmetic and comparison know how.
    fn number_operand(&self, operand: Expression, target: DataType) -> Result<Expression, SqlError> {
        match operand.data_type.is_integer() && target.is_integer() {
            true => Ok(operand),
            false => self.cast_to(operand, target.family()),
        }
    }

    fn bind_concatenation(&self, left: &Expr, right: &Expr) -> Result<Expression, SqlError> {
        let (left, right) = (self.bind(left)?, self.bind(right)?);
        if left.data_type.element().is_some() || right.data_type.element().is_some() {
            return self.concatenate_arrays(left, right);
        }
        let text = |operand: &Expression| {
            matches!(operand.data_type, DataType::Text(_) | DataType::Char(_) | DataType::Unknown)
        };
        if left.data_type == DataType::Bytea || right.data_type == DataType::Bytea {
            let bytes = |operand: Expression| self.argument(operand, DataType::Bytea);
            let form = format!("{} || {}", left.data_type, right.data_type);
            let (Some(left), Some(right)) = (bytes(left), bytes(right)) else {
                return Err(no_operator(&form));
            };
            let operands = Box::new([left, right]);
            return Ok(Expression { kind: Kind::Concatenate(operands), data_type: DataType::Bytea });
        }
        if !text(&left) && !text(&right) {
            return Err(no_operator(&format!("{} || {}", left.data_type, right.data_type)));
        }
        let operands = Box::new([self.known(left)?, self.known(right)?]);
        Ok(Expression { kind: Kind::Concatenate(operands), data_type: DataType::Text(None) })
    }

    pub fn compare(
        &self,
        comparison: Comparison,
        left: Expression,
        right: Expression,
    ) -> Result<Expression, SqlError> {
        let operands = self.comparable(comparison.symbol(), left, right)?;
        Ok(boolean(Kind::Compare(comparison, Box::new(operands))))
    }

    /// Both with the type in which they compare.
    fn comparable(
        &self,
        symbol: &str,
        left: Expression,
        right: Expression,
    ) -> Result<[Expression; 2], SqlError> {
        let Some(common) = comparison_type(left.data_type, right.data_type) else {
            return Err(no_operator(&format!(
                "{} {symbol} {}",
                left.data_type.family(),
                right.data_type.family()
            )));
        };
        Ok([self.number_operand(left, common)?, self.number_operand(right, common)?])
    }

    fn bind_distinct(&self, distinct: bool, left: &Expr, right: &Expr) -> Result<Expression, SqlError> {
        let operands = self.comparable("=", self.bind(left)?, self.bind(right)?)?;
        Ok(boolean(Kind::Distinct(distinct, Box::new(operands))))
    }

    fn bind_is(&self, expr: &Expr) -> Result<Expression, SqlError> {
        let truth = |operand: &Expr, truth: Option<bool>, expected: bool| {
            let operand = self.bind_condition(operand, "IS TRUE")?;
            Ok(boolean(Kind::IsTruth(truth, expected, Box::new(operand))))
        };
        let null = |operand: &Expr, expected: bool| {
            let operand = self.bind_known(operand)?;
            Ok(boolean(Kind::IsNull(expected, Box::new(operand))))
        };
        match expr {
            Expr::IsNull(operand) => null(operand, true),
            Expr::IsNotNull(operand) => null(operand, false),
            Expr::IsTrue(operand) => truth(operand, Some(true), true),
            Expr::IsNotTrue(operand) => truth(operand, Some(true), false),
            Expr::IsFalse(operand) => truth(operand, Some(false), true),
            Expr::IsNotFalse(operand) => truth(operand, Some(false), false),
            Expr::IsUnknown(operand) => truth(operand, None, true),
            Expr::IsNotUnknown(operand) => truth(operand, None, false),
            other => Err(unsupported_expression(other)),
        }
    }

    fn bind_between(
        &self,
        operand: &Expr,
        negated: bool,
        low: &Expr,
        high: &Expr,
    ) -> Result<Expression, SqlError> {
        let value = self.bind(operand)?;
        let lower = self.compare(Comparison::GreaterOrEqual, value.clone(), self.bind(low)?)?;
        let upper = self.compare(Comparison::LessOrEqual, value, self.bind(high)?)?;
        let both = boolean(Kind::And(vec![lower, upper]));
        Ok(if negated { boolean(Kind::Not(Box::new(both))) } else { both })
    }

    fn bind_in_list(&self, operand: &Expr, list: &[Expr], negated: bool) -> Result<Expression, SqlError> {
        if let Some(row) = row_of(operand) {
            return self.bind_row_in_list(row, list, negated);
        }
        let mut operands = vec![self.bind(operand)?];
        for element in list {
            operands.push(self.bind(element)?);
        }
        let Some(common) = common_type(operands.iter().map(Expression::data_type)) else {
            let other =
                operands.iter().find(|other| common_type([operands[0].data_type, other.data_type]).is_none());
            let other = other.map_or(DataType::Unknown, Expression::data_type);
            return Err(no_operator(&format!("{} = {other}", operands[0].data_type)));
        };
        let operands = operands.into_iter().map(|operand| self.number_operand(operand, common));
        let mut operands = operands.collect::<Result<Vec<_>, _>>()?;
        if let [_, _] = operands.as_slice()
            && let (Some(right), Some(left)) = (operands.pop(), operands.pop())
        {
            let comparison = if negated { Comparison::NotEqual } else { Comparison::Equal };
            return Ok(boolean(Kind::Compare(comparison, Box::new([left, right]))));
        }
        Ok(boolean(Kind::InList(!negated, operands)))
    }

    fn bind_like(
        &self,
        negated: bool,
        ignore_case: bool,
        text: &Expr,
        pattern: &Expr,
        escape: Option<&ValueWithSpan>,
    ) -> Result<Expression, SqlError> {
        let escape = match escape.map(|escape| &escape.value) {
            None => Some('\\'),
            Some(ast::Value::SingleQuotedString(text)) if text.chars().count() <= 1 => text.chars().next(),
            Some(_) => {
                let error = SqlError::new(SqlState(*b"22019"), "invalid escape string")
                    .hint("Escape string must be empty or one character.");
                return Err(error);
            }
        };
        let (text, pattern) = (self.bind(text)?, self.bind(pattern)?);
        let is_text = |operand: &Expression| {
            matches!(operand.data_type, DataType::Text(_) | DataType::Char(_) | DataType::Unknown)
        };
        // A pattern is compared with all of a char(n), with the spaces at its end.
        if text.data_type.family() == DataType::Char(None) {
            return Err(SqlError::unsupported("LIKE on a character(n)").hint("Cast it to text."));
        }
        if !is_text(&text) || !is_text(&pattern) {
            let symbol = match (negated, ignore_case) {
                (false, false) => "~~",
                (true, false) => "!~~",
                (false, true) => "~~*",
                (true, true) => "!~~*",
            };
            return Err(no_operator(&format!("{} {symbol} {}", text.data_type, pattern.data_type)));
        }
        let operands = Box::new([self.known(text)?, self.known(pattern)?]);
        Ok(boolean(Kind::Like(LikeForm { negated, ignore_case, escape }, operands)))
    }

    fn bind_case(
        &self,
        operand: Option<&Expr>,
        conditions: &[ast::CaseWhen],
        otherwise: Option<&Expr>,
    ) -> Result<Expression, SqlError> {
        let operand = operand.map(|operand| self.bind(operand)).transpose()?;
        let mut branches = Vec::with_capacity(conditions.len());
        let mut results = Vec::with_capacity(conditions.len() + 1);
        for when in conditions {
            branches.push(match &operand {
                Some(operand) => {
                    self.compare(Comparison::Equal, operand.clone(), self.bind(&when.condition)?)?
                }
                None => self.bind_condition(&when.condition, "CASE/WHEN")?,
            });
            results.push(self.bind(&when.result)?);
        }
        results.push(match otherwise {
            Some(otherwise) => self.bind(otherwise)?,
            None => Expression::constant(Value::Null, DataType::Unknown),
        });
        let (mut results, data_type) = self.unify(results, "CASE")?;
        let otherwise = Box::new(results.pop().expect("the result of ELSE was pushed"));
        let branches = branches.into_iter().zip(results).collect();
        Ok(Expression { kind: Kind::Case(branches, otherwise), data_type })
    }

    fn bind_cast(&self, expr: &Expr) -> Result<Expression, SqlError> {
        match expr {
            Expr::Cast {
                kind: ast::CastKind::Cast | ast::CastKind::DoubleColon,
                expr,
                data_type,
                array: false,
                format: None,
            } => {
                let target = bind_data_type(data_type)?;
                if is_empty_array(expr)
                    && let Some(array) = self.bind_empty_array(target)
                {
                    return Ok(array);
                }
                let operand = self.bind_towards(expr, target)?;
                self.explicit_cast(operand, target).map_err(|error| self.at(error, expr.span()))
            }
            Expr::TypedString(typed) => {
                let target = bind_data_type(&typed.data_type)?;
                let operand = self.bind_literal(&typed.value)?;
                self.explicit_cast(operand, target).map_err(|error| self.at(error, typed.value.span))
            }
            other => Err(unsupported_expression(other)),
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

pub(super) fn boolean(kind: Kind) -> Expression {
    Expression { kind, data_type: DataType::Boolean }
}

fn variable_expression(variable: Variable) -> Expression {
    Expression::slot(variable.slot, variable.data_type)
}

fn number(text: &str, negative: bool) -> Result<Expression, SqlError> {
    let signed = if negative { format!("-{text}") } else { text.to_string() };
    if let Ok(value) = signed.parse::<i32>() {
        return Ok(Expression::constant(Value::Integer(value), DataType::Integer));
    }
    if let Ok(value) = signed.parse::<i64>() {
        return Ok(Expression::constant(Value::BigInt(value), DataType::BigInt));
    }
    let value = Value::Numeric(Numeric::parse(text)?);
    let value = if negative { negate(&value)? } else { value };
    Ok(Expression::constant(value, DataType::Numeric(None)))
}

/// The digits of a number literal with their sign.
fn written_number(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Nested(inner) => written_number(inner),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match expr.as_ref() {
            Expr::Value(value) => match &value.value {
                ast::Value::Number(text, false) => Some(format!("-{text}")),
                _ => None,
            },
            _ => None,
        },
        Expr::Value(value) => match &value.value {
            ast::Value::Number(text, false) => Some(text.clone()),
            _ => None,
        },
        _ => None,
    }
}

fn check_literal(text: &str) -> Result<(), SqlError> {
    if text.len() > limits::TEXT_BYTES_MAX {
        let message = format!(
            "the text has {} bytes, the limit is {} (TEXT_BYTES_MAX)",
            text.len(),
            limits::TEXT_BYTES_MAX
        );
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
    }
    if text.contains('\0') {
        let message = "invalid byte sequence for encoding \"UTF8\": 0x00";
        return Err(SqlError::new(SqlState(*b"22021"), message));
    }
    Ok(())
}

pub(crate) fn too_deep() -> SqlError {
    let message = format!("an expression is nested more than {OPERATORS_MAX} operators deep (OPERATORS_MAX)");
    SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, message).hint("Split it, or use a list with IN.")
}

/// What PostgreSQL cannot choose an operator for, because several would do.
fn is_ambiguous(op: ArithmeticOperator, left: DataType, right: DataType) -> bool {
    let unclear =
        |data_type: DataType| matches!(data_type, DataType::Date | DataType::Time | DataType::Unknown);
    match (left, right) {
        (DataType::Unknown, DataType::Unknown) => true,
        (DataType::Unknown, other) | (other, DataType::Unknown) => {
            op == ArithmeticOperator::Add && unclear(other)
        }
        (DataType::Time, DataType::Time) => op == ArithmeticOperator::Add,
        _ => false,
    }
}

fn not_unique(form: &str) -> SqlError {
    SqlError::new(SqlState(*b"42725"), format!("operator is not unique: {form}"))
        .hint("Could not choose a best candidate operator. You might need to add explicit type casts.")
}

pub(super) fn no_operator(form: &str) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_FUNCTION, format!("operator does not exist: {form}")).hint(
        "No operator matches the given name and argument types. You might need to add explicit type casts.",
    )
}

pub(super) fn unsupported_expression(expr: &Expr) -> SqlError {
    match expr {
        Expr::Subquery(_)
        | Expr::InSubquery { .. }
        | Expr::Exists { .. }
        | Expr::AnyOp { .. }
        | Expr::AllOp { .. } => SqlError::unsupported("a subquery in an expression")
            .hint("Read it into a variable first, with SELECT … INTO in a procedure."),
        Expr::SimilarTo { .. } => SqlError::unsupported("SIMILAR TO").hint("Use LIKE."),
        Expr::RLike { .. } => SqlError::unsupported("a regular expression").hint("Use LIKE."),
        Expr::Tuple(_) => SqlError::unsupported("a row constructor"),
        Expr::Overlay { .. } => SqlError::unsupported("OVERLAY"),
        Expr::GroupingSets(_) | Expr::Cube(_) | Expr::Rollup(_) => SqlError::unsupported("GROUPING SETS"),
        Expr::IsNormalized { .. } => SqlError::unsupported("IS NORMALIZED"),
        Expr::Like { .. } | Expr::ILike { .. } => SqlError::unsupported("LIKE ANY"),
        other => SqlError::unsupported(format_args!("the expression {}", shortened(&other.to_string()))),
    }
}

/// The beginning of a construct, for errors.
pub(crate) fn shortened(text: &str) -> String {
    const SHOWN_MAX: usize = 60;
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_string(),
    }
}
