"""psycopg 3: types both ways, prepared statements, transactions, savepoints, COPY, cursors, notices and errors."""

import datetime
import decimal
import uuid

import psycopg
from psycopg import errors

with psycopg.connect(autocommit=True) as connection:
    assert connection.info.server_version >= 150000, connection.info.server_version
    assert connection.info.parameter_status("server_encoding") == "UTF8"
    notices = []
    connection.add_notice_handler(lambda notice: notices.append((notice.severity, notice.message_primary)))
    connection.execute(
        """CREATE TABLE psycopg_item (
            id bigint PRIMARY KEY, name text NOT NULL UNIQUE, price numeric(12, 2) CHECK (price >= 0), weight double precision,
            small smallint, sold boolean, made date, changed timestamp, content bytea, code uuid, tags text[], counts integer[])"""
    )
    row = (
        1, "naïve ☕", decimal.Decimal("12.50"), 0.1, -7, True, datetime.date(2026, 2, 28),
        datetime.datetime(2026, 2, 28, 23, 59, 59, 123456), b"\x00\xff", uuid.UUID(int=77), ["a", "b c", None], [1, -2],
    )
    places = ", ".join(["%s"] * len(row))
    for binary in (False, True):
        with connection.cursor(binary=binary) as cursor:
            cursor.execute("DELETE FROM psycopg_item")
            assert cursor.rowcount == (1 if binary else 0), cursor.rowcount
            cursor.execute(f"INSERT INTO psycopg_item VALUES ({places})", row)
            assert cursor.rowcount == 1
            found = cursor.execute("SELECT * FROM psycopg_item WHERE id = %s", (1,)).fetchone()
            assert found == row, found
            names = [column.name for column in cursor.description]
            assert names[:3] == ["id", "name", "price"], names
    nothing = connection.execute("SELECT %s::text, %s::integer", (None, None)).fetchone()
    assert nothing == (None, None)

    # The same statement often enough that the driver prepares it on the server.
    for number in range(20):
        found = connection.execute("SELECT %s::bigint + 1", (number,)).fetchone()
        assert found == (number + 1,)
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO psycopg_item (id, name, price) VALUES (%s, %s, %s)",
            [(number, f"item {number}", number) for number in range(2, 12)],
        )
        assert cursor.rowcount == 10, cursor.rowcount
    changed = connection.execute("UPDATE psycopg_item SET price = price + 1 WHERE id > %s RETURNING id", (9,)).fetchall()
    assert sorted(changed) == [(10,), (11,)], changed

    # What is pipelined is one transaction, without BEGIN too.
    with psycopg.connect(autocommit=True) as other:
        insert = "INSERT INTO psycopg_item (id, name) VALUES (%s, %s)"
        try:
            with other.pipeline():
                for number in (200, 201, 200, 202):
                    other.execute(insert, (number, f"pipelined {number}"))
        except errors.UniqueViolation:
            pass
        else:
            raise AssertionError("a key twice")
        count = "SELECT count(*) FROM psycopg_item WHERE id BETWEEN 200 AND 299"
        assert other.execute(count).fetchone() == (0,)
        with other.pipeline():
            for number in range(200, 230):
                other.execute(insert, (number, f"pipelined {number}"))
            seen = other.execute(count)
        assert seen.fetchone() == (30,)
        assert other.execute("DELETE FROM psycopg_item WHERE id >= 200").rowcount == 30

    # A transaction is seen by others when it has committed.
    with psycopg.connect() as other:
        with connection.transaction():
            connection.execute("INSERT INTO psycopg_item (id, name) VALUES (100, 'inside')")
            assert connection.execute("SELECT count(*) FROM psycopg_item WHERE id = 100").fetchone() == (1,)
            assert other.execute("SELECT count(*) FROM psycopg_item WHERE id = 100").fetchone() == (0,)
            other.rollback()
            try:
                with connection.transaction():
                    connection.execute("INSERT INTO psycopg_item (id, name) VALUES (101, 'undone')")
                    connection.execute("INSERT INTO psycopg_item (id, name) VALUES (101, 'again')")
            except errors.UniqueViolation as error:
                assert error.diag.constraint_name in (None, "psycopg_item_pkey"), error.diag.constraint_name
            else:
                raise AssertionError("a key twice")
            connection.execute("INSERT INTO psycopg_item (id, name) VALUES (102, 'kept')")
        found = connection.execute("SELECT id FROM psycopg_item WHERE id >= 100 ORDER BY id").fetchall()
        assert found == [(100,), (102,)], found
        try:
            with connection.transaction():
                connection.execute("DELETE FROM psycopg_item")
                raise ZeroDivisionError
        except ZeroDivisionError:
            pass
        assert connection.execute("SELECT count(*) FROM psycopg_item").fetchone() == (13,)

    for sql, expected in [
        ("INSERT INTO psycopg_item (id, name, price) VALUES (200, 'x', -1)", errors.CheckViolation),
        ("INSERT INTO psycopg_item (id) VALUES (200)", errors.NotNullViolation),
        ("SELECT * FROM psycopg_nothing", errors.UndefinedTable),
        ("SELEC 1", errors.SyntaxError),
        ("SELECT 1 / 0", errors.DivisionByZero),
        ("SELECT 'x'::integer", errors.InvalidTextRepresentation),
    ]:
        try:
            connection.execute(sql)
        except expected:
            pass
        else:
            raise AssertionError(sql)

    with connection.cursor() as cursor, cursor.copy("COPY psycopg_item (id, name, tags) FROM STDIN") as copy:
        for number in range(300, 400):
            copy.write_row((number, f"tab\tand\nline {number}", ["x,y", "z"]))
    found = connection.execute("SELECT count(*), min(name) FROM psycopg_item WHERE id >= 300").fetchone()
    assert found == (100, "tab\tand\nline 300"), found
    for written in ("", " (FORMAT binary)"):
        query = "SELECT id, name, tags FROM psycopg_item WHERE id < 302 AND id >= 300"
        with connection.cursor() as cursor, cursor.copy(f"COPY ({query}) TO STDOUT{written}") as copy:
            copy.set_types(["int8", "text", "text[]"])
            found = list(copy.rows())
        assert found == [(number, f"tab\tand\nline {number}", ["x,y", "z"]) for number in (300, 301)], found

    # Cursors on the server: in a transaction, and held beyond it.
    with connection.transaction(), connection.cursor("reader", scrollable=True) as reader:
        reader.execute("SELECT id, name FROM psycopg_item WHERE id >= %s ORDER BY id", (300,))
        assert [column.name for column in reader.description] == ["id", "name"]
        reader.itersize = 30
        assert [row[0] for row in reader] == list(range(300, 400))
        reader.scroll(0, mode="absolute")
        assert reader.fetchone()[0] == 300
        reader.scroll(-1)
        assert [row[0] for row in reader.fetchmany(2)] == [300, 301]
        assert len(reader.fetchall()) == 98
    with connection.cursor("held", withhold=True) as held:
        held.execute("SELECT id FROM psycopg_item WHERE id < 3 ORDER BY id")
        assert held.fetchall() == [(1,), (2,)]

    connection.execute(
        """CREATE PROCEDURE psycopg_raise(amount integer, INOUT total integer) LANGUAGE plpgsql AS $$
        BEGIN RAISE NOTICE 'adding %', amount; total := total + amount; END $$"""
    )
    assert connection.execute("CALL psycopg_raise(%s, %s)", (2, 40)).fetchone() == (42,)
    assert notices[-1] == ("NOTICE", "adding 2"), notices
    # A column says which one of which table it is.
    cursor = connection.execute("SELECT id, name AS called, id + 1 FROM psycopg_item")
    number = connection.execute("SELECT 'psycopg_item'::regclass::oid::integer").fetchone()[0]
    result = cursor.pgresult
    assert [result.ftable(at) for at in range(3)] == [number, number, 0], number
    assert [result.ftablecol(at) for at in range(3)] == [1, 2, 0]

    # What another session notifies, and the session's own.
    with psycopg.connect(autocommit=True) as listener:
        listener.execute("LISTEN psycopg_news")
        connection.execute("SELECT pg_notify('psycopg_news', %s)", ("one",))
        listener.execute("NOTIFY psycopg_news, 'two'")
        heard = list(listener.notifies(timeout=30, stop_after=2))
        assert [(note.channel, note.payload) for note in heard] == [("psycopg_news", "one"), ("psycopg_news", "two")], heard
        assert heard[1].pid == listener.info.backend_pid, heard

    # With autocommit off the driver says READ ONLY with BEGIN.
    with psycopg.connect() as reader:
        reader.read_only = True
        try:
            reader.execute("DELETE FROM psycopg_item")
        except errors.ReadOnlySqlTransaction:
            pass
        else:
            raise AssertionError("a write")
    with psycopg.connect(options="-c default_transaction_read_only=on", autocommit=True) as reader:
        assert reader.execute("SHOW transaction_read_only").fetchone() == ("on",)
        try:
            reader.execute("DELETE FROM psycopg_item")
        except errors.ReadOnlySqlTransaction:
            pass
        else:
            raise AssertionError("a write")

    connection.execute("DROP PROCEDURE psycopg_raise")
    connection.execute("DROP TABLE psycopg_item")

# The driver's default: a transaction that the program ends.
with psycopg.connect() as connection:
    assert connection.execute("SELECT 1").fetchone() == (1,)
    assert connection.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS
    connection.rollback()
    assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
print("psycopg: ok")
