//! The rules that rewrite a logical plan, in the order in which they are applied.
//!
//! A rule looks at one block and knows nothing of the others. Each is applied to every block of a tree before the next
//! one. They depend on one another in this order: conditions move down first, what stays with a join is matched, what is
//! looked at is known when conditions stand still, and only then a path is chosen, which may say the order of rows.

mod choose_access;
mod drop_unused_columns;
mod lift_conditions;
mod match_equal_sides;
mod push_conditions;
mod read_in_order;

use crate::logical::LogicalPlan;
use crate::logical::block::visit_blocks;

/// A rule.
#[derive(Clone, Copy)]
pub struct Rule {
    /// Its name, which is that of its file.
    pub name: &'static str,
    /// What it does.
    pub purpose: &'static str,
    /// Rewrites a block.
    apply: fn(&mut LogicalPlan),
}

/// All rules, in order.
pub const RULES: [Rule; 6] = [
    Rule {
        name: "push_conditions",
        purpose: "conditions go down to the first relation that has all they look at",
        apply: push_conditions::apply,
    },
    Rule {
        name: "lift_conditions",
        purpose: "conditions that a relation cannot ask go back to the join above it",
        apply: lift_conditions::apply,
    },
    Rule {
        name: "match_equal_sides",
        purpose: "a join matches its sides by what must be equal, or reads the right one for every row of the left one",
        apply: match_equal_sides::apply,
    },
    Rule {
        name: "drop_unused_columns",
        purpose: "a table registers the columns that somebody looks at, and no others",
        apply: drop_unused_columns::apply,
    },
    Rule {
        name: "choose_access",
        purpose: "a table is read by its key, or over the narrowest interval of its key and its indexes",
        apply: choose_access::apply,
    },
    Rule {
        name: "read_in_order",
        purpose: "a table alone is read in the order that is wanted, where its path has that order",
        apply: read_in_order::apply,
    },
];

/// Rewrites a plan by all rules.
pub fn rewrite(plan: &mut LogicalPlan) {
    RULES.iter().for_each(|rule| rule.rewrite(plan));
}

impl Rule {
    /// Rewrites all blocks of a plan.
    pub fn rewrite(&self, plan: &mut LogicalPlan) {
        visit_blocks(plan, &mut |block| (self.apply)(block));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_rule_has_a_file_of_its_name_that_begins_with_it() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/logical/rules");
        let mut files = BTreeSet::new();
        for entry in std::fs::read_dir(folder).expect("the folder of the rules") {
            let path = entry.expect("a file").path();
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            let text = std::fs::read_to_string(&path).expect("its text");
            if name != "mod" {
                assert!(text.starts_with(&format!("//! `{name}`: ")), "{name}.rs says first what it does");
                files.insert(name);
            }
        }
        assert_eq!(files, RULES.iter().map(|rule| rule.name.to_string()).collect());
    }
}
