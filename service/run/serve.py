"""Serving: adapters and replica, and the web server on top of them.

This module's top imports nothing that would delay the launch of embedded servers (docs/decisions/0023).
"""

import ctypes
import gc
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final

from service.ledger.ports.telemetry import NULL_TELEMETRY, Telemetry
from service.logs import configure_logs
from service.run.composition import open_service
from service.run.listening import (
    address_named,
    bound_socket,
    end_if_asked,
    end_on_signals,
    failing_when_told,
    ignore_signals,
    open_forward_listener,
    quiet_when_cut,
    url_of,
)
from service.run.trials import refuse_unusable
from service.settings.settings import Settings

if TYPE_CHECKING:
    from service.run.uvicorn_server import GracefulServer
    from service.workflows.replica import Replica

Watch = Callable[["Replica"], None]

SWITCH_INTERVAL_S: Final = 0.0005
"""With slots, how long a thread keeps the GIL when another waits for it. Python's default is longer than a slot."""

BLOCK_BYTES_MAX: Final = 2**25
"""The largest block that the allocator keeps for the next query; glibc accepts no more."""

KEPT_BYTES_MAX: Final = 2**28
"""How much freed memory at the top of the heap is kept."""

UPLOADS_AFTER_S: Final = 5.0
"""How long after the start the reading of uploads is prepared, while datasets load.

An earlier upload waits a second.
"""

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8


def serve(
    settings: Settings,
    *,
    host: str,
    port: int,
    ready: Callable[[str], None],
    measured: Callable[[str], None] = lambda _: None,
    keyless: Callable[[str], None] = lambda _: None,
) -> None:
    """Serve until SIGTERM or SIGINT, then drain. `ready` is called with the URL once connections are taken.

    If metrics are served, `measured` is called with their URL after that. `keyless` is called with the service's URL
    if no principal exists. Raises OSError when an address is taken.
    """
    end_on_signals()
    with bound_socket(host, port) as listener:
        serve_on(listener, settings, ready=ready, measured=measured, keyless=keyless)


def serve_on(
    listener: socket.socket,
    settings: Settings,
    *,
    ready: Callable[[str], None],
    measured: Callable[[str], None],
    keyless: Callable[[str], None] = lambda _: None,
) -> None:
    """Serve behind a socket that is bound already. The caller has called `end_on_signals`."""
    configure_logs(settings.log)
    keep_freed_memory()
    if settings.release_slot_ms > 0:
        sys.setswitchinterval(SWITCH_INTERVAL_S)
    gc.disable()  # until `tell`: of what a start makes, nearly all is there to stay
    with failing_when_told(), quiet_when_cut(), ExitStack() as stack:
        telemetry, metrics_url, watch = stack.enter_context(_telemetry(settings))
        forwarded, forward_url = stack.enter_context(_forwarded(settings))
        opened = stack.enter_context(open_service(settings, telemetry, serves=True, forward_url=forward_url))
        watch(opened.replica)
        if settings.preload:
            threading.Thread(target=opened.replica.preload, name="preload", daemon=True).start()
        is_keyless = not opened.replica.principals.listed(cursor=None, limit=1).items
        ended = threading.Event()
        stack.callback(ended.set)

        def tell() -> None:
            collect_rarely()
            ready(url_of(listener))
            if metrics_url is not None:
                measured(metrics_url)
            if is_keyless:
                keyless(url_of(listener))
            threading.Thread(target=_prepare_uploads, args=(opened.replica, ended), name="uploads").start()

        server = _server(opened.replica, settings, tell, telemetry)
        server.listen_to_signals()
        end_if_asked()  # not before: a signal between the look and the new handlers would be lost
        server.run(sockets=[listener, *forwarded])
        ignore_signals()  # the rest of the way out is short, and is better gone to its end


def _prepare_uploads(replica: "Replica", ended: threading.Event) -> None:
    """Prepare for reading uploads once the datasets are loading, unless the service has ended by then."""
    if not ended.wait(UPLOADS_AFTER_S):
        replica.curators.prepare_uploads()


def keep_freed_memory() -> bool:
    """Have glibc keep freed memory; False if the C library is another one. Call it before threads are started.

    By default glibc returns every block above 128 KiB to the kernel. A query about a million people then spends a third
    of its time on pages that the kernel has to clear again (17.2 instead of 10.4 ms). The memory that is kept is
    bounded.
    """
    if sys.platform != "linux":
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    settings = {_M_ARENA_MAX: 1, _M_MMAP_THRESHOLD: BLOCK_BYTES_MAX, _M_TRIM_THRESHOLD: KEPT_BYTES_MAX}
    accepted = [mallopt(name, value) == 1 for name, value in settings.items()]
    return all(accepted)


def collect_rarely() -> None:
    """Have the garbage collector scan only objects made from now on, and only after ten thousand of them.

    The objects of modules stay for ever, and scanning them takes longer than a query. A waiting query is hundreds of
    objects, none of them garbage: with many at once, the collector would scan them all after every few hundred.
    """
    gc.freeze()
    gc.set_threshold(10_000)
    gc.enable()


@contextmanager
def serving(settings: Settings, *, host: str, port: int) -> Iterator[tuple[str, "Replica"]]:
    """Serve from another thread during the block: (URL, replica). Raises OSError when the address is taken."""
    refuse_unusable(settings)
    end_on_signals()
    started = threading.Event()
    with failing_when_told(), quiet_when_cut(), ExitStack() as stack:
        listener = stack.enter_context(bound_socket(host, port))
        forwarded, forward_url = stack.enter_context(_forwarded(settings))
        opened = stack.enter_context(open_service(settings, serves=True, forward_url=forward_url))
        server = _server(opened.replica, settings, started.set, NULL_TELEMETRY)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener, *forwarded]}, name="uvicorn")
        thread.start()
        try:
            started.wait()
            end_if_asked()
            yield url_of(listener), opened.replica
        finally:
            server.should_exit = True
            thread.join()


def _server(
    replica: "Replica", settings: Settings, ready: Callable[[], None], telemetry: Telemetry
) -> "GracefulServer":
    # Half of all imports, and meanwhile the datasets are loaded.
    from service.run.uvicorn_server import server_of  # noqa: PLC0415

    return server_of(replica, settings, ready=ready, telemetry=telemetry)


@contextmanager
def _forwarded(settings: Settings) -> Iterator[tuple[list[socket.socket], str | None]]:
    """(listener of other processes' requests, its URL), if responses are held; else an empty list and None."""
    if settings.release_slot_ms == 0:
        yield [], None
        return
    with open_forward_listener(settings.forward_url) as (listener, url):
        yield [listener], url


@contextmanager
def _telemetry(settings: Settings) -> Iterator[tuple[Telemetry, str | None, Watch]]:
    """(telemetry, URL of its counts or None, function that watches a replica for it)."""
    if settings.metrics_port is None:
        yield NULL_TELEMETRY, None, lambda _: None
        return
    from service.metrics import PrometheusTelemetry, metrics_served  # noqa: PLC0415 - few serve them

    telemetry = PrometheusTelemetry()
    served = metrics_served(telemetry, host=settings.metrics_host, port=settings.metrics_port)
    with ExitStack() as stack:
        with address_named(f"SPARING_METRICS_HOST and SPARING_METRICS_PORT ({settings.metrics_port})"):
            url = stack.enter_context(served)

        def watch(replica: "Replica") -> None:
            telemetry.watch(
                waiting=replica.waiting,
                fenced=replica.fenced,
                opened=replica.opened,
                ready=replica.readiness.is_ready,
                shards=replica.readiness.shards,
            )

        yield telemetry, url, watch
