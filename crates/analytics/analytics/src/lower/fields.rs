//! The columns of an operator: which of the query's columns each is, and of what types.

use crate::reason::OnRows;
use arrow_schema::{DataType as ArrowType, Field, Schema, SchemaRef};
use std::collections::BTreeSet;
use std::sync::Arc;
use types::DataType;

/// A column of an operator.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    /// The query's column.
    pub(crate) column: usize,
    /// Its type.
    pub(crate) data_type: DataType,
    /// That of its arrays.
    pub(crate) arrow: ArrowType,
    /// A numeric value shows as many digits behind the point as its array has.
    pub(crate) has_own_scale: bool,
}

/// The columns of an operator, in its order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields(pub(crate) Vec<Known>);

impl Fields {
    /// The position of a column of the query.
    pub(crate) fn position(&self, column: usize) -> Result<usize, OnRows> {
        let found = self.0.iter().position(|known| known.column == column);
        found.ok_or_else(|| OnRows::because("a condition that looks at rows further out"))
    }

    /// The query's columns.
    pub(crate) fn columns(&self) -> BTreeSet<usize> {
        self.0.iter().map(|known| known.column).collect()
    }

    /// Named by the query's columns, so that a column keeps its name from operator to operator.
    pub(crate) fn schema(&self) -> SchemaRef {
        let field = |known: &Known| Field::new(format!("c{}", known.column), known.arrow.clone(), true);
        Arc::new(Schema::new(self.0.iter().map(field).collect::<Vec<_>>()))
    }

    /// Those behind one another.
    pub(crate) fn and(mut self, other: &Fields) -> Fields {
        self.0.extend(other.0.iter().cloned());
        self
    }

    /// The positions of columns that are wanted, and these columns.
    pub(crate) fn kept(&self, wanted: &BTreeSet<usize>) -> (Vec<usize>, Fields) {
        let is_wanted = |position: &usize| wanted.contains(&self.0[*position].column);
        let positions: Vec<usize> = (0..self.0.len()).filter(is_wanted).collect();
        let fields = positions.iter().map(|position| self.0[*position].clone()).collect();
        (positions, Fields(fields))
    }
}
