use borsh::{BorshDeserialize, BorshSerialize};
use serde::{Deserialize, Serialize};

/// What a client may conclude from the order of its own actions.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, BorshSerialize, BorshDeserialize, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Consistency {
    /// Who submits after an answer sees what was answered.
    #[default]
    Strict,
    /// Some serial order exists; a transaction may miss what was answered just before it was submitted.
    Serializable,
}

/// What happens to a transaction that cannot keep its place.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, BorshSerialize, BorshDeserialize, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum OnConflict {
    /// It runs again at the end of its batch.
    #[default]
    Reexecute,
    /// It runs again at the head of the next batch that is formed.
    Requeue,
    /// It is given up, and its client told.
    Abort,
}

/// What two transactions must share to be in conflict.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, BorshSerialize, BorshDeserialize, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Granularity {
    /// A column of a row.
    #[default]
    Column,
    /// A row.
    Row,
}

/// How a charter's protocol works. A protocol ignores what it has no use for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProtocolOptions {
    /// What a client may conclude from the order of its own actions.
    pub consistency: Consistency,
    /// What happens to a transaction that cannot keep its place.
    pub on_conflict: OnConflict,
    /// What two transactions must share to be in conflict.
    pub granularity: Granularity,
    /// A batch is simulated while the one before it takes effect, so it does not see that one (HarmonyBC,
    /// section 3.4).
    pub inter_block: bool,
    /// Harmony orders updates instead of rejecting all but one of a row's writers (HarmonyBC, section 3.3); Aria
    /// orders readers before writers.
    pub reordering: bool,
    /// The commands that wait on a row become one (HarmonyBC, section 3.3).
    pub coalescing: bool,
    /// If in the previous batch at least this share of transactions (in percent) ran twice, the next batch runs
    /// serially at once; 101 switches it off.
    pub serial_threshold_percent: u8,
}

impl Default for ProtocolOptions {
    fn default() -> ProtocolOptions {
        ProtocolOptions {
            consistency: Consistency::default(),
            on_conflict: OnConflict::default(),
            granularity: Granularity::default(),
            inter_block: true,
            reordering: true,
            coalescing: true,
            serial_threshold_percent: 101,
        }
    }
}
