//! What a charter says of who executes transactions.

use crypto::SecretKey;
use types::{Charter, CharterError, ExecutionModel, Organisation};

/// A charter of one organisation, signed.
fn signed(change: impl FnOnce(&mut Charter)) -> Charter {
    let mut charter = Charter::with_defaults("test", 1);
    charter.ordering = "solo".to_string();
    let root = SecretKey::from_bytes([1; 32]);
    charter.organisations.push(Organisation {
        name: "one".to_string(),
        root_key: root.public_key(),
        node_key: SecretKey::from_bytes([2; 32]).public_key(),
        address: String::new(),
        gateway: String::new(),
        removed: false,
        node_key_expires: None,
    });
    change(&mut charter);
    charter.sign(0, &root);
    charter
}

#[test]
fn scripts_take_effect_in_the_order_of_the_block() {
    for (protocol, is_in_order) in
        [("serial", true), ("block-stm", true), ("harmony", false), ("aria", false)]
    {
        let charter = signed(|charter| {
            charter.execution = ExecutionModel::WhateverThenAgree;
            charter.protocol = protocol.to_string();
        });
        let read = Charter::from_toml(&charter.to_toml());
        match is_in_order {
            true => assert_eq!(read, Ok(charter)),
            false => {
                let error = read.expect_err("another order");
                assert!(matches!(&error, CharterError::Value { field: "protocol", .. }), "{error}");
                let message = error.to_string();
                assert!(
                    message.contains("`serial` or `block-stm`") && message.contains(protocol),
                    "{message}"
                );
            }
        }
    }
}

#[test]
fn a_charter_names_who_executes() {
    let charter = signed(|charter| {
        charter.execution = ExecutionModel::WhateverThenAgree;
        charter.protocol = "serial".to_string();
    });
    assert!(charter.to_toml().contains("execution = \"whatever-then-agree\""), "{}", charter.to_toml());
    assert!(charter.blocks_stand_alone(), "no block depends on what the one before has left in memory");
}
