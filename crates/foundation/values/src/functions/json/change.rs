//! Values of type `jsonb` with something in them changed, added or taken away.

use crate::functions::entry::{Computed, Function, code};
use crate::functions::json::get::index;
use crate::functions::json::{jsonb, refused, text_of};
use std::borrow::Cow;
use types::{JsonNode, JsonPart, JsonView, Jsonb, SqlError, SqlState, Value, check_json};

/// A `jsonb` with a value at the place that subscripts say, which are texts: `x['a'][0] = value`. The first argument says
/// whether the first subscript is a number, for a value that is NULL so far.
pub static JSON_ASSIGN: Function = Function::form(
    &["[] ="],
    code!(
        [Value::Boolean(is_index), json, value, path @ ..] => {
            let path: Vec<Option<&str>> = path.iter().map(text_of).collect();
            if path.iter().any(Option::is_none) {
                let message = "jsonb subscript in assignment must not be null";
                return Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
            }
            let empty = if *is_index { JsonPart::array(&[])? } else { JsonPart::object(Vec::new())? };
            let root = match json {
                Value::Jsonb(json) => json.node(),
                _ => empty.node(),
            };
            let value = match value {
                Value::Jsonb(value) => value.node(),
                _ => JsonNode::NULL,
            };
            jsonb(&Change { path, value: Some(value), operation: Operation::Assign }.at(root, 0)?)
        }
    ),
)
.sees_null();

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    /// Replaces, or adds what is missing at the end of the path.
    Create,
    Replace,
    InsertBefore,
    InsertAfter,
    Delete,
    /// Adds whatever is missing on the path.
    Assign,
}

/// What becomes of the value that a path leads to.
pub(super) struct Change<'a> {
    pub path: Vec<Option<&'a str>>,
    /// What comes there.
    pub value: Option<JsonNode<'a>>,
    pub operation: Operation,
}

impl<'a> Change<'a> {
    /// Of a whole value.
    ///
    /// # Errors
    /// `22023` for a scalar and for keys that are there already, `22004` and `22P02` for a path that is none.
    pub(super) fn of(&self, json: &'a Jsonb) -> Computed {
        let root = json.node();
        if !root.is_container() {
            let what = if self.operation == Operation::Delete { "delete" } else { "set" };
            return Err(refused(format!("cannot {what} path in scalar")));
        }
        let is_empty = match root.view() {
            JsonView::Array(elements) => elements.len() == 0,
            JsonView::Object(members) => members.len() == 0,
            _ => false,
        };
        // Nobody looks at the path then.
        if self.path.is_empty() || (is_empty && !self.creates()) {
            return Ok(Value::Jsonb(json.clone()));
        }
        jsonb(&self.at(root, 0)?)
    }

    fn creates(&self) -> bool {
        !matches!(self.operation, Operation::Replace | Operation::Delete)
    }

    fn inserts(&self) -> bool {
        matches!(self.operation, Operation::InsertBefore | Operation::InsertAfter)
    }

    fn is_last(&self, level: usize) -> bool {
        level + 1 == self.path.len()
    }

    fn at(&self, node: JsonNode<'a>, level: usize) -> Result<JsonPart<'a>, SqlError> {
        let Some(name) = self.path.get(level).copied().flatten() else {
            let message = format!("path element at position {} is null", level + 1);
            return Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
        };
        match node.view() {
            JsonView::Object(members) => self.object(members, level, name),
            JsonView::Array(elements) => self.array(elements.collect(), level, name),
            _ if self.operation == Operation::Assign => Err(refused("cannot replace existing key")
                .detail("The path assumes key is a composite object, but it is a scalar value.")),
            _ => Ok(JsonPart::from(node)),
        }
    }

    fn object(
        &self,
        members: types::JsonMembers<'a>,
        level: usize,
        name: &'a str,
    ) -> Result<JsonPart<'a>, SqlError> {
        let (mut parts, mut done) = (Vec::new(), false);
        for (key, value) in members {
            let part = match (key == name, self.is_last(level)) {
                (false, _) => Some(JsonPart::from(value)),
                (true, false) => Some(self.at(value, level + 1)?),
                (true, true) if self.inserts() => {
                    return Err(refused("cannot replace existing key")
                        .hint("Try using the function jsonb_set to replace key value."));
                }
                (true, true) => self.value.map(JsonPart::from),
            };
            done |= key == name;
            parts.extend(part.map(|part| (Cow::Borrowed(key), part)));
        }
        if !done && self.is_last(level) && self.creates() {
            parts.extend(self.value.map(|value| (Cow::Borrowed(name), JsonPart::from(value))));
        } else if !done && self.operation == Operation::Assign {
            parts.push((Cow::Borrowed(name), self.chain(level + 1)?));
        }
        JsonPart::object(parts)
    }

