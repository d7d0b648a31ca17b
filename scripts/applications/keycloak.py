"""Keycloak, which signs people in to other applications: its own `kc.sh`, its admin console and its account console."""

import os
import re
import shutil
import subprocess
import zipfile

from network import free_port_base
from serving import serve

NAME = "Keycloak"
VERSION = "26.5.6"
ARTIFACT = f"org.keycloak:keycloak-quarkus-dist:{VERSION}:zip"
# What the database has refused. Broken connections, of the class 08, are counted where the node was killed.
LOG_ERRORS = r"SQLState: (?!08|null)|PSQLException: ERROR"
PASSWORD = "four-organisations"
HEAP = "-Xms64m -Xmx512m"


def install(packages):
    copy = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={ARTIFACT}", f"-DoutputDirectory={packages}"]
    subprocess.run(copy, check=True)
    archive = os.path.join(packages, f"keycloak-quarkus-dist-{VERSION}.zip")
    shutil.rmtree(home(packages), ignore_errors=True)
    with zipfile.ZipFile(archive) as file:
        file.extractall(packages)
    os.remove(archive)
    os.chmod(program(packages), 0o755)
    build = [program(packages), "build", "--db=postgres"]
    subprocess.run(build, check=True, env=os.environ | {"JAVA_OPTS_KC_HEAP": HEAP}, stdout=subprocess.DEVNULL)


def home(packages):
    return os.path.join(packages, f"keycloak-{VERSION}")


def program(packages):
    return os.path.join(home(packages), "bin", "kc.sh")


def start(packages, place, network, log):
    port = free_port_base([0, 1])
    environment = os.environ | network.jdbc("KC_DB_URL", "KC_DB_USERNAME")
    environment |= {"KC_BOOTSTRAP_ADMIN_USERNAME": "anna", "KC_BOOTSTRAP_ADMIN_PASSWORD": PASSWORD, "JAVA_OPTS_KC_HEAP": HEAP}
    arguments = ["--optimized", "--cache=local", "--http-enabled=true", "--hostname-strict=false", "--http-host=127.0.0.1", f"--http-port={port}"]
    arguments += [f"--http-management-port={port + 1}"]
    with open(log, "wb") as output:
        process = serve([program(packages), "start", *arguments], place, environment, output)
    return process, f"http://127.0.0.1:{port}"


def click_on(browser, test):
    browser.click(f"[data-testid='{test}']")


def fill_in(browser, **values):
    for test, value in values.items():
        browser.fill(f"[data-testid='{test}']", value)


def succeed(browser, text):
    """What the console says in a corner when it has done something; then it is taken away."""
    browser.text(text)
    browser.click("[data-testid='global-alerts'] button")


def sign_in(browser, user):
    browser.fill("#username", user)
    browser.fill("#password", PASSWORD)
    browser.click("#kc-login")


def sign_in_again(browser, address, user, shown):
    """Connections that Keycloak's pool holds broke with the node; a request that gets one fails, like with any database that was
    started again. A person asks for the page again. How many times that was."""
    for again in range(20):
        browser.go(address)
        if came(browser, lambda driver: driver.find_elements("id", "username")):
            sign_in(browser, user)
            if came(browser, lambda driver: shown in text_of(driver)):
                return again
    raise SystemExit(f"{user} cannot sign in at {address}")


def text_of(driver):
    return driver.find_element("tag name", "body").text


def came(browser, condition):
    """Whether it came to that, or to the page of an error."""

    def ended(driver):
        if condition(driver):
            return "so"
        return "error" if re.search("server error|unknown_error|We are sorry|Something went wrong", text_of(driver)) else None

    return browser.until(ended, "a page or an error") == "so"


