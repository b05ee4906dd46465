"""Look-ups of credentials: all that wait share one, junk is bounded, and a familiar key waits for no stranger."""

import asyncio
import threading
from collections.abc import Sequence

import pytest

from service.api.lookups import BATCH_MAX, Credential, Lookups
from service.api.place import Place
from service.ledger.model.errors import TooManyStrangers, Unavailable
from service.ledger.model.views import Principal
from tests.waiting import settled

ANA = Principal.__new__(Principal)


class Keys:
    """Looks keys up when the gate is open."""

    def __init__(self) -> None:
        self.gate, self.looked_up = threading.Event(), list[list[str]]()
        self.known, self.familiar = {"ana": ANA}, set[str]()
        self.fails = False

    def remembered(self, text: str) -> Principal | None:
        return None

    def is_familiar(self, text: str) -> bool:
        return text in self.familiar

    def authenticate_all(self, texts: Sequence[str]) -> list[Principal | None]:
        self.looked_up.append(list(texts))
        self.gate.wait(30)  # in a failed test too
        if self.fails:
            raise Unavailable
        return [self.known.get(text) for text in texts]

    def standing_all(self, texts: Sequence[str]) -> list[Principal | None]:
        return [self.known.get(f"{text} stands") for text in texts]


class Scene:
    """Look-ups of which the first holds the thread until the gate is open."""

    def __init__(self, *, strangers_max: int = 10_000) -> None:
        self.keys = Keys()
        self.lookups = Lookups(Place("a test", threads=1), strangers_max=strangers_max)
        self.asking: list[asyncio.Task[Principal | None]] = []

    async def ask(self, *texts: str) -> list["asyncio.Task[Principal | None]"]:
        """Requests that come now, with these keys."""
        asked = [asyncio.create_task(self.lookups.of(Credential(text, self.keys))) for text in texts]
        self.asking += asked
        await settled()
        return asked

    async def answered(self) -> list[Principal | None]:
        """The outcomes of all."""
        self.keys.gate.set()
        return await asyncio.gather(*self.asking)


@pytest.fixture
def scene() -> Scene:
    """Without a bound that matters."""
    return Scene()


async def test_an_honest_key_among_thousands_of_junk_ones_waits_for_few_look_ups(scene: Scene) -> None:
    """Each is of many keys, and all of them run in one thread."""
    await scene.ask("first")
    await scene.ask(*(f"junk {number}" for number in range(3000)), "ana")
    assert await scene.answered() == [None] * 3001 + [ANA]
    assert [len(texts) for texts in scene.keys.looked_up] == [1, *[BATCH_MAX] * 11, 3001 - 11 * BATCH_MAX]


async def test_a_familiar_key_is_in_the_next_look_up_however_many_strangers_wait(scene: Scene) -> None:
    """And is not counted among them."""
    scene.keys.familiar.add("ana")
    await scene.ask("first")
    await scene.ask(*(f"junk {number}" for number in range(BATCH_MAX + 1)), "ana")
    await scene.answered()
    assert scene.keys.looked_up[1][0] == "ana"
    assert len(scene.keys.looked_up[1]) == BATCH_MAX + 1


async def test_beyond_the_bound_strangers_are_refused_in_words_and_familiar_keys_are_not() -> None:
    """Those that wait are answered."""
    scene = Scene(strangers_max=3)
    scene.keys.familiar.add("ana")
    await scene.ask("first")
    await scene.ask("a", "b", "c")
    (refused,) = await scene.ask("d")
    scene.asking.remove(refused)
    await scene.ask("ana", "a")  # the second of these waits already
    assert await scene.answered() == [None] * 4 + [ANA, None]
    with pytest.raises(TooManyStrangers, match="At most 3 keys that were not recognised lately may wait"):
        await refused


async def test_a_key_is_looked_up_once_for_all_requests_that_wait_with_it(scene: Scene) -> None:
    """Those that come once a look-up has begun wait for the next, which sees a key revoked meanwhile."""
    await scene.ask("ana")
    await scene.ask(*["ana"] * 20)
    scene.keys.known.clear()
    assert await scene.answered() == [None] * 21
    assert scene.keys.looked_up == [["ana"], ["ana"]]


async def test_a_failed_look_up_is_told_to_those_that_waited_for_it_alone(scene: Scene) -> None:
    """The next one is made."""
    scene.keys.fails = True
    (first,) = await scene.ask("ana")
    scene.keys.gate.set()
    with pytest.raises(Unavailable):
        await first
    scene.keys.fails, scene.asking = False, []
    await scene.ask("ana")
    assert await scene.answered() == [ANA]


async def test_a_cancelled_caller_does_not_cancel_the_lookup(scene: Scene) -> None:
    """Another with the same key is answered."""
    first, second = await scene.ask("ana", "ana")
    first.cancel()
    scene.keys.gate.set()
    assert await second is ANA


async def test_a_look_that_is_no_use_is_a_look_up_of_its_own(scene: Scene) -> None:
    """A request that goes on asks whether its credential still stands, by the database."""
    scene.keys.known["ana stands"] = None  # type: ignore[assignment] # ended
    scene.keys.gate.set()
    credential = Credential("ana", scene.keys)
    used, stands = await asyncio.gather(scene.lookups.of(credential), scene.lookups.of(credential, is_use=False))
    assert (used, stands) == (ANA, None)
