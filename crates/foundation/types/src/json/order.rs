//! The order of values of type `jsonb`, and keys whose bytes have that order.

use super::node::{JsonNode, JsonView};
use super::number::compare_numbers;
use crate::Numeric;
use crate::key::push_text;
use crate::numeric::push_key_of_digits;
use smallvec::SmallVec;
use std::borrow::Cow;
use std::cmp::Ordering;

/// What a node is, in PostgreSQL's order. An empty array that nothing encloses comes before all others: there a scalar is an
/// array of one element.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    EmptyRoot,
    Null,
    String,
    Number,
    Boolean,
    Array,
    Object,
}

fn rank(view: &JsonView<'_>) -> Rank {
    match view {
        JsonView::Null => Rank::Null,
        JsonView::String(_) => Rank::String,
        JsonView::Number(_) => Rank::Number,
        JsonView::Boolean(_) => Rank::Boolean,
        JsonView::Array(_) => Rank::Array,
        JsonView::Object(_) => Rank::Object,
    }
}

fn root_rank(view: &JsonView<'_>) -> Rank {
    match view {
        JsonView::Array(elements) if elements.len() == 0 => Rank::EmptyRoot,
        other => rank(other),
    }
}

/// The order of two whole values.
pub(super) fn compare_roots(left: JsonNode<'_>, right: JsonNode<'_>) -> Ordering {
    let order = root_rank(&left.view()).cmp(&root_rank(&right.view()));
    order.then_with(|| compare_nodes(left, right))
}

/// By what they are; containers by how many they hold, then one by one.
fn compare_nodes(left: JsonNode<'_>, right: JsonNode<'_>) -> Ordering {
    match (left.view(), right.view()) {
        (JsonView::Boolean(left), JsonView::Boolean(right)) => left.cmp(&right),
        (JsonView::String(left), JsonView::String(right)) => left.as_bytes().cmp(right.as_bytes()),
        (JsonView::Number(left), JsonView::Number(right)) => compare_numbers(left, right),
        (JsonView::Array(left), JsonView::Array(right)) => left.len().cmp(&right.len()).then_with(|| {
            left.zip(right)
                .map(|(left, right)| compare_nodes(left, right))
                .find(|order| order.is_ne())
                .unwrap_or(Ordering::Equal)
        }),
        (JsonView::Object(left), JsonView::Object(right)) => left.len().cmp(&right.len()).then_with(|| {
            left.zip(right)
                .map(|((left_key, left), (right_key, right))| {
                    left_key.as_bytes().cmp(right_key.as_bytes()).then_with(|| compare_nodes(left, right))
                })
                .find(|order| order.is_ne())
                .unwrap_or(Ordering::Equal)
        }),
        (left, right) => rank(&left).cmp(&rank(&right)),
    }
}

/// Appends a number as `Numeric::push_key` does, without making one: that takes time with the square of its digits.
fn push_number(bytes: &mut SmallVec<[u8; 16]>, written: &str, most: usize) {
    let (is_negative, unsigned) = match written.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, written),
    };
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let joined =
        if fraction.is_empty() { Cow::Borrowed(whole) } else { Cow::Owned([whole, fraction].concat()) };
    let leading = joined.bytes().take_while(|digit| *digit == b'0').count();
    if leading == joined.len() {
        return Numeric::ZERO.push_key(bytes, most);
    }
    let exponent = whole.len() as i32 - leading as i32;
    push_key_of_digits(bytes, is_negative, &joined.as_bytes()[leading..], exponent, most);
}

/// Appends a whole value so that byte order is its order, and equal values have equal bytes; not much more than `most`
/// bytes: of a value that is longer its beginning.
pub(crate) fn push_json_key(bytes: &mut SmallVec<[u8; 16]>, root: JsonNode<'_>, most: usize) {
    match root_rank(&root.view()) {
        Rank::EmptyRoot => bytes.push(Rank::EmptyRoot as u8),
        _ => push_node(bytes, root, most),
    }
}

fn push_node(bytes: &mut SmallVec<[u8; 16]>, node: JsonNode<'_>, most: usize) {
    let view = node.view();
    bytes.push(rank(&view) as u8);
    match view {
        JsonView::Null => {}
        JsonView::Boolean(truth) => bytes.push(u8::from(truth)),
        JsonView::String(text) => push_text(bytes, cut(text, most)),
        JsonView::Number(digits) => push_number(bytes, digits, most),
        JsonView::Array(elements) => {
            bytes.extend_from_slice(&(elements.len() as u32).to_be_bytes());
            for element in elements {
                if bytes.len() > most {
                    return;
                }
                push_node(bytes, element, most);
            }
        }
        JsonView::Object(members) => {
            bytes.extend_from_slice(&(members.len() as u32).to_be_bytes());
            for (key, value) in members {
                if bytes.len() > most {
                    return;
                }
                push_text(bytes, cut(key, most));
                push_node(bytes, value, most);
            }
        }
    }
}

/// As many bytes as tell whether it is too long, and no more.
fn cut(text: &str, most: usize) -> &[u8] {
    &text.as_bytes()[..text.len().min(most.saturating_add(1))]
}
