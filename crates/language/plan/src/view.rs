//! Views as statements use them, and what is noted of a query that becomes one.

use sqlparser::tokenizer::Span;
use std::collections::BTreeSet;
use syntax::parse::parse_query;
use types::{ExecutionVersion, OutputColumn, SqlError, View};

/// A view, parsed.
#[derive(Debug)]
pub struct ViewPlan {
    /// What it gives.
    pub columns: Vec<OutputColumn>,
    /// Bound where the view is used, every time.
    pub query: sqlparser::ast::Query,
}

impl ViewPlan {
    /// Parses the query.
    ///
    /// # Errors
    /// None of a view that a schema change has made.
    pub fn new(view: &View, version: ExecutionVersion) -> Result<ViewPlan, SqlError> {
        let query = parse_query(&view.query, version)?;
        Ok(ViewPlan { columns: view.columns.clone(), query })
    }
}

/// What is noted while the query of a view is bound: what it depends on, and what its `*` stand for today.
#[derive(Clone, Debug, Default)]
pub struct Noted {
    /// Names of tables and views.
    pub relations: BTreeSet<String>,
    /// Where they stand.
    pub places: Vec<(Span, String)>,
    /// Where a `*` stands, and the columns, each as a path of names.
    pub wildcards: Vec<(Span, Vec<Vec<String>>)>,
}
