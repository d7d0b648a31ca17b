//! Makes relations of the plan of a query.

use crate::question::conditions;
use crate::question::relation::{Computed, Groups, Joined, Listed, Outer, Relation, Table};
use crate::reason::OnRows;
use plan::aggregate::Aggregate;
use plan::expression::{Expression, Kind};
use plan::logical::{Join, LogicalPlan, QueryInFrom, Scan};
use plan::statement::{JoinKind, SortKey};
use std::collections::BTreeSet;
use types::{DataType, Value};

/// Finds the value of a query that looks at nothing around it: an `Aggregate` without keys, and what is computed of its row.
pub(crate) type Scalars<'a> = dyn Fn(&LogicalPlan, &Expression) -> Result<Value, OnRows> + 'a;

/// Makes relations of the plan of a query.
pub(crate) struct Translation<'a> {
    /// The number of the next column.
    next: usize,
    /// Columns that are never NULL.
    never_null: BTreeSet<usize>,
    /// The first columns of groups of which at most one belongs to a row.
    pub(super) looked_up: BTreeSet<usize>,
    pub(super) scalars: &'a Scalars<'a>,
}

/// The rows of a query, and what its outputs are over them.
pub(super) struct Block {
    pub(super) joined: Joined,
    pub(super) outputs: Vec<Expression>,
}

/// What expressions of a plan look at: its columns, and what the query around it hands in.
#[derive(Clone, Copy)]
pub(super) struct Seen<'a> {
    pub(super) row: &'a [Expression],
    pub(super) arguments: &'a [Expression],
}

