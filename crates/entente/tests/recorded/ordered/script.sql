-- What was done on the recorded network, in this order. A paragraph is one query of a session at the first node, or at another
-- one (`--@ at 3`); it succeeds, unless it says how it fails (`--@ fails 23505`). `--@ together 12` stands for as many sessions on all
-- nodes that send it together, each with its number for {n}. `--@ signed` is sent by HTTP, signed by the organisation's client.

-- Smallbank, as `crates/laboratory/workloads` has it.

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

INSERT INTO accounts SELECT n, 'customer ' || n FROM generate_series(1, 40) AS n;
INSERT INTO savings SELECT n, 1000 FROM generate_series(1, 40) AS n;
INSERT INTO checking SELECT n, 1000 FROM generate_series(1, 40) AS n

CALL balance(7, NULL)

CALL deposit_checking(3, 250)

--@ at 2
CALL transact_savings(3, -400)

--@ at 3
CALL send_payment(3, 4, 1000)

CALL write_check(5, 3000, NULL)

CALL amalgamate(6, 7)

--@ fails P0001
CALL send_payment(8, 9, 5000)

--@ fails 23514
CALL transact_savings(9, -2000)

--@ fails P0002
CALL balance(99, NULL)

--@ together 12
CALL send_payment(1, 2, {n})

--@ together 12
CALL amalgamate(10, 11)

--@ signed
CALL send_payment(12, 13, 77)

--@ signed fails 22023
CALL deposit_checking(12, -1)

-- Values of all types, and their text.

CREATE TYPE pair AS (x integer, y text)

CREATE TABLE every_type (
    id bigint PRIMARY KEY, b boolean, s smallint, i integer, n numeric, m numeric(10, 2), r real, d double precision,
    t text, v varchar(20), c char(5), y bytea, u uuid, da date, ti time, ts timestamp, tz timestamptz, iv interval,
    ia integer[], ta text[], p pair, pa pair[], na numeric[]
)

INSERT INTO every_type VALUES
    (1, true, -32768, 2147483647, 12345678901234567890.123456789, 12.345, 1.5, 2.5e-300, 'text', 'varying', 'char', '\x00ff',
     '00112233-4455-6677-8899-aabbccddeeff', '2026-11-23', '23:59:59.999999', '2026-11-23 10:00:00', '2026-11-23 10:00:00+02',
     '1 year 2 mons -3 days 04:05:06.7', '{1,NULL,3}', '{a,"b c",NULL,"\"q\""}', ROW(1, 'one'), ARRAY[ROW(2, 'two')::pair, NULL], '{1.10,NaN}'),
    (2, false, 0, 0, 'NaN', -0.01, 'Infinity', '-Infinity', '', '', '', '', NULL, 'infinity', '00:00:00', '-infinity', 'infinity',
     '0', '{}', '{}', NULL, '{}', '{}'),
    (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)

--@ signed
SELECT v, c, t, m, n, p, pa, ia, ts, tz, iv, u, y, r, d FROM every_type; UPDATE every_type SET v = v || '!', c = 'abc' WHERE id = 1 RETURNING *

UPDATE every_type SET p.y = 'ONE', ia = ARRAY[1, 2, 3], n = n * 3, d = d * 2, tz = tz + iv, t = t || ' höhe 日本' WHERE id = 1

-- Constraints, indexes, sequences, triggers, views.

CREATE TABLE items (
    id integer PRIMARY KEY, name varchar(12) NOT NULL UNIQUE, price numeric(8, 2) NOT NULL CHECK (price > 0), tags text[] DEFAULT '{}'
)

CREATE SEQUENCE order_numbers START WITH 1000 INCREMENT BY 5

CREATE TABLE orders (
    id bigserial PRIMARY KEY, number integer NOT NULL DEFAULT nextval('order_numbers'), small smallserial,
    item integer REFERENCES items ON UPDATE CASCADE ON DELETE SET NULL, quantity integer NOT NULL, placed timestamptz DEFAULT now(),
    line bigint GENERATED ALWAYS AS IDENTITY
)

CREATE TABLE log (at bigint, what text)

CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO log VALUES (coalesce(NEW.quantity, OLD.quantity), TG_OP || ' on ' || TG_TABLE_NAME);
    RETURN NULL;
END $$;
CREATE TRIGGER orders_noted AFTER INSERT OR UPDATE OR DELETE ON orders FOR EACH ROW EXECUTE FUNCTION note()

CREATE INDEX orders_by_quantity ON orders (quantity, id);
CREATE UNIQUE INDEX orders_by_number ON orders (number)

INSERT INTO items VALUES (1, 'nail', 0.05, '{small,metal}'), (2, 'bolt', 0.50), (3, 'board', 12.00), (4, 'beam', 89.90)

INSERT INTO orders (item, quantity) VALUES (1, 100), (2, 20), (3, 3) RETURNING number

--@ together 8
INSERT INTO orders (item, quantity) VALUES (4, {n})

UPDATE items SET id = 30 WHERE id = 3

DELETE FROM items WHERE id = 2

UPDATE orders SET quantity = quantity + 1 WHERE quantity BETWEEN 2 AND 5

DELETE FROM orders WHERE quantity = 7

CREATE VIEW totals AS SELECT item, sum(quantity) AS quantity, count(*) AS orders FROM orders GROUP BY item

CREATE VIEW cheap AS SELECT id, name, price FROM items WHERE price < 1

