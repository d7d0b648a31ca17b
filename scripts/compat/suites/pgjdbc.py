"""pgJDBC's own tests: the driver of Java, whose sources lie beside it in Maven's repository. Needs a JDK and Maven."""

import glob
import json
import os
import re
import shutil
import subprocess
import xml.etree.ElementTree as xml

NAME = "pgJDBC 42.7.4"
VERSION = "42.7.4"
# By package; those of SSL, of logging in in other ways and of choosing between hosts need servers of their own.
PARTS = {
    "jdbc2": ["org.postgresql.test.jdbc2.*Test"],
    "jdbc3": ["org.postgresql.test.jdbc3.*Test"],
    "jdbc4": ["org.postgresql.test.jdbc4.*Test", "org.postgresql.test.jdbc4.jdbc41.*Test", "org.postgresql.test.jdbc42.*Test"],
    "rest": ["org.postgresql.test.jdbc2.optional.*Test", "org.postgresql.test.core.*Test", "org.postgresql.test.xa.*Test", "org.postgresql.jdbc.*Test"],
}
SAMPLE = []


def place(folder):
    return os.path.join(folder, "sources", f"postgresql-{VERSION}-jdbc-src")


def install(folder):
    for program in ("javac", "mvn"):
        if shutil.which(program) is None:
            raise SystemExit(f"pgJDBC's tests need {program}: apt-get install default-jdk-headless maven; or leave them out with SUITES=…")
    where = place(folder)
    if os.path.exists(os.path.join(where, "compiled")):
        return
    maven = ["mvn", "--quiet", "--batch-mode"]
    artifact = f"-Dartifact=org.postgresql:postgresql:{VERSION}:tar.gz:jdbc-src"
    subprocess.run([*maven, "dependency:copy", artifact, f"-DoutputDirectory={os.path.dirname(where)}"], check=True)
    subprocess.run(["tar", "-xzf", f"{where}.tar.gz", "-C", os.path.dirname(where), "--no-same-owner"], check=True)
    subprocess.run([*maven, "test-compile"], check=True, cwd=where)
    open(os.path.join(where, "compiled"), "w", encoding="utf-8").close()


def watched(path):
    return f"{path}.log"


def command(part, server, folder, seconds):
    where = place(folder)
    with open(os.path.join(where, "pom.xml"), encoding="utf-8") as file:
        pom = file.read()
    pom = re.sub(r"(junit\.jupiter\.execution\.timeout\.default=)[^\n]*", rf"\g<1>{seconds} s", pom)
    with open(os.path.join(where, "pom.xml"), "w", encoding="utf-8") as file:
        file.write(pom)
    settings = {"server": server.host, "port": server.port, "database": "entente"}
    settings |= {name: "entente" for name in ("username", "password", "privilegedUser", "privilegedPassword")}
    with open(os.path.join(where, "build.local.properties"), "w", encoding="utf-8") as file:
        file.writelines(f"{name}={value}\n" for name, value in settings.items())
    shutil.rmtree(os.path.join(where, "target", "surefire-reports"), ignore_errors=True)
    maven = ["mvn", "--batch-mode", "surefire:test", f"-Dtest={','.join(PARTS[part])}", "-DfailIfNoTests=false"]
    return [*maven, "-Dmaven.test.failure.ignore=true", "-DtrimStackTrace=true"], {}, where


def cause(element):
    """SQLSTATEs are not in reports: the class of the exception and its first line."""
    kind = (element.get("type") or "").split(".")[-1]
    message = (element.get("message") or element.text or "").strip().splitlines()
    found = {"kind": kind, "message": message[0][:400] if message else ""}
    inner = re.search(r"\bERROR: [^\n]*", element.text or "")
    if inner and kind == "MultipleFailuresError":
        # The test's own failure stands before that of what cleans up behind it.
        found = {"kind": "PSQLException", "message": inner[0][:400]}
    elif inner and not found["message"].startswith("ERROR: "):
        found["detail"] = inner[0][:400]
    return found


def collect(path, folder):
    """Turns Surefire's reports into lines; a class that hung has none, and is not run again."""
    with open(path, "a", encoding="utf-8") as file:
        for report in sorted(glob.glob(os.path.join(place(folder), "target", "surefire-reports", "TEST-*.xml"))):
            for case in xml.parse(report).getroot().iter("testcase"):
                test = f"{case.get('classname').removeprefix('org.postgresql.')} {case.get('name')}"
                bad = case.find("failure") if case.find("failure") is not None else case.find("error")
                outcome = "failed" if bad is not None else "skipped" if case.find("skipped") is not None else "passed"
                file.write(json.dumps({"test": test, "outcome": outcome} | (cause(bad) if bad is not None else {})) + "\n")
    return False
