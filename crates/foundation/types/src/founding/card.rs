use super::FoundingError;
use super::difference::of_organisations;
use super::file::{FoundingFile, from_text, to_text};
use crate::charter_text::{MISSING, as_text, signature_as_text};
use crate::{Charter, GatewayAddress, GatewayScheme, Organisation, encode, limits};
use crypto::{PublicKey, SecretKey, Signature, SignedMessage};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

const ROOT_DOMAIN: &[u8] = b"entente member card 1\0";
const NODE_DOMAIN: &[u8] = b"entente member card of a node 1\0";

/// What an organisation says of itself to those with whom it founds a network, or whose network it joins. It holds no secret.
///
/// The root key has signed all of it, and so has the node key: nobody can give another one's node for its own.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemberCard {
    /// Name of the network that it is for. In another one the card is refused.
    pub network: String,
    /// Name of the organisation.
    pub name: String,
    /// The key that signs the charter and the organisation's clients.
    #[serde(with = "as_text")]
    pub root_key: PublicKey,
    /// The key that its node signs votes with.
    #[serde(with = "as_text")]
    pub node_key: PublicKey,
    /// The key with which its node signs for psql users.
    #[serde(with = "as_text")]
    pub session_key: PublicKey,
    /// The key of a client that signs for itself.
    #[serde(with = "as_text")]
    pub client_key: PublicKey,
    /// Where its node listens for the others: `host:port`.
    pub address: String,
    /// Where its node answers HTTP: `https://host:port`, or `host:port` of a card that was made before there was TLS.
    pub gateway: String,
    /// By the node key, over everything above.
    #[serde(with = "signature_as_text")]
    pub node_signature: Signature,
    /// By the root key, over everything but the signatures. Empty: the root key is elsewhere and has not signed yet.
    #[serde(with = "signature_as_text")]
    pub root_signature: Signature,
}

impl FoundingFile for MemberCard {
    const WHAT: &'static str = "a member card";
    const FORMAT: &'static str = "entente member card 1";
}

impl MemberCard {
    fn message(&self, domain: &[u8]) -> Vec<u8> {
        let keys = (self.root_key, self.node_key, self.session_key, self.client_key);
        let fields = (&self.network, &self.name, keys, &self.address, &self.gateway);
        [domain, &encode(&fields)].concat()
    }

    /// The same, signed by the node key.
    #[must_use]
    pub fn signed_by_node(mut self, node: &SecretKey) -> MemberCard {
        self.node_signature = node.sign(&self.message(NODE_DOMAIN));
        self
    }

    /// The same, signed by the root key.
    #[must_use]
    pub fn signed_by_root(mut self, root: &SecretKey) -> MemberCard {
        self.root_signature = root.sign(&self.message(ROOT_DOMAIN));
        self
    }

    /// As a file that can be mailed.
    pub fn to_toml(&self) -> String {
        to_text(self)
    }

    /// Reads what [`MemberCard::to_toml`] wrote, and checks it whole.
    ///
    /// # Errors
    /// What was altered, or is missing.
    pub fn from_toml(text: &str) -> Result<MemberCard, FoundingError> {
        let card = MemberCard::from_unsigned(text)?;
        if card.root_signature == MISSING {
            return Err(FoundingError::CardNotSigned { organisation: card.name });
        }
        card.check_signature(card.root_key, card.root_signature, ROOT_DOMAIN, "root key")?;
        Ok(card)
    }

    /// The same, of a card that the root key need not have signed yet.
    ///
    /// # Errors
    /// What was altered.
    pub fn from_unsigned(text: &str) -> Result<MemberCard, FoundingError> {
        let card: MemberCard = from_text(text)?;
        card.check_values()?;
        card.check_signature(card.node_key, card.node_signature, NODE_DOMAIN, "node key")?;
        Ok(card)
    }

    fn check_signature(
        &self,
        key: PublicKey,
        signature: Signature,
        domain: &[u8],
        name: &'static str,
    ) -> Result<(), FoundingError> {
        let message = self.message(domain);
        if crypto::verify(&SignedMessage { key, signature, message: &message }) {
            return Ok(());
        }
        Err(FoundingError::CardSignature { organisation: self.name.clone(), key: name })
    }

