//! What is looked for: words, joined by operators.

use super::{LEXEME_BYTES_MAX, Weight, query_text_bytes};
use crate::{SqlError, SqlState};
use std::sync::Arc;

/// Which weights a place may have that a word of a query is looked for at: all where none is named.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub struct Weights(u8);

impl Weights {
    /// Those in these bits: 1 is `D`, 8 is `A`. `None` where there are others.
    pub fn of_bits(bits: u8) -> Option<Weights> {
        (bits < 16).then_some(Weights(bits))
    }

    /// Their bits: 1 is `D`, 8 is `A`.
    pub fn bits(self) -> u8 {
        self.0
    }

    /// With one more.
    #[must_use]
    pub fn with(self, weight: Weight) -> Weights {
        Weights(self.0 | (1 << weight as u8))
    }

    /// Whether no weight is named.
    pub fn is_any(self) -> bool {
        self.0 == 0
    }

    /// Whether a place with this weight counts.
    pub fn has(self, weight: Weight) -> bool {
        self.is_any() || self.0 & (1 << weight as u8) != 0
    }
}

/// A word or an operator. Operators come behind what they join.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum QueryItem {
    /// A word
    Operand {
        /// The lexeme, or what it begins with.
        text: Arc<str>,
        /// Where it counts.
        weights: Weights,
        /// Lexemes that begin so count, too.
        is_prefix: bool,
    },
    /// `!`
    Not,
    /// `&`
    And,
    /// `|`
    Or,
    /// `<->`, or `<2>`: the right one stands so many places behind the left one
    Phrase(u16),
}

impl QueryItem {
    /// A word at any place.
    pub fn word(text: &str) -> QueryItem {
        QueryItem::Operand { text: Arc::from(text), weights: Weights::default(), is_prefix: false }
    }

    /// How many parts it joins.
    pub fn arity(&self) -> usize {
        match self {
            QueryItem::Operand { .. } => 0,
            QueryItem::Not => 1,
            QueryItem::And | QueryItem::Or | QueryItem::Phrase(_) => 2,
        }
    }
}

/// How a text says what is looked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QuerySyntax {
    /// With operators, as `to_tsquery` and the input function read it.
    Operators,
    /// As search engines read it: quotes, `or` and `-`.
    Web,
    /// As a text.
    Plain,
}

/// A value of type `tsquery`: words and operators, each operator behind what it joins (left, then right); none at all finds nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TsQuery(Arc<[QueryItem]>);

impl TsQuery {
    /// The query of these items; `None` where operators do not have as many parts as they join.
    ///
    /// # Errors
    /// `54000` where a word or the whole is too long.
    pub fn new(items: Vec<QueryItem>) -> Result<Option<TsQuery>, SqlError> {
        if !is_one_tree(&items) {
            return Ok(None);
        }
        let is_too_long = |item: &QueryItem| matches!(item, QueryItem::Operand { text, .. } if text.len() > LEXEME_BYTES_MAX);
        if items.iter().any(is_too_long) {
            let message = format!("operand is too long in tsquery: more than {LEXEME_BYTES_MAX} bytes");
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        let query = TsQuery(Arc::from(items));
        let (bytes, limit) = (query_text_bytes(&query), crate::text_bytes_max());
        if bytes > limit {
            let message =
                format!("the tsquery has {bytes} bytes as a text, the limit is {limit} (TEXT_BYTES_MAX)");
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        Ok(Some(query))
    }

    /// The query that finds nothing.
    pub fn empty() -> TsQuery {
        TsQuery(Arc::from([]))
    }

    /// Its words and operators.
    pub fn items(&self) -> &[QueryItem] {
        &self.0
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Both queries joined by an operator; the other one where one is empty.
    ///
    /// # Errors
    /// `54000` where both together are too long.
    pub fn joined(&self, other: &TsQuery, operator: QueryItem) -> Result<TsQuery, SqlError> {
        if self.is_empty() {
            return Ok(other.clone());
        }
        if other.is_empty() {
            return Ok(self.clone());
        }
        let items = self.0.iter().chain(&*other.0).cloned().chain([operator]).collect();
        Ok(TsQuery::new(items)?.unwrap_or_else(TsQuery::empty))
    }

    /// What is found where this is not.
    ///
    /// # Errors
    /// `54000` where it is too long.
    pub fn negated(&self) -> Result<TsQuery, SqlError> {
        if self.is_empty() {
            return Ok(self.clone());
        }
        let items = self.0.iter().cloned().chain([QueryItem::Not]).collect();
        Ok(TsQuery::new(items)?.unwrap_or_else(TsQuery::empty))
    }

    /// How many items the part has that ends with each item.
    pub fn sizes(&self) -> Vec<usize> {
        let mut sizes: Vec<usize> = Vec::with_capacity(self.0.len());
        for (at, item) in self.0.iter().enumerate() {
            let mut size = 1;
            for _ in 0..item.arity() {
                // The part that ends in front of what is counted already.
                size += sizes.get(at.wrapping_sub(size)).copied().unwrap_or(0);
            }
            sizes.push(size);
        }
        sizes
    }
}

/// Whether these are nothing, or one whole.
fn is_one_tree(items: &[QueryItem]) -> bool {
    let mut open = 0_usize;
    for item in items {
        match open.checked_sub(item.arity()) {
            Some(rest) => open = rest + 1,
            None => return false,
        }
    }
    open == 1 || items.is_empty()
}
