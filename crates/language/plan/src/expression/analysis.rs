//! What can be told of an expression without evaluating it.

use crate::expression::{Environment, Expression, Kind, RoutineCall};
use types::session_format::session_zone;
use types::time_zone::TimeZone;
use types::{ColumnSet, DataType, Value, format_value};

impl Expression {
    /// The operands, in order of evaluation.
    pub fn operands(&self) -> Vec<&Expression> {
        match &self.kind {
            Kind::Constant(_)
            | Kind::Column(_)
            | Kind::Slot(_)
            | Kind::Argument(_)
            | Kind::Left(_)
            | Kind::State(_)
            | Kind::Now
            | Kind::Aggregate(_)
            | Kind::Window(_) => Vec::new(),
            Kind::Subquery(subquery) => subquery.operands.iter().chain(&subquery.arguments).collect(),
            Kind::Call(call) => call.arguments.iter().collect(),
            Kind::Cast(operand)
            | Kind::Assign(operand)
            | Kind::Negate(operand)
            | Kind::Not(operand)
            | Kind::IsNull(_, operand)
            | Kind::IsTruth(_, _, operand) => vec![operand],
            Kind::Arithmetic(_, operands)
            | Kind::Concatenate(operands)
            | Kind::Compare(_, operands)
            | Kind::Distinct(_, operands)
            | Kind::Like(_, operands) => operands.iter().collect(),
            Kind::And(operands)
            | Kind::Or(operands)
            | Kind::InList(_, operands)
            | Kind::Coalesce(operands)
            | Kind::Extreme(_, operands)
            | Kind::Format(operands)
            | Kind::Row(_, operands)
            | Kind::Function(_, operands) => operands.iter().collect(),
            Kind::Case(branches, otherwise) => branches
                .iter()
                .flat_map(|(condition, result)| [condition, result])
                .chain([otherwise.as_ref()])
                .collect(),
        }
    }

    /// The operands, to be changed.
    pub fn operands_mut(&mut self) -> Vec<&mut Expression> {
        match &mut self.kind {
            Kind::Constant(_)
            | Kind::Column(_)
            | Kind::Slot(_)
            | Kind::Argument(_)
            | Kind::Left(_)
            | Kind::State(_)
            | Kind::Now
            | Kind::Aggregate(_)
            | Kind::Window(_) => Vec::new(),
            Kind::Subquery(subquery) => {
                let subquery = subquery.as_mut();
                subquery.operands.iter_mut().chain(&mut subquery.arguments).collect()
            }
            Kind::Call(call) => call.arguments.iter_mut().collect(),
            Kind::Cast(operand)
            | Kind::Assign(operand)
            | Kind::Negate(operand)
            | Kind::Not(operand)
            | Kind::IsNull(_, operand)
            | Kind::IsTruth(_, _, operand) => vec![operand],
            Kind::Arithmetic(_, operands)
            | Kind::Concatenate(operands)
            | Kind::Compare(_, operands)
            | Kind::Distinct(_, operands)
            | Kind::Like(_, operands) => operands.iter_mut().collect(),
            Kind::And(operands)
            | Kind::Or(operands)
            | Kind::InList(_, operands)
            | Kind::Coalesce(operands)
            | Kind::Extreme(_, operands)
            | Kind::Format(operands)
            | Kind::Row(_, operands)
            | Kind::Function(_, operands) => operands.iter_mut().collect(),
            Kind::Case(branches, otherwise) => branches
                .iter_mut()
                .flat_map(|(condition, result)| [condition, result])
                .chain([otherwise.as_mut()])
                .collect(),
        }
    }

    /// True where this expression or one inside of it fulfils `test`.
    pub fn any(&self, test: &mut dyn FnMut(&Expression) -> bool) -> bool {
        test(self) || self.operands().into_iter().any(|operand| operand.any(test))
    }

    /// True where it is itself a query or a call, which an execution must run.
    pub fn is_run(&self) -> bool {
        matches!(self.kind, Kind::Subquery(_) | Kind::Call(_))
    }

    /// True where a query or a call stands inside.
    pub fn runs_anything(&self) -> bool {
        self.any(&mut Expression::is_run)
    }

    /// Visits the calls of functions inside, those of its queries left out.
    pub fn visit_calls(&self, visit: &mut dyn FnMut(&RoutineCall)) {
        self.any(&mut |inner| {
            if let Kind::Call(call) = &inner.kind {
                visit(call);
            }
            false
        });
    }

