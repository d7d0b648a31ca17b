CREATE TABLE accounts (id integer PRIMARY KEY, balance numeric(12,2) NOT NULL, rate numeric(5,4));
INSERT INTO accounts VALUES (1, 100.00, 0.0150), (2, 250.55, 0.0200), (3, 10.00, NULL);
CREATE PROCEDURE pay_interest(INOUT paid numeric, INOUT skipped integer) LANGUAGE plpgsql AS $$
DECLARE
  account record;
  interest numeric(12,2);
BEGIN
  paid := 0;
  skipped := 0;
  FOR account IN SELECT id, balance, rate FROM accounts ORDER BY id LOOP
    IF account.rate IS NULL THEN
      skipped := skipped + 1;
      CONTINUE;
    END IF;
    interest := account.balance * account.rate;
    UPDATE accounts SET balance = balance + interest WHERE id = account.id;
    paid := paid + interest;
  END LOOP;
END;
$$;
CALL pay_interest(NULL, NULL);
CALL pay_interest(NULL, NULL);
SELECT * FROM accounts ORDER BY id;
