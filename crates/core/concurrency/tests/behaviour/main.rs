//! What protocols promise: the rules one by one, the reference models' cases, random histories.

#![allow(clippy::unwrap_used, reason = "everything here is a test")]

mod checks;
mod driver;
mod endorsed;
mod footprints;
mod inter_block;
mod parts;
mod parts_rules;
mod pipelines;
mod program;
mod random_histories;
mod reference_models;
mod rival_histories;
mod rival_rules;
mod rules;
mod serial_order;
mod sparse;
