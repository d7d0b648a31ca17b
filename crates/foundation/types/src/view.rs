//! Views: queries with a name, what is asked of rows that are written through them, and the triggers that write instead.

use crate::{OutputColumn, Trigger};
use borsh::{BorshDeserialize, BorshSerialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// WITH CHECK OPTION: what a row has to keep that is written through a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum CheckOption {
    /// What the view itself asks.
    Local,
    /// What the view asks, and every view below it.
    Cascaded,
}

impl CheckOption {
    /// As `pg_class.reloptions` says it.
    pub fn name(self) -> &'static str {
        match self {
            CheckOption::Local => "local",
            CheckOption::Cascaded => "cascaded",
        }
    }
}

/// A view: a query with a name, bound wherever the name is used.
///
/// ```text
/// encoding: name ‖ columns ‖ query ‖ relations ‖ count of functions ‖ functions                  (as before there was more)
///           the highest bit of the count is set: … ‖ check option ‖ triggers
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// Its name, which no table and no index has.
    pub name: String,
    /// What it gives, in order.
    pub columns: Vec<OutputColumn>,
    /// The query, as SQL with every `*` written out.
    pub query: String,
    /// Names of the tables and views in it.
    pub relations: BTreeSet<String>,
    /// Names of the functions in it.
    pub functions: BTreeSet<String>,
    /// WITH CHECK OPTION.
    pub check_option: Option<CheckOption>,
    /// INSTEAD OF triggers, by their names.
    pub triggers: BTreeMap<String, Arc<Trigger>>,
}

/// What says that a view has more than views had at first.
const MORE: u32 = 1 << 31;

impl BorshSerialize for View {
    fn serialize<W: borsh::io::Write>(&self, writer: &mut W) -> borsh::io::Result<()> {
        (&self.name, &self.columns, &self.query, &self.relations).serialize(writer)?;
        let has_more = self.check_option.is_some() || !self.triggers.is_empty();
        let count = u32::try_from(self.functions.len()).ok().filter(|count| count & MORE == 0);
        let count = count.ok_or_else(|| invalid("a view calls too many functions"))?;
        (count | if has_more { MORE } else { 0 }).serialize(writer)?;
        self.functions.iter().try_for_each(|function| function.serialize(writer))?;
        if has_more { (self.check_option, &self.triggers).serialize(writer) } else { Ok(()) }
    }
}

impl BorshDeserialize for View {
    fn deserialize_reader<R: borsh::io::Read>(reader: &mut R) -> borsh::io::Result<View> {
        let (name, columns, query, relations) =
            <(String, Vec<OutputColumn>, String, BTreeSet<String>)>::deserialize_reader(reader)?;
        let count = u32::deserialize_reader(reader)?;
        let mut functions = BTreeSet::new();
        for _ in 0..count & !MORE {
            let function = String::deserialize_reader(reader)?;
            if functions.last().is_some_and(|last| *last >= function) {
                return Err(invalid("the functions of a view are not in order"));
            }
            functions.insert(function);
        }
        let has_more = count & MORE != 0;
        let (check_option, triggers) = match has_more {
            true => BorshDeserialize::deserialize_reader(reader)?,
            false => (None, BTreeMap::new()),
        };
        if has_more && check_option.is_none() && triggers.is_empty() {
            return Err(invalid("expected a check option or triggers of a view, found neither"));
        }
        Ok(View { name, columns, query, relations, functions, check_option, triggers })
    }
}

fn invalid(message: &str) -> borsh::io::Error {
    borsh::io::Error::new(borsh::io::ErrorKind::InvalidData, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{TriggerEvent, TriggerEvents, TriggerTime};

    fn view() -> View {
        View {
            name: "v".to_string(),
            columns: Vec::new(),
            query: "SELECT f()".to_string(),
            relations: BTreeSet::from(["t".to_string()]),
            functions: BTreeSet::from(["f".to_string(), "g".to_string()]),
            check_option: None,
            triggers: BTreeMap::new(),
        }
    }

    fn trigger() -> Trigger {
        Trigger {
            name: "instead".to_string(),
            function: "f".to_string(),
            arguments: Vec::new(),
            time: TriggerTime::Instead,
            events: TriggerEvents::default().with(TriggerEvent::Insert),
            columns: Vec::new(),
            per_row: true,
            condition: None,
            old_table: None,
            new_table: None,
            enabled: true,
        }
    }

    #[test]
    fn views_are_encoded_as_before_unless_they_have_more() {
        let plain = view();
        let before = (&plain.name, &plain.columns, &plain.query, &plain.relations, &plain.functions);
        assert_eq!(borsh::to_vec(&plain).unwrap(), borsh::to_vec(&before).unwrap());
        let checked = View { check_option: Some(CheckOption::Local), ..view() };
        let triggers = BTreeMap::from([("instead".to_string(), Arc::new(trigger()))]);
        let changed = View { triggers, ..view() };
        for one in [plain, checked, changed] {
            let bytes = borsh::to_vec(&one).unwrap();
            assert_eq!(borsh::from_slice::<View>(&bytes).unwrap(), one);
        }
    }

    #[test]
    fn a_view_has_one_encoding() {
        let mut bytes = borsh::to_vec(&view()).unwrap();
        let functions = borsh::to_vec(&view().functions).unwrap().len();
        let at = bytes.len() - functions + 3;
        bytes[at] |= 1 << 7;
        bytes.extend([0, 0, 0, 0, 0]);
        assert!(borsh::from_slice::<View>(&bytes).is_err());
    }
}
