//! JSON as rows: its members and elements, and records that are read from it.

use crate::functions::json::refused;
use crate::functions::json::written::{Json, Parts};
use crate::work;
use std::sync::Arc;
use types::{
    Array, Composite, CompositeTypes, DataType, Dimension, Dimensions, ElementType, OutputColumn, SqlError,
    SqlState, Value, arrays_are_plain, check_array_elements, check_dimensions,
};

/// What rows a function makes of a value of `json` or `jsonb`.
#[derive(Clone, Debug, PartialEq)]
pub enum JsonRows {
    /// `json_array_elements` and its kin; the flag: as texts.
    Elements(bool),
    /// `json_each` and its kin; the flag: the values as texts.
    Members(bool),
    /// `json_object_keys`
    Keys,
    /// `json_to_record` and `json_populate_record`, of these fields.
    Record(Vec<OutputColumn>),
    /// `json_to_recordset` and `json_populate_recordset`.
    Records(Vec<OutputColumn>),
}

/// Who counts what is made of JSON while it is made.
#[derive(Clone, Copy)]
pub struct Counting<'a> {
    /// Of each row.
    pub row: &'a dyn Fn(&[Value]) -> Result<(), SqlError>,
    /// Of a number in an array that is longer than it was written.
    pub number: &'a dyn Fn(&Value) -> Result<(), SqlError>,
}

impl JsonRows {
    /// The rows, in the order in which they are written, or in that of `jsonb`. `function`: its name, for errors. `base`: the
    /// fields where the value has none.
    ///
    /// # Errors
    /// `22023` where the value is something else; what reading the fields raises.
    pub fn rows(
        &self,
        function: &str,
        value: &Value,
        base: &Value,
        (types, counting): (&CompositeTypes, Counting<'_>),
    ) -> Result<Vec<Vec<Value>>, SqlError> {
        let counted = |row: Vec<Value>| (counting.row)(&row).map(|()| row);
        let Some(json) = Json::of(value) else {
            return self.of_null(base)?.into_iter().map(counted).collect();
        };
        work::spend(work::of_value(value))?;
        let is_binary = matches!(json, Json::Node(_));
        let parts = json.parts()?;
        match (self, parts) {
            (JsonRows::Elements(as_text), Parts::Array(elements)) => {
                let value = |element: Json<'_>| if *as_text { element.text() } else { element.value() };
                elements.into_iter().map(|element| counted(vec![value(element)?])).collect()
            }
            (JsonRows::Members(as_text), Parts::Object(members)) => {
                let value = |member: Json<'_>| if *as_text { member.text() } else { member.value() };
                let row = |(key, member): (_, Json<'_>)| {
                    let key: std::borrow::Cow<'_, str> = key;
                    counted(vec![Value::text(key.as_ref()), value(member)?])
                };
                members.into_iter().map(row).collect()
            }
            (JsonRows::Keys, Parts::Object(members)) => {
                members.into_iter().map(|(key, _)| counted(vec![Value::text(key.as_ref())])).collect()
            }
            (JsonRows::Record(fields), Parts::Object(_)) => {
                Ok(vec![counted(Reading { types, counting }.fields(json, fields, base)?)?])
            }
            (JsonRows::Records(fields), Parts::Array(elements)) => {
                let reading = Reading { types, counting };
                let row = |element: Json<'_>| match element.parts()? {
                    Parts::Object(_) => counted(reading.fields(element, fields, base)?),
                    _ => Err(refused(format!("argument of {function} must be an array of objects"))),
                };
                elements.into_iter().map(row).collect()
            }
            (_, parts) => Err(self.no_rows(function, &parts, is_binary)),
        }
    }

    /// NULL gives no rows; of a record what it has already.
    fn of_null(&self, base: &Value) -> Result<Vec<Vec<Value>>, SqlError> {
        match self {
            JsonRows::Record(fields) => Ok(vec![base_fields(base, fields.len())]),
            _ => Ok(Vec::new()),
        }
    }

