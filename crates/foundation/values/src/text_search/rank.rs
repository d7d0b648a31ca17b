//! How well documents match: PostgreSQL's `ts_rank` and `ts_rank_cd` (Clarke, Cormack and Tudhope: Relevance ranking for one to three term
//! queries, 1999), in its arithmetic of single and double precision.

use super::looks::Looks;
use super::matching::{Found, Operand, execute};
use super::words_of_vector::WordsOfVector;
use crate::work;
use types::text_search::{POSITION_MAX, Position, QueryItem, TsQuery, TsVector, Weight};
use types::{SqlError, SqlState, Value};

/// Weights of D, C, B and A where nothing is said.
const WEIGHTS: [f32; 4] = [0.1, 0.2, 0.4, 1.0];

/// By what a rank is divided, bit by bit.
const BY_LOGARITHM_OF_LENGTH: i32 = 1;
const BY_LENGTH: i32 = 2;
const BY_DISTANCE_OF_EXTENTS: i32 = 4;
const BY_WORDS: i32 = 8;
const BY_LOGARITHM_OF_WORDS: i32 = 16;
const BY_ITSELF_PLUS_ONE: i32 = 32;

/// The weights of D, C, B and A that an array says; a negative one is the usual one.
///
/// # Errors
/// `2202E` for too few, `22004` for NULL, `22023` for one beyond 1.
pub(crate) fn weights(values: &[Value]) -> Result<[f32; 4], SqlError> {
    if values.len() < WEIGHTS.len() {
        return Err(SqlError::new(SqlState(*b"2202E"), "array of weight is too short"));
    }
    if values.iter().any(Value::is_null) {
        return Err(SqlError::new(
            SqlState::NULL_VALUE_NOT_ALLOWED,
            "array of weight must not contain nulls",
        ));
    }
    let mut weights = WEIGHTS;
    for (weight, value) in weights.iter_mut().zip(values) {
        if let Value::Real(given) = value
            && *given >= 0.0
        {
            *weight = *given;
        }
        if *weight > 1.0 {
            return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, "weight out of range"));
        }
    }
    Ok(weights)
}

/// The weights where nothing is said.
pub(crate) fn usual_weights() -> [f32; 4] {
    WEIGHTS
}

/// By how often words occur, and how near they are to one another where all are asked for.
///
/// # Errors
/// `57014` where that takes more work than there is left.
pub(crate) fn rank(
    weights: &[f32; 4],
    vector: &TsVector,
    query: &TsQuery,
    method: i32,
) -> Result<f32, SqlError> {
    let words = WordsOfVector::new(vector)?;
    let Some(last) = query.items().last().filter(|_| words.count() > 0) else { return Ok(0.0) };
    let operands = different_operands(query);
    work::spend((operands.len() * 16) as u64)?;
    let together = matches!(last, QueryItem::And | QueryItem::Phrase(_)) && operands.len() > 1;
    let mut rank = match together {
        true => rank_together(weights, &words, &operands)?,
        false => rank_each(weights, &words, &operands),
    };
    if rank < 0.0 {
        rank = 1e-20;
    }
    if method & BY_LOGARITHM_OF_LENGTH != 0 {
        rank = (f64::from(rank) / (libm::log((words.places() + 1) as f64) / libm::log(2.0))) as f32;
    }
    if method & BY_LENGTH != 0 {
        rank /= words.places() as f32;
    }
    if method & BY_WORDS != 0 {
        rank /= words.count() as f32;
    }
    if method & BY_LOGARITHM_OF_WORDS != 0 {
        rank = (f64::from(rank) / (libm::log((words.count() + 1) as f64) / libm::log(2.0))) as f32;
    }
    if method & BY_ITSELF_PLUS_ONE != 0 {
        rank /= rank + 1.0;
    }
    Ok(rank)
}

/// The words of a query in the order of their bytes, each once.
fn different_operands(query: &TsQuery) -> Vec<Operand<'_>> {
    let mut operands: Vec<Operand<'_>> = operands(query).collect();
    operands.sort_by_key(|operand| operand.text);
    operands.dedup_by_key(|operand| operand.text);
    operands
}

/// The words of a query in the order in which PostgreSQL keeps them: the last one first.
fn operands(query: &TsQuery) -> impl Iterator<Item = Operand<'_>> {
    query.items().iter().enumerate().rev().filter_map(|(item, found)| match found {
        QueryItem::Operand { text, weights, is_prefix } => {
            Some(Operand { item, text, weights: *weights, is_prefix: *is_prefix })
        }
        _ => None,
    })
}

fn weight_of(weights: &[f32; 4], position: Position) -> f32 {
    weights[position.weight() as usize]
}

