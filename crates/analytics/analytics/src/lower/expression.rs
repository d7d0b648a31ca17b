//! Expressions over columns: those of which it is known that Arrow's kernels give what PostgreSQL gives.
//!
//! Whole numbers and decimals are computed with checks, so that an overflow is an error here as there. What looks at no column is
//! a constant: the row operators compute it. Floating-point numbers are not compared or computed here: `-0` and `0` are equal in
//! SQL and not in Arrow's order.

use crate::lower::arrays::{rescaled, scalar_of};
use crate::lower::by_row::{ByRow, Wanted};
use crate::lower::decimal::DecimalArithmetic;
use crate::lower::fields::{Fields, Known};
use crate::reason::OnRows;
use arrow_schema::{DataType as ArrowType, SchemaRef};
use datafusion_common::ScalarValue;
use datafusion_expr::Operator;
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_expr::expressions::{
    BinaryExpr, CaseExpr, CastExpr, Column, IsNotNullExpr, IsNullExpr, Literal, NotExpr, in_list, like,
};
use plan::expression::{Environment, Expression, Kind};
use std::sync::Arc;
use types::session_format::session_format;
use types::{ArithmeticOperator, DataType, Value};
use values::{Comparison, LikeForm};

/// Microseconds.
const DAY: i64 = 86_400_000_000;
/// 294277-01-01 is the first day that no timestamp has; this is how many days a date can have behind it.
const DAYS_SPARED: i32 = i32::MAX - 106_751_982;

/// An expression over the columns of an operator.
#[derive(Clone, Debug)]
pub(crate) struct Lowered {
    pub(crate) expression: Arc<dyn PhysicalExpr>,
    /// Its type.
    pub(crate) data_type: DataType,
    /// That of its arrays.
    pub(crate) arrow: ArrowType,
    /// Its value, where that is a constant.
    constant: Option<ScalarValue>,
    /// How many digits behind the point a numeric value shows.
    pub(crate) scale: Scale,
}

/// How many digits behind the point the numeric values of an expression show.
#[derive(Clone, Debug)]
pub(crate) enum Scale {
    /// As many as the arrays have.
    OfArrays,
    /// Each as many as this expression gives, as `Int16`.
    Each(Arc<dyn PhysicalExpr>),
    /// Nobody knows here.
    Unknown,
}

impl Lowered {
    /// The column of an operator that has these values.
    pub(crate) fn known_as(&self, column: usize) -> Known {
        Known {
            column,
            data_type: self.data_type,
            arrow: self.arrow.clone(),
            has_own_scale: matches!(self.scale, Scale::OfArrays),
        }
    }

    /// Its value, where that is a constant.
    pub(crate) fn constant(&self) -> Option<&ScalarValue> {
        self.constant.as_ref()
    }

    /// What an operator computes, as a column of a query.
    pub(crate) fn computed(
        expression: Arc<dyn PhysicalExpr>,
        (data_type, arrow): (DataType, ArrowType),
        scale: Scale,
    ) -> Lowered {
        Lowered { expression, data_type, arrow, constant: None, scale }
    }
}

/// Whether what an expression itself does may depend on the session's format. A comparison does not.
fn looks_at_format(expression: &Expression) -> bool {
    let is_instant = |expression: &Expression| expression.data_type == DataType::TimestampTz;
    match &expression.kind {
        Kind::Cast(operand) | Kind::Assign(operand) => {
            let is_text = |one: &Expression| matches!(one.data_type, DataType::Text(_) | DataType::Char(_));
            [expression, &**operand].into_iter().any(|one| is_instant(one) || is_text(one))
        }
        Kind::Arithmetic(_, operands) => operands.iter().any(is_instant),
        Kind::Concatenate(_) | Kind::Format(_) | Kind::Row(..) => true,
        Kind::Function(_, operands) => is_instant(expression) || operands.iter().any(is_instant),
        _ => false,
    }
}

