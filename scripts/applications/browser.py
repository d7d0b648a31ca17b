"""A browser without a window, with which applications are used like by a person, and their screenshots."""

import io
import os
import tempfile

from PIL import Image
from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

BYTES_MAX = 150_000


class Browser:
    """Debian's Chromium. What is looked for by CSS or by a text is waited for."""

    def __init__(self, pictures, seconds=300):
        self.pictures = pictures
        self.profile = tempfile.TemporaryDirectory(prefix="entente-browser-")
        options = webdriver.ChromeOptions()
        options.binary_location = "/usr/bin/chromium"
        for argument in (
            "--headless=new",
            # Root gets no Chromium with a sandbox.
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--no-first-run",
            "--hide-scrollbars",
            "--lang=en",
            "--window-size=1200,900",
            f"--user-data-dir={self.profile.name}",
        ):
            options.add_argument(argument)
        self.driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
        self.seconds = seconds

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.driver.quit()
        self.profile.cleanup()

    def go(self, url):
        self.driver.get(url)

    def until(self, condition, what):
        wait = WebDriverWait(self.driver, self.seconds, 0.2, ignored_exceptions=[StaleElementReferenceException])
        try:
            return wait.until(condition)
        except Exception as error:
            picture = os.path.join(tempfile.gettempdir(), "entente-applications-failed.png")
            self.driver.save_screenshot(picture)
            raise SystemExit(f"waited for {what} at {self.driver.current_url}, see {picture}: {type(error).__name__}") from error

    def find(self, css, text=None):
        """The first element that is shown, with this text where one is given."""

        def condition(driver):
            for element in driver.find_elements(By.CSS_SELECTOR, css):
                if element.is_displayed() and (text is None or text in element.text):
                    return element
            return None

        return self.until(condition, css if text is None else f"{css} with the text {text!r}")

    def click(self, css, text=None):
        """Clicks when nothing lies over the element any more, like a person who waits for an animation."""

        def condition(driver):
            element = self.find(css, text)
            driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
            try:
                element.click()
            except Exception:
                return False
            return True

        self.until(condition, f"something to click: {css} {text or ''}")

    def fill(self, css, value):
        field = self.find(css)
        field.clear()
        field.send_keys(value)

    def attach(self, css, path):
        """Gives a file to a field, which pages hide behind a button."""
        self.until(lambda driver: driver.find_elements(By.CSS_SELECTOR, css), css)[0].send_keys(path)

    def text(self, wanted):
        self.until(lambda driver: wanted in driver.find_element(By.TAG_NAME, "body").text, f"the text {wanted!r}")

    def shot(self, name):
        """A small PNG: as few colours as keep it below the limit."""
        picture = Image.open(io.BytesIO(self.driver.get_screenshot_as_png())).convert("RGB")
        path = os.path.join(self.pictures, f"{name}.png")
        for colours in (256, 128, 64, 32, 16):
            picture.quantize(colours, dither=Image.Dither.NONE).save(path, optimize=True)
            if os.path.getsize(path) <= BYTES_MAX:
                return
        raise SystemExit(f"{path} has more than {BYTES_MAX} bytes")
