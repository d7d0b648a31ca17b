//! Documents and queries made of others.

use types::text_search::{
    Lexeme, POSITION_MAX, POSITIONS_MAX, Position, QueryItem, TsQuery, TsVector, Weight,
};
use types::{SqlError, SqlState, Value, format_value};

fn parts(lexeme: Lexeme<'_>) -> (&str, Vec<Position>) {
    (lexeme.text, lexeme.positions.iter().collect())
}

/// The lexemes without their places.
pub(crate) fn strip(vector: &TsVector) -> Result<TsVector, SqlError> {
    TsVector::of_sorted(vector.lexemes().map(|lexeme| (lexeme.text, Vec::new())))
}

/// The same document where all places, or those of some lexemes, have a weight.
pub(crate) fn set_weight(
    vector: &TsVector,
    weight: Weight,
    only: Option<&[&str]>,
) -> Result<TsVector, SqlError> {
    let with_weight = |lexeme| {
        let (text, mut positions) = parts(lexeme);
        if only.is_none_or(|lexemes| lexemes.contains(&text)) {
            positions
                .iter_mut()
                .for_each(|position| *position = Position::new(position.place().into(), weight));
        }
        (text, positions)
    };
    TsVector::of_sorted(vector.lexemes().map(with_weight))
}

/// The document without some lexemes.
pub(crate) fn delete<T: AsRef<str>>(vector: &TsVector, deleted: &[T]) -> Result<TsVector, SqlError> {
    let is_kept = |lexeme: &Lexeme<'_>| !deleted.iter().any(|deleted| deleted.as_ref() == lexeme.text);
    TsVector::of_sorted(vector.lexemes().filter(is_kept).map(parts))
}

/// The places that have one of some weights, and their lexemes.
pub(crate) fn filter(vector: &TsVector, weights: &[Weight]) -> Result<TsVector, SqlError> {
    let filtered = vector.lexemes().filter_map(|lexeme| {
        let (text, mut positions) = parts(lexeme);
        positions.retain(|position| weights.contains(&position.weight()));
        (!positions.is_empty()).then_some((text, positions))
    });
    TsVector::of_sorted(filtered)
}

/// The document of these lexemes, which have no places.
///
/// # Errors
/// `22004` for NULL, `2200F` for an empty one.
pub(crate) fn of_lexemes(values: &[Value]) -> Result<TsVector, SqlError> {
    let mut lexemes = Vec::with_capacity(values.len());
    for value in values {
        let Value::Text(text) = value else {
            let message = "lexeme array may not contain nulls";
            return Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
        };
        lexemes.push((text.to_string(), Vec::new()));
    }
    TsVector::new(lexemes)
}

/// Both documents, the second one behind the first.
pub(crate) fn concatenate(first: &TsVector, second: &TsVector) -> Result<TsVector, SqlError> {
    let last =
        first.lexemes().flat_map(|lexeme| lexeme.positions.iter().map(Position::place)).max().unwrap_or(0);
    let (mut lefts, mut rights) = (first.lexemes().peekable(), second.lexemes().peekable());
    let mut both = Vec::new();
    loop {
        let from_left = match (lefts.peek(), rights.peek()) {
            (None, None) => return TsVector::of_sorted(both),
            (Some(left), Some(right)) => left.text <= right.text,
            (left, _) => left.is_some(),
        };
        let next = if from_left { lefts.next().map(parts) } else { None };
        let (text, mut positions) = match (next, rights.peek()) {
            (Some(next), _) => next,
            (None, Some(right)) => (right.text, Vec::new()),
            (None, None) => return TsVector::of_sorted(both),
        };
        if let Some(right) = rights.next_if(|right| right.text == text) {
            for position in right.positions.iter() {
                // What is behind the last place that there is counts once.
                let is_full = positions.len() >= POSITIONS_MAX
                    || positions.last().is_some_and(|position| position.place() == POSITION_MAX);
                if is_full {
                    break;
                }
                let place = u32::from(position.place()) + u32::from(last);
                positions.push(Position::new(place, position.weight()));
            }
        }
        both.push((text, positions));
    }
}

/// The part of a query that an index could look for: what it needs, as a text; `T` where it needs nothing.
pub(crate) fn needed(query: &TsQuery) -> Result<String, SqlError> {
    if query.is_empty() {
        return Ok(String::new());
    }
    let needed = needed_items(query);
    let query = TsQuery::new(needed)?.filter(|query| !query.is_empty());
    Ok(match query {
        Some(query) => format_value(&Value::TsQuery(query)).unwrap_or_default(),
        None => "T".to_string(),
    })
}

/// The words that a document must have, each with where its part begins in what is kept.
fn needed_items(query: &TsQuery) -> Vec<QueryItem> {
    let mut kept: Vec<QueryItem> = Vec::new();
    // Where each part begins, and whether anything of it is needed.
    let mut parts: Vec<(usize, bool)> = Vec::new();
    for item in query.items() {
        let nothing = |kept: &[QueryItem]| (kept.len(), false);
        match item {
            QueryItem::Operand { .. } => {
                parts.push((kept.len(), true));
                kept.push(item.clone());
            }
            QueryItem::Not => {
                let (start, _) = parts.pop().unwrap_or_else(|| nothing(&kept));
                kept.truncate(start);
                parts.push((start, false));
            }
            QueryItem::And | QueryItem::Or | QueryItem::Phrase(_) => {
                let (_, needs_right) = parts.pop().unwrap_or_else(|| nothing(&kept));
                let (start, needs_left) = parts.pop().unwrap_or_else(|| nothing(&kept));
                let needs_both = needs_left && needs_right;
                if needs_both {
                    kept.push(item.clone());
                } else if *item == QueryItem::Or {
                    kept.truncate(start);
                }
                let needs_one = *item != QueryItem::Or && (needs_left || needs_right);
                parts.push((start, needs_both || needs_one));
            }
        }
    }
    kept
}

/// Whether one query has all words of another.
pub(crate) fn holds_words(whole: &TsQuery, part: &TsQuery) -> bool {
    let words = |query: &TsQuery| -> Vec<_> {
        let word = |item: &QueryItem| match item {
            QueryItem::Operand { text, .. } => Some(text.clone()),
            _ => None,
        };
        let mut words: Vec<_> = query.items().iter().filter_map(word).collect();
        words.sort_unstable();
        words.dedup();
        words
    };
    let whole = words(whole);
    words(part).iter().all(|word| whole.binary_search(word).is_ok())
}
