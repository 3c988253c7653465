"""Pages in a real browser: the system's Chromium, driven by Playwright."""

import shutil

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run",
)  # fmt: skip
DRAWN = "html[data-drawn]"


class Visit:
    """An opened page, with its console messages and network requests."""

    def __init__(self, browser, path, *, drawn=True, fragment="", **context):
        self.context = browser.new_context(**({"viewport": {"width": 1280, "height": 900}} | context))
        self.page = self.context.new_page()
        self.page.set_default_timeout(120_000)  # the machine may be busy with others
        self.messages, self.requests = [], []
        self.page.on("console", lambda message: self.messages.append(message.text))
        self.page.on("pageerror", lambda error: self.messages.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("dialog", lambda dialog: (self.messages.append("dialog"), dialog.dismiss()))
        self.page.goto(path.as_uri() + fragment)
        if drawn:
            self.page.wait_for_selector(DRAWN)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()

    def count(self, selector):
        return self.page.locator(selector).count()

    def serious_findings(self):
        """What axe finds serious or critical on the page as it is now; it needs bypass_csp=True."""
        import pytest

        axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")
        return [
            (found["id"], found["nodes"][0]["html"][:200])
            for found in axe.Axe().run(self.page).response["violations"]
            if found["impact"] in {"serious", "critical"}
        ]