impl<'a> Translation<'a> {
    pub(crate) fn new(scalars: &'a Scalars<'a>) -> Translation<'a> {
        Translation { next: 0, never_null: BTreeSet::new(), looked_up: BTreeSet::new(), scalars }
    }

    /// The groups that an `Aggregate` asks for.
    pub(crate) fn groups(
        &mut self,
        input: &LogicalPlan,
        keys: &[Expression],
        aggregates: &[Aggregate],
    ) -> Result<Groups, OnRows> {
        self.groups_with(input, keys, aggregates, &[])
    }

    fn groups_with(
        &mut self,
        input: &LogicalPlan,
        keys: &[Expression],
        aggregates: &[Aggregate],
        arguments: &[Expression],
    ) -> Result<Groups, OnRows> {
        let (joined, row) = self.below_outputs(input, arguments)?;
        let seen = Seen { row: &row, arguments };
        let keys = keys.iter().map(|key| self.mapped(key, seen)).collect::<Result<Vec<_>, _>>()?;
        let mut aggregates = aggregates.to_vec();
        for expression in aggregates.iter_mut().flat_map(Aggregate::expressions_mut) {
            *expression = self.mapped(expression, seen)?;
        }
        self.grouped(joined, keys, aggregates)
    }

    /// The groups of rows.
    pub(super) fn grouped(
        &mut self,
        joined: Joined,
        keys: Vec<Expression>,
        aggregates: Vec<Aggregate>,
    ) -> Result<Groups, OnRows> {
        let first = self.fresh(keys.len() + aggregates.len())?;
        for (number, key) in keys.iter().enumerate() {
            if self.is_never_null(key) {
                self.never_null.insert(first + number);
            }
        }
        Ok(Groups { input: finished(joined), keys, aggregates, first })
    }

    /// The rows that `Limit ▸ Project ▸ Sort` or a `Project` alone asks for.
    pub(crate) fn listed(&mut self, plan: &LogicalPlan) -> Result<Listed, OnRows> {
        let (plan, limit) = match plan {
            LogicalPlan::Limit { input, limit: Some(limit), offset: None, ties: false } => {
                (input.as_ref(), Some(limit))
            }
            other => (other, None),
        };
        let LogicalPlan::Project { input, outputs, .. } = plan else { return Err(unknown_form()) };
        let (source, sort) = match input.as_ref() {
            LogicalPlan::Sort { input, keys } => (input.as_ref(), keys.as_slice()),
            source => (source, [].as_slice()),
        };
        let (joined, row) = self.below_outputs(source, &[])?;
        let seen = Seen { row: &row, arguments: &[] };
        let output = |output: &Expression| match &output.kind {
            Kind::Constant(Value::Null) => Ok(None),
            _ => self.mapped(output, seen).map(Some),
        };
        let outputs = outputs.iter().map(output).collect::<Result<Vec<_>, OnRows>>()?;
        let key =
            |key: &SortKey| Ok(SortKey { expression: self.mapped(&key.expression, seen)?, ..key.clone() });
        let sort = sort.iter().map(key).collect::<Result<Vec<_>, OnRows>>()?;
        let mut keys = Vec::new();
        for member in &joined.members {
            self.note_keys(member, &mut keys)?;
        }
        let first = limit.map(|limit| (sort, limit.clone()));
        Ok(Listed { input: finished(joined), outputs, first, keys })
    }

    /// The keys of the tables in FROM, in whose order the row operators give rows.
    fn note_keys(&self, relation: &Relation, keys: &mut Vec<Expression>) -> Result<(), OnRows> {
        match relation {
            Relation::Table(table) if !table.plan.key.is_empty() => {
                let key = |ordinal: &u16| {
                    let ordinal = usize::from(*ordinal);
                    Expression::column(table.first + ordinal, table.plan.columns[ordinal].data_type)
                };
                keys.extend(table.plan.key.iter().map(key));
                Ok(())
            }
            Relation::Joined(joined) => {
                joined.members.iter().try_for_each(|member| self.note_keys(member, keys))
            }
            Relation::Outer(outer) if outer.kind == JoinKind::Left => {
                self.note_keys(&outer.left, keys)?;
                self.note_keys(&outer.right, keys)
            }
            Relation::Computed(computed) => self.note_keys(&computed.input, keys),
            // At most one of them belongs to a row.
            Relation::Groups(groups) if self.looked_up.contains(&groups.first) => Ok(()),
            _ => Err(OnRows::because("rows of which nobody knows an order")),
        }
    }

    /// The rows of a query and its outputs.
    pub(super) fn block(&mut self, plan: &LogicalPlan, arguments: &[Expression]) -> Result<Block, OnRows> {
        match plan {
            LogicalPlan::Project { input, outputs, .. } => {
                let (joined, row) = self.below_outputs(input, arguments)?;
                let seen = Seen { row: &row, arguments };
                let outputs = outputs.iter().map(|output| self.mapped(output, seen));
                Ok(Block { outputs: outputs.collect::<Result<_, _>>()?, joined })
            }
            LogicalPlan::Distinct { input, on: None } => {
                let Block { joined, outputs } = self.block(input, arguments)?;
                let groups = self.grouped(joined, outputs, Vec::new())?;
                let outputs = columns(groups.first, groups.keys.iter().map(Expression::data_type));
                Ok(Block { joined: Joined::of(Relation::Groups(Box::new(groups))), outputs })
            }
            LogicalPlan::Limit { .. } => Err(OnRows::because("LIMIT inside of a query")),
            _ => Err(unknown_form()),
        }
    }

    /// What the outputs of a query are computed from: rows, and the expressions that the columns of the plan are.
    pub(super) fn below_outputs(
        &mut self,
        node: &LogicalPlan,
        arguments: &[Expression],
    ) -> Result<(Joined, Vec<Expression>), OnRows> {
        match node {
            // The order of rows in a query says nothing to whoever groups or joins them.
            LogicalPlan::Sort { input, .. } => self.below_outputs(input, arguments),
            LogicalPlan::Filter { input, conditions } => {
                let (mut joined, row) = self.below_outputs(input, arguments)?;
                for condition in conditions {
                    self.ask(&mut joined, condition, Seen { row: &row, arguments })?;
                }
                Ok((joined, row))
            }
            LogicalPlan::Aggregate { input, keys, aggregates } => {
                let groups = self.groups_with(input, keys, aggregates, arguments)?;
                let types = groups.keys.iter().map(Expression::data_type);
                let types = types.chain(groups.aggregates.iter().map(|aggregate| aggregate.data_type));
                let row = columns(groups.first, types);
                Ok((Joined::of(Relation::Groups(Box::new(groups))), row))
            }
            source => {
                let (mut joined, mut row) = (Joined::default(), Vec::new());
                self.source(source, arguments, (&mut joined, &mut row))?;
                Ok((joined, row))
            }
        }
    }

    /// Adds what stands in FROM to the members, and its columns to the row.
    fn source(
        &mut self,
        node: &LogicalPlan,
        arguments: &[Expression],
        (joined, row): (&mut Joined, &mut Vec<Expression>),
    ) -> Result<(), OnRows> {
        match node {
            LogicalPlan::Scan(scan) => {
                let table = self.table(scan)?;
                row.extend(columns(table.first, table.plan.columns.iter().map(|column| column.data_type)));
                joined.members.push(Relation::Table(table));
                Ok(())
            }
            LogicalPlan::Query(query) => self.query(query, arguments, (joined, row)),
            LogicalPlan::Join(join) if join.kind == JoinKind::Inner => {
                self.source(&join.left, arguments, (joined, row))?;
                self.source(&join.right, arguments, (joined, row))?;
                for condition in &join.on {
                    self.ask(joined, condition, Seen { row, arguments })?;
                }
                Ok(())
            }
            LogicalPlan::Join(join) => {
                let outer = self.outer(join, arguments, row)?;
                joined.members.push(Relation::Outer(Box::new(outer)));
                Ok(())
            }
            LogicalPlan::Filter { input, conditions } => {
                self.source(input, arguments, (joined, row))?;
                for condition in conditions {
                    self.ask(joined, condition, Seen { row, arguments })?;
                }
                Ok(())
            }
            LogicalPlan::OneRow => Err(OnRows::because("a query without FROM")),
            _ => Err(OnRows::because("something else than tables and queries in FROM")),
        }
    }

    fn query(
        &mut self,
        query: &QueryInFrom,
        arguments: &[Expression],
        (joined, row): (&mut Joined, &mut Vec<Expression>),
    ) -> Result<(), OnRows> {
        let seen = Seen { row, arguments };
        let handed = query.arguments.iter().map(|argument| self.mapped(argument, seen));
        let handed = handed.collect::<Result<Vec<_>, _>>()?;
        let Block { joined: inner, outputs } = self.block(&query.plan, &handed)?;
        joined.members.extend(inner.members);
        joined.conditions.extend(inner.conditions);
        joined.partners.extend(inner.partners);
        row.extend(outputs);
        Ok(())
    }

    fn table(&mut self, scan: &Scan) -> Result<Table, OnRows> {
        let plan = scan.table.clone();
        let first = self.fresh(plan.columns.len())?;
        for (ordinal, column) in plan.columns.iter().enumerate() {
            if column.not_null || plan.key.contains(&(ordinal as u16)) {
                self.never_null.insert(first + ordinal);
            }
        }
        Ok(Table { plan, first, conditions: Vec::new() })
    }

    fn outer(
        &mut self,
        join: &Join,
        arguments: &[Expression],
        row: &mut Vec<Expression>,
    ) -> Result<Outer, OnRows> {
        let (left_missing, right_missing) = match join.kind {
            JoinKind::Left => (false, true),
            JoinKind::Right => (true, false),
            _ => (true, true),
        };
        let mut left = self.side(&join.left, arguments, (row, left_missing))?;
        let mut right = self.side(&join.right, arguments, (row, right_missing))?;
        let mut on = Vec::new();
        let between = join.on.iter().map(|condition| self.mapped(condition, Seen { row, arguments }));
        let between = between.collect::<Result<Vec<_>, _>>()?;
        for condition in between.into_iter().flat_map(Expression::into_conjuncts) {
            // A row that has no partner stays, whatever is asked of the partner.
            if right_missing && !left_missing && Relation::any_has_all_of(&right.members, &condition) {
                conditions::add(&mut right, condition);
            } else if left_missing && !right_missing && Relation::any_has_all_of(&left.members, &condition) {
                conditions::add(&mut left, condition);
            } else {
                on.push(condition);
            }
        }
        Ok(Outer { kind: join.kind, left: finished(left), right: finished(right), on })
    }

    /// One side of an outer join. `missing`: NULL may stand for all of its columns.
    fn side(
        &mut self,
        node: &LogicalPlan,
        arguments: &[Expression],
        (row, missing): (&mut Vec<Expression>, bool),
    ) -> Result<Joined, OnRows> {
        let (start, first) = (row.len(), self.next);
        let mut joined = Joined::default();
        self.source(node, arguments, (&mut joined, row))?;
        if !missing {
            return Ok(joined);
        }
        if row[start..].iter().any(|output| !matches!(output.kind, Kind::Column(_))) {
            let outputs = row.split_off(start);
            let first = self.fresh(outputs.len())?;
            row.extend(columns(first, outputs.iter().map(Expression::data_type)));
            joined = Joined::of(Relation::Computed(Box::new(Computed {
                input: finished(joined),
                outputs,
                first,
            })));
        }
        self.never_null.retain(|column| *column < first);
        Ok(joined)
    }

    /// Asks members about a condition of a plan, which may have queries in it.
    fn ask(&mut self, joined: &mut Joined, condition: &Expression, seen: Seen<'_>) -> Result<(), OnRows> {
        let mut condition = condition.clone();
        substitute(&mut condition, seen)?;
        for condition in condition.into_conjuncts() {
            self.ask_one(joined, condition)?;
        }
        Ok(())
    }

    /// An expression of a plan over numbered columns, with the values of queries that look at nothing around them.
    pub(super) fn mapped(&self, expression: &Expression, seen: Seen<'_>) -> Result<Expression, OnRows> {
        let mut mapped = expression.clone();
        substitute(&mut mapped, seen)?;
        self.resolve_alone(&mut mapped)?;
        match mapped.runs_anything() {
            true => Err(OnRows::because("a query inside of an expression that looks at the rows around it")),
            false => Ok(mapped),
        }
    }

    /// Numbers for so many columns.
    pub(super) fn fresh(&mut self, count: usize) -> Result<usize, OnRows> {
        let first = self.next;
        self.next += count;
        match self.next > usize::from(u16::MAX) {
            true => Err(OnRows::because("a query over more than 65535 columns")),
            false => Ok(first),
        }
    }

    /// The number of the next column: all columns before it are known already.
    pub(super) fn next(&self) -> usize {
        self.next
    }

    pub(super) fn is_never_null(&self, expression: &Expression) -> bool {
        match &expression.kind {
            Kind::Column(ordinal) => self.never_null.contains(&usize::from(*ordinal)),
            Kind::Cast(inner) => self.is_never_null(inner),
            Kind::Constant(value) => *value != Value::Null,
            _ => false,
        }
    }
}

