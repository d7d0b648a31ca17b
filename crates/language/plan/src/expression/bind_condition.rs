//! Binding of conditions that have a syntax of their own, and of CASE.

use crate::expression::build::boolean;
use crate::expression::refusals::{no_operator, unsupported_expression};
use crate::expression::written::row_of;
use crate::expression::{Binder, Expression, Kind, RowOperation};
use sqlparser::ast::{self, Expr, Spanned, ValueWithSpan};
use types::{DataType, ExecutionVersion, SqlError, SqlState, Value, common_type};
use values::{Comparison, LikeForm};

impl Binder<'_> {
    pub(super) fn bind_is(&self, expr: &Expr) -> Result<Expression, SqlError> {
        let truth = |operand: &Expr, truth: Option<bool>, expected: bool| {
            let operand = self.bind_condition(operand, "IS TRUE")?;
            Ok(boolean(Kind::IsTruth(truth, expected, Box::new(operand))))
        };
        let null = |operand: &Expr, expected: bool| {
            let operand = self.bind_known(operand)?;
            if operand.data_type.is_composite() {
                let operation = RowOperation::IsNull(expected);
                return Ok(Expression::row(operation, vec![operand], DataType::Boolean));
            }
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

    pub(super) fn bind_between(
        &self,
        operand: &Expr,
        negated: bool,
        low: &Expr,
        high: &Expr,
    ) -> Result<Expression, SqlError> {
        let value = self.bind(operand)?;
        let lower = self.compare(Comparison::GreaterOrEqual, self.again(&value)?, self.bind(low)?)?;
        let upper = self.compare(Comparison::LessOrEqual, value, self.bind(high)?)?;
        let both = boolean(Kind::And(vec![lower, upper]));
        Ok(if negated { boolean(Kind::Not(Box::new(both))) } else { both })
    }

    pub(super) fn bind_in_list(
        &self,
        operand: &Expr,
        list: &[Expr],
        negated: bool,
    ) -> Result<Expression, SqlError> {
        if let Some(row) = row_of(operand) {
            return self.bind_row_in_list(row, list, negated);
        }
        let mut operands = vec![self.bind(operand)?];
        for element in list {
            operands.push(self.bind(element)?);
        }
        if operands.iter().any(|operand| operand.data_type.is_composite()) {
            let operand = operands.remove(0);
            let like_it = |element: Expression| match element.data_type {
                DataType::Unknown => self.cast_to(element, operand.data_type),
                _ => Ok(element),
            };
            let list = operands.into_iter().map(like_it).collect::<Result<Vec<_>, _>>()?;
            return self.row_in_list(&operand, list, negated);
        }
        if self.scope.version() < ExecutionVersion::V2 {
            return self.in_list_of_version_1(operands, negated);
        }
        if !are_alike(&operands) {
            let operand = operands.remove(0);
            return self.in_mixed_list(operand, operands, negated);
        }
        let common = common_type(operands.iter().map(Expression::data_type)).unwrap_or(operands[0].data_type);
        if self.scope.version() >= ExecutionVersion::V8 {
            self.check_compared_elements(common)?;
            if common.is_unordered() {
                let symbol = if negated { Comparison::NotEqual } else { Comparison::Equal }.symbol();
                let other = if let [_, other] = operands.as_slice() { other.data_type } else { common };
                return Err(no_operator(&format!("{} {symbol} {}", common.family(), other.family())));
            }
        }
        self.in_list_of(operands, common, negated)
    }

    /// The same in execution version 1, which compared all values in the type that they have together.
    fn in_list_of_version_1(&self, operands: Vec<Expression>, negated: bool) -> Result<Expression, SqlError> {
        let Some(common) = common_type(operands.iter().map(Expression::data_type)) else {
            let other =
                operands.iter().find(|other| common_type([operands[0].data_type, other.data_type]).is_none());
            let other = other.map_or(DataType::Unknown, Expression::data_type);
            return Err(no_operator(&format!("{} = {other}", operands[0].data_type)));
        };
        self.in_list_of(operands, common, negated)
    }

    /// Whether the first value is one of the others, all of them in this type.
    fn in_list_of(
        &self,
        operands: Vec<Expression>,
        common: DataType,
        negated: bool,
    ) -> Result<Expression, SqlError> {
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

    /// A list of several types. As in PostgreSQL what looks at no column has one type together with the operand; what looks at
    /// columns is compared by itself.
    fn in_mixed_list(
        &self,
        operand: Expression,
        list: Vec<Expression>,
        negated: bool,
    ) -> Result<Expression, SqlError> {
        let looks = |element: &Expression| {
            element.any(&mut |inner| {
                matches!(inner.kind, Kind::Column(_) | Kind::Left(_) | Kind::Aggregate(_) | Kind::Window(_))
            })
        };
        let (mut alone, together): (Vec<_>, Vec<_>) = list.into_iter().partition(looks);
        let types = together.iter().map(Expression::data_type);
        let mut found = Vec::new();
        match common_type([operand.data_type].into_iter().chain(types)) {
            Some(common) if together.len() > 1 => {
                let operands = [self.again(&operand)?].into_iter().chain(together);
                let operands = operands.map(|operand| self.number_operand(operand, common));
                found.push(boolean(Kind::InList(true, operands.collect::<Result<_, _>>()?)));
            }
            _ => alone.splice(0..0, together).for_each(drop),
        }
        for element in alone {
            found.push(self.compare(Comparison::Equal, self.again(&operand)?, element)?);
        }
        let found = boolean(Kind::Or(found));
        Ok(if negated { boolean(Kind::Not(Box::new(found))) } else { found })
    }

    pub(super) fn bind_like(
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
            matches!(
                operand.data_type,
                DataType::Text(_) | DataType::Char(_) | DataType::Unknown | DataType::Citext
            )
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
        // The left side says it: the operators of citext take one there.
        let is_citext = matches!(
            (text.data_type, pattern.data_type),
            (DataType::Citext, _) | (DataType::Unknown, DataType::Citext)
        );
        let ignore_case = ignore_case || is_citext;
        let as_text = |operand: Expression| match operand.data_type {
            DataType::Citext => self.cast_to(operand, DataType::Text(None)),
            _ => self.known(operand),
        };
        let operands = Box::new([as_text(text)?, as_text(pattern)?]);
        Ok(boolean(Kind::Like(LikeForm { negated, ignore_case, escape }, operands)))
    }

    pub(super) fn bind_similar(
        &self,
        negated: bool,
        text: &Expr,
        pattern: &Expr,
        escape: Option<&ValueWithSpan>,
    ) -> Result<Expression, SqlError> {
        let mut operands = vec![self.bind_known(text)?, self.bind_known(pattern)?];
        if let Some(escape) = escape {
            let escape = self.bind_literal(escape)?;
            operands.push(self.known(escape)?);
        }
        let similar = self.bind_operator("SIMILAR TO", operands, text.span())?;
        Ok(if negated { boolean(Kind::Not(Box::new(similar))) } else { similar })
    }

    pub(super) fn bind_case(
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
                    let value = self.bind(&when.condition)?;
                    let operand = match (operand.data_type, value.data_type) {
                        // The literal is a text before anything is compared with it; in version 1 it was not.
                        (DataType::Unknown, DataType::Char(_))
                            if self.scope.version() >= ExecutionVersion::V2 =>
                        {
                            self.cast_to(self.again(operand)?, DataType::Text(None))?
                        }
                        _ => self.again(operand)?,
                    };
                    self.compare(Comparison::Equal, operand, value)?
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
}

/// Whether values of a list compare without a cast, but for literals.
fn are_alike(operands: &[Expression]) -> bool {
    let families = || operands.iter().map(|operand| operand.data_type.family());
    let mut known = families().filter(|family| *family != DataType::Unknown);
    let Some(first) = known.next() else { return true };
    known.all(|family| family == first || (family.is_integer() && first.is_integer()))
}
