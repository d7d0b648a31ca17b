-- The six procedures of Smallbank.
CREATE TABLE accounts (customer_id bigint PRIMARY KEY, name text NOT NULL);
CREATE TABLE savings (customer_id bigint PRIMARY KEY, balance bigint NOT NULL CHECK (balance >= 0));
CREATE TABLE checking (customer_id bigint PRIMARY KEY, balance bigint NOT NULL);
INSERT INTO accounts VALUES (1, 'Ada'), (2, 'Ben'), (3, 'Cleo');
INSERT INTO savings VALUES (1, 100), (2, 50), (3, 0);
INSERT INTO checking VALUES (1, 10), (2, 20), (3, 0);

CREATE PROCEDURE balance(id bigint, INOUT total bigint)
LANGUAGE plpgsql AS $$
DECLARE
  in_savings bigint;
  in_checking bigint;
BEGIN
  SELECT s.balance INTO in_savings FROM savings s WHERE s.customer_id = id;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'no customer %', id USING ERRCODE = 'no_data_found';
  END IF;
  SELECT c.balance INTO in_checking FROM checking c WHERE c.customer_id = id;
  total := in_savings + in_checking;
END;
$$;

CREATE PROCEDURE deposit_checking(id bigint, amount bigint)
LANGUAGE plpgsql AS $$
BEGIN
  IF amount < 0 THEN
    RAISE EXCEPTION 'a deposit of % is negative', amount;
  END IF;
  UPDATE checking SET balance = balance + amount WHERE customer_id = id;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'no customer %', id USING ERRCODE = 'no_data_found';
  END IF;
END;
$$;

CREATE PROCEDURE transact_savings(id bigint, amount bigint)
LANGUAGE plpgsql AS $$
BEGIN
  UPDATE savings SET balance = balance + amount WHERE customer_id = id;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'no customer %', id USING ERRCODE = 'no_data_found';
  END IF;
END;
$$;

CREATE PROCEDURE send_payment(sender bigint, receiver bigint, amount bigint)
LANGUAGE plpgsql AS $$
DECLARE
  available bigint;
BEGIN
  SELECT balance INTO available FROM checking WHERE customer_id = sender;
  IF available IS NULL THEN
    RAISE EXCEPTION 'no customer %', sender USING ERRCODE = 'no_data_found';
  ELSIF available < amount THEN
    RAISE EXCEPTION 'customer % has % and cannot send %', sender, available, amount
      USING ERRCODE = 'check_violation', HINT = 'Deposit first.';
  END IF;
  UPDATE checking SET balance = balance - amount WHERE customer_id = sender;
  UPDATE checking SET balance = balance + amount WHERE customer_id = receiver;
END;
$$;

CREATE PROCEDURE write_check(id bigint, amount bigint)
LANGUAGE plpgsql AS $$
DECLARE
  in_savings bigint;
  in_checking bigint;
  penalty bigint := 0;
BEGIN
  SELECT s.balance INTO STRICT in_savings FROM savings s WHERE s.customer_id = id;
  SELECT c.balance INTO STRICT in_checking FROM checking c WHERE c.customer_id = id;
  IF in_savings + in_checking < amount THEN
    penalty := 1;
  END IF;
  UPDATE checking SET balance = balance - amount - penalty WHERE customer_id = id;
END;
$$;

CREATE PROCEDURE amalgamate(giver bigint, taker bigint)
LANGUAGE plpgsql AS $$
DECLARE
  total bigint;
  part bigint;
BEGIN
  SELECT balance INTO STRICT total FROM savings WHERE customer_id = giver;
  SELECT balance INTO STRICT part FROM checking WHERE customer_id = giver;
  total := total + part;
  UPDATE savings SET balance = 0 WHERE customer_id = giver;
  UPDATE checking SET balance = 0 WHERE customer_id = giver;
  UPDATE checking SET balance = balance + total WHERE customer_id = taker;
END;
$$;

CALL balance(1, NULL);
CALL balance(9, NULL);
CALL deposit_checking(1, 5);
CALL deposit_checking(1, -5);
CALL deposit_checking(9, 5);
CALL transact_savings(2, -30);
CALL transact_savings(2, -30);
CALL transact_savings(9, 1);
CALL send_payment(1, 2, 15);
CALL send_payment(1, 2, 1);
CALL send_payment(9, 2, 1);
CALL write_check(1, 50);
CALL write_check(2, 500);
CALL write_check(9, 1);
CALL amalgamate(1, 3);
CALL amalgamate(9, 3);
SELECT * FROM savings ORDER BY customer_id;
SELECT * FROM checking ORDER BY customer_id;
SELECT sum(balance) FROM savings;
