//! The deterministic core: blocks in, receipts and state digest out
