use crate::{Charter, Organisation};
use std::collections::BTreeMap;

/// A field in which two charters differ.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// Its name as in the file, with the table or the organisation in front.
    pub field: String,
    /// Its value in the first.
    pub first: String,
    /// Its value in the second.
    pub second: String,
}

/// What a field has that is not there.
const NOTHING: &str = "nothing";

impl Difference {
    /// As a sentence, with names for the two.
    pub fn named(&self, first: &str, second: &str) -> String {
        format!("{}: {first} {}, {second} {}", self.field, self.first, self.second)
    }
}

impl Charter {
    /// The fields in which another charter differs, by name. Signatures are not compared.
    pub fn differences(&self, other: &Charter) -> Vec<Difference> {
        let parameters = |charter: &Charter| {
            let bare =
                Charter { nonce: 0, organisations: Vec::new(), signatures: Vec::new(), ..charter.clone() };
            let mut fields = fields("", &bare);
            // A value of TOML has no room for the upper half of these numbers.
            fields.insert("nonce".to_string(), charter.nonce.to_string());
            fields
        };
        let mut found = of_fields(&parameters(self), &parameters(other));
        for position in 0..self.organisations.len().max(other.organisations.len()) {
            let [one, two] = [self, other].map(|charter| charter.organisations.get(position));
            if let (Some(one), Some(two)) = (one, two)
                && one.name == two.name
            {
                found.extend(of_organisations(one, two));
                continue;
            }
            let name = |of: Option<&Organisation>| of.map_or(NOTHING.to_string(), |of| of.name.clone());
            let field = format!("organisation {}", position + 1);
            found.push(Difference { field, first: name(one), second: name(two) });
        }
        found
    }
}

/// The fields in which two accounts of one organisation differ.
pub(super) fn of_organisations(one: &Organisation, two: &Organisation) -> Vec<Difference> {
    let prefix = format!("{}.", one.name);
    of_fields(&fields(&prefix, one), &fields(&prefix, two))
}

fn of_fields(one: &BTreeMap<String, String>, two: &BTreeMap<String, String>) -> Vec<Difference> {
    let value = |fields: &BTreeMap<String, String>, name: &String| {
        fields.get(name).cloned().unwrap_or(NOTHING.to_string())
    };
    let mut names: Vec<&String> = one.keys().chain(two.keys()).collect();
    names.sort();
    names.dedup();
    let difference = |name: &&String| Difference {
        field: (*name).clone(),
        first: value(one, name),
        second: value(two, name),
    };
    names.iter().map(difference).filter(|one| one.first != one.second).collect()
}

/// Every field of what can stand in a file, by its name.
fn fields(prefix: &str, of: &impl serde::Serialize) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let table = toml::Table::try_from(of).expect("it can stand in a file");
    walk(prefix, &table, &mut found);
    found
}

fn walk(prefix: &str, table: &toml::Table, found: &mut BTreeMap<String, String>) {
    for (name, value) in table {
        let name = format!("{prefix}{name}");
        match value {
            toml::Value::Table(table) => walk(&format!("{name}."), table, found),
            value => drop(found.insert(name, value.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::card::tests::card;
    use super::*;

    #[test]
    fn differences_are_named_field_by_field() {
        let draft = |cards: &[u8]| {
            let cards: Vec<_> = cards.iter().copied().map(card).collect();
            Charter::with_defaults("clearing", 7).of_cards(&cards).expect("good cards")
        };
        let one = draft(&[1, 2, 3, 4]);
        assert_eq!(one.differences(&one), []);
        let mut two = one.clone();
        two.block.fill_ms = 30;
        two.governance = "any".to_string();
        two.outcome_quorum = Some(4);
        two.organisations[1].address = "10.0.0.2:7000".to_string();
        let shown: Vec<String> = one.differences(&two).iter().map(|one| one.named("here", "there")).collect();
        assert_eq!(
            shown,
            [
                "block.fill_ms: here 20, there 30",
                "governance: here \"majority\", there \"any\"",
                "outcome_quorum: here nothing, there 4",
                "bank_2.address: here \"node2.example.org:7000\", there \"10.0.0.2:7000\"",
            ]
        );
        let fields = |other: &[u8]| -> Vec<(String, String)> {
            let found = one.differences(&draft(other));
            found.into_iter().map(|one| (one.field, one.second)).collect()
        };
        let pair = |field: &str, second: &str| (field.to_string(), second.to_string());
        assert_eq!(
            fields(&[1, 2, 4, 3]),
            [pair("organisation 3", "bank_4"), pair("organisation 4", "bank_3")]
        );
        assert_eq!(fields(&[1, 2, 3, 4, 5]), [pair("organisation 5", "bank_5")]);
    }
}
