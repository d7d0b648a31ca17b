//! The canonical encoding of charters. Parameters that an execution version has brought are in the charters of that version and
//! of later ones alone: the digest of a charter names its ledger, and those that there are keep their names.

use crate::{Charter, ExecutionVersion};
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
        (expiry_blocks_max, outcome_quorum, outcome_lag_blocks, concurrency, endorsement)
            .serialize(writer)?;
        (block, meter, organisations, signatures).serialize(writer)
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
        let (expiry_blocks_max, outcome_quorum, outcome_lag_blocks, concurrency, endorsement) = read(reader)?;
        let (block, meter, organisations, signatures) = read(reader)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{decode_exactly, encode};

    #[test]
    fn only_charters_of_a_version_have_what_it_has_brought() {
        let of = |execution_version| Charter { execution_version, ..Charter::with_defaults("test", 7) };
        for version in [1, 2, 3, 4] {
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
                (&charter.concurrency, &charter.endorsement, &charter.block, &charter.meter),
                (&charter.organisations, &charter.signatures),
            );
            let rows = if version >= 3 { encode(&250_000u32) } else { Vec::new() };
            let window = if version >= 4 { encode(&24u32) } else { Vec::new() };
            assert_eq!(bytes, [encode(&first), rows, window, encode(&rest)].concat(), "version {version}");
            let text = charter.to_toml();
            assert!(!text.contains("checkpoint_rows") && !text.contains("window_blocks"));
            assert_eq!(toml::from_str::<Charter>(&text).expect("it was written"), charter);
        }
        let other = Charter { checkpoint_rows: 5_000, ..of(3) };
        assert!(other.to_toml().contains("checkpoint_rows = 5000"));
        assert_ne!(other.ledger(), of(3).ledger());
        let other = Charter { window_blocks: 30, ..of(4) };
        assert!(other.to_toml().contains("window_blocks = 30"));
        assert_ne!(other.ledger(), of(4).ledger());
    }
}
