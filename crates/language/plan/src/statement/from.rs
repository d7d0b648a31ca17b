//! FROM: binding of its relations and names, and the plan of how they are read.
//!
//! Names and conditions are bound over one row that has the columns of all relations in the order of FROM. Planning
//! then hands every condition to the first relation that has all it looks at: a table takes it for its key or its scan, a
//! join keeps what compares both of its sides. An outer join keeps the conditions of its ON apart from those of WHERE.

use crate::condition::{Condition, conjunction};
use crate::expression::{
    Binder, Comparison, Expression, Kind, Merged, NamedRelation, Relations, RoutineCall, Source,
};
use crate::invariant::broken;
use crate::routines::CallForm;
use crate::statement::bind::{find_table, plain_table};
use crate::statement::past::{bind_history, bind_past, is_history, past_height};
use crate::statement::query::{Level, QueryScope, bind_nested, bind_view};
use crate::statement::record_columns::asked_columns;
use crate::statement::relation::{Join, JoinKind, Relation};
use crate::statement::row_function::{Call, RowFunction, bind_row_function, gives_rows, plain_arguments};
use crate::statement::{Access, BoundSelect, Scanned};
use crate::table::TablePlan;
use sqlparser::ast::{
    self, FunctionArg, JoinConstraint, JoinOperator, Query, SetExpr, Spanned, Statement, TableAlias,
    TableFactor, TableWithJoins,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use syntax::names::{name_of, table_name};
use syntax::parse::parse_plain_statements;
use syntax::rewrite::JOIN_NAME;
use types::{
    ColumnSet, DataType, Function, FunctionResult, Privileges, SqlError, SqlState, common_type, object_name,
    schema_of,
};

/// Relations that one FROM may join.
const RELATIONS_MAX: usize = 64;

/// A relation of FROM before it is planned.
pub(super) enum Item {
    /// `keyed`: with the row's key behind its columns. `past`: as it was after that height.
    Table {
        table: Arc<TablePlan>,
        keyed: bool,
        past: Option<Expression>,
    },
    Query {
        query: Arc<BoundSelect>,
        arguments: Vec<Expression>,
    },
    Working {
        number: usize,
        width: usize,
    },
    Function {
        function: RowFunction,
        arguments: Vec<Expression>,
    },
    Call {
        call: RoutineCall,
        width: usize,
    },
    Join {
        kind: JoinKind,
        sides: Box<[Item; 2]>,
        on: Vec<Expression>,
    },
}

impl Item {
    /// How many columns it has.
    fn width(&self) -> usize {
        match self {
            Item::Table { table, keyed, .. } => table.columns.len() + usize::from(*keyed),
            Item::Query { query, .. } => query.columns.len(),
            Item::Working { width, .. } | Item::Call { width, .. } => *width,
            Item::Function { function, .. } => function.width(),
            Item::Join { sides, .. } => sides.iter().map(Item::width).sum(),
        }
    }

    /// Whether its rows depend on columns before this one.
    fn looks_before(&self, first: usize) -> bool {
        match self {
            Item::Table { .. } | Item::Working { .. } => false,
            Item::Query { arguments, .. } => arguments.iter().any(|argument| looks_left(argument, first)),
            Item::Function { arguments, .. } => arguments.iter().any(|argument| looks_left(argument, first)),
            Item::Call { call, .. } => call.arguments.iter().any(|argument| looks_left(argument, first)),
            Item::Join { sides, .. } => sides.iter().any(|side| side.looks_before(first)),
        }
    }
}

/// Binds the list of FROM: its relations, joined, and the names of their columns.
///
/// # Errors
/// Unknown names; what is not supported.
pub(super) fn bind_from(
    query: QueryScope<'_>,
    level: &Level<'_>,
    from: &[TableWithJoins],
) -> Result<(Option<Item>, Relations), SqlError> {
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
) -> Result<(Item, Relations, Expression), SqlError> {
    let mut names = Relations::default();
    let columns = table.columns.iter().map(|column| (column.name.clone(), column.data_type)).collect();
    let TableFactor::Table { alias, .. } = target else { return Err(SqlError::unsupported("this target")) };
    add_relation(query, &mut names, &table.name, alias.as_ref(), columns)?;
    let row_type = query.tables.routines().types().named(&table.relation).map(|known| known.data_type());
    set_row_type(&mut names, row_type);
    set_schema(&mut names, &table.relation);
    names.relations[0].keyed = true;
    let key = Expression::column(table.columns.len(), DataType::Bytea);
    let item = Item::Table { table: table.clone(), keyed: true, past: None };
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
) -> Result<(Item, Relations, Expression), SqlError> {
    let mut names = Relations::default();
    // No identifier can be this.
    let columns = table.columns.iter().map(|column| ("\0".to_string(), column.data_type)).collect();
    add_relation(query, &mut names, known_as, None, columns)?;
    names.relations[0].keyed = true;
    let key = Expression::column(table.columns.len(), DataType::Bytea);
    let item = Item::Table { table: table.clone(), keyed: true, past: None };
    let (item, names) = bind_list(query, level, names, Some(item), others)?;
    let item = item.ok_or_else(|| broken("a change of no table"))?;
    Ok((item, names, key))
}

fn bind_list(
    query: QueryScope<'_>,
    level: &Level<'_>,
    mut names: Relations,
    mut whole: Option<Item>,
    from: &[TableWithJoins],
) -> Result<(Option<Item>, Relations), SqlError> {
    for tables in from {
        let first = names.width();
        let item = bind_joined(query, level, &mut names, tables, first)?;
        whole = Some(match whole {
            None => item,
            Some(left) => Item::Join { kind: JoinKind::Inner, sides: Box::new([left, item]), on: Vec::new() },
        });
    }
    Ok((whole, names))
}

/// Binds one entry of FROM with its joins. `first`: the column where it begins.
fn bind_joined(
    query: QueryScope<'_>,
    level: &Level<'_>,
    names: &mut Relations,
    tables: &TableWithJoins,
    first: usize,
) -> Result<Item, SqlError> {
    let entry = names.relations.len();
    let mut left = bind_factor(query, level, names, &tables.relation)?;
    for join in &tables.joins {
        let (kind, constraint) = join_kind(&join.join_operator)
            .map_err(|error| query.variables.located(error, join.relation.span()))?;
        let right_entry = names.relations.len();
        let middle = names.width();
        let right = bind_factor(query, level, names, &join.relation)?;
        if matches!(kind, JoinKind::Right | JoinKind::Full) && right.looks_before(middle) {
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
        left = Item::Join { kind, sides: Box::new([left, right]), on };
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
        let binder = Binder::new(query.variables, Source::Nothing);
        on.push(binder.compare(Comparison::Equal, left.clone(), right.clone())?);
        let expression = merged_value(&binder, kind, left, right)?;
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

fn bind_factor(
    query: QueryScope<'_>,
    level: &Level<'_>,
    names: &mut Relations,
    factor: &TableFactor,
) -> Result<Item, SqlError> {
    if names.relations.len() >= RELATIONS_MAX {
        let message = format!("a query joins at most {RELATIONS_MAX} relations (RELATIONS_MAX)");
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
    }
    match factor {
        TableFactor::Table { name, alias, args: Some(arguments), with_ordinality, .. } => {
            if let Some(height) = past_height(&arguments.args) {
                return bind_past(query, names, name, height, alias.as_ref());
            }
            bind_function(query, level, names, (name, &arguments.args, *with_ordinality), alias.as_ref())
        }
        TableFactor::Function { lateral: _, name, args, with_ordinality, alias } => {
            bind_function(query, level, names, (name, args, *with_ordinality), alias.as_ref())
        }
        TableFactor::UNNEST { alias, array_exprs, with_offset: false, with_ordinality, .. } => {
            let arguments = array_exprs.iter().collect();
            let call = Call { name: "unnest".to_string(), arguments, with_ordinality: *with_ordinality };
            bind_row_function(query, level, names, call, alias.as_ref(), factor.span())
        }
        TableFactor::Table { name, alias, .. } => {
            plain_table(factor).map_err(|error| query.variables.located(error, name.span()))?;
            if let [part] = name.0.as_slice()
                && let Some(ident) = part.as_ident()
                && let Some(common) = query.common(&name_of(ident)?)
            {
                let known_as = name_of(ident)?;
                let kept = common.kept_rows().map_err(|error| query.variables.located(error, name.span()))?;
                if let Some((number, columns)) = kept {
                    let named =
                        columns.iter().map(|column| (column.name.clone(), column.data_type)).collect();
                    add_relation(query, names, &known_as, alias.as_ref(), named)?;
                    return Ok(Item::Working { number, width: columns.len() });
                }
                let select = common.bind()?;
                return derived(query, names, select, Vec::new(), alias.as_ref(), Some(known_as));
            }
            let called = table_name(name)?;
            if let Some(rows) = query.variables.transition_table(&called) {
                add_relation(query, names, &called, alias.as_ref(), rows.columns.clone())?;
                return Ok(Item::Working { number: rows.number, width: rows.columns.len() });
            }
            let called = query.tables.find(&called);
            query.variables.note_relation(&called, name.span());
            query.variables.note_use(&called, Privileges::SELECT);
            let row_type = query.tables.routines().types().named(&called).map(|known| known.data_type());
            if let Some(view) = query.tables.view(&called) {
                let select = bind_view(query, view)?;
                let known_as = Some(object_name(&called).to_string());
                let item = derived(query, names, select, Vec::new(), alias.as_ref(), known_as)?;
                set_row_type(names, row_type);
                set_schema(names, &called);
                return Ok(item);
            }
            let table = find_table(query.tables, query.variables, name)?;
            let columns =
                table.columns.iter().map(|column| (column.name.clone(), column.data_type)).collect();
            add_relation(query, names, &table.name, alias.as_ref(), columns)?;
            set_row_type(names, row_type);
            set_schema(names, &called);
            Ok(Item::Table { table: table.clone(), keyed: false, past: None })
        }
        TableFactor::Derived { lateral, subquery, alias, sample: None } => {
            if alias.is_none() {
                let error = SqlError::new(SqlState::SYNTAX_ERROR, "subquery in FROM must have an alias")
                    .hint("For example, FROM (SELECT ...) [AS] foo.");
                return Err(query.variables.located(error, factor.span()));
            }
            let visible = if *lateral { names.between(0) } else { Relations::default() };
            let around = query.binder(level, Source::Relations(&visible));
            let (select, arguments) = bind_nested(query, subquery, Some(&around))?;
            derived(query, names, select, arguments, alias.as_ref(), None)
        }
        TableFactor::NestedJoin { table_with_joins, alias: None } => {
            let first = names.width();
            bind_joined(query, level, names, table_with_joins, first)
        }
        // Its relations cannot be named outside: as if it were a query.
        TableFactor::NestedJoin { table_with_joins, alias } => {
            let everything = everything_of(table_with_joins)?;
            let around = query.binder(level, Source::Nothing);
            let (select, arguments) = bind_nested(query, &everything, Some(&around))?;
            derived(query, names, select, arguments, alias.as_ref(), None)
        }
        _ => Err(query.variables.located(SqlError::unsupported("this form of FROM"), factor.span())),
    }
}

/// `SELECT * FROM tables`
fn everything_of(tables: &TableWithJoins) -> Result<Query, SqlError> {
    let parsed = parse_plain_statements("SELECT * FROM tables")?.pop();
    let Some(Statement::Query(mut query)) = parsed else { return Err(broken("a query that was none")) };
    if let SetExpr::Select(select) = query.body.as_mut() {
        select.from = vec![tables.clone()];
    }
    Ok(*query)
}

fn derived(
    query: QueryScope<'_>,
    names: &mut Relations,
    select: BoundSelect,
    arguments: Vec<Expression>,
    alias: Option<&TableAlias>,
    known_as: Option<String>,
) -> Result<Item, SqlError> {
    let columns = select.columns.iter().map(|column| (column.name.clone(), column.data_type)).collect();
    let binder = Binder::new(query.variables, Source::Nothing);
    let records =
        select.projection.iter().enumerate().filter(|(_, value)| value.data_type == DataType::Record);
    let records =
        records.filter_map(|(position, value)| Some((position, binder.fields_of(value)?))).collect();
    add_relation(query, names, known_as.as_deref().unwrap_or_default(), alias, columns)?;
    if let Some(relation) = names.relations.last_mut() {
        relation.records = records;
    }
    Ok(Item::Query { query: Arc::new(select), arguments })
}

/// Adds the columns under the alias, with the names that it gives them.
pub(super) fn add_relation(
    query: QueryScope<'_>,
    names: &mut Relations,
    name: &str,
    alias: Option<&TableAlias>,
    mut columns: Vec<(String, DataType)>,
) -> Result<(), SqlError> {
    let mut known_as = name.to_string();
    if let Some(alias) = alias {
        known_as = name_of(&alias.name)?;
        if alias.columns.len() > columns.len() {
            let message = format!(
                "table \"{known_as}\" has {} columns available but {} columns specified",
                columns.len(),
                alias.columns.len()
            );
            return Err(SqlError::new(SqlState(*b"42P10"), message));
        }
        for (column, renamed) in columns.iter_mut().zip(&alias.columns) {
            column.0 = name_of(&renamed.name)?;
        }
    }
    if names.relations.iter().any(|relation| relation.name == known_as) {
        let message = format!("table name \"{known_as}\" specified more than once");
        let error = SqlError::new(SqlState(*b"42712"), message);
        return Err(match alias {
            Some(alias) => query.variables.located(error, alias.name.span),
            None => error,
        });
    }
    let (first, hidden) = (names.width(), Vec::new());
    let table = (!name.is_empty()).then(|| name.to_string());
    let (may_be_missing, row_type, keyed, records) = (false, None, false, Vec::new());
    names.relations.push(NamedRelation {
        name: known_as,
        table,
        schema: None,
        columns,
        first,
        hidden,
        may_be_missing,
        row_type,
        keyed,
        records,
    });
    Ok(())
}

/// Says of what composite type the rows of the last relation are.
pub(super) fn set_row_type(names: &mut Relations, row_type: Option<DataType>) {
    if let Some(relation) = names.relations.last_mut() {
        relation.row_type = row_type;
    }
}

/// Says in which schema the last relation stands that has this name in the catalog, so that it may be named with it; one that
/// has an alias may not.
pub(super) fn set_schema(names: &mut Relations, name: &str) {
    if let Some(relation) = names.relations.last_mut().filter(|last| last.name == object_name(name)) {
        relation.schema = Some(schema_of(name).to_string());
    }
}

/// A function in FROM.
fn bind_function(
    query: QueryScope<'_>,
    level: &Level<'_>,
    names: &mut Relations,
    (name, arguments, with_ordinality): (&ast::ObjectName, &[FunctionArg], bool),
    alias: Option<&TableAlias>,
) -> Result<Item, SqlError> {
    if is_history(name) && !with_ordinality {
        return bind_history(query, level, names, (name, arguments), alias);
    }
    let known = table_name(name).ok().and_then(|name| query.tables.routines().get(&name));
    if known.is_none() && gives_rows(name) || with_ordinality {
        let call = Call { name: name.to_string(), arguments: plain_arguments(arguments)?, with_ordinality };
        return bind_row_function(query, level, names, call, alias, name.span());
    }
    let called = table_name(name)?;
    let known_as = object_name(&called).to_string();
    let visible = names.between(0);
    let binder = query.binder(level, Source::Relations(&visible));
    binder.in_clause(Some("functions in FROM"));
    let arguments = binder.bind_arguments(arguments)?;
    let missing = binder.no_routine(&called, &arguments, name.span());
    let found = binder.routine_call(&called, arguments);
    let (routine, mut call) =
        found.map_err(|error| query.variables.located(error, name.span()))?.ok_or(missing)?;
    let columns = match asked_columns(query, &routine, alias)? {
        Some(columns) => {
            call.columns_are_asked = true;
            call.columns = Some(columns.clone());
            columns
        }
        None => routine.columns.clone(),
    };
    let width = columns.len();
    let columns = columns.iter().map(|column| (column.name.clone(), column.data_type)).collect();
    add_relation(query, names, &known_as, alias, columns)?;
    set_row_type(names, Some(routine.data_type()).filter(|found| matches!(found, DataType::Composite(_))));
    if let (Some(alias), Some(relation)) = (alias, names.relations.last_mut())
        && alias.columns.is_empty()
        && routine.form() == CallForm::Value
        && matches!(routine.definition.function, Some(Function { result: FunctionResult::Value(_), .. }))
    {
        // A function's only column has the name of its alias, unless a parameter names it.
        relation.columns[0].0 = relation.name.clone();
    }
    Ok(Item::Call { call, width })
}

/// Plans FROM under the conditions of WHERE. `used`: the columns that the rest of the query looks at. Gives what is left
/// to ask of its rows.
pub(super) fn plan_from(
    item: Item,
    conditions: Vec<Expression>,
    mut used: BTreeSet<u16>,
) -> (Relation, Vec<Expression>) {
    let (mut relation, left_over) = plan(item, 0, conditions, &mut used);
    left_over.iter().for_each(|condition| note(condition, &mut used));
    look_at(&mut relation, 0, &used);
    (relation, left_over)
}

/// Notes the columns that an expression looks at.
fn note(expression: &Expression, used: &mut BTreeSet<u16>) {
    expression.any(&mut |inner| {
        if let Kind::Column(ordinal) = inner.kind {
            used.insert(ordinal);
        }
        false
    });
}

/// Lets tables register the columns that are looked at behind them.
fn look_at(relation: &mut Relation, first: usize, used: &BTreeSet<u16>) {
    match relation {
        Relation::Table(scanned) => {
            let own = first..first + scanned.table.columns.len();
            let used =
                used.iter().map(|ordinal| usize::from(*ordinal)).filter(|ordinal| own.contains(ordinal));
            scanned.columns =
                used.fold(scanned.columns, |set, ordinal| set | ColumnSet::column(ordinal - first));
        }
        Relation::Join(join) => {
            look_at(&mut join.left, first, used);
            look_at(&mut join.right, first + join.left_width, used);
        }
        Relation::Query { .. }
        | Relation::Values(_)
        | Relation::Function { .. }
        | Relation::Call(_)
        | Relation::Set { .. }
        | Relation::Recursive { .. }
        | Relation::Working(_) => {}
    }
}

fn plan(
    item: Item,
    first: usize,
    conditions: Vec<Expression>,
    used: &mut BTreeSet<u16>,
) -> (Relation, Vec<Expression>) {
    let end = first + item.width();
    let (mine, mut rest): (Vec<Expression>, Vec<Expression>) =
        conditions.into_iter().partition(|condition| looks_at_no_more_than(condition, end));
    let (relation, left_over) = match item {
        Item::Table { table, keyed, past } => {
            let (mut scanned, later) = plan_table(table, keyed, first, mine, used);
            scanned.past = past.map(Box::new);
            (Relation::Table(scanned), later)
        }
        Item::Query { query, arguments } => {
            arguments.iter().for_each(|argument| note(argument, used));
            let arguments = arguments.iter().map(|argument| relative(argument, first)).collect();
            let (now, later) = mine.into_iter().partition(|condition| !looks_left(condition, first));
            let filter = conjunction(relatives(now, first));
            (Relation::Query { query, arguments: Some(arguments), filter }, later)
        }
        Item::Working { number, .. } => (Relation::Working(number), mine),
        Item::Function { function, arguments } => {
            arguments.iter().for_each(|argument| note(argument, used));
            let arguments = arguments.iter().map(|argument| relative(argument, first)).collect();
            (Relation::Function { function, arguments }, mine)
        }
        Item::Call { mut call, .. } => {
            call.arguments.iter().for_each(|argument| note(argument, used));
            call.arguments = call.arguments.iter().map(|argument| relative(argument, first)).collect();
            (Relation::Call(call), mine)
        }
        Item::Join { kind, sides, on } => plan_join(kind, *sides, on, first, mine, used),
    };
    rest.extend(left_over);
    (relation, rest)
}

fn plan_join(
    kind: JoinKind,
    sides: [Item; 2],
    on: Vec<Expression>,
    first: usize,
    conditions: Vec<Expression>,
    used: &mut BTreeSet<u16>,
) -> (Relation, Vec<Expression>) {
    let [left, right] = sides;
    let (left_width, right_width) = (left.width(), right.width());
    let middle = first + left_width;
    let of_left = |condition: &Expression| looks_at_no_more_than(condition, middle);
    // What is asked of the left side, of the right side, of both, and behind the join.
    let (for_left, for_right, mut for_join, behind) = match kind {
        JoinKind::Inner => {
            let (for_left, for_right) = conditions.into_iter().chain(on).partition(of_left);
            (for_left, for_right, Vec::new(), Vec::new())
        }
        JoinKind::Left => {
            let (for_left, behind): (Vec<_>, Vec<_>) = conditions.into_iter().partition(of_left);
            let (for_join, for_right) = on.into_iter().partition(of_left);
            (for_left, for_right, for_join, behind)
        }
        JoinKind::Right | JoinKind::Full => (Vec::new(), Vec::new(), on, conditions),
    };
    let (left, left_over) = plan(left, first, for_left, used);
    let (right, right_over) = plan(right, middle, for_right, used);
    for_join.extend(right_over);
    let mut behind = behind;
    match kind {
        JoinKind::Inner => for_join.extend(left_over),
        _ => behind.extend(left_over),
    }
    let mut dependent = false;
    right.visit_left(&mut |ordinal| dependent |= (first..middle).contains(&usize::from(ordinal)));
    let (mut equal, mut others) = (Vec::new(), Vec::new());
    for_join.iter().for_each(|condition| note(condition, used));
    for condition in for_join {
        match equality(&condition, first, middle) {
            Some((left, right)) if !dependent => equal.push((relative(left, first), relative(right, middle))),
            _ => others.push(condition),
        }
    }
    let condition = conjunction(relatives(others, first));
    let join = Join { kind, left, right, left_width, right_width, dependent, equal, condition };
    (Relation::Join(Box::new(join)), behind)
}

/// The sides of an equality between what stands to the left of `middle` and what does not.
fn equality(condition: &Expression, first: usize, middle: usize) -> Option<(&Expression, &Expression)> {
    let Kind::Compare(Comparison::Equal, operands) = &condition.kind else { return None };
    let [a, b] = operands.as_ref();
    if a.runs_anything() || b.runs_anything() {
        return None;
    }
    let on_left = |side: &Expression| {
        let mut some = false;
        let all = !side.any(&mut |inner| match inner.kind {
            Kind::Column(ordinal) => {
                some = true;
                !(first..middle).contains(&usize::from(ordinal))
            }
            _ => false,
        });
        all && some
    };
    let on_right = |side: &Expression| {
        let mut some = false;
        let all = !side.any(&mut |inner| match inner.kind {
            Kind::Column(ordinal) => {
                some = true;
                usize::from(ordinal) < middle
            }
            _ => false,
        });
        all && some
    };
    match (on_left(a) && on_right(b), on_left(b) && on_right(a)) {
        (true, _) => Some((a, b)),
        (_, true) => Some((b, a)),
        _ => None,
    }
}

/// A table takes the conditions that it can ask while it is scanned; those that look to the left only if they help
/// to find its rows.
fn plan_table(
    table: Arc<TablePlan>,
    keyed: bool,
    first: usize,
    conditions: Vec<Expression>,
    used: &mut BTreeSet<u16>,
) -> (Scanned, Vec<Expression>) {
    let (asked, later): (Vec<Expression>, Vec<Expression>) = conditions.into_iter().partition(|condition| {
        !relative(condition, first).any(&mut |inner| inner.is_run() && !inner.is_row_independent())
    });
    // What must be equal finds few rows; a bound alone may find half of the table, every time.
    let looks_left_in = |access: &Access| {
        let equal = match access {
            Access::Key(parts) => parts.as_slice(),
            Access::Range(interval) => interval.equal.as_slice(),
            Access::Index(access) => access.interval.equal.as_slice(),
            Access::Found(_) => &[],
        };
        let is_left = |inner: &Expression| matches!(inner.kind, Kind::Left(_));
        equal.iter().any(|part| part.value.any(&mut |inner| is_left(inner)))
    };
    let (access, rest) = Access::plan(&table, relatives(asked.clone(), first));
    let (access, rest, later) = if first == 0 || looks_left_in(&access) {
        // The columns to the left are looked at, those of this table only as far as the key does not say it all.
        let of_left = |ordinal: &u16| usize::from(*ordinal) < first;
        let mut looked_at = BTreeSet::new();
        asked.iter().for_each(|condition| note(condition, &mut looked_at));
        used.extend(looked_at.into_iter().filter(of_left));
        (access, rest, later)
    } else {
        let (now, left_over): (Vec<_>, Vec<_>) =
            asked.into_iter().partition(|condition| !looks_left(condition, first));
        let (access, rest) = Access::plan(&table, relatives(now, first));
        (access, rest, [later, left_over].concat())
    };
    let filter_columns = crate::statement::bind::columns_of(&rest) | access.columns();
    let columns = filter_columns | ColumnSet::EXISTS;
    let filter = Condition::all(rest);
    (Scanned { table, access, filter, columns, filter_columns, keyed, past: None }, later)
}

/// Whether all columns that it looks at stand before this one.
fn looks_at_no_more_than(expression: &Expression, end: usize) -> bool {
    !expression.any(&mut |inner| matches!(inner.kind, Kind::Column(ordinal) if usize::from(ordinal) >= end))
}

/// Whether it looks at a column before this one.
fn looks_left(expression: &Expression, first: usize) -> bool {
    expression.any(&mut |inner| matches!(inner.kind, Kind::Column(ordinal) if usize::from(ordinal) < first))
}

/// An expression over the columns of FROM as a relation sees it whose columns begin at `first`.
fn relative(expression: &Expression, first: usize) -> Expression {
    let mut relative = expression.clone();
    shift(&mut relative, first);
    relative
}

fn relatives(expressions: Vec<Expression>, first: usize) -> Vec<Expression> {
    expressions.iter().map(|expression| relative(expression, first)).collect()
}

fn shift(expression: &mut Expression, first: usize) {
    if let Kind::Column(ordinal) = expression.kind {
        expression.kind = match usize::from(ordinal).checked_sub(first) {
            Some(own) => Kind::Column(own as u16),
            None => Kind::Left(ordinal),
        };
        return;
    }
    expression.operands_mut().into_iter().for_each(|operand| shift(operand, first));
}
