"""The page docs/first-hour.md against `sparing serve`: its commands run as they stand, but for the ports.

tests/api/test_first_hour.py compares what its programs print; here they make the ledger that the operator verifies.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sparing import Client
from tests.api.documented import DOCS, Block, blocks, printed_by
from tests.e2e.homes import Homes
from tests.e2e.processes import environment, served, unexpected
from tests.waiting import PATIENCE_S

READ_URL = "import sys, urllib.request as r; sys.stdout.write(r.urlopen(sys.argv[-1]).read().decode())"
WITHOUT_CURL = f"command -v curl > /dev/null || curl() {{ python -c '{READ_URL}' \"$@\"; }}"
START, *BLOCKS = blocks((DOCS / "first-hour.md").read_text(encoding="utf-8"))


class Terminal:
    """A terminal in a clone, which keeps the variables that a block exports."""

    def __init__(self, home: Path) -> None:
        programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.variables = {**environment(), "HOME": str(home), "PATH": programs}
        self._exported = home / "exported"

    def run(self, commands: str) -> str:
        """Run commands that neither fail nor complain, and return their output."""
        line = ["bash", "-euo", "pipefail", "-c", f"{WITHOUT_CURL}\n{commands}\nenv -0 > {self._exported}"]
        done = subprocess.run(
            line, cwd=DOCS.parent, env=self.variables, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        assert (done.returncode, unexpected(done.stderr)) == (0, []), done.stderr
        exported = self._exported.read_text(encoding="utf-8").split("\0")
        self.variables = dict(each.split("=", 1) for each in exported if each)
        return done.stdout


def test_the_commands_come_to_what_the_page_shows(homes: Homes, monkeypatch: pytest.MonkeyPatch) -> None:
    """In order, with the programs between them."""
    begun = homes.begun()
    home = begun.rename(begun.parent / "first-hour")
    assert START.text == f"export SPARING_HOME=~/{home.name}\nsparing serve --metrics-port 9100\n"
    monkeypatch.chdir(DOCS.parent)
    terminal, names, printed = Terminal(home.parent), dict[str, object](), ""
    shown: list[tuple[Block, str]] = []
    with served(home, "--metrics-port", "0") as running:
        assert running.process.stdout is not None
        metrics = running.process.stdout.readline().split()[1]
        for block in BLOCKS:
            if block.language == "sh":
                commands = block.text.replace("http://127.0.0.1:8000", running.url)
                printed = terminal.run(commands.replace("http://127.0.0.1:9100/metrics", metrics))
                monkeypatch.setenv("SPARING_URL", terminal.variables["SPARING_URL"])
                monkeypatch.setenv("SPARING_API_KEY", terminal.variables["SPARING_API_KEY"])
            elif block.language == "python":
                printed_by(block.text, names)
                printed = ""
            elif printed:
                shown.append((block, printed))
        for each in names.values():
            if isinstance(each, Client):
                each.close()
    assert len(shown) == 3
    for block, true in shown:
        assert block.text == true, f"line {block.line}"
