//! Casts: what an expression becomes where another type is asked for.

use crate::expression::build::fold;
use crate::expression::row::RowOperation;
use crate::expression::{Binder, Expression, Kind};
use types::{
    DataType, SqlError, SqlState, Value, can_cast_explicitly, can_cast_implicitly, can_cast_in_assignment,
    common_type,
};
use values::functions;

impl Binder<'_> {
    /// All cast to their common type.
    pub(super) fn unify(
        &self,
        expressions: Vec<Expression>,
        construct: &str,
    ) -> Result<(Vec<Expression>, DataType), SqlError> {
        let Some(common) = common_type(expressions.iter().map(Expression::data_type)) else {
            let mut types = expressions.iter().map(Expression::data_type);
            let first = types.find(|data_type| *data_type != DataType::Unknown).unwrap_or(DataType::Unknown);
            let other = types.find(|other| common_type([first, *other]).is_none()).unwrap_or(first);
            let message =
                format!("{construct} types {} and {} cannot be matched", first.family(), other.family());
            return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
        };
        let cast = expressions.into_iter().map(|expression| self.cast_to(expression, common));
        Ok((cast.collect::<Result<_, _>>()?, common))
    }

    /// What CAST says.
    pub(super) fn explicit_cast(
        &self,
        operand: Expression,
        target: DataType,
    ) -> Result<Expression, SqlError> {
        if let DataType::Domain(_) = target {
            let base = self.types().base_of(target);
            return Ok(self.checked(self.explicit_cast(operand, base)?, target));
        }
        if let DataType::Rounded(of, digits) = target {
            return Ok(rounded(self.explicit_cast(operand, of.data_type())?, digits));
        }
        if operand.data_type == DataType::Unknown {
            return self.unknown_to(operand, target, true);
        }
        if !can_cast_explicitly(operand.data_type, target) {
            let message = format!("cannot cast type {} to {}", operand.data_type.family(), target.family());
            return Err(SqlError::new(SqlState(*b"42846"), message));
        }
        if target.needs_catalog() {
            return self.convert_row(operand, target, true);
        }
        Ok(converted(operand, target, Kind::Cast))
    }

    /// The value, held against the conditions of a domain.
    pub fn checked(&self, value: Expression, domain: DataType) -> Expression {
        let DataType::Domain(id) = domain else { return value };
        let data_type = value.data_type;
        Expression::row(RowOperation::CheckDomain(id, self.types().clone()), vec![value], data_type)
    }

    /// The value, in which rows have columns of domains, held against their conditions.
    pub fn checked_inside(&self, value: Expression) -> Expression {
        let data_type = value.data_type;
        Expression::row(RowOperation::CheckInside(self.types().clone()), vec![value], data_type)
    }

    /// An implicit cast, which the caller knows to exist.
    ///
    /// # Errors
    /// A literal of unknown type that is no such value.
    pub fn cast_to(&self, operand: Expression, target: DataType) -> Result<Expression, SqlError> {
        if let DataType::Rounded(of, digits) = target {
            return Ok(rounded(self.cast_to(operand, of.data_type())?, digits));
        }
        if operand.data_type == DataType::Unknown {
            return self.unknown_to(operand, target, false);
        }
        if target.needs_catalog() {
            return self.convert_row(operand, target, false).map(fold);
        }
        Ok(fold(converted(operand, target, Kind::Cast)))
    }

    fn unknown_to(
        &self,
        operand: Expression,
        target: DataType,
        explicit: bool,
    ) -> Result<Expression, SqlError> {
        match operand.kind {
            Kind::Constant(Value::Null) => Ok(Expression::constant(Value::Null, target)),
            Kind::Constant(value) => {
                if let Value::Text(text) = &value
                    && let Some(moment) = self.clock_literal(text, target)
                {
                    return Ok(moment);
                }
                let types = self.types();
                let value =
                    if explicit { types.cast(value, target)? } else { types.assign(value, target)? };
                Ok(Expression::constant(value, target))
            }
            Kind::Slot(slot) => {
                self.scope.infer(usize::from(slot), target.family());
                let parameter = Expression { kind: Kind::Slot(slot), data_type: target.family() };
                Ok(converted(parameter, target, if explicit { Kind::Cast } else { Kind::Assign }))
            }
            _ => Ok(converted(operand, target, Kind::Cast)),
        }
    }

    /// The expression as the value of a column, by the rules of assignment.
    ///
    /// # Errors
    /// `42804` where there is no such cast.
    pub fn assign_to_column(
        &self,
        expression: Expression,
        column: &str,
        target: DataType,
    ) -> Result<Expression, SqlError> {
        if let DataType::Domain(_) = target {
            let base = self.types().base_of(target);
            return Ok(self.checked(self.assign_to_column(expression, column, base)?, target));
        }
        if let DataType::Rounded(of, digits) = target {
            return Ok(rounded(self.assign_to_column(expression, column, of.data_type())?, digits));
        }
        if expression.data_type == DataType::Unknown {
            return self.unknown_to(expression, target, false);
        }
        if !can_cast_in_assignment(expression.data_type, target) {
            let message = format!(
                "column \"{column}\" is of type {} but expression is of type {}",
                target.family_name(),
                expression.data_type.family_name()
            );
            return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message)
                .hint("You will need to rewrite or cast the expression."));
        }
        if target.needs_catalog() {
            return self.convert_row(expression, target, false).map(fold);
        }
        Ok(fold(converted(expression, target, Kind::Assign)))
    }

    /// The expression as an argument of this type, by the rules of function calls.
    pub fn argument(&self, expression: Expression, target: DataType) -> Option<Expression> {
        can_cast_implicitly(expression.data_type, target).then(|| self.cast_to(expression, target).ok())?
    }
}

/// PostgreSQL's name of a type in messages about columns: without length, precision and scale.
trait FamilyName {
    fn family_name(self) -> String;
}

impl FamilyName for DataType {
    fn family_name(self) -> String {
        match self {
            DataType::Text(Some(_)) => "character varying".to_string(),
            other => other.family().to_string(),
        }
    }
}

/// A value of a type of time with so many digits of a second.
fn rounded(value: Expression, digits: u8) -> Expression {
    let data_type = value.data_type;
    let digits = Expression::constant(Value::Integer(i32::from(digits)), DataType::Integer);
    fold(Expression { kind: Kind::Function(&functions::ROUND_TIME, vec![value, digits]), data_type })
}

/// A cast, or the expression itself where the value is of that type already.
fn converted(operand: Expression, target: DataType, kind: fn(Box<Expression>) -> Kind) -> Expression {
    if operand.data_type == target {
        return operand;
    }
    // The type of a cast says what it does: `x::varchar(3)` stays one where it is used as a text.
    let is_cast = matches!(operand.kind, Kind::Cast(_) | Kind::Assign(_));
    let takes_all = target == operand.data_type.family()
        || (target == DataType::VARCHAR && operand.data_type.family() == target.family());
    if takes_all && !is_cast {
        return Expression { data_type: target, ..operand };
    }
    Expression { kind: kind(Box::new(operand)), data_type: target }
}
