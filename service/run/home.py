"""The contents of a home: the embedded servers and the pepper."""

import secrets
from collections.abc import Callable
from typing import Final

from service.embedded import Servers, open_servers
from service.embedded.home import open_home, write_private
from service.settings.settings import Settings, pepper_from

_PEPPER_FILE: Final = "pepper"


def servers_of(
    settings: Settings, *, meanwhile: Callable[[], None] = lambda: None, failed: Callable[[str], None] | None = None
) -> Servers:
    """The servers of the home, until the end of a `with`: those that another process runs there already, or new ones.

    `meanwhile` is called while new servers come up, and not at all when there is nothing to wait for. With `failed` the
    new servers are kept running, and `failed` is called when they cannot be. If another process is starting servers in
    the home, this waits until it is done.
    """
    return open_servers(
        settings.home,
        settings.database_url,
        settings.redis_url,
        meanwhile=meanwhile,
        start_timeout_s=settings.start_timeout_ms / 1000,
        failed=failed,
    )


def has_pepper(settings: Settings) -> bool:
    """Tell whether the home keeps a pepper. It is made once a database exists."""
    return (settings.home / _PEPPER_FILE).exists()


def known_pepper(settings: Settings) -> bytes | None:
    """The pepper of the environment, else of the home, else None. Makes none. Raises SettingsError."""
    path = settings.home / _PEPPER_FILE
    if settings.pepper is not None:
        return settings.pepper
    return pepper_from(path.read_text(errors="replace").strip(), f"the pepper in {path}") if path.exists() else None


def pepper_of(settings: Settings) -> bytes:
    """The pepper of the environment, or the home's own, made on first use and never again. Raises SettingsError."""
    if settings.pepper is not None:
        return settings.pepper
    path = open_home(settings.home).path / _PEPPER_FILE
    if not path.exists():
        write_private(path, secrets.token_hex(32) + "\n", keep=True)  # another process may begin the same home
    return pepper_from(path.read_text(errors="replace").strip(), f"the pepper in {path}")
