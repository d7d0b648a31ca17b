//! Append-only files of blocks, receipts and certificates, and the transaction index