    fn no_rows(&self, function: &str, parts: &Parts<'_>, is_binary: bool) -> SqlError {
        let found = match parts {
            Parts::Object(_) => "an object",
            Parts::Array(_) => "an array",
            _ => "a scalar",
        };
        refused(match (self, is_binary) {
            (JsonRows::Elements(_), true) => format!("cannot extract elements from {found}"),
            (JsonRows::Members(_), false) => match parts {
                Parts::Array(_) => "cannot deconstruct an array as an object".to_string(),
                _ => "cannot deconstruct a scalar".to_string(),
            },
            (JsonRows::Members(_), true) => format!("cannot call {function} on a non-object"),
            (JsonRows::Record(_), _) => format!("cannot call populate_composite on {found}"),
            (JsonRows::Records(_), true) => format!("cannot call {function} on a non-array"),
            (JsonRows::Records(_), false) => format!("cannot call {function} on {found}"),
            _ if matches!(parts, Parts::Object(_)) => format!("cannot call {function} on a non-array"),
            _ => format!("cannot call {function} on {found}"),
        })
    }
}

fn base_fields(base: &Value, count: usize) -> Vec<Value> {
    match base {
        Value::Composite(row) => row.values().to_vec(),
        _ => vec![Value::Null; count],
    }
}

/// The row of a composite type that JSON is, with the fields of `base` where it has none.
///
/// # Errors
/// As [`JsonRows::rows`].
pub fn json_record(
    function: &str,
    json: &Value,
    base: &Value,
    data_type: DataType,
    (types, counting): (&CompositeTypes, Counting<'_>),
) -> Result<Value, SqlError> {
    let fields = types.of(data_type).map(|known| known.fields.clone()).unwrap_or_default();
    if json.is_null() {
        return Ok(base.clone());
    }
    let mut rows = JsonRows::Record(fields).rows(function, json, base, (types, counting))?;
    row(data_type, rows.pop().unwrap_or_default())
}

fn row(data_type: DataType, fields: Vec<Value>) -> Result<Value, SqlError> {
    let type_id = match data_type {
        DataType::Composite(id) => Some(id),
        _ => None,
    };
    Ok(Value::Composite(Arc::new(Composite::new(type_id, fields)?)))
}

/// A number that takes more memory than most texts.
const LONG_NUMBER_BYTES: usize = 1_024;
const DIGITS_PER_5_BYTES: usize = 12;

/// Reads fields.
struct Reading<'a> {
    types: &'a CompositeTypes,
    counting: Counting<'a>,
}

