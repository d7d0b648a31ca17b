//! The columns of an operator: which of the query's columns each is, and of what types.

use crate::reason::OnRows;
use arrow_schema::{DataType as ArrowType, Field, Schema, SchemaRef};
use std::sync::Arc;
use types::DataType;

/// A column of an operator.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    /// The query's column: those of all relations of FROM are counted side by side.
    pub(crate) ordinal: usize,
    /// Its type.
    pub(crate) data_type: DataType,
    /// That of its arrays.
    pub(crate) arrow: ArrowType,
}

/// The columns of an operator, in its order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields(pub(crate) Vec<Known>);

impl Fields {
    /// The position of a column of the query.
    pub(crate) fn position(&self, ordinal: usize) -> Result<usize, OnRows> {
        let found = self.0.iter().position(|known| known.ordinal == ordinal);
        found.ok_or_else(|| OnRows::because(format_args!("column {ordinal} is not read")))
    }

    /// Named by the query's columns, so that a column keeps its name from operator to operator.
    pub(crate) fn schema(&self) -> SchemaRef {
        let field = |known: &Known| Field::new(format!("c{}", known.ordinal), known.arrow.clone(), true);
        Arc::new(Schema::new(self.0.iter().map(field).collect::<Vec<_>>()))
    }

    /// Those behind one another.
    pub(crate) fn and(mut self, other: Fields) -> Fields {
        self.0.extend(other.0);
        self
    }
}
