"""A Kubernetes of one's own, as far as Snakemake's plugin asks: an API server on this machine that runs a job's container here.

A pod is a process in an empty folder with the container's command and environment; there are no images, no nodes and no limits.
What imports the plugin or moto runs in .venv-kubernetes: they want an older library than the lock has (envs/kubernetes.sh).
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

import yaml

from bbrlab.base import paths
from tests.campaign.slurm import free_port
from tests.conftest import wait_for

PROGRAMS = paths.ROOT / ".venv-kubernetes" / "bin"
HOW = "envs/kubernetes.sh test (make test-slow does)"
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


class Storage:
    """A server of S3's protocol on this machine (moto), with one bucket; any keys will do."""

    def __init__(self, port: int, bucket: str):
        self.address, self.bucket = f"http://127.0.0.1:{port}", bucket

    def ask(self, path: str, method: str = "GET") -> bytes:
        """The answer to one request."""
        # moto looks whether there is a signature, not at it.
        headers = {"Authorization": "AWS test:test"}
        request = urllib.request.Request(f"{self.address}/{path}", method=method, headers=headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            content: bytes = answer.read()
        return content

    def answers(self) -> bool:
        """Whether it is up."""
        try:
            self.ask("")
        except OSError:
            return False
        return True

    def names(self) -> set[str]:
        """What lies in the bucket."""
        root = ElementTree.fromstring(self.ask(f"{self.bucket}?list-type=2&max-keys=1000"))
        texts = {entry.tag.rpartition("}")[2]: entry.text for entry in root}
        assert texts["IsTruncated"] == "false", "more than one page"
        return {str(entry.text) for entry in root.iter() if entry.tag.endswith("}Key")}

    def content(self, name: str) -> bytes:
        """What a file of the bucket holds."""
        return self.ask(f"{self.bucket}/{quote(name)}")


@contextlib.contextmanager
def storage(log: Path, bucket: str) -> Iterator[Storage]:
    """A storage with an empty bucket, gone at the end of the block."""
    made = Storage(free_port(), bucket)
    argv = [PROGRAMS / "python", "-m", "moto.server", "-H", "127.0.0.1", "-p", made.address.rpartition(":")[2]]
    with open(log, "wb") as said:
        server = subprocess.Popen(argv, stdout=said, stderr=said)
    try:
        assert wait_for(made.answers, 120), log.read_text(errors="replace")
        made.ask(bucket, "PUT")
        yield made
    finally:
        server.terminate()
        server.wait(30)


def render(resources: dict[str, object]) -> dict[str, Any]:
    """What the plugin asks Kubernetes for, for a job with these resources: {"namespace": ..., "job": ...}."""
    argv = [PROGRAMS / "python", "-m", "tests.campaign.kubernetes", json.dumps(resources)]
    done = subprocess.run(argv, cwd=paths.ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main(resources: dict[str, object]) -> None:
    """Print what render() reads; in .venv-kubernetes."""
    from kubernetes.client import ApiClient
    from snakemake_executor_plugin_kubernetes import Executor

    asked = []
    executor = object.__new__(Executor)
    executor.__dict__.update(
        workflow=SimpleNamespace(deployment_settings=SimpleNamespace(deployment_method=set())),
        logger=SimpleNamespace(debug=lambda text: None, info=lambda text: None),
        k8s_cpu_scalar=0.95, k8s_service_account_name=None, namespace="lab", secret_envvars={}, run_namespace="run",
        container_image="bbrlab-kubernetes:0.1.0", privileged=False, persistent_volumes=[], lock=SimpleNamespace(),
        batchapi=SimpleNamespace(create_namespaced_job=lambda namespace, body: asked.append((namespace, body))),
        format_job_exec=lambda job: "snakemake ...", report_job_submission=lambda info: None,
        _kubernetes_retry=lambda function: function(),
    )  # fmt: skip
    executor.run_job(SimpleNamespace(resources=resources, jobid=1, attempt=1, is_containerized=False))
    ((namespace, body),) = asked
    print(json.dumps({"namespace": namespace, "job": ApiClient().sanitize_for_serialization(body)}))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
