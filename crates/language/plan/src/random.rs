//! `gen_random_uuid`, `random` and `gen_random_bytes`: functions that run in the execution of their statement, and draw from a seed that is
//! the same for every node.

use types::DataType;

/// A call of one of them stands under its name; no function of the ledger has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RandomFunction {
    /// `gen_random_uuid()`, and `uuid_generate_v4()` of the extension uuid-ossp.
    Uuid,
    /// `random()`: from 0 up to and without 1.
    Double,
    /// `gen_random_bytes(count)` of the extension pgcrypto.
    Bytes,
}

impl RandomFunction {
    const ALL: [RandomFunction; 3] = [RandomFunction::Uuid, RandomFunction::Double, RandomFunction::Bytes];

    /// The name under which a call stands.
    pub fn name(self) -> &'static str {
        match self {
            RandomFunction::Uuid => "pg_catalog.gen_random_uuid",
            RandomFunction::Double => "pg_catalog.random",
            RandomFunction::Bytes => "pg_catalog.gen_random_bytes",
        }
    }

    /// The function whose calls stand under this name.
    pub fn named(name: &str) -> Option<RandomFunction> {
        RandomFunction::ALL.into_iter().find(|function| function.name() == name)
    }

    /// What SQL calls by this name.
    pub fn called(name: &str) -> Option<RandomFunction> {
        Some(match name {
            "gen_random_uuid" | "uuid_generate_v4" => RandomFunction::Uuid,
            "random" => RandomFunction::Double,
            "gen_random_bytes" => RandomFunction::Bytes,
            _ => return None,
        })
    }

    /// The types of its arguments.
    pub(crate) fn arguments(self) -> &'static [DataType] {
        match self {
            RandomFunction::Uuid | RandomFunction::Double => &[],
            RandomFunction::Bytes => &[DataType::Integer],
        }
    }

    /// The type of its values.
    pub(crate) fn result(self) -> DataType {
        match self {
            RandomFunction::Uuid => DataType::Uuid,
            RandomFunction::Double => DataType::Double,
            RandomFunction::Bytes => DataType::Bytea,
        }
    }
}
