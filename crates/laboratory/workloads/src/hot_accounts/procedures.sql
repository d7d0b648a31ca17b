-- A blank transaction: all of a transaction but its contract.
CREATE PROCEDURE hot_0() LANGUAGE plpgsql AS $$
BEGIN
    NULL;
END
$$;

-- Reads 4 accounts, writes 4 others with what came of it, and says what that was.
CREATE PROCEDURE hot_4(r1 bigint, r2 bigint, r3 bigint, r4 bigint, w1 bigint, w2 bigint, w3 bigint, w4 bigint, OUT total bigint) LANGUAGE plpgsql AS $$
DECLARE
    one bigint;
BEGIN
    total := 0;
    SELECT balance INTO one FROM hot_accounts WHERE account_id = r1;
    total := total + one;
    SELECT balance INTO one FROM hot_accounts WHERE account_id = r2;
    total := total + one;
    SELECT balance INTO one FROM hot_accounts WHERE account_id = r3;
    total := total + one;
    SELECT balance INTO one FROM hot_accounts WHERE account_id = r4;
    total := total + one;
    UPDATE hot_accounts SET balance = (total + 1) % 1000 WHERE account_id = w1;
    UPDATE hot_accounts SET balance = (total + 2) % 1000 WHERE account_id = w2;
    UPDATE hot_accounts SET balance = (total + 3) % 1000 WHERE account_id = w3;
    UPDATE hot_accounts SET balance = (total + 4) % 1000 WHERE account_id = w4;
END
$$;

-- Reads 8 accounts, writes 8 others with what came of it, and says what that was.
CREATE PROCEDURE hot_8(r1 bigint, r2 bigint, r3 bigint, r4 bigint, r5 bigint, r6 bigint, r7 bigint, r8 bigint, w1 bigint, w2 bigint, w3 bigint, w4 bigint, w5 bigint, w6 bigint, w7 bigint, w8 bigint, OUT total bigint) LANGUAGE plpgsql AS $$
DECLARE
    one bigint;
BEGIN
    total := 0;
    SELECT balance INTO one FROM hot_accounts WHERE account_id = r1;
    total := total + one;
    SELECT balance INTO one FROM hot_accounts WHERE account_id = r2;
    total := total + one;
    SELECT balance INTO one FROM hot_accounts WHERE account_id = r3;
    total := total + one;
    SELECT balance INTO one FROM hot_accounts WHERE account_id = r4;
    total := total + one;
    SELECT balance INTO one FROM hot_accounts WHERE account_id = r5;
    total := total + one;
    SELECT balance INTO one FROM hot_accounts WHERE account_id = r6;
    total := total + one;
    SELECT balance INTO one FROM hot_accounts WHERE account_id = r7;
    total := total + one;
    SELECT balance INTO one FROM hot_accounts WHERE account_id = r8;
    total := total + one;
    UPDATE hot_accounts SET balance = (total + 1) % 1000 WHERE account_id = w1;
    UPDATE hot_accounts SET balance = (total + 2) % 1000 WHERE account_id = w2;
    UPDATE hot_accounts SET balance = (total + 3) % 1000 WHERE account_id = w3;
    UPDATE hot_accounts SET balance = (total + 4) % 1000 WHERE account_id = w4;
    UPDATE hot_accounts SET balance = (total + 5) % 1000 WHERE account_id = w5;
    UPDATE hot_accounts SET balance = (total + 6) % 1000 WHERE account_id = w6;
    UPDATE hot_accounts SET balance = (total + 7) % 1000 WHERE account_id = w7;
    UPDATE hot_accounts SET balance = (total + 8) % 1000 WHERE account_id = w8;
END
$$;
