//! Aggregates: what is computed on columns, and what is made of that for each group as on rows.

use crate::lower::arrays::{ANY_NUMERIC, numeric_at, value_at};
use crate::lower::expression::{Lowered, Lowering, Scale, column_at};
use crate::lower::quotient::Quotient;
use crate::lower::sum::ExactSum;
use crate::reason::OnRows;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int16Type, Int64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType as ArrowType, SchemaRef};
use datafusion_common::ScalarValue;
use datafusion_expr::AggregateUDF;
use datafusion_functions_aggregate::count::count_udaf;
use datafusion_functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_expr::aggregate::{AggregateExprBuilder, AggregateFunctionExpr};
use datafusion_physical_expr::expressions::{CaseExpr, CastExpr, IsNotNullExpr, Literal};
use plan::aggregate::{Aggregate, AggregateFunction};
use plan::expression::{Expression, Kind};
use std::sync::Arc;
use types::{DataType, Numeric, Value};

/// What is computed on columns.
#[derive(Default)]
pub(crate) struct Computed {
    pub(crate) functions: Vec<Arc<AggregateFunctionExpr>>,
    pub(crate) filters: Vec<Option<Arc<dyn PhysicalExpr>>>,
    /// By which the same function over the same rows is found again.
    known: Vec<String>,
}

/// How the value of an aggregate is made of what was computed; positions are those of [`Computed::functions`].
pub(crate) enum Finish {
    /// It is that.
    Value(usize),
    /// It is that number, as a whole number.
    Whole(usize),
    /// A sum of numbers that show several scales, and the largest of these.
    Rescaled(usize, usize),
    /// A sum and a count; where the numbers show several scales, also the largest of these.
    Quotient(usize, usize, Option<usize>),
}

/// Lowers one aggregate. `schema`: of the rows that are grouped.
pub(crate) fn lower(
    aggregate: &Aggregate,
    lowering: &Lowering<'_>,
    schema: &SchemaRef,
    computed: &mut Computed,
) -> Result<Finish, OnRows> {
    let plain = aggregate.second.is_none()
        && aggregate.direct.is_empty()
        && aggregate.order.is_empty()
        && aggregate.user.is_none();
    let is_count = aggregate.function == AggregateFunction::Count;
    if !plain || (aggregate.distinct && !is_count) {
        return Err(OnRows::because("an aggregate that looks at the order of rows, or at several values"));
    }
    let filter = aggregate.filter.as_ref().map(|filter| lowering.lower(filter)).transpose()?;
    let mut add = |function: Arc<AggregateUDF>, argument: Arc<dyn PhysicalExpr>| {
        computed.add(function, argument, (aggregate.distinct, filter.as_ref()), schema)
    };
    let Some(argument) = &aggregate.argument else {
        let one = Arc::new(Literal::new(ScalarValue::Int64(Some(1))));
        return Ok(Finish::Value(add(count_udaf(), one)?));
    };
    let lowered = lowering.lower(without_cast(aggregate, argument))?;
    match aggregate.function {
        AggregateFunction::Count => {
            refuse_floats(&lowered)?;
            Ok(Finish::Value(add(count_udaf(), lowered.expression)?))
        }
        AggregateFunction::Minimum | AggregateFunction::Maximum => {
            refuse_floats(&lowered)?;
            if matches!(lowered.data_type, DataType::Char(_)) {
                return Err(OnRows::because("min and max of char(n)"));
            }
            if !matches!(lowered.scale, Scale::OfArrays) {
                return Err(OnRows::because("min and max of numeric values of several scales"));
            }
            let is_least = aggregate.function == AggregateFunction::Minimum;
            Ok(Finish::Value(add(if is_least { min_udaf() } else { max_udaf() }, lowered.expression)?))
        }
        AggregateFunction::Sum | AggregateFunction::Average => {
            let is_exact = matches!(
                lowered.data_type,
                DataType::SmallInt | DataType::Integer | DataType::BigInt | DataType::Numeric(_)
            );
            if !is_exact {
                return Err(OnRows::because(format_args!("a sum of {}", lowered.data_type)));
            }
            let sum = add(Arc::new(AggregateUDF::from(ExactSum::default())), lowered.expression.clone())?;
            let scale = match lowered.scale {
                Scale::OfArrays => None,
                Scale::Each(scale) => Some(add(max_udaf(), present(&scale, &lowered.expression)?)?),
                Scale::Unknown => return Err(OnRows::because("a sum of numeric values of unknown scales")),
            };
            Ok(match (aggregate.function, aggregate.data_type, scale) {
                (AggregateFunction::Average, _, scale) => {
                    Finish::Quotient(sum, add(count_udaf(), lowered.expression)?, scale)
                }
                (_, DataType::BigInt, _) => Finish::Whole(sum),
                (_, _, Some(scale)) => Finish::Rescaled(sum, scale),
                _ => Finish::Value(sum),
            })
        }
        _ => Err(OnRows::because("an aggregate that is not computed on columns")),
    }
}

/// The scale of a value that is not NULL.
fn present(
    scale: &Arc<dyn PhysicalExpr>,
    value: &Arc<dyn PhysicalExpr>,
) -> Result<Arc<dyn PhysicalExpr>, OnRows> {
    let is_there: Arc<dyn PhysicalExpr> = Arc::new(IsNotNullExpr::new(value.clone()));
    Ok(Arc::new(CaseExpr::try_new(None, vec![(is_there, scale.clone())], None)?))
}

