"""A Kubernetes of one's own, as far as Snakemake's plugin asks: an API server on this machine that runs a job's container here.

A pod is a process in an empty folder with the container's command and environment; there are no images, no nodes and no limits.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

PASSED_ON = ("PATH", "HOME", "LANG", "TMPDIR")  # what an image would say


class Cluster:
    """Jobs and secrets that were made, and how the jobs ended.

    Attributes:
        folder: pods work in ``pod-N`` below it.
        image: environment variables that every pod has.
        jobs: {name: the job as it was asked for}.
        codes: {name: exit code of its container}.
    """

    def __init__(self, folder: Path, image: dict[str, str]):
        self.folder, self.image = folder, image
        self.jobs: dict[str, dict[str, Any]] = {}
        self.codes: dict[str, int] = {}
        self.secrets: dict[str, dict[str, str]] = {}
        self.address = ""

    def start(self, job: dict[str, Any]) -> None:
        """Begin a job's pod."""
        name = job["metadata"]["name"]
        self.jobs[name] = job
        threading.Thread(target=self._run, args=(name, len(self.jobs)), daemon=True).start()

    def _run(self, name: str, number: int) -> None:
        (container,) = self.jobs[name]["spec"]["template"]["spec"]["containers"]
        place = self.folder / f"pod-{number}"
        place.mkdir()
        environment = {key: os.environ[key] for key in PASSED_ON if key in os.environ} | self.image
        for entry in container.get("env", []):
            source = entry["valueFrom"]["secretKeyRef"]
            environment[entry["name"]] = base64.b64decode(self.secrets[source["name"]][source["key"]]).decode()
        with open(self.folder / f"pod-{number}.log", "wb") as log:
            argv = [*container["command"], *container["args"]]
            done = subprocess.run(argv, cwd=place, env=environment, stdout=log, stderr=log, check=False)
        self.codes[name] = done.returncode

    def status(self, name: str) -> dict[str, Any]:
        """A job with how far it is."""
        code = self.codes.get(name)
        state = {"active": 1} if code is None else {"succeeded": 1} if code == 0 else {"failed": 1}
        return self.jobs[name] | {"status": state}

    @property
    def said(self) -> str:
        """What pods printed."""
        return "\n".join(path.read_text(errors="replace") for path in sorted(self.folder.glob("pod-*.log")))

    def write_config(self, path: Path) -> None:
        """Write what kubectl and the plugin read to find it (KUBECONFIG)."""
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "here", "cluster": {"server": self.address}}],
            "users": [{"name": "me", "user": {}}],
            "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
            "current-context": "here",
        }
        path.write_text(yaml.safe_dump(content))


def _handler(cluster: Cluster) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def answer(self, content: object, code: int = 200) -> None:
            body = json.dumps(content).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def content(self) -> Any:
            return json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"null")

        def do_POST(self) -> None:
            content = self.content()
            if self.path.endswith("/jobs"):
                cluster.start(content)
            elif self.path.endswith("/secrets"):
                cluster.secrets[content["metadata"]["name"]] = content.get("data") or {}
            self.answer(content, 201)

        def do_GET(self) -> None:
            parts = self.path.partition("?")[0].split("/")
            if parts[-1] == "status" and parts[-3] == "jobs":
                self.answer(cluster.status(parts[-2]))
            else:
                self.answer({"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": []})

        def do_DELETE(self) -> None:
            self.content()
            self.answer({"apiVersion": "v1", "kind": "Status", "status": "Success"})

        def log_message(self, format: str, *arguments: object) -> None:
            """Nothing."""

    return Handler


@contextlib.contextmanager
def kubernetes(folder: Path, image: dict[str, str]) -> Iterator[Cluster]:
    """An API server whose pods run in ``folder``, gone at the end of the block."""
    cluster = Cluster(folder, image)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(cluster))
    cluster.address = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield cluster
    finally:
        server.shutdown()
        server.server_close()
        shutil.rmtree(folder, ignore_errors=True)
