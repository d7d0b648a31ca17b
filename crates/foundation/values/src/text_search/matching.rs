//! Whether something has what a query looks for.
//!
//! As PostgreSQL's `TS_execute`: above phrases a word is there or not; in phrases places are what counts, and a part may be *everywhere but*
//! at some places. Operators stand behind what they join, so that one pass with a stack answers, however deep a query is.

use crate::work;
use types::SqlError;
use types::text_search::{QueryItem, TsQuery, Weights};

/// What is known of a word that is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// It is not there.
    No,
    /// It is there, at these places in order where they were asked for.
    At(Vec<u16>),
    /// It is there, and nobody knows where.
    Somewhere,
}

/// A word of a query.
#[derive(Clone, Copy)]
pub(super) struct Operand<'a> {
    /// Which item of the query it is.
    pub item: usize,
    pub text: &'a str,
    pub weights: Weights,
    pub is_prefix: bool,
}

/// Whether something has what a query looks for. `find` knows the words; whether their places count it is told.
///
/// # Errors
/// Those of `find`; `57014` where that takes more work than there is left.
pub(super) fn execute<'q>(
    query: &'q TsQuery,
    find: &mut dyn FnMut(Operand<'q>, bool) -> Result<Found, SqlError>,
) -> Result<bool, SqlError> {
    let items = query.items();
    let in_phrase = in_phrases(query);
    let mut parts: Vec<Part> = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let part = match item {
            QueryItem::Operand { text, weights, is_prefix } => {
                let operand = Operand { item: at, text, weights: *weights, is_prefix: *is_prefix };
                match (in_phrase[at], find(operand, in_phrase[at])?) {
                    (false, found) => Part::Truth(found != Found::No),
                    (true, Found::At(places)) => Part::places(places, false, 0),
                    (true, Found::Somewhere) => Part::Unknown,
                    (true, Found::No) => Part::NOWHERE,
                }
            }
            QueryItem::Not => match parts.pop().unwrap_or(Part::NOWHERE) {
                Part::Truth(truth) => Part::Truth(!truth),
                Part::Unknown => Part::Unknown,
                Part::Places { places, is_negated, width } => Part::places(places, !is_negated, width),
            },
            QueryItem::And | QueryItem::Or | QueryItem::Phrase(_) => {
                let right = parts.pop().unwrap_or(Part::NOWHERE);
                let left = parts.pop().unwrap_or(Part::NOWHERE);
                joined(item, left, right)?
            }
        };
        // Whoever is above a phrase asks only whether it is there; what nobody knows is not.
        let is_top_of_phrase = matches!(item, QueryItem::Phrase(_)) && !in_phrase[at];
        parts.push(if is_top_of_phrase { Part::Truth(part.is_somewhere()) } else { part });
    }
    Ok(parts.pop().is_some_and(|part| part.is_somewhere()))
}

/// Which items are in phrases, so that their places count.
fn in_phrases(query: &TsQuery) -> Vec<bool> {
    let mut found = vec![false; query.items().len()];
    // From the last to the first: an operator comes before what it joins.
    let mut open: Vec<(usize, bool)> = Vec::new();
    for (at, item) in query.items().iter().enumerate().rev() {
        let inside = open.last().is_some_and(|(_, inside)| *inside);
        found[at] = inside;
        if item.arity() > 0 {
            open.push((item.arity(), inside || matches!(item, QueryItem::Phrase(_))));
            continue;
        }
        // A word is complete, and with that maybe what it is a part of.
        while let Some((missing, _)) = open.last_mut() {
            *missing -= 1;
            if *missing > 0 {
                break;
            }
            open.pop();
        }
    }
    found
}

/// What a part of a query came to.
#[derive(Debug)]
enum Part {
    /// Above phrases.
    Truth(bool),
    /// In a phrase, where words are there and nobody knows where.
    Unknown,
    /// In a phrase: at these places, in order, or everywhere but there.
    Places {
        /// The last place of each match.
        places: Vec<u16>,
        is_negated: bool,
        /// How many places a match takes, less one.
        width: u32,
    },
}

impl Part {
    const NOWHERE: Part = Part::Places { places: Vec::new(), is_negated: false, width: 0 };