    fn array(
        &self,
        elements: Vec<JsonNode<'a>>,
        level: usize,
        name: &'a str,
    ) -> Result<JsonPart<'a>, SqlError> {
        let Some(place) = index(name) else {
            let message = format!("path element at position {} is not an integer: \"{name}\"", level + 1);
            return Err(SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, message));
        };
        let (count, is_last, assigns) =
            (elements.len() as i64, self.is_last(level), self.operation == Operation::Assign);
        let is_before = place < 0 && -place > count;
        if is_before && assigns {
            let message = format!("path element at position {} is out of range: {place}", level + 1);
            return Err(refused(message));
        }
        let mut place = if place < 0 { count + place } else { place };
        if !assigns {
            place = place.min(count);
        }
        let value = || self.value.map(JsonPart::from);
        let (mut parts, mut done) = (Vec::new(), false);
        if (is_before || count == 0) && is_last && self.creates() {
            parts.extend(nulls(if assigns { place } else { 0 })?);
            parts.extend(value());
            done = true;
        }
        for (position, element) in (0..).zip(elements) {
            if is_before || position != place {
                parts.push(JsonPart::from(element));
                continue;
            }
            done = true;
            if !is_last {
                parts.push(self.at(element, level + 1)?);
                continue;
            }
            match self.operation {
                Operation::InsertBefore => parts.extend(value().into_iter().chain([element.into()])),
                Operation::InsertAfter => parts.extend([element.into()].into_iter().chain(value())),
                _ => parts.extend(value()),
            }
        }
        if !done && (is_last && self.creates() || assigns) {
            parts.extend(nulls(if assigns { place - count } else { 0 })?);
            parts.extend(if is_last { value() } else { Some(self.chain(level + 1)?) });
        }
        JsonPart::array(&parts)
    }

    /// The value inside of all that the rest of the path names.
    fn chain(&self, from: usize) -> Result<JsonPart<'a>, SqlError> {
        let mut part = self.value.map_or(JsonPart::NULL, JsonPart::from);
        for name in self.path[from..].iter().rev().copied().flatten() {
            part = match index(name) {
                Some(place) => {
                    let mut elements = nulls(place)?;
                    elements.push(part);
                    JsonPart::array(&elements)?
                }
                None => JsonPart::object(vec![(Cow::Borrowed(name), part)])?,
            };
        }
        Ok(part)
    }
}

/// So many nulls, in front of an element that comes behind the end of an array.
fn nulls(count: i64) -> Result<Vec<JsonPart<'static>>, SqlError> {
    let count = usize::try_from(count).unwrap_or(0);
    if count > types::text_bytes_max() / "null, ".len() {
        let message = format!(
            "the array would have more than {count} elements and be longer than {} bytes as a text (TEXT_BYTES_MAX)",
            types::text_bytes_max()
        );
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
    }
    Ok(vec![JsonPart::NULL; count])
}

/// `left || right`: the members of both objects, or the elements of both, where all that is no array is one element.
pub(super) fn concatenated(left: &Jsonb, right: &Jsonb) -> Computed {
    let (left, right) = (left.node(), right.node());
    if let (Some(one), Some(other)) = (left.members(), right.members()) {
        let members = one.chain(other).map(|(key, value)| (Cow::Borrowed(key), JsonPart::from(value)));
        return jsonb(&JsonPart::object(members.collect())?);
    }
    let mut all = elements_of(left);
    all.extend(elements_of(right));
    jsonb(&JsonPart::array(&all)?)
}

