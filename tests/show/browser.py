"""A headless Chromium for tests, driven over its DevTools protocol by a library that the set-up has anyway."""

from __future__ import annotations

import base64
import itertools
import json
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import websocket

START_S, PAGE_S = 60, 60
PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Browser:
    """One browser with one page.

    Attributes:
        problems: what pages wrote to the console as an error, exceptions of scripts, and requests that failed or went out.
    """

    def __init__(self, folder: Path):
        assert PROGRAM is not None
        command = [PROGRAM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--remote-debugging-port=0",
                   "--remote-allow-origins=*", "--disable-background-networking", f"--user-data-dir={folder}", "about:blank"]  # fmt: skip
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.problems: list[str] = []
        self._numbers = itertools.count(1)
        self._events: list[dict[str, Any]] = []
        try:
            port = self._wait(lambda: (folder / "DevToolsActivePort").read_text().split()[0], START_S)
            page = self._wait(lambda: self._page(port), START_S)
            self.socket = websocket.create_connection(page, timeout=PAGE_S, suppress_origin=True)
        except BaseException:
            self.process.kill()
            raise
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    @staticmethod
    def _wait(ask: Callable[[], Any], most_s: float) -> Any:
        until = time.monotonic() + most_s
        while True:
            try:
                return ask()
            except (OSError, IndexError):
                if time.monotonic() > until:
                    raise
                time.sleep(0.1)

    @staticmethod
    def _page(port: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=10) as answer:
            return str([p for p in json.load(answer) if p["type"] == "page"][0]["webSocketDebuggerUrl"])

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """A command's answer; events that come before it are kept."""
        number = next(self._numbers)
        self.socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            answer = json.loads(self.socket.recv())
            if answer.get("id") == number:
                assert "error" not in answer, f"{method}: {answer.get('error')}"
                found: dict[str, Any] = answer["result"]
                return found
            self._take(answer)

    def _take(self, event: dict[str, Any]) -> None:
        self._events.append(event)
        told = event.get("params", {})
        match event.get("method"):
            case "Runtime.exceptionThrown":
                details = told["exceptionDetails"]
                self.problems.append(str(details.get("exception", {}).get("description") or details["text"]))
            case "Runtime.consoleAPICalled" if told["type"] in ("error", "assert"):
                self.problems.append(f"console: {[a.get('value', a.get('description')) for a in told['args']]}")
            case "Log.entryAdded" if told["entry"]["level"] == "error":
                self.problems.append(f"log: {told['entry']['text']} {told['entry'].get('url', '')}")
            case "Network.requestWillBeSent" if not told["request"]["url"].startswith(("file:", "data:", "blob:")):
                self.problems.append(f"asks for {told['request']['url']}")

    def look(self, width: int, height: int = 900, *, dark: bool = False) -> None:
        """Size of the window, and which colours the reader likes."""
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 700
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, page: Path) -> None:
        """Open a page, and wait until it is loaded."""
        self._events.clear()
        self.send("Page.navigate", url=page.as_uri())
        until = time.monotonic() + PAGE_S
        while not any(e.get("method") == "Page.loadEventFired" for e in self._events):
            assert time.monotonic() < until, f"{page} is not loaded after {PAGE_S} s"
            self._take(json.loads(self.socket.recv()))

    def run(self, script: str) -> Any:
        """The value of an expression, of a promise what it brings."""
        answer = self.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def picture(self, out: Path, *, whole: bool = True) -> None:
        """A PNG of the page."""
        data = self.send("Page.captureScreenshot", captureBeyondViewport=whole)["data"]
        out.write_bytes(base64.b64decode(data))

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()
        self.process.terminate()
        self.process.wait(timeout=30)
