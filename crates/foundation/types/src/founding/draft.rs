//! A charter before all its members have signed it.

use super::file::{is_as_written, malformed, shown};
use super::{FoundingError, MemberCard};
use crate::charter_text::MISSING;
use crate::{Charter, GatewayAddress};

const WHAT: &str = "the charter";

impl Charter {
    /// These parameters with the organisations of these cards as members, in the order of the cards.
    ///
    /// # Errors
    /// A card of another network; a name, a key or an address that two cards have; what else makes a charter useless.
    pub fn of_cards(mut self, cards: &[MemberCard]) -> Result<Charter, FoundingError> {
        for (position, card) in cards.iter().enumerate() {
            card.check_network(&self.name)?;
            cards[..position].iter().try_for_each(|before| check_pair(before, card))?;
        }
        self.organisations = cards.iter().map(MemberCard::organisation).collect();
        self.signatures = Vec::new();
        self.check_draft()?;
        Ok(self)
    }

    /// Reads a charter that need not be signed by all yet, and checks it whole. Every byte has to be as [`Charter::to_toml`]
    /// writes it.
    ///
    /// # Errors
    /// Another file, an altered one, or what makes the charter useless.
    pub fn from_draft(text: &str) -> Result<Charter, FoundingError> {
        let first = text.lines().next().unwrap_or_default();
        if first.starts_with("format = ") {
            let (what, expected) = (WHAT, "name = …".to_string());
            return Err(FoundingError::OtherFile { what, expected, found: shown(first) });
        }
        let charter: Charter = toml::from_str(text).map_err(|error| malformed(WHAT, &error))?;
        is_as_written(WHAT, text, &charter.to_toml())?;
        charter.check_draft()?;
        Ok(charter)
    }

    /// Names of the members whose signatures are missing.
    pub fn missing_signatures(&self) -> Vec<&str> {
        let is_missing =
            |position| self.signatures.get(position).is_none_or(|signature| *signature == MISSING);
        let members = self.organisations.iter().enumerate();
        members
            .filter(|(position, _)| is_missing(*position))
            .map(|(_, member)| member.name.as_str())
            .collect()
    }
}

