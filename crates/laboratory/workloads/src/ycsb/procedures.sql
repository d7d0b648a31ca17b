-- Ten operations of a transaction: `ycsb_n` has n updates by command, spread evenly among reads whose values the client
-- gets to see (their sum). One procedure for every number of updates, because a branch on an argument would hide from
-- an analysis of the statements what a call touches. SQL here has no arrays, so every key is a parameter of its own.
CREATE PROCEDURE ycsb_0(
    key_1 bigint, key_2 bigint, key_3 bigint, key_4 bigint, key_5 bigint,
    key_6 bigint, key_7 bigint, key_8 bigint, key_9 bigint, key_10 bigint,
    amount bigint, OUT total bigint
) LANGUAGE plpgsql AS $$
DECLARE
    looked_at bigint;
BEGIN
    total := 0;
    SELECT v INTO looked_at FROM usertable WHERE key = key_1;
    total := total + looked_at;
    SELECT v INTO looked_at FROM usertable WHERE key = key_2;
    total := total + looked_at;
    SELECT v INTO looked_at FROM usertable WHERE key = key_3;
    total := total + looked_at;
    SELECT v INTO looked_at FROM usertable WHERE key = key_4;
    total := total + looked_at;
    SELECT v INTO looked_at FROM usertable WHERE key = key_5;
    total := total + looked_at;
    SELECT v INTO looked_at FROM usertable WHERE key = key_6;
    total := total + looked_at;
    SELECT v INTO looked_at FROM usertable WHERE key = key_7;
    total := total + looked_at;
    SELECT v INTO looked_at FROM usertable WHERE key = key_8;
    total := total + looked_at;
    SELECT v INTO looked_at FROM usertable WHERE key = key_9;
    total := total + looked_at;
    SELECT v INTO looked_at FROM usertable WHERE key = key_10;
    total := total + looked_at;
END
$$;

CREATE PROCEDURE ycsb_1(
    key_1 bigint, key_2 bigint, key_3 bigint, key_4 bigint, key_5 bigint,
    key_6 bigint, key_7 bigint, key_8 bigint, key_9 bigint, key_10 bigint,
    amount bigint, OUT total bigint
) LANGUAGE plpgsql AS $$
DECLARE
    looked_at bigint;
BEGIN
    total := 0;
    SELECT v INTO looked_at FROM usertable WHERE key = key_1;
    total := total + looked_at;
    SELECT v INTO looked_at FROM usertable WHERE key = key_2;
    total := total + looked_at;
    SELECT v INTO looked_at FROM usertable WHERE key = key_3;
    total := total + looked_at;
    SELECT v INTO looked_at FROM usertable WHERE key = key_4;
    total := total + looked_at;
    SELECT v INTO looked_at FROM usertable WHERE key = key_5;
    total := total + looked_at;
    SELECT v INTO looked_at FROM usertable WHERE key = key_6;
    total := total + looked_at;
    SELECT v INTO looked_at FROM usertable WHERE key = key_7;
    total := total + looked_at;
    SELECT v INTO looked_at FROM usertable WHERE key = key_8;
    total := total + looked_at;
    SELECT v INTO looked_at FROM usertable WHERE key = key_9;
    total := total + looked_at;
    UPDATE usertable SET v = v + amount WHERE key = key_10;
END
$$;

CREATE PROCEDURE ycsb_2(
    key_1 bigint, key_2 bigint, key_3 bigint, key_4 bigint, key_5 bigint,
    key_6 bigint, key_7 bigint, key_8 bigint, key_9 bigint, key_10 bigint,
    amount bigint, OUT total bigint
) LANGUAGE plpgsql AS $$
DECLARE
    looked_at bigint;
BEGIN
    total := 0;
    SELECT v INTO looked_at FROM usertable WHERE key = key_1;
    total := total + looked_at;
    SELECT v INTO looked_at FROM usertable WHERE key = key_2;
    total := total + looked_at;
    SELECT v INTO looked_at FROM usertable WHERE key = key_3;
    total := total + looked_at;
    SELECT v INTO looked_at FROM usertable WHERE key = key_4;
    total := total + looked_at;
    UPDATE usertable SET v = v + amount WHERE key = key_5;
    SELECT v INTO looked_at FROM usertable WHERE key = key_6;
    total := total + looked_at;
    SELECT v INTO looked_at FROM usertable WHERE key = key_7;
    total := total + looked_at;
    SELECT v INTO looked_at FROM usertable WHERE key = key_8;
    total := total + looked_at;
    SELECT v INTO looked_at FROM usertable WHERE key = key_9;
    total := total + looked_at;
    UPDATE usertable SET v = v + amount WHERE key = key_10;
END
$$;