/// The column at a position, and its name.
pub(crate) fn column_at(schema: &SchemaRef, position: usize) -> (Arc<dyn PhysicalExpr>, String) {
    let name = schema.field(position).name();
    (Arc::new(Column::new(name, position)), name.clone())
}

/// What expressions are lowered with.
pub(crate) struct Lowering<'a> {
    pub(crate) fields: &'a Fields,
    schema: SchemaRef,
    frame: &'a [Value],
    now: i64,
}

impl<'a> Lowering<'a> {
    pub(crate) fn new(fields: &'a Fields, (frame, now): (&'a [Value], i64)) -> Lowering<'a> {
        Lowering { fields, schema: fields.schema(), frame, now }
    }

    /// An expression.
    pub(crate) fn lower(&self, expression: &Expression) -> Result<Lowered, OnRows> {
        if !expression.any(&mut |inner| matches!(inner.kind, Kind::Column(_))) {
            return self.constant(expression);
        }
        let lowered = match session_format().is_default() || !looks_at_format(expression) {
            true => self.by_kernels(expression),
            // Arrow's kernels know the format that sessions begin with.
            false => Err(OnRows::because("a time zone or a form of values that kernels do not know")),
        };
        lowered.or_else(|reason| self.by_row(expression).map_err(|_| reason))
    }

    /// With Arrow's kernels.
    fn by_kernels(&self, expression: &Expression) -> Result<Lowered, OnRows> {
        let data_type = expression.data_type;
        match &expression.kind {
            Kind::Column(ordinal) => self.column(usize::from(*ordinal)),
            Kind::Cast(inner) => self.cast(self.lower(inner)?, data_type),
            Kind::Arithmetic(operator, sides) => {
                let [left, right] = sides.as_ref();
                self.arithmetic(*operator, (self.lower(left)?, self.lower(right)?), data_type)
            }
            Kind::Negate(inner) => {
                let inner = self.lower(inner)?;
                let zero = ScalarValue::new_zero(&inner.arrow)?;
                let zero =
                    Lowered { constant: Some(zero.clone()), expression: literal(zero), ..inner.clone() };
                self.arithmetic(ArithmeticOperator::Subtract, (zero, inner), data_type)
            }
            Kind::Compare(comparison, sides) => {
                let [left, right] = sides.as_ref();
                if let Some(compared) = self.compare_days(*comparison, left, right)? {
                    return Ok(compared);
                }
                self.compare(operator_of(*comparison), self.lower(left)?, self.lower(right)?)
            }
            Kind::Distinct(wanted, sides) => {
                let [left, right] = sides.as_ref();
                let operator = if *wanted { Operator::IsDistinctFrom } else { Operator::IsNotDistinctFrom };
                self.compare(operator, self.lower(left)?, self.lower(right)?)
            }
            Kind::And(conditions) => self.connected(Operator::And, conditions),
            Kind::Or(conditions) => self.connected(Operator::Or, conditions),
            Kind::Not(inner) => Ok(truth(Arc::new(NotExpr::new(self.lower(inner)?.expression)))),
            Kind::IsNull(wanted, inner) => Ok(is_null(*wanted, self.lower(inner)?)),
            Kind::IsTruth(None, wanted, inner) => Ok(is_null(*wanted, self.lower(inner)?)),
            Kind::IsTruth(Some(value), wanted, inner) => {
                let operator = if *wanted { Operator::IsNotDistinctFrom } else { Operator::IsDistinctFrom };
                let value = literal(ScalarValue::Boolean(Some(*value)));
                Ok(truth(Arc::new(BinaryExpr::new(self.lower(inner)?.expression, operator, value))))
            }
            Kind::InList(wanted, members) => self.in_list(*wanted, members),
            Kind::Like(form, sides) => self.like(*form, sides),
            Kind::Case(branches, otherwise) => self.case(branches, otherwise),
            Kind::Coalesce(values) => self.coalesce(values),
            Kind::Function(function, operands)
                if function.names().contains(&"extract") && operands.first().is_some_and(is_whole_field) =>
            {
                let whole = converted(self.by_row(expression)?, ArrowType::Decimal128(10, 0));
                Ok(Lowered { scale: Scale::OfArrays, ..whole })
            }
            _ => Err(OnRows::because("an expression that is not computed on columns")),
        }
    }

    /// With the row operators' own code, row by row.
    fn by_row(&self, expression: &Expression) -> Result<Lowered, OnRows> {
        let given = (self.frame, self.now);
        let value = ByRow::of(expression, self.fields, given, Wanted::Value)?;
        let arrow = value.data_type(&self.schema)?;
        let scale = match expression.data_type {
            DataType::Numeric(_) if self.fields.0.iter().any(|known| !known.has_own_scale) => Scale::Unknown,
            DataType::Numeric(_) => {
                Scale::Each(Arc::new(ByRow::of(expression, self.fields, given, Wanted::Scale)?))
            }
            _ => Scale::OfArrays,
        };
        Ok(Lowered::computed(Arc::new(value), (expression.data_type, arrow), scale))
    }

    /// Conditions that must all be true.
    pub(crate) fn conjunction(
        &self,
        conditions: &[Expression],
    ) -> Result<Option<Arc<dyn PhysicalExpr>>, OnRows> {
        match conditions.is_empty() {
            true => Ok(None),
            false => Ok(Some(self.connected(Operator::And, conditions)?.expression)),
        }
    }

    /// What looks at no column is computed as on rows, once.
    fn constant(&self, expression: &Expression) -> Result<Lowered, OnRows> {
        let value = expression.evaluate(&Environment::new(&[], self.frame, self.now))?;
        let scalar = scalar_of(&value, expression.data_type)?;
        let arrow = scalar.data_type();
        let data_type = expression.data_type;
        Ok(Lowered {
            expression: literal(scalar.clone()),
            data_type,
            arrow,
            constant: Some(scalar),
            scale: Scale::OfArrays,
        })
    }

    fn column(&self, ordinal: usize) -> Result<Lowered, OnRows> {
        let position = self.fields.position(ordinal)?;
        let known = &self.fields.0[position];
        Ok(Lowered {
            expression: Arc::new(Column::new(self.schema.field(position).name(), position)),
            data_type: known.data_type,
            arrow: known.arrow.clone(),
            constant: None,
            scale: if known.has_own_scale { Scale::OfArrays } else { Scale::Unknown },
        })
    }

    /// Casts that change no value.
    fn cast(&self, inner: Lowered, wanted: DataType) -> Result<Lowered, OnRows> {
        use DataType::{BigInt, Integer, Numeric, SmallInt, Text};
        let arrow = match (inner.data_type, wanted) {
            (Text(_), Text(None)) | (Numeric(_), Numeric(None)) => inner.arrow.clone(),
            (SmallInt, Integer) => ArrowType::Int32,
            (SmallInt | Integer, BigInt) => ArrowType::Int64,
            (SmallInt | Integer | BigInt, Numeric(None)) => whole_decimal(&inner.arrow)?,
            (from, to) if from == to => inner.arrow.clone(),
            (from, to) => return Err(OnRows::because(format_args!("a cast of {from} to {to}"))),
        };
        Ok(Lowered { data_type: wanted, ..converted(inner, arrow) })
    }

    fn arithmetic(
        &self,
        operator: ArithmeticOperator,
        (left, right): (Lowered, Lowered),
        data_type: DataType,
    ) -> Result<Lowered, OnRows> {
        use ArithmeticOperator::{Add, Divide, Multiply, Remainder, Subtract};
        let is_decimal = matches!(data_type, DataType::Numeric(_));
        let scale = match (&left.scale, &right.scale) {
            (Scale::OfArrays, Scale::OfArrays) => Scale::OfArrays,
            _ => Scale::Unknown,
        };
        let operator = match operator {
            Add => Operator::Plus,
            Subtract => Operator::Minus,
            Multiply => Operator::Multiply,
            Divide if !is_decimal => Operator::Divide,
            Remainder if !is_decimal => Operator::Modulo,
            Divide | Remainder => return Err(OnRows::because("a division of numeric values")),
        };
        let sides = match data_type {
            DataType::Numeric(_) if is_number(&left) && is_number(&right) => (
                converted(left.clone(), whole_decimal(&left.arrow)?),
                converted(right.clone(), whole_decimal(&right.arrow)?),
            ),
            DataType::SmallInt | DataType::Integer | DataType::BigInt
                if is_whole(&left) && is_whole(&right) =>
            {
                let arrow = state::column_type(data_type).unwrap_or(ArrowType::Int64);
                (converted(left, arrow.clone()), converted(right, arrow))
            }
            _ => return Err(OnRows::because(format_args!("arithmetic that gives {data_type}"))),
        };
        let (left, right) = sides;
        let computed = BinaryExpr::new(left.expression.clone(), operator, right.expression.clone());
        let computed = computed.with_fail_on_overflow(true);
        let arrow = computed.data_type(&self.schema)?;
        let sides = [left.expression, right.expression];
        if let Some(computed) = DecimalArithmetic::of(operator, sides, [&left.arrow, &right.arrow], &arrow) {
            return Ok(Lowered::computed(Arc::new(computed), (data_type, arrow), scale));
        }
        Ok(Lowered::computed(Arc::new(computed), (data_type, arrow), scale))
    }

    fn compare(&self, operator: Operator, left: Lowered, right: Lowered) -> Result<Lowered, OnRows> {
        let is_char = |side: &Lowered| matches!(side.data_type, DataType::Char(_));
        let only_equal = matches!(
            operator,
            Operator::Eq | Operator::NotEq | Operator::IsDistinctFrom | Operator::IsNotDistinctFrom
        );
        if (is_char(&left) || is_char(&right)) && !only_equal {
            return Err(OnRows::because("the order of char(n), which spaces at the end do not change"));
        }
        let (left, right) = same_type(left, right)?;
        Ok(truth(Arc::new(BinaryExpr::new(left.expression, operator, right.expression))))
    }

    /// A date with a point in time that is the same for all rows, as days: `shipped <= date '1998-12-01' - interval '90 days'`.
    fn compare_days(
        &self,
        comparison: Comparison,
        left: &Expression,
        right: &Expression,
    ) -> Result<Option<Lowered>, OnRows> {
        let Kind::Cast(date) = &left.kind else { return Ok(None) };
        if (date.data_type, left.data_type) != (DataType::Date, DataType::Timestamp) {
            return Ok(None);
        }
        let (date, time) = (self.lower(date)?, self.lower(right)?);
        let Some(ScalarValue::Int64(Some(time))) = time.constant else { return Ok(None) };
        let (day, is_midnight) = (time.div_euclid(DAY), time.rem_euclid(DAY) == 0);
        let operator = match (comparison, is_midnight) {
            (Comparison::Less, false) => Operator::LtEq,
            (Comparison::GreaterOrEqual, false) => Operator::Gt,
            (Comparison::Equal | Comparison::NotEqual, false) => return Ok(None),
            (comparison, _) => operator_of(comparison),
        };
        let shifted = i32::try_from(day).ok().and_then(|day| day.checked_add(DAYS_SPARED));
        let shifted = shifted.ok_or_else(|| OnRows::because("a time that no date has"))?;
        // A date that no timestamp has is an error on rows. Here it overflows.
        let spared = literal(ScalarValue::Int32(Some(DAYS_SPARED)));
        let date = BinaryExpr::new(date.expression, Operator::Plus, spared).with_fail_on_overflow(true);
        let day = literal(ScalarValue::Int32(Some(shifted)));
        Ok(Some(truth(Arc::new(BinaryExpr::new(Arc::new(date), operator, day)))))
    }

    fn connected(&self, operator: Operator, conditions: &[Expression]) -> Result<Lowered, OnRows> {
        let mut lowered = conditions.iter().map(|condition| Ok(self.lower(condition)?.expression));
        let first = lowered.next().ok_or_else(|| OnRows::because("no condition"))??;
        let all = lowered.try_fold(first, |all, next: Result<_, OnRows>| {
            Ok::<Arc<dyn PhysicalExpr>, OnRows>(Arc::new(BinaryExpr::new(all, operator, next?)))
        })?;
        Ok(truth(all))
    }

    fn in_list(&self, wanted: bool, members: &[Expression]) -> Result<Lowered, OnRows> {
        let Some((first, members)) = members.split_first() else {
            return Err(OnRows::because("IN without an operand"));
        };
        let operand = self.lower(first)?;
        let member = |member: &Expression| {
            let (same, member) = same_type(operand.clone(), self.lower(member)?)?;
            match same.arrow == operand.arrow {
                true => Ok(member.expression),
                false => Err(OnRows::because("members of IN of a wider type")),
            }
        };
        let members = members.iter().map(member).collect::<Result<Vec<_>, OnRows>>()?;
        Ok(truth(in_list(operand.expression, members, &!wanted, &self.schema)?))
    }

    fn like(&self, form: LikeForm, sides: &[Expression; 2]) -> Result<Lowered, OnRows> {
        let [text, pattern] = sides;
        let (text, pattern) = (self.lower(text)?, self.lower(pattern)?);
        let Some(ScalarValue::Utf8View(Some(shown))) = &pattern.constant else {
            return Err(OnRows::because("LIKE with a pattern that is no constant"));
        };
        let plain = form.escape == Some('\\') && !form.ignore_case && !shown.contains('\\');
        if !plain || !matches!(text.data_type, DataType::Text(_)) {
            return Err(OnRows::because("this form of LIKE"));
        }
        Ok(truth(like(form.negated, false, text.expression, pattern.expression, &self.schema)?))
    }

    /// CASE. A numeric result shows as many digits as the branch it comes from.
    fn case(&self, branches: &[(Expression, Expression)], otherwise: &Expression) -> Result<Lowered, OnRows> {
        let results = branches.iter().map(|(_, result)| result).chain([otherwise]);
        let results = results.map(|result| self.lower(result)).collect::<Result<Vec<_>, _>>()?;
        let conditions = branches.iter().map(|(condition, _)| Ok(self.lower(condition)?.expression));
        let conditions = conditions.collect::<Result<Vec<_>, OnRows>>()?;
        let first = &results[0];
        if results.iter().any(|result| result.data_type.family() != first.data_type.family()) {
            return Err(OnRows::because("CASE with results of several types"));
        }
        let data_type = first.data_type;
        let is_alike =
            |result: &Lowered| result.arrow == first.arrow && matches!(result.scale, Scale::OfArrays);
        if results.iter().all(is_alike) {
            let arrow = first.arrow.clone();
            let expression = chosen(&conditions, results.into_iter().map(|result| result.expression))?;
            return Ok(Lowered::computed(expression, (data_type, arrow), Scale::OfArrays));
        }
        let scales = results.iter().map(|result| match &result.scale {
            Scale::OfArrays => scale_of(&result.arrow),
            Scale::Each(scale) => Some(scale.clone()),
            Scale::Unknown => None,
        });
        let scale = match scales.collect::<Option<Vec<_>>>() {
            Some(scales) => Scale::Each(chosen(&conditions, scales.into_iter())?),
            None => Scale::Unknown,
        };
        let wide = results
            .iter()
            .skip(1)
            .try_fold(first.arrow.clone(), |wide, result| wide_decimal(&wide, &result.arrow))?;
        let results = results.into_iter().map(|result| converted(result, wide.clone()).expression);
        Ok(Lowered::computed(chosen(&conditions, results)?, (data_type, wide.clone()), scale))
    }

    /// The first that is not NULL.
    fn coalesce(&self, values: &[Expression]) -> Result<Lowered, OnRows> {
        let Some((last, before)) = values.split_last() else {
            return Err(OnRows::because("COALESCE of nothing"));
        };
        let branch = |value: &Expression| {
            let kind = Kind::IsNull(false, Box::new(value.clone()));
            (Expression { kind, data_type: DataType::Boolean }, value.clone())
        };
        match before.is_empty() {
            true => self.lower(last),
            false => self.case(&before.iter().map(branch).collect::<Vec<_>>(), last),
        }
    }
}