/// How much two words count that are so far apart.
fn nearness(distance: u16) -> f32 {
    if distance > 100 {
        return 1e-30;
    }
    let exponent = f64::from(f32::from(distance)) / 1.5 - 2.0;
    (1.0 / (1.005 + 0.05 * libm::exp(exponent))) as f32
}

fn rank_each(weights: &[f32; 4], words: &WordsOfVector<'_>, operands: &[Operand<'_>]) -> f32 {
    let mut rank = 0.0_f32;
    let nowhere = [Position::new(1, Weight::D)];
    for lexeme in operands.iter().flat_map(|operand| words.of(*operand)) {
        let mut positions: Vec<Position> = lexeme.positions.iter().collect();
        if positions.is_empty() {
            positions.extend(nowhere);
        }
        let (mut sum, mut greatest, mut place_of_greatest) = (0.0_f32, -1.0_f32, 0);
        let square = |place: usize| ((place + 1) * (place + 1)) as f32;
        for (place, position) in positions.into_iter().enumerate() {
            let weight = weight_of(weights, position);
            sum += weight / square(place);
            if weight > greatest {
                (greatest, place_of_greatest) = (weight, place);
            }
        }
        // The sum of 1/i² is π²/6.
        let of_word = greatest + sum - greatest / square(place_of_greatest);
        rank = (f64::from(rank) + f64::from(of_word) / 1.644_934_066_85) as f32;
    }
    if operands.is_empty() { rank } else { rank / operands.len() as f32 }
}

