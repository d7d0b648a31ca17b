//! Tables in memory with snapshots, commands, state digest and checkpoints
