"""A real Chromium for tests of pages: without a window, without network, with a profile of its own."""

import os
import shutil
from pathlib import Path

import pytest
from processes import unsanitized

ROOT = Path(__file__).parents[2]
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
)
PHONE, DESKTOP = (390, 844), (1200, 900)


class Browser:
    """Chromium, its size and colours, what it complained about, and pictures of what it shows."""

    def __init__(self, profile):
        webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
        chromium = shutil.which("chromium") or shutil.which("chromium-browser")
        chromedriver = shutil.which("chromedriver")
        if chromium is None or chromedriver is None:
            pytest.skip("chromium and chromium-driver are not installed")
        options = webdriver.ChromeOptions()
        options.binary_location = chromium
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        service = webdriver.ChromeService(executable_path=chromedriver, env=unsanitized())
        self.driver = webdriver.Chrome(options=options, service=service)
        self.driver.set_page_load_timeout(60)
        self.driver.set_script_timeout(60)

    def open(self, address, *, size=DESKTOP, dark=False):
        """Open a page again, on paper of this size and colour."""
        scheme = "dark" if dark else "light"
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        self.width, height = size
        width = self.width
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        self.driver.get("about:blank")
        self.complaints()
        self.driver.get(address)

    def complaints(self):
        """What stands in the console since the last time."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def picture(self, name, *, whole=False):
        """Keep a picture of the page: among the artefacts of the build, or where pictures of the manual go."""
        folder = Path(os.environ.get("TSGKIT_SCREENSHOTS") or ROOT / "build" / "screenshots")
        folder.mkdir(parents=True, exist_ok=True)
        if whole:
            height = self.driver.execute_script("return document.documentElement.scrollHeight")
            width = self.driver.execute_script("return window.innerWidth")
            metrics = {"width": width, "height": min(height, 4000), "deviceScaleFactor": 1, "mobile": width < 600}
            self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        path = folder / f"{name}.png"
        self.driver.save_screenshot(str(path))
        assert path.stat().st_size > 2000
        return path

    def wide(self):
        """By how many pixels the page is wider than the window when it was opened: that of a phone grows with it."""
        return self.driver.execute_script("return document.documentElement.scrollWidth") - self.width

    def close(self):
        self.driver.quit()
