CREATE TABLE accounts (
    customer_id bigint PRIMARY KEY,
    name        varchar(64) NOT NULL
);

-- Amounts are in cents.
CREATE TABLE savings (
    customer_id bigint PRIMARY KEY,
    balance     bigint NOT NULL CHECK (balance >= 0)
);

CREATE TABLE checking (
    customer_id bigint PRIMARY KEY,
    balance     bigint NOT NULL
);
