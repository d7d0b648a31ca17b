//! Views as statements use them, and what is noted of a query that becomes one.

use crate::routines::Routines;
use crate::table::{ColumnPlan, TablePlan};
use crate::table_triggers::TableTriggers;
use sqlparser::tokenizer::Span;
use std::collections::BTreeSet;
use std::sync::Arc;
use syntax::parse::parse_query;
use types::{CheckOption, ColumnSet, OutputColumn, SqlError, TableId, TriggerEvent, View, object_name};

/// A view, parsed.
#[derive(Debug)]
pub struct ViewPlan {
    /// What it gives.
    pub columns: Vec<OutputColumn>,
    /// Bound where the view is used, every time.
    pub query: sqlparser::ast::Query,
    /// WITH CHECK OPTION.
    pub check_option: Option<CheckOption>,
    /// What its INSTEAD OF triggers are on: a table that has its columns, and no rows.
    target: Option<Arc<TablePlan>>,
    /// It is a partition of a table.
    pub is_partition: bool,
    /// Roles have privileges on it, from execution version 11 on: errors show them nothing that it does not.
    pub is_granted: bool,
}

impl ViewPlan {
    /// Parses the query. `place`: where it stands among the views of its catalog.
    ///
    /// # Errors
    /// None of a view that a schema change has made.
    pub fn new(place: usize, view: &View, routines: &Routines) -> Result<ViewPlan, SqlError> {
        let query = parse_query(&view.query, routines.version())?;
        let target = TablePlan::of_view(TableId::of_view(place), view, routines);
        let target = (!view.triggers.is_empty()).then(|| Arc::new(target));
        Ok(ViewPlan {
            columns: view.columns.clone(),
            query,
            check_option: view.check_option,
            target,
            is_partition: false,
            is_granted: false,
        })
    }

    /// What its INSTEAD OF triggers are on, where it has any.
    pub fn target(&self) -> Option<&Arc<TablePlan>> {
        self.target.as_ref()
    }

    /// The same, where one of them is for this event.
    pub fn instead_at(&self, event: TriggerEvent) -> Option<&Arc<TablePlan>> {
        self.target.as_ref().filter(|target| target.triggers.at(event).any)
    }
}

impl TablePlan {
    /// A view as what its triggers are on.
    pub fn of_view(id: TableId, view: &View, routines: &Routines) -> TablePlan {
        let column = |column: &OutputColumn| ColumnPlan {
            name: column.name.clone(),
            data_type: routines.types().base_of(column.data_type),
            not_null: false,
            default: None,
            is_generated: false,
            computed: None,
        };
        TablePlan {
            id,
            name: object_name(&view.name).to_string(),
            relation: view.name.clone(),
            columns: view.columns.iter().map(column).collect(),
            key: Vec::new(),
            key_name: String::new(),
            checks: Vec::new(),
            indexes: Vec::new(),
            computed: Vec::new(),
            constrained: ColumnSet::EMPTY,
            holds_keys: false,
            endorsement: None,
            triggers: TableTriggers::new(view.triggers.values()),
            row_security: None,
            has_column_privileges: false,
            hides_keys: false,
            partitions: None,
            has_arrays_in_order: false,
            materialized: None,
        }
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