/// The result of the first condition that is true; behind the results of conditions stands that of none.
fn chosen(
    conditions: &[Arc<dyn PhysicalExpr>],
    results: impl Iterator<Item = Arc<dyn PhysicalExpr>>,
) -> Result<Arc<dyn PhysicalExpr>, OnRows> {
    let mut results: Vec<_> = results.collect();
    let otherwise = results.pop();
    Ok(Arc::new(CaseExpr::try_new(None, conditions.iter().cloned().zip(results).collect(), otherwise)?))
}

/// A field of dates and times that is a whole number, and shows as one.
fn is_whole_field(field: &Expression) -> bool {
    const WHOLE: [&str; 14] = [
        "year",
        "month",
        "day",
        "quarter",
        "week",
        "dow",
        "isodow",
        "doy",
        "isoyear",
        "hour",
        "minute",
        "decade",
        "century",
        "millennium",
    ];
    match field.as_constant() {
        Some(Value::Text(name)) => WHOLE.contains(&name.to_ascii_lowercase().as_str()),
        _ => false,
    }
}

/// The digits behind the point of arrays of decimals.
fn scale_of(arrow: &ArrowType) -> Option<Arc<dyn PhysicalExpr>> {
    match arrow {
        ArrowType::Decimal128(_, scale) => Some(literal(ScalarValue::Int16(Some(i16::from(*scale))))),
        _ => None,
    }
}

