//! The names of the fields of records, which their values do not know.

use crate::aggregate::{Aggregate, AggregateFunction};
use crate::expression::row::RowOperation;
use crate::expression::{Binder, Expression, Kind};
use crate::window::WindowFunction;
use types::{DataType, OutputColumn, SqlError, Value};
use values::functions::{self, RecordShape};

/// Names of fields, where there are some.
type Shape = Result<Option<RecordShape>, SqlError>;

/// Types of fields that have been met.
type Types<'t> = &'t mut Vec<DataType>;

impl Binder<'_> {
    /// The names of the fields of the records that a value is, or that are in it; `None` where there are none to name. Adds the types of
    /// these fields to `types`.
    ///
    /// # Errors
    /// `0A000` where they cannot be told.
    pub(super) fn record_shape(&self, value: &Expression, types: Types<'_>) -> Shape {
        types.push(value.data_type);
        if !is_of_records(value.data_type) {
            return Ok(None);
        }
        match &value.kind {
            // The fields of one that is written out are f1, f2 and so on.
            Kind::Constant(constant) => {
                push_types(constant, types);
                Ok(None)
            }
            Kind::Row(operation, operands) => self.shape_of_operation(operation, operands, types),
            Kind::Coalesce(operands) | Kind::Extreme(_, operands) => self.shape_of_all(operands, types),
            Kind::Case(cases, otherwise) => {
                self.shape_of_all(cases.iter().map(|(_, value)| value).chain([otherwise.as_ref()]), types)
            }
            Kind::Cast(operand) | Kind::Assign(operand) => self.record_shape(operand, types),
            Kind::Function(function, operands)
                if [&functions::CONSTRUCT, &functions::NEST]
                    .iter()
                    .any(|one| std::ptr::eq(*function, *one)) =>
            {
                self.shape_of_all(operands, types)
            }
            Kind::Function(function, operands) if std::ptr::eq(*function, &functions::ELEMENT) => {
                operands.first().map_or_else(|| Err(unknown_names()), |array| self.record_shape(array, types))
            }
            Kind::Aggregate(number) => {
                let aggregate = self.aggregates.borrow().get(usize::from(*number)).cloned();
                aggregate.map_or_else(
                    || Err(unknown_names()),
                    |aggregate| self.shape_of_aggregate(&aggregate, types),
                )
            }
            Kind::Window(number) => {
                let call = self.windows.borrow().get(usize::from(*number)).cloned();
                call.map_or_else(|| Err(unknown_names()), |call| self.shape_of_window(&call.function, types))
            }
            _ => match self.fields_of(value) {
                Some(fields) => shape_of_fields(fields, types).map(Some),
                None => Err(unknown_names()),
            },
        }
    }

    fn shape_of_operation(
        &self,
        operation: &RowOperation,
        operands: &[Expression],
        types: Types<'_>,
    ) -> Shape {
        match (operation, operands) {
            (RowOperation::Build(form), fields) => {
                let named = |(position, _): (usize, &Expression)| match &form.names {
                    Some(names) => names[position].clone(),
                    None => format!("f{}", position + 1),
                };
                let names = fields.iter().enumerate().map(named).collect();
                let mut shape = RecordShape { names, ..RecordShape::default() };
                for (position, field) in fields.iter().enumerate() {
                    if let Some(inside) = self.record_shape(field, types)? {
                        shape.inside.insert(position, inside);
                    }
                }
                Ok(Some(shape))
            }
            (RowOperation::Field(position), [row]) => {
                let shape = self.record_shape(row, types)?;
                Ok(shape.and_then(|mut shape| shape.inside.remove(&usize::from(*position))))
            }
            _ => Err(unknown_names()),
        }
    }

    /// Of values one of which it is: they must have the same names.
    fn shape_of_all<'e>(&self, values: impl IntoIterator<Item = &'e Expression>, types: Types<'_>) -> Shape {
        let is_null = |value: &&Expression| matches!(value.kind, Kind::Constant(Value::Null));
        let mut known: Option<Option<RecordShape>> = None;
        for value in values.into_iter().filter(|value| !is_null(value)) {
            let shape = self.record_shape(value, types)?;
            match &known {
                Some(before) if *before != shape => return Err(unknown_names()),
                _ => known = Some(shape),
            }
        }
        Ok(known.flatten())
    }

    fn shape_of_aggregate(&self, aggregate: &Aggregate, types: Types<'_>) -> Shape {
        match (aggregate.function, &aggregate.argument) {
            (AggregateFunction::Array, Some(argument)) => self.record_shape(argument, types),
            _ => Err(unknown_names()),
        }
    }

    fn shape_of_window(&self, function: &WindowFunction, types: Types<'_>) -> Shape {
        match function {
            WindowFunction::Shifted { value, default, .. } => self.shape_of_all([value, default], types),
            WindowFunction::First(value) | WindowFunction::Last(value) | WindowFunction::Nth(value, _) => {
                self.record_shape(value, types)
            }
            WindowFunction::Aggregate(aggregate) => self.shape_of_aggregate(aggregate, types),
            _ => Err(unknown_names()),
        }
    }
}

/// Whether values of a type are records, or arrays of some.
fn is_of_records(data_type: DataType) -> bool {
    data_type.element().unwrap_or(data_type) == DataType::Record
}

/// Adds the types of all that stands in a value.
fn push_types(value: &Value, types: Types<'_>) {
    types.push(value.data_type());
    let inside = match value {
        Value::Array(array) => array.values(),
        Value::Composite(row) => row.values(),
        _ => &[],
    };
    inside.iter().for_each(|value| push_types(value, types));
}

fn shape_of_fields(fields: Vec<OutputColumn>, types: Types<'_>) -> Result<RecordShape, SqlError> {
    types.extend(fields.iter().map(|field| field.data_type));
    if fields.iter().any(|field| is_of_records(field.data_type)) {
        return Err(unknown_names());
    }
    let names = fields.into_iter().map(|field| field.name).collect();
    Ok(RecordShape { names, ..RecordShape::default() })
}

#[cold]
fn unknown_names() -> SqlError {
    SqlError::unsupported("JSON of a record whose fields have no names that are known here")
        .hint("Cast it to a composite type, or name its fields: json_build_object('name', value).")
}
