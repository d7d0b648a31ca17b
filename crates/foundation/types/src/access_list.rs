//! Who has which privileges on an object, and from whom: PostgreSQL's access lists (its `aclitem`s).
//!
//! What administrators grant has no grantor: in PostgreSQL it would be the object's owner.

use crate::{Grantee, Privileges};
use borsh::{BorshDeserialize, BorshSerialize};
use std::collections::{BTreeMap, BTreeSet};

/// Who has privileges, and who gave them.
///
/// ```text
/// encoding: grantee                      (0 | 1 ‖ name, as before roles could grant)
///           2 ‖ grantee ‖ grantor
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Given {
    /// Who has them.
    pub grantee: Grantee,
    /// The role that gave them; `None`: administrators.
    pub grantor: Option<String>,
}

/// What somebody has from one grantor.
///
/// ```text
/// encoding: privileges                   (as before there were grant options)
///           privileges with the highest bit set ‖ those that may be granted to others
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Granted {
    /// What it may do.
    pub privileges: Privileges,
    /// What it may grant to others: WITH GRANT OPTION.
    pub options: Privileges,
}

/// Roles that stand for one: itself and those that it is a member of.
pub type Memberships<'m> = &'m dyn Fn(&str) -> BTreeSet<String>;

/// Who has privileges on an object.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AccessList(BTreeMap<Given, Granted>);

/// Others have privileges from whoever is to lose the right to grant them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DependentPrivileges;

/// Says in an encoding that grant options follow.
const WITH_OPTIONS: u16 = 1 << 15;

impl Given {
    /// By administrators.
    pub fn by_administrators(grantee: Grantee) -> Given {
        Given { grantee, grantor: None }
    }
}

impl Granted {
    /// Privileges that cannot be granted to others.
    pub fn plain(privileges: Privileges) -> Granted {
        Granted { privileges, options: Privileges::NONE }
    }

    /// Whether it is nothing.
    pub fn is_empty(self) -> bool {
        self == Granted::default()
    }
}

impl AccessList {
    /// One with a privilege that administrators have granted.
    pub fn of(grantee: Grantee, privileges: Privileges) -> AccessList {
        AccessList(BTreeMap::from([(Given::by_administrators(grantee), Granted::plain(privileges))]))
    }

    /// Its entries, in the order of grantees and grantors.
    pub fn iter(&self) -> impl Iterator<Item = (&Given, Granted)> {
        self.0.iter().map(|(given, granted)| (given, *granted))
    }

    /// Whether nobody has anything.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many entries roles have given.
    pub fn given_by_roles(&self) -> usize {
        self.0.keys().filter(|given| given.grantor.is_some()).count()
    }

    /// What somebody has from one grantor.
    pub fn get(&self, given: &Given) -> Granted {
        self.0.get(given).copied().unwrap_or_default()
    }

    /// Whether the role has something, or has given it.
    pub fn names(&self, role: &str) -> bool {
        let is_it = |grantee: &Grantee| matches!(grantee, Grantee::Role(name) if name == role);
        self.0.keys().any(|given| is_it(&given.grantee) || given.grantor.as_deref() == Some(role))
    }

    /// What the grantee itself has, from all grantors.
    pub fn direct(&self, grantee: &Grantee) -> Granted {
        let first = Given::by_administrators(grantee.clone());
        let own = self.0.range(first..).take_while(|(given, _)| given.grantee == *grantee);
        own.fold(Granted::default(), |all, (_, some)| Granted {
            privileges: all.privileges | some.privileges,
            options: all.options | some.options,
        })
    }

