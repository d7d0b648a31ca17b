//! Inner joins of several members, and partners that rows must have or must not have.

use crate::lower::estimate::Estimate;
use crate::lower::join::How;
use crate::lower::order::{Tree, choose};
use crate::lower::relations::Lower;
use crate::lower::rows::Rows;
use crate::question::{Joined, Partner, columns_of};
use crate::reason::OnRows;
use datafusion_common::JoinType;
use plan::expression::Expression;
use std::collections::BTreeSet;

/// Members that are joined at most.
const MEMBERS_MAX: usize = 32;

/// What is still to be asked while members are joined.
struct Asked<'a> {
    conditions: Vec<Expression>,
    partners: Vec<&'a Partner>,
    needed: &'a BTreeSet<usize>,
}

impl Asked<'_> {
    /// The columns that are needed behind what has been done.
    fn columns(&self) -> BTreeSet<usize> {
        let on = self.partners.iter().flat_map(|partner| &partner.on);
        let asked = self.conditions.iter().chain(on).flat_map(columns_of);
        self.needed.iter().copied().chain(asked).collect()
    }

    /// Takes out the conditions that look at no other columns than these.
    fn take(&mut self, columns: &BTreeSet<usize>) -> Vec<Expression> {
        self.conditions.extract_if(.., |condition| columns_of(condition).is_subset(columns)).collect()
    }
}

impl Lower<'_> {
    /// The rows of all members for which everything is true.
    pub(super) fn joined(&self, joined: &Joined, needed: &BTreeSet<usize>) -> Result<Rows, OnRows> {
        let Joined { members, conditions, partners } = joined;
        if members.len() > MEMBERS_MAX {
            return Err(OnRows::because(format_args!("a join of more than {MEMBERS_MAX} relations")));
        }
        let partners = partners.iter().collect();
        let mut asked = Asked { conditions: conditions.clone(), partners, needed };
        let below = asked.columns();
        let compared = members.len() > 1 || !asked.partners.is_empty();
        let mut parts = Vec::with_capacity(members.len());
        for member in members {
            let rows = self.relation(member, &below, compared)?;
            let own = asked.take(&rows.fields.columns());
            parts.push(Some(self.filtered(rows, &own, &asked.columns())?));
        }
        let (_, rows) = choose(&known(&parts), &asked.conditions);
        self.match_early(&mut parts, &mut asked, rows)?;
        let (tree, _) = choose(&known(&parts), &asked.conditions);
        let mut rows = self.tree(&tree, &mut parts, &mut asked)?;
        while let Some(partner) = asked.partners.pop() {
            rows = self.matched(rows, partner, &asked.columns())?;
        }
        match asked.conditions.is_empty() {
            true => Ok(rows),
            false => Err(OnRows::because("a condition that looks at rows further out")),
        }
    }

    /// Matches members with their partners where that leaves out rows before they are joined. Where a member has more rows than the
    /// join of all, the partners of the join are found with less work.
    fn match_early(
        &self,
        parts: &mut [Option<Rows>],
        asked: &mut Asked<'_>,
        rows_joined: f64,
    ) -> Result<(), OnRows> {
        for part in parts {
            let Some(rows) = part.take() else { continue };
            let columns = rows.fields.columns();
            let mut rows = rows;
            while rows.estimate.rows <= rows_joined
                && let Some(number) = asked.partners.iter().position(|partner| is_asked_of(partner, &columns))
            {
                let partner = asked.partners.remove(number);
                rows = self.matched(rows, partner, &asked.columns())?;
            }
            *part = Some(rows);
        }
        Ok(())
    }

    fn tree(&self, tree: &Tree, parts: &mut [Option<Rows>], asked: &mut Asked<'_>) -> Result<Rows, OnRows> {
        let sides = match tree {
            Tree::Member(number) => {
                let part = parts.get_mut(*number).and_then(Option::take);
                return part.ok_or_else(|| OnRows::because("a join of nothing"));
            }
            Tree::Join(sides) => sides,
        };
        let [left, right] = sides.as_ref();
        let (left, right) = (self.tree(left, parts, asked)?, self.tree(right, parts, asked)?);
        let columns = left.fields.columns().union(&right.fields.columns()).copied().collect();
        let on = asked.take(&columns);
        let how = How { kind: JoinType::Inner, on: &on, needed: &asked.columns(), null_may_match: false };
        self.join(left, right, &how)
    }

    /// The rows that have a partner, or that have none.
    fn matched(&self, rows: Rows, partner: &Partner, needed: &BTreeSet<usize>) -> Result<Rows, OnRows> {
        let below = partner.on.iter().flat_map(columns_of).collect();
        let partners = self.relation(&partner.relation, &below, true)?;
        let kind = if partner.wanted { JoinType::LeftSemi } else { JoinType::LeftAnti };
        let how = How { kind, on: &partner.on, needed, null_may_match: partner.null_may_match };
        self.join(rows, partners, &how)
    }
}

fn known(parts: &[Option<Rows>]) -> Vec<(Estimate, BTreeSet<usize>)> {
    parts.iter().flatten().map(|rows| (rows.estimate.clone(), rows.fields.columns())).collect()
}

/// Whether a partner is asked for columns of these, and of no others that are not the partner's own.
fn is_asked_of(partner: &Partner, columns: &BTreeSet<usize>) -> bool {
    partner
        .on
        .iter()
        .flat_map(columns_of)
        .all(|column| columns.contains(&column) || partner.relation.has(column))
}