/// Both sides of a comparison in one type of arrays.
pub(crate) fn same_type(left: Lowered, right: Lowered) -> Result<(Lowered, Lowered), OnRows> {
    use DataType::{Char, Double, Numeric, Real};
    let (a, b) = (left.data_type.family(), right.data_type.family());
    match (left.data_type, right.data_type) {
        (Real | Double, _) | (_, Real | Double) => {
            Err(OnRows::because("a comparison of floating-point numbers"))
        }
        (Char(Some(length)), Char(_)) if right.constant.is_some() => Ok((left, filled(right, length))),
        (Char(_), Char(Some(length))) if left.constant.is_some() => Ok((filled(left, length), right)),
        (Char(a), Char(b)) if a != b => Err(OnRows::because("a comparison of char(n) of several lengths")),
        (Numeric(_), Numeric(_)) => same_scale(left, right),
        _ if a == b && left.arrow == right.arrow => Ok((left, right)),
        _ if is_whole(&left) && is_whole(&right) => {
            Ok((converted(left, ArrowType::Int64), converted(right, ArrowType::Int64)))
        }
        (a, b) => Err(OnRows::because(format_args!("a comparison of {a} with {b}"))),
    }
}

fn same_scale(left: Lowered, right: Lowered) -> Result<(Lowered, Lowered), OnRows> {
    if left.arrow == right.arrow {
        return Ok((left, right));
    }
    if let Some(scalar) = right.constant.as_ref().and_then(|scalar| rescaled(scalar, &left.arrow)) {
        let right = Lowered {
            arrow: left.arrow.clone(),
            expression: literal(scalar.clone()),
            constant: Some(scalar),
            ..right
        };
        return Ok((left, right));
    }
    if let Some(scalar) = left.constant.as_ref().and_then(|scalar| rescaled(scalar, &right.arrow)) {
        let left = Lowered {
            arrow: right.arrow.clone(),
            expression: literal(scalar.clone()),
            constant: Some(scalar),
            ..left
        };
        return Ok((left, right));
    }
    let wide = wide_decimal(&left.arrow, &right.arrow)?;
    Ok((converted(left, wide.clone()), converted(right, wide)))
}