    /// Checks names, addresses and that each key has one purpose.
    ///
    /// # Errors
    /// Which field is wrong, and what it may be.
    pub fn check_values(&self) -> Result<(), FoundingError> {
        let what = MemberCard::WHAT;
        let wrong = |field, expected: &str, found: &str| {
            let (expected, found) = (expected.to_string(), super::file::shown(found));
            Err(FoundingError::Value { what, field, expected, found })
        };
        for (field, name) in [("network", &self.network), ("name", &self.name)] {
            if !is_plain(name) {
                let expected =
                    "1 to 63 bytes, without slashes and control characters, and not begin with a dot";
                return wrong(field, expected, name);
            }
        }
        if !is_address(&self.address) {
            return wrong("address", "host:port, where others reach it (not 0.0.0.0)", &self.address);
        }
        let gateway = GatewayAddress::of(&self.gateway);
        if gateway.scheme == GatewayScheme::Plain || self.gateway.ends_with('/') || !is_address(gateway.place)
        {
            let expected = "https://host:port, where others reach it (not 0.0.0.0)";
            return wrong("gateway", expected, &self.gateway);
        }
        let keys = [self.root_key, self.node_key, self.session_key, self.client_key];
        for (position, key) in keys.iter().enumerate() {
            if keys[..position].contains(key) {
                let organisation = self.name.clone();
                return Err(FoundingError::OneKey { organisation, key: key.to_string() });
            }
        }
        Ok(())
    }

    /// What the charter says of the organisation.
    pub fn organisation(&self) -> Organisation {
        Organisation {
            name: self.name.clone(),
            root_key: self.root_key,
            node_key: self.node_key,
            address: self.address.clone(),
            gateway: self.gateway.clone(),
            removed: false,
            node_key_expires: None,
        }
    }

    /// Position of the organisation in a founding charter that says of it what the card says.
    ///
    /// # Errors
    /// The charter is of another network, does not have the organisation, or says something else of it: field by field.
    pub fn position_in(&self, charter: &Charter) -> Result<usize, FoundingError> {
        self.check_network(&charter.name)?;
        let position = charter.organisations.iter().position(|organisation| organisation.name == self.name);
        let Some(position) = position else {
            let members = charter.organisations.iter().map(|organisation| organisation.name.as_str());
            let members = members.collect::<Vec<_>>().join(", ");
            return Err(FoundingError::NotInDraft { organisation: self.name.clone(), members });
        };
        let differences = of_organisations(&self.organisation(), &charter.organisations[position]);
        if differences.is_empty() {
            return Ok(position);
        }
        let shown = differences.iter().map(|one| one.named("the card has", "the draft"));
        let differences = shown.collect::<Vec<_>>().join("; ");
        Err(FoundingError::DraftDiffers { organisation: self.name.clone(), differences })
    }

    /// Whether the card is for a network of this name.
    ///
    /// # Errors
    /// Names both networks.
    pub fn check_network(&self, network: &str) -> Result<(), FoundingError> {
        if self.network == network {
            return Ok(());
        }
        Err(FoundingError::OtherNetwork {
            what: "the card",
            organisation: self.name.clone(),
            expected: network.to_string(),
            found: self.network.clone(),
        })
    }
}

/// Whether a name can stand in a line, and in the name of a file.
fn is_plain(name: &str) -> bool {
    (1..=limits::NAME_BYTES_MAX).contains(&name.len())
        && !name.starts_with('.')
        && name.trim() == name
        && !name.chars().any(|character| character.is_control() || ['/', '\\'].contains(&character))
}

