//! Questions for columns: every answer is what a scan of the same snapshot gives.

#![allow(clippy::unwrap_used)] // A test fails where its preparation does.

mod histories;
mod hooked;
mod keeping;
mod keeping_up;
mod memory_bound;
mod on_disk;
mod refusals;
mod sharing;
mod speed;
mod threads;
mod world;
