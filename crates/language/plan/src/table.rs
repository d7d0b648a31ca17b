//! A table of the catalog with its defaults and checks bound.

use crate::constraint::{ForeignKeys, constrained_columns};
use crate::expression::{Binder, Environment, Expression, Source};
use crate::polymorphic::Callee;
use crate::routines::Routines;
use crate::scope::VariableScope;
use crate::trigger::TableTriggers;
use crate::view::ViewPlan;
use std::collections::BTreeSet;
use std::sync::Arc;
use syntax::parse::parse_expression;
use types::{
    Catalog, ColumnSet, DataType, Generated, Index, Policy, SearchPath, SqlError, SqlState, Table, TableId,
    Value, as_given, format_value, limits,
};

/// A table as statements use it.
#[derive(Debug)]
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
    /// Its indexes.
    pub indexes: Vec<Arc<Index>>,
    /// Columns in a UNIQUE or FOREIGN KEY constraint, of this table or of one that references it: they are assigned at
    /// simulation.
    pub constrained: ColumnSet,
    /// It has a unique index, or is referenced: a DELETE is looked at too.
    pub holds_keys: bool,
    /// Who must endorse what writes to it.
    pub endorsement: Option<Policy>,
    /// What fires when its rows change.
    pub triggers: TableTriggers,
}

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
}

/// A CHECK constraint.
#[derive(Debug)]
pub struct CheckPlan {
    /// Its name.
    pub name: String,
    /// The condition over the table's columns.
    pub condition: Expression,
}

impl TablePlan {
    /// Binds defaults and checks.
    ///
    /// # Errors
    /// What is wrong in one of them.
    pub fn new(table: &Table, catalog: &Catalog, routines: &Routines) -> Result<TablePlan, SqlError> {
        let (constrained, holds_keys) = constrained_columns(catalog, table.id);
        let mut plan = TablePlan {
            id: table.id,
            name: table.object_name().to_string(),
            relation: table.name.clone(),
            columns: Vec::with_capacity(table.columns.len()),
            key: table.primary_key.clone(),
            key_name: table.primary_key_name.clone(),
            checks: Vec::new(),
            indexes: catalog.indexes_of(table.id).iter().cloned().map(Arc::new).collect(),
            constrained,
            holds_keys,
            endorsement: table.endorsement.as_deref().map(stored_policy).transpose()?,
            triggers: TableTriggers::new(catalog.triggers_of(table.id)),
        };
        for (ordinal, column) in table.columns.iter().enumerate() {
            let default = column.default.as_ref();
            let default = default.map(|sql| bind_default(sql, &column.name, column.data_type, routines));
            plan.columns.push(ColumnPlan {
                name: column.name.clone(),
                data_type: column.data_type,
                not_null: column.not_null,
                default: default.transpose()?,
                is_generated: catalog.identity(table.id, ordinal) == Some(Generated::Always),
            });
        }
        for check in &table.checks {
            let condition = bind_check(&plan, &check.condition, routines)?;
            plan.checks.push(CheckPlan { name: check.name.clone(), condition });
        }
        Ok(plan)
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
            constrained: self.constrained,
            holds_keys: self.holds_keys,
            endorsement: None,
            triggers: TableTriggers::default(),
        }
    }

    /// Ordinal of a column.
    pub fn ordinal(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// The error of a row that breaks a CHECK.
    #[cold]
    pub fn check_violation(&self, check: &CheckPlan, row: &[Value]) -> SqlError {
        let message =
            format!("new row for relation \"{}\" violates check constraint \"{}\"", self.name, check.name);
        SqlError::new(SqlState::CHECK_VIOLATION, message).detail(failing_row(row))
    }

    /// The error of a row with NULL where there must not be one.
    #[cold]
    pub fn null_violation(&self, ordinal: usize, row: &[Value]) -> SqlError {
        let message = format!(
            "null value in column \"{}\" of relation \"{}\" violates not-null constraint",
            self.columns[ordinal].name, self.name
        );
        SqlError::new(SqlState::NOT_NULL_VIOLATION, message).detail(failing_row(row))
    }

    /// The error of a row whose key in a constraint exists.
    #[cold]
    pub fn duplicate_key(&self, constraint: &str, columns: &[u16], row: &[Value]) -> SqlError {
        let values: Vec<Value> = columns.iter().map(|ordinal| row[usize::from(*ordinal)].clone()).collect();
        let message = format!("duplicate key value violates unique constraint \"{constraint}\"");
        let key = describe_key(&listed_columns(self, columns), &values);
        SqlError::new(SqlState::UNIQUE_VIOLATION, message).detail(format!("{key} already exists."))
    }
}

