"""A program that answers as docker, podman or buildah does, for tests of what they are asked and of what is made of their answers.

Its folder (``FAKE_BUILDER``) has ``state.json``: {"images": {name: labels}, "reachable": [names], "fail": [word of a command], "words": text};
``said`` gets a line for each call.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

FACTS = {
    "version": "0.1.0",
    "commit": "c0ffee",
    "modified": False,
    "kernels": [{"name": "lab-6.12", "release": "6.12.1", "build_id": "b1", "key": "k1", "source": "s1", "compiler": "gcc 12"}],
}  # fmt: skip


def full(name: str) -> str:
    return name if "/" in name else f"localhost/{name}"


def main() -> int:
    program, argv = Path(sys.argv[0]).name, sys.argv[1:]
    folder = Path(os.environ["FAKE_BUILDER"])
    state = json.loads((folder / "state.json").read_text())
    images = state["images"]
    with open(folder / "said", "a", encoding="utf-8") as said:
        said.write(f"{program} {' '.join(argv)}\n")
    if argv[0] in state.get("fail", []):
        print(state.get("words", "no"), file=sys.stderr)
        return 1
    match argv:
        case ["info", *_]:
            root = str(folder)
            docker = {"DockerRootDir": root, "ServerErrors": []}
            print(json.dumps(docker if program == "docker" else {"store": {"graphRoot": root, "GraphRoot": root}}))
        case ["image", "inspect", name] | ["inspect", "--type", "image", name]:
            if full(name) not in images:
                return 1
            print(json.dumps(described(program, images[full(name)])))
        case ["pull", name]:
            if name not in state.get("reachable", []):
                print(f"trying {name}\nError: no such host", file=sys.stderr)
                return 125
            images[name] = {}
        case ["build", *rest]:
            named = {o: rest[i + 1] for i, o in enumerate(rest) if o.startswith("--")}
            labels = [rest[i + 1].split("=", 1) for i, o in enumerate(rest) if o == "--label"]
            images[full(named["--tag"])] = dict(labels)
        case ["images", "--json", _]:
            print(json.dumps([{"size": "1.1 GB"}]))
        case ["create", *_] | ["from", *_]:
            print("container-1")
        case ["cp", *_]:
            print(f"image.json\0\0{json.dumps(FACTS)}\0\0")
        case ["run", _, "cat", _]:
            print(json.dumps(FACTS))
        case ["rmi", name]:
            images.pop(full(name), None)
        case ["save", *rest]:
            Path(rest[rest.index("--output") + 1]).write_text("archive")
        case ["push", *rest]:
            Path(rest[-1].split(":")[1]).write_text("archive")
    (folder / "state.json").write_text(json.dumps(state))
    return 0


def described(program: str, labels: dict[str, str]) -> Any:
    if program == "buildah":
        return {"OCIv1": {"config": {"Labels": labels}}, "FromImageDigest": "sha256:1"}
    return [{"Config": {"Labels": labels}, "Size": 1_100_000_000, "Id": "sha256:1", "RepoDigests": []}]


if __name__ == "__main__":
    sys.exit(main())