impl Reading<'_> {
    fn fields(&self, json: Json<'_>, fields: &[OutputColumn], base: &Value) -> Result<Vec<Value>, SqlError> {
        let members = match json.parts()? {
            Parts::Object(members) => members,
            Parts::Array(_) => return Err(refused("cannot call populate_composite on an array")),
            _ => return Err(refused("cannot call populate_composite on a scalar")),
        };
        // Each field is looked for among all members, and made where there is none, too.
        work::spend((1 + members.len() as u64).saturating_mul(fields.len() as u64))?;
        let mut values = base_fields(base, fields.len());
        for (value, field) in values.iter_mut().zip(fields) {
            // Of several with one name the last one.
            if let Some((_, member)) = members.iter().rev().find(|(key, _)| *key == field.name) {
                *value = self.field(*member, field.data_type, &field.name)?;
            }
        }
        Ok(values)
    }

    fn field(&self, json: Json<'_>, data_type: DataType, name: &str) -> Result<Value, SqlError> {
        let parts = json.parts()?;
        let text = match (&parts, data_type) {
            (Parts::Null, _) => return Ok(Value::Null),
            (_, DataType::Json | DataType::Jsonb) => json.written()?,
            // A string may be an array or a row as SQL writes it.
            (Parts::String(text), _) => text.to_string(),
            (Parts::Array(elements), DataType::Array(element)) => return self.array(elements, element, name),
            (_, DataType::Array(_)) => {
                let error = SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, "expected JSON array");
                return Err(error.hint(format!("See the value of key \"{name}\".")));
            }
            (_, DataType::Composite(_)) => {
                let fields = self.types.of(data_type).map(|known| known.fields.clone()).unwrap_or_default();
                return row(data_type, self.fields(json, &fields, &Value::Null)?);
            }
            _ => json.written()?,
        };
        let value = self.types.assign(Value::text(text), data_type)?;
        if let Value::Numeric(number) = &value
            && number.stored_bytes() > LONG_NUMBER_BYTES
        {
            // A number with an exponent is longer than it was written.
            work::spend(work::of_written_number(number.stored_bytes() * DIGITS_PER_5_BYTES / 5))?;
        }
        Ok(value)
    }

    /// What becomes too large is refused before all of it is made.
    fn array(&self, elements: &[Json<'_>], element: ElementType, name: &str) -> Result<Value, SqlError> {
        let mut made = Elements { depth: arrays_are_plain().then_some(1), ..Elements::default() };
        self.level(elements, element, name, 1, &mut made)?;
        let dimensions: Dimensions =
            made.lengths.iter().map(|length| Dimension::of(length.unwrap_or(0))).collect();
        Ok(Value::Array(Arc::new(match made.is_cut {
            // Says the limit.
            true => Array::new(element, made.values)?,
            false => Array::shaped(element, &dimensions, made.values)?,
        })))
    }

    /// As PostgreSQL's `populate_array_dim_json`: how many dimensions there are, the first element says that is none itself.
    fn level(
        &self,
        elements: &[Json<'_>],
        element: ElementType,
        name: &str,
        depth: usize,
        made: &mut Elements,
    ) -> Result<(), SqlError> {
        check_dimensions(depth)?;
        if made.lengths.len() < depth {
            made.lengths.push(None);
        }
        if *made.lengths[depth - 1].get_or_insert(elements.len()) != elements.len() {
            let detail = "Multidimensional arrays must have sub-arrays with matching dimensions.";
            let error = SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, "malformed JSON array");
            return Err(error.detail(detail));
        }
        check_array_elements(made.values.len() + elements.len())?;
        if made.depth.is_none()
            && !matches!(elements.first().map(|first| first.parts()), Some(Ok(Parts::Array(_))))
        {
            made.depth = Some(depth);
        }
        for (position, json) in elements.iter().enumerate() {
            if made.is_cut {
                return Ok(());
            }
            if made.depth == Some(depth) {
                self.element(*json, element, name, made)?;
                continue;
            }
            let Parts::Array(inner) = json.parts()? else {
                let error = SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, "expected JSON array");
                return Err(error.hint(format!("See the array element [{position}] of key \"{name}\".")));
            };
            self.level(&inner, element, name, depth + 1, made)?;
        }
        Ok(())
    }

    fn element(
        &self,
        json: Json<'_>,
        element: ElementType,
        name: &str,
        made: &mut Elements,
    ) -> Result<(), SqlError> {
        let value = self.field(json, element.data_type(), name)?;
        made.bytes_at_least += match &value {
            // A comma for each of its fields.
            Value::Composite(row) => row.values().len(),
            Value::Jsonb(json) => json.text_bytes(),
            Value::Numeric(number) => {
                if number.stored_bytes() > LONG_NUMBER_BYTES {
                    (self.counting.number)(&value)?;
                }
                0
            }
            _ => 0,
        };
        made.values.push(value);
        made.is_cut = made.bytes_at_least > 4 * types::text_bytes_max();
        Ok(())
    }
}

/// What is read of an array so far.
#[derive(Default)]
struct Elements {
    /// In how many brackets the elements stand, once there is one.
    depth: Option<usize>,
    /// How many there are in each level of brackets, once one of it is closed.
    lengths: Vec<Option<usize>>,
    values: Vec<Value>,
    bytes_at_least: usize,
    /// It is too large already, and the rest is not read.
    is_cut: bool,
}