UPDATE cheap SET price = 0.06 WHERE name = 'nail'

--@ fails 23505
INSERT INTO items VALUES (5, 'nail', 1)

--@ fails 23502
INSERT INTO items VALUES (5, NULL, 1)

--@ fails 23514
INSERT INTO items VALUES (5, 'glue', 0)

--@ fails 23503
INSERT INTO orders (item, quantity) VALUES (99, 1)

--@ fails 22001
INSERT INTO items VALUES (5, 'a name of too many letters', 1)

--@ fails 22012
UPDATE items SET price = price / 0

-- More of PL/pgSQL.

CREATE AGGREGATE product(numeric) (SFUNC = numeric_mul, STYPE = numeric, INITCOND = '1')

CREATE FUNCTION tagged(wanted text) RETURNS TABLE (id integer, name text) LANGUAGE plpgsql AS $$
DECLARE
    one record;
BEGIN
    FOR one IN SELECT i.id, i.name, i.tags FROM items i ORDER BY i.id LOOP
        IF wanted = ANY (one.tags) THEN
            id := one.id;
            name := upper(one.name);
            RETURN NEXT;
        END IF;
    END LOOP;
END $$

CREATE PROCEDURE restock(INOUT done integer) LANGUAGE plpgsql AS $$
DECLARE
    c CURSOR FOR SELECT id FROM items ORDER BY id;
    key integer;
    list integer[] := '{}';
BEGIN
    done := 0;
    OPEN c;
    LOOP
        FETCH c INTO key;
        EXIT WHEN NOT FOUND;
        BEGIN
            EXECUTE 'INSERT INTO orders (item, quantity) VALUES ($1, $2)' USING key, 1000 / (key - 4);
            done := done + 1;
        EXCEPTION WHEN division_by_zero THEN
            RAISE NOTICE 'nothing of %', key;
            list := list || key;
        END;
    END LOOP;
    CLOSE c;
    INSERT INTO log VALUES (cardinality(list), array_to_string(list, ','));
END $$

CALL restock(0)

--@ signed
SELECT * FROM tagged('metal'); INSERT INTO log VALUES (9, 'tagged')

DO $$
BEGIN
    FOR n IN 1..5 LOOP
        INSERT INTO log VALUES (n, format('%s of %L', n, 'a DO block'));
    END LOOP;
END $$

--@ fails 22004
DO $$ DECLARE q text; BEGIN EXECUTE q; END $$

--@ fails 57014
DO $$ BEGIN LOOP NULL; END LOOP; END $$

DELETE FROM log WHERE at = 5 RETURNING what

-- Roles and schemas.

CREATE SCHEMA app;
CREATE TABLE app.settings (key text PRIMARY KEY, value text);
INSERT INTO app.settings VALUES ('colour', 'blue'), ('size', NULL)

CREATE ROLE clerk;
GRANT USAGE ON SCHEMA app TO clerk;
GRANT SELECT, UPDATE ON app.settings TO clerk;
GRANT SELECT ON totals TO PUBLIC

COMMENT ON TABLE items IS 'what there is to buy'

-- Tables that get another shape.

ALTER TABLE items ADD COLUMN weight double precision DEFAULT 0.5

ALTER TABLE log ALTER COLUMN at TYPE integer USING at::integer;
ALTER TABLE items RENAME COLUMN tags TO labels;
ALTER TABLE orders DROP COLUMN small

UPDATE items SET weight = 1.25, labels = labels || 'heavy'::text WHERE price > 10 RETURNING *

CREATE TABLE copied AS SELECT id, name FROM items;
INSERT INTO copied VALUES (77, 'many')

TRUNCATE copied;
DROP TABLE copied

-- A checkpoint, and more behind it.

CHECKPOINT

UPDATE accounts SET name = 'the first customer' WHERE customer_id = 1

UPDATE savings SET balance = balance + 1 WHERE customer_id <= 10

-- Transaction blocks, of which one must end.

BEGIN

SELECT balance FROM checking WHERE customer_id = 20

--@ at 3
BEGIN

--@ at 3
SELECT balance FROM checking WHERE customer_id = 20

UPDATE checking SET balance = 1234 WHERE customer_id = 20

SAVEPOINT s

--@ fails 23505
INSERT INTO accounts VALUES (1, 'again')

ROLLBACK TO s

INSERT INTO orders (item, quantity) VALUES (1, 555)

COMMIT

--@ at 3
UPDATE checking SET balance = 4321 WHERE customer_id = 20

--@ at 3 fails 40001
COMMIT

BEGIN

INSERT INTO log VALUES (0, 'never')

ROLLBACK

-- The charter is amended: a parameter, and an address that stays the same.

SELECT entente.set_charter('meter.transaction_steps', '900000')

--@ wait 25
SELECT entente.set_charter('block.batch_transactions', '8')

--@ together 24
CALL deposit_checking({n}, {n})

--@ wait 25
CALL send_payment(1, 2, 1)

CHECKPOINT

--@ together 12
UPDATE savings SET balance = balance + {n} WHERE customer_id = 15

DELETE FROM accounts WHERE customer_id = 40;
DELETE FROM savings WHERE customer_id = 40;
DELETE FROM checking WHERE customer_id = 40

INSERT INTO accounts VALUES (40, 'another one');
INSERT INTO savings VALUES (40, 1);
INSERT INTO checking VALUES (40, 1)