    fn places(places: Vec<u16>, is_negated: bool, width: u32) -> Part {
        Part::Places { places, is_negated, width }
    }

    fn is_somewhere(&self) -> bool {
        match self {
            Part::Truth(truth) => *truth,
            Part::Unknown => false,
            Part::Places { places, is_negated, .. } => *is_negated || !places.is_empty(),
        }
    }
}

fn joined(operator: &QueryItem, left: Part, right: Part) -> Result<Part, SqlError> {
    let is_or = *operator == QueryItem::Or;
    let (left_places, left_negated, left_width, right_places, right_negated, right_width) =
        match (left, right) {
            (Part::Truth(left), Part::Truth(right)) => {
                return Ok(Part::Truth(if is_or { left || right } else { left && right }));
            }
            (left, right) if !is_or && (is_nowhere(&left) || is_nowhere(&right)) => return Ok(Part::NOWHERE),
            (
                Part::Places { places: left, is_negated: left_negated, width: left_width },
                Part::Places { places: right, is_negated: right_negated, width: right_width },
            ) => (left, left_negated, left_width, right, right_negated, right_width),
            _ => return Ok(Part::Unknown),
        };
    work::spend((left_places.len() + right_places.len()) as u64)?;
    // What did not match has no width.
    let width_of = |places: &[u16], is_negated: bool, width: u32| {
        if places.is_empty() && !is_negated { 0 } else { width }
    };
    let left_width = width_of(&left_places, left_negated, left_width);
    let right_width = width_of(&right_places, right_negated, right_width);
    let (left_offset, right_offset, width) = match operator {
        QueryItem::Phrase(distance) => {
            let distance = u32::from(*distance);
            (distance + right_width, 0, distance + left_width + right_width)
        }
        _ => {
            let width = left_width.max(right_width);
            (width - left_width, width - right_width, width)
        }
    };
    let (sides, is_negated) = match (is_or, left_negated, right_negated) {
        (false, true, true) => (Sides { left: true, both: true, right: true }, true),
        (false, true, false) => (Sides { left: false, both: false, right: true }, false),
        (false, false, true) => (Sides { left: true, both: false, right: false }, false),
        (false, false, false) => (Sides { left: false, both: true, right: false }, false),
        (true, true, true) => (Sides { left: false, both: true, right: false }, true),
        (true, true, false) => (Sides { left: true, both: false, right: false }, true),
        (true, false, true) => (Sides { left: false, both: false, right: true }, true),
        (true, false, false) => (Sides { left: true, both: true, right: true }, false),
    };
    let places = sides.of(&left_places, left_offset, &right_places, right_offset);
    Ok(Part::places(places, is_negated, width))
}

fn is_nowhere(part: &Part) -> bool {
    matches!(part, Part::Places { places, is_negated: false, .. } if places.is_empty())
}

/// Which places count: those that are only on the left, on both sides, only on the right.
struct Sides {
    left: bool,
    both: bool,
    right: bool,
}

impl Sides {
    fn of(&self, left: &[u16], left_offset: u32, right: &[u16], right_offset: u32) -> Vec<u16> {
        let (mut places, mut lefts, mut rights) =
            (Vec::new(), left.iter().peekable(), right.iter().peekable());
        let place = |place: &u16, offset: u32| u32::from(place & types::text_search::POSITION_MAX) + offset;
        loop {
            let on_left = lefts.peek().map(|one| place(one, left_offset));
            let on_right = rights.peek().map(|one| place(one, right_offset));
            let (counts, found) = match (on_left, on_right) {
                (None, None) => return places,
                (Some(on_left), Some(on_right)) if on_left == on_right => {
                    lefts.next();
                    rights.next();
                    (self.both, on_left)
                }
                (Some(on_left), on_right) if on_right.is_none_or(|on_right| on_left < on_right) => {
                    lefts.next();
                    (self.left, on_left)
                }
                (_, Some(on_right)) => {
                    rights.next();
                    (self.right, on_right)
                }
                (Some(_), None) => return places,
            };
            if counts && found > 0 {
                // As in PostgreSQL, in 16 bits.
                places.push(found as u16);
            }
        }
    }
}
