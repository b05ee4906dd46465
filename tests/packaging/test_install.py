"""Locks are installed by uv with pip's configuration, and by pip where uv cannot."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
from install_lock import PIP, PIP_INSTALL, errors, install, pip_settings, progress, run, uv_command, uv_environment

INDEX = "https" + "://mirror.example/simple"
MORE = "https" + "://more.example/simple"
CONFIGURED = f"""global.cert='/certificates.pem'
global.index-url='{MORE}'
install.index-url='{INDEX}'
global.find-links='one\\ntwo'
:env:.default-timeout='180'
"""


@dataclass(kw_only=True)
class Machine:
    """Runs nothing: notes each command and environment, and fails where the command's first words are `failing`."""

    failing: tuple[str, ...] = ()
    commands: list[list[str]] = field(default_factory=list)
    environments: list[Mapping[str, str]] = field(default_factory=list)

    def __call__(self, command: list[str], environment: Mapping[str, str]) -> tuple[int, str]:
        self.commands.append(command)
        self.environments.append(environment)
        if any(word in command or word in command[0].rsplit("/", 1)[-1] for word in self.failing):
            return 2, "Resolving\nerror: no route\n  Caused by: a cable\n"
        return 0, CONFIGURED if command == [*PIP, "config", "list"] else ""


def test_pips_settings_are_read_as_pip_reads_them() -> None:
    """The section of `pip install` wins over the global one, and a variable over both."""
    settings = pip_settings(CONFIGURED + ":env:.cert='/other.pem'\nfreeze.all='true'\n")

    assert settings == {"cert": "/other.pem", "index-url": INDEX, "find-links": "one\ntwo", "default-timeout": "180"}


def test_uv_asks_where_pip_would_ask() -> None:
    """Index, folders, certificate and timeout reach uv under its names; uv looks at every index, as pip does."""
    assert uv_environment(pip_settings(CONFIGURED), {"HOME": "/h"}) == {
        "HOME": "/h",
        "UV_DEFAULT_INDEX": INDEX,
        "UV_FIND_LINKS": "one,two",
        "SSL_CERT_FILE": "/certificates.pem",
        "UV_HTTP_TIMEOUT": "180",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
    }


@pytest.mark.parametrize("own", ["UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS"])
def test_a_machine_that_has_uv_configured_keeps_that(own: str) -> None:
    """Beside an index of uv's own none of pip's is named; a variable of uv's is never overwritten."""
    environment = uv_environment(pip_settings(CONFIGURED), {own: MORE, "SSL_CERT_FILE": "/mine.pem"})

    assert environment == {
        own: MORE,
        "SSL_CERT_FILE": "/mine.pem",
        "UV_HTTP_TIMEOUT": "180",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
    }


@pytest.mark.parametrize(("said", "offline"), [("true", True), ("1", True), ("false", False), ("", False)])
def test_no_index_is_an_option(said: str, offline: bool) -> None:
    """The option makes uv look into folders only, as pip does."""
    assert ("--no-index" in uv_command("a.lock", {"no-index": said})) is offline


def test_uv_installs_the_lock_and_pip_only_uv() -> None:
    """Hashes guard uv too; it gets pip's index, and no address as an argument, where others could read it."""
    machine = Machine()

    assert install("a.lock", environment={}, runner=machine) == 0
    assert machine.commands == [
        [*PIP_INSTALL, "--quiet", "-r", "requirements-uv.lock"],
        [*PIP, "config", "list"],
        uv_command("a.lock", {}),
    ]
    assert machine.environments[-1]["UV_DEFAULT_INDEX"] == INDEX


@pytest.mark.parametrize("failing", ["requirements-uv.lock", "uv"])
def test_pip_installs_where_uv_cannot(failing: str, capsys: pytest.CaptureFixture[str]) -> None:
    """If uv cannot be installed or cannot install, pip uses the same hashes, and one line says why."""
    machine = Machine(failing=(failing,))

    assert install("a.lock", environment={}, runner=machine) == 0
    assert machine.commands[-1] == [*PIP_INSTALL, "-r", "a.lock"]
    assert capsys.readouterr().out.split("\n") == [
        "",
        "uv cannot install here (error: no route); pip does it, which takes about a minute",
        "",
    ]


def test_a_lock_that_pip_refuses_too_stops_everything(capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong hash is refused by both; the exit status is pip's, and its errors are shown in full."""
    assert install("a.lock", environment={}, runner=Machine(failing=("uv", "a.lock"))) == 2
    assert capsys.readouterr().out.endswith("\n\nerror: no route\n  Caused by: a cable\n")


def test_progress_is_a_dot_for_each_package() -> None:
    """Retries are shown in full, everything else as signs of life."""
    pip = ["Collecting a==1\n", "  Using cached a\n", "WARNING: Retrying (Retry)\n", "Installing collected packages\n"]
    uv = ["Resolved 1 package\n", " Downloaded a\n", "Prepared 1 package\n", "Installed 1 package\n", " + a==1\n"]

    assert "".join(progress(pip)) == ".WARNING: Retrying (Retry)\n unpacking"
    assert "".join(progress(uv)) == ". unpacking done\n"


def test_without_a_marked_error_everything_said_is_shown() -> None:
    """A crash that prints no line in the usual form is not swallowed."""
    assert errors("Illegal instruction\n\n") == ["Illegal instruction"]


def test_a_command_is_run_in_its_environment(capsys: pytest.CaptureFixture[str]) -> None:
    """Both streams are read and the status is given; a program that is not there counts as failed."""
    script = "import os, sys; print('Collecting', os.environ['WORD']); sys.exit('ERROR: ' + os.environ['WORD'])"

    assert run([sys.executable, "-c", script], {"WORD": "a"}) == (1, "ERROR: a\nCollecting a\n")
    assert capsys.readouterr().out == "."
    assert run(["/nowhere/uv"], {})[0] == 127
