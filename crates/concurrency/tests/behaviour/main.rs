//! What protocols promise: the rules one by one, the reference models' cases, random histories.

mod driver;
mod program;
mod random_histories;
mod reference_models;
mod rules;
mod serial_order;
