//! A table of the catalog with its defaults and checks bound.

use crate::computed_index::ComputedIndex;
use crate::expression::{Environment, Expression};
pub use crate::key_description::describe_key;
use crate::partitions::{CHECK_NAME, PartitionsPlan};
use crate::table_triggers::TableTriggers;
use std::sync::Arc;
use types::session_format::{SessionFormat, within_format};
use types::{
    ColumnSet, DataType, Index, Policy, Row, RowSecurity, SqlError, SqlState, TableId, Value, format_value,
    limits,
};

/// A table as statements use it.
#[derive(Clone, Debug)]
pub struct TablePlan {
    /// Its number.
    pub id: TableId,
    /// Its name, without the schema.
    pub name: String,
    /// Its name in the catalog.
    pub relation: String,
    /// The columns, in order.
    pub columns: Vec<ColumnPlan>,
    /// Ordinals of the primary key's columns, in key order; empty where the key is hidden.
    pub key: Vec<u16>,
    /// Name of the primary key's constraint.
    pub key_name: String,
    /// In the order of their names.
    pub checks: Vec<CheckPlan>,
    /// Its indexes on columns.
    pub indexes: Vec<Arc<Index>>,
    /// Its indexes on expressions, or of a part of its rows.
    pub computed: Vec<Arc<ComputedIndex>>,
    /// Columns in a UNIQUE or FOREIGN KEY constraint, of this table or of one that references it: they are assigned at
    /// simulation.
    pub constrained: ColumnSet,
    /// It has a unique index, or is referenced: a DELETE is looked at too.
    pub holds_keys: bool,
    /// Who must endorse what writes to it.
    pub endorsement: Option<Policy>,
    /// What fires when its rows change.
    pub triggers: TableTriggers,
    /// What a role sees of it, where that is not everything.
    pub row_security: Option<Arc<RowSecurity>>,
    /// Roles have privileges on some of its columns: errors show no row, which may have values that a role may not read.
    pub has_column_privileges: bool,
    /// Errors of references, and of indexes on expressions, show no key for the same reasons: from execution version 11 on.
    pub hides_keys: bool,
    /// Its partitions, if it is partitioned.
    pub partitions: Option<Arc<PartitionsPlan>>,
    /// Arrays in its keys stand in their order: before execution version 16, when all had one dimension from 1.
    pub has_arrays_in_order: bool,
    /// It is a materialized view, and whether that has been filled.
    pub materialized: Option<Filled>,
}

/// Whether a materialized view has the rows of its query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filled(pub bool);

/// A column.
#[derive(Clone, Debug)]
pub struct ColumnPlan {
    /// Its name.
    pub name: String,
    /// Its type.
    pub data_type: DataType,
    /// NULL is refused.
    pub not_null: bool,
    /// The value where none is given; cast to the column's type.
    pub default: Option<Expression>,
    /// GENERATED ALWAYS AS IDENTITY: no other value can be given.
    pub is_generated: bool,
    /// What a generated column has its values of, over the row; cast to the column's type.
    pub computed: Option<Expression>,
}

/// A CHECK constraint.
#[derive(Clone, Debug)]
pub struct CheckPlan {
    /// Its name.
    pub name: String,
    /// The condition over the table's columns.
    pub condition: Expression,
    /// All rows keep it. Else every change of a row holds it against the row, whatever it assigns.
    pub valid: bool,
}

impl CheckPlan {
    /// Whether a row violates it. It means the same whatever the session's format is.
    ///
    /// # Errors
    /// What the condition raises.
    pub fn is_violated(&self, environment: &Environment<'_>) -> Result<bool, SqlError> {
        let truth = within_format(SessionFormat::default(), || self.condition.truth(environment));
        Ok(truth? == Some(false))
    }
}

