//! What SET and ON CONFLICT say of the columns of a view, said of those of its table.

use crate::expression::{Expression, Kind};
use crate::scope::VariableScope;
use crate::statement::column_targets::is_default;
use crate::statement::view_target::{Change, ViewTarget};
use sqlparser::ast::{Assignment, AssignmentTarget, ConflictTarget, Expr, Ident, ObjectName, Value};
use syntax::names::name_of;
use types::{DataType, Privileges, SqlError, SqlState, object_name};

impl ViewTarget {
    /// Names and types of its columns.
    pub fn named_columns(&self) -> Vec<(String, DataType)> {
        self.columns.iter().map(|column| (column.name.clone(), column.data_type)).collect()
    }

    /// Notes the columns of the view that are assigned.
    pub fn note_assigned(&self, scope: &VariableScope, assignments: &[Assignment]) {
        let note = |column: &ObjectName| {
            let name = column.0.first().and_then(|part| part.as_ident()).and_then(|part| name_of(part).ok());
            name.iter().for_each(|name| scope.note_column(&self.name, name, Privileges::UPDATE));
        };
        for assignment in assignments {
            match &assignment.target {
                AssignmentTarget::ColumnName(column) => note(column),
                AssignmentTarget::Tuple(columns) => columns.iter().for_each(note),
            }
        }
    }

    /// Assignments to the columns of the table.
    ///
    /// # Errors
    /// As [`ViewTarget::base_name`].
    pub fn base_assignments(
        &self,
        assignments: &[Assignment],
        change: Change,
    ) -> Result<Vec<Assignment>, SqlError> {
        let mut list = assignments.to_vec();
        for assignment in &mut list {
            match &mut assignment.target {
                AssignmentTarget::ColumnName(column) => {
                    *column = self.base_name(column, change)?;
                    if is_default(&assignment.value) && !self.is_partition {
                        // The column of the view has none, whatever the table's has.
                        assignment.value = Expr::Value(Value::Null.with_empty_span());
                    }
                }
                AssignmentTarget::Tuple(columns) => {
                    for column in columns {
                        *column = self.base_name(column, change)?;
                    }
                }
            }
        }
        Ok(list)
    }

    /// What rows conflict in, by the columns of the table.
    ///
    /// # Errors
    /// `42703` for a column that the view does not have, `42P10` for one that is none of the table, `42704` for a constraint,
    /// because a view has none.
    pub fn base_conflict(&self, target: &ConflictTarget) -> Result<ConflictTarget, SqlError> {
        let columns = match target {
            ConflictTarget::Columns(columns) => columns,
            ConflictTarget::OnConstraint(name) => {
                let name = name.0.last().and_then(|name| name.as_ident()).map(name_of).transpose()?;
                let (name, view) = (name.unwrap_or_default(), object_name(&self.name));
                let message = format!("constraint \"{name}\" for table \"{view}\" does not exist");
                return Err(SqlError::new(SqlState(*b"42704"), message));
            }
        };
        let base = |column: &Ident| {
            let name = name_of(column)?;
            let position = self.columns.iter().position(|known| known.name == name).ok_or_else(|| {
                SqlError::new(SqlState::UNDEFINED_COLUMN, format!("column \"{name}\" does not exist"))
            })?;
            match self.values[position].kind {
                Kind::Column(ordinal) => {
                    Ok(Ident::with_quote('"', self.table.columns[usize::from(ordinal)].name.as_str()))
                }
                _ => {
                    let message =
                        "there is no unique or exclusion constraint matching the ON CONFLICT specification";
                    Err(SqlError::new(SqlState(*b"42P10"), message))
                }
            }
        };
        columns.iter().map(base).collect::<Result<_, _>>().map(ConflictTarget::Columns)
    }

    /// What ON CONFLICT says, over the row of the table that exists and then the one that was to be inserted. The columns of
    /// the view stand behind both, twice: of the one row, and of the other.
    pub fn over_conflict(&self, mut expression: Expression) -> Expression {
        self.put_in_conflict(&mut expression);
        expression
    }

    fn put_in_conflict(&self, expression: &mut Expression) {
        let Kind::Column(ordinal) = expression.kind else {
            expression.operands_mut().into_iter().for_each(|operand| self.put_in_conflict(operand));
            return;
        };
        let width = self.table.columns.len();
        let Some(position) = usize::from(ordinal).checked_sub(2 * width) else { return };
        let of_new = position >= self.values.len();
        *expression = self.values[position % self.values.len()].clone();
        if of_new {
            shift(expression, width);
        }
    }
}

/// Says of the columns behind the first ones what is said of these.
fn shift(expression: &mut Expression, by: usize) {
    if let Kind::Column(ordinal) = expression.kind {
        *expression = Expression::column(usize::from(ordinal) + by, expression.data_type);
        return;
    }
    expression.operands_mut().into_iter().for_each(|operand| shift(operand, by));
}
