//! What a query asks: relations whose columns are numbered once for the whole query.
//!
//! The plan of a query counts columns anew in every block. Here each column has one number, wherever it is looked at, so that a
//! condition can stand anywhere and relations can be joined in any order.
//!
//! ```text
//!  LogicalPlan ──translation──▶ Joined { members, conditions, partners }
//!                 subqueries:   EXISTS and IN become partners, values of groups become members
//!                 conditions:   what all branches of an OR have in common, what an OR says of one member
//! ```

mod conditions;
mod relation;
mod subqueries;
mod translation;

pub(crate) use relation::{Computed, Groups, Joined, Listed, Outer, Partner, Relation, Table, columns_of};
pub(crate) use translation::{Scalars, Translation};