/// Decimals that have the values of both, as far as 38 digits go: what does not fit is an error when it comes.
fn wide_decimal(left: &ArrowType, right: &ArrowType) -> Result<ArrowType, OnRows> {
    let (ArrowType::Decimal128(p, s), ArrowType::Decimal128(q, t)) = (left, right) else {
        return Err(OnRows::because("numeric values that are no decimals"));
    };
    let scale = *s.max(t);
    let whole = (i16::from(*p) - i16::from(*s)).max(i16::from(*q) - i16::from(*t));
    Ok(ArrowType::Decimal128((whole + i16::from(scale)).clamp(1, 38) as u8, scale))
}

/// A text constant as a column of `char(length)` would have it.
fn filled(constant: Lowered, length: u32) -> Lowered {
    match &constant.constant {
        Some(ScalarValue::Utf8View(Some(text))) => {
            let text = text.trim_end_matches(' ');
            let missing = (length as usize).saturating_sub(text.chars().count());
            let scalar = ScalarValue::Utf8View(Some(format!("{text}{}", " ".repeat(missing))));
            Lowered { expression: literal(scalar.clone()), constant: Some(scalar), ..constant }
        }
        _ => constant,
    }
}

/// The same values in arrays of another type.
fn converted(inner: Lowered, arrow: ArrowType) -> Lowered {
    if inner.arrow == arrow {
        return inner;
    }
    let constant = inner.constant.as_ref().and_then(|scalar| scalar.cast_to(&arrow).ok());
    let expression: Arc<dyn PhysicalExpr> = match &constant {
        Some(scalar) => literal(scalar.clone()),
        None => Arc::new(CastExpr::new(inner.expression, arrow.clone(), None)),
    };
    Lowered { expression, arrow, constant, ..inner }
}

