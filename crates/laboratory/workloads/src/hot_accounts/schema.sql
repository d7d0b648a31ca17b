CREATE TABLE hot_accounts (
    account_id bigint PRIMARY KEY,
    balance    bigint NOT NULL
);
