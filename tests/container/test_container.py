"""The image with all of bbrlab: what is asked of its builders and said when they fail, and, built for real, what it does."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.cli import doctor
from bbrlab.kernel import built_with, sources
from bbrlab.kernel.sources import Source, hashes_of, locate
from bbrlab.run import manifest
from bbrlab_apps.container import base, build, builders, facts, jobs
from bbrlab_apps.container.build import build_image, write_archive, write_sif
from bbrlab_apps.container.builders import find_builder
from bbrlab_apps.container.compiled import imported
from bbrlab_apps.container.context import context_digest, context_files
from bbrlab_apps.container.settings import Settings, image_name, load_settings
from docs._make import binder
from tests.conftest import wait_for
from tests.container import builder as fake_builder

BASE = "docker.io/library/debian:12-slim"
ENTRYPOINT = paths.ROOT / "envs" / "entrypoint.sh"
DOCKERFILE = (paths.ROOT / "Dockerfile").read_text(encoding="utf-8")


# What is configured.


def test_the_configuration_is_checked(tmp_path):
    assert load_settings().base_image == BASE
    file = tmp_path / "container.yaml"
    for text, says in (
        ("base_image: a b", "base_image: must be of letters, digits, . _ / : @ - only"),
        ("base_image: debian:12\nimage: x", "image: unknown key"),
        ("base_image: debian:12\narchive: http://snapshot.debian.org/archive/debian/20261120T000000Z", "archive: string should match"),
        ("base_image: debian:12\nbuilder: kaniko", "builder: must be 'docker', 'podman' or 'buildah'"),
        ("{}", "base_image: is missing"),
    ):  # fmt: skip
        file.write_text(text)
        with pytest.raises(UserError, match=re.escape(f"{file}: {says}")):
            load_settings(file)
    with pytest.raises(UserError, match="--base-image a;b: must be of letters"):
        load_settings().with_changes(base_image="a;b")


# What goes in.


def test_the_image_has_every_file_of_the_project_and_nothing_else():
    told = subprocess.run(["git", "-C", paths.ROOT, "ls-files"], capture_output=True, text=True)
    if told.returncode:
        pytest.skip("no Git checkout")
    tracked = {name for name in told.stdout.splitlines() if (paths.ROOT / name).is_file()}
    found = {str(path.relative_to(paths.ROOT)) for path in context_files()}
    assert tracked <= found, "a file of the project is missing: name it in .dockerignore"
    assert not {name for name in found if re.search(r"__pycache__|\.egg-info|^build/|^results/|\.venv|^\.git/", name)}


def test_other_files_of_a_checkout_stay_out(tmp_path):
    (tmp_path / ".dockerignore").write_text("*\n!bbrlab\n!Snakefile\n**/__pycache__\n**/*.nbc\n")
    for name in ("bbrlab/a.py", "bbrlab/__pycache__/a.pyc", "bbrlab/b.nbc", "Snakefile", "password", "results/x"):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(name)
    assert [p.name for p in context_files(tmp_path)] == ["Snakefile", "a.py"]
    before = context_digest(tmp_path)
    (tmp_path / "password").write_text("other")
    assert context_digest(tmp_path) == before
    (tmp_path / "bbrlab" / "a.py").chmod(0o755)
    other = context_digest(tmp_path)
    (tmp_path / "Snakefile").write_text("rule")
    assert len({before, other, context_digest(tmp_path)}) == 3


def test_stages_of_the_dockerfile():
    stages = re.split(r"(?m)^FROM ", DOCKERFILE)[1:]
    assert stages[0].startswith("${BASE_IMAGE} AS guest")
    assert re.search(r"(?m)^ARG BASE_IMAGE=(.*)$", DOCKERFILE)[1] == load_settings().base_image
    final = stages[-1]
    assert final.startswith("guest\n"), "without the stage that has compilers and sources"
    assert "image.sh kernel" not in final and "apt" not in final
    assert re.search(r"(?m)^USER \$\{NB_UID\}$", final) and "ARG NB_UID=1000" in final
    ran = " ".join(re.findall(r"(?m)^RUN (.*)$", DOCKERFILE))
    steps = set(re.findall(r"envs/image\.sh ([a-z-]+)", ran))
    script = (paths.ROOT / "envs" / "image.sh").read_text(encoding="utf-8")
    assert steps == set(re.findall(r"(?m)^([a-z-]+)\)$", script)), (
        "each step of envs/image.sh is a step of the Dockerfile"
    )
    copied = " ".join(re.findall(r"(?m)^COPY (.*)$", DOCKERFILE)).split()
    here = [name for name in copied if "/" in name and not name.startswith(("/", "--", "."))]
    assert all((paths.ROOT / name).exists() for name in here)


def test_what_builds_the_kernels_is_copied_for_it(tmp_path):
    """Its stage has a few files of bbrlab only; whatever they import must be among them."""
    stage = DOCKERFILE.split(" AS kernels\n")[1].split("\nFROM ")
    for line in re.findall(r"(?m)^COPY (bbrlab.*)$", stage[0] + stage[1]):
        *names, folder = line.split()
        for name in names:
            if (paths.ROOT / name).is_dir():
                shutil.copytree(paths.ROOT / name, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                (tmp_path / folder).mkdir(parents=True, exist_ok=True)
                shutil.copy2(paths.ROOT / name, tmp_path / folder)
    source = (tmp_path / "bbrlab/cli/kernels.py").read_text(encoding="utf-8")
    function = source.split("def kernel_build(")[1].split("\n@")[0]
    imports = re.findall(r"(?m)^    (from bbrlab\S* import .*)$", function)
    assert len(imports) > 2
    script = "\n".join(["from bbrlab.cli.kernels import kernel_build", *imports, "import bbrlab_apps.container.facts"])
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_every_section_of_packages_is_installed_somewhere():
    script = (paths.ROOT / "envs" / "image.sh").read_text(encoding="utf-8")
    function = re.search(r"(?m)^section\(\) .*$", script)[0]
    text = paths.DEBIAN_PACKAGES.read_text(encoding="utf-8")
    wanted = {line for line in text.splitlines() if line and not line.startswith("#")}
    found: list[str] = []
    for name in re.findall(r'\$\(section "([^"]*)"\)', script):
        words = subprocess.run(
            ["sh", "-c", f'{function}\nsection "{name}"'], cwd=paths.ROOT, capture_output=True, text=True
        )
        found += words.stdout.split()
    assert sorted(found) == sorted(wanted)
    assert doctor.BUILDING in text.splitlines()


def test_the_image_goes_without_what_only_lint_needs():
    text = (paths.ROOT / "envs" / "lint-requirements.txt").read_text(encoding="utf-8")
    names = [line for line in text.splitlines() if line and not line.startswith("#")]
    lock = (paths.ROOT / "envs" / "requirements.lock").read_text(encoding="utf-8").lower()
    assert all(re.search(rf"(?m)^{re.escape(name.lower())}==", lock) for name in names)
    used = {
        module.split(".")[0]
        for folder in ("bbrlab", "bbrlab_apps", "studies", "tests")
        for module in imported(paths.ROOT / folder)
    }
    assert not used & {name.replace("-", "_") for name in names}


def test_binder_builds_the_same_image():
    assert binder.PAGE.read_text(encoding="utf-8") == binder.made(), "run: make format"
    assert "jupyter-notebook" in binder.made()


def test_the_devcontainer_names_what_is_there():
    file = paths.ROOT / ".devcontainer" / "devcontainer.json"
    text = re.sub(r"(?m)^\s*//.*$", "", file.read_text(encoding="utf-8"))
    content = json.loads(text)
    assert (file.parent / content["build"]["dockerfile"]).resolve() == paths.ROOT / "Dockerfile"
    assert (file.parent / content["build"]["context"]).resolve() == paths.ROOT
    assert f"ARG NB_USER={content['remoteUser']}" in DOCKERFILE
    script, verb, notebook = content["postAttachCommand"].split()
    assert script == f"/bbrlab/{ENTRYPOINT.relative_to(paths.ROOT)}"
    assert verb == "lab" and (paths.ROOT / "notebooks" / notebook).exists()


# What is started.


@pytest.mark.parametrize(
    ("words", "started"),
    [([], "snakemake --cores all all"),
     (["--config", "scale=smoke", "--", "fig3a"], "snakemake --cores all --config scale=smoke -- fig3a"),
     (["-n"], "snakemake --cores all -n"),
     (["test"], "pytest -n logical --dist loadfile -m not slow"),
     (["test", "-k", "fluid"], "pytest -n logical --dist loadfile -m not slow -k fluid"),
     (["run", "a b.yaml"], "bbrlab run a b.yaml --out=results/by_hand/container"),
     (["run", "a.yaml", "--out", "x", "--seed", "2"], "bbrlab run a.yaml --out x --seed 2"),
     (["run", "a.yaml", "--out=x"], "bbrlab run a.yaml --out=x"),
     (["run", "--help"], "bbrlab run --help"),
     (["lab", "--port=9999"], "jupyter lab --ip=0.0.0.0 --no-browser --port=9999"),
     (["bbrlab", "doctor"], "bbrlab doctor")],
)  # fmt: skip
def test_what_stands_behind_the_image_is_started(words, started, tmp_path):
    for name in ("snakemake", "pytest", "bbrlab", "jupyter"):
        program(tmp_path, name, f'echo {name} "$@"')
    (tmp_path / "notebooks").mkdir()
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run([ENTRYPOINT, *words], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (done.stdout.strip(), done.returncode) == (started, 0)


def program(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


# Who builds.


class Fake:
    """Builders on a PATH of their own (tests/container/builder.py)."""

    def __init__(self, folder: Path, monkeypatch, names=("podman",), **state):
        self.folder = folder
        (folder / "bin").mkdir()
        for name in names:
            program(folder / "bin", name, f'exec {sys.executable} {fake_builder.__file__} "$@"')
            # argv[0] tells it who it is.
            path = folder / "bin" / name
            path.write_text(f"#!{sys.executable}\nimport sys; sys.path.insert(0, {str(paths.ROOT)!r})\n"
                            "from tests.container.builder import main\nsys.exit(main())\n")  # fmt: skip
        for name in ("unshare", "true"):
            (folder / "bin" / name).symlink_to(shutil.which(name))
        monkeypatch.setenv("PATH", str(folder / "bin"))
        monkeypatch.setenv("FAKE_BUILDER", str(folder))
        monkeypatch.setenv("BBRLAB_BUILD", str(folder / "build"))
        monkeypatch.setenv("TMPDIR", str(folder))
        monkeypatch.delenv("SSL_CERT_FILE", raising=False)
        monkeypatch.setattr("tempfile.tempdir", None)
        # Whoever runs the tests, in the image somebody whom nobody knows, may have no ids for an image's files.
        monkeypatch.setattr("os.geteuid", lambda: 0)
        self.write({"images": {}, "reachable": [BASE]} | state)

    def write(self, state) -> None:
        (self.folder / "state.json").write_text(json.dumps(state))

    @property
    def state(self):
        return json.loads((self.folder / "state.json").read_text())

    @property
    def said(self) -> list[str]:
        file = self.folder / "said"
        return file.read_text().splitlines() if file.exists() else []

    def calls(self, verb: str) -> list[str]:
        return [line for line in self.said if line.split()[1] == verb]


def silent(text: str) -> None:
    pass


SETTINGS = Settings(base_image=BASE)


def test_the_first_that_works_builds(tmp_path, monkeypatch):
    Fake(tmp_path, monkeypatch, builders.NAMES)
    assert [find_builder(name).name for name in (None, "buildah", "podman")] == ["docker", "buildah", "podman"]
    assert find_builder().storage == tmp_path
    program(tmp_path / "bin", "docker", "echo 'Cannot connect to the Docker daemon' >&2; exit 1")
    assert find_builder().name == "podman"
    program(tmp_path / "bin", "docker", """echo '{"ServerErrors": ["Cannot connect to the Docker daemon"]}'; exit 1""")
    assert find_builder().name == "podman"
    with pytest.raises(UserError, match=r"\(docker: Cannot connect to the Docker daemon\); install one"):
        find_builder("docker")


def test_no_builder(tmp_path, monkeypatch):
    Fake(tmp_path, monkeypatch, ())
    with pytest.raises(
        UserError, match=r"docker: not installed; podman: not installed; buildah: not installed.*apt-get install podman"
    ):
        find_builder()


def test_no_user_namespaces(tmp_path, monkeypatch):
    Fake(tmp_path, monkeypatch, ("podman", "docker"))
    program(tmp_path / "bin", "docker", "echo 'permission denied' >&2; exit 1")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr(builders, "SUBORDINATE_IDS", (tmp_path / "subuid",))
    (tmp_path / "bin" / "unshare").unlink()
    program(tmp_path / "bin", "unshare", "echo 'unshare failed: No space left on device' >&2; exit 1")
    with pytest.raises(
        UserError, match=r"docker: permission denied; podman: .*no user namespaces.*sysctl user.max_user"
    ):
        find_builder()
    program(tmp_path / "bin", "unshare", "exit 0")
    with pytest.raises(UserError, match=r"no ids in .*subuid.*usermod --add-subuids"):
        find_builder("podman")
    (tmp_path / "subuid").write_text("root:100000:65536\n1:1:1\n")
    monkeypatch.setattr("os.getuid", lambda: 0)
    assert find_builder("podman").name == "podman"


# What a build does.


@pytest.mark.parametrize("name", builders.NAMES)
def test_a_build(name, tmp_path, monkeypatch):
    fake = Fake(tmp_path, monkeypatch, (name,))
    certificates = tmp_path / "certificates.pem"
    certificates.write_text("certificate")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates))
    settings = Settings(base_image=BASE, archive="http://snapshot.debian.org/archive/{archive}/20261120T000000Z")
    lines: list[str] = []
    image, _ = build_image(settings, lines.append)
    assert fake.calls("pull") == [f"{name} pull {BASE}"]
    first, second = fake.calls("build")
    assert f"--build-arg BASE_IMAGE={BASE} " in first and f"--build-arg ARCHIVE={settings.archive} " in first
    assert f"--secret id=certificates,src={certificates}" in first
    assert f"--tag {image_name()} " in second and "--secret" not in second
    labels = image.labels
    assert labels["org.opencontainers.image.revision"] == "c0ffee"
    assert labels["org.opencontainers.image.base.name"] == BASE
    assert labels["org.opencontainers.image.base.digest"] == "sha256:1"
    assert labels["bbrlab.kernel"] == "lab-6.12: Linux 6.12.1, build b1" and labels["bbrlab.kernel.key"] == "k1"
    assert image.size == ("1.1 GB" if name == "buildah" else "1.10 GB")
    assert set(fake.state["images"]) == {BASE, f"localhost/{image_name()}"}, "what it is made from has no name any more"
    assert "lab-6.12" in lines[-1]
    # Again: nothing is built, until something is another.
    assert build_image(settings, lines.append)[0] == image
    assert len(fake.calls("build")) == 2 and "there already" in lines[-1]
    build_image(SETTINGS, silent)
    monkeypatch.setattr(build, "context_digest", lambda: "0" * 64)
    build_image(SETTINGS, silent)
    assert len(fake.calls("build")) == 6


def test_a_base_that_is_not_reachable(tmp_path, monkeypatch):
    fake = Fake(tmp_path, monkeypatch, reachable=[])
    with pytest.raises(
        UserError, match=r"container.yaml: base_image: docker.io/\S+ is neither here nor reachable \(podman: Error: no such host\).*bbrlab container base"
    ):  # fmt: skip
        build_image(SETTINGS, silent)
    assert not fake.calls("build") and not fake.state["images"]


@pytest.mark.parametrize(
    ("words", "says"),
    [("Temporary failure resolving 'deb.debian.org'", "Debian's archive is not reachable"),
     ("SSL: CERTIFICATE_VERIFY_FAILED certificate verify failed", "export SSL_CERT_FILE=FILE"),
     ("mount: operation not permitted", "BUILDAH_ISOLATION=chroot"),
     ("creating overlay mount", "STORAGE_DRIVER=vfs"),
     ("write: No space left on device", "The disk is full"),
     ("make: *** Error 1", "to look further")],
)  # fmt: skip
def test_a_step_that_fails(words, says, tmp_path, monkeypatch):
    before = {f"localhost/{image_name()}": {"bbrlab.context": "older"}, BASE: {}}
    fake = Fake(tmp_path, monkeypatch, images=before, fail=["build"], words=f"STEP 3: RUN x\n{words}")
    with pytest.raises(UserError, match=r"(?s)podman: the image could not be built; the log is .*image.log") as caught:
        build_image(SETTINGS, silent)
    assert words in str(caught.value) and says in str(caught.value)
    assert fake.state["images"] == before, "the image of before stays, nothing half-made has a name"
    assert any("rmi bbrlab:building-" in line for line in fake.said)


def test_too_little_room(tmp_path, monkeypatch):
    fake = Fake(tmp_path, monkeypatch)
    real = shutil.disk_usage(tmp_path)
    monkeypatch.delenv("TMPDIR", raising=False)
    monkeypatch.setattr("shutil.disk_usage", lambda place: real._replace(free=int(1e9)))
    with pytest.raises(
        UserError, match=r"^/var/tmp: 1.0 GB free, but building the image takes up to 2 GB there; set TMPDIR"
    ):
        build_image(SETTINGS, silent)
    monkeypatch.setattr("shutil.disk_usage", lambda place: real._replace(free=int(3e9)))
    with pytest.raises(UserError, match=r"3.0 GB free, but .* 7 GB there; make room there \(podman system prune\)"):
        build_image(SETTINGS, silent)
    assert not fake.calls("build") and not fake.calls("pull")


@pytest.mark.parametrize("name", builders.NAMES)
def test_an_archive_and_an_image_for_apptainer(name, tmp_path, monkeypatch):
    Fake(tmp_path, monkeypatch, (name,))
    image, by = build_image(SETTINGS, silent)
    write_archive(image, by, tmp_path / "out" / "image.tar")
    assert (tmp_path / "out" / "image.tar").read_text() == "archive"
    sif = tmp_path / "sif" / "bbrlab.sif"
    with pytest.raises(UserError, match="neither apptainer nor singularity is here"):
        write_sif(image, by, sif)
    program(tmp_path / "bin", "apptainer", "echo half > $2; echo 'FATAL: no room' >&2; exit 255")
    with pytest.raises(UserError, match=r"apptainer: .*bbrlab.sif: FATAL: no room"):
        write_sif(image, by, sif)
    assert not list(sif.parent.iterdir()), "nothing half-written"
    program(tmp_path / "bin", "apptainer", "echo $1 $3 > $2")
    write_sif(image, by, sif)
    assert sif.read_text().startswith("build docker-archive:/")


# A base without a registry.


def test_a_base_needs_root_and_debootstrap(tmp_path, monkeypatch):
    fake = Fake(tmp_path, monkeypatch)
    podman = find_builder()
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(UserError, match="needs root"):
        base.make_base(podman, "bookworm", None, silent)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    with pytest.raises(UserError, match="apt-get install debootstrap"):
        base.make_base(podman, "bookworm", None, silent)
    with pytest.raises(UserError, match=r"--suite sid: use bookworm or trixie"):
        base.make_base(podman, "sid", None, silent)
    program(tmp_path / "bin", "debootstrap", "echo 'E: Failed getting release file'; exit 1")
    program_of_root = tmp_path / "bin" / "unshare"
    program_of_root.unlink()
    program(tmp_path / "bin", "unshare", 'shift 3; exec "$@"')
    with pytest.raises(
        UserError, match=r"debootstrap: Failed getting release file; see that http://deb.debian.org/debian is"
    ):
        base.make_base(podman, "bookworm", None, silent)
    assert not fake.calls("import") and not list(tmp_path.glob("bbrlab-base-*"))


def test_a_temporary_folder_that_is_noexec_or_small(tmp_path, monkeypatch):
    Fake(tmp_path, monkeypatch)
    program(tmp_path / "bin", "debootstrap", "exit 0")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    podman = find_builder()
    real, usage = os.statvfs(tmp_path), shutil.disk_usage(tmp_path)
    monkeypatch.setattr("os.statvfs", lambda place: SimpleNamespace(f_flag=real.f_flag | os.ST_NOEXEC))
    with pytest.raises(UserError, match=r"programs must not run there \(mounted noexec or nodev\).*set TMPDIR"):
        base.make_base(podman, "bookworm", None, silent)
    monkeypatch.setattr("os.statvfs", lambda place: SimpleNamespace(f_flag=0))
    monkeypatch.setattr("shutil.disk_usage", lambda place: usage._replace(free=int(0.5e9)))
    with pytest.raises(UserError, match=r"0.5 GB free, but a base image takes 1 GB; set TMPDIR"):
        base.make_base(podman, "bookworm", None, silent)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "nowhere"))
    with pytest.raises(UserError, match=r"TMPDIR=.*nowhere: is no folder"):
        base.make_base(podman, "bookworm", None, silent)


def test_the_archive_of_a_day_is_the_bases_too():
    lines = base.sources_list("bookworm", "http://snapshot.debian.org/archive/{archive}/20261120T000000Z").splitlines()
    assert lines == [
        "deb [check-valid-until=no] http://snapshot.debian.org/archive/debian/20261120T000000Z bookworm main",
        "deb [check-valid-until=no] http://snapshot.debian.org/archive/debian/20261120T000000Z bookworm-updates main",
        "deb [check-valid-until=no] http://snapshot.debian.org/archive/debian-security/20261120T000000Z bookworm-security main",
    ]


# Without compiler and sources.


@pytest.fixture
def without_compiler(tmp_path, monkeypatch):
    """A machine that has neither a compiler nor the source of a kernel, as the image."""
    for name in ("dpkg-query", "git"):
        (tmp_path / name).symlink_to(shutil.which(name) or "/bin/false")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("BBRLAB_BUILD", str(tmp_path / "build"))
    monkeypatch.setattr(sources, "_tarball", lambda package: tmp_path / f"{package}.tar.xz")
    return tmp_path


def test_an_image_knows_what_its_kernels_were_built_with(without_compiler):
    source = Source(debian="linux-source-6.12")
    with pytest.raises(UserError, match="no C compiler"):
        built_with.compiler()
    with pytest.raises(UserError, match="is not installed"):
        locate(source, fetch=False)
    built_with.record_file().parent.mkdir()
    known = {"compiler": "gcc 12", "sources": {"linux-source-6.12": {"version": "6.12.1-1", "sha256": "ab"}}}
    built_with.record_file().write_text(json.dumps(known))
    assert built_with.compiler() == "gcc 12"
    found = locate(source, fetch=False)
    assert found.identity == "linux-source-6.12 6.12.1-1"
    assert hashes_of(source) == {"file": "linux-source-6.12.tar.xz", "sha256": "ab"}
    with pytest.raises(
        UserError, match=r"source linux-source-6.12 is not here: this is an image.*docs/howto/container.md"
    ):
        found.unpack(without_compiler, lambda step, argv: None)
    with pytest.raises(UserError, match="linux-source-5.10 is not installed"):
        locate(Source(debian="linux-source-5.10"), fetch=False)
    built_with.record_file().write_text('{"compiler": "gcc 12"}')
    with pytest.raises(UserError, match="built_with.json: is damaged"):
        built_with.compiler()


def test_a_compiler_that_is_here_counts(without_compiler):
    built_with.record_file().parent.mkdir()
    built_with.record_file().write_text('{"compiler": "gcc 12", "sources": {}}')
    program(without_compiler, "gcc", "echo gcc 14")
    assert built_with.compiler() == "gcc 14"


def test_what_is_recorded_is_what_is_here(tmp_path, monkeypatch):
    if not sources._tarball("linux-source-6.12").exists():
        pytest.skip("no kernel source here")
    monkeypatch.setattr(built_with, "record_file", lambda: tmp_path / "built_with.json")
    monkeypatch.setattr(facts, "record_file", lambda: tmp_path / "built_with.json")
    facts.write_recorded()
    found = built_with.recorded()
    source = Source(debian="linux-source-6.12")
    assert found["compiler"] == built_with.compiler()
    version = found["sources"]["linux-source-6.12"]
    assert f"linux-source-6.12 {version['version']}" == locate(source, fetch=False).identity
    assert version["sha256"] == hashes_of(source)["sha256"]


def test_a_run_in_the_image_names_the_commit(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    monkeypatch.setattr(paths, "IMAGE", tmp_path / "image.json")
    assert manifest.git_state() == {"commit": None, "modified": None}
    paths.IMAGE.write_text(json.dumps(fake_builder.FACTS))
    assert manifest.git_state() == {"commit": "c0ffee", "modified": False}


def test_the_doctor_asks_for_no_compiler_in_the_image(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "IMAGE", tmp_path / "image.json")
    assert {"gcc", "build-essential"} & set(doctor.packages())
    monkeypatch.setattr(paths, "IMAGE", tmp_path)
    assert "iperf3" in doctor.packages() and not {"build-essential", "linux-source-6.12"} & set(doctor.packages())


# Jobs in it.


def workflow_with(*methods: str) -> SimpleNamespace:
    named = {SimpleNamespace(name=name).name: SimpleNamespace(name=name) for name in methods}
    return SimpleNamespace(deployment_settings=SimpleNamespace(deployment_method=list(named.values())))


def test_jobs_in_the_image_write_to_the_campaigns_results(tmp_path, monkeypatch):
    monkeypatch.setenv("BBRLAB_RESULTS", str(tmp_path))
    jobs.prepare_jobs(workflow_with())
    jobs.prepare_jobs(SimpleNamespace())
    with pytest.raises(UserError, match=r"bbrlab.sif: is not there, .*make it first: snakemake --cores 2 sif"):
        jobs.prepare_jobs(workflow_with("APPTAINER"))
    jobs.sif_file().parent.mkdir()
    jobs.sif_file().touch()
    jobs.prepare_jobs(workflow_with("APPTAINER"))
    assert os.environ["BBRLAB_RESULTS"] == str(tmp_path)
    assert jobs.image_of_jobs() == str(tmp_path / "container" / "bbrlab.sif")


def test_results_at_a_path_with_a_space(tmp_path, monkeypatch):
    """Snakemake reads every ``container:`` and takes none with a space, so a campaign without containers would end."""
    monkeypatch.setenv("BBRLAB_RESULTS", str(tmp_path / "my results"))
    assert jobs.image_of_jobs() == "bbrlab.sif"
    jobs.prepare_jobs(workflow_with())
    with pytest.raises(
        UserError, match=r"my results/container/bbrlab.sif: Snakemake takes no image at a path with a space"
    ):
        jobs.prepare_jobs(workflow_with("APPTAINER"))


def test_the_rules_are_there():
    text = (paths.ROOT / "rules" / "container.smk").read_text(encoding="utf-8")
    assert re.findall(r"(?m)^rule (\w+):", text) == ["container", "sif"]
    config = yaml.safe_load((paths.CONFIG / "container.yaml").read_text(encoding="utf-8"))
    assert set(config) <= set(Settings.model_fields)


# The real one: built and run with Debian's podman (or buildah), as root, from a base that debootstrap makes.

SIZE_BYTES = 1.2e9
PATIENCE_S = 3600  # on a machine that does other things, too
REAL = f"localhost/{image_name()}"
# What `docker run` gives a container, and less: nobody that the image knows, no capability, no network.
NOTHING = ("--rm", "--network=none", "--cap-drop=all", "--security-opt=no-new-privileges", "--user=12345:12345")
SCENARIO = "scenarios/sarpkaya2025/fig2a.yaml"
SHORT = ("--set", "duration_s=30", "--set", "window_s=[10, 30]", "--seed", "3")


def at_most(limit: int, most: int) -> int:
    hard = resource.getrlimit(limit)[1]
    return most if hard == resource.RLIM_INFINITY else min(hard, most)


# podman's own are more than a machine's root without CAP_SYS_RESOURCE may give.
LIMITS = tuple(
    f"--ulimit={name}={at_most(limit, most)}:{at_most(limit, most)}"
    for name, limit, most in (("nofile", resource.RLIMIT_NOFILE, 20_000), ("nproc", resource.RLIMIT_NPROC, 30_000))
)


def why_not() -> str:
    """Why no image can be built and run here; empty if one can."""
    if os.geteuid() != 0:
        return "needs root: debootstrap"
    missing = [name for name in ("podman", "buildah", "runc", "debootstrap") if shutil.which(name) is None]
    return (
        f"{', '.join(missing)} not installed; apt-get install what envs/container-packages.txt lists" if missing else ""
    )


class Machine:
    """Images in a storage of their own, so that the user's stay as they are.

    BBRLAB_TEST_STORAGE names a folder for it that is kept: what was built there is not built again.
    """

    def __init__(self, folder: Path):
        kept = os.environ.get("BBRLAB_TEST_STORAGE")
        storage = Path(kept or folder / "storage")
        conf = folder / "storage.conf"
        conf.write_text(f'[storage]\ndriver = "overlay"\ngraphroot = "{storage}"\nrunroot = "{folder}/run"\n')
        # Layers: so that the second builder and Binder's file find the steps of the first.
        self.environment = os.environ | {"CONTAINERS_STORAGE_CONF": str(conf), "BUILDAH_LAYERS": "true"}

    def run(self, *argv: object, check: bool = True, **environment: str) -> str:
        """What a program says; an AssertionError if it fails."""
        done = subprocess.run([str(a) for a in argv], env=self.environment | environment, cwd=paths.ROOT, capture_output=True, text=True, timeout=PATIENCE_S)  # fmt: skip
        said = done.stdout + done.stderr
        assert not check or done.returncode == 0, said[-6000:]
        return said

    def image(self, *words: object, options: tuple[str, ...] = NOTHING, check: bool = True) -> str:
        """What the image says to these words."""
        return self.run("podman", "run", *LIMITS, *options, REAL, *words, check=check)


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    if reason := why_not():
        pytest.skip(f"no image to test: {reason}")
    made = Machine(tmp_path_factory.mktemp("containers"))
    yield made
    if not os.environ.get("BBRLAB_TEST_STORAGE"):
        made.run("podman", "system", "reset", "--force", check=False)


@pytest.fixture(scope="module")
def built(machine):
    """The image, by the rule; its base, which config/container.yaml wants of a registry, by debootstrap."""
    if REAL not in machine.run("podman", "images", "--format", "{{.Repository}}:{{.Tag}}"):
        machine.run("bbrlab", "container", "base", "--builder", "podman")
        machine.run("podman", "tag", base.base_name("bookworm"), BASE)
    machine.run("snakemake", "--cores", "2", "--", "container")
    return machine


@pytest.mark.slow
@pytest.mark.timeout(2 * PATIENCE_S)
def test_the_rule_builds_a_small_image_with_labels(built):
    found = json.loads(built.run("podman", "image", "inspect", REAL))[0]
    assert found["Size"] <= SIZE_BYTES
    labels = found["Labels"]
    head = subprocess.run(["git", "-C", paths.ROOT, "rev-parse", "HEAD"], capture_output=True, text=True)
    if not head.returncode:
        assert labels["org.opencontainers.image.revision"].startswith(head.stdout.strip())
    assert labels["bbrlab.kernel"].startswith("lab-6.12: Linux 6.12.")
    assert "is there already" in built.run("bbrlab", "container", "build")
    assert "building-" not in built.run("podman", "images")


@pytest.mark.slow
@pytest.mark.guest
@pytest.mark.timeout(2 * PATIENCE_S)
def test_a_run_in_the_image_is_the_same_bytes(built, tmp_path):
    """As an unknown user without capability, privilege, network or KVM."""
    results = tmp_path / "results"
    results.mkdir()
    results.chmod(0o777)
    built.image(
        "run", SCENARIO, *SHORT, "--out", "results/in", options=(*NOTHING, f"--volume={results}:/bbrlab/results")
    )
    built.run("bbrlab", "run", SCENARIO, *SHORT, "--out", results / "out")
    inside, outside = ({"folder": results / name} for name in ("in", "out"))
    for one in (inside, outside):
        one["summary"] = json.loads((one["folder"] / "summary.json").read_text())
        one["summary"].pop("wall_s")
        one["manifest"] = json.loads((one["folder"] / "manifest.json").read_text())
        one["samples"] = (one["folder"] / "samples.parquet").read_bytes()
    if inside["manifest"]["packages"] != outside["manifest"]["packages"]:
        pytest.skip("this machine's iperf3, Python or Mininet are not the image's")
    assert inside["manifest"]["kernel"] == outside["manifest"]["kernel"]
    assert inside["samples"] == outside["samples"]
    assert inside["summary"] == outside["summary"]
    assert inside["manifest"]["source"]["commit"] == outside["manifest"]["source"]["commit"]


@pytest.mark.slow
@pytest.mark.guest
@pytest.mark.timeout(2 * PATIENCE_S)
def test_the_campaign_in_the_image(built, tmp_path):
    tmp_path.chmod(0o777)
    options = (*NOTHING, f"--volume={tmp_path}:/bbrlab/results")
    built.image("--config", "scale=smoke", "--", "fig3a", options=options)
    assert len(list((tmp_path / "runs").rglob("summary.json"))) == 2
    assert list((tmp_path / "smoke").rglob("fig3a.csv"))
    assert "Nothing to be done" in built.image("--config", "scale=smoke", "--", "fig3a", options=options)


@pytest.mark.slow
@pytest.mark.guest
@pytest.mark.timeout(2 * PATIENCE_S)
def test_tests_pass_in_the_image(built):
    """A part of them, of every kind: `docker run IMAGE test` runs all."""
    said = built.image(
        "test",
        "-q",
        "tests/guest/test_determinism.py",
        "tests/scenario/test_scenario.py",
        "tests/container/test_container.py",
        "tests/cli/test_cli.py",
    )
    assert re.search(r"\d+ passed", said) and "failed" not in said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mount", "says"),
    [("noexec", "all are mounted noexec); set TMPDIR"), ("exec,size=40m", "MiB free, but the guest's memory")],
)
@pytest.mark.timeout(2 * PATIENCE_S)
def test_memory_that_is_noexec_or_small(built, mount, says):
    options = (*NOTHING, f"--tmpfs=/var/tmp:mode=1777,{mount}", "--tmpfs=/tmp:mode=1777,noexec")
    said = built.image("run", SCENARIO, *SHORT, options=options, check=False)
    assert says in said and "Traceback" not in said


@pytest.mark.slow
@pytest.mark.timeout(2 * PATIENCE_S)
def test_no_compiler_in_the_image(built):
    said = built.image("run", SCENARIO, "--cca-source", "kernels/cca/aimd.c", "--set", "flows.0.cca=aimd", check=False)
    assert "is not here: this is an image" in said and "Traceback" not in said
    assert "This machine can run bbrlab" in built.image("bbrlab", "doctor")


def answers(machine: Machine, name: str, port: int) -> bool:
    """Whether a JupyterLab in a container answers there, with the first notebook."""
    ask = f"import json, urllib.request as u; print(json.load(u.urlopen('http://127.0.0.1:{port}/api/contents/00_start.ipynb?content=0&token=t'))['name'])"
    return "00_start.ipynb" in machine.run("podman", "exec", name, "python", "-c", ask, check=False)


def lab_answers(
    machine: Machine, *words: object, options: tuple[str, ...], image: str = REAL, port: int = 8888
) -> bool:
    """Start a container with these words and see whether a JupyterLab comes up in it."""
    name = "bbrlab-test-lab"
    machine.run("podman", "rm", "--force", name, check=False)
    machine.run(
        "podman", "run", *LIMITS, "--detach", f"--name={name}", "--env=JUPYTER_TOKEN=t", *options, image, *words
    )
    try:
        return wait_for(lambda: answers(machine, name, port), 300) or pytest.fail(
            machine.run("podman", "logs", name)[-3000:]
        )
    finally:
        machine.run("podman", "rm", "--force", "--time=5", name)


@pytest.mark.slow
@pytest.mark.timeout(2 * PATIENCE_S)
def test_jupyterlab_starts_in_the_image(built):
    assert lab_answers(built, "lab", options=NOTHING[1:])


@pytest.mark.slow
@pytest.mark.timeout(2 * PATIENCE_S)
def test_jupyterlab_starts_in_the_devcontainer(built):
    """Its file, user, environment, mount and command, as VS Code and Codespaces take them; with their own tool where it is here."""
    file = paths.ROOT / ".devcontainer" / "devcontainer.json"
    content = json.loads(re.sub(r"(?m)^\s*//.*$", "", file.read_text(encoding="utf-8")))
    folder = "/workspaces/bbrlab"
    environment = [
        f"--env={k}={v.replace('${containerWorkspaceFolder}', folder)}" for k, v in content["containerEnv"].items()
    ]
    options = (
        "--network=none",
        f"--user={content['remoteUser']}",
        f"--volume={paths.ROOT}:{folder}",
        f"--workdir={folder}",
        *environment,
        "--entrypoint=",
    )
    said = built.run("podman", "run", *LIMITS, "--rm", *options, REAL, "bbrlab", "kernel", "list")
    assert "(default): " in said and "[built: Linux" in said.split("(default): ")[1].splitlines()[0]
    where = built.run(
        "podman", "run", *LIMITS, "--rm", *options, REAL, "python", "-c", "import bbrlab; print(bbrlab.__file__)"
    )
    assert where.startswith(folder)
    assert lab_answers(built, *content["postAttachCommand"].split(), options=options)


@pytest.mark.slow
@pytest.mark.timeout(2 * PATIENCE_S)
def test_jupyterlab_starts_as_binder_starts_it(built):
    arguments = ("--build-arg=NB_USER=jovyan", "--build-arg=NB_UID=1000")
    built.run("podman", "build", *arguments, "--file", binder.PAGE, "--tag", "localhost/bbrlab-binder", ".")
    words = ("jupyter", "notebook", "--ip=0.0.0.0", "--port=8888", "--ServerApp.root_dir=/bbrlab/notebooks")
    assert lab_answers(built, *words, options=("--network=none", "--user=1000"), image="localhost/bbrlab-binder")


@pytest.mark.slow
@pytest.mark.timeout(2 * PATIENCE_S)
def test_buildah_builds_it_too(built):
    name = "localhost/bbrlab-by-buildah:1"
    said = built.run("bbrlab", "container", "build", "--builder", "buildah", "--name", name, "--json")
    (told, _) = json.JSONDecoder().raw_decode(said[said.index("{\n") :])  # what it says of its steps follows
    assert told["labels"]["bbrlab.kernel"].startswith("lab-6.12")


@pytest.mark.slow
@pytest.mark.guest
@pytest.mark.timeout(2 * PATIENCE_S)
def test_jobs_run_in_the_image(built, tmp_path):
    """`snakemake --software-deployment-method apptainer`, with apptainer or SingularityCE."""
    if not (shutil.which("apptainer") or shutil.which("singularity")):
        pytest.skip("neither apptainer nor singularity here; Debian has no package of them")
    results = {"BBRLAB_RESULTS": str(tmp_path / "results")}
    built.run("snakemake", "--cores", "2", "--", "sif", **results)
    method = ("--software-deployment-method", "apptainer", "--apptainer-args", f"--bind {tmp_path} --no-home")
    built.run("snakemake", "--cores", "2", *method, "--config", "scale=smoke", "--", "fig3a", **results)
    (manifest_file, *_) = sorted((tmp_path / "results" / "runs").rglob("manifest.json"))
    assert json.loads(manifest_file.read_text())["source"]["commit"]
