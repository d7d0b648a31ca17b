//! FROM: its relations, joined, and the names of their columns.
//!
//! Names and conditions are bound over one row that has the columns of all relations in the order of FROM.

use crate::expression::{Binder, Expression, Kind, Merged, Relations, Source};
use crate::logical::{LogicalPlan, Scan};
use crate::statement::from_factor::bind_factor;
use crate::statement::level::Level;
use crate::statement::query::bind_view;
use crate::statement::query_scope::QueryScope;
use crate::statement::relation::JoinKind;
use crate::statement::relation_names::{add_relation, set_row_type, set_table};
use crate::table::TablePlan;
use sqlparser::ast::{self, JoinConstraint, JoinOperator, Spanned, TableFactor, TableWithJoins};
use std::sync::Arc;
use syntax::names::name_of;
use syntax::rewrite::JOIN_NAME;
use types::{DataType, ExecutionVersion, SqlError, SqlState, common_type};
use values::{Comparison, broken};

/// Binds the list of FROM: its relations, joined, and the names of their columns.
///
/// # Errors
/// Unknown names; what is not supported.
pub(super) fn bind_from(
    query: QueryScope<'_>,
    level: &Level<'_>,
    from: &[TableWithJoins],
) -> Result<(Option<LogicalPlan>, Relations), SqlError> {
    bind_list(query, level, Relations::default(), None, from)
}

/// The same for UPDATE and DELETE: behind the columns of `target`, the table that is changed, stands the key of its row.
/// Gives the column that it is.
///
/// # Errors
/// As [`bind_from`].
pub(super) fn bind_from_target(
    query: QueryScope<'_>,
    level: &Level<'_>,
    (target, table): (&TableFactor, &Arc<TablePlan>),
    others: &[TableWithJoins],
) -> Result<(LogicalPlan, Relations, Expression), SqlError> {
    let mut names = Relations::default();
    let columns = table.columns.iter().map(|column| (column.name.clone(), column.data_type)).collect();
    let TableFactor::Table { alias, .. } = target else { return Err(SqlError::unsupported("this target")) };
    add_relation(query, &mut names, &table.name, alias.as_ref(), columns)?;
    let row_type = query.tables.routines().types().named(&table.relation).map(|known| known.data_type());
    set_row_type(&mut names, row_type);
    set_table(&mut names, table);
    names.relations[0].keyed = true;
    let key = Expression::column(table.columns.len(), DataType::Bytea);
    let item = LogicalPlan::from(Scan { keyed: true, ..Scan::of(table.clone()) });
    let (item, names) = bind_list(query, level, names, Some(item), others)?;
    let item = item.ok_or_else(|| broken("a change of no table"))?;
    Ok((item, names, key))
}

/// The same for a view over rows of `table` that is known as `known_as`. Its columns are values over those of the table, and have
/// no names here.
///
/// # Errors
/// As [`bind_from`].
pub(super) fn bind_from_base(
    query: QueryScope<'_>,
    level: &Level<'_>,
    (known_as, table): (&str, &Arc<TablePlan>),
    others: &[TableWithJoins],
) -> Result<(LogicalPlan, Relations, Expression), SqlError> {
    let mut names = Relations::default();
    // No identifier can be this.
    let columns = table.columns.iter().map(|column| ("\0".to_string(), column.data_type)).collect();
    add_relation(query, &mut names, known_as, None, columns)?;
    names.relations[0].keyed = true;
    let key = Expression::column(table.columns.len(), DataType::Bytea);
    let item = LogicalPlan::from(Scan { keyed: true, ..Scan::of(table.clone()) });
    let (item, names) = bind_list(query, level, names, Some(item), others)?;
    let item = item.ok_or_else(|| broken("a change of no table"))?;
    Ok((item, names, key))
}

/// The same for a view whose triggers do what is done to it: its rows, which have no key.
///
/// # Errors
/// As [`bind_from`].
pub(super) fn bind_from_view(
    query: QueryScope<'_>,
    level: &Level<'_>,
    (known_as, table): (&str, &Arc<TablePlan>),
    others: &[TableWithJoins],
) -> Result<(LogicalPlan, Relations), SqlError> {
    let view = query.tables.view(&table.relation).ok_or_else(|| broken("a view that is not there"))?;
    let mut names = Relations::default();
    let columns = table.columns.iter().map(|column| ("\0".to_string(), column.data_type)).collect();
    add_relation(query, &mut names, known_as, None, columns)?;
    let item = LogicalPlan::query(bind_view(query, view, None)?.plan, Vec::new());
    let (item, names) = bind_list(query, level, names, Some(item), others)?;
    Ok((item.ok_or_else(|| broken("a change of no view"))?, names))
}

