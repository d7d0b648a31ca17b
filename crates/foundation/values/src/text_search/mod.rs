//! Full text search as in PostgreSQL 15 (chapter 12): from texts to documents and queries, whether these match, and how well.
//!
//! ```text
//! text ─▶ parser ─▶ tokens ─▶ dictionary ─▶ words with places ─▶ tsvector ┐
//! text ─▶ operators, quotes ─▶ words as above ───────────────▶ tsquery ──┴▶ matching, rank
//! ```
//!
//! All of it is a function of the values alone: letters are those of tables that are compiled in, stems those of a pinned library.

mod dictionary;
mod document;
pub(crate) mod edit;
mod headline;
mod headline_options;
mod json;
mod looks;
mod matching;
mod parser;
mod rank;
mod words_of_vector;

pub(crate) use dictionary::lexed;
pub(crate) use document::{Together, query_of_text, vector_of_text, vector_of_texts};
pub(crate) use headline::headline;
pub(crate) use headline_options::HeadlineOptions;
pub(crate) use json::{json_texts, with_json_texts};
pub(crate) use parser::{is_alphabetic, small_letter};
pub(crate) use rank::{rank, rank_by_covers, usual_weights, weights};
pub(crate) use words_of_vector::matches;
