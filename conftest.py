"""The surroundings, inputs and order of all tests: those of the service and those beside the clients."""

import pytest
from hypothesis import settings

from tests import durations, profiles, surroundings
from tests.rotation import IS_WHOLE, REPEATED_BY, TURN

surroundings.settle()
settings.load_profile(profiles.SOAK if IS_WHOLE else profiles.GATE)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that renews the recorded durations."""
    parser.addoption("--record-durations", action="store_true", help="write the seconds of each module that ran")


def pytest_configure(config: pytest.Config) -> None:
    """Record durations in the process that hears of every test."""
    if config.getoption("--record-durations") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(durations.Recorder())


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