def use(browser, address, steps):
    tables = "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'public'"
    sets = "SELECT count(*) FROM databasechangelog"
    (tables,), (sets,) = (steps.network.rows(1, query) for query in (tables, sets))
    steps.say(f"{tables} tables by {sets} sets of changes")

    console = f"{address}/admin/master/console/"
    browser.go(console)
    sign_in(browser, "anna")
    browser.text("Welcome to Keycloak")
    sessions = "SELECT u.username FROM offline_user_session s JOIN user_entity u ON u.id = s.user_id ORDER BY u.username"
    steps.seen("sign in to the admin console", sessions, ["anna"])

    browser.go(f"{console}#/master/realms")
    click_on(browser, "add-realm")
    fill_in(browser, realm="harbour")
    click_on(browser, "create")
    browser.text("Realm created successfully")
    steps.seen("make a realm", "SELECT name, enabled FROM realm ORDER BY name", ["harbour|t", "master|t"])

    # A page that is loaded anew knows that anna may administer the new realm.
    browser.go("about:blank")
    browser.go(f"{console}#/harbour/clients/add-client")
    browser.find("[data-testid='currentRealm']", "harbour")
    fill_in(browser, clientId="timetable", name="Timetable of the ships")
    browser.click("button", "Next")
    browser.find("[data-testid='direct']")
    browser.click("button", "Next")
    fill_in(browser, redirectUris0="https://timetable.example.org/*")
    browser.click("button", "Save")
    succeed(browser, "Client created successfully")
    client = "SELECT c.client_id, r.value FROM client c JOIN redirect_uris r ON r.client_id = c.id WHERE c.client_id = 'timetable'"
    steps.seen("make a client", client, ["timetable|https://timetable.example.org/*"])
    browser.text("General settings")
    browser.find("[data-testid='clientId']")
    browser.shot("keycloak-client")

    browser.go(f"{console}#/harbour/users/add-user")
    fill_in(browser, username="berta", email="berta@example.org", firstName="Berta", lastName="Brand")
    click_on(browser, "user-creation-save")
    succeed(browser, "The user has been created")
    person = "SELECT first_name, last_name, email FROM user_entity WHERE username = 'berta'"
    steps.seen("make a user", person, ["Berta|Brand|berta@example.org"])

    (berta,) = steps.network.rows(1, "SELECT id FROM user_entity WHERE username = 'berta'")
    browser.go(f"{console}#/harbour/users/{berta}/credentials")
    click_on(browser, "no-credentials-empty-action")
    fill_in(browser, passwordField=PASSWORD, passwordConfirmationField=PASSWORD)
    # It is not a temporary one.
    browser.click("[role=dialog] label.pf-v5-c-switch")
    browser.click("[data-testid='confirm']", "Save")
    browser.click("[data-testid='confirm']", "Save password")
    succeed(browser, "The password has been set successfully")
    steps.seen("set a password", f"SELECT type FROM credential WHERE user_id = '{berta}'", ["password"])

    steps.kill(4)
    browser.go(f"{console}#/harbour/users/{berta}/settings")
    browser.until(lambda driver: browser.find("[data-testid='lastName']").get_attribute("value") == "Brand", "the user's name")
    fill_in(browser, lastName="Brandt")
    click_on(browser, "user-creation-save")
    succeed(browser, "The user has been saved")
    steps.seen("change the user while three nodes are up", person, ["Berta|Brandt|berta@example.org"], (2, 3))
    browser.go(f"{console}#/harbour/groups")
    click_on(browser, "no-groups-in-this-realm-empty-action")
    fill_in(browser, name="Pilots")
    click_on(browser, "createGroup")
    succeed(browser, "Group created")
    groups = "SELECT name FROM keycloak_group"
    steps.seen("make a group", groups, ["Pilots"], (2, 3))
    steps.start_again(4)
    steps.seen("the user that it has missed", person, ["Berta|Brandt|berta@example.org"], (4,))
    steps.seen("the group that it has missed", groups, ["Pilots"], (4,))

    steps.kill(1)
    steps.start_again(1)
    steps.network.wait_until_ready(300)
    again = sign_in_again(browser, f"{address}/realms/harbour/account/", "berta", "Personal info")
    steps.say(f"requests that failed at connections that had broken: {again}")
    steps.seen("the user signs in, with organisation 1's own node killed and started again before", sessions, ["anna", "berta"])
    browser.until(lambda driver: browser.find("#lastName").get_attribute("value") == "Brandt", "the user's own page")
    browser.shot("keycloak-account")
    browser.fill("#firstName", "Bertha")
    browser.click("button", "Save")
    browser.text("updated")
    steps.seen("the user changes the own name", person, ["Bertha|Brandt|berta@example.org"])
