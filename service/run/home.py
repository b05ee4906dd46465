"""The contents of a home: the embedded servers and the pepper."""

import secrets
import time
from collections.abc import Callable
from typing import Final

from service.embedded import HomeInUseError, Servers, attach_servers, start_servers
from service.embedded.home import open_home, write_private
from service.settings import Settings, pepper_from

_PEPPER_FILE: Final = "pepper"
_START_WAIT_S: Final = 30
_START_POLL_S: Final = 0.05


def servers_of(settings: Settings, *, meanwhile: Callable[[], None] = lambda: None) -> Servers:
    """The servers of the home, until the end of a `with`: those that another process runs there already, or our own.

    `meanwhile` is called while our own come up, and not at all when there is nothing to wait for. When another process
    is half-way through starting them, this waits until it is through.
    """
    deadline = time.monotonic() + _START_WAIT_S
    while True:
        running = attach_servers(settings.home, settings.database_url, settings.redis_url)
        if running is not None:
            return running
        try:
            return start_servers(settings.home, settings.database_url, settings.redis_url, meanwhile=meanwhile)
        except HomeInUseError:
            if time.monotonic() > deadline:
                raise
        time.sleep(_START_POLL_S)


def pepper_of(settings: Settings) -> bytes:
    """The pepper of the environment, or the home's own, made on first use and never again. Raises SettingsError."""
    if settings.pepper is not None:
        return settings.pepper
    path = open_home(settings.home).path / _PEPPER_FILE
    if not path.exists():
        write_private(path, secrets.token_hex(32) + "\n")
    return pepper_from(path.read_text(errors="replace").strip(), f"the pepper in {path}")
