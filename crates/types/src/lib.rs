//! Values, rows, schemas, transactions, blocks, receipts and the charter, with their canonical encoding
