"""The lines of one logger: a test compares no others, since libraries and servers beside it write lines, too."""

import logging

import pytest


def records_of(caplog: pytest.LogCaptureFixture, logger: str) -> list[logging.LogRecord]:
    """The records of a logger and of those below it, in order."""
    return [record for record in caplog.records if f"{record.name}.".startswith(f"{logger}.")]


def lines_of(caplog: pytest.LogCaptureFixture, logger: str) -> list[str]:
    """Their messages."""
    return [record.getMessage() for record in records_of(caplog, logger)]
