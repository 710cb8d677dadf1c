"""A headless Chromium for tests of the page, driven over the W3C WebDriver protocol."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--window-size=1280,1000",
)  # fmt: skip
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
"""The key of an element in answers, which the protocol defines."""


class Refused(Exception):
    """What the driver says where it cannot do what it is told."""


class Browser:
    """One window of a browser."""

    def __init__(self, port: int, options: dict[str, Any]) -> None:
        self._server = f"http://127.0.0.1:{port}"
        self._session = ""
        asked = {
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }
        self._session = f"/session/{self._ask('POST', '/session', capabilities={'alwaysMatch': asked})['sessionId']}"

    def _ask(self, method: str, path: str, **given: object) -> Any:
        data = json.dumps(given).encode() if method == "POST" else None
        request = urllib.request.Request(
            f"{self._server}{self._session}{path}", data, {"Content-Type": "application/json"}, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            told = json.load(error)["value"]
            raise Refused(f"{told['error']}: {told['message']}") from error

    def open(self, address: str) -> None:
        self._ask("POST", "/url", url=address)

    def resize(self, width: int, height: int) -> None:
        self._ask("POST", "/window/rect", width=width, height=height)

    def run(self, script: str, *arguments: object) -> Any:
        """The value of a JavaScript expression."""
        return self._ask("POST", "/execute/sync", script=f"return {script}", args=list(arguments))

    def click(self, selector: str) -> None:
        """Click an element as a reader does: it must be on the page and not be covered."""
        self._ask("POST", f"/element/{self._find(selector)}/click")

    def type(self, selector: str, text: str) -> None:
        self._ask("POST", f"/element/{self._find(selector)}/value", text=text)

    def _find(self, selector: str) -> str:
        found: str = self._ask("POST", "/element", using="css selector", value=selector)[ELEMENT]
        return found

    def texts(self, selector: str) -> list[str]:
        told: list[str] = self.run("[...document.querySelectorAll(arguments[0])].map((e) => e.textContent)", selector)
        return told

    def errors(self) -> list[str]:
        """What the console has been told since the last question: errors, warnings and violations of the policy."""
        return [entry["message"] for entry in self._ask("POST", "/se/log", type="browser")]

    def requests(self) -> list[str]:
        """The addresses that pages have asked for since the last question, but for those of the browser's own."""
        events = [json.loads(entry["message"])["message"] for entry in self._ask("POST", "/se/log", type="performance")]
        sent = [event["params"] for event in events if event["method"] == "Network.requestWillBeSent"]
        return [one["request"]["url"] for one in sent if not one["documentURL"].startswith("chrome")]

    def picture(self) -> bytes:
        return base64.b64decode(self._ask("GET", "/screenshot"))

    def close(self) -> None:
        self._ask("DELETE", "")


def found() -> tuple[str, str] | None:
    """The browser and its driver, where both are installed."""
    binary, driver = next((path for name in NAMES if (path := shutil.which(name))), None), shutil.which("chromedriver")
    return (binary, driver) if binary and driver else None


@contextmanager
def opened(binary: str, driver: str, profile: Path) -> Iterator[Browser]:
    """A window with a profile of its own, closed at the end."""
    with subprocess.Popen([driver, "--port=0"], stdout=subprocess.PIPE, text=True) as process:
        try:
            options = {"binary": binary, "args": ["about:blank", *FLAGS, f"--user-data-dir={profile}"]}
            window = Browser(_port(process), options)
            try:
                yield window
            finally:
                window.close()
        finally:
            process.terminate()


def _port(process: subprocess.Popen[str]) -> int:
    """The port that the driver has chosen, as it says."""
    assert process.stdout is not None
    for line in process.stdout:
        if "started successfully on port" in line:
            return int(line.rsplit(" ", 1)[1].strip().rstrip("."))
    raise RuntimeError(f"chromedriver ended with {process.wait()} before it listened")
