//! Which schemas a run has, and how their members change.

use crate::chance::Chance;
use ordering::simulation::organisation;
use std::collections::BTreeSet;

/// Members of a schema at its beginning.
const MEMBERS_MAX: u64 = 5;

/// Names of schemas.
const NAMES: [&str; 3] = ["alpha", "beta", "gamma"];

/// A change of a schema's members.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemberChange {
    /// This organisation becomes a member.
    Add(u16),
    /// This organisation is one no more.
    Drop(u16),
}

/// A schema with members.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlannedSchema {
    /// Its name.
    pub name: String,
    /// Its first members, ascending.
    pub members: Vec<u16>,
    /// What happens to them later, in this order.
    pub changes: Vec<MemberChange>,
}

impl PlannedSchema {
    /// Creates it.
    pub(super) fn statement(&self) -> String {
        let names: Vec<String> = self.members.iter().map(|member| name_of(*member)).collect();
        format!("CREATE SCHEMA {} MEMBERS ({})", self.name, names.join(", "))
    }

    /// Changes its members.
    pub(super) fn change(&self, change: MemberChange) -> String {
        match change {
            MemberChange::Add(member) => format!("ALTER SCHEMA {} ADD MEMBER {}", self.name, name_of(member)),
            MemberChange::Drop(member) => {
                format!("ALTER SCHEMA {} DROP MEMBER {}", self.name, name_of(member))
            }
        }
    }
}

fn name_of(member: u16) -> String {
    organisation(usize::from(member)).name
}

/// Who may be a member of what.
pub(crate) struct Able {
    /// Founders whose nodes have every block.
    pub(crate) founders: Vec<u16>,
    /// Who comes in later.
    pub(crate) newcomer: Option<u16>,
    /// Who does not follow the rules: a member where others are more than as many again.
    pub(crate) liar: Option<u16>,
    /// The liar is a stranger to the first schema.
    pub(crate) is_stranger: bool,
}

/// Two or three schemas, the honest one of whose members that comes first has a part in all of them.
pub(crate) fn any_schemas(able: &Able, chance: &mut Chance) -> Vec<PlannedSchema> {
    let honest: Vec<u16> = able.founders.iter().copied().filter(|one| Some(*one) != able.liar).collect();
    let common = *chance.pick(&honest);
    let count = chance.within(2, 3) as usize;
    (0..count).map(|number| any_schema(number, common, able, &honest, chance)).collect()
}

fn any_schema(number: usize, common: u16, able: &Able, honest: &[u16], chance: &mut Chance) -> PlannedSchema {
    let mut members = BTreeSet::from([common]);
    let size = chance.within(1, MEMBERS_MAX.min(honest.len() as u64)) as usize;
    // A liar is in half of the schemas, and in the second one at least: fewer than half of the members lie.
    let liar = able.liar.filter(|_| match number {
        0 => !able.is_stranger && chance.percent(50),
        1 => true,
        _ => chance.percent(50),
    });
    let size = if liar.is_some() { size.max(2) } else { size };
    while members.len() < size {
        members.insert(*chance.pick(honest));
    }
    members.extend(liar);
    let mut changes = Vec::new();
    if chance.percent(40) {
        let others: Vec<u16> = able.founders.iter().copied().chain(able.newcomer).collect();
        let others: Vec<u16> =
            others.into_iter().filter(|one| !members.contains(one) && Some(*one) != able.liar).collect();
        if !others.is_empty() {
            changes.push(MemberChange::Add(*chance.pick(&others)));
        }
    }
    if chance.percent(40) {
        // Enough others stay that a liar is not half of them.
        let able_to_go: Vec<u16> = members
            .iter()
            .copied()
            .filter(|one| *one != common && (liar.is_none() || members.len() > 3 || Some(*one) == liar))
            .collect();
        if !able_to_go.is_empty() {
            changes.push(MemberChange::Drop(*chance.pick(&able_to_go)));
        }
    }
    PlannedSchema { name: NAMES[number].to_string(), members: members.into_iter().collect(), changes }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_than_half_of_the_members_lie_at_any_time() {
        for seed in 0..500 {
            let chance = &mut Chance::new(seed, "schemas");
            let liar = chance.percent(50).then_some(0);
            let able = Able { founders: vec![0, 1, 2, 3], newcomer: Some(4), liar, is_stranger: false };
            for PlannedSchema { members, changes, .. } in any_schemas(&able, chance) {
                let mut members: BTreeSet<u16> = members.into_iter().collect();
                let is_well = |members: &BTreeSet<u16>| {
                    liar.is_none_or(|liar| !members.contains(&liar) || members.len() > 2)
                };
                assert!(is_well(&members), "seed {seed}");
                for change in changes {
                    match change {
                        MemberChange::Add(member) => assert!(members.insert(member)),
                        MemberChange::Drop(member) => assert!(members.remove(&member)),
                    }
                    assert!(is_well(&members) && !members.is_empty(), "seed {seed}");
                }
            }
        }
    }
}
