//! What every store must do.

state::conformance!(memory::Memory);
