"""The settings of Django's tests, and a runner that writes a line of JSON for each test."""

import os
import signal
import unittest

from django.contrib.postgres import operations
from django.db.backends.postgresql.features import DatabaseFeatures
from django.test.runner import DiscoverRunner

from outcomes import OUTCOMES, cause


def database(name):
    place = {"HOST": os.environ["PGHOST"], "PORT": os.environ["PGPORT"], "USER": os.environ["PGUSER"]}
    return {"ENGINE": "django.db.backends.postgresql", "NAME": name} | place


DATABASES = {"default": database(os.environ["PGDATABASE"]), "other": database("other")}
SECRET_KEY = "of tests"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
USE_TZ = False
TEST_RUNNER = "django_settings.Runner"


# Tables of whole parts have a column with a collation. Here there is the one that every node has.
DatabaseFeatures.test_collations = dict.fromkeys(DatabaseFeatures.test_collations, "C")


# Kinds of indexes that are not there. Of the others these tests make extensions before the first one runs.
for extension in (operations.BloomExtension, operations.BtreeGinExtension, operations.BtreeGistExtension):
    extension.database_forwards = lambda *_: None


class TooLong(Exception):
    """A test that does not end."""


def too_long(*_):
    raise TooLong("longer than SECONDS_PER_TEST")


class Result(unittest.TextTestResult):
    """Begins and ends tests in the file of outcomes."""

    def startTest(self, test):
        super().startTest(test)
        self.found = ("passed", {})
        OUTCOMES.begin(test.id())
        signal.signal(signal.SIGALRM, too_long)
        signal.alarm(int(os.environ["SECONDS_PER_TEST"]))

    def stopTest(self, test):
        signal.alarm(0)
        outcome, more = self.found
        OUTCOMES.write({"test": test.id(), "outcome": outcome} | more)
        super().stopTest(test)

    def failed(self, error):
        if self.found is None or self.found[0] != "failed":
            self.found = ("failed", cause(error[1]))

    def addError(self, test, error):
        super().addError(test, error)
        if isinstance(test, unittest.suite._ErrorHolder):
            # setUpClass: none of the class's tests is run.
            OUTCOMES.write({"test": test.id(), "outcome": "failed"} | cause(error[1]))
        else:
            self.failed(error)

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.failed(error)

    def addSubTest(self, test, subtest, error):
        super().addSubTest(test, subtest, error)
        if error is not None:
            self.failed(error)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        if hasattr(self, "found"):
            self.found = ("skipped", {"message": reason})

    def addExpectedFailure(self, test, error):
        super().addExpectedFailure(test, error)
        self.found = ("skipped", {})

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.found = ("failed", {"kind": "UnexpectedSuccess", "message": "it was expected to fail"})


def left(suite):
    """The tests that have no outcome."""
    found = type(suite)()
    for test in suite:
        if isinstance(test, unittest.BaseTestSuite):
            found.addTest(left(test))
        elif test.id() not in OUTCOMES.known:
            found.addTest(test)
    return found


class Runner(DiscoverRunner):
    """Leaves out what has an outcome."""

    def get_resultclass(self):
        return Result

    def run_suite(self, suite, **options):
        return super().run_suite(left(suite), **options)