fn bind_list(
    query: QueryScope<'_>,
    level: &Level<'_>,
    mut names: Relations,
    mut whole: Option<LogicalPlan>,
    from: &[TableWithJoins],
) -> Result<(Option<LogicalPlan>, Relations), SqlError> {
    for tables in from {
        let first = names.width();
        let item = bind_joined(query, level, &mut names, tables, first)?;
        whole = Some(match whole {
            None => item,
            Some(left) => LogicalPlan::join(JoinKind::Inner, left, item, Vec::new()),
        });
    }
    Ok((whole, names))
}

/// Binds one entry of FROM with its joins. `first`: the column where it begins.
pub(super) fn bind_joined(
    query: QueryScope<'_>,
    level: &Level<'_>,
    names: &mut Relations,
    tables: &TableWithJoins,
    first: usize,
) -> Result<LogicalPlan, SqlError> {
    let entry = names.relations.len();
    let mut left = bind_factor(query, level, names, &tables.relation)?;
    for join in &tables.joins {
        let (kind, constraint) = join_kind(&join.join_operator)
            .map_err(|error| query.variables.located(error, join.relation.span()))?;
        let right_entry = names.relations.len();
        let middle = names.width();
        let right = bind_factor(query, level, names, &join.relation)?;
        if matches!(kind, JoinKind::Right | JoinKind::Full) && looks_left(&right, middle) {
            let message = "invalid reference to FROM-clause entry";
            let detail = "The combining JOIN type must be INNER or LEFT for a LATERAL reference.";
            let error = SqlError::new(SqlState(*b"42P10"), message).detail(detail);
            return Err(query.variables.located(error, join.relation.span()));
        }
        let on = match constraint {
            None => Vec::new(),
            Some(JoinConstraint::On(condition)) => {
                let visible = names.between(entry);
                let binder = query.binder(level, Source::Relations(&visible));
                binder.in_clause(Some("JOIN conditions"));
                binder.bind_condition(condition, "JOIN/ON")?.into_conjuncts()
            }
            Some(JoinConstraint::Using(columns)) => {
                let (columns, name) = split_name(columns)?;
                let columns = columns.iter().map(using_column).collect::<Result<Vec<_>, _>>()?;
                let on = merge(query, names, kind, (entry, right_entry), &columns)?;
                if let Some(name) = name {
                    names.name_join(name_of(name)?, entry, &columns)?;
                }
                on
            }
            Some(JoinConstraint::Natural) => {
                let columns = names.common_columns(entry, right_entry);
                merge(query, names, kind, (entry, right_entry), &columns)?
            }
            Some(JoinConstraint::None) => {
                let error = SqlError::new(SqlState::SYNTAX_ERROR, "a JOIN needs ON or USING");
                return Err(query.variables.located(error, join.relation.span()));
            }
        };
        let missing = match kind {
            JoinKind::Inner => 0..0,
            JoinKind::Left => right_entry..names.relations.len(),
            JoinKind::Right => entry..right_entry,
            JoinKind::Full => entry..names.relations.len(),
        };
        names.relations[missing].iter_mut().for_each(|relation| relation.may_be_missing = true);
        debug_assert_eq!(middle, first + left.width());
        left = LogicalPlan::join(kind, left, right, on);
    }
    Ok(left)
}

/// The columns of USING, and the name that AS gives the join.
fn split_name(columns: &[ast::ObjectName]) -> Result<(&[ast::ObjectName], Option<&ast::Ident>), SqlError> {
    if let [columns @ .., last] = columns
        && let [ast::ObjectNamePart::Identifier(mark), ast::ObjectNamePart::Identifier(name)] =
            last.0.as_slice()
        && mark.value == JOIN_NAME
    {
        return Ok((columns, Some(name)));
    }
    Ok((columns, None))
}