/// Whether others can reach it: an address or a host name, and a port.
fn is_address(text: &str) -> bool {
    if let Ok(socket) = text.parse::<SocketAddr>() {
        return !socket.ip().is_unspecified() && socket.port() != 0;
    }
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    let letters = |host: &str| host.chars().all(|one| one.is_ascii_alphanumeric() || "-._".contains(one));
    let is_number = host.chars().all(|one| one.is_ascii_digit() || one == '.');
    !host.is_empty() && !is_number && letters(host) && port.parse::<u16>().is_ok_and(|port| port != 0)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn root(number: u8) -> SecretKey {
        SecretKey::from_bytes([number; 32])
    }

    fn unsigned(number: u8) -> MemberCard {
        let key = |kind: u8| SecretKey::from_bytes([number + kind; 32]).public_key();
        MemberCard {
            network: "clearing".to_string(),
            name: format!("bank_{number}"),
            root_key: key(0),
            node_key: key(50),
            session_key: key(100),
            client_key: key(150),
            address: format!("node{number}.example.org:7000"),
            gateway: format!("127.0.0.1:72{number:02}"),
            node_signature: MISSING,
            root_signature: MISSING,
        }
    }

    pub(crate) fn card(number: u8) -> MemberCard {
        signed(unsigned(number), number)
    }

    fn signed(card: MemberCard, number: u8) -> MemberCard {
        card.signed_by_node(&SecretKey::from_bytes([number + 50; 32])).signed_by_root(&root(number))
    }

    #[test]
    fn cards_round_trip_and_any_changed_byte_is_refused() {
        let text = card(1).to_toml();
        assert_eq!(MemberCard::from_toml(&text), Ok(card(1)));
        for at in 0..text.len() {
            for flip in [0x01, 0x02, 0x20] {
                let mut bytes = text.clone().into_bytes();
                bytes[at] ^= flip;
                let Ok(changed) = String::from_utf8(bytes) else { continue };
                assert!(MemberCard::from_toml(&changed).is_err(), "byte {at}: {changed}");
            }
        }
        for end in 0..text.len() {
            assert!(MemberCard::from_toml(&text[..end]).is_err(), "{end} bytes");
        }
        let longer = format!("{text}\n");
        let Err(FoundingError::Altered { line, .. }) = MemberCard::from_toml(&longer) else {
            panic!("longer")
        };
        assert_eq!(line, text.lines().count() + 2);
        let mailed =
            MemberCard::from_toml(&text.replace('\n', "\r\n")).expect_err("other ends of lines").to_string();
        assert!(
            mailed.contains("altered in line 1: expected `format = \"entente member card 1\"`"),
            "{mailed}"
        );
        assert!(mailed.contains("found `format = \"entente member card 1\"\\r`"), "{mailed}");
    }

    #[test]
    fn a_card_without_its_root_keys_signature_says_where_to_get_it() {
        let text = unsigned(1).signed_by_node(&SecretKey::from_bytes([51; 32])).to_toml();
        let organisation = "bank_1".to_string();
        assert_eq!(MemberCard::from_toml(&text), Err(FoundingError::CardNotSigned { organisation }));
        assert!(MemberCard::from_unsigned(&text).is_ok());
    }

    #[test]
    fn keys_in_one_anothers_places_are_refused() {
        let good = card(1);
        let swapped = MemberCard { root_key: good.node_key, node_key: good.root_key, ..good.clone() };
        let error = MemberCard::from_toml(&swapped.to_toml()).expect_err("swapped");
        assert!(matches!(error, FoundingError::CardSignature { .. }), "{error}");
        // Whoever signs for another one's node key does not have it.
        let other = MemberCard { node_key: card(2).node_key, ..good.clone() }.signed_by_root(&root(1));
        let error = MemberCard::from_toml(&other.to_toml()).expect_err("another one's node");
        let organisation = "bank_1".to_string();
        assert_eq!(error, FoundingError::CardSignature { organisation, key: "node key" });
        let one_key = signed(MemberCard { session_key: good.root_key, ..good }, 1);
        let error = MemberCard::from_toml(&one_key.to_toml()).expect_err("one key for two purposes");
        assert!(matches!(error, FoundingError::OneKey { .. }), "{error}");
    }

    #[test]
    fn names_and_addresses_that_cannot_be_are_named() {
        let of = |change: &dyn Fn(&mut MemberCard)| {
            let mut card = unsigned(1);
            change(&mut card);
            MemberCard::from_toml(&signed(card, 1).to_toml()).map(drop)
        };
        for wrong in ["", "a/b", "..", "a\nb", " a", &"x".repeat(64)] {
            let named = of(&|card| card.name = wrong.to_string());
            assert!(matches!(named, Err(FoundingError::Value { field: "name", .. })), "{wrong}: {named:?}");
            let named = of(&|card| card.network = wrong.to_string());
            assert!(matches!(named, Err(FoundingError::Value { field: "network", .. })), "{wrong}");
        }
        for wrong in
            ["", "node1", ":7000", "node1:70000", "no de:1", "0.0.0.0:7000", "[::]:7000", "1.2.3:7000", "a:0"]
        {
            let named = of(&|card| card.address = wrong.to_string());
            assert!(matches!(named, Err(FoundingError::Value { field: "address", .. })), "{wrong}");
            for wrong in [wrong.to_string(), format!("https://{wrong}")] {
                let named = of(&|card| card.gateway.clone_from(&wrong));
                assert!(matches!(named, Err(FoundingError::Value { field: "gateway", .. })), "{wrong}");
            }
        }
        for wrong in ["http://a.example:7200", "https://a.example:7200/", "ftp://a.example:7200"] {
            let named = of(&|card| card.gateway = wrong.to_string());
            assert!(matches!(named, Err(FoundingError::Value { field: "gateway", .. })), "{wrong}");
        }
        assert_eq!(of(&|card| card.gateway = "https://a.example:7200".to_string()), Ok(()));
        for good in ["node-1.example.org:7000", "10.0.0.1:1", "[fe80::1]:7000"] {
            assert_eq!(of(&|card| card.address = good.to_string()), Ok(()), "{good}");
        }
    }

    #[test]
    fn another_file_in_the_place_of_a_card_is_named() {
        let newer = card(1).to_toml().replacen("member card 1", "member card 2", 1);
        let error = MemberCard::from_toml(&newer).expect_err("another format");
        assert!(matches!(error, FoundingError::OtherVersion { .. }), "{error}");
        for text in ["format = \"entente credentials 1\"\n", "name = \"clearing\"\nnonce = 3\n", ""] {
            let error = MemberCard::from_toml(text).expect_err("no card");
            assert!(matches!(error, FoundingError::OtherFile { .. }), "{error}");
        }
    }
}
