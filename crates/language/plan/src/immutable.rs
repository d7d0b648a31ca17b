//! Whether an expression has the same value whenever it is evaluated, by what PostgreSQL says of its functions and casts. Here they
//! all have: zone, formats and labels are the same for everybody. But a definition that PostgreSQL refuses is refused here, too.

use crate::expression::{Expression, Kind, RowOperation};
use crate::random::RandomFunction;
use crate::session_facts::SessionFunction;
use types::DataType;

/// Whether PostgreSQL says that it may have another value at another time.
pub(crate) fn is_mutable(expression: &Expression) -> bool {
    expression.any(&mut |inner| match &inner.kind {
        Kind::Now | Kind::Format(_) => true,
        Kind::Call(call) => {
            let name = &call.callee.name;
            RandomFunction::named(name).is_some() || SessionFunction::named(name).is_some()
        }
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
        Kind::Concatenate(operands) => operands.iter().any(|operand| {
            !is_text(operand.data_type)
                && operand.data_type != DataType::Bytea
                && is_mutable_text(operand.data_type)
        }),
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

fn is_text(data_type: DataType) -> bool {
    matches!(data_type, DataType::Text(_) | DataType::Char(_) | DataType::Unknown)
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
