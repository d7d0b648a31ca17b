"""SQLAlchemy 2: tables from classes, a session's unit of work, what the inspector can tell so far."""

import datetime
import decimal

from sqlalchemy import CheckConstraint, ForeignKey, Index, Numeric, String, UniqueConstraint, create_engine, func, inspect, select
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

inspector = inspect(engine)
assert {"sqlalchemy_member", "sqlalchemy_entry"} <= set(inspector.get_table_names()), inspector.get_table_names()
[key] = inspector.get_foreign_keys("sqlalchemy_entry")
assert (key["referred_table"], key["constrained_columns"], key["referred_columns"]) == (
    "sqlalchemy_member", ["member_id"], ["id"],
), key
assert key["options"].get("ondelete") == "CASCADE", key
[check] = inspector.get_check_constraints("sqlalchemy_entry")
assert check["name"] == "sqlalchemy_entry_amount", check

with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
    Base.metadata.drop_all(connection)
    assert not inspect(connection).has_table("sqlalchemy_entry")
print("sqlalchemy: ok")