/// Decimals that have every whole number of a type; decimals stay what they are.
fn whole_decimal(arrow: &ArrowType) -> Result<ArrowType, OnRows> {
    Ok(match arrow {
        ArrowType::Int16 => ArrowType::Decimal128(5, 0),
        ArrowType::Int32 => ArrowType::Decimal128(10, 0),
        ArrowType::Int64 => ArrowType::Decimal128(19, 0),
        decimal @ ArrowType::Decimal128(..) => decimal.clone(),
        other => return Err(OnRows::because(format_args!("numbers in arrays of {other}"))),
    })
}

fn is_whole(side: &Lowered) -> bool {
    matches!(side.data_type, DataType::SmallInt | DataType::Integer | DataType::BigInt)
}

fn is_number(side: &Lowered) -> bool {
    is_whole(side) || matches!(side.data_type, DataType::Numeric(_))
}

fn literal(scalar: ScalarValue) -> Arc<dyn PhysicalExpr> {
    Arc::new(Literal::new(scalar))
}

fn truth(expression: Arc<dyn PhysicalExpr>) -> Lowered {
    Lowered::computed(expression, (DataType::Boolean, ArrowType::Boolean), Scale::OfArrays)
}

fn is_null(wanted: bool, inner: Lowered) -> Lowered {
    match wanted {
        true => truth(Arc::new(IsNullExpr::new(inner.expression))),
        false => truth(Arc::new(IsNotNullExpr::new(inner.expression))),
    }
}

fn operator_of(comparison: Comparison) -> Operator {
    match comparison {
        Comparison::Equal => Operator::Eq,
        Comparison::NotEqual => Operator::NotEq,
        Comparison::Less => Operator::Lt,
        Comparison::LessOrEqual => Operator::LtEq,
        Comparison::Greater => Operator::Gt,
        Comparison::GreaterOrEqual => Operator::GtEq,
    }
}
