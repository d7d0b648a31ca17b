//! What a node says of itself to whoever asks, signed with its node key: who answers at an address, and what its clock shows.

use crypto::{Digest, PublicKey, SecretKey, Signature, SignedMessage, verify};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// What is signed in front of the rest, so that a signature counts for nothing else.
const DOMAIN: &[u8] = b"entente presence 1\0";

/// The answer to a question that nobody has asked before. Whoever stands between can pass question and answer on: what is proved is
/// that a process with the key runs now, and not that it is the one that was connected to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Presence {
    /// Digest of the charter of its ledger.
    #[serde(serialize_with = "shown", deserialize_with = "parsed")]
    pub ledger: Digest,
    /// The node key.
    #[serde(serialize_with = "shown", deserialize_with = "parsed")]
    pub node_key: PublicKey,
    /// Drawn when the process started, so that two processes with one key are told apart.
    #[serde(serialize_with = "shown", deserialize_with = "parsed")]
    pub process: Digest,
    /// Its clock, in milliseconds since 1970-01-01 00:00 UTC.
    pub time_ms: u64,
    /// Under all of it and the question.
    #[serde(serialize_with = "shown", deserialize_with = "parsed")]
    pub signature: Signature,
}

impl Presence {
    /// The answer to a question.
    pub fn sign(
        ledger: Digest,
        process: Digest,
        time_ms: u64,
        question: &Digest,
        key: &SecretKey,
    ) -> Presence {
        let mut presence =
            Presence { ledger, node_key: key.public_key(), process, time_ms, signature: Signature([0; 64]) };
        presence.signature = key.sign(&presence.message(question));
        presence
    }

    /// Whether whoever has the key has answered this question so.
    pub fn answers(&self, question: &Digest) -> bool {
        let message = self.message(question);
        verify(&SignedMessage { key: self.node_key, message: &message, signature: self.signature })
    }

    fn message(&self, question: &Digest) -> Vec<u8> {
        let time = self.time_ms.to_le_bytes();
        [DOMAIN, &self.ledger.0, &self.node_key.0, &self.process.0, &time, &question.0].concat()
    }
}

fn shown<T: ToString, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&value.to_string())
}

fn parsed<'de, T: std::str::FromStr<Err: std::fmt::Display>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_answers_one_question_and_nothing_in_it_can_be_changed() {
        let (key, question) = (SecretKey::from_bytes([1; 32]), Digest([2; 32]));
        let presence = Presence::sign(Digest([3; 32]), Digest([4; 32]), 5, &question, &key);
        assert!(presence.answers(&question));
        assert!(!presence.answers(&Digest([9; 32])), "an old answer");
        let changed: [fn(&mut Presence); 4] = [
            |presence| presence.ledger = Digest([9; 32]),
            |presence| presence.process = Digest([9; 32]),
            |presence| presence.time_ms += 1,
            |presence| presence.node_key = SecretKey::from_bytes([9; 32]).public_key(),
        ];
        for change in changed {
            let mut other = presence.clone();
            change(&mut other);
            assert!(!other.answers(&question), "{other:?}");
        }
        let text = toml::to_string(&presence).expect("plain fields");
        assert_eq!(toml::from_str::<Presence>(&text).expect("as it was written"), presence);
        assert!(toml::from_str::<Presence>(&text.replace("signature = \"", "signature = \"x")).is_err());
    }
}