    /// The columns that it looks at.
    pub fn columns(&self) -> ColumnSet {
        let mut columns = ColumnSet::EMPTY;
        self.any(&mut |expression| {
            if let Kind::Column(ordinal) = expression.kind {
                columns |= ColumnSet::column(usize::from(ordinal));
            }
            false
        });
        columns
    }

    /// True where its value is the same for every row. What may change rows is run for each.
    pub fn is_row_independent(&self) -> bool {
        !self.any(&mut |expression| match &expression.kind {
            Kind::Column(_) | Kind::State(_) | Kind::Aggregate(_) | Kind::Window(_) => true,
            Kind::Call(call) => call.is_volatile,
            _ => false,
        })
    }

    /// True where it has the same value wherever and whenever it is evaluated.
    pub fn is_constant(&self) -> bool {
        !self.any(&mut |expression| {
            matches!(
                expression.kind,
                Kind::Column(_)
                    | Kind::Slot(_)
                    | Kind::Argument(_)
                    | Kind::Left(_)
                    | Kind::State(_)
                    | Kind::Subquery(_)
                    | Kind::Call(_)
                    | Kind::Now
                    | Kind::Aggregate(_)
                    | Kind::Window(_)
            )
        })
    }

    /// The conditions that must all be true for this one to be true.
    pub fn into_conjuncts(self) -> Vec<Expression> {
        match self.kind {
            Kind::And(operands) => operands.into_iter().flat_map(Expression::into_conjuncts).collect(),
            _ => vec![self],
        }
    }

    /// False only where evaluation gives no error, whatever the row and the variables.
    pub fn can_fail(&self) -> bool {
        let fails = match &self.kind {
            Kind::Cast(operand) | Kind::Assign(operand) => !is_total_cast(operand.data_type, self.data_type),
            Kind::Arithmetic(..) | Kind::Negate(_) | Kind::Concatenate(_) | Kind::Like(..) => true,
            Kind::Function(function, _) => function.can_fail(),
            Kind::Row(operation, _) => operation.can_fail(),
            Kind::Aggregate(_) | Kind::Window(_) | Kind::Subquery(_) | Kind::Call(_) | Kind::Format(_) => {
                true
            }
            _ => false,
        };
        fails || self.operands().into_iter().any(Expression::can_fail)
    }

    /// The values that a condition may have where only some columns are known.
    pub fn possible_truths(&self, known: &[Option<Value>], frame: &[Value], now: i64) -> Truths {
        match &self.kind {
            Kind::And(operands) => operands
                .iter()
                .fold(Truths::TRUE, |truths, operand| truths.and(operand.possible_truths(known, frame, now))),
            Kind::Or(operands) => operands
                .iter()
                .fold(Truths::TRUE, |truths, operand| {
                    truths.and(operand.possible_truths(known, frame, now).not())
                })
                .not(),
            Kind::Not(operand) => operand.possible_truths(known, frame, now).not(),
            _ => self.evaluate_known(known, frame, now),
        }
    }

    /// Evaluates where every column it needs is known.
    fn evaluate_known(&self, known: &[Option<Value>], frame: &[Value], now: i64) -> Truths {
        let mut row = Vec::new();
        let unknown = self.any(&mut |expression| match expression.kind {
            Kind::Column(ordinal) => match known.get(usize::from(ordinal)) {
                Some(Some(value)) => {
                    let ordinal = usize::from(ordinal);
                    if row.len() <= ordinal {
                        row.resize(ordinal + 1, Value::Null);
                    }
                    row[ordinal] = value.clone();
                    false
                }
                _ => true,
            },
            Kind::Argument(_) | Kind::Left(_) | Kind::State(_) | Kind::Subquery(_) | Kind::Call(_) => true,
            _ => false,
        });
        if unknown {
            return Truths::ANY;
        }
        match self.truth(&Environment::new(&row, frame, now)) {
            Ok(Some(true)) => Truths::TRUE,
            Ok(Some(false)) => Truths::FALSE,
            Ok(None) => Truths::NULL,
            Err(_) => Truths::ANY,
        }
    }
}

/// A set of truth values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Truths(u8);

impl Truths {
    pub const TRUE: Truths = Truths(1);
    pub const FALSE: Truths = Truths(2);
    pub const NULL: Truths = Truths(4);
    pub const ANY: Truths = Truths(7);

    /// Whether true is among them.
    pub fn may_be_true(self) -> bool {
        self.0 & Truths::TRUE.0 != 0
    }

    fn contains(self, other: Truths) -> bool {
        self.0 & other.0 != 0
    }