    /// What the first of these roles has that stands for the others as well, and everybody.
    pub fn together<'r>(&self, roles: impl IntoIterator<Item = &'r str>) -> Granted {
        let roles = roles.into_iter().map(|role| Grantee::Role(role.to_string()));
        roles.map(|role| self.direct(&role)).fold(self.direct(&Grantee::Public), |all, some| Granted {
            privileges: all.privileges | some.privileges,
            options: all.options | some.options,
        })
    }

    /// Adds to what somebody has.
    pub fn give(&mut self, given: Given, more: Granted) {
        let known = self.0.entry(given).or_default();
        known.privileges = known.privileges | more.privileges;
        known.options = known.options | more.options;
    }

    /// Takes from what somebody has. Gives the grant options that are lost by that.
    pub fn take(&mut self, given: &Given, less: Granted) -> Privileges {
        let Some(known) = self.0.get_mut(given) else { return Privileges::NONE };
        let before = known.options;
        known.privileges = known.privileges.without(less.privileges);
        known.options = known.options.without(less.options);
        let lost = before.without(known.options);
        if known.is_empty() {
            self.0.remove(given);
        }
        lost
    }

    /// Takes from what somebody has, and what others have by the grant options that are lost. Without `cascade` there must be no such
    /// others.
    ///
    /// # Errors
    /// Others have privileges that depend on it.
    pub fn take_with_dependents(
        &mut self,
        given: &Given,
        less: Granted,
        cascade: bool,
        memberships: Memberships<'_>,
    ) -> Result<(), DependentPrivileges> {
        let lost = self.take(given, less);
        let mut waiting = vec![(given.grantee.clone(), lost)];
        while let Some((grantee, lost)) = waiting.pop() {
            let Grantee::Role(role) = &grantee else { continue };
            if lost.is_empty() {
                continue;
            }
            // It may have them by somebody else.
            let all = memberships(role);
            let lost = lost.without(self.together(all.iter().map(String::as_str)).options);
            let is_given = |given: &Given, granted: Granted| {
                given.grantor.as_ref() == Some(role) && granted.privileges.intersects(lost)
            };
            let dependent: Vec<Given> = self
                .iter()
                .filter(|(given, granted)| is_given(given, *granted))
                .map(|(given, _)| given.clone())
                .collect();
            if !dependent.is_empty() && !cascade {
                return Err(DependentPrivileges);
            }
            for given in dependent {
                let lost = self.take(&given, Granted { privileges: lost, options: lost });
                waiting.push((given.grantee, lost));
            }
        }
        Ok(())
    }

    /// Whether a grantor's right to grant would come back to it by granting it to somebody: without what that one could grant, it
    /// could not grant it either.
    pub fn is_circular(
        &self,
        (grantor, grantee): (&str, &Grantee),
        options: Privileges,
        memberships: Memberships<'_>,
    ) -> bool {
        let mut rest = self.clone();
        let of_grantee = rest.0.keys().filter(|given| given.grantee == *grantee).cloned();
        for given in of_grantee.collect::<Vec<_>>() {
            let options = rest.get(&given).options;
            let less = Granted { privileges: Privileges::NONE, options };
            // With CASCADE there is nothing in the way.
            let _ = rest.take_with_dependents(&given, less, true, memberships);
        }
        let all = memberships(grantor);
        !rest.together(all.iter().map(String::as_str)).options.contains(options)
    }
}

impl BorshSerialize for Given {
    fn serialize<W: borsh::io::Write>(&self, writer: &mut W) -> borsh::io::Result<()> {
        match &self.grantor {
            None => self.grantee.serialize(writer),
            Some(grantor) => (2_u8, &self.grantee, grantor).serialize(writer),
        }
    }
}

impl BorshDeserialize for Given {
    fn deserialize_reader<R: borsh::io::Read>(reader: &mut R) -> borsh::io::Result<Given> {
        Ok(match u8::deserialize_reader(reader)? {
            0 => Given::by_administrators(Grantee::Public),
            1 => Given::by_administrators(Grantee::Role(String::deserialize_reader(reader)?)),
            2 => {
                let (grantee, grantor) = <(Grantee, String)>::deserialize_reader(reader)?;
                Given { grantee, grantor: Some(grantor) }
            }
            found => return Err(invalid(&format!("expected a kind of grantee, 0 to 2, found {found}"))),
        })
    }
}

impl BorshSerialize for Granted {
    fn serialize<W: borsh::io::Write>(&self, writer: &mut W) -> borsh::io::Result<()> {
        match self.options.is_empty() {
            true => self.privileges.serialize(writer),
            false => (self.privileges.bits() | WITH_OPTIONS, self.options).serialize(writer),
        }
    }
}

impl BorshDeserialize for Granted {
    fn deserialize_reader<R: borsh::io::Read>(reader: &mut R) -> borsh::io::Result<Granted> {
        let bits = u16::deserialize_reader(reader)?;
        let privileges = Privileges::from_bits(bits & !WITH_OPTIONS);
        let options = match bits & WITH_OPTIONS {
            0 => Privileges::NONE,
            _ => Privileges::deserialize_reader(reader)?,
        };
        if bits & WITH_OPTIONS != 0 && options.is_empty() {
            return Err(invalid("expected grant options, found none"));
        }
        Ok(Granted { privileges, options })
    }
}

impl BorshSerialize for AccessList {
    fn serialize<W: borsh::io::Write>(&self, writer: &mut W) -> borsh::io::Result<()> {
        self.0.serialize(writer)
    }
}

