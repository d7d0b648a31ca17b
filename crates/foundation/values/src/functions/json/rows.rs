//! JSON as rows: its members and elements, and records that are read from it.

use crate::functions::json::refused;
use crate::functions::json::written::{Json, Parts};
use crate::work;
use std::sync::Arc;
use types::{Array, Composite, CompositeTypes, DataType, OutputColumn, SqlError, SqlState, Value};

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
        types: &CompositeTypes,
    ) -> Result<Vec<Vec<Value>>, SqlError> {
        let Some(json) = Json::of(value) else { return self.of_null(base) };
        work::spend(work::of_value(value))?;
        let is_binary = matches!(json, Json::Node(_));
        let parts = json.parts()?;
        match (self, parts) {
            (JsonRows::Elements(as_text), Parts::Array(elements)) => {
                let value = |element: Json<'_>| if *as_text { element.text() } else { element.value() };
                elements.into_iter().map(|element| Ok(vec![value(element)?])).collect()
            }
            (JsonRows::Members(as_text), Parts::Object(members)) => {
                let value = |member: Json<'_>| if *as_text { member.text() } else { member.value() };
                let row = |(key, member): (_, Json<'_>)| {
                    let key: std::borrow::Cow<'_, str> = key;
                    Ok(vec![Value::text(key.as_ref()), value(member)?])
                };
                members.into_iter().map(row).collect()
            }
            (JsonRows::Keys, Parts::Object(members)) => {
                Ok(members.into_iter().map(|(key, _)| vec![Value::text(key.as_ref())]).collect())
            }
            (JsonRows::Record(fields), Parts::Object(_)) => {
                Ok(vec![Reading { types }.fields(json, fields, base)?])
            }
            (JsonRows::Records(fields), Parts::Array(elements)) => {
                let reading = Reading { types };
                let row = |element: Json<'_>| match element.parts()? {
                    Parts::Object(_) => reading.fields(element, fields, base),
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
    types: &CompositeTypes,
) -> Result<Value, SqlError> {
    let fields = types.of(data_type).map(|known| known.fields.clone()).unwrap_or_default();
    if json.is_null() {
        return Ok(base.clone());
    }
    let mut rows = JsonRows::Record(fields).rows(function, json, base, types)?;
    row(data_type, rows.pop().unwrap_or_default())
}

fn row(data_type: DataType, fields: Vec<Value>) -> Result<Value, SqlError> {
    let type_id = match data_type {
        DataType::Composite(id) => Some(id),
        _ => None,
    };
    Ok(Value::Composite(Arc::new(Composite::new(type_id, fields)?)))
}

/// Reads fields.
struct Reading<'a> {
    types: &'a CompositeTypes,
}

impl Reading<'_> {
    fn fields(&self, json: Json<'_>, fields: &[OutputColumn], base: &Value) -> Result<Vec<Value>, SqlError> {
        let members = match json.parts()? {
            Parts::Object(members) => members,
            Parts::Array(_) => return Err(refused("cannot call populate_composite on an array")),
            _ => return Err(refused("cannot call populate_composite on a scalar")),
        };
        work::spend((members.len() as u64).saturating_mul(fields.len() as u64))?;
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
            (Parts::Array(elements), DataType::Array(element)) => {
                let element_type = element.data_type();
                let values = elements.iter().map(|value| self.field(*value, element_type, name));
                let array = Array::new(element, values.collect::<Result<_, _>>()?)?;
                return Ok(Value::Array(Arc::new(array)));
            }
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
        self.types.assign(Value::text(text), data_type)
    }
}
