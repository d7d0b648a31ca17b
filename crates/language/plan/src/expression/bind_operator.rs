//! Binding of operators.

use crate::expression::bind_json::is_of_json;
use crate::expression::bind_row_comparison::RowComparison;
use crate::expression::build::{boolean, number};
use crate::expression::refusals::{no_operator, no_sort_operator, not_unique};
use crate::expression::written::comparison_of;
use crate::expression::written::row_of;
use crate::expression::{Binder, Expression, Kind};
use sqlparser::ast::{self, BinaryOperator, Expr, Spanned, UnaryOperator};
use types::{
    ArithmeticOperator, DataType, ExecutionVersion, OperatorTypes, SqlError, arithmetic_result,
    operator_types,
};
use values::Comparison;

impl Binder<'_> {
    pub(super) fn bind_unary(&self, op: UnaryOperator, operand: &Expr) -> Result<Expression, SqlError> {
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
            UnaryOperator::PGPrefixFactorial if self.scope.version() >= ExecutionVersion::V15 => {
                let bound = self.bind(operand)?;
                self.bind_operator("!!", vec![bound], operand.span())
            }
            other => Err(SqlError::unsupported(format_args!("the operator {other}"))),
        }
    }

    pub(super) fn bind_binary(
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
            | BinaryOperator::PGRegexMatch
            | BinaryOperator::PGRegexIMatch
            | BinaryOperator::PGRegexNotMatch
            | BinaryOperator::PGRegexNotIMatch
            | BinaryOperator::PGExp => {
                let operands = vec![self.bind(left)?, self.bind(right)?];
                return self.bind_operator(&op.to_string(), operands, left.span());
            }
            BinaryOperator::Arrow
            | BinaryOperator::LongArrow
            | BinaryOperator::HashArrow
            | BinaryOperator::HashLongArrow
            | BinaryOperator::HashMinus
            | BinaryOperator::Question
            | BinaryOperator::QuestionAnd
            | BinaryOperator::QuestionPipe
            | BinaryOperator::Custom(_)
                if self.has_json() && is_of_json(op) =>
            {
                return self.bind_json_operator(op, left, right);
            }
            other => comparison_of(other),
        };
        let is_of_table =
            matches!(op, BinaryOperator::Custom(_) | BinaryOperator::AndLt | BinaryOperator::AndGt);
        let is_of_search = matches!(op, BinaryOperator::AtAt | BinaryOperator::LtDashGt)
            && self.scope.version() >= ExecutionVersion::V15;
        if is_of_search || (is_of_table && self.scope.version() >= ExecutionVersion::V10) {
            let operands = vec![self.bind(left)?, self.bind(right)?];
            return self.bind_operator(&op.to_string(), operands, left.span());
        }
        let Some(comparison) = comparison else {
            let error = SqlError::unsupported(format_args!("the operator {op}"));
            return Err(self.at(error, left.span()));
        };
        if let (Some(left_row), Some(right_row)) = (row_of(left), row_of(right)) {
            return self
                .compare_rows(comparison, left_row, right_row)
                .map_err(|error| self.at(error, left.span()));
        }
        // Version 1 had no comparison of a row with a query.
        if self.scope.version() >= ExecutionVersion::V2
            && let Some(compared) = self.row_and_query(left, comparison, right)?
        {
            return Ok(compared);
        }
        let (left_bound, right_bound) = (self.bind(left)?, self.bind(right)?);
        self.compare(comparison, left_bound, right_bound).map_err(|error| self.at(error, left.span()))
    }

    /// A chain of ANDs or ORs becomes one node, without recursion along the chain.
    pub(super) fn bind_logical(&self, whole: &Expr, op: &BinaryOperator) -> Result<Expression, SqlError> {
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

    pub(super) fn bind_arithmetic(
        &self,
        op: ArithmeticOperator,
        left: &Expr,
        right: &Expr,
    ) -> Result<Expression, SqlError> {
        let span = left.span();
        let (left, right) = (self.bind(left)?, self.bind(right)?);
        if op == ArithmeticOperator::Subtract
            && let Some(deleted) = self
                .json_operator(&BinaryOperator::Minus, &left, &right)
                .map_err(|error| self.at(error, span))?
        {
            return Ok(deleted);
        }
        let own = self.symbol_operator(&op.to_string(), &left, &right);
        if let Some(own) = own.map_err(|error| self.at(error, span))? {
            return Ok(own);
        }
        if op == ArithmeticOperator::Remainder && self.compares_trigrams(&left, &right) {
            return self.bind_operator("%", vec![left, right], span);
        }
        self.arithmetic(op, left, right).map_err(|error| self.at(error, span))
    }

    /// Whether `%` asks how alike texts are, as in PostgreSQL's extension pg_trgm.
    fn compares_trigrams(&self, left: &Expression, right: &Expression) -> bool {
        let is_text = |operand: &Expression| {
            matches!(operand.data_type, DataType::Text(_) | DataType::Char(_) | DataType::Citext)
        };
        let may_be = |operand: &Expression| is_text(operand) || operand.data_type == DataType::Unknown;
        self.scope.version() >= ExecutionVersion::V16
            && (is_text(left) || is_text(right))
            && may_be(left)
            && may_be(right)
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
    pub(super) fn number_operand(
        &self,
        operand: Expression,
        target: DataType,
    ) -> Result<Expression, SqlError> {
        match operand.data_type.is_integer() && target.is_integer() {
            true => Ok(operand),
            false => self.cast_to(operand, target.family()),
        }
    }

    pub(super) fn bind_concatenation(&self, left: &Expr, right: &Expr) -> Result<Expression, SqlError> {
        let (left, right) = (self.bind(left)?, self.bind(right)?);
        if let Some(both) = self.json_operator(&BinaryOperator::StringConcat, &left, &right)? {
            return Ok(both);
        }
        if let Some(both) = self.symbol_operator("||", &left, &right)? {
            return Ok(both);
        }
        if left.data_type.element().is_some() || right.data_type.element().is_some() {
            return self.concatenate_arrays(left, right);
        }
        let text = |operand: &Expression| {
            matches!(
                operand.data_type,
                DataType::Text(_) | DataType::Char(_) | DataType::Citext | DataType::Unknown
            )
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

    /// A comparison of two operands, brought to the type in which both are compared.
    ///
    /// # Errors
    /// `42883` where their types have no such operator.
    pub fn compare(
        &self,
        comparison: Comparison,
        left: Expression,
        right: Expression,
    ) -> Result<Expression, SqlError> {
        let rows = RowComparison::Operator(comparison);
        if let Some(compared) = self.compare_composites(rows, &left, &right)? {
            return Ok(compared);
        }
        let operands = self.comparable(comparison.symbol(), left, right)?;
        // PostgreSQL orders them, but has no such operators.
        let is_order = !matches!(comparison, Comparison::Equal | Comparison::NotEqual);
        if is_order && operands[0].data_type == DataType::Hstore {
            return Err(no_operator(&format!("hstore {} hstore", comparison.symbol())));
        }
        Ok(boolean(Kind::Compare(comparison, Box::new(operands))))
    }

    /// The type in which values of two types compare. In version 1 a `char(n)` and a `varchar(n)` did as texts.
    pub(super) fn comparison_type(&self, left: DataType, right: DataType) -> Option<DataType> {
        use DataType::{Char, Text};
        match (left, right) {
            (Char(_), Text(_)) | (Text(_), Char(_)) if self.scope.version() < ExecutionVersion::V2 => {
                Some(Text(None))
            }
            _ => types::comparison_type(left, right),
        }
    }

    /// Both with the type in which they compare.
    pub(super) fn comparable(
        &self,
        symbol: &str,
        left: Expression,
        right: Expression,
    ) -> Result<[Expression; 2], SqlError> {
        let Some(common) = self.comparison_type(left.data_type, right.data_type) else {
            // Arrays have the operator, and look for that of their elements.
            if left.data_type.element().is_some() && left.data_type == right.data_type {
                return Err(no_sort_operator(left.data_type.element().unwrap_or(left.data_type), "equality"));
            }
            return Err(no_operator(&format!(
                "{} {symbol} {}",
                left.data_type.family(),
                right.data_type.family()
            )));
        };
        self.check_compared_elements(common)?;
        Ok([self.number_operand(left, common)?, self.number_operand(right, common)?])
    }

    pub(super) fn bind_distinct(
        &self,
        distinct: bool,
        left: &Expr,
        right: &Expr,
    ) -> Result<Expression, SqlError> {
        let (left, right) = (self.bind(left)?, self.bind(right)?);
        self.distinct(distinct, left, right)
    }

    pub(super) fn distinct(
        &self,
        distinct: bool,
        left: Expression,
        right: Expression,
    ) -> Result<Expression, SqlError> {
        let rows = RowComparison::Distinct(distinct);
        if let Some(compared) = self.compare_composites(rows, &left, &right)? {
            return Ok(compared);
        }
        let operands = self.comparable("=", left, right)?;
        Ok(boolean(Kind::Distinct(distinct, Box::new(operands))))
    }
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
