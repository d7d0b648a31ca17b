use super::FoundingError;
use super::file::{FoundingFile, from_text, to_text};
use crate::Charter;
use crate::charter_text::{MISSING, ledger_as_text, signature_as_text};
use crypto::{Digest, SecretKey, Signature, SignedMessage};
use serde::{Deserialize, Serialize};

/// A member's signature over a draft of the charter, as a file that can be mailed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CharterSignature {
    /// Name of the network.
    pub network: String,
    /// Who has signed.
    pub name: String,
    /// Digest of the draft, which is the ledger's name.
    #[serde(with = "ledger_as_text")]
    pub ledger: Digest,
    /// By the root key, over that digest.
    #[serde(with = "signature_as_text")]
    pub signature: Signature,
}

impl FoundingFile for CharterSignature {
    const WHAT: &'static str = "a signature over a charter";
    const FORMAT: &'static str = "entente charter signature 1";
}

impl CharterSignature {
    /// Signs a charter with the root key of its member `name`.
    pub fn new(charter: &Charter, name: &str, root: &SecretKey) -> CharterSignature {
        let ledger = charter.ledger();
        let (network, name) = (charter.name.clone(), name.to_string());
        CharterSignature { network, name, ledger, signature: root.sign(&ledger.0) }
    }

    /// As a file that can be mailed.
    pub fn to_toml(&self) -> String {
        to_text(self)
    }

    /// Reads what [`CharterSignature::to_toml`] wrote. Whether the signature fits, [`Charter::add_signature`] says.
    ///
    /// # Errors
    /// It is no such file, or was altered.
    pub fn from_toml(text: &str) -> Result<CharterSignature, FoundingError> {
        from_text(text)
    }
}

impl Charter {
    /// Adds a member's signature. The same one twice changes nothing.
    ///
    /// # Errors
    /// It is over another charter, of nobody who is a member, not by that member's root key, or another one than the charter
    /// has.
    pub fn add_signature(&mut self, signed: &CharterSignature) -> Result<(), FoundingError> {
        let organisation = signed.name.clone();
        if signed.network != self.name {
            let (expected, found) = (self.name.clone(), signed.network.clone());
            return Err(FoundingError::OtherNetwork { what: "the signature", organisation, expected, found });
        }
        let Some(position) = self.organisations.iter().position(|member| member.name == signed.name) else {
            let members = self.organisations.iter().map(|member| member.name.as_str());
            let members = members.collect::<Vec<_>>().join(", ");
            return Err(FoundingError::NoMember { organisation, members });
        };
        let ledger = self.ledger();
        if signed.ledger != ledger {
            let (expected, found) = (ledger, signed.ledger);
            return Err(FoundingError::OtherDraft { organisation, expected, found });
        }
        let (key, signature) = (self.organisations[position].root_key, signed.signature);
        if !crypto::verify(&SignedMessage { key, signature, message: &ledger.0 }) {
            return Err(FoundingError::WrongSignature { organisation });
        }
        self.signatures.resize(self.organisations.len(), MISSING);
        let place = &mut self.signatures[position];
        if *place != MISSING && *place != signature {
            return Err(FoundingError::SignedTwice { organisation });
        }
        *place = signature;
        Ok(())
    }
}

impl Charter {
    /// The signatures that the charter has, as its members have given them.
    pub fn given_signatures(&self) -> Vec<CharterSignature> {
        let ledger = self.ledger();
        let given = self.organisations.iter().zip(&self.signatures);
        given
            .filter(|(_, signature)| **signature != MISSING)
            .map(|(member, signature)| CharterSignature {
                network: self.name.clone(),
                name: member.name.clone(),
                ledger,
                signature: *signature,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::card::tests::{card, root};
    use super::*;
    use crate::CharterError;

    fn draft() -> Charter {
        Charter::with_defaults("clearing", 7).of_cards(&[1, 2, 3, 4].map(card)).expect("four good cards")
    }

    fn signature(charter: &Charter, number: u8) -> CharterSignature {
        CharterSignature::new(charter, &format!("bank_{number}"), &root(number))
    }

    #[test]
    fn signatures_make_a_draft_a_charter() {
        let mut charter = draft();
        for number in [3, 1, 4] {
            let signed = signature(&charter, number);
            assert_eq!(CharterSignature::from_toml(&signed.to_toml()), Ok(signed.clone()));
            charter.add_signature(&signed).expect("a member's");
            charter.add_signature(&signed).expect("the same twice");
            assert_eq!(Charter::from_draft(&charter.to_toml()), Ok(charter.clone()));
        }
        let given = charter.given_signatures();
        assert_eq!(given, [1, 3, 4].map(|number| signature(&charter, number)));
        let missing = "bank_2".to_string();
        assert_eq!(charter.check(), Err(CharterError::NotSigned { missing }));
        charter.add_signature(&signature(&charter, 2)).expect("the last");
        assert_eq!(Charter::from_toml(&charter.to_toml()), Ok(charter.clone()));
        assert_eq!(charter.ledger(), draft().ledger());
    }

    #[test]
    fn signatures_that_do_not_fit_are_refused_and_change_nothing() {
        let good = draft();
        let refused = |signed: &CharterSignature| {
            let mut charter = good.clone();
            let error = charter.add_signature(signed).expect_err("it does not fit");
            assert_eq!(charter, good);
            error
        };
        let older = Charter { nonce: 8, ..good.clone() };
        let error = refused(&signature(&older, 1));
        let (organisation, expected, found) = ("bank_1".to_string(), good.ledger(), older.ledger());
        assert_eq!(error, FoundingError::OtherDraft { organisation, expected, found });
        let stranger = CharterSignature::new(&good, "bank_9", &root(9));
        assert!(matches!(refused(&stranger), FoundingError::NoMember { .. }));
        let another_key = CharterSignature::new(&good, "bank_1", &root(2));
        assert!(matches!(refused(&another_key), FoundingError::WrongSignature { .. }));
        let other = CharterSignature { network: "other".into(), ..signature(&good, 1) };
        assert!(matches!(refused(&other), FoundingError::OtherNetwork { .. }));
        // A charter that has another signature of the member already.
        let mut charter = good.clone();
        charter.add_signature(&signature(&good, 1)).expect("good");
        charter.signatures[0].0[0] ^= 1;
        let error = charter.add_signature(&signature(&good, 1)).expect_err("two different ones");
        assert_eq!(error, FoundingError::SignedTwice { organisation: "bank_1".to_string() });
    }

    #[test]
    fn any_changed_byte_of_a_signature_is_refused() {
        let good = draft();
        let text = signature(&good, 2).to_toml();
        for at in 0..text.len() {
            for flip in [0x01, 0x02, 0x20] {
                let mut bytes = text.clone().into_bytes();
                bytes[at] ^= flip;
                let Ok(changed) = String::from_utf8(bytes) else { continue };
                let taken = CharterSignature::from_toml(&changed)
                    .and_then(|signed| good.clone().add_signature(&signed));
                assert!(taken.is_err(), "byte {at}: {changed}");
            }
        }
    }
}
