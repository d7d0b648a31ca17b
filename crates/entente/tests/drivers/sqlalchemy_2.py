"""SQLAlchemy 2: tables from classes, a session's unit of work, all that the inspector tells."""

import datetime
import decimal

from sqlalchemy import (
    CheckConstraint, ForeignKey, Index, MetaData, Numeric, String, UniqueConstraint, create_engine, func, inspect, select, text,
)
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship

engine = create_engine("postgresql+psycopg://")


class Base(DeclarativeBase):
    pass


class Member(Base):
    __tablename__ = "sqlalchemy_member"
    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    name: Mapped[str] = mapped_column(String(40), nullable=False)
    joined: Mapped[datetime.date | None]
    __table_args__ = (UniqueConstraint("name", name="sqlalchemy_member_name"),)
    entries: Mapped[list["Entry"]] = relationship(back_populates="member", order_by="Entry.number")


class Entry(Base):
    __tablename__ = "sqlalchemy_entry"
    member_id: Mapped[int] = mapped_column(ForeignKey("sqlalchemy_member.id", ondelete="CASCADE"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    amount: Mapped[decimal.Decimal] = mapped_column(Numeric(12, 2))
    member: Mapped[Member] = relationship(back_populates="entries")
    __table_args__ = (
        CheckConstraint("amount > 0", name="sqlalchemy_entry_amount"),
        Index("sqlalchemy_entry_by_amount", "amount"),
    )


with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
    # Each CREATE is a transaction of its own.
    Base.metadata.create_all(connection)
    assert inspect(connection).has_table("sqlalchemy_member")

with Session(engine) as session:
    ada = Member(id=1, name="Ada", joined=datetime.date(2026, 1, 31))
    ada.entries = [Entry(number=number, amount=decimal.Decimal(number) / 4) for number in range(1, 6)]
    session.add_all([ada, Member(id=2, name="Bob")])
    session.commit()

with Session(engine) as session:
    ada = session.scalars(select(Member).where(Member.name == "Ada")).one()
    assert [entry.amount for entry in ada.entries] == [decimal.Decimal(number) / 4 for number in range(1, 6)]
    ada.entries[0].amount += 10
    session.commit()
    total = session.execute(
        select(Member.name, func.sum(Entry.amount)).join(Entry, isouter=True).group_by(Member.name).order_by(Member.name)
    ).all()
    assert total == [("Ada", decimal.Decimal("13.75")), ("Bob", None)], total
    session.rollback()

with Session(engine) as session:
    session.add(Member(id=3, name="Ada"))
    try:
        session.commit()
    except IntegrityError as error:
        assert error.orig.sqlstate == "23505", error.orig.sqlstate
        session.rollback()
    else:
        raise AssertionError("a name twice")
    assert session.scalar(select(func.count()).select_from(Member)) == 2

with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
    connection.execute(text("CREATE VIEW sqlalchemy_view AS SELECT id, name FROM sqlalchemy_member"))
    connection.execute(text("CREATE SEQUENCE sqlalchemy_sequence"))
    connection.execute(text(
        "CREATE TABLE sqlalchemy_numbered (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, tags text[],"
        " made timestamptz DEFAULT now(), CONSTRAINT sqlalchemy_tagged CHECK (tags IS NOT NULL))"
    ))

inspector = inspect(engine)
assert inspector.default_schema_name == "public"
assert "public" in inspector.get_schema_names()
assert {"sqlalchemy_member", "sqlalchemy_entry"} <= set(inspector.get_table_names()), inspector.get_table_names()
assert inspector.get_view_names() == ["sqlalchemy_view"]
assert "SELECT" in inspector.get_view_definition("sqlalchemy_view").upper()
assert "sqlalchemy_sequence" in inspector.get_sequence_names() and inspector.has_sequence("sqlalchemy_sequence")
columns = [
    (column["name"], str(column["type"]), column["nullable"], column["default"])
    for column in inspector.get_columns("sqlalchemy_entry")
]
assert columns == [
    ("member_id", "INTEGER", False, None), ("number", "INTEGER", False, None), ("amount", "NUMERIC(12, 2)", False, None),
], columns
number, tags, made = inspector.get_columns("sqlalchemy_numbered")
assert number["identity"]["always"] and number["autoincrement"] and number["default"] is None, number
assert str(tags["type"].item_type) == "TEXT" and made["default"] == "now()", (tags, made)
assert [column["name"] for column in inspector.get_columns("sqlalchemy_view")] == ["id", "name"]
key = inspector.get_pk_constraint("sqlalchemy_entry")
assert (key["constrained_columns"], key["name"]) == (["member_id", "number"], "sqlalchemy_entry_pkey"), key
[key] = inspector.get_foreign_keys("sqlalchemy_entry")
assert (key["referred_table"], key["constrained_columns"], key["referred_columns"]) == (
    "sqlalchemy_member", ["member_id"], ["id"],
), key
assert key["options"].get("ondelete") == "CASCADE", key
[unique] = inspector.get_unique_constraints("sqlalchemy_member")
assert (unique["name"], unique["column_names"]) == ("sqlalchemy_member_name", ["name"]), unique
[check] = inspector.get_check_constraints("sqlalchemy_entry")
assert check["name"] == "sqlalchemy_entry_amount", check
[index] = inspector.get_indexes("sqlalchemy_entry")
assert (index["name"], index["column_names"], index["unique"]) == ("sqlalchemy_entry_by_amount", ["amount"], False), index
[index] = inspector.get_indexes("sqlalchemy_member")
assert index["duplicates_constraint"] == "sqlalchemy_member_name", index
assert inspector.get_table_comment("sqlalchemy_member") == {"text": None}

reflected = MetaData()
reflected.reflect(engine, views=True)
assert {"sqlalchemy_member", "sqlalchemy_entry", "sqlalchemy_numbered", "sqlalchemy_view"} <= set(reflected.tables)
entry = reflected.tables["sqlalchemy_entry"]
assert [column.name for column in entry.primary_key] == ["member_id", "number"]
[reference] = entry.c.member_id.foreign_keys
assert reference.column is reflected.tables["sqlalchemy_member"].c.id
assert reflected.tables["sqlalchemy_numbered"].c.id.identity.always
with engine.connect() as connection:
    assert connection.execute(select(func.count()).select_from(entry)).scalar() == 5

with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
    connection.execute(text("DROP TABLE sqlalchemy_numbered"))
    connection.execute(text("DROP SEQUENCE sqlalchemy_sequence"))
    connection.execute(text("DROP VIEW sqlalchemy_view"))

with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
    Base.metadata.drop_all(connection)
    assert not inspect(connection).has_table("sqlalchemy_entry")
print("sqlalchemy: ok")
