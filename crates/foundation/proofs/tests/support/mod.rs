//! A charter of organisations whose keys tests know.

use crypto::SecretKey;
use types::{Charter, Organisation};

pub fn node_key(member: usize) -> SecretKey {
    SecretKey::from_bytes([member as u8 + 101; 32])
}

/// Of this many organisations.
pub fn charter(nonce: u64, members: usize) -> Charter {
    let mut charter = Charter::with_defaults("test", nonce);
    for member in 0..members {
        charter.organisations.push(Organisation {
            name: format!("org{}", member + 1),
            root_key: SecretKey::from_bytes([member as u8 + 1; 32]).public_key(),
            node_key: node_key(member).public_key(),
            address: format!("127.0.0.1:{}", 7_000 + member),
            gateway: String::new(),
            removed: false,
            node_key_expires: None,
        });
    }
    charter
}
