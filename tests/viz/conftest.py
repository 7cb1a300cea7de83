"""Fixtures for pictures: a browser (WebDriver over the standard library) and sample graphs."""

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
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback.eager.apply  # noqa: F401  teaches primitives about Tensors
from pullback.eager.tensor import Tensor, note_origin, set_requires_grad, wrap
from pullback.ops import elementwise, linalg, reduce

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
DRIVER = shutil.which("chromedriver")
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


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A headless Chromium; tests that ask for it are skipped where there is none."""
    if not (CHROMIUM and DRIVER):
        pytest.skip("needs chromium and chromedriver")
    started = Browser()
    yield started
    started.close()


# ------------------------------------------------------------------ sample graphs
Sample = tuple[Tensor, dict[str, Tensor]]


def parameter(*shape: int) -> Tensor:
    found = wrap(np.full(shape, 0.1, np.float32))
    set_requires_grad(found, True)
    return found


class Samples:
    """Small programs whose graphs the tests look at: each gives an output and names."""

    parameter = staticmethod(parameter)

    def perceptron(self) -> Sample:
        x = wrap(np.ones((64, 32), np.float32))
        w1, b1, w2, b2 = parameter(32, 16), parameter(16), parameter(16, 10), parameter(10)
        h = elementwise.tanh(elementwise.add(linalg.matmul(x, w1), b1))
        y = elementwise.add(linalg.matmul(h, w2), b2)
        loss = reduce.mean(elementwise.square(y), axis=(0, 1), keepdims=False)
        return loss, {"w1": w1, "b1": b1, "w2": w2, "b2": b2, "loss": loss}

    def recurrent(self, steps: int) -> Sample:
        w, b, h = parameter(4, 4), parameter(4), parameter(2, 4)
        names = {"w": w, "b": b, "start": h}
        for _ in range(steps):
            z = linalg.matmul(h, w)
            z = elementwise.add(z, b)
            h = elementwise.tanh(z)
        return elementwise.exp(h), names

    def nested(self, outer: int, inner: int) -> Sample:
        h = parameter(3)
        for _ in range(outer):
            for _ in range(inner):
                h = elementwise.sin(h)
                h = elementwise.cos(h)
            h = elementwise.mul(h, h)
        return h, {}

    def detached(self) -> Sample:
        x = parameter(3)
        h = elementwise.exp(x)
        stop = wrap(h._data)
        note_origin(stop, "detach", 1)
        return elementwise.mul(elementwise.sin(x), stop), {"x": x}

    def irregular(self, count: int) -> Sample:
        """No two stretches alike: steps and their inputs are drawn at random."""
        rng = np.random.default_rng(3)
        values = [parameter(2), parameter(2)]
        for _ in range(count):
            a = values[-1 - int(rng.integers(0, min(len(values), 5)))]
            kind = int(rng.integers(0, 3))
            if kind == 0:
                values.append(elementwise.add(values[-1], a))
            elif kind == 1:
                values.append(elementwise.sin(elementwise.add(values[-1], a)))
            else:
                values.append(elementwise.mul(values[-1], 0.5))
        return values[-1], {}


@pytest.fixture
def samples() -> Samples:
    return Samples()
