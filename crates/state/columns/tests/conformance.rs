//! What every store must do, also where it has columns.

state::conformance!(columns::WithColumns::new(std::sync::Arc::new(memory::Memory), 1 << 30));
