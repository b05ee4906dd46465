"""A test finds the same surroundings, whatever has started it."""

import json
import os
import subprocess
import sys
from pathlib import Path

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
    "zone": time.tzname[0],
    "proxies": [name for name in os.environ if "PROXY" in name.upper()],
    "locale": os.environ["LC_ALL"],
}))
"""


def test_what_was_inherited_is_set_to_the_same() -> None:
    """Ignored and blocked signals, a umask, a zone, a locale and proxies."""
    strange = {"TZ": "Pacific/Chatham", "LC_ALL": "tr_TR.UTF-8", "http_proxy": "http://127.0.0.1:1", "NO_PROXY": "a"}
    shown = subprocess.run(
        [sys.executable, "-c", SHOWN], cwd=ROOT, env=os.environ | strange, capture_output=True, text=True, check=True
    ).stdout
    assert json.loads(shown) == {
        "int": True,
        "quit": True,
        "blocked": 0,
        "umask": 0o022,
        "zone": "UTC",
        "proxies": [],
        "locale": "C.UTF-8",
    }