fn using_column(name: &ast::ObjectName) -> Result<String, SqlError> {
    match name.0.as_slice() {
        [part] => part
            .as_ident()
            .map_or_else(|| Err(SqlError::unsupported(format_args!("USING ({name})"))), name_of),
        _ => Err(SqlError::unsupported(format_args!("USING ({name})"))),
    }
}

fn join_kind(operator: &JoinOperator) -> Result<(JoinKind, Option<&JoinConstraint>), SqlError> {
    Ok(match operator {
        JoinOperator::Join(constraint) | JoinOperator::Inner(constraint) => {
            (JoinKind::Inner, Some(constraint))
        }
        JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => {
            (JoinKind::Left, Some(constraint))
        }
        JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint) => {
            (JoinKind::Right, Some(constraint))
        }
        JoinOperator::FullOuter(constraint) => (JoinKind::Full, Some(constraint)),
        JoinOperator::CrossJoin(_) => (JoinKind::Inner, None),
        _ => return Err(SqlError::unsupported("this form of JOIN")),
    })
}

/// The columns of USING: equal on both sides, and one in the output. Gives the conditions.
fn merge(
    query: QueryScope<'_>,
    names: &mut Relations,
    kind: JoinKind,
    (entry, right_entry): (usize, usize),
    columns: &[String],
) -> Result<Vec<Expression>, SqlError> {
    let mut on = Vec::with_capacity(columns.len());
    let mut merged = Vec::with_capacity(columns.len());
    for name in columns {
        let left = names.column_between(name, entry, right_entry)?;
        let right = names.column_between(name, right_entry, names.relations.len())?;
        let (Some(left), Some(right)) = (&left, &right) else {
            let side = if left.is_none() { "left" } else { "right" };
            let message =
                format!("column \"{name}\" specified in USING clause does not exist in {side} table");
            return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message));
        };
        let of_both = Binder::new(query.variables, Source::Relations(names));
        [left, right].into_iter().for_each(|side| of_both.note_read(side));
        let binder = Binder::new(query.variables, Source::Nothing);
        on.push(binder.compare(Comparison::Equal, left.clone(), right.clone())?);
        let expression = if query.tables.version() < ExecutionVersion::V2 {
            merged_value_of_version_1(kind, left, right)
        } else {
            merged_value(&binder, kind, left, right)?
        };
        merged.push(Merged { name: name.clone(), expression, entry });
        names.hide(name, entry);
    }
    names.merged.retain(|known| known.entry < entry || !columns.contains(&known.name));
    merged.append(&mut names.merged);
    names.merged = merged;
    Ok(on)
}

/// The value of two columns that USING has made one of, in the type that both have together.
fn merged_value(
    binder: &Binder<'_>,
    kind: JoinKind,
    left: &Expression,
    right: &Expression,
) -> Result<Expression, SqlError> {
    let common = common_type([left.data_type, right.data_type]).unwrap_or(left.data_type);
    let has_it = |side: &Expression| side.data_type.family() == common.family();
    let side = |side: &Expression| match has_it(side) {
        true => Ok(side.clone()),
        false => binder.cast_to(side.clone(), common.family()),
    };
    match kind {
        // They are equal. As in PostgreSQL the one is shown that needs no cast.
        JoinKind::Inner if !has_it(left) && has_it(right) => side(right),
        JoinKind::Inner | JoinKind::Left => side(left),
        JoinKind::Right => side(right),
        JoinKind::Full => {
            let (left, right) = (side(left)?, side(right)?);
            let data_type = left.data_type;
            Ok(Expression { kind: Kind::Coalesce(vec![left, right]), data_type })
        }
    }
}

/// The same in execution version 1: a value of either side has its own type.
fn merged_value_of_version_1(kind: JoinKind, left: &Expression, right: &Expression) -> Expression {
    match kind {
        JoinKind::Inner | JoinKind::Left => left.clone(),
        JoinKind::Right => right.clone(),
        JoinKind::Full => {
            Expression { kind: Kind::Coalesce(vec![left.clone(), right.clone()]), data_type: left.data_type }
        }
    }
}

/// Whether the rows of a relation depend on columns before this one.
fn looks_left(relation: &LogicalPlan, first: usize) -> bool {
    let mut looks = false;
    relation.visit_in_source(&mut |expression| {
        looks |= expression
            .any(&mut |inner| matches!(inner.kind, Kind::Column(ordinal) if usize::from(ordinal) < first));
    });
    looks
}
