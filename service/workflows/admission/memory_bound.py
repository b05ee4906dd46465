"""The memory that all requests together may take, by their public costs, and how much of it one principal may take.

A principal may take as much as it leaves for all others: half of all when it is alone, and less while others hold
something. So one principal cannot keep the others out, whatever it asks for.
"""

import threading
from collections.abc import Hashable
from dataclasses import dataclass

from service.query.cost import PublicCost


class RequestTooLarge(Exception):
    """The request needs more memory than one principal's requests together may take."""

    def __init__(self, needed_bytes: int, allowed_bytes: int) -> None:
        super().__init__(f"needs {needed_bytes} bytes of {allowed_bytes} bytes")
        self.needed_bytes, self.allowed_bytes = needed_bytes, allowed_bytes


class MemoryFull(Exception):
    """The requests under way leave no room for this one."""


class Hold:
    """The memory that one admitted request holds."""

    __slots__ = ("_account", "_bound", "_cost", "_worker")

    def __init__(self, bound: "MemoryBound", account: "_Account", cost: PublicCost, worker: Hashable) -> None:
        self._bound: MemoryBound | None = bound
        self._account, self._cost, self._worker = account, cost, worker

    def release(self) -> None:
        """The request holds nothing any more. Repeating this does nothing."""
        bound, self._bound = self._bound, None
        if bound is not None:
            bound.release(self._account, self._cost, self._worker)


@dataclass(slots=True)
class _Account:
    """The bytes that one principal's requests keep together, and how many requests they are."""

    principal: Hashable
    kept_bytes: int = 0
    requests: int = 0


class MemoryBound:
    """Counts what admitted requests may hold. Thread-safe.

    A worker, such as a dataset's writer, works on its requests one after the other, so that of their working memory the
    largest counts once. What a request keeps counts until its response has left.
    """

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self._accounts: dict[Hashable, _Account] = {}  # of the principals that hold something
        self._kept_bytes = 0  # of all accounts
        self._working: dict[Hashable, dict[int, int]] = {}  # requests with so much, by worker
        self._lock = threading.Lock()

    def admit(self, principal: Hashable, cost: PublicCost, worker: Hashable = None) -> Hold:
        """Count a request. Raises RequestTooLarge where it could never be admitted, MemoryFull where it cannot now."""
        allowed_bytes = self.bytes_max // 2
        if cost.memory_bytes > allowed_bytes:
            raise RequestTooLarge(cost.memory_bytes, allowed_bytes)
        with self._lock:
            account = self._accounts.get(principal)
            if account is None:
                account = self._accounts[principal] = _Account(principal)
            working = self._working.setdefault(worker, {})
            working[cost.working_bytes] = working.get(cost.working_bytes, 0) + 1
            self._count(account, cost.kept_bytes, 1)
            own_bytes = account.kept_bytes + cost.working_bytes
            if self._used_bytes() + own_bytes <= self.bytes_max:
                return Hold(self, account, cost, worker)
            self._forget(account, cost, worker)
        raise MemoryFull

    def release(self, account: _Account, cost: PublicCost, worker: Hashable) -> None:
        """A request that was admitted holds nothing any more; its `Hold` says so, once."""
        with self._lock:
            self._forget(account, cost, worker)

    @property
    def kept_bytes(self) -> int:
        """The memory that admitted requests keep, in bytes."""
        return self._kept_bytes

    @property
    def requests(self) -> int:
        """The number of requests that hold memory."""
        with self._lock:
            return sum(account.requests for account in self._accounts.values())

    def _used_bytes(self) -> int:
        return self._kept_bytes + sum(map(max, self._working.values()))

    def _count(self, account: _Account, kept_bytes: int, requests: int) -> None:
        account.kept_bytes += kept_bytes
        account.requests += requests
        self._kept_bytes += kept_bytes

    def _forget(self, account: _Account, cost: PublicCost, worker: Hashable) -> None:
        working = self._working[worker]
        left = working.pop(cost.working_bytes) - 1
        if left > 0:
            working[cost.working_bytes] = left
        elif not working:
            del self._working[worker]
        self._count(account, -cost.kept_bytes, -1)
        if account.requests == 0:
            del self._accounts[account.principal]
