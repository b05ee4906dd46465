"""Opens a whole service: the servers first, then the adapters and the replica on top of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING

from service.ledger.ports.telemetry import NULL_TELEMETRY, Telemetry
from service.run.home import servers_of
from service.run.listening import ServerLost, end_because, end_if_asked
from service.settings.settings import Settings

if TYPE_CHECKING:
    from service.run.adapters import Adapters


@contextmanager
def open_service(
    settings: Settings, telemetry: Telemetry = NULL_TELEMETRY, *, serves: bool = False, forward_url: str | None = None
) -> Iterator["Adapters"]:
    """Servers and replica, opened in this order and closed in reverse order. Call it in the main thread.

    With `forward_url`, at which other processes reach this one, the replica shares the datasets with them.
    """
    failed = end_because if serves else None
    with servers_of(settings, meanwhile=_import_adapters, failed=failed) as servers:
        from service.run.adapters import open_adapters  # noqa: PLC0415 - as below

        end_if_asked()  # most of a start's callbacks, which drop exceptions, are those of imports
        with open_adapters(settings, servers, telemetry, serves=serves, forward_url=forward_url) as opened:
            yield opened


def _import_adapters() -> None:
    """Import the adapters, which takes half a second, while embedded servers come up."""
    import_module("service.run.adapters")


def known_failures() -> tuple[type[Exception], ...]:
    """The errors that an operator can mend: each is printed in one line, without a traceback.

    Naming them imports half of the service, so that a start does not call this before it has failed.
    """
    from service.embedded import EmbeddedServerError  # noqa: PLC0415
    from service.ledger.model.errors import ClockImplausible  # noqa: PLC0415
    from service.ledger.ports.shards import ShardsUnusable  # noqa: PLC0415
    from service.ledger.ports.store import StoreUnavailable  # noqa: PLC0415
    from service.run.lost_database import DatabaseLost  # noqa: PLC0415
    from service.store.postgres.curator_tables import PepperMismatch  # noqa: PLC0415
    from service.store.postgres.registrations import DatabaseUnusable, UnknownSchema  # noqa: PLC0415
    from service.store.postgres.sessions import DurabilityTooWeak  # noqa: PLC0415
    from service.store.postgres.store import SchemaMismatch  # noqa: PLC0415

    return (
        EmbeddedServerError,
        ServerLost,
        DatabaseLost,
        DatabaseUnusable,
        UnknownSchema,
        DurabilityTooWeak,
        SchemaMismatch,
        PepperMismatch,
        ShardsUnusable,
        StoreUnavailable,
        ClockImplausible,
        OSError,
    )
