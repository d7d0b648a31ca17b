-- The sum of a customer's two balances.
CREATE PROCEDURE balance(customer bigint, OUT total bigint) LANGUAGE plpgsql AS $$
DECLARE
    in_savings  bigint;
    in_checking bigint;
BEGIN
    SELECT balance INTO in_savings FROM savings WHERE customer_id = customer;
    SELECT balance INTO in_checking FROM checking WHERE customer_id = customer;
    IF in_savings IS NULL OR in_checking IS NULL THEN
        RAISE EXCEPTION 'customer % does not exist', customer USING ERRCODE = 'P0002';
    END IF;
    total := in_savings + in_checking;
END
$$;

-- Puts money into a customer's checking account.
CREATE PROCEDURE deposit_checking(customer bigint, amount bigint) LANGUAGE plpgsql AS $$
BEGIN
    IF amount < 0 THEN
        RAISE EXCEPTION 'a deposit of % is negative', amount USING ERRCODE = '22023';
    END IF;
    UPDATE checking SET balance = balance + amount WHERE customer_id = customer;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'customer % does not exist', customer USING ERRCODE = 'P0002';
    END IF;
END
$$;

-- Puts money into savings, or takes it out; the table's CHECK keeps the balance from falling below zero.
CREATE PROCEDURE transact_savings(customer bigint, amount bigint) LANGUAGE plpgsql AS $$
BEGIN
    UPDATE savings SET balance = balance + amount WHERE customer_id = customer;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'customer % does not exist', customer USING ERRCODE = 'P0002';
    END IF;
END
$$;

-- Moves money from one checking account to another, if there is enough.
CREATE PROCEDURE send_payment(sender bigint, receiver bigint, amount bigint) LANGUAGE plpgsql AS $$
BEGIN
    UPDATE checking SET balance = balance - amount WHERE customer_id = sender AND balance >= amount;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'customer % cannot pay %', sender, amount
            USING HINT = 'Pay less, or deposit first.';
    END IF;
    UPDATE checking SET balance = balance + amount WHERE customer_id = receiver;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'customer % does not exist', receiver USING ERRCODE = 'P0002';
    END IF;
END
$$;

-- Cashes a check; where both accounts together do not cover it, it is cashed all the same and costs one more.
CREATE PROCEDURE write_check(customer bigint, amount bigint, OUT charged bigint) LANGUAGE plpgsql AS $$
DECLARE
    in_savings  bigint;
    in_checking bigint;
BEGIN
    SELECT balance INTO in_savings FROM savings WHERE customer_id = customer;
    SELECT balance INTO in_checking FROM checking WHERE customer_id = customer;
    IF in_savings IS NULL OR in_checking IS NULL THEN
        RAISE EXCEPTION 'customer % does not exist', customer USING ERRCODE = 'P0002';
    END IF;
    IF in_savings + in_checking < amount THEN
        charged := amount + 1;
    ELSE
        charged := amount;
    END IF;
    UPDATE checking SET balance = balance - charged WHERE customer_id = customer;
END
$$;

-- Moves everything that one customer has to another's checking account.
CREATE PROCEDURE amalgamate(sender bigint, receiver bigint) LANGUAGE plpgsql AS $$
DECLARE
    in_savings  bigint;
    in_checking bigint;
BEGIN
    SELECT balance INTO in_savings FROM savings WHERE customer_id = sender;
    SELECT balance INTO in_checking FROM checking WHERE customer_id = sender;
    IF in_savings IS NULL OR in_checking IS NULL THEN
        RAISE EXCEPTION 'customer % does not exist', sender USING ERRCODE = 'P0002';
    END IF;
    UPDATE savings SET balance = 0 WHERE customer_id = sender;
    UPDATE checking SET balance = 0 WHERE customer_id = sender;
    UPDATE checking SET balance = balance + in_savings + in_checking WHERE customer_id = receiver;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'customer % does not exist', receiver USING ERRCODE = 'P0002';
    END IF;
END
$$;