/// The names of columns, as errors list them.
pub fn listed_columns(table: &TablePlan, columns: &[u16]) -> String {
    let names = columns.iter().map(|ordinal| table.columns[usize::from(*ordinal)].name.as_str());
    names.collect::<Vec<_>>().join(", ")
}

/// `Key (a, b)=(1, 2)`.
pub fn describe_key(columns: &str, values: &[Value]) -> String {
    let values: Vec<String> =
        values.iter().map(|value| format_value(value).unwrap_or_else(|| "null".to_string())).collect();
    format!("Key ({columns})=({})", values.join(", "))
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

/// Binds the expression of DEFAULT for a column of this type.
pub fn bind_default(
    sql: &str,
    column: &str,
    data_type: DataType,
    routines: &Routines,
) -> Result<Expression, SqlError> {
    let scope = VariableScope::for_procedure(None).with_routines(routines);
    let binder = Binder::new(&scope, Source::Default);
    let expression = binder.bind(&parse_expression(sql)?)?;
    binder.assign_to_column(expression, column, data_type).map_err(|error| SqlError {
        message: error.message.replace("but expression is", "but default expression is"),
        ..error
    })
}

/// Binds the condition of a CHECK.
pub fn bind_check(plan: &TablePlan, sql: &str, routines: &Routines) -> Result<Expression, SqlError> {
    let scope = VariableScope::for_procedure(None).with_routines(routines);
    let binder = Binder::new(&scope, Source::Table { table: plan, name: &plan.name });
    let condition = binder.bind_condition(&parse_expression(sql)?, "CHECK")?;
    if condition.any(&mut |expression| matches!(expression.kind, crate::expression::Kind::Now)) {
        return Err(SqlError::unsupported("now() in a CHECK constraint").hint(
            "A row that was right once would be wrong later. Check it in the procedure that writes it.",
        ));
    }
    if condition.runs_anything() {
        return Err(SqlError::unsupported("a function of the ledger in a CHECK constraint").hint(
            "A CHECK is judged on the row alone. Write the condition out, or check it in the procedure that writes the row.",
        ));
    }
    Ok(condition)
}

impl TablePlan {
    /// Checks NOT NULL and CHECKs of a whole new row, in PostgreSQL's order.
    pub fn check_row(&self, row: &[Value]) -> Result<(), SqlError> {
        for (ordinal, column) in self.columns.iter().enumerate() {
            if column.not_null && row[ordinal].is_null() {
                return Err(self.null_violation(ordinal, row));
            }
        }
        let environment = Environment::new(row, &[], 0);
        for check in &self.checks {
            if check.condition.truth(&environment)? == Some(false) {
                return Err(self.check_violation(check, row));
            }
        }
        Ok(())
    }
}

/// The tables of a catalog, bound: what statements are bound against.
///
/// Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    by_name: Arc<rustc_hash::FxHashMap<String, Arc<TablePlan>>>,
    by_id: Arc<rustc_hash::FxHashMap<TableId, Arc<TablePlan>>>,
    foreign_keys: Arc<ForeignKeys>,
    views: Arc<rustc_hash::FxHashMap<String, Arc<ViewPlan>>>,
    routines: Routines,
}

impl Tables {
    /// Binds every table.
    ///
    /// # Errors
    /// What is wrong in a default or a check.
    pub fn new(catalog: &Catalog) -> Result<Tables, SqlError> {
        let routines = Routines::new(catalog);
        let mut by_name = rustc_hash::FxHashMap::default();
        for table in catalog.tables.values() {
            let plan = TablePlan::new(table, catalog, &routines)?;
            by_name.insert(table.name.clone(), Arc::new(plan));
        }
        let by_id = by_name.values().map(|plan| (plan.id, plan.clone())).collect();
        let foreign_keys = Arc::new(ForeignKeys::new(catalog, &by_id)?);
        let mut views = rustc_hash::FxHashMap::default();
        for view in catalog.views.values() {
            views.insert(view.name.clone(), Arc::new(ViewPlan::new(view)?));
        }
        let (by_name, by_id, views) = (Arc::new(by_name), Arc::new(by_id), Arc::new(views));
        Ok(Tables { by_name, by_id, foreign_keys, views, routines })
    }

