//! Ordering of transactions into blocks: solo and Byzantine-fault-tolerant
