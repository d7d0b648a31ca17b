//! Whether an expression has the same value whenever it is evaluated, by what PostgreSQL says of its functions and casts. Here they
//! all have as long as a session keeps its zone and its forms of values.

use crate::expression::{Expression, Kind, RowOperation};
use crate::routines::Routines;
use crate::scope::VariableScope;
use types::{DataType, Volatility};

/// Whether PostgreSQL says that it may have another value at another time. `scope`: in which it was bound.
pub(crate) fn is_mutable(expression: &Expression, scope: &VariableScope) -> bool {
    if scope.folds_session() {
        return true;
    }
    expression.any(&mut |inner| match &inner.kind {
        Kind::Now | Kind::Format(_) => true,
        Kind::Call(call) => !is_immutable_routine(scope.routines(), &call.callee.name),
        Kind::Cast(operand) | Kind::Assign(operand) => {
            is_mutable_cast(operand.data_type.family(), inner.data_type.family())
        }
        Kind::Row(operation, operands) => match (operation.as_ref(), operands.as_slice()) {
            (RowOperation::Convert(..), [operand]) => {
                is_mutable_cast(operand.data_type.family(), inner.data_type.family())
            }
            (RowOperation::OfJson(..) | RowOperation::EnumValues(..), _) => true,
            _ => false,
        },
        Kind::Concatenate(operands) => operands.iter().any(|operand| is_mutable_text(operand.data_type)),
        Kind::Arithmetic(_, operands) => {
            let is = |data_type| operands.iter().any(|operand| operand.data_type == data_type);
            is(DataType::TimestampTz) && is(DataType::Interval)
        }
        Kind::Function(function, operands) => {
            !function.is_immutable(operands.iter().map(|operand| operand.data_type))
        }
        _ => false,
    })
}

/// What is no routine of the ledger draws something, or asks who executes the statement.
fn is_immutable_routine(routines: &Routines, name: &str) -> bool {
    let function = routines.named(name).and_then(|known| known.definition.function.as_ref());
    function.is_some_and(|function| function.volatility == Volatility::Immutable)
}

fn is_text(data_type: DataType) -> bool {
    matches!(data_type, DataType::Text(_) | DataType::Char(_) | DataType::Citext | DataType::Unknown)
}

/// Whether a value of this type is written as the session or the catalog says.
fn is_mutable_text(data_type: DataType) -> bool {
    use DataType::{Array, Composite, Date, Enum, Interval, Record, Timestamp, TimestampTz};
    matches!(
        data_type,
        Date | Timestamp | TimestampTz | Interval | Enum(_) | Composite(_) | Record | Array(_)
    )
}

fn is_mutable_cast(from: DataType, to: DataType) -> bool {
    use DataType::{Date, Time, Timestamp, TimestampTz};
    match (from, to) {
        (from, to) if is_text(from) => to == Time || is_mutable_text(to),
        (from, to) if is_text(to) => is_mutable_text(from),
        (Timestamp, TimestampTz)
        | (TimestampTz, Timestamp)
        | (Date, TimestampTz)
        | (TimestampTz, Date | Time) => true,
        (DataType::Array(from), DataType::Array(to)) => {
            is_mutable_cast(from.data_type().family(), to.data_type().family())
        }
        _ => false,
    }
}