CREATE PROCEDURE ycsb_3(
    key_1 bigint, key_2 bigint, key_3 bigint, key_4 bigint, key_5 bigint,
    key_6 bigint, key_7 bigint, key_8 bigint, key_9 bigint, key_10 bigint,
    amount bigint, OUT total bigint
) LANGUAGE plpgsql AS $$
DECLARE
    looked_at bigint;
BEGIN
    total := 0;
    SELECT v INTO looked_at FROM usertable WHERE key = key_1;
    total := total + looked_at;
    SELECT v INTO looked_at FROM usertable WHERE key = key_2;
    total := total + looked_at;
    SELECT v INTO looked_at FROM usertable WHERE key = key_3;
    total := total + looked_at;
    UPDATE usertable SET v = v + amount WHERE key = key_4;
    SELECT v INTO looked_at FROM usertable WHERE key = key_5;
    total := total + looked_at;
    SELECT v INTO looked_at FROM usertable WHERE key = key_6;
    total := total + looked_at;
    UPDATE usertable SET v = v + amount WHERE key = key_7;
    SELECT v INTO looked_at FROM usertable WHERE key = key_8;
    total := total + looked_at;
    SELECT v INTO looked_at FROM usertable WHERE key = key_9;
    total := total + looked_at;
    UPDATE usertable SET v = v + amount WHERE key = key_10;
END
$$;

CREATE PROCEDURE ycsb_4(
    key_1 bigint, key_2 bigint, key_3 bigint, key_4 bigint, key_5 bigint,
    key_6 bigint, key_7 bigint, key_8 bigint, key_9 bigint, key_10 bigint,
    amount bigint, OUT total bigint
) LANGUAGE plpgsql AS $$
DECLARE
    looked_at bigint;
BEGIN
    total := 0;
    SELECT v INTO looked_at FROM usertable WHERE key = key_1;
    total := total + looked_at;
    SELECT v INTO looked_at FROM usertable WHERE key = key_2;
    total := total + looked_at;
    UPDATE usertable SET v = v + amount WHERE key = key_3;
    SELECT v INTO looked_at FROM usertable WHERE key = key_4;
    total := total + looked_at;
    UPDATE usertable SET v = v + amount WHERE key = key_5;
    SELECT v INTO looked_at FROM usertable WHERE key = key_6;
    total := total + looked_at;
    SELECT v INTO looked_at FROM usertable WHERE key = key_7;
    total := total + looked_at;
    UPDATE usertable SET v = v + amount WHERE key = key_8;
    SELECT v INTO looked_at FROM usertable WHERE key = key_9;
    total := total + looked_at;
    UPDATE usertable SET v = v + amount WHERE key = key_10;
END
$$;

CREATE PROCEDURE ycsb_5(
    key_1 bigint, key_2 bigint, key_3 bigint, key_4 bigint, key_5 bigint,
    key_6 bigint, key_7 bigint, key_8 bigint, key_9 bigint, key_10 bigint,
    amount bigint, OUT total bigint
) LANGUAGE plpgsql AS $$
DECLARE
    looked_at bigint;
BEGIN
    total := 0;
    SELECT v INTO looked_at FROM usertable WHERE key = key_1;
    total := total + looked_at;
    UPDATE usertable SET v = v + amount WHERE key = key_2;
    SELECT v INTO looked_at FROM usertable WHERE key = key_3;
    total := total + looked_at;
    UPDATE usertable SET v = v + amount WHERE key = key_4;
    SELECT v INTO looked_at FROM usertable WHERE key = key_5;
    total := total + looked_at;
    UPDATE usertable SET v = v + amount WHERE key = key_6;
    SELECT v INTO looked_at FROM usertable WHERE key = key_7;
    total := total + looked_at;
    UPDATE usertable SET v = v + amount WHERE key = key_8;
    SELECT v INTO looked_at FROM usertable WHERE key = key_9;
    total := total + looked_at;
    UPDATE usertable SET v = v + amount WHERE key = key_10;
END
$$;

CREATE PROCEDURE ycsb_6(
    key_1 bigint, key_2 bigint, key_3 bigint, key_4 bigint, key_5 bigint,
    key_6 bigint, key_7 bigint, key_8 bigint, key_9 bigint, key_10 bigint,
    amount bigint, OUT total bigint
) LANGUAGE plpgsql AS $$
DECLARE
    looked_at bigint;
BEGIN
    total := 0;
    SELECT v INTO looked_at FROM usertable WHERE key = key_1;
    total := total + looked_at;
    UPDATE usertable SET v = v + amount WHERE key = key_2;
    SELECT v INTO looked_at FROM usertable WHERE key = key_3;
    total := total + looked_at;
    UPDATE usertable SET v = v + amount WHERE key = key_4;
    UPDATE usertable SET v = v + amount WHERE key = key_5;
    SELECT v INTO looked_at FROM usertable WHERE key = key_6;
    total := total + looked_at;
    UPDATE usertable SET v = v + amount WHERE key = key_7;
    SELECT v INTO looked_at FROM usertable WHERE key = key_8;
    total := total + looked_at;
    UPDATE usertable SET v = v + amount WHERE key = key_9;
    UPDATE usertable SET v = v + amount WHERE key = key_10;