    fn not(self) -> Truths {
        let swapped = ((self.0 & 1) << 1) | ((self.0 & 2) >> 1);
        Truths(swapped | (self.0 & Truths::NULL.0))
    }

    /// Every AND of a value of this set with one of the other.
    fn and(self, other: Truths) -> Truths {
        let mut result = 0;
        if self.contains(Truths::TRUE) && other.contains(Truths::TRUE) {
            result |= Truths::TRUE.0;
        }
        if self.contains(Truths::FALSE) || other.contains(Truths::FALSE) {
            result |= Truths::FALSE.0;
        }
        let undecided = |a: Truths, b: Truths| {
            a.contains(Truths::NULL) && (b.contains(Truths::NULL) || b.contains(Truths::TRUE))
        };
        if undecided(self, other) || undecided(other, self) {
            result |= Truths::NULL.0;
        }
        Truths(result)
    }
}

fn is_total_cast(from: DataType, to: DataType) -> bool {
    use DataType::{BigInt, Boolean, Double, Integer, Numeric, Real, SmallInt, Text, Timestamp, TimestampTz};
    let are_moments = matches!((from, to), (Timestamp, TimestampTz) | (TimestampTz, Timestamp));
    from == to
        // In another zone one may be out of range.
        || (are_moments && session_zone() == TimeZone::UTC)
        || matches!(
            (from, to),
            (SmallInt, Integer | BigInt | Double | Real | Numeric(None))
                | (Integer, BigInt | Double | Real | Numeric(None))
                | (BigInt, Double | Numeric(None))
                | (Numeric(_), Numeric(None) | Double)
                | (Text(_), Text(None) | DataType::VARCHAR)
                | (Real, Double)
                | (
                    SmallInt | Integer | BigInt | Boolean | Numeric(_) | Real | Double,
                    Text(None) | DataType::VARCHAR
                )
        )
}

/// The columns that these look at.
pub fn columns_of(expressions: &[Expression]) -> ColumnSet {
    expressions.iter().fold(ColumnSet::EMPTY, |set, expression| set | expression.columns())
}

/// Equal in every use: numbers may be equal and still differ as text.
pub fn is_same(a: &Value, b: &Value) -> bool {
    a == b
        && match a {
            Value::Numeric(_) | Value::Double(_) | Value::Real(_) => format_value(a) == format_value(b),
            _ => true,
        }
}

/// Whether errors of this expression may come with a detail, which is taken for a look at the whole row.
pub fn may_have_detail(expression: &Expression) -> bool {
    expression.any(&mut |inner| match inner.data_type {
        DataType::Numeric(_) => true,
        // What is wrong with a literal of these, or with how parts of them go together.
        DataType::Array(_)
        | DataType::Json
        | DataType::Jsonb
        | DataType::Hstore
        | DataType::Composite(_)
        | DataType::Record
        | DataType::Range(_)
        | DataType::Multirange(_) => inner.can_fail(),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use values::Comparison;

    #[test]
    fn a_condition_on_unknown_columns_may_be_true_unless_a_known_one_decides() {
        let integer = |value| Expression::constant(Value::Integer(value), DataType::Integer);
        let equals = |ordinal, value| Expression {
            kind: Kind::Compare(
                Comparison::Equal,
                Box::new([Expression::column(ordinal, DataType::Integer), integer(value)]),
            ),
            data_type: DataType::Boolean,
        };
        let both = |kind: fn(Vec<Expression>) -> Kind| Expression {
            kind: kind(vec![equals(0, 1), equals(1, 2)]),
            data_type: DataType::Boolean,
        };
        let may = |expression: &Expression, known: &[Option<Value>]| {
            expression.possible_truths(known, &[], 0).may_be_true()
        };
        let (and, or) = (both(Kind::And), both(Kind::Or));
        assert!(may(&and, &[None, None]) && may(&or, &[None, None]));
        assert!(may(&and, &[Some(Value::Integer(1)), None]));
        assert!(!may(&and, &[Some(Value::Integer(5)), None]));
        assert!(!may(&and, &[None, Some(Value::Null)]));
        assert!(may(&or, &[Some(Value::Integer(5)), None]));
        assert!(!may(&or, &[Some(Value::Integer(5)), Some(Value::Integer(5))]));
        let not = Expression { kind: Kind::Not(Box::new(and)), data_type: DataType::Boolean };
        assert!(may(&not, &[Some(Value::Integer(5)), None]));
        assert!(!may(&not, &[Some(Value::Integer(1)), Some(Value::Integer(2))]));
    }
}
