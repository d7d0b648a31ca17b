//! CASE and COALESCE: one of several values, all of one type.

use crate::bind::{Binder, Operand};
use crate::data_type::{Kind, PRECISION_MAX, SCALE_MAX, digits_of, integer_rank, kind_of, numeric};
use crate::expression::{Expression, Term};
use crate::fit::{meeting, mismatch};
use crate::refusal::refused;
use sqlparser::ast::{CaseWhen, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments};
use syntax::names::name_of;
use types::{DataType, SqlError};

impl Binder<'_> {
    /// CASE WHEN …
    pub(crate) fn case(
        &self,
        conditions: &[CaseWhen],
        otherwise: Option<&Expr>,
        towards: Option<DataType>,
    ) -> Result<Expression, SqlError> {
        let mut branches = Vec::with_capacity(conditions.len());
        for branch in conditions {
            branches.push(self.condition(&branch.condition, "CASE/WHEN")?);
        }
        let results = conditions.iter().map(|branch| &branch.result).chain(otherwise);
        let values = results.map(|value| self.operand(value, towards)).collect::<Result<Vec<_>, _>>()?;
        let (mut values, data_type) = alike(values, "CASE", towards)?;
        let otherwise = otherwise.and_then(|_| values.pop()).map(Box::new);
        let branches = branches.into_iter().zip(values).collect();
        Ok(Expression { term: Term::Case { branches, otherwise }, data_type })
    }

    /// COALESCE; `None` where it is another function.
    pub(crate) fn coalesce(
        &self,
        function: &Function,
        towards: Option<DataType>,
    ) -> Result<Option<Expression>, SqlError> {
        let [name] = function.name.0.as_slice() else { return Ok(None) };
        let is_coalesce =
            name.as_ident().is_some_and(|ident| name_of(ident).is_ok_and(|name| name == "coalesce"));
        let FunctionArguments::List(list) = &function.args else { return Ok(None) };
        let is_plain = function.filter.is_none()
            && function.over.is_none()
            && function.null_treatment.is_none()
            && function.within_group.is_empty()
            && list.clauses.is_empty()
            && list.duplicate_treatment.is_none();
        if !is_coalesce || !is_plain {
            return Ok(None);
        }
        let mut values = Vec::with_capacity(list.args.len());
        for argument in &list.args {
            let FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) = argument else { return Ok(None) };
            values.push(self.operand(value, towards)?);
        }
        if values.iter().all(|value| matches!(value, Operand::Written(_))) {
            return Err(refused("COALESCE of constants").hint("Write the first that is not NULL."));
        }
        let (values, data_type) = alike(values, "COALESCE", towards)?;
        Ok(Some(Expression { term: Term::Coalesce(values), data_type }))
    }
}

/// The values with one type, which they have in PostgreSQL as well.
fn alike(
    values: Vec<Operand>,
    clause: &str,
    towards: Option<DataType>,
) -> Result<(Vec<Expression>, DataType), SqlError> {
    let common = common_type(&values, clause, towards)?;
    let mut alike = Vec::with_capacity(values.len());
    let mut data_type = None;
    for value in values {
        let value = match value {
            Operand::Written(written) => meeting(written, clause, common)?,
            Operand::Bound(bound) => bound,
        };
        let is_null = matches!(value.term, Term::Constant(types::Value::Null));
        data_type = match data_type {
            _ if is_null => data_type,
            None => Some(value.data_type),
            Some(known) => Some(joined(known, value.data_type, clause)?),
        };
        alike.push(value);
    }
    let Some(data_type) = data_type else {
        return Err(refused(format_args!("{clause} with nothing but NULL")).hint("Write NULL."));
    };
    for value in &mut alike {
        if matches!(value.term, Term::Constant(types::Value::Null)) {
            value.data_type = data_type;
        }
    }
    Ok((alike, data_type))
}

/// The type that constants among the values get: that of a column or of an expression, else of the column that the value is for,
/// else of the widest constant.
fn common_type(values: &[Operand], clause: &str, towards: Option<DataType>) -> Result<DataType, SqlError> {
    let mut bound = values.iter().filter(|value| matches!(value, Operand::Bound(_))).map(Operand::data_type);
    if let Some(first) = bound.next() {
        return bound.try_fold(first, |common, next| joined(common, next, clause));
    }
    let written = values.iter().map(Operand::data_type).filter(|known| *known != DataType::Unknown);
    let mut widest = None;
    for next in written {
        widest = Some(match widest {
            None => next,
            Some(known) if kind_of(known) != kind_of(next) => return Err(mismatch(known, clause, next)),
            Some(known) => match (integer_rank(known), integer_rank(next)) {
                (Some(first), Some(second)) => {
                    if first < second {
                        next
                    } else {
                        known
                    }
                }
                (Some(_), None) => next,
                _ => known,
            },
        });
    }
    Ok(match (towards, widest) {
        (Some(towards), None) => towards,
        (Some(towards), Some(widest)) if kind_of(towards) == kind_of(widest) => towards,
        (_, Some(widest)) => widest,
        (None, None) => DataType::Text(None),
    })
}

/// One type for values of two.
fn joined(left: DataType, right: DataType, clause: &str) -> Result<DataType, SqlError> {
    if left == right {
        return Ok(left);
    }
    if kind_of(left) != kind_of(right) {
        return Err(mismatch(left, clause, right));
    }
    let different = || {
        refused(format_args!("{clause} with values of types {left} and {right}"))
            .hint("Give all values one type: cast a column of integers with x::bigint.")
    };
    match (integer_rank(left), integer_rank(right)) {
        _ if kind_of(left) == Some(Kind::Text) => return Ok(DataType::Text(None)),
        (None, None) => {}
        _ => return Err(different()),
    }
    let (Some((left_precision, left_scale)), Some((right_precision, right_scale))) =
        (digits_of(left), digits_of(right))
    else {
        return Err(different());
    };
    let (whole, scale) =
        ((left_precision - left_scale).max(right_precision - right_scale), left_scale.max(right_scale));
    if whole + scale > PRECISION_MAX || scale > SCALE_MAX {
        return Err(different());
    }
    Ok(numeric(whole + scale, scale))
}