impl BorshDeserialize for AccessList {
    fn deserialize_reader<R: borsh::io::Read>(reader: &mut R) -> borsh::io::Result<AccessList> {
        BTreeMap::deserialize_reader(reader).map(AccessList)
    }
}

fn invalid(message: &str) -> borsh::io::Error {
    borsh::io::Error::new(borsh::io::ErrorKind::InvalidData, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{decode_exactly, encode};

    fn role(name: &str) -> Grantee {
        Grantee::Role(name.to_string())
    }

    fn by(grantor: Option<&str>, grantee: &str) -> Given {
        Given { grantee: role(grantee), grantor: grantor.map(str::to_string) }
    }

    const WITH_OPTION: Granted = Granted { privileges: Privileges::SELECT, options: Privileges::SELECT };
    const OPTION: Granted = Granted { privileges: Privileges::NONE, options: Privileges::SELECT };

    fn alone(role: &str) -> BTreeSet<String> {
        BTreeSet::from([role.to_string()])
    }

    /// `a` has it from administrators, `b` from `a`, `c` from `b`.
    fn chain() -> AccessList {
        let mut list = AccessList::default();
        list.give(by(None, "a"), WITH_OPTION);
        list.give(by(Some("a"), "b"), WITH_OPTION);
        list.give(by(Some("b"), "c"), Granted::plain(Privileges::SELECT));
        list
    }

    #[test]
    fn what_administrators_grant_is_encoded_as_before_there_were_grantors() {
        let mut list = AccessList::of(Grantee::Public, Privileges::SELECT);
        list.give(by(None, "a"), Granted::plain(Privileges::INSERT));
        let before: BTreeMap<Grantee, Privileges> =
            BTreeMap::from([(Grantee::Public, Privileges::SELECT), (role("a"), Privileges::INSERT)]);
        assert_eq!(encode(&list), encode(&before));
        assert_eq!(decode_exactly::<AccessList>(&encode(&before)).expect("canonical"), list);
    }

    #[test]
    fn lists_come_back_and_have_one_encoding() {
        let bytes = encode(&chain());
        assert_eq!(decode_exactly::<AccessList>(&bytes).expect("canonical"), chain());
        for cut in 0..bytes.len() {
            assert!(decode_exactly::<AccessList>(&bytes[..cut]).is_err(), "{cut}");
        }
        let empty_options = [1, 0, 0, 0, 0, 1, 128, 0, 0];
        assert!(decode_exactly::<AccessList>(&empty_options).is_err());
        assert!(decode_exactly::<AccessList>(&[1, 0, 0, 0, 3, 1, 0]).is_err());
    }

    #[test]
    fn what_depends_on_a_grant_option_goes_with_it_or_keeps_it() {
        let mut list = chain();
        let refused = list.take_with_dependents(&by(None, "a"), OPTION, false, &alone);
        assert_eq!(refused, Err(DependentPrivileges));
        let mut list = chain();
        list.take_with_dependents(&by(None, "a"), OPTION, true, &alone).expect("with CASCADE");
        let mut expected = AccessList::default();
        expected.give(by(None, "a"), Granted::plain(Privileges::SELECT));
        assert_eq!(list, expected);
        // Who may grant it by somebody else, too, goes on.
        let mut list = chain();
        list.give(by(None, "b"), WITH_OPTION);
        list.take_with_dependents(&by(Some("a"), "b"), WITH_OPTION, false, &alone).expect("nothing depends");
        assert_eq!(list.direct(&role("c")).privileges, Privileges::SELECT);
        assert_eq!(list.get(&by(Some("a"), "b")), Granted::default());
    }

    #[test]
    fn nobody_gives_its_grantor_the_right_to_grant() {
        let list = chain();
        assert!(list.is_circular(("b", &role("a")), Privileges::SELECT, &alone));
        assert!(!list.is_circular(("b", &role("c")), Privileges::SELECT, &alone));
        let mut list = chain();
        list.give(by(None, "b"), WITH_OPTION);
        assert!(!list.is_circular(("b", &role("a")), Privileges::SELECT, &alone));
    }

    #[test]
    fn lists_know_whom_they_name() {
        let list = chain();
        assert!(["a", "b", "c"].iter().all(|role| list.names(role)) && !list.names("d"));
        assert_eq!(list.together(["b", "c"]), WITH_OPTION);
        assert_eq!(list.together(["d"]), Granted::default());
    }
}
