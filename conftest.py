"""The surroundings, inputs and order of all tests: those of the service and those beside the clients."""

import gc
import os
from pathlib import Path

import pytest
from hypothesis import settings

from tests import drawn_inputs, durations, profiles, surroundings
from tests.rotation import IS_WHOLE, REPEATED_BY, TURN

surroundings.settle()
settings.load_profile(profiles.SOAK if IS_WHOLE else profiles.GATE)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that renew the recorded durations and leave out what takes long."""
    parser.addoption("--record-durations", action="store_true", help="write the seconds of each module that ran")
    parser.addoption("--record-inputs", type=Path, help="write a digest of what each test drew into this folder")
    parser.addoption("--quick", action="store_true", help="leave out modules of which seconds are recorded")


def pytest_configure(config: pytest.Config) -> None:
    """Record durations in the process that hears of every test, and inputs in each that draws them."""
    if config.getoption("--record-durations") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(durations.Recorder())
    folder = config.getoption("--record-inputs")
    if folder is not None:
        worker = os.environ.get("PYTEST_XDIST_WORKER", "all")
        config.pluginmanager.register(drawn_inputs.Recorder(folder / f"{worker}.json"))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no module that takes long, if only the quick ones are asked for."""
    return True if config.getoption("--quick") and durations.takes_long(collection_path) else None


def pytest_collection() -> None:
    """Collect no garbage while the tests are collected, since all of it is kept."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Look at nothing that was collected when garbage is looked for later."""
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with the modules that take longest, so that no worker ends long after the others."""
    if config.pluginmanager.hasplugin("randomly"):
        return
    seconds = durations.recorded()
    items.sort(key=lambda item: -seconds.get(durations.module_of(item.nodeid), 0))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how each failure of a soak is repeated with the same seeds, kills, cuts and races."""
    failed = terminalreporter.getreports("failed") + terminalreporter.getreports("error")
    if IS_WHOLE and failed:
        command = f"{REPEATED_BY} .venv/bin/python -m pytest --hypothesis-seed={TURN}"
        for report in failed:
            terminalreporter.write_line(f"{command} '{report.nodeid}'")
