//! Cursors.

use crate::plpgsql::ast::{Argument, Expression, Name, RowSource};
use sqlparser::ast as sql;

/// A parameter of a cursor.
#[derive(Clone, Debug, PartialEq)]
pub struct CursorParameter {
    /// Its name.
    pub name: Name,
    /// Its type.
    pub data_type: sql::DataType,
    /// Where the type stands.
    pub position: u32,
}

/// What a cursor is opened for.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "the tree lives only while a procedure is compiled")]
pub enum OpenSource {
    /// The query of its declaration, with arguments where there are parentheses.
    Bound(Option<Vec<Argument>>),
    /// This query.
    Query(RowSource),
}

/// Where FETCH and MOVE go.
#[derive(Clone, Debug, PartialEq)]
pub struct FetchDirection {
    /// Which way.
    pub kind: FetchKind,
    /// How far.
    pub count: FetchCount,
}

/// Which way FETCH and MOVE go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchKind {
    /// So many rows on.
    Forward,
    /// So many rows back.
    Backward,
    /// To this row; counted from the end where it is negative.
    Absolute,
    /// So many rows on, of which only the last one counts.
    Relative,
}

/// How far FETCH and MOVE go.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "the tree lives only while a procedure is compiled")]
pub enum FetchCount {
    /// So far.
    Constant(i64),
    /// Beyond the last row.
    All,
    /// So far.
    Expression(Expression),
}
