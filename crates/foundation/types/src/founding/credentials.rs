use super::file::{FoundingFile, from_text, to_text};
use super::{FoundingError, MemberCard};
use crate::Credential;
use crate::charter_text::{ledger_as_text, signature_as_text};
use crypto::{Digest, SecretKey, Signature};
use serde::{Deserialize, Serialize};

/// What a root key gives its node's folder for a ledger: its word for the keys that sign transactions. It holds no secret.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Credentials {
    /// Name of the organisation.
    pub name: String,
    /// The ledger.
    #[serde(with = "ledger_as_text")]
    pub ledger: Digest,
    /// Position of the organisation.
    pub organisation: u16,
    /// For the key with which the node signs for psql users.
    #[serde(with = "signature_as_text")]
    pub session: Signature,
    /// For the key of a client that signs for itself.
    #[serde(with = "signature_as_text")]
    pub client: Signature,
}

impl FoundingFile for Credentials {
    const WHAT: &'static str = "a file of credentials";
    const FORMAT: &'static str = "entente credentials 1";
}

impl Credentials {
    /// Gives the root key's word for the keys of a card.
    pub fn issue(card: &MemberCard, root: &SecretKey, ledger: Digest, organisation: u16) -> Credentials {
        let issue = |key| Credential::issue(root, organisation, &ledger, key).signature;
        let (session, client) = (issue(&card.session_key), issue(&card.client_key));
        Credentials { name: card.name.clone(), ledger, organisation, session, client }
    }

    /// As a file.
    pub fn to_toml(&self) -> String {
        to_text(self)
    }

    /// Reads what [`Credentials::to_toml`] wrote.
    ///
    /// # Errors
    /// It is no such file, or was altered.
    pub fn from_toml(text: &str) -> Result<Credentials, FoundingError> {
        from_text(text)
    }

    /// Those of the session and of the client, if the card's root key has given them for its keys and this ledger.
    ///
    /// # Errors
    /// What does not fit.
    pub fn of(&self, card: &MemberCard, ledger: &Digest) -> Result<[Credential; 2], FoundingError> {
        let wrong = |reason: String| {
            let organisation = card.name.clone();
            Err(FoundingError::Credentials { organisation, reason })
        };
        if self.name != card.name {
            return wrong(format!("they are those of {}; take those of {}", self.name, card.name));
        }
        if self.ledger != *ledger {
            let found = self.ledger;
            return wrong(format!(
                "they are for ledger {found}, the charter is ledger {ledger}; sign this charter"
            ));
        }
        let organisation = self.organisation;
        let given = [(self.session, card.session_key), (self.client, card.client_key)];
        let credentials = given.map(|(signature, _)| Credential { organisation, signature });
        for (credential, (_, key)) in credentials.iter().zip(&given) {
            if !credential.verify(&card.root_key, ledger, key) {
                return wrong(
                    "a signature in them is not by the root key of the card; sign the charter again".into(),
                );
            }
        }
        Ok(credentials)
    }
}

#[cfg(test)]
mod tests {
    use super::super::card::tests::{card, root};
    use super::*;

    #[test]
    fn credentials_are_good_for_one_card_and_one_ledger() {
        let ledger = crypto::sha256(&[b"ledger"]);
        let good = Credentials::issue(&card(1), &root(1), ledger, 3);
        assert_eq!(Credentials::from_toml(&good.to_toml()), Ok(good.clone()));
        let [session, client] = good.of(&card(1), &ledger).expect("as they were given");
        assert_eq!([session.organisation, client.organisation], [3, 3]);
        let refused =
            |credentials: &Credentials, ledger| credentials.of(&card(1), ledger).expect_err("other");
        refused(&good, &Digest::ZERO);
        refused(&Credentials::issue(&card(2), &root(2), ledger, 3), &ledger);
        refused(&Credentials::issue(&card(1), &root(2), ledger, 3), &ledger);
        let error = refused(&Credentials { session: good.client, ..good.clone() }, &ledger);
        assert!(error.to_string().contains("not by the root key"), "{error}");
    }
}
