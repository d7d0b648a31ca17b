"""What the suites of Python share: an environment with the packages, and their sources, which have the tests."""

import glob
import os
import subprocess


def environment(folder, name, packages):
    """Python with packages, in a folder of its own; made once for a list of packages."""
    place = os.path.join(folder, "tools", name)
    mark, wanted = os.path.join(place, "packages"), "\n".join(packages)
    if not os.path.exists(mark) or open(mark, encoding="utf-8").read() != wanted:
        subprocess.run(["python3", "-m", "venv", "--clear", place], check=True)
        pip = [f"{place}/bin/pip", "install", "--quiet", "--disable-pip-version-check", *packages]
        subprocess.run(pip, check=True)
        with open(mark, "w", encoding="utf-8") as file:
            file.write(wanted)
    return f"{place}/bin/python"


def sources(folder, package, version):
    """The folder of a package's source archive, as its authors have put it into the index."""
    place = os.path.join(folder, "sources")
    os.makedirs(place, exist_ok=True)
    pattern = os.path.join(place, f"{package.replace('-', '?')}-{version}")
    if not glob.glob(f"{pattern}/"):
        pip = ["python3", "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*pip, "--no-binary", package, "--dest", place, f"{package}=={version}"], check=True)
        subprocess.run(["tar", "-xzf", glob.glob(f"{pattern}.tar.gz")[0], "-C", place, "--no-same-owner"], check=True)
    return glob.glob(f"{pattern}/")[0]


PYTEST = ["pytest==9.2.0", "pytest-timeout==2.4.0"]


def pytest(python, seconds, *arguments):
    """The command that runs tests with a line of JSON for each."""
    common = ["-q", "-p", "no:cacheprovider", "-p", "outcomes", "--timeout", str(seconds), "--tb=no", "--continue-on-collection-errors"]
    return [python, "-m", "pytest", *common, *arguments]
