"""A test finds the same surroundings, whatever has started it."""

import json
import locale
import os
import subprocess
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import psycopg
import pytest

from tests.surroundings import LOCALE, LOCALE_VARIABLE, ZONE, ZONE_VARIABLE

ROOT = Path(__file__).parents[1]
SHOWN = """
import json, os, signal, sys, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGQUIT, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
os.umask(0o777)
from tests.surroundings import settle
settle()
print(json.dumps({
    "int": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
    "quit": signal.getsignal(signal.SIGQUIT) is signal.SIG_DFL,
    "blocked": len(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
    "umask": os.umask(0),
    "zone": os.environ["TZ"],
    "proxies": [name for name in os.environ if "PROXY" in name.upper()],
    "locale": os.environ["LC_ALL"],
}))
"""


@pytest.mark.parametrize("chosen", [{}, {ZONE_VARIABLE: "Asia/Kathmandu", LOCALE_VARIABLE: "de_AT.UTF-8"}])
def test_what_was_inherited_is_set_to_the_same(chosen: dict[str, str]) -> None:
    """Ignored and blocked signals, a umask, a zone, a locale and proxies."""
    none = {ZONE_VARIABLE: "", LOCALE_VARIABLE: ""}
    strange = {"TZ": "Pacific/Chatham", "LC_ALL": "tr_TR.UTF-8", "http_proxy": "http://127.0.0.1:1", "NO_PROXY": "a"}
    shown = subprocess.run(
        [sys.executable, "-c", SHOWN],
        cwd=ROOT,
        env=os.environ | strange | none | chosen,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert json.loads(shown) == {
        "int": True,
        "quit": True,
        "blocked": 0,
        "umask": 0o022,
        "zone": chosen.get(ZONE_VARIABLE, "UTC"),
        "proxies": [],
        "locale": chosen.get(LOCALE_VARIABLE, "C.UTF-8"),
    }


def test_the_chosen_zone_and_locale_are_in_force() -> None:
    """A locale that the machine lacks is an error, and the offset of the zone is that of its rules."""
    assert locale.setlocale(locale.LC_ALL, "") == LOCALE
    assert datetime.fromtimestamp(0, ZoneInfo(ZONE)).utcoffset() == timedelta(seconds=-time.timezone)


def test_they_are_in_force_in_postgres(database_url: str) -> None:
    """The order of texts, the forms of numbers and the zone of a database of the tests."""
    asked = (
        "SELECT current_setting('TimeZone'), current_setting('lc_numeric'),"
        " (SELECT datcollate FROM pg_database WHERE datname = current_database())"
    )
    with psycopg.connect(database_url) as connection:
        assert connection.execute(asked).fetchone() == (ZONE, LOCALE, LOCALE)
