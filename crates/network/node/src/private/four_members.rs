//! A network of four organisations, for tests.

use crypto::SecretKey;
use types::{Charter, Organisation};

/// The node key of an organisation.
pub(super) fn key(member: u16) -> SecretKey {
    SecretKey::from_bytes([member as u8 + 1; 32])
}

/// Their charter, with a window of five blocks.
pub(super) fn charter() -> Charter {
    let mut charter = Charter::with_defaults("test", 1);
    charter.window_blocks = 5;
    for member in 0..4 {
        charter.organisations.push(Organisation {
            name: format!("org{member}"),
            root_key: key(member).public_key(),
            node_key: key(member).public_key(),
            address: format!("127.0.0.1:{}", 7000 + member),
            gateway: String::new(),
            removed: false,
            node_key_expires: None,
        });
    }
    charter
}
