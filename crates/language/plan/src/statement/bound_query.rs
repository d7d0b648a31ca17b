//! A query whose names and types are settled, and the types of its outputs.
//!
//! A literal in the output of a query takes the type of whatever its column meets, as long as nothing has looked at it:
//! it is open until then.

use crate::expression::{Binder, Expression, Kind, Source};
use crate::logical::{LogicalPlan, operators, rules};
use crate::scope::VariableScope;
use crate::statement::relation::Relation;
use crate::statement::select::{self, BoundSelect};
use std::sync::Arc;
use types::{ColumnOrigin, DataType, OutputColumn, SqlError};

/// A query, bound.
#[derive(Clone, Debug)]
pub struct BoundQuery {
    /// What it asks for.
    pub plan: LogicalPlan,
    /// By output: it is an open literal; may be shorter.
    pub literals: Vec<bool>,
    /// By output: the column of a table or view that it is; may be shorter.
    pub origins: Vec<Option<ColumnOrigin>>,
    /// What the first FOR UPDATE or its kind is called that asks for rows of the ledger.
    pub lock: Option<&'static str>,
}

impl From<LogicalPlan> for BoundQuery {
    fn from(plan: LogicalPlan) -> BoundQuery {
        BoundQuery { plan, literals: Vec::new(), origins: Vec::new(), lock: None }
    }
}

impl BoundQuery {
    /// Its columns.
    pub fn columns(&self) -> Arc<[OutputColumn]> {
        self.plan.columns()
    }

    /// The same query, whose columns have these names and types.
    pub fn with_columns(mut self, columns: Arc<[OutputColumn]>) -> BoundQuery {
        if let Some((_, known)) = self.plan.outputs_mut() {
            *known = columns;
        }
        self
    }

    /// What runs it.
    pub fn operators(self) -> BoundSelect {
        let BoundQuery { mut plan, literals, origins, lock } = self;
        rules::rewrite(&mut plan);
        BoundSelect { literals, origins, lock, ..operators(plan) }
    }

    /// The query whose open literals have no type.
    pub(super) fn open_literals(mut self) -> BoundQuery {
        if let Some((_, columns)) = self.plan.outputs_mut() {
            *columns = opened(columns, &self.literals);
        }
        self
    }

    /// Gives the literals that are still open these types.
    ///
    /// # Errors
    /// A literal that is no value of its type.
    pub(super) fn close_literals(
        mut self,
        scope: &VariableScope,
        types: &[DataType],
    ) -> Result<BoundQuery, SqlError> {
        if let Some((outputs, columns)) = self.plan.outputs_mut() {
            *columns = close(scope, outputs, opened(columns, &self.literals), types)?;
        }
        Ok(self)
    }

    /// The query with columns of these types.
    pub(super) fn with_types(self, types: &[DataType]) -> BoundQuery {
        match cast(&self.columns(), types) {
            None => self,
            Some((outputs, columns)) => {
                BoundQuery { lock: self.lock, ..BoundQuery::from(self.plan.projected(outputs, columns)) }
            }
        }
    }
}

/// What runs a query whose columns have these types, its open literals included.
///
/// # Errors
/// A literal that is no value of its type.
pub fn close_types(mut select: BoundSelect, types: &[DataType]) -> Result<BoundSelect, SqlError> {
    let columns = opened(&select.columns, &select.literals);
    select.columns = close(&VariableScope::default(), &mut select.projection, columns, types)?;
    let Some((projection, columns)) = cast(&select.columns, types) else { return Ok(select) };
    let lock = select.lock;
    let source = Relation::Query { query: Arc::new(select), arguments: None, filter: None };
    let source = select::From::Relation(Box::new(source));
    Ok(BoundSelect { source, projection, columns, lock, ..BoundSelect::of_nothing() })
}

/// The columns, where open literals have no type.
fn opened(columns: &[OutputColumn], literals: &[bool]) -> Arc<[OutputColumn]> {
    let mut columns = columns.to_vec();
    for (column, _) in columns.iter_mut().zip(literals).filter(|(_, literal)| **literal) {
        column.data_type = DataType::Unknown;
    }
    columns.into()
}

/// Gives outputs without a type these types.
fn close(
    scope: &VariableScope,
    outputs: &mut [Expression],
    columns: Arc<[OutputColumn]>,
    types: &[DataType],
) -> Result<Arc<[OutputColumn]>, SqlError> {
    let binder = Binder::new(scope, Source::Nothing);
    let mut columns = columns.to_vec();
    for ((column, value), data_type) in columns.iter_mut().zip(outputs).zip(types) {
        if column.data_type == DataType::Unknown {
            let literal = Expression { data_type: DataType::Unknown, ..value.clone() };
            *value = binder.cast_to(literal, *data_type)?;
            column.data_type = *data_type;
        }
    }
    Ok(columns.into())
}

/// What makes columns of these types of such columns; `None` where they have them.
fn cast(columns: &[OutputColumn], types: &[DataType]) -> Option<(Vec<Expression>, Arc<[OutputColumn]>)> {
    if columns.iter().zip(types).all(|(column, data_type)| column.data_type == *data_type) {
        return None;
    }
    let value = |(ordinal, (column, data_type)): (usize, (&OutputColumn, &DataType))| {
        let value = Expression::column(ordinal, column.data_type);
        match column.data_type == *data_type {
            true => value,
            false => Expression { kind: Kind::Cast(Box::new(value)), data_type: *data_type },
        }
    };
    let outputs = columns.iter().zip(types).enumerate().map(value).collect();
    let named = |(column, data_type): (&OutputColumn, &DataType)| OutputColumn {
        name: column.name.clone(),
        data_type: *data_type,
    };
    Some((outputs, columns.iter().zip(types).map(named).collect()))
}
