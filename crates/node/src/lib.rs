//! One organisation's node: the pipeline from ordered block to receipt, recovery and catch-up
