//! Digests, keys and signatures as files of charters, cards and signatures have them.

use crypto::Signature;

/// The place of a signature that is not there yet: no key signs so. In files it is empty.
pub(crate) const MISSING: Signature = Signature([0; 64]);

pub(crate) mod digest_as_text {
    use crypto::Digest;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(digest: &Option<Digest>, serializer: S) -> Result<S::Ok, S::Error> {
        match digest {
            Some(digest) => serializer.collect_str(digest),
            None => serializer.serialize_none(),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Digest>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| text.parse().map_err(serde::de::Error::custom)).transpose()
    }
}

pub(crate) mod as_text {
    use crypto::PublicKey;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(key: &PublicKey, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(key)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PublicKey, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

pub(crate) mod ledger_as_text {
    use crypto::Digest;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(digest: &Digest, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(digest)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Digest, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

pub(crate) mod signature_as_text {
    use super::MISSING;
    use crypto::{KeyError, Signature};
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn text(signature: &Signature) -> String {
        match *signature == MISSING {
            true => String::new(),
            false => signature.to_string(),
        }
    }

    pub(super) fn signature(text: &str) -> Result<Signature, String> {
        if text.is_empty() {
            return Ok(MISSING);
        }
        let wrong = |_: KeyError| {
            format!("expected a signature of 128 hexadecimal digits, found {} characters", text.len())
        };
        text.parse().map_err(wrong)
    }

    pub fn serialize<S: Serializer>(signature: &Signature, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&text(signature))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Signature, D::Error> {
        signature(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

pub(crate) mod signatures_as_text {
    use super::signature_as_text::{signature, text};
    use crypto::Signature;
    use serde::ser::SerializeSeq;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(signatures: &[Signature], serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(signatures.len()))?;
        for one in signatures {
            list.serialize_element(&text(one))?;
        }
        list.end()
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Signature>, D::Error> {
        let texts = Vec::<String>::deserialize(deserializer)?;
        texts.iter().map(|text| signature(text).map_err(serde::de::Error::custom)).collect()
    }
}