END
$$;

CREATE PROCEDURE ycsb_7(
    key_1 bigint, key_2 bigint, key_3 bigint, key_4 bigint, key_5 bigint,
    key_6 bigint, key_7 bigint, key_8 bigint, key_9 bigint, key_10 bigint,
    amount bigint, OUT total bigint
) LANGUAGE plpgsql AS $$
DECLARE
    looked_at bigint;
BEGIN
    total := 0;
    SELECT v INTO looked_at FROM usertable WHERE key = key_1;
    total := total + looked_at;
    UPDATE usertable SET v = v + amount WHERE key = key_2;
    UPDATE usertable SET v = v + amount WHERE key = key_3;
    SELECT v INTO looked_at FROM usertable WHERE key = key_4;
    total := total + looked_at;
    UPDATE usertable SET v = v + amount WHERE key = key_5;
    UPDATE usertable SET v = v + amount WHERE key = key_6;
    SELECT v INTO looked_at FROM usertable WHERE key = key_7;
    total := total + looked_at;
    UPDATE usertable SET v = v + amount WHERE key = key_8;
    UPDATE usertable SET v = v + amount WHERE key = key_9;
    UPDATE usertable SET v = v + amount WHERE key = key_10;
END
$$;

CREATE PROCEDURE ycsb_8(
    key_1 bigint, key_2 bigint, key_3 bigint, key_4 bigint, key_5 bigint,
    key_6 bigint, key_7 bigint, key_8 bigint, key_9 bigint, key_10 bigint,
    amount bigint, OUT total bigint
) LANGUAGE plpgsql AS $$
DECLARE
    looked_at bigint;
BEGIN
    total := 0;
    SELECT v INTO looked_at FROM usertable WHERE key = key_1;
    total := total + looked_at;
    UPDATE usertable SET v = v + amount WHERE key = key_2;
    UPDATE usertable SET v = v + amount WHERE key = key_3;
    UPDATE usertable SET v = v + amount WHERE key = key_4;
    UPDATE usertable SET v = v + amount WHERE key = key_5;
    SELECT v INTO looked_at FROM usertable WHERE key = key_6;
    total := total + looked_at;
    UPDATE usertable SET v = v + amount WHERE key = key_7;
    UPDATE usertable SET v = v + amount WHERE key = key_8;
    UPDATE usertable SET v = v + amount WHERE key = key_9;
    UPDATE usertable SET v = v + amount WHERE key = key_10;
END
$$;

CREATE PROCEDURE ycsb_9(
    key_1 bigint, key_2 bigint, key_3 bigint, key_4 bigint, key_5 bigint,
    key_6 bigint, key_7 bigint, key_8 bigint, key_9 bigint, key_10 bigint,
    amount bigint, OUT total bigint
) LANGUAGE plpgsql AS $$
DECLARE
    looked_at bigint;
BEGIN
    total := 0;
    SELECT v INTO looked_at FROM usertable WHERE key = key_1;
    total := total + looked_at;
    UPDATE usertable SET v = v + amount WHERE key = key_2;
    UPDATE usertable SET v = v + amount WHERE key = key_3;
    UPDATE usertable SET v = v + amount WHERE key = key_4;
    UPDATE usertable SET v = v + amount WHERE key = key_5;
    UPDATE usertable SET v = v + amount WHERE key = key_6;
    UPDATE usertable SET v = v + amount WHERE key = key_7;
    UPDATE usertable SET v = v + amount WHERE key = key_8;
    UPDATE usertable SET v = v + amount WHERE key = key_9;
    UPDATE usertable SET v = v + amount WHERE key = key_10;
END
$$;

CREATE PROCEDURE ycsb_10(
    key_1 bigint, key_2 bigint, key_3 bigint, key_4 bigint, key_5 bigint,
    key_6 bigint, key_7 bigint, key_8 bigint, key_9 bigint, key_10 bigint,
    amount bigint
) LANGUAGE plpgsql AS $$
BEGIN
    UPDATE usertable SET v = v + amount WHERE key = key_1;
    UPDATE usertable SET v = v + amount WHERE key = key_2;
    UPDATE usertable SET v = v + amount WHERE key = key_3;
    UPDATE usertable SET v = v + amount WHERE key = key_4;
    UPDATE usertable SET v = v + amount WHERE key = key_5;
    UPDATE usertable SET v = v + amount WHERE key = key_6;
    UPDATE usertable SET v = v + amount WHERE key = key_7;
    UPDATE usertable SET v = v + amount WHERE key = key_8;
    UPDATE usertable SET v = v + amount WHERE key = key_9;
    UPDATE usertable SET v = v + amount WHERE key = key_10;
END
$$;
