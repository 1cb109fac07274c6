# SPDX-License-Identifier: BSD-3-Clause
"""Chromium without a screen, controlled by its own protocol over two pipes.

with Browser() as page:
    page.open("http://127.0.0.1:8000/")
    assert page.value("document.title") == "Linkweir"
    Path("page.png").write_bytes(page.screenshot())
    assert page.problems() == []
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
MISSING = "chromium is missing: apt-get install chromium"
PATIENCE_S = 60.0
_ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--hide-scrollbars",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
)
# It speaks its protocol on descriptors 3 and 4, and dies with the process that started it.
_SCRIPT = 'exec "$@" 3<&0 4>&1 </dev/null >/dev/null 2>&1'


class BrowserError(Exception):
    """The browser refused something, or ended."""


class Browser:
    """One tab of one browser, with a profile of its own.

    Args:
        scheme: `light` or `dark`, what the page learns of the system's preference.
        size: width and height of the window, CSS pixels.
        javascript: whether pages may run scripts.
        hosts: hosts that pages may load from; requests to others fail, and `problems` names them.
    """

    def __init__(
        self,
        *,
        scheme: str = "light",
        size: tuple[int, int] = (1280, 800),
        javascript: bool = True,
        hosts: tuple[str, ...] = ("127.0.0.1", "localhost"),
    ) -> None:
        if PROGRAM is None:
            raise BrowserError(MISSING)
        self._profile = tempfile.mkdtemp(prefix="linkweir-browser-")
        command = ["setpriv", "--pdeathsig", "KILL", "sh", "-c", _SCRIPT, "sh", PROGRAM, *_ARGUMENTS]
        command.append(", ".join(["--host-resolver-rules=MAP * ~NOTFOUND", *(f"EXCLUDE {host}" for host in hosts)]))
        self._process = subprocess.Popen(
            [*command, f"--user-data-dir={self._profile}", "about:blank"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, "HOME": self._profile, "TMPDIR": self._profile},
        )
        self._hosts = hosts
        self._session: str | None = None
        self._last = 0
        self._begun = b""
        self._events: list[dict[str, Any]] = []
        made = self.ask("Target.createTarget", url="about:blank")
        self._session = self.ask("Target.attachToTarget", targetId=made["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.ask(f"{domain}.enable")
        if not javascript:
            self.ask("Emulation.setScriptExecutionDisabled", value=True)
        self.scheme(scheme)
        self.resize(*size)

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the browser and removes its profile."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        shutil.rmtree(self._profile, ignore_errors=True)

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Calls a method of the browser's protocol and returns its result."""
        self._last += 1
        question: dict[str, Any] = {"id": self._last, "method": method, "params": parameters}
        if self._session is not None:
            question["sessionId"] = self._session
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(question).encode() + b"\0")
        self._process.stdin.flush()
        for message in self._messages():
            if message.get("id") != self._last:
                self._events.append(message)
            elif "error" in message:
                raise BrowserError(f"{method}: {message['error']['message']}")
            else:
                result: dict[str, Any] = message["result"]
                return result
        raise BrowserError(f"{method}: the browser ended")

    def _messages(self) -> Iterator[dict[str, Any]]:
        assert self._process.stdout is not None
        while True:
            while b"\0" not in self._begun:
                read = os.read(self._process.stdout.fileno(), 1 << 16)
                if not read:
                    return
                self._begun += read
            message, _, self._begun = self._begun.partition(b"\0")
            yield json.loads(message)

    def scheme(self, scheme: str) -> None:
        """Sets the system's preference that pages learn: `light` or `dark`."""
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def resize(self, width: int, height: int) -> None:
        """Sets the size of the window, CSS pixels."""
        self.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
        )

    def open(self, address: str) -> None:
        """Loads a page and waits until it and what it names is loaded."""
        self._events.clear()
        if error := self.ask("Page.navigate", url=address).get("errorText"):
            raise BrowserError(f"{address}: {error}")
        self.wait("document.readyState === 'complete'")

    def value(self, expression: str) -> Any:
        """The value of a JavaScript expression on the page; promises are awaited."""
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise BrowserError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait(self, expression: str, patience_s: float = PATIENCE_S) -> None:
        """Waits until an expression is true."""
        until = time.monotonic() + patience_s
        while self.value(expression) is not True:
            if time.monotonic() > until:
                raise BrowserError(f"never true: {expression}; {self.problems()}")
            time.sleep(0.05)

    def click(self, x: float, y: float, *, times: int = 1) -> None:
        """Clicks at a place of the window; `times` is 2 for a double click."""
        for count in range(1, times + 1):
            for kind in ("mousePressed", "mouseReleased"):
                self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=count)

    def drag(self, from_: tuple[float, float], to: tuple[float, float]) -> None:
        """Presses the mouse at one place and releases it at another."""
        steps = [(from_, "mouseMoved"), (from_, "mousePressed"), (to, "mouseMoved"), (to, "mouseReleased")]
        for (x, y), kind in steps:
            self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)

    def screenshot(self, *, whole: bool = False) -> bytes:
        """The window, or the whole page, as PNG."""
        answer = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        return base64.b64decode(answer["data"])

    def requests(self) -> list[str]:
        """Addresses that the page asked for since it was opened, in order."""
        self.value("0")  # events that are on their way come before this answer
        return [
            event["params"]["request"]["url"]
            for event in self._events
            if event.get("method") == "Network.requestWillBeSent"
        ]

    def problems(self) -> list[str]:
        """Errors of scripts, messages to the console that are errors or warnings, and requests to other hosts."""
        found = []
        for address in self.requests():
            parts = urlsplit(address)
            if parts.scheme in ("http", "https", "ws", "wss") and parts.hostname not in self._hosts:
                found.append(f"request to another host: {address}")
        for event in self._events:
            method, parameters = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                details = parameters["exceptionDetails"]
                found.append(f"exception: {details.get('exception', {}).get('description', details['text'])}")
            elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
                found.append(f"log: {parameters['entry']['text']} {parameters['entry'].get('url', '')}")
            elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
                found.append(f"console: {[argument.get('value') for argument in parameters['args']]}")
        return found
