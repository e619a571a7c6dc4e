"""Builds guest kernels, once for each (source version, options, patches, compiler), and says what they can do."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from bbrlab import files, paths
from bbrlab.errors import UserError
from bbrlab.kernel_source import Located, Source, locate
from bbrlab.scenario import Strict, read_yaml

Say = Callable[[str], None]
PROBE_TIMEOUT_S = 120
KVM_TIMEOUT_S = 20
QEMU = "qemu-system-x86_64"
LOG_TAIL_LINES = 6
LEFTOVER_S = 3600
TARGETS = {"um": ("linux", "linux"), "x86_64": ("bzImage", "arch/x86/boot/bzImage")}  # what to make, where it then is


class KernelSpec(Strict):
    """One entry of config/kernels.yaml."""

    description: str
    source: Source
    arch: Literal["um", "x86_64"] = "um"
    options: Annotated[list[str], Field(min_length=1)]
    patches: list[str] = []
    add: dict[str, str] = {}
    names: dict[str, str]


class KernelsFile(Strict):
    """config/kernels.yaml."""

    default: str
    kernels: dict[str, KernelSpec]


@dataclass(frozen=True)
class Kernel:
    """A built kernel.

    Attributes:
        name: its entry in kernels.yaml.
        release: what ``uname -r`` prints in it.
        build_id: SHA-256 of the binary, first 16 digits.
        key: hash of everything it was built from.
        image: path of the binary.
        ccas: {field's name: kernel's name}, only those that the kernel really has.
        parameters: {kernel's name of a CCA: its module parameters}.
        source: the source package and version.
        compiler: first line of ``cc --version``.
        build_s: wall-clock seconds of the build.
        acceleration: how QEMU ran it when it was tried out ("kvm" or "tcg"; empty for other backends).
    """

    name: str
    release: str
    build_id: str
    key: str
    image: str
    ccas: dict[str, str]
    parameters: dict[str, list[str]]
    source: str
    compiler: str
    build_s: float
    acceleration: str = ""


def load_specs(path: Path | None = None) -> KernelsFile:
    """config/kernels.yaml, checked. UserError naming file, field and value."""
    path = path or paths.CONFIG / "kernels.yaml"
    try:
        found = KernelsFile.model_validate(read_yaml(path))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(p) for p in first["loc"])
        raise UserError(f"{path}: {where}: {first['msg']} (found {first['input']!r})") from None
    if found.default not in found.kernels:
        raise UserError(f"{path}: default: '{found.default}' is not one of {', '.join(found.kernels)}")
    return found


def find_spec(name: str | None) -> tuple[str, KernelSpec]:
    """The entry called ``name`` (default: the file's default). UserError listing what there is."""
    specs = load_specs()
    name = name or specs.default
    if name not in specs.kernels:
        raise UserError(f"--kernel {name}: no such kernel; config/kernels.yaml has {', '.join(specs.kernels)}")
    return name, specs.kernels[name]


def compiler() -> str:
    """First line of ``gcc --version``. UserError if there is none."""
    try:
        return subprocess.run(["gcc", "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
    except (OSError, subprocess.CalledProcessError):
        raise UserError("no C compiler; run 'make setup', or: apt-get install build-essential") from None


@dataclass(frozen=True)
class Recipe:
    """The files that a kernel is made from, besides its source: option fragments, patches in the order in which they are
    applied, and (file, folder of the source tree that it is added to)."""

    options: list[Path]
    patches: list[Path]
    added: list[tuple[Path, str]]


def recipe(spec: KernelSpec) -> Recipe:
    """The recipe of an entry of kernels.yaml. UserError for a file or folder that does not exist."""
    options = [paths.KERNELS / "options" / o for o in spec.options]
    for path in options:
        if not path.is_file():
            raise UserError(f"config/kernels.yaml: options: {path} does not exist")
    patches: list[Path] = []
    for folder in spec.patches:
        found = sorted((paths.KERNELS / "patches" / folder).glob("*.patch"))
        if not found:
            raise UserError(f"config/kernels.yaml: patches: kernels/patches/{folder} holds no .patch file")
        patches += found
    added: list[tuple[Path, str]] = []
    for target, folder in spec.add.items():
        sources = sorted((paths.KERNELS / folder).glob("*.[ch]"))
        if not sources:
            raise UserError(f"config/kernels.yaml: add: kernels/{folder} holds no source file")
        added += [(path, target) for path in sources]
    return Recipe(options, patches, added)


def ingredients(name: str | None = None) -> list[Path]:
    """The files of this project whose change makes another kernel, kernels.yaml itself apart."""
    parts = recipe(find_spec(name)[1])
    return [*parts.options, *parts.patches, *(path for path, _ in parts.added)]


def build_key(spec: KernelSpec, source: str, compiler_line: str) -> str:
    """Hash of (source version, options, patches, added files, compiler, this recipe's steps)."""
    parts = recipe(spec)
    digest = hashlib.sha256()
    for part in (source, compiler_line, spec.arch, "recipe 3"):
        digest.update(part.encode() + b"\0")
    for path, target in [*((p, "") for p in [*parts.options, *parts.patches]), *parts.added]:
        digest.update(f"{target}/{path.name}".encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _folder(key: str) -> Path:
    return paths.build_folder() / "kernels" / key


def _read(name: str, key: str) -> Kernel | None:
    info = _folder(key) / "kernel.json"
    if not info.exists():
        return None
    content = json.loads(info.read_text(encoding="utf-8"))
    content.update(name=name, image=str(_folder(key) / "linux"))
    return Kernel(**content)


def get(name: str | None = None) -> Kernel:
    """A kernel that is built already. UserError with the command that builds it."""
    name, spec = find_spec(name)
    try:
        source = locate(spec.source, fetch=False).identity
        kernel = _read(name, build_key(spec, source, compiler()))
    except UserError:
        if spec.source.debian:
            raise
        kernel = None
    if kernel is None:
        raise UserError(f"kernel {name} is not built yet; run: bbrlab kernel build {name}")
    return kernel


def build(name: str | None = None, jobs: int | None = None, say: Say = print) -> Kernel:
    """Build a kernel unless it is there already.

    Args:
        name: entry of kernels.yaml.
        jobs: parallel compilers; default: all cores.
        say: gets one line per step with the time it took.

    Raises:
        UserError: naming the step that failed and the log to read.
    """
    name, spec = find_spec(name)
    source = locate(spec.source, fetch=True, say=lambda text: say(f"kernel {name}: {text}"))
    compiler_line = compiler()
    key = build_key(spec, source.identity, compiler_line)
    if kernel := _read(name, key):
        return kernel
    folder = _folder(key)
    folder.parent.mkdir(parents=True, exist_ok=True)
    log = folder.parent / f"{name}.log"
    _remove_leftovers(folder.parent)
    start = time.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix=f".{name}.", dir=folder.parent) as scratch:
            tree, out = Path(scratch) / "source", Path(scratch) / "out"
            tree.mkdir()
            out.mkdir()
            with open(log, "w", encoding="utf-8") as file:
                steps = _Steps(name, tree, log, file, say)
                _compile(steps, spec, source, jobs or os.cpu_count() or 1)
                shutil.copy2(tree / TARGETS[spec.arch][1], out / "linux")
                shutil.copy2(tree / ".config", out / "config")
                probe = steps.timed("probe", lambda: _probe(out / "linux", spec.arch, log))
            ccas = {field: kernel for field, kernel in spec.names.items() if kernel in probe["ccas"]}
            info = {
                "release": probe["release"],
                "build_id": files.sha256(out / "linux")[:16],
                "key": key,
                "ccas": ccas,
                "parameters": probe["parameters"],
                "source": source.identity,
                "compiler": compiler_line,
                "build_s": round(time.monotonic() - start, 1),
                "acceleration": probe["acceleration"],
            }
            files.write_json(out / "kernel.json", info)
            shutil.rmtree(folder, ignore_errors=True)
            out.replace(folder)
    except OSError as error:
        raise files.explain(error, folder) from None
    kernel = _read(name, key)
    assert kernel is not None
    return kernel


def _remove_leftovers(folder: Path) -> None:
    """Remove the trees of builds that were killed: hidden folders in which nothing has changed for a while."""
    for old in folder.glob(".*"):
        with contextlib.suppress(OSError):
            if time.time() - max(p.stat().st_mtime for p in (old, *old.iterdir())) > LEFTOVER_S:
                shutil.rmtree(old, ignore_errors=True)


class _Steps:
    def __init__(self, name: str, tree: Path, log: Path, file: Any, say: Say):
        self.name, self.tree, self.log, self.file, self.say = name, tree, log, file, say

    def timed(self, step: str, action: Callable[[], Any]) -> Any:
        begin = time.monotonic()
        result = action()
        self.say(f"kernel {self.name}: {step:<18} {time.monotonic() - begin:6.1f} s")
        return result

    def run(self, step: str, argv: list[str], stdin: Path | None = None) -> None:
        def action() -> None:
            self.file.write(f"$ {' '.join(argv)}\n")
            self.file.flush()
            # The same binary wherever, whenever and by whomever it is built (KCFLAGS, LLVM and others would change it).
            environment = {k: v for k, v in os.environ.items() if k in {"PATH", "HOME", "TMPDIR"}}
            environment |= {"KBUILD_BUILD_TIMESTAMP": "2026-01-01", "KBUILD_BUILD_USER": "bbrlab",
                            "KBUILD_BUILD_HOST": "bbrlab", "LC_ALL": "C"}  # fmt: skip
            with open(stdin or os.devnull, "rb") as source:
                done = subprocess.run(argv, cwd=self.tree, stdin=source, stdout=self.file, stderr=subprocess.STDOUT,
                                      env=environment, check=False)  # fmt: skip
            if done.returncode:
                self.file.flush()
                lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
                errors = [line for line in lines if re.search(r"(?i)error|fatal|cannot|no space", line)]
                tail = (errors or lines)[:LOG_TAIL_LINES]
                raise UserError(
                    f"kernel {self.name}: step '{step}' failed; the log is {self.log}, and says:\n  "
                    + "\n  ".join(tail)
                )

        self.timed(step, action)


def _compile(steps: _Steps, spec: KernelSpec, source: Located, jobs: int) -> None:
    parts = recipe(spec)
    source.unpack(steps.tree, steps.run)
    for patch in parts.patches:
        step = f"patch {patch.parent.name}/{patch.name[:4]}"
        steps.run(step, ["patch", "-p1", "--forward", "--fuzz=0"], stdin=patch)
    for path, target in parts.added:
        shutil.copy(path, steps.tree / target / path.name)
    fragment = steps.tree / "bbrlab.config"
    fragment.write_text("".join(o.read_text(encoding="utf-8") for o in parts.options), encoding="utf-8")
    # Whether the machine has a Rust compiler or pahole would show in the configuration, and so in the kernel's build ID.
    make = ["make", f"ARCH={spec.arch}", "RUSTC=false", "BINDGEN=false", "PAHOLE=false"]
    steps.run("configure", [*make, f"KCONFIG_ALLCONFIG={fragment}", "allnoconfig"])
    lost = lost_options(fragment.read_text(encoding="utf-8"), (steps.tree / ".config").read_text(encoding="utf-8"))
    if lost:
        raise UserError(
            f"kernel {steps.name}: these options of kernels/options/ are not possible with this source: {', '.join(lost)}; "
            "add what they depend on, or remove them"
        )
    steps.run("compile", [*make, f"-j{jobs}", TARGETS[spec.arch][0]])


def lost_options(wanted: str, config: str) -> list[str]:
    """Lines of an option fragment that a .config does not have."""
    have = set(config.splitlines())
    lost = []
    for line in wanted.splitlines():
        off = re.fullmatch(r"# (CONFIG_\w+) is not set", line)
        if off and any(h.startswith(f"{off[1]}=") for h in have) or line.startswith("CONFIG_") and line not in have:
            lost.append(line)
    return lost


def _probe_command(image: Path, arch: str, acceleration: str, folder: str) -> list[str]:
    probe = paths.KERNELS / "probe"
    if arch == "um":
        return [str(image), "mem=64M", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", "time-travel=inf-cpu",
                f"init={probe}", "con=null", "con0=null,fd:1", "quiet", f"uml_dir={folder}/"]  # fmt: skip
    root = "root=root rootfstype=9p rootflags=trans=virtio,version=9p2000.L ro"
    return [QEMU, "-machine", "q35", "-accel", acceleration, "-cpu", "host" if acceleration == "kvm" else "max", "-m", "512M",
            "-nodefaults", "-no-reboot", "-display", "none", "-serial", "stdio",
            "-virtfs", "local,path=/,mount_tag=root,security_model=none,multidevs=remap,readonly=on",
            "-kernel", str(image), "-append", f"console=ttyS0 reboot=t panic=-1 quiet {root} init={probe}"]  # fmt: skip


def _try_out(image: Path, arch: str) -> tuple[str, str]:
    """Boot a new kernel with the probe as its first program. Returns what it printed and how QEMU was accelerated.

    KVM is only taken if the kernel boots with it: on a virtual machine it may be there and not work.
    """
    if arch == "um":
        accelerations = [""]
    elif shutil.which(QEMU) is None:
        raise UserError(
            f"a kernel for QEMU is tried out after it is built; run: apt-get install qemu-system-x86 (no {QEMU})"
        )
    else:
        accelerations = ["kvm", "tcg"] if os.access("/dev/kvm", os.R_OK | os.W_OK) else ["tcg"]
    output = ""
    for acceleration in accelerations:
        timeout_s = KVM_TIMEOUT_S if acceleration == "kvm" else PROBE_TIMEOUT_S
        with tempfile.TemporaryDirectory(prefix="bbrlab-") as folder:
            argv = _probe_command(image, arch, acceleration, folder)
            try:
                done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                      text=True, timeout=timeout_s, check=False)  # fmt: skip
                output = done.stdout
            except subprocess.TimeoutExpired as error:
                output = (error.stdout or b"").decode(errors="replace")
            except OSError as error:
                raise UserError(f"the built kernel does not start ({error.strerror}): {image}") from None
        if "probe end" in output:
            break
    return output, acceleration


def _probe(image: Path, arch: str, log: Path) -> dict[str, Any]:
    """Boot a new kernel and ask it for its release, CCAs and their parameters."""
    output, acceleration = _try_out(image, arch)
    with open(log, "a", encoding="utf-8") as file:
        file.write(output)
    if "probe end" not in output:
        raise UserError(f"the built kernel does not boot; run 'bbrlab doctor', and see the end of {log}")
    parameters: dict[str, list[str]] = {}
    for module, parameter in re.findall(r"probe parameter /sys/module/tcp_(\w+)/parameters/(\w+)", output):
        parameters.setdefault(module, []).append(parameter)
    release = re.search(r"probe release (\S+)", output)
    ccas = re.search(r"probe ccas (.*)", output)
    assert release and ccas
    return {"release": release[1], "ccas": ccas[1].split(), "parameters": parameters, "acceleration": acceleration}


def describe(kernel: Kernel) -> dict[str, Any]:
    """What a result says of the kernel that it came from."""
    content = asdict(kernel)
    for key in ("image", "build_s", "parameters", "ccas", *(() if kernel.acceleration else ("acceleration",))):
        del content[key]
    return content