/// Sums of whole numbers are exact without the cast to numeric.
fn without_cast<'a>(aggregate: &Aggregate, argument: &'a Expression) -> &'a Expression {
    let sums = matches!(aggregate.function, AggregateFunction::Sum | AggregateFunction::Average);
    match &argument.kind {
        Kind::Cast(inner)
            if sums
                && matches!(argument.data_type, DataType::Numeric(None) | DataType::BigInt)
                && matches!(inner.data_type, DataType::SmallInt | DataType::Integer | DataType::BigInt) =>
        {
            inner
        }
        _ => argument,
    }
}

fn refuse_floats(lowered: &Lowered) -> Result<(), OnRows> {
    match lowered.data_type {
        DataType::Real | DataType::Double => Err(OnRows::because("aggregates of floating-point numbers")),
        _ => Ok(()),
    }
}

impl Computed {
    /// Adds a function, if it is not there yet, and gives its position.
    fn add(
        &mut self,
        function: Arc<AggregateUDF>,
        argument: Arc<dyn PhysicalExpr>,
        (distinct, filter): (bool, Option<&Lowered>),
        schema: &SchemaRef,
    ) -> Result<usize, OnRows> {
        let filter = filter.map(|filter| filter.expression.clone());
        let known = format!("{} {distinct} {argument:?} {filter:?}", function.name());
        if let Some(position) = self.known.iter().position(|other| *other == known) {
            return Ok(position);
        }
        let position = self.functions.len();
        let built = AggregateExprBuilder::new(function, vec![argument])
            .schema(schema.clone())
            .alias(format!("a{position}"))
            .with_distinct(distinct)
            .build()?;
        self.functions.push(Arc::new(built));
        self.filters.push(filter);
        self.known.push(known);
        Ok(position)
    }
}

impl Finish {
    /// The value of a group. `first`: the column of the first function.
    pub(crate) fn value(
        &self,
        groups: &RecordBatch,
        row: usize,
        (first, data_type): (usize, DataType),
    ) -> Result<Value, OnRows> {
        let column = |position: usize| groups.column(first + position);
        match self {
            Finish::Value(position) => value_at(column(*position), row, data_type),
            Finish::Whole(position) if column(*position).is_null(row) => Ok(Value::Null),
            Finish::Whole(position) => {
                let sum = numeric_at(column(*position), row)?.small_mantissa();
                let sum = sum.and_then(|sum| i64::try_from(sum).ok());
                Ok(Value::BigInt(sum.ok_or_else(|| OnRows::because("bigint out of range"))?))
            }
            Finish::Rescaled(sum, _) | Finish::Quotient(sum, ..) if column(*sum).is_null(row) => {
                Ok(Value::Null)
            }
            Finish::Rescaled(sum, scale) => {
                Ok(Value::Numeric(shown_with(&numeric_at(column(*sum), row)?, column(*scale), row)?))
            }
            Finish::Quotient(sum, count, scale) => {
                let count = column(*count).as_primitive_opt::<Int64Type>();
                let count =
                    count.ok_or_else(|| OnRows::because("a count that is no whole number"))?.value(row);
                let mut sum = numeric_at(column(*sum), row)?;
                if let Some(scale) = scale {
                    sum = shown_with(&sum, column(*scale), row)?;
                }
                Ok(Value::Numeric(sum.checked_div(&Numeric::from(count))?))
            }
        }
    }

    /// The values as a column, for groups below others. `first`: the column of the first function.
    pub(crate) fn column(
        &self,
        schema: &SchemaRef,
        (first, data_type): (usize, DataType),
    ) -> Result<Lowered, OnRows> {
        let at = |position: &usize| {
            let (column, _) = column_at(schema, first + position);
            (column, schema.field(first + position).data_type().clone())
        };
        Ok(match self {
            Finish::Value(position) => {
                let (column, arrow) = at(position);
                Lowered::computed(column, (data_type, arrow), Scale::OfArrays)
            }
            Finish::Whole(position) => {
                let whole = Arc::new(CastExpr::new(at(position).0, ArrowType::Int64, None));
                Lowered::computed(whole, (data_type, ArrowType::Int64), Scale::OfArrays)
            }
            Finish::Rescaled(sum, _) => {
                let (column, arrow) = at(sum);
                Lowered::computed(column, (data_type, arrow), Scale::Unknown)
            }
            Finish::Quotient(sum, count, _) => {
                let quotient = Arc::new(Quotient::of(at(sum).0, at(count).0));
                Lowered::computed(quotient, (data_type, ANY_NUMERIC), Scale::Unknown)
            }
        })
    }
}

/// A number with as many digits behind the point as a column says. None of the digits that it loses is more than 0.
fn shown_with(number: &Numeric, scales: &ArrayRef, row: usize) -> Result<Numeric, OnRows> {
    let scales = scales.as_primitive_opt::<Int16Type>();
    let scale = scales.ok_or_else(|| OnRows::because("a scale that is no whole number"))?.value(row);
    Ok(number.round(i32::from(scale))?)
}
