//! Joins by what must be equal.

use crate::lower::estimate::Estimate;
use crate::lower::expression::{column_at, same_type};
use crate::lower::fields::Fields;
use crate::lower::order::equal_sides;
use crate::lower::relations::{Joins, Lower};
use crate::lower::rows::Rows;
use crate::question::{Outer, columns_of};
use crate::reason::OnRows;
use arrow_schema::SortOptions;
use datafusion_common::{JoinSide, JoinType, NullEquality};
use datafusion_physical_expr::{LexOrdering, PhysicalExprRef, PhysicalSortExpr};
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::coop::CooperativeExec;
use datafusion_physical_plan::joins::utils::{ColumnIndex, JoinFilter};
use datafusion_physical_plan::joins::{
    CrossJoinExec, HashJoinExec, JoinOn, PartitionMode, SortMergeJoinExec,
};
use datafusion_physical_plan::projection::ProjectionExec;
use datafusion_physical_plan::sorts::sort::SortExec;
use plan::expression::Expression;
use plan::statement::JoinKind;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Pairs of rows without a condition between them are made up to about this number.
const PAIRS_MAX: f64 = 20_000_000.0;

/// How two relations are joined.
pub(super) struct How<'a> {
    pub(super) kind: JoinType,
    /// What must be true of both.
    pub(super) on: &'a [Expression],
    /// The columns that are needed behind the join.
    pub(super) needed: &'a BTreeSet<usize>,
    /// NULL on either side may be equal to anything; only of an anti join by one equality.
    pub(super) null_may_match: bool,
}

impl Lower<'_> {
    /// The rows of both sides for which all conditions are true. The smaller side is kept in a hash table; of two that are as
    /// large, the right one, which is mostly the one whose key is looked up.
    pub(super) fn join(&self, left: Rows, right: Rows, how: &How<'_>) -> Result<Rows, OnRows> {
        let (left_columns, right_columns) = (left.fields.columns(), right.fields.columns());
        let (mut equal, mut others) = (Vec::new(), Vec::new());
        for condition in how.on {
            match equal_sides(condition, &left_columns, &right_columns) {
                Some(sides) => equal.push(sides),
                None => others.push(condition.clone()),
            }
        }
        let estimate = estimate(&left, &right, &equal, how.kind);
        if equal.is_empty() {
            return self.paired(left, right, (&others, how), estimate);
        }
        let (of_left, of_right) = (self.over(&left.fields), self.over(&right.fields));
        let keys = equal.iter().map(|(a, b)| {
            let (a, b) = same_type(of_left.lower(a)?, of_right.lower(b)?)?;
            Ok((a.expression, b.expression))
        });
        let keys = keys.collect::<Result<Vec<_>, OnRows>>()?;
        let mut right_is_built = right.estimate.rows <= left.estimate.rows;
        if how.null_may_match {
            right_is_built = false;
        }
        let (build, probe, keys, kind) = match right_is_built {
            true => (right, left, keys.into_iter().map(|(a, b)| (b, a)).collect(), how.kind.swap()),
            false => (left, right, keys, how.kind),
        };
        let filter = self.join_filter(&others, &build.fields, &probe.fields)?;
        let (kept, fields) = joined_fields(kind, &build.fields, &probe.fields).kept(how.needed);
        if self.joins == Joins::Merged {
            if how.null_may_match {
                return Err(OnRows::because("NOT IN of more rows than fit in memory"));
            }
            let operator = merged([build.operator, probe.operator], keys, filter, kind, &kept)?;
            return Ok(Rows { operator, fields, estimate });
        }
        let join = HashJoinExec::try_new(
            build.operator,
            probe.operator,
            keys,
            filter,
            &kind,
            Some(kept),
            PartitionMode::CollectLeft,
            NullEquality::NullEqualsNothing,
            how.null_may_match,
        )?;
        Ok(Rows { operator: letting_go(Arc::new(join)), fields, estimate })
    }

    /// All pairs of rows for which the conditions are true.
    fn paired(
        &self,
        left: Rows,
        right: Rows,
        (conditions, how): (&[Expression], &How<'_>),
        estimate: Estimate,
    ) -> Result<Rows, OnRows> {
        if how.kind != JoinType::Inner || left.estimate.rows * right.estimate.rows > PAIRS_MAX {
            return Err(OnRows::because("a join without anything that must be equal"));
        }
        let (build, probe) = match right.estimate.rows <= left.estimate.rows {
            true => (right, left),
            false => (left, right),
        };
        let fields = build.fields.clone().and(&probe.fields);
        let operator = letting_go(Arc::new(CrossJoinExec::new(build.operator, probe.operator)));
        self.filtered(Rows { operator, fields, estimate }, conditions, how.needed)
    }

    fn join_filter(
        &self,
        conditions: &[Expression],
        build: &Fields,
        probe: &Fields,
    ) -> Result<Option<JoinFilter>, OnRows> {
        let looked_at: BTreeSet<usize> = conditions.iter().flat_map(columns_of).collect();
        let (of_build, build_fields) = build.kept(&looked_at);
        let (of_probe, probe_fields) = probe.kept(&looked_at);
        let fields = build_fields.and(&probe_fields);
        let Some(condition) = self.over(&fields).conjunction(conditions)? else { return Ok(None) };
        let at = |side: JoinSide| move |index: usize| ColumnIndex { index, side };
        let indices = of_build.into_iter().map(at(JoinSide::Left));
        let indices = indices.chain(of_probe.into_iter().map(at(JoinSide::Right))).collect();
        Ok(Some(JoinFilter::new(condition, indices, fields.schema())))
    }

    /// An outer join.
    pub(super) fn outer(&self, outer: &Outer, needed: &BTreeSet<usize>) -> Result<Rows, OnRows> {
        let mut below = needed.clone();
        below.extend(outer.on.iter().flat_map(columns_of));
        let left = self.relation(&outer.left, &below, true)?;
        let right = self.relation(&outer.right, &below, true)?;
        let kind = match outer.kind {
            JoinKind::Inner => JoinType::Inner,
            JoinKind::Left => JoinType::Left,
            JoinKind::Right => JoinType::Right,
            JoinKind::Full => JoinType::Full,
        };
        self.join(left, right, &How { kind, on: &outer.on, needed, null_may_match: false })
    }
}

