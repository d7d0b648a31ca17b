use crate::{Credential, Payload, RequestId, SignedTransaction, Transaction};
use crypto::{Digest, SecretKey, Signature};
use serde::{Deserialize, Serialize};

/// Who signs: a key, and the word of an organisation that the key is its client's on this ledger.
#[derive(Clone, Debug)]
pub struct Identity {
    ledger: Digest,
    key: SecretKey,
    credential: Credential,
}

/// Why a file is no identity.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("expected an identity file as `entente init` writes it: {0}")]
pub struct IdentityError(String);

/// The file that `entente init` writes for a client.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct IdentityFile {
    ledger: String,
    secret_key: String,
    organisation: u16,
    credential: String,
}

impl Identity {
    /// Puts together what an organisation has issued.
    pub fn new(ledger: Digest, key: SecretKey, credential: Credential) -> Identity {
        Identity { ledger, key, credential }
    }

    /// A new client of organisation number `organisation`, issued with its root key.
    pub fn issue(ledger: Digest, root: &SecretKey, organisation: u16) -> Identity {
        let key = SecretKey::generate();
        let credential = Credential::issue(root, organisation, &ledger, &key.public_key());
        Identity { ledger, key, credential }
    }

    /// The key that others know it by.
    pub fn public_key(&self) -> crypto::PublicKey {
        self.key.public_key()
    }

    /// Whether the organisation with this root key has said that the key is its client's.
    pub fn is_vouched_for_by(&self, root: &crypto::PublicKey) -> bool {
        self.credential.verify(root, &self.ledger, &self.public_key())
    }

    /// The ledger that it signs for.
    pub fn ledger(&self) -> Digest {
        self.ledger
    }

    /// Signs a transaction that may stand up to height `expires_at`, under a new request id.
    ///
    /// Keep the signed transaction until its receipt is there: submitting the same one again commits once.
    pub fn sign(&self, payload: Payload, expires_at: u64) -> SignedTransaction {
        self.sign_as(String::new(), payload, expires_at)
    }

    /// The same in the name of a role of the organisation; an empty one is its administrator.
    pub fn sign_as(&self, role: String, payload: Payload, expires_at: u64) -> SignedTransaction {
        self.sign_request(RequestId(crypto::random_bytes()), role, payload, expires_at)
    }

    /// Signs under a request id that follows from what is signed: signed again until this height, it is the same transaction.
    pub fn sign_repeatable(&self, payload: Payload, expires_at: u64) -> SignedTransaction {
        let digest = crypto::sha256(&[&expires_at.to_le_bytes(), &crate::encode(&payload)]);
        let request = RequestId(std::array::from_fn(|byte| digest.0[byte]));
        self.sign_request(request, String::new(), payload, expires_at)
    }

    /// Signs under a request id of the caller's choice, unique among this key's transactions that have not expired.
    pub fn sign_request(
        &self,
        request: RequestId,
        role: String,
        payload: Payload,
        expires_at: u64,
    ) -> SignedTransaction {
        let client = self.key.public_key();
        let transaction = Transaction { ledger: self.ledger, client, request, expires_at, role, payload };
        transaction.sign(&self.key, self.credential)
    }

    pub(crate) fn key(&self) -> &SecretKey {
        &self.key
    }

    pub(crate) fn credential(&self) -> Credential {
        self.credential
    }

    /// As a file. It holds the secret key: readable by its owner alone.
    pub fn to_toml(&self) -> String {
        let file = IdentityFile {
            ledger: self.ledger.to_string(),
            secret_key: self.key.to_hex(),
            organisation: self.credential.organisation,
            credential: self.credential.signature.to_string(),
        };
        toml::to_string(&file).expect("four plain fields")
    }

    /// Position of the organisation that vouches for the key.
    pub fn organisation(&self) -> u16 {
        self.credential.organisation
    }

    /// Reads what [`Identity::to_toml`] wrote.
    ///
    /// # Errors
    /// [`IdentityError`] names the field that is wrong.
    pub fn from_toml(text: &str) -> Result<Identity, IdentityError> {
        let wrong = |field: &str, error: String| IdentityError(format!("{field}: {error}"));
        let file: IdentityFile = toml::from_str(text).map_err(|error| IdentityError(error.to_string()))?;
        let ledger = file.ledger.parse().map_err(|error| wrong("ledger", error))?;
        let key =
            SecretKey::from_hex(&file.secret_key).map_err(|error| wrong("secret_key", error.to_string()))?;
        let signature: Signature = file
            .credential
            .parse()
            .map_err(|_| wrong("credential", "expected 128 hexadecimal digits".into()))?;
        Ok(Identity { ledger, key, credential: Credential { organisation: file.organisation, signature } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identity_files_round_trip() {
        let root = SecretKey::from_bytes([1; 32]);
        let ledger = crypto::sha256(&[b"ledger"]);
        let identity = Identity::issue(ledger, &root, 2);
        let read = Identity::from_toml(&identity.to_toml()).expect("what to_toml wrote");
        let payload = Payload::Call { procedure: "p".into(), arguments: vec![] };
        let signed = read.sign_request(RequestId([1; 16]), "clerk".into(), payload.clone(), 9);
        assert_eq!(signed, identity.sign_request(RequestId([1; 16]), "clerk".into(), payload, 9));
        assert!(signed.verify_signature());
        assert!(signed.credential.verify(&root.public_key(), &ledger, &signed.transaction.client));
    }

    #[test]
    fn a_wrong_field_is_named() {
        let identity = Identity::issue(Digest::ZERO, &SecretKey::from_bytes([1; 32]), 2).to_toml();
        let wrong = identity.replace("credential = \"", "credential = \"xy");
        let error = Identity::from_toml(&wrong).expect_err("not hexadecimal");
        assert!(error.to_string().contains("credential"), "{error}");
        assert!(Identity::from_toml("ledger = 3").is_err());
    }
}
