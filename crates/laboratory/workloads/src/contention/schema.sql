-- Amounts are in cents.
CREATE TABLE wallets (
    wallet_id bigint PRIMARY KEY,
    balance   bigint NOT NULL
);