fn elements_of(node: JsonNode<'_>) -> Vec<JsonPart<'_>> {
    match node.elements() {
        Some(elements) => elements.map(JsonPart::from).collect(),
        None => vec![JsonPart::from(node)],
    }
}

/// `json - key`, of several keys: without these members, or these strings.
pub(super) fn without_keys(json: &Jsonb, keys: &[Option<&str>]) -> Computed {
    let goes = |text: &str| keys.contains(&Some(text));
    match json.node().view() {
        JsonView::Object(members) => {
            let kept = members.filter(|(key, _)| !goes(key));
            let kept = kept.map(|(key, value)| (Cow::Borrowed(key), JsonPart::from(value)));
            jsonb(&JsonPart::object(kept.collect())?)
        }
        JsonView::Array(elements) => {
            let is_gone = |node: &JsonNode<'_>| matches!(node.view(), JsonView::String(text) if goes(text));
            let kept: Vec<_> = elements.filter(|node| !is_gone(node)).map(JsonPart::from).collect();
            jsonb(&JsonPart::array(&kept)?)
        }
        _ => Err(refused("cannot delete from scalar")),
    }
}

/// `json - index`
pub(super) fn without_element(json: &Jsonb, index: i32) -> Computed {
    let elements = match json.node().view() {
        JsonView::Array(elements) => elements,
        JsonView::Object(_) => return Err(refused("cannot delete from object using integer index")),
        _ => return Err(refused("cannot delete from scalar")),
    };
    let place = if index < 0 { elements.len() as i64 + i64::from(index) } else { i64::from(index) };
    let kept = (0..).zip(elements).filter(|(position, _)| *position != place);
    jsonb(&JsonPart::array(&kept.map(|(_, node)| JsonPart::from(node)).collect::<Vec<_>>())?)
}

/// Without the members that are null, at any depth.
pub(super) fn without_nulls(node: JsonNode<'_>) -> Result<JsonPart<'_>, SqlError> {
    match node.view() {
        JsonView::Object(members) => {
            let kept = members.filter(|(_, value)| !matches!(value.view(), JsonView::Null));
            let kept = kept.map(|(key, value)| Ok((Cow::Borrowed(key), without_nulls(value)?)));
            JsonPart::object(kept.collect::<Result<_, SqlError>>()?)
        }
        JsonView::Array(elements) => {
            JsonPart::array(&elements.map(without_nulls).collect::<Result<Vec<_>, _>>()?)
        }
        _ => Ok(JsonPart::from(node)),
    }
}

/// A `jsonb` as a text of many lines.
pub(super) fn pretty(json: &Jsonb) -> Computed {
    let mut text = String::new();
    write_pretty(&mut text, json.node(), 0)?;
    Ok(Value::text(text))
}

fn write_pretty(text: &mut String, node: JsonNode<'_>, depth: usize) -> Result<(), SqlError> {
    if text.len() > types::text_bytes_max() {
        // It says how much is too much.
        check_json(text)?;
    }
    let line = |text: &mut String, depth: usize| {
        text.push('\n');
        text.extend(std::iter::repeat_n(' ', 4 * depth));
    };
    let comma = |position: usize| if position > 0 { "," } else { "" };
    match node.view() {
        JsonView::Array(elements) => {
            text.push('[');
            for (position, element) in elements.enumerate() {
                text.push_str(comma(position));
                line(text, depth + 1);
                write_pretty(text, element, depth + 1)?;
            }
            line(text, depth);
            text.push(']');
        }
        JsonView::Object(members) => {
            text.push('{');
            for (position, (key, value)) in members.enumerate() {
                text.push_str(comma(position));
                line(text, depth + 1);
                types::write_json_string(text, key);
                text.push_str(": ");
                write_pretty(text, value, depth + 1)?;
            }
            line(text, depth);
            text.push('}');
        }
        _ => text.push_str(&Jsonb::new(&JsonPart::from(node))?.to_text()),
    }
    Ok(())
}