    /// The same, with names found in these schemas.
    pub fn with_search_path(&self, search_path: &SearchPath) -> Tables {
        Tables { routines: self.routines.with_search_path(search_path), ..self.clone() }
    }

    /// The name in the catalog of the relation that SQL calls by this name; where there is none, one that none has.
    pub fn find(&self, name: &str) -> String {
        if self.by_name.get(name).is_some_and(|table| table.id.is_temporary()) {
            // What is temporary comes first.
            return name.to_string();
        }
        self.routines.types().search_path().find_or_missing(name, |found| {
            self.by_name.contains_key(found)
                || self.views.contains_key(found)
                || self.routines.has_sequence(found)
        })
    }

    /// The view of this name in the catalog.
    pub fn view(&self, name: &str) -> Option<&Arc<ViewPlan>> {
        self.views.get(name)
    }

    /// Names and types of the columns of a table or view, or of the fields of a composite type, that SQL calls by this name.
    ///
    /// # Errors
    /// `42P01`
    pub fn columns_of(&self, name: &str) -> Result<Vec<(String, DataType)>, SqlError> {
        let found = self.find(name);
        let (called, name) = (name, found.as_str());
        if let Some(view) = self.view(name) {
            return Ok(view.columns.iter().map(|column| (column.name.clone(), column.data_type)).collect());
        }
        if let (None, Some(known)) = (self.by_name.get(name), self.routines.types().find(called)) {
            let fields = known.fields.iter();
            return Ok(fields.map(|field| (field.name.clone(), field.data_type)).collect());
        }
        let columns = self.get(name)?.columns.iter();
        Ok(columns.map(|column| (column.name.clone(), column.data_type)).collect())
    }

    /// The functions and procedures beside them.
    pub fn routines(&self) -> &Routines {
        &self.routines
    }

    /// Functions of the triggers that may fire at a change of this table, or of one that the change cascades to.
    pub fn fired_by(&self, table: &Arc<TablePlan>) -> BTreeSet<Callee> {
        let mut functions = BTreeSet::new();
        let (mut waiting, mut seen) = (vec![table], BTreeSet::new());
        while let Some(table) = waiting.pop() {
            if seen.insert(table.id) {
                functions.extend(table.triggers.functions().map(Callee::named));
                waiting.extend(self.foreign_keys.of_parent(table.id).iter().map(|key| &key.child));
            }
        }
        functions
    }

    /// The FOREIGN KEY constraints.
    pub fn foreign_keys(&self) -> &ForeignKeys {
        &self.foreign_keys
    }

    /// The table and the unique index whose taken keys stand under this number.
    pub fn unique_index(&self, keys: TableId) -> Option<(&Arc<TablePlan>, &Arc<Index>)> {
        let find = |table| {
            let table: &Arc<TablePlan> = table;
            let index = table.indexes.iter().find(|index| index.unique && index.unique_entries() == keys)?;
            Some((table, index))
        };
        self.by_id.values().find_map(find)
    }

    /// The table with this number.
    pub fn by_id(&self, id: TableId) -> Option<&Arc<TablePlan>> {
        self.by_id.get(&id)
    }

    /// The table of this name in the catalog.
    ///
    /// # Errors
    /// `42P01`
    pub fn get(&self, name: &str) -> Result<&Arc<TablePlan>, SqlError> {
        self.by_name.get(name).ok_or_else(|| {
            let message = format!("relation \"{}\" does not exist", as_given(name));
            SqlError::new(SqlState::UNDEFINED_TABLE, message)
        })
    }
}

/// Whether a row of this table may be longer than a row may be.
pub fn may_be_too_long(table: &TablePlan) -> bool {
    // As `check_row_bytes` counts; a character has at most four bytes.
    let bytes = table.columns.iter().map(|column| match column.data_type {
        DataType::Text(None) | DataType::Char(None) | DataType::Unknown => usize::MAX,
        DataType::Bytea | DataType::Array(_) | DataType::Composite(_) | DataType::Record => usize::MAX,
        DataType::Text(Some(characters)) | DataType::Char(Some(characters)) => {
            (characters as usize).saturating_mul(4).saturating_add(9)
        }
        _ => 18,
    });
    bytes.fold(0, usize::saturating_add) > limits::ROW_BYTES_MAX
}