impl Joined {
    pub(super) fn of(relation: Relation) -> Joined {
        Joined { members: vec![relation], ..Joined::default() }
    }
}

impl Relation {
    fn any_has_all_of(members: &[Relation], condition: &Expression) -> bool {
        members.iter().any(|member| member.has_all_of(condition))
    }
}

fn unknown_form() -> OnRows {
    OnRows::because("a query of another form in FROM")
}

/// Everything that has been asked is known.
pub(super) fn finished(mut joined: Joined) -> Relation {
    conditions::imply(&mut joined);
    match joined {
        Joined { mut members, conditions, partners }
            if members.len() == 1 && conditions.is_empty() && partners.is_empty() =>
        {
            members.remove(0)
        }
        joined => Relation::Joined(joined),
    }
}

/// Columns of these types, numbered from `first`.
pub(super) fn columns(first: usize, types: impl Iterator<Item = DataType>) -> Vec<Expression> {
    types.enumerate().map(|(number, data_type)| Expression::column(first + number, data_type)).collect()
}

/// Puts in what the columns and arguments of an expression are.
fn substitute(expression: &mut Expression, seen: Seen<'_>) -> Result<(), OnRows> {
    let known = match expression.kind {
        Kind::Column(ordinal) => seen.row.get(usize::from(ordinal)),
        Kind::Argument(number) => seen.arguments.get(usize::from(number)),
        Kind::Left(_) | Kind::State(_) => None,
        _ => {
            return expression.operands_mut().into_iter().try_for_each(|operand| substitute(operand, seen));
        }
    };
    *expression = known.cloned().ok_or_else(|| OnRows::because("a column of something around the query"))?;
    Ok(())
}