/// Both sides are sorted by what must be equal.
fn merged(
    sides: [Arc<dyn ExecutionPlan>; 2],
    keys: JoinOn,
    filter: Option<JoinFilter>,
    kind: JoinType,
    kept: &[usize],
) -> Result<Arc<dyn ExecutionPlan>, OnRows> {
    let options = vec![SortOptions::default(); keys.len()];
    let (left_keys, right_keys): (Vec<_>, Vec<_>) = keys.iter().cloned().unzip();
    let [left, right] = sides;
    let sorted = |side: Arc<dyn ExecutionPlan>, keys: Vec<PhysicalExprRef>| {
        let schema = side.schema();
        let is_float = |key: &PhysicalExprRef| Ok::<_, OnRows>(key.data_type(&schema)?.is_floating());
        if keys.iter().map(is_float).collect::<Result<Vec<_>, _>>()?.contains(&true) {
            // Zeros of two signs are equal, and do not stand together.
            return Err(OnRows::because("a join by floating-point numbers of more rows than fit in memory"));
        }
        let order = keys.into_iter().map(PhysicalSortExpr::new_default);
        let order = LexOrdering::new(order).ok_or_else(|| OnRows::because("a join without an order"))?;
        Ok(Arc::new(SortExec::new(order, side)))
    };
    let (left, right) = (sorted(left, left_keys)?, sorted(right, right_keys)?);
    let equal = NullEquality::NullEqualsNothing;
    let join = SortMergeJoinExec::try_new(left, right, keys, filter, kind, options, equal)?;
    let join = letting_go(Arc::new(join));
    let schema = join.schema();
    let columns = kept.iter().map(|position| column_at(&schema, *position));
    Ok(Arc::new(ProjectionExec::try_new(columns.collect::<Vec<_>>(), join)?))
}

/// A join may give any number of rows for one. It lets go after some, so that who polls can see whether somebody still waits.
fn letting_go(join: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    Arc::new(CooperativeExec::new(join))
}

fn estimate(left: &Rows, right: &Rows, equal: &[(&Expression, &Expression)], kind: JoinType) -> Estimate {
    let joined = left.estimate.joined(&right.estimate, equal);
    match kind {
        JoinType::LeftSemi | JoinType::LeftAnti => left.estimate.clone().scaled(1.0 / 3.0),
        JoinType::Left => Estimate { rows: joined.rows.max(left.estimate.rows), ..joined },
        JoinType::Right => Estimate { rows: joined.rows.max(right.estimate.rows), ..joined },
        JoinType::Full => Estimate { rows: left.estimate.rows + right.estimate.rows, ..joined },
        _ => joined,
    }
}

/// The columns of a join before some are left out.
fn joined_fields(kind: JoinType, build: &Fields, probe: &Fields) -> Fields {
    match kind {
        JoinType::LeftSemi | JoinType::LeftAnti => build.clone(),
        JoinType::RightSemi | JoinType::RightAnti => probe.clone(),
        _ => build.clone().and(probe),
    }
}
