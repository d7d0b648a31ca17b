"""A plug-in for SQLAlchemy's and Alembic's tests: the extensions citext and hstore are not made, on either database (left-out.toml)."""

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session):
    from sqlalchemy.dialects.postgresql import provision

    provision._extensions.clear()