fn rank_together(
    weights: &[f32; 4],
    words: &WordsOfVector<'_>,
    operands: &[Operand<'_>],
) -> Result<f32, SqlError> {
    let (mut rank, mut looks) = (-1.0_f32, Looks::default());
    // Of each word that has been looked at, and whether somebody knows where it stands.
    let mut before: Vec<(Vec<Position>, bool)> = Vec::new();
    for operand in operands {
        let mut last = None;
        for lexeme in words.of(*operand) {
            let is_known = !lexeme.positions.is_empty();
            let positions: Vec<Position> = match is_known {
                true => lexeme.positions.iter().collect(),
                false => vec![Position::new(POSITION_MAX.into(), Weight::D)],
            };
            let pairs: usize = before.iter().map(|(others, _)| others.len() * positions.len()).sum();
            // An exponential function and a root.
            looks.take(pairs as u64, 64)?;
            for (others, other_is_known) in &before {
                for (position, other) in
                    positions.iter().flat_map(|one| others.iter().map(move |other| (one, other)))
                {
                    let distance = match position.place().abs_diff(other.place()) {
                        0 if is_known && *other_is_known => continue,
                        0 => POSITION_MAX + 1,
                        distance => distance,
                    };
                    let product =
                        weight_of(weights, *position) * weight_of(weights, *other) * nearness(distance);
                    let of_pair = f64::from(product).sqrt() as f32;
                    rank = match rank < 0.0 {
                        true => of_pair,
                        false => (1.0 - (1.0 - f64::from(rank)) * (1.0 - f64::from(of_pair))) as f32,
                    };
                }
            }
            last = Some((positions, is_known));
        }
        before.extend(last);
    }
    Ok(rank)
}

/// A place of a document, and which words of the query stand there.
struct Place {
    position: Position,
    /// Items of the query.
    items: Vec<usize>,
}

/// A shortest stretch of a document that has what is looked for.
struct Cover {
    first: usize,
    last: usize,
}

/// By how densely what is looked for stands.
///
/// # Errors
/// `57014` where that takes more work than there is left.
pub(crate) fn rank_by_covers(
    weights: &[f32; 4],
    vector: &TsVector,
    query: &TsQuery,
    method: i32,
) -> Result<f32, SqlError> {
    let inverse = weights.map(|weight| 1.0 / f64::from(weight));
    let words = WordsOfVector::new(vector)?;
    let places = places_of(&words, query)?;
    let (mut rank, mut distances, mut last_middle, mut extents) = (0.0, 0.0, 0.0, 0);
    let (mut start, mut looks) = (0, Looks::default());
    while let Some(cover) = next_cover(&places, query, &mut start, &mut looks)? {
        let stretch = &places[cover.first..=cover.last];
        let sum: f64 = stretch.iter().fold(0.0, |sum, place| sum + inverse[place.position.weight() as usize]);
        let density = stretch.len() as f64 / sum;
        let (first, last) = (places[cover.first].position.place(), places[cover.last].position.place());
        // Places beyond the last one that there is are all that one: then half of the stretch counts as other words.
        let others = i64::from(last) - i64::from(first) - (stretch.len() as i64 - 1);
        let others = if others < 0 { (stretch.len() as i64 - 1) / 2 } else { others };
        rank += density / (1 + others) as f64;
        let middle = f64::from(u32::from(last) + u32::from(first)) / 2.0;
        if extents > 0 && middle > last_middle {
            distances += 1.0 / (middle - last_middle);
        }
        last_middle = middle;
        extents += 1;
    }
    Ok(divided(rank, &words, method, (extents, distances)))
}

fn divided(mut rank: f64, words: &WordsOfVector<'_>, method: i32, extents: (u32, f64)) -> f32 {
    if method & BY_LOGARITHM_OF_LENGTH != 0 && words.count() > 0 {
        rank /= libm::log((words.places() + 1) as f64);
    }
    if method & BY_LENGTH != 0 && words.count() > 0 {
        rank /= words.places() as f64;
    }
    let (count, distances) = extents;
    if method & BY_DISTANCE_OF_EXTENTS != 0 && count > 0 && distances > 0.0 {
        rank /= f64::from(count) / distances;
    }
    if method & BY_WORDS != 0 && words.count() > 0 {
        rank /= words.count() as f64;
    }
    if method & BY_LOGARITHM_OF_WORDS != 0 && words.count() > 0 {
        rank /= libm::log((words.count() + 1) as f64) / libm::log(2.0);
    }
    if method & BY_ITSELF_PLUS_ONE != 0 {
        rank /= rank + 1.0;
    }
    rank as f32
}

/// Where words of the query stand, in order.
fn places_of(words: &WordsOfVector<'_>, query: &TsQuery) -> Result<Vec<Place>, SqlError> {
    // A lexeme is known by its text.
    let mut found: Vec<(Position, &str, usize)> = Vec::new();
    for operand in operands(query) {
        for lexeme in words.of(operand) {
            let positions = lexeme.positions.iter().filter(|position| operand.weights.has(position.weight()));
            found.extend(positions.map(|position| (position, lexeme.text, operand.item)));
        }
        work::spend(found.len() as u64)?;
    }
    found.sort_by_key(|(position, text, _)| (position.place(), position.weight(), *text));
    let mut places: Vec<(Place, &str)> = Vec::new();
    for (position, text, item) in found {
        match places.last_mut() {
            Some((place, last)) if place.position == position && *last == text => place.items.push(item),
            _ => places.push((Place { position, items: vec![item] }, text)),
        }
    }
    Ok(places.into_iter().map(|(place, _)| place).collect())
}

/// The next shortest stretch from `start` on, which then stands behind its beginning.
fn next_cover(
    places: &[Place],
    query: &TsQuery,
    start: &mut usize,
    looks: &mut Looks,
) -> Result<Option<Cover>, SqlError> {
    loop {
        let mut seen = Seen::new(query);
        let mut last = None;
        for (at, place) in places.iter().enumerate().skip(*start) {
            seen.add(place);
            if seen.matches(query, looks)? {
                last = Some(at);
                break;
            }
        }
        let Some(last) = last else { return Ok(None) };
        let mut seen = Seen::new(query);
        let mut first = None;
        for at in (*start..=last).rev() {
            seen.add(&places[at]);
            if seen.matches(query, looks)? {
                first = Some(at);
                break;
            }
        }
        match first {
            Some(first) if places[first].position.place() <= places[last].position.place() => {
                *start = first + 1;
                return Ok(Some(Cover { first, last }));
            }
            _ => *start += 1,
        }
    }
}

/// Where each word of the query has been seen.
struct Seen(Vec<Vec<u16>>);

impl Seen {
    fn new(query: &TsQuery) -> Seen {
        Seen(vec![Vec::new(); query.items().len()])
    }

    fn add(&mut self, place: &Place) {
        for item in &place.items {
            let seen = &mut self.0[*item];
            let here = place.position.place();
            if seen.last() != Some(&here) {
                seen.push(here);
            }
        }
    }

    fn matches(&self, query: &TsQuery, looks: &mut Looks) -> Result<bool, SqlError> {
        looks.take(self.0.len() as u64, 16)?;
        execute(query, &mut |operand, wants_places| {
            let seen = &self.0[operand.item];
            Ok(match (seen.is_empty(), wants_places) {
                (true, _) => Found::No,
                (false, false) => Found::At(Vec::new()),
                (false, true) => {
                    looks.take(seen.len() as u64, 1)?;
                    let mut places = seen.clone();
                    // They may have been seen from the end.
                    places.sort_unstable();
                    Found::At(places)
                }
            })
        })
    }
}
