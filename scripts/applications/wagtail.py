"""Wagtail, a content management system on Django: `wagtail start`, and its own administration at /admin/."""

import os
import subprocess
import sys

from PIL import Image

from network import free_port_base
from serving import serve

NAME = "Wagtail"
VERSION = "8.0.1"
LOG_ERRORS = r"django\.db\.utils\.\w+Error|Internal Server Error"
PACKAGES = [f"wagtail=={VERSION}", "psycopg[binary]==3.3.9", "dj-database-url==3.1.2"]
PASSWORD = "four-organisations"

# `wagtail start` leaves this file to the site. Its database is the connection string, in the way of Wagtail's documentation.
SETTINGS = """import dj_database_url

DATABASES = {"default": dj_database_url.config()}
# The search that Wagtail has for databases without text search.
WAGTAILSEARCH_BACKENDS = {"default": {"BACKEND": "wagtail.search.backends.database.fallback"}}
# Pictures of users would come from the internet.
WAGTAIL_GRAVATAR_PROVIDER_URL = None
"""


def install(packages):
    python = os.path.join(packages, "python")
    subprocess.run([sys.executable, "-m", "venv", "--clear", python], check=True)
    subprocess.run([os.path.join(python, "bin", "pip"), "install", "-q", *PACKAGES], check=True)


def start(packages, place, network, log):
    programs = os.path.join(packages, "python", "bin")
    environment = os.environ | {"DATABASE_URL": network.connection(), "DJANGO_SUPERUSER_PASSWORD": PASSWORD}
    with open(log, "wb") as output:

        def run(*arguments):
            command = [os.path.join(programs, arguments[0]), *arguments[1:]]
            subprocess.run(command, check=True, cwd=place, env=environment, stdout=output, stderr=output)

        run("wagtail", "start", "site_of_org1", ".")
        with open(os.path.join(place, "site_of_org1", "settings", "local.py"), "w", encoding="utf-8") as file:
            file.write(SETTINGS)
        # The table of what can be found stays as it was before it had columns of the type tsvector; this search does not use it.
        run("python", "manage.py", "migrate", "wagtailsearch", "0005")
        run("python", "manage.py", "migrate", "wagtailsearch", "--fake")
        run("python", "manage.py", "migrate")
        run("python", "manage.py", "createsuperuser", "--noinput", "--username", "anna", "--email", "anna@example.org")
        address = f"127.0.0.1:{free_port_base([0])}"
        process = serve([os.path.join(programs, "python"), "manage.py", "runserver", "--noreload", address], place, environment, output)
    make_files(place)
    return process, f"http://{address}"


def make_files(place):
    """A picture and a document to upload."""
    picture = Image.radial_gradient("L").resize((640, 400)).convert("RGB")
    Image.merge("RGB", [band.point(lambda value, more=more: (value + more) % 256) for more, band in zip((90, 30, 0), picture.split())]).save(
        os.path.join(place, "harbour.png")
    )
    with open(os.path.join(place, "terms.txt"), "w", encoding="utf-8") as file:
        file.write("Goods are handed over at the quay.\n")


def publish(browser):
    browser.click("footer .w-dropdown__toggle")
    browser.click("[name=action-publish]")
    browser.text("published")


def upload(browser, address, kind, path, title):
    browser.go(f"{address}/admin/{kind}/add/")
    browser.fill("#id_title", title)
    browser.attach("main input[type=file]", path)
    browser.click("main form button[type=submit]")
    browser.text("added")


def use(browser, address, steps):
    browser.go(f"{address}/admin/")
    browser.fill("input[name=username]", "anna")
    browser.fill("input[name=password]", PASSWORD)
    browser.click("button[type=submit]")
    browser.text("1 Page")
    steps.seen("log in", "SELECT count(*) FROM django_session", ["1"])

    (home,) = steps.network.rows(1, "SELECT id FROM wagtailcore_page WHERE depth = 2")
    for title in ("Timetable", "Tariffs", "Contact"):
        browser.go(f"{address}/admin/pages/add/home/homepage/{home}/")
        browser.fill("#id_title", title)
        publish(browser)
    pages = "SELECT title, live FROM wagtailcore_page WHERE depth = 3 ORDER BY path"
    steps.seen("make and publish three pages", pages, ["Timetable|t", "Tariffs|t", "Contact|t"])

    upload(browser, address, "images", os.path.join(steps.place, "harbour.png"), "The harbour")
    steps.seen("upload a picture", "SELECT title, width, height FROM wagtailimages_image", ["The harbour|640|400"])
    browser.shot("wagtail-images")
    upload(browser, address, "documents", os.path.join(steps.place, "terms.txt"), "Terms")
    steps.seen("upload a document", "SELECT title, file_size FROM wagtaildocs_document", ["Terms|35"])

    steps.kill(4)
    (tariffs,) = steps.network.rows(1, "SELECT id FROM wagtailcore_page WHERE title = 'Tariffs'")
    browser.go(f"{address}/admin/pages/{tariffs}/edit/")
    browser.fill("#id_title", "Tariffs 2027")
    publish(browser)
    changed = ["Timetable|t", "Tariffs 2027|t", "Contact|t"]
    steps.seen("change a page while three nodes are up", pages, changed, (2, 3))
    browser.go(f"{address}/admin/redirects/add/")
    browser.fill("#id_old_path", "/prices")
    browser.fill("#id_redirect_link", "http://localhost/tariffs/")
    browser.click("main form button[type=submit]")
    browser.text("added")
    redirects = "SELECT old_path, redirect_link FROM wagtailredirects_redirect"
    steps.seen("make a redirect", redirects, ["/prices|http://localhost/tariffs/"], (2, 3))
    steps.start_again(4)
    steps.seen("what it has missed", pages, changed, (4,))

    (contact,) = steps.network.rows(1, "SELECT id FROM wagtailcore_page WHERE title = 'Contact'")
    browser.go(f"{address}/admin/pages/{contact}/delete/")
    browser.click("input[type=submit]")
    browser.text("deleted")
    steps.seen("delete a page", pages, ["Timetable|t", "Tariffs 2027|t"])

    steps.kill(1)
    steps.start_again(1)
    steps.network.wait_until_ready(300)
    (timetable,) = steps.network.rows(1, "SELECT id FROM wagtailcore_page WHERE title = 'Timetable'")
    browser.go(f"{address}/admin/pages/{timetable}/unpublish/")
    browser.click("main form [type=submit]")
    browser.text("unpublished")
    steps.seen("take a page down, with organisation 1's own node killed and started again before", pages, ["Timetable|f", "Tariffs 2027|t"])

    browser.go(f"{address}/admin/pages/{home}/")
    browser.text("Tariffs 2027")
    browser.shot("wagtail-pages")
    browser.go(f"{address}/admin/pages/{tariffs}/history/")
    browser.text("Published")
    browser.shot("wagtail-history")
    browser.go(f"{address}/admin/pages/search/?q=tariff")
    browser.text("Tariffs 2027")
    steps.say("find a page")
    browser.go(f"{address}/tariffs/")
    steps.say("read the published page")
