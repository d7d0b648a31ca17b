//! The canonical encoding of charters. Parameters that an execution version has brought are in the charters of that version and
//! of later ones alone: the digest of a charter names its ledger, and those that there are keep their names.

use crate::{BlockLimits, Charter, ExecutionVersion, limits};
use borsh::{BorshDeserialize, BorshSerialize};
use std::io::{Read, Result, Write};

impl BorshSerialize for Charter {
    fn serialize<W: Write>(&self, writer: &mut W) -> Result<()> {
        // Whoever adds a field is asked here where it goes.
        let Charter {
            name,
            nonce,
            version,
            founding,
            governance,
            execution_version,
            execution,
            protocol,
            ordering,
            checkpoint_blocks,
            checkpoint_rows,
            window_blocks,
            expiry_blocks_max,
            outcome_quorum,
            outcome_lag_blocks,
            concurrency,
            endorsement,
            block,
            meter,
            organisations,
            signatures,
        } = self;
        (name, nonce, version, founding, governance).serialize(writer)?;
        (execution_version, execution, protocol, ordering, checkpoint_blocks).serialize(writer)?;
        if has_rows(*execution_version) {
            checkpoint_rows.serialize(writer)?;
        }
        if has_window(*execution_version) {
            window_blocks.serialize(writer)?;
        }
        let BlockLimits {
            transactions_max,
            bytes_max,
            transaction_bytes_max,
            fill_ms,
            idle_ms,
            batch_transactions,
        } = block;
        if has_transaction_bytes(*execution_version) {
            transaction_bytes_max.serialize(writer)?;
        }
        (expiry_blocks_max, outcome_quorum, outcome_lag_blocks, concurrency, endorsement)
            .serialize(writer)?;
        (transactions_max, bytes_max, fill_ms, idle_ms, batch_transactions).serialize(writer)?;
        (meter, organisations, signatures).serialize(writer)
    }
}

impl BorshDeserialize for Charter {
    fn deserialize_reader<R: Read>(reader: &mut R) -> Result<Charter> {
        let (name, nonce, version, founding, governance) = read(reader)?;
        let (execution_version, execution, protocol, ordering, checkpoint_blocks) = read(reader)?;
        let checkpoint_rows = match has_rows(execution_version) {
            true => read(reader)?,
            false => Charter::CHECKPOINT_ROWS_DEFAULT,
        };
        let window_blocks = match has_window(execution_version) {
            true => read(reader)?,
            false => Charter::WINDOW_BLOCKS_DEFAULT,
        };
        let transaction_bytes_max = match has_transaction_bytes(execution_version) {
            true => read(reader)?,
            false => limits::TRANSACTION_BYTES_BEFORE,
        };
        let (expiry_blocks_max, outcome_quorum, outcome_lag_blocks, concurrency, endorsement) = read(reader)?;
        let (transactions_max, bytes_max, fill_ms, idle_ms, batch_transactions) = read(reader)?;
        let block = BlockLimits {
            transactions_max,
            bytes_max,
            transaction_bytes_max,
            fill_ms,
            idle_ms,
            batch_transactions,
        };
        let (meter, organisations, signatures) = read(reader)?;
        Ok(Charter {
            name,
            nonce,
            version,
            founding,
            governance,
            execution_version,
            execution,
            protocol,
            ordering,
            checkpoint_blocks,
            checkpoint_rows,
            window_blocks,
            expiry_blocks_max,
            outcome_quorum,
            outcome_lag_blocks,
            concurrency,
            endorsement,
            block,
            meter,
            organisations,
            signatures,
        })
    }
}

fn read<T: BorshDeserialize>(reader: &mut impl Read) -> Result<T> {
    T::deserialize_reader(reader)
}

/// Whether charters that name this version say how many changed rows lead to a checkpoint.
pub(crate) fn has_rows(execution_version: u32) -> bool {
    execution_version >= ExecutionVersion::V3.number()
}

/// Whether charters that name this version say when transactions in several schemas with members are decided at the latest.
pub(crate) fn has_window(execution_version: u32) -> bool {
    execution_version >= ExecutionVersion::V4.number()
}

/// Whether charters that name this version say how long a transaction may be.
pub(crate) fn has_transaction_bytes(execution_version: u32) -> bool {
    execution_version >= ExecutionVersion::V14.number()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{decode_exactly, encode};

    #[test]
    fn only_charters_of_a_version_have_what_it_has_brought() {
        let of = |execution_version| {
            let mut charter = Charter { execution_version, ..Charter::with_defaults("test", 7) };
            charter.block.transaction_bytes_max = limits::TRANSACTION_BYTES_BEFORE;
            charter
        };
        for version in [1, 2, 3, 4, 13, 14] {
            let charter = of(version);
            let bytes = encode(&charter);
            assert_eq!(decode_exactly::<Charter>(&bytes).expect("it was encoded"), charter);
            for length in 0..bytes.len() {
                assert!(decode_exactly::<Charter>(&bytes[..length]).is_err(), "{length} bytes");
            }
            // All fields, in the order that the program had them in before there was a third version.
            let first = (
                (&charter.name, charter.nonce, charter.version, charter.founding, &charter.governance),
                (charter.execution_version, &charter.execution, &charter.protocol, &charter.ordering),
                charter.checkpoint_blocks,
            );
            let rest = (
                (charter.expiry_blocks_max, charter.outcome_quorum, charter.outcome_lag_blocks),
                (&charter.concurrency, &charter.endorsement),
                (charter.block.transactions_max, charter.block.bytes_max),
                (charter.block.fill_ms, charter.block.idle_ms, charter.block.batch_transactions),
                (&charter.meter, &charter.organisations, &charter.signatures),
            );
            let rows = if version >= 3 { encode(&250_000u32) } else { Vec::new() };
            let window = if version >= 4 { encode(&24u32) } else { Vec::new() };
            let transaction = if version >= 14 { encode(&(256 * 1024u32)) } else { Vec::new() };
            let expected = [encode(&first), rows, window, transaction, encode(&rest)].concat();
            assert_eq!(bytes, expected, "version {version}");
            let text = charter.to_toml();
            for parameter in ["checkpoint_rows", "window_blocks", "transaction_bytes_max"] {
                assert!(!text.contains(parameter), "{text}");
            }
            assert_eq!(toml::from_str::<Charter>(&text).expect("it was written"), charter);
        }
        let other = Charter { checkpoint_rows: 5_000, ..of(3) };
        assert!(other.to_toml().contains("checkpoint_rows = 5000"));
        assert_ne!(other.ledger(), of(3).ledger());
        let other = Charter { window_blocks: 30, ..of(4) };
        assert!(other.to_toml().contains("window_blocks = 30"));
        assert_ne!(other.ledger(), of(4).ledger());
        let other = Charter { execution_version: 14, ..Charter::with_defaults("test", 7) };
        assert!(other.to_toml().contains("transaction_bytes_max = 2097152"));
        assert_ne!(other.ledger(), of(14).ledger());
    }
}
