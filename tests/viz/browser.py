"""A browser for tests: just enough of the WebDriver protocol, over the standard library."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
DRIVER = shutil.which("chromedriver")
AVAILABLE = bool(CHROMIUM and DRIVER)
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--hide-scrollbars", "--disable-dev-shm-usage",
]  # fmt: skip


class Browser:
    """One headless Chromium, driven by chromedriver."""

    def __init__(self, width: int = 1400, height: int = 900) -> None:
        self.profile = tempfile.mkdtemp(prefix="pullback-browser-")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        assert DRIVER is not None
        self.process = subprocess.Popen(
            [DRIVER, f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self.base = f"http://127.0.0.1:{port}"
        # Never through a proxy of the environment: the driver is on this machine.
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        options = {
            "binary": CHROMIUM,
            "args": [*FLAGS, f"--window-size={width},{height}", f"--user-data-dir={self.profile}"],
        }
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        self.wait_for_driver()
        answer = self.call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self.base += f"/session/{answer['sessionId']}"

    def wait_for_driver(self) -> None:
        for _ in range(100):
            try:
                self.call("GET", "/status")
                return
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.1)
        raise RuntimeError("chromedriver did not start")

    def call(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self.base + path, data, {"Content-Type": "application/json"}, method=method
        )
        try:
            with self.opener.open(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            with error:
                detail = json.load(error)["value"]
            raise RuntimeError(detail["message"]) from None

    def open(self, file: Path) -> None:
        """Load a file and wait for its first drawing."""
        self.call("POST", "/url", {"url": file.as_uri()})
        self.until("document.body.dataset.ready")

    def run(self, script: str) -> Any:
        """The value of a JavaScript function body."""
        return self.call("POST", "/execute/sync", {"script": script, "args": []})

    def until(self, expression: str, seconds: float = 40) -> Any:
        """Wait until an expression is true."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            value = self.run(f"return {expression}")
            if value:
                return value
            time.sleep(0.05)
        raise AssertionError(f"still not true after {seconds} s: {expression}; {self.errors()}")

    def click(self, selector: str) -> None:
        """A real click in the middle of an element."""
        found = self.call("POST", "/element", {"using": "css selector", "value": selector})
        self.call("POST", f"/element/{next(iter(found.values()))}/click", {})

    def settle(self, selector: str) -> None:
        """Click, and wait for the drawing that follows."""
        before = self.run("return document.body.dataset.ready")
        self.click(selector)
        self.until(f"document.body.dataset.ready !== '{before}'")

    def errors(self) -> list[str]:
        """What the console reported since last asked."""
        entries = self.call("POST", "/se/log", {"type": "browser"})
        return [e["message"] for e in entries if e["level"] in ("SEVERE", "WARNING")]

    def screenshot(self) -> bytes:
        """The window as PNG."""
        return base64.b64decode(self.call("GET", "/screenshot"))

    def close(self) -> None:
        try:
            self.call("DELETE", "")
        finally:
            self.process.terminate()
            self.process.wait(10)
            shutil.rmtree(self.profile, ignore_errors=True)
