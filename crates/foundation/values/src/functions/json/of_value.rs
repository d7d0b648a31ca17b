//! Values of any type as JSON.

use crate::functions::json::get::node_of;
use crate::work;
use std::borrow::Cow;
use types::{
    Composite, DataType, JsonNode, JsonPart, Jsonb, Numeric, SqlError, Value, format_value, limits,
    write_json_string,
};

/// The names of the fields of rows, which values do not know: an object with the names of anonymous rows under the empty
/// key, and those of each composite type under its number.
///
/// # Errors
/// `54000` where they are too many.
pub fn json_shape(names: impl IntoIterator<Item = (Option<u32>, Vec<String>)>) -> Result<Value, SqlError> {
    let mut members = Vec::new();
    for (number, names) in names {
        let key = number.map_or_else(String::new, |number| number.to_string());
        let names: Vec<JsonPart<'_>> = names.iter().map(|name| JsonPart::string(name)).collect();
        members.push((Cow::Owned(key), JsonPart::array(&names)?));
    }
    Jsonb::new(&JsonPart::object(members)?).map(Value::Jsonb)
}

/// How values become JSON.
#[derive(Clone, Copy)]
pub(super) struct Form<'a> {
    shape: Option<JsonNode<'a>>,
    /// The names of an anonymous row are those of the outermost one.
    is_outermost: bool,
    /// What stands between two elements or members of the outermost value.
    between: &'static str,
}

impl<'a> Form<'a> {
    pub(super) fn new(shape: &'a Value) -> Form<'a> {
        Form { shape: node_of(shape), is_outermost: true, between: "," }
    }

    /// With line feeds in the outermost value.
    pub(super) fn of_lines(self) -> Form<'a> {
        Form { between: ",\n ", ..self }
    }

    fn inside(self) -> Form<'a> {
        Form { between: ",", ..self }
    }

    /// The names of a row's fields.
    fn names(self, row: &Composite) -> Vec<Cow<'a, str>> {
        let known = match row.type_id() {
            Some(id) => self.shape.and_then(|shape| shape.member(&id.0.to_string())),
            None => self.shape.filter(|_| self.is_outermost).and_then(|shape| shape.member("")),
        };
        let names: Vec<&str> = known.and_then(JsonNode::elements).into_iter().flatten().map(string).collect();
        let name = |position: usize| match names.get(position) {
            Some(name) => Cow::Borrowed(*name),
            None => Cow::Owned(format!("f{}", position + 1)),
        };
        (0..row.values().len()).map(name).collect()
    }

    /// Of what stands in a row.
    fn of_field(self) -> Form<'a> {
        Form { is_outermost: false, between: ",", ..self }
    }

    /// Appends a value.
    ///
    /// # Errors
    /// `54000` where it becomes too long.
    pub(super) fn write(self, text: &mut String, value: &Value) -> Result<(), SqlError> {
        check_room(text)?;
        match value {
            Value::Null => text.push_str("null"),
            Value::Boolean(truth) => text.push_str(if *truth { "true" } else { "false" }),
            Value::Json(json) => text.push_str(json),
            Value::Jsonb(json) => text.push_str(&json.to_text()),
            Value::Array(array) => {
                text.push('[');
                for (position, element) in array.values().iter().enumerate() {
                    text.push_str(if position > 0 { self.between } else { "" });
                    self.inside().write(text, element)?;
                }
                text.push(']');
            }
            Value::Composite(row) => {
                text.push('{');
                for (position, (field, name)) in row.values().iter().zip(self.names(row)).enumerate() {
                    text.push_str(if position > 0 { self.between } else { "" });
                    write_json_string(text, &name);
                    text.push(':');
                    self.of_field().write(text, field)?;
                }
                text.push('}');
            }
            scalar => match number_text(scalar) {
                Some(number) => text.push_str(&number),
                None => write_json_string(text, &scalar_text(scalar)),
            },
        }
        Ok(())
    }

    /// The value as a part of a `jsonb`.
    ///
    /// # Errors
    /// `54000` where it is too long.
    pub(super) fn part(self, value: &Value) -> Result<JsonPart<'_>, SqlError> {
        Ok(match value {
            Value::Null => JsonPart::NULL,
            Value::Boolean(truth) => JsonPart::boolean(*truth),
            Value::Numeric(number) => JsonPart::number(number),
            Value::Jsonb(json) => JsonPart::from(json.node()),
            Value::Json(text) => {
                let json = Jsonb::parse(text)?;
                work::spend(work::of_growth(text.len(), &json))?;
                JsonPart::owned(&json)
            }
            Value::Array(array) => {
                let elements = array.values().iter().map(|element| self.part(element));
                JsonPart::array_of(array.values().len(), elements)?
            }
            Value::Composite(row) => {
                let fields = row.values().iter().zip(self.names(row));
                JsonPart::object_of(fields.map(|(field, name)| Ok((name, self.of_field().part(field)?))))?
            }
            scalar => match number_text(scalar) {
                Some(number) => JsonPart::number(&Numeric::parse(&number)?),
                None => JsonPart::string(&scalar_text(scalar)),
            },
        })
    }
}

fn string<'a>(node: JsonNode<'a>) -> &'a str {
    match node.view() {
        types::JsonView::String(text) => text,
        _ => "",
    }
}

/// What is put together may be a little longer than a text; who ends it checks it.
pub(super) fn check_room(text: &str) -> Result<(), SqlError> {
    if text.len() > 2 * limits::TEXT_BYTES_MAX {
        return types::check_json(text);
    }
    Ok(())
}

/// A number as JSON writes it; `None` for what is none there, such as infinity.
fn number_text(value: &Value) -> Option<String> {
    let is_number = match value {
        Value::SmallInt(_) | Value::Integer(_) | Value::BigInt(_) => true,
        Value::Numeric(number) => !number.is_special(),
        Value::Real(number) => number.is_finite(),
        Value::Double(number) => number.is_finite(),
        _ => false,
    };
    is_number.then(|| format_value(value)).flatten()
}

/// What stands in the quotes. Points in time have a `T`, and a whole offset, as ISO 8601 has it.
pub(super) fn scalar_text(value: &Value) -> String {
    let text = format_value(value).unwrap_or_default();
    match value.data_type() {
        DataType::Timestamp => text.replacen(' ', "T", 1),
        DataType::TimestampTz => text.replacen(' ', "T", 1).replacen("+00", "+00:00", 1),
        _ => text,
    }
}
