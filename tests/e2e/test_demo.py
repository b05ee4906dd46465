"""The demo as a newcomer runs it: real data, real servers, one command."""

import json
import re

import pytest

from tests.e2e.homes import Homes
from tests.e2e.processes import sparing, sparing_apart, unexpected
from tests.rotation import times

pytestmark = pytest.mark.slow


def test_the_demo_answers_all_queries_and_charges_no_individual_twice(homes: Homes) -> None:
    """294 answers within one guarantee; a second run finds them all and leaves every account as it was.

    In the gate no answer waits for a slot.
    """
    home, slot_ms = homes.known(), str(times(0, 2))
    runs = [sparing_apart("demo", home=home, SPARING_RELEASE_SLOT_MS=slot_ms) for _ in range(2)]
    assert [(run.returncode, unexpected(run.stderr)) for run in runs] == [(0, []), (0, [])]
    assert "294" in runs[0].stdout
    assert "worst-case accounting" in runs[0].stdout
    assert "charged again" in runs[1].stdout
    files = {path.suffix: path for path in (home / "demo").iterdir()}
    assert files[".png"].read_bytes().startswith(b"\x89PNG")
    report = json.loads(files[".json"].read_text())
    assert str(files[".json"].parent) in runs[0].stdout.replace("\n", "")
    assert len(files[".csv"].read_text().splitlines()) == 294 + 1
    assert report

    verified = sparing("ledger", "verify", home=home)
    assert verified.returncode == 0
    assert re.match(r"web-visits: 294 entries, \d+ answers, .* verified, 0 findings\n$", verified.stdout)
