//! The default text search parser of PostgreSQL 15, as a pure function of its input.
//!
//! [`tokens`] cuts a text into the tokens which PostgreSQL's
//! `ts_parse('default', …)` returns, of the same kinds and in the same order,
//! including the tokens which overlap (a hyphenated word is followed by its
//! parts, a URL by its host and its path).
//!
//! PostgreSQL runs a state machine with a stack of positions to go back to.
//! Here the same states and transitions need only one such position (see
//! module `rule`), and two short notes about stretches already known to lead nowhere
//! (see module `run`), so that the time is linear in the length of the text, the
//! memory constant, and nothing recurses, whatever the text.

mod address;
mod character;
mod class;
mod letters;
mod look;
mod mark;
mod rule;
mod run;
mod state;
mod table;
#[cfg(test)]
mod tests;
mod token;

pub(crate) use character::{is_alphabetic, small_letter};
pub(super) use run::tokens;
pub(super) use token::TokenKind;
