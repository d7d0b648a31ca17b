//! Queries as text, with what has been made other words of to be read in the words that it was given in.

use crate::parse::exclusion::write_exclusion;
use crate::parse::fetch::write_ties;
use crate::parse::locking::forget_strength;
use sqlparser::ast::{
    Expr, NamedWindowDefinition, NamedWindowExpr, Query, Select, VisitMut, VisitorMut, WindowType,
};
use std::ops::ControlFlow;
use types::ExecutionVersion;

/// The text of a query that is kept. Up to version 13 it is that of what was made of it.
pub fn written_query(query: &Query, version: ExecutionVersion) -> String {
    if version < ExecutionVersion::V14 {
        return query.to_string();
    }
    let mut query = query.clone();
    let _ = query.visit(&mut Writer);
    query.to_string()
}

struct Writer;

impl VisitorMut for Writer {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        write_ties(query);
        query.locks.iter_mut().for_each(forget_strength);
        ControlFlow::Continue(())
    }

    // A window whose text stands inside of another one's is written first.
    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        for NamedWindowDefinition(_, definition) in &mut select.named_window {
            if let NamedWindowExpr::WindowSpec(spec) = definition {
                write_exclusion(spec);
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Function(function) = expr
            && let Some(WindowType::WindowSpec(spec)) = &mut function.over
        {
            write_exclusion(spec);
        }
        ControlFlow::Continue(())
    }
}
