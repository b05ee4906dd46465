"""The digest of what a test drew is the same for the same inputs, and another for others."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.drawn_inputs import Recorder, recorded


def law(least: int) -> Callable[[], None]:
    """A law of numbers from `least` on, which draws the same ones whenever it is called."""

    @settings(max_examples=5, derandomize=True, database=None)
    @given(st.integers(least, least + 1000))
    def holds(number: int) -> None:
        assert number >= least

    return holds


def digest(folder: Path, test: pytest.Item, *laws: Callable[[], None]) -> str:
    """The recorded digest of a test in which these laws ran."""
    recorder = Recorder(folder / "all.json")
    recorder.pytest_runtest_setup(test)
    for holds in laws:
        holds()
    recorder.pytest_sessionfinish()
    return recorded(folder)[test.nodeid]


def test_equal_inputs_have_one_digest_and_others_another(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Each with the number of examples that were drawn."""
    first = digest(tmp_path / "first", request.node, law(0))
    assert digest(tmp_path / "again", request.node, law(0)) == first
    assert digest(tmp_path / "other", request.node, law(7)) != first
    assert digest(tmp_path / "twice", request.node, law(0), law(0)) != first


def test_a_run_of_several_processes_has_the_tests_of_all(tmp_path: Path) -> None:
    """One file each."""
    (tmp_path / "gw0.json").write_text('{"a": "1"}')
    (tmp_path / "gw1.json").write_text('{"b": "2"}')
    assert recorded(tmp_path) == {"a": "1", "b": "2"}
