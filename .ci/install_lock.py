"""Installs a hashed lock into the virtual environment whose Python runs this: `python .ci/install_lock.py LOCK`.

uv does it in a fifth of pip's time. pip installs uv from a hashed lock of its own, and uv is given pip's settings for
index, certificate and proxy, so that a machine with pip configured needs nothing else. Where uv cannot be installed or
fails, pip installs everything. Both accept only wheels whose SHA-256 is in the lock.
"""

import ast
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

UV_LOCK: Final = "requirements-uv.lock"
PIP: Final = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
PIP_INSTALL: Final = [*PIP, "install", "--require-hashes", "--only-binary", ":all:"]
UV_INSTALL: Final = [
    "pip",
    "install",
    "--require-hashes",
    "--no-build",
    "--compile-bytecode",
    "--python",
    sys.executable,
]

# pip's setting, uv's variable, and the separator where the variable holds a list (pip separates by white space).
INDEX_SETTINGS: Final = {
    "index-url": ("UV_DEFAULT_INDEX", ""),
    "extra-index-url": ("UV_INDEX", " "),
    "find-links": ("UV_FIND_LINKS", ","),
}
OTHER_SETTINGS: Final = {
    "trusted-host": ("UV_INSECURE_HOST", " "),
    "cert": ("SSL_CERT_FILE", ""),
    "client-cert": ("SSL_CLIENT_CERT", ""),
    "proxy": ("ALL_PROXY", ""),
    "default-timeout": ("UV_HTTP_TIMEOUT", ""),
    "timeout": ("UV_HTTP_TIMEOUT", ""),
}
OWN_INDEX: Final = frozenset({"UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS"})

Runner = Callable[[list[str], Mapping[str, str]], tuple[int, str]]  # a command and its environment: status and output


def pip_settings(listed: str) -> dict[str, str]:
    """The settings of `pip install` in what `pip config list` prints; variables win over [install] over [global]."""
    found: dict[str, str] = {}
    for wanted in ("global", "install", ":env:"):
        for line in listed.splitlines():
            key, _, value = line.partition("=")
            section, _, name = key.partition(".")
            if section == wanted:
                found[name] = str(ast.literal_eval(value))
    return found


def uv_environment(settings: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """The environment for uv: `environment`, and pip's settings where it says nothing of its own.

    A variable that names an index of uv's keeps all of pip's indexes out. uv is told to look at every index, as pip
    does; by default it stops at the first that knows a name. The hash decides in any case.
    """
    mapped = dict(OTHER_SETTINGS) if OWN_INDEX & environment.keys() else INDEX_SETTINGS | OTHER_SETTINGS
    passed = {
        variable: separator.join(settings[name].split()) if separator else settings[name]
        for name, (variable, separator) in mapped.items()
        if name in settings
    }
    return {"UV_INDEX_STRATEGY": "unsafe-best-match"} | passed | dict(environment)


def uv_command(lock: str, settings: Mapping[str, str]) -> list[str]:
    """The command by which uv installs `lock`; pip's `no-index` has no variable of uv's and becomes an option."""
    no_index = settings.get("no-index", "").lower() in {"1", "on", "true", "yes", "y", "t"}
    uv = str(Path(sys.executable).with_name("uv"))
    return [uv, *UV_INSTALL, *(["--no-index"] if no_index else []), "-r", lock]


def progress(lines: Iterable[str]) -> Iterator[str]:
    """A dot for each package of pip's and each large one of uv's, so that a slow network looks slow; retries whole."""
    for line in lines:
        if "Retrying" in line:
            yield line
        elif line.startswith(("Collecting", "Processing", " Downloaded")):
            yield "."
        elif line.startswith(("Installing collected", "Prepared")):
            yield " unpacking"
        elif line.startswith(("Successfully", "Installed")):
            yield " done\n"


def errors(said: str) -> list[str]:
    """What a failed command said, from its first error on; all of it where no line is marked as one."""
    lines = [line for line in said.splitlines() if line.strip()]
    marked = (at for at, line in enumerate(lines) if line.lstrip().startswith(("ERROR", "error:", "×")))
    return lines[next(marked, 0) :]


def run(command: list[str], environment: Mapping[str, str]) -> tuple[int, str]:
    """Run `command`, show its progress, and give its status and whole output; 127 where there is no such program."""
    said: list[str] = []
    try:
        process = subprocess.Popen(
            command, env=dict(environment), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
    except OSError as error:
        return 127, str(error)
    with process:
        for shown in progress(_kept(process.stdout or [], said)):
            print(shown, end="", flush=True)
    return process.returncode, "".join(said)


def _kept(lines: Iterable[str], said: list[str]) -> Iterator[str]:
    for line in lines:
        said.append(line)
        yield line


def install(lock: str, *, environment: Mapping[str, str], runner: Runner) -> int:
    """Install `lock` by uv, or by pip where that fails; gives the exit status of the last command."""
    status, said = runner([*PIP_INSTALL, "--quiet", "-r", UV_LOCK], environment)
    if status == 0:
        _, listed = runner([*PIP, "config", "list"], environment)
        settings = pip_settings(listed)
        status, said = runner(uv_command(lock, settings), uv_environment(settings, environment))
    if status == 0:
        return 0
    reason = next(iter(errors(said)), f"exit status {status}").strip()
    print(f"\nuv cannot install here ({reason}); pip does it, which takes about a minute", flush=True)
    status, said = runner([*PIP_INSTALL, "-r", lock], environment)
    if status != 0:
        print("", *errors(said), sep="\n", flush=True)
    return status


if __name__ == "__main__":
    sys.exit(install(sys.argv[1], environment=os.environ, runner=run))
