//! Indexes on expressions and with a condition, as PostgreSQL writes them down.

use crate::bind_indexes::bind_key;
use crate::expression::output_name;
use crate::routines::Routines;
use crate::table::TablePlan;
use crate::written_sql::{Parentheses, written_key, written_sql};
use syntax::parse::parse_expression;
use types::{Catalog, ExecutionVersion, Index, OutputColumn, SqlError, Table};

/// What a computed index is on, in words.
#[derive(Clone, Debug)]
pub struct WrittenIndex {
    /// The expressions of its key, as they stand among columns.
    pub keys: Vec<String>,
    /// The same by themselves.
    pub expressions: Vec<String>,
    /// What results of these expressions are called, and of which types they are.
    pub columns: Vec<OutputColumn>,
    /// WHERE
    pub predicate: Option<String>,
}

impl WrittenIndex {
    /// That of an index of a catalog's table.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn new(
        table: &Table,
        index: &Index,
        catalog: &Catalog,
        parentheses: Parentheses,
    ) -> Result<WrittenIndex, SqlError> {
        let routines = Routines::new(catalog, ExecutionVersion::NEWEST);
        let bare = Table { checks: Vec::new(), ..table.clone() };
        let plan = TablePlan::stored(&bare, &Catalog::default(), &routines)?;
        let (mut keys, mut expressions, mut columns) = (Vec::new(), Vec::new(), Vec::new());
        for sql in &index.details.expressions {
            keys.push(written_key(sql, &plan, &routines, parentheses)?);
            expressions.push(written_sql(sql, &plan, &routines, parentheses)?);
            let name = match output_name(&parse_expression(sql, routines.version())?) {
                unnamed if unnamed == "?column?" => "expr".to_string(),
                name => name,
            };
            columns.push(OutputColumn { name, data_type: bind_key(&plan, sql, &routines)?.data_type() });
        }
        let predicate = index.details.predicate.as_ref();
        let predicate = predicate.map(|sql| written_sql(sql, &plan, &routines, parentheses)).transpose()?;
        Ok(WrittenIndex { keys, expressions, columns, predicate })
    }
}
