//! Whether a `jsonb` has keys, elements, or all that another one has.

use types::{JsonNode, JsonView, Jsonb, Value, compare_json_keys};

/// Units of comparing each part of one with each part of the other.
pub(super) fn pairs(values: &[Value]) -> u64 {
    const BYTES_PER_PART: u64 = 16;
    let bytes = |value: &Value| crate::work::of_value(value);
    let product = values.iter().map(bytes).fold(1, u64::saturating_mul);
    values.iter().map(bytes).fold(product / BYTES_PER_PART, u64::saturating_add)
}

/// `left @> right`. A scalar is in an array that has it as an element.
pub(super) fn contains(left: &Jsonb, right: &Jsonb) -> bool {
    let (left, right) = (left.node(), right.node());
    match (left.view(), right.view()) {
        (JsonView::Array(_), JsonView::Array(_)) | (JsonView::Object(_), JsonView::Object(_)) => {
            has_all(left, right)
        }
        (JsonView::Array(mut elements), _) if !right.is_container() => {
            elements.any(|element| is_equal_scalar(element, right))
        }
        _ => is_equal_scalar(left, right),
    }
}

fn is_equal_scalar(left: JsonNode<'_>, right: JsonNode<'_>) -> bool {
    !left.is_container() && !right.is_container() && (left == right || left.is_equal_number(right))
}

/// Whether a container has all that another one has, in whatever order and number.
fn has_all(left: JsonNode<'_>, right: JsonNode<'_>) -> bool {
    match (left.view(), right.view()) {
        (JsonView::Object(members), JsonView::Object(wanted)) => {
            if members.len() < wanted.len() {
                return false;
            }
            // Both are sorted by their keys.
            let mut members = members.peekable();
            wanted.into_iter().all(|(key, wanted)| {
                while members.next_if(|(known, _)| compare_json_keys(known, key).is_lt()).is_some() {}
                match members.peek() {
                    Some((known, value)) if *known == key => {
                        is_equal_scalar(*value, wanted) || has_all(*value, wanted)
                    }
                    _ => false,
                }
            })
        }
        (JsonView::Array(elements), JsonView::Array(mut wanted)) => wanted.all(|wanted| {
            elements.clone().any(|element| is_equal_scalar(element, wanted) || has_all(element, wanted))
        }),
        _ => false,
    }
}

/// `json ? key`: whether it is an object with this key, an array with this string, or the string.
pub(super) fn exists(json: &Jsonb, key: &str) -> bool {
    let is_key = |node: JsonNode<'_>| matches!(node.view(), JsonView::String(text) if text == key);
    match json.node().view() {
        JsonView::Object(mut members) => members.any(|(name, _)| name == key),
        JsonView::Array(mut elements) => elements.any(is_key),
        _ => is_key(json.node()),
    }
}