/// Refuses two cards that have something in common which is each member's own.
fn check_pair(before: &MemberCard, card: &MemberCard) -> Result<(), FoundingError> {
    if before.name == card.name {
        return Err(FoundingError::NameTwice { name: card.name.clone() });
    }
    let (first, second) = (before.name.clone(), card.name.clone());
    let keys = |card: &MemberCard| [card.root_key, card.node_key, card.session_key, card.client_key];
    for (what, key) in ["root key", "node key", "session key", "client key"].into_iter().zip(keys(card)) {
        if keys(before).contains(&key) {
            return Err(FoundingError::KeyTwice { first, second, what, key: key.to_string() });
        }
    }
    // However HTTP is spoken there, two programs cannot listen at one place.
    let place = |address: &str| GatewayAddress::of(address).place.to_string();
    let addresses = |card: &MemberCard| [place(&card.address), place(&card.gateway)];
    match addresses(card).into_iter().find(|address| addresses(before).contains(address)) {
        Some(address) => Err(FoundingError::AddressTwice { first, second, address }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::card::tests::{card, root};
    use super::super::{CharterSignature, fingerprint};
    use super::*;
    use crate::CharterError;
    use crypto::SecretKey;

    fn of(cards: &[MemberCard]) -> Result<Charter, FoundingError> {
        Charter::with_defaults("clearing", 7).of_cards(cards)
    }

    fn cards() -> [MemberCard; 4] {
        [1, 2, 3, 4].map(card)
    }

    #[test]
    fn a_draft_has_its_members_in_the_order_of_their_cards_and_no_signature() {
        let draft = of(&cards()).expect("good cards");
        let again = of(&cards()).expect("good cards");
        assert_eq!(fingerprint(&draft.ledger().0), fingerprint(&again.ledger().0), "the same from the same");
        assert_eq!(draft.missing_signatures(), ["bank_1", "bank_2", "bank_3", "bank_4"]);
        assert_eq!(Charter::from_draft(&draft.to_toml()), Ok(draft.clone()));
        let missing = "bank_1, bank_2, bank_3, bank_4".to_string();
        assert_eq!(Charter::from_toml(&draft.to_toml()), Err(CharterError::NotSigned { missing }));
        for (position, card) in cards().iter().enumerate() {
            assert_eq!(card.position_in(&draft), Ok(position));
        }
    }

    #[test]
    fn cards_that_cannot_stand_side_by_side_are_named() {
        let [one, two, three, four] = cards();
        let other =
            |card: MemberCard| of(&[one.clone(), two.clone(), three.clone(), card]).expect_err("it cannot");
        let network = MemberCard { network: "other".into(), ..four.clone() };
        assert!(matches!(other(network), FoundingError::OtherNetwork { .. }));
        assert_eq!(other(one.clone()), FoundingError::NameTwice { name: "bank_1".into() });
        let node = MemberCard { node_key: two.node_key, ..four.clone() };
        let error = other(node).to_string();
        assert!(error.contains("bank_2 and bank_4 have the same node key"), "{error}");
        let root = MemberCard { root_key: one.node_key, ..four.clone() };
        assert!(matches!(other(root), FoundingError::KeyTwice { what: "root key", .. }));
        let place = MemberCard { address: three.gateway.clone(), ..four.clone() };
        assert!(matches!(other(place), FoundingError::AddressTwice { .. }));
        let place = MemberCard { gateway: format!("https://{}", three.gateway), ..four.clone() };
        assert!(matches!(other(place), FoundingError::AddressTwice { .. }));
        let few = of(&[one.clone(), two.clone(), three.clone()]).expect_err("three are too few");
        assert!(matches!(few, FoundingError::Charter(CharterError::TooFewMembers { members: 3, .. })));
    }

    #[test]
    fn a_draft_that_says_something_else_than_a_card_is_refused_field_by_field() {
        let mut draft = of(&cards()).expect("good cards");
        draft.organisations[1].address = "10.0.0.66:7000".to_string();
        draft.organisations[1].node_key = SecretKey::from_bytes([200; 32]).public_key();
        let error = card(2).position_in(&draft).expect_err("it differs").to_string();
        assert!(error.contains("bank_2.address: the card has \"node2.example.org:7000\""), "{error}");
        assert!(error.contains("the draft \"10.0.0.66:7000\"; bank_2.node_key: the card has"), "{error}");
        let error = card(9).position_in(&draft).expect_err("no member").to_string();
        assert!(error.contains("no member bank_9: its members are bank_1, bank_2"), "{error}");
    }

    #[test]
    fn any_changed_byte_of_a_charter_is_refused_or_makes_it_another_ledger() {
        let mut charter = of(&cards()).expect("good cards");
        for number in 1..=4 {
            let signed = CharterSignature::new(&charter, &format!("bank_{number}"), &root(number));
            charter.add_signature(&signed).expect("a member's");
        }
        let text = charter.to_toml();
        let draft = Charter { signatures: Vec::new(), ..charter.clone() }.to_toml();
        let changed = |text: &str, at: usize, flip: u8| {
            let mut bytes = text.as_bytes().to_vec();
            bytes[at] ^= flip;
            String::from_utf8(bytes).ok()
        };
        for flip in [0x01, 0x04, 0x20] {
            for at in 0..text.len() {
                let Some(changed) = changed(&text, at, flip) else { continue };
                assert!(Charter::from_draft(&changed).is_err(), "byte {at}: {changed}");
                // Where a node has it already, spaces may differ, and nothing else.
                let same = Charter::from_toml(&changed).is_ok_and(|read| read != charter);
                assert!(!same, "byte {at}: {changed}");
            }
            // Nothing is signed yet: another draft is another ledger, and no signature over this one fits.
            for at in 0..draft.len() {
                let Some(changed) = changed(&draft, at, flip) else { continue };
                let other = Charter::from_draft(&changed);
                assert!(
                    other.is_err() || other.is_ok_and(|other| other.ledger() != charter.ledger()),
                    "{changed}"
                );
            }
        }
    }

    #[test]
    fn a_card_in_the_place_of_a_charter_is_named() {
        let error = Charter::from_draft(&card(1).to_toml()).expect_err("a card");
        assert!(matches!(error, FoundingError::OtherFile { what: "the charter", .. }), "{error}");
    }
}
