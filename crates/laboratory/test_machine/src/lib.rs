//! What tests need of the machine they run on: programs beside the compiler, and ports that are free.

mod ports;
mod programs;

pub use ports::free_port_base;
pub use programs::{VARIABLE, leave_out, required};
