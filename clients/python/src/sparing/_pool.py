"""The connections of a client. They belong to one process: after `os.fork`, the child makes connections of its own.

Otherwise both processes would read each other's replies.
"""

import os
import threading
from collections.abc import Callable
from typing import Final, Generic, TypeVar
from weakref import WeakSet

import httpx

from sparing._errors import APIConnectionError

Http = TypeVar("Http", httpx.Client, httpx.AsyncClient)

_WITHOUT_CONNECTIONS: Final = (type(None), httpx.MockTransport, httpx.ASGITransport, httpx.WSGITransport)


class Pool(Generic[Http]):
    """The connections of one client in this process."""

    def __init__(self, make: Callable[[], Http], transport: object) -> None:
        """Connections of the client of httpx that `make` returns; `transport` is what it uses, None for the default."""
        self._make: Callable[[], Http] = make
        self._may_be_made_anew = isinstance(transport, _WITHOUT_CONNECTIONS)
        self._lock = threading.Lock()
        self._http: Http | None = make()
        self._of_parents: list[Http] = []
        _POOLS.add(self)

    @property
    def http(self) -> Http:
        """The client of httpx for this process.

        Raises APIConnectionError after a fork if the client was made with a transport that has connections of its own.
        """
        with self._lock:
            if self._http is None:
                if not self._may_be_made_anew:
                    raise APIConnectionError(
                        "Nothing was sent, because this client was made before os.fork, with a transport whose"
                        " connections belong to the parent; make a client in this process"
                    )
                self._http = self._make()
            return self._http

    def leave_to_parent(self) -> None:
        """Give up open connections in a forked child, without closing the parent's; a closed client stays closed."""
        self._lock = threading.Lock()
        if self._http is not None and not self._http.is_closed:
            self._of_parents.append(self._http)
            self._http = None


_POOLS: Final[WeakSet[Pool[httpx.Client] | Pool[httpx.AsyncClient]]] = WeakSet()


def _leave_all() -> None:
    for pool in list(_POOLS):
        pool.leave_to_parent()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_leave_all)
