use types::CheckpointRoot;

/// What the pipeline is asked to make again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Heal {
    /// The blocks from this height on: their outcomes are not those of a quorum.
    Blocks(u64),
    /// The state: what it was behind the block at this height is not what it is at a quorum. What blocks came to is.
    State {
        /// The height of the checkpoint.
        height: u64,
        /// What the state is there; `None` where no root finds a quorum.
        expected: Option<CheckpointRoot>,
        /// Up to here roots agree.
        agreed: u64,
    },
}
