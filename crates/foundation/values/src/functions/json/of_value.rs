//! Values of any type as JSON.

use crate::functions::json::get::node_of;
use crate::work;
use std::borrow::Cow;
use std::collections::BTreeMap;
use types::session_format::{DateStyle, SessionFormat, session_format, within_format};
use types::{
    Composite, DataType, Dimension, JsonNode, JsonPart, Jsonb, Numeric, SqlError, Value, elements_in,
    format_value, write_json_string,
};

/// The names of the fields of an anonymous row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordShape {
    /// In their order.
    pub names: Vec<String>,
    /// Those of anonymous rows that stand in fields, by the places of these.
    pub inside: BTreeMap<usize, RecordShape>,
}

type Members = Vec<(Cow<'static, str>, JsonPart<'static>)>;

/// The names of anonymous rows in a shape, and the member with the shapes of their fields.
const NAMES: &str = "";
const INSIDE: &str = "+";

/// The names of the fields of rows, which values do not know: an object with the names of each composite type under its
/// number, and those of anonymous rows beside them.
///
/// # Errors
/// `54000` where they are too many.
pub fn json_shape(
    types: impl IntoIterator<Item = (u32, Vec<String>)>,
    record: Option<&RecordShape>,
) -> Result<Value, SqlError> {
    let mut members = record.map_or_else(|| Ok(Members::new()), RecordShape::members)?;
    for (number, names) in types {
        members.push((Cow::Owned(number.to_string()), array_of_names(&names)?));
    }
    Jsonb::new(&JsonPart::object(members)?).map(Value::Jsonb)
}

fn array_of_names(names: &[String]) -> Result<JsonPart<'static>, SqlError> {
    let names: Vec<JsonPart<'_>> = names.iter().map(|name| JsonPart::string(name)).collect();
    JsonPart::array(&names)
}

impl RecordShape {
    fn members(&self) -> Result<Members, SqlError> {
        let mut members = vec![(Cow::Borrowed(NAMES), array_of_names(&self.names)?)];
        if !self.inside.is_empty() {
            let inside = self.inside.iter().map(|(position, shape)| {
                Ok((Cow::Owned(position.to_string()), JsonPart::object(shape.members()?)?))
            });
            let inside = JsonPart::object(inside.collect::<Result<Members, SqlError>>()?)?;
            members.push((Cow::Borrowed(INSIDE), inside));
        }
        Ok(members)
    }
}

/// How values become JSON.
#[derive(Clone, Copy)]
pub(super) struct Form<'a> {
    shape: Option<JsonNode<'a>>,
    /// What has the names of an anonymous row that stands here.
    record: Option<JsonNode<'a>>,
    /// What stands between two elements or members of the outermost value.
    between: &'static str,
}

impl<'a> Form<'a> {
    pub(super) fn new(shape: &'a Value) -> Form<'a> {
        Form { shape: node_of(shape), record: node_of(shape), between: "," }
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
            None => self.record.and_then(|shape| shape.member(NAMES)),
        };
        let names: Vec<&str> = known.and_then(JsonNode::elements).into_iter().flatten().map(string).collect();
        let name = |position: usize| match names.get(position) {
            Some(name) => Cow::Borrowed(*name),
            None => Cow::Owned(format!("f{}", position + 1)),
        };
        (0..row.values().len()).map(name).collect()
    }

    /// Of what stands in a row, at this place.
    fn of_field(self, position: usize) -> Form<'a> {
        let inside = self.record.and_then(|record| record.member(INSIDE));
        let record = inside.and_then(|inside| inside.member(&position.to_string()));
        Form { record, between: ",", ..self }
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
            // As PostgreSQL, by its cast.
            Value::Hstore(store) => text.push_str(&store.to_json(false)?),
            Value::Array(array) => self.write_elements(text, &array.dimensions(), array.values())?,
            Value::Composite(row) => {
                text.push('{');
                for (position, (field, name)) in row.values().iter().zip(self.names(row)).enumerate() {
                    text.push_str(if position > 0 { self.between } else { "" });
                    write_json_string(text, &name);
                    text.push(':');
                    self.of_field(position).write(text, field)?;
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

    /// Appends the elements of an array of these dimensions.
    fn write_elements(
        self,
        text: &mut String,
        dimensions: &[Dimension],
        values: &[Value],
    ) -> Result<(), SqlError> {
        text.push('[');
        let inner = dimensions.get(1..).unwrap_or_default();
        if inner.is_empty() {
            for (position, element) in values.iter().enumerate() {
                text.push_str(if position > 0 { self.between } else { "" });
                self.inside().write(text, element)?;
            }
        } else {
            for (position, part) in values.chunks(elements_in(inner).max(1)).enumerate() {
                text.push_str(if position > 0 { self.between } else { "" });
                self.inside().write_elements(text, inner, part)?;
            }
        }
        text.push(']');
        Ok(())
    }

    /// The elements of an array of these dimensions as a part of a `jsonb`.
    fn part_of_elements<'v>(
        self,
        dimensions: &[Dimension],
        values: &'v [Value],
    ) -> Result<JsonPart<'v>, SqlError> {
        let inner = dimensions.get(1..).unwrap_or_default();
        if inner.is_empty() {
            return JsonPart::array_of(values.len(), values.iter().map(|element| self.part(element)));
        }
        let parts = values.chunks(elements_in(inner).max(1));
        JsonPart::array_of(parts.len(), parts.map(|part| self.part_of_elements(inner, part)))
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
            Value::Hstore(store) => JsonPart::owned(&Jsonb::parse(&store.to_json(false)?)?),
            Value::Json(text) => {
                let json = Jsonb::parse(text)?;
                work::spend(work::of_growth(text.len(), &json))?;
                JsonPart::owned(&json)
            }
            Value::Array(array) => self.part_of_elements(&array.dimensions(), array.values())?,
            Value::Composite(row) => {
                let fields = row.values().iter().zip(self.names(row)).enumerate();
                let member = |(position, (field, name))| Ok((name, self.of_field(position).part(field)?));
                JsonPart::object_of(fields.map(member))?
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
    if text.len() > 2 * types::text_bytes_max() {
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

/// An instant whose offset has minutes.
fn with_whole_offset(text: &str) -> String {
    let Some(sign) = text.rfind(['+', '-']).filter(|at| text[..*at].contains('T')) else {
        return text.to_string();
    };
    let digits = text[sign + 1..].find(|next: char| !next.is_ascii_digit() && next != ':');
    let end = digits.map_or(text.len(), |length| sign + 1 + length);
    match end - sign {
        // `+02`
        3 => format!("{}:00{}", &text[..end], &text[end..]),
        _ => text.to_string(),
    }
}

/// What stands in the quotes. Points in time have a `T`, and a whole offset, as ISO 8601 has it.
pub(super) fn scalar_text(value: &Value) -> String {
    if let Value::Range(_) | Value::Multirange(_) = value {
        // As a cast to text writes it.
        return format_value(value).unwrap_or_default();
    }
    // In ISO's form, whatever the session's is.
    let format = SessionFormat { dates: DateStyle::default(), ..session_format() };
    let text = within_format(format, || format_value(value)).unwrap_or_default();
    match value.data_type() {
        DataType::Timestamp => text.replacen(' ', "T", 1),
        DataType::TimestampTz => with_whole_offset(&text.replacen(' ', "T", 1)),
        _ => text,
    }
}