impl TablePlan {
    /// Whether keys stand in the order of values of this type: those of arrays with other dimensions than one from 1 stand behind all others.
    pub fn has_in_order(&self, data_type: DataType) -> bool {
        self.has_arrays_in_order
            || !matches!(data_type, DataType::Array(_) | DataType::Composite(_) | DataType::Record)
    }

    /// The same as it is read at an earlier height, where its indexes may not have been there.
    pub fn without_indexes(&self) -> TablePlan {
        TablePlan {
            id: self.id,
            name: self.name.clone(),
            relation: self.relation.clone(),
            columns: self.columns.clone(),
            key: self.key.clone(),
            key_name: self.key_name.clone(),
            checks: Vec::new(),
            indexes: Vec::new(),
            computed: Vec::new(),
            constrained: self.constrained,
            holds_keys: self.holds_keys,
            endorsement: None,
            triggers: TableTriggers::default(),
            row_security: self.row_security.clone(),
            has_column_privileges: self.has_column_privileges,
            hides_keys: self.hides_keys,
            has_arrays_in_order: self.has_arrays_in_order,
            partitions: None,
            materialized: self.materialized,
        }
    }

    /// The same for whoever writes to it through a view that does not show all of it.
    pub fn without_details(&self) -> TablePlan {
        TablePlan { has_column_privileges: true, ..self.clone() }
    }

    /// Ordinal of a column.
    pub fn ordinal(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// The generated columns that what is written decides on, and their expressions.
    pub fn computed_from(&self, writes: ColumnSet) -> impl Iterator<Item = (u16, &Expression)> {
        (0..).zip(&self.columns).filter_map(move |(ordinal, column)| {
            let computed = column.computed.as_ref()?;
            let decides = computed.columns() | ColumnSet::column(usize::from(ordinal));
            decides.intersects(writes).then_some((ordinal, computed))
        })
    }

    /// The row with the values of its generated columns.
    ///
    /// # Errors
    /// What computing them raises.
    pub fn with_computed(&self, row: Row) -> Result<Row, SqlError> {
        if self.columns.iter().all(|column| column.computed.is_none()) {
            return Ok(row);
        }
        let environment = Environment::new(&row, &[], 0);
        let mut values = row.to_vec();
        for (ordinal, computed) in self.computed_from(ColumnSet::ALL) {
            values[usize::from(ordinal)] = computed.evaluate(&environment)?;
        }
        Ok(values.into())
    }

    /// The error of a row that breaks a CHECK.
    #[cold]
    pub fn check_violation(&self, check: &CheckPlan, row: &[Value]) -> SqlError {
        if let Some(partitions) = self.partitions.as_ref().filter(|_| check.name == CHECK_NAME) {
            let (error, detail) = partitions.no_partition(row);
            return self.with_detail(error, || detail);
        }
        let message =
            format!("new row for relation \"{}\" violates check constraint \"{}\"", self.name, check.name);
        self.with_detail(SqlError::new(SqlState::CHECK_VIOLATION, message), || failing_row(row))
    }

    /// The error of a row that a view with CHECK OPTION would not show.
    #[cold]
    pub fn view_violation(&self, view: &str, row: &[Value]) -> SqlError {
        let message = format!("new row violates check option for view \"{view}\"");
        self.with_detail(SqlError::new(SqlState(*b"44000"), message), || failing_row(row))
    }

    /// Refuses to read a materialized view that nothing has filled.
    ///
    /// # Errors
    /// `55000`
    pub fn check_filled(&self) -> Result<(), SqlError> {
        if self.materialized != Some(Filled(false)) {
            return Ok(());
        }
        let message = format!("materialized view \"{}\" has not been populated", self.name);
        let error = SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message);
        Err(error.hint("Use the REFRESH MATERIALIZED VIEW command."))
    }

    /// The error of a row that is written through a partition which does not have it.
    #[cold]
    pub fn partition_violation(&self, partition: &str, row: &[Value]) -> SqlError {
        let message = format!("new row for relation \"{partition}\" violates partition constraint");
        self.with_detail(SqlError::new(SqlState::CHECK_VIOLATION, message), || failing_row(row))
    }

