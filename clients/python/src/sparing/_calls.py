"""The calls of the API, free of input and output: generators that yield requests and return results.

A `Call[T]` yields requests, is sent the JSON document of each reply, and returns a T. A `Stream[T]` also yields items,
as they come. A sender runs these generators, and decides only how to wait. `httpx.Auth.auth_flow` has the same form.
"""

from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar, cast

from sparing._constants import CURSOR_LENGTH_MAX, PAGES_MAX
from sparing._decode import read
from sparing._errors import APIReplyError
from sparing._requests import Request, get

T = TypeVar("T")
Step = TypeVar("Step")


@dataclass(frozen=True, slots=True)
class Blocking:
    """Work on this machine that may take long, such as reading a file; its result is sent back."""

    work: Callable[[], object]


@dataclass(frozen=True, slots=True)
class Items(Generic[T]):
    """Items of a stream that arrived in one reply; nothing is sent back."""

    items: Iterable[T]


Call: TypeAlias = Generator[Request | Blocking, object, T]
Stream: TypeAlias = Generator[Request | Blocking | Items[T], object, None]


class Steps(Generic[Step, T]):
    """The steps of a generator for a loop, which puts into `reply` what is sent back; `result` is there at the end."""

    result: T

    def __init__(self, steps: Generator[Step, Any, T]) -> None:
        """Nothing is done before the loop begins."""
        self._steps = steps
        self.reply: object = None

    def __iter__(self) -> Iterator[Step]:
        while True:
            try:
                step = self._steps.send(self.reply)
            except StopIteration as end:
                self.result = end.value
                return
            self.reply = None
            yield step


def reply_of(model: type[T], request: Request) -> Call[T]:
    """The `model` that the reply to one request describes."""
    return read(model, (yield request))


def acknowledged(request: Request) -> Call[None]:
    """One request whose reply is ignored."""
    yield request


def blocking(work: Callable[[], T]) -> Call[T]:
    """The result of some work on this machine."""
    return cast("T", (yield Blocking(work)))


def listing(model: type[T], where: str, **params: str | int | None) -> Stream[T]:
    """Every item of a listing as a `model`, fetched page by page as consumed; None among `params` is not sent."""
    return listing_by(lambda item: read(model, item), where, **params)


def listing_by(read_item: Callable[[object], T], where: str, **given: str | int | None) -> Stream[T]:
    """Every item of a listing, read from JSON by `read_item`, fetched page by page; None among `given` is not sent."""
    params: dict[str, str | int] = {name: value for name, value in given.items() if value is not None}
    cursors = set[str]()
    for _ in range(PAGES_MAX):
        page = yield get(where, **params)
        if isinstance(page, list):
            yield Items(map(read_item, page))
            return
        if not isinstance(page, dict) or not isinstance(page.get("items"), list):
            raise APIReplyError(f"{where} is not a listing")
        yield Items(map(read_item, page["items"]))
        cursor = page.get("next")
        if cursor is None:
            return
        if not isinstance(cursor, str) or len(cursor) > CURSOR_LENGTH_MAX or cursor in cursors:
            raise APIReplyError(f"{where} is a listing that goes in a circle, or whose next page has no name")
        cursors.add(cursor)
        params["cursor"] = cursor
    raise APIReplyError(f"{where} is a listing of more than {PAGES_MAX:,} pages")


def only(stream: Stream[T], is_kept: Callable[[T], bool]) -> Stream[T]:
    """The items of a stream that are kept."""
    steps = Steps(stream)
    for step in steps:
        steps.reply = yield (Items(filter(is_kept, step.items)) if isinstance(step, Items) else step)


def for_each(stream: Stream[T], act: Callable[[T], object]) -> Call[None]:
    """Call `act` with every item of a stream, as they come."""
    steps = Steps(stream)
    for step in steps:
        if isinstance(step, Items):
            for item in step.items:
                act(item)
        else:
            steps.reply = yield step


def all_of(stream: Stream[T]) -> Call[tuple[T, ...]]:
    """Every item of a stream at once."""
    items: list[T] = []
    yield from for_each(stream, items.append)
    return tuple(items)
