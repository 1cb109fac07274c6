# SPDX-License-Identifier: BSD-3-Clause
"""Firefox without a screen, controlled by Marionette, its own protocol over a local socket.

with Firefox() as page:
    page.open("http://127.0.0.1:8000/")
    assert page.value("document.title") == "Linkweir"
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

PROGRAM = next(filter(None, map(shutil.which, ("firefox-esr", "firefox"))), None)
MISSING = "firefox is missing: apt-get install firefox-esr"
PATIENCE_S = 60.0
SCRIPT_S = 600.0
"""A run of many packets in the page; the socket waits longer, so that it is the browser that reports it."""
# A port that it chooses; no host but this one, so no news, updates or reports.
_PREFERENCES = {
    "marionette.port": 0,
    "network.proxy.type": 1,
    "network.proxy.http": "127.0.0.1",
    "network.proxy.http_port": 9,
    "network.proxy.ssl": "127.0.0.1",
    "network.proxy.ssl_port": 9,
    "network.proxy.no_proxies_on": "127.0.0.1, localhost",
    "app.update.disabledForTesting": True,
    "datareporting.policy.dataSubmissionEnabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.page": 0,
}


class FirefoxError(Exception):
    """The browser refused something, or ended."""


class Firefox:
    """One tab of one browser, with a profile of its own.

    Args:
        in_page: whether expressions may use what the page's scripts made; for this the page must allow eval.
    """

    def __init__(self, *, in_page: bool = True) -> None:
        self._in_page = in_page
        if PROGRAM is None:
            raise FirefoxError(MISSING)
        self._profile = Path(tempfile.mkdtemp(prefix="linkweir-firefox-"))
        lines = (f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in _PREFERENCES.items())
        (self._profile / "user.js").write_text("".join(lines))
        command = ["setpriv", "--pdeathsig", "KILL", PROGRAM, "--headless", "--marionette", "--no-remote", "--profile"]
        self._process = subprocess.Popen(
            [*command, str(self._profile), "about:blank"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, "HOME": str(self._profile), "TMPDIR": str(self._profile)},
        )
        self._last = 0
        try:
            self._socket = self._connected()
            self._socket.settimeout(SCRIPT_S + PATIENCE_S)
            self._file = self._socket.makefile("rb")
            self._message()  # who it is
            self.ask("WebDriver:NewSession")
            self.ask("WebDriver:SetTimeouts", script=int(1e3 * SCRIPT_S))
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Firefox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the browser and removes its profile."""
        with contextlib.suppress(AttributeError):
            self._socket.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        shutil.rmtree(self._profile, ignore_errors=True)

    def _connected(self) -> socket.socket:
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until and self._process.poll() is None:
            with contextlib.suppress(OSError, ValueError):
                port = int((self._profile / "MarionetteActivePort").read_text())  # may be half written, or too early
                return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
            time.sleep(0.05)
        raise FirefoxError("the browser did not begin to listen")

    def _message(self) -> Any:
        length = b""
        while not length.endswith(b":"):
            read = self._file.read(1)
            if not read:
                raise FirefoxError("the browser ended")
            length += read
        return json.loads(self._file.read(int(length[:-1])))

    def ask(self, method: str, **parameters: Any) -> Any:
        """Calls a method of the protocol and returns its result."""
        self._last += 1
        question = json.dumps([0, self._last, method, parameters]).encode()
        self._socket.sendall(b"%d:%s" % (len(question), question))
        _, number, error, result = self._message()
        assert number == self._last
        if error is not None:
            raise FirefoxError(f"{method}: {error['message']}")
        return result

    def open(self, address: str) -> None:
        """Loads a page and waits until it and what it names is loaded."""
        self.ask("WebDriver:Navigate", url=address)

    def value(self, expression: str) -> Any:
        """The value of a JavaScript expression on the page; promises are awaited."""
        function = f"(async () => ({expression}))()"
        evaluated = f"window.eval({json.dumps(function)})" if self._in_page else function
        script = f"""const [done] = arguments;
        const evaluated = {evaluated};
        evaluated.then((value) => done([value]), (error) => done(["", String(error)]));"""
        answer = self.ask("WebDriver:ExecuteAsyncScript", script=script, args=[], sandbox=None)["value"]
        if len(answer) > 1:
            raise FirefoxError(f"{expression}: {answer[1]}")
        return answer[0]

    def wait(self, expression: str, patience_s: float = PATIENCE_S) -> None:
        """Waits until an expression is true."""
        until = time.monotonic() + patience_s
        while self.value(expression) is not True:
            if time.monotonic() > until:
                raise FirefoxError(f"never true: {expression}")
            time.sleep(0.05)