    /// The error of a row with NULL where there must not be one.
    #[cold]
    pub fn null_violation(&self, ordinal: usize, row: &[Value]) -> SqlError {
        let message = format!(
            "null value in column \"{}\" of relation \"{}\" violates not-null constraint",
            self.columns[ordinal].name, self.name
        );
        self.with_detail(SqlError::new(SqlState::NOT_NULL_VIOLATION, message), || failing_row(row))
    }

    /// The error of a row whose key in a constraint exists.
    #[cold]
    pub fn duplicate_key(&self, constraint: &str, columns: &[u16], row: &[Value]) -> SqlError {
        let values: Vec<Value> = columns.iter().map(|ordinal| row[usize::from(*ordinal)].clone()).collect();
        let message = format!("duplicate key value violates unique constraint \"{constraint}\"");
        let key = || describe_key(&listed_columns(self, columns), &values);
        let error = SqlError::new(SqlState::UNIQUE_VIOLATION, message);
        self.with_detail(error, || format!("{} already exists.", key()))
    }

    /// The error with a detail that shows values of a row, which may be one that policies hide, or have columns that a role may not
    /// read.
    fn with_detail(&self, error: SqlError, detail: impl FnOnce() -> String) -> SqlError {
        match self.row_security.is_some() || self.has_column_privileges {
            true => error,
            false => error.detail(detail()),
        }
    }
}

/// The names of columns, as errors list them.
pub fn listed_columns(table: &TablePlan, columns: &[u16]) -> String {
    let names = columns.iter().map(|ordinal| table.columns[usize::from(*ordinal)].name.as_str());
    names.collect::<Vec<_>>().join(", ")
}

/// A policy that a schema change has stored.
pub fn stored_policy(text: &str) -> Result<Policy, SqlError> {
    Policy::parse(text).map_err(|error| SqlError::new(SqlState::INTERNAL_ERROR, error.to_string()))
}

/// Characters of a value that an error shows, as PostgreSQL bounds them.
const SHOWN_BYTES_MAX: usize = 64;

fn failing_row(row: &[Value]) -> String {
    let shown = |value: &Value| {
        let Some(mut text) = format_value(value) else { return "null".to_string() };
        if text.len() > SHOWN_BYTES_MAX {
            let end = (0..=SHOWN_BYTES_MAX).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
            text.truncate(end);
            text.push_str("...");
        }
        text
    };
    let values: Vec<String> = row.iter().map(shown).collect();
    format!("Failing row contains ({}).", values.join(", "))
}

/// Whether a row of this table may be longer than a row may be.
pub fn may_be_too_long(table: &TablePlan) -> bool {
    // As `check_row_bytes` counts; a character has at most four bytes.
    let bytes = table.columns.iter().map(|column| match column.data_type {
        DataType::Text(None) | DataType::Char(None) | DataType::Unknown => usize::MAX,
        DataType::Bytea | DataType::Array(_) | DataType::Composite(_) | DataType::Record => usize::MAX,
        DataType::Json | DataType::Jsonb | DataType::Hstore | DataType::Citext => usize::MAX,
        DataType::Bit(_) | DataType::VarBit(_) | DataType::Range(_) | DataType::Multirange(_) => usize::MAX,
        DataType::Inet | DataType::Cidr => 19,
        DataType::Text(Some(characters)) | DataType::Char(Some(characters)) => {
            (characters as usize).saturating_mul(4).saturating_add(9)
        }
        DataType::Enum(_) => 2 * limits::NAME_BYTES_MAX,
        _ => 18,
    });
    // By the limit of the older versions in all of them: that a change may fail is said of too many, and never of too few.
    bytes.fold(0, usize::saturating_add) > limits::ROW_BYTES_BEFORE
}
