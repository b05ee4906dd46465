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
    """The servers of the home, until the end of a `with`: those that another process runs there already, or our own.

    `meanwhile` is called while our own come up, and not at all when there is nothing to wait for. With `failed` they
    are kept running, and it is called when they cannot be. When another process is half-way through starting them, this
    waits until it is through.
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
    """Tell whether the home keeps a pepper, which is made once a database is there."""
    return (settings.home / _PEPPER_FILE).exists()


def known_pepper(settings: Settings) -> bytes | None:
    """The pepper as far as there is one: of the environment, else of the home. Makes none. Raises SettingsError."""
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
