//! Members whose keys everybody knows.

use crypto::SecretKey;
use types::{Charter, Organisation};

/// The node key of organisation number `organisation` in a [`charter`].
pub fn node_key(organisation: usize) -> SecretKey {
    SecretKey::from_bytes([organisation as u8 + 101; 32])
}

/// The key that organisation number `organisation` of a [`charter`] signs charter and clients with.
pub fn root_key(organisation: usize) -> SecretKey {
    SecretKey::from_bytes([organisation as u8 + 1; 32])
}

/// Organisation number `position` of a [`charter`], or one that comes in later.
pub fn organisation(position: usize) -> Organisation {
    Organisation {
        name: format!("org{}", position + 1),
        root_key: root_key(position).public_key(),
        node_key: node_key(position).public_key(),
        address: format!("127.0.0.1:{}", 7_000 + position),
        gateway: String::new(),
        removed: false,
        node_key_expires: None,
    }
}

/// A charter with `members` organisations that everybody knows the keys of.
pub fn charter(nonce: u64, members: usize) -> Charter {
    let mut charter = Charter::with_defaults("simulation", nonce);
    charter.organisations = (0..members).map(organisation).collect();
    for position in 0..members {
        charter.sign(position, &root_key(position));
    }
    charter
}
