"""Requests read the same from Postgres, size by size, on datasets that differ in one other person.

A proxy between the service and Postgres notes every message. The charges of an entry are of another size wherever one
person's charge differs, one person is left out, or the highest slot is touched; so nothing of them may be read.
"""

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from itertools import count
from typing import Any, Final
from uuid import UUID

import httpx
import orjson
import pytest

from service.api.app import HttpOptions
from service.core.release import Release
from service.ledger.model.entry_fields import ENTRY_FIELDS
from service.ledger.model.pieces import Measure
from service.ledger.model.views import Role
from service.store.postgres.rows import ENTRY_COLUMNS, PUBLIC_COLUMNS, LedgerSeal, entry_of
from service.store.postgres.store import PostgresStore
from service.store.postgres.transaction import KNOWN_ENTRIES, PostgresTransaction
from service.store.shards import ProcessShards
from service.workflows.datasets import Registration
from service.workflows.replica import Replica
from tests.api.world import created_app
from tests.core.releases import norms_squared_in
from tests.factories import SeededEntropy, open_replica
from tests.keys import LEDGER_KEY
from tests.leaks.wire import READ, ROW, Note, NotingProxy, sizes
from tests.memory.cache import MemoryWitness
from tests.memory.shards import dividing
from tests.rotation import one_of

N: Final = 5001
QUESTIONS: Final = 6
LISTED: Final = 4
TABLES: Final = {
    "people": {
        "kind": "individuals",
        "key": "id",
        "columns": {"k": {"type": "integer", "lower": 0, "upper": 10}, "limit_rho": {"type": "budget"}},
    }
}
ASK: Final = "/v1/datasets/survey/queries"


@dataclass(frozen=True, slots=True)
class Person:
    """The one person that differs between worlds: all others have k = 1 and the usual limit."""

    number: int = 2500
    k: str = "1"
    limit: str = ""
    act: Callable[[Replica, str], object] = lambda _replica, _key: None


def pause(replica: Replica, key: str) -> None:
    """The person takes no further part."""
    principal, _ = replica.principals.create(role="individual", name=key, dataset="survey", individual=key)
    replica.individuals.lower_limit(principal, "survey", pause=True)


def pause_and_resume(replica: Replica, key: str) -> None:
    """The person has taken no part for a while."""
    pause(replica, key)
    principal, _ = replica.principals.create(role="individual", name=key, dataset="survey", individual=key)
    replica.individuals.resume(principal, "survey")


ALIKE: Final = "alike"
NEIGHBOURS: Final = {
    ALIKE: Person(),
    "other value": Person(k="2"),
    "blank": Person(k=""),
    "left out": Person(limit="0"),
    "highest slot blank": Person(number=N - 1, k=""),
    "paused": Person(act=pause),
    "resumed": Person(act=pause_and_resume),
    "erased": Person(act=lambda replica, key: replica.curators.erase_individual("survey", key)),
}


def request(number: int) -> bytes:
    """A sum over everybody; each number is a query of its own."""
    noise = {"sigma": 1e6 + number}
    return orjson.dumps({"version": 1, "select": [{"sum": {"column": "k"}}], "noise": noise})


def calls(keys: Mapping[Role, str], query_id: str) -> dict[str, tuple[str, str, bytes, dict[str, str]]]:
    """The requests of an analyst, another individual and an auditor that charge nothing, by name."""
    another, auditor = ({"Authorization": f"Bearer {key}"} for key in (keys["individual"], keys["auditor"]))
    return {
        "listing": ("GET", f"/v1/queries?limit={LISTED}", b"", {}),
        "release": ("GET", f"/v1/queries/{query_id}", b"", {}),
        "retry": ("POST", ASK, request(1), {"Idempotency-Key": "key-1"}),
        "reuse": ("POST", ASK, request(2), {"Idempotency-Key": "new"}),
        "preview": ("POST", f"{ASK}/preview", request(3), {}),
        "datasets": ("GET", "/v1/datasets", b"", {}),
        "dataset": ("GET", "/v1/datasets/survey", b"", {}),
        "allowances": ("GET", "/v1/allowances", b"", {}),
        "another's receipts": ("GET", "/v1/me/receipts", b"", another),
        "another's account": ("GET", "/v1/me/budgets", b"", another),
        "audit": ("GET", "/v1/datasets/survey/ledger", b"", auditor),
    }


def lived(database_url: str, world: str, shards: int = 1) -> dict[str, list[Note]]:
    """The messages of each of an analyst's calls, after the same queries were answered in a world.

    Of sessions that begin after the data have come: how often a statement was sent decides whether it is prepared.
    """
    with opened(database_url, shards) as replica:
        registration = {"name": "survey", "guarantee": {"rho": "0.5"}, "capacity": 100_000, "tables": TABLES}
        replica.curators.register(Registration.model_validate(registration))
        person = NEIGHBOURS[world]
        replica.curators.append_rows("survey", "people", "text/csv", BytesIO(people(person)))
        person.act(replica, f"p{person.number}")
    with NotingProxy(database_url) as proxy, opened(proxy.url, shards) as replica:
        replica.preload()
        return asyncio.run(session(replica, proxy))


@contextmanager
def opened(database_url: str, shards: int) -> Iterator[Replica]:
    """A replica on a database, whose sessions number prepared statements from 0 in each test.

    With several shards, processes are these; all people are at the first.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("service.store.postgres.sessions._NAMES", count())
        store = PostgresStore(
            database_url, LEDGER_KEY, connections_max=1
        )  # a second one would begin whenever it is ready
        with open_replica(store, SeededEntropy(3), MemoryWitness(), dividing(ProcessShards(), shards)) as replica:
            yield replica
        store.close()


def people(person: Person) -> bytes:
    """Everybody, one person in particular."""
    rows = [f"p{n},{person.k},{person.limit}" if n == person.number else f"p{n},1," for n in range(N)]
    return "\n".join(["id,k,limit_rho", *rows, ""]).encode()


def _key(replica: Replica, role: Role) -> str:
    individual = "p7" if role == "individual" else None
    return replica.principals.create(role=role, name=role, dataset="survey", individual=individual)[1]


async def session(replica: Replica, proxy: NotingProxy) -> dict[str, list[Note]]:
    """One analyst's queries, and then the calls, each by itself."""
    roles: tuple[Role, ...] = ("analyst", "individual", "auditor")
    keys = {role: _key(replica, role) for role in roles}
    app = created_app(replica, HttpOptions())
    common: dict[str, Any] = {"Authorization": f"Bearer {keys['analyst']}", "Content-Type": "application/json"}
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    noted: dict[str, list[Note]] = {}
    async with httpx.AsyncClient(transport=transport, base_url="http://sparing", headers=common) as client:
        for number in range(QUESTIONS):
            answer = await client.post(ASK, content=request(number), headers={"Idempotency-Key": f"key-{number}"})
            assert answer.status_code == 200
        for what, (method, path, body, headers) in calls(keys, answer.headers["x-query-id"]).items():
            proxy.taken()
            response = await client.request(method, path, content=body, headers=headers)
            assert response.status_code == 200, (what, response.text)
            noted[what] = proxy.taken()
    return noted


def differing(ours: dict[str, list[Note]], theirs: dict[str, list[Note]]) -> dict[str, object]:
    """The detector: the calls of which a message differs in direction, kind or size, and what their messages were."""
    both = {what: (sizes(ours[what]), sizes(theirs[what])) for what in ours}
    return {what: pair for what, pair in both.items() if pair[0] != pair[1]}


def private_columns(notes: list[Note]) -> set[str]:
    """The private columns of the ledger that a statement about it names, `*` among them."""
    about = [note.text for note in notes if re.search(r"\bledger\b", note.text)]
    private = [*(each.name for each in ENTRY_FIELDS if each.tells_charges), "piece", "first_digest"]
    names = [rf"\b{name}\b" for name in private]
    found = re.findall("|".join([*names, r"\*"]), " ".join(about))
    return set(found)


@pytest.fixture(scope="module")
def kept() -> dict[str, dict[str, list[Note]]]:
    """The messages of worlds that were lived."""
    return {}


@pytest.fixture
def alike(new_database: Callable[[], str], kept: dict[str, dict[str, list[Note]]]) -> dict[str, list[Note]]:
    """The messages of the world in which everybody is alike, lived once."""
    if ALIKE not in kept:
        kept[ALIKE] = lived(new_database(), ALIKE)
    return kept[ALIKE]


@pytest.mark.parametrize("world", [world for world in NEIGHBOURS if world != ALIKE])
def test_one_person_changes_no_message(
    alike: dict[str, list[Note]], new_database: Callable[[], str], world: str
) -> None:
    """For every request of an analyst, another individual or an auditor: as many messages, each of the same size."""
    assert differing(alike, lived(new_database(), world)) == {}
    assert sum(note.direction == READ and note.kind == ROW for note in alike["listing"]) == LISTED


@pytest.mark.parametrize("world", one_of(["other value", "left out", "paused", "erased"]))
def test_one_person_changes_no_message_where_three_processes_are_shards(
    alike: dict[str, list[Note]], new_database: Callable[[], str], world: str
) -> None:
    """The messages are those of an undivided dataset."""
    assert differing(alike, lived(new_database(), world, shards=3)) == {}


def test_no_statement_names_a_private_column(alike: dict[str, list[Note]]) -> None:
    """Nor does a listing read values or the bytes of replies; every statement about the ledger was seen."""
    for what in ("listing", "release", "retry", "reuse"):
        assert any("ledger" in note.text for note in alike[what]), what
    of_analysts = {what: notes for what, notes in alike.items() if what not in {"another's receipts", "audit"}}
    assert {what: found for what, notes in of_analysts.items() if (found := private_columns(notes))} == {}
    assert not any(re.search(r"\bbody\b|\bvalues\b", note.text) for note in alike["listing"])
    assert private_columns([Note(direction="sent", kind=b"P", size=1, text="SELECT piece FROM ledger")]) == {"piece"}


def whole_listing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant the former listing, which read whole entries."""
    real = PostgresStore.releases_of

    def leaky(self: PostgresStore, principal_id: UUID, **page: Any) -> Any:
        statement = (
            "SELECT l.* FROM answers a JOIN ledger l USING (dataset_id, seq) WHERE a.principal_id = %s"
            " ORDER BY a.at DESC, a.query_id DESC LIMIT %s"
        )
        self._pool.rows(statement, [principal_id, page["limit"]])
        return real(self, principal_id, **page)

    monkeypatch.setattr(PostgresStore, "releases_of", leaky)


def whole_reuse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant the former look for an entry to reuse, which read all of it."""
    module = "service.store.postgres.transaction"
    monkeypatch.setattr(f"{module}.KNOWN_ENTRIES", KNOWN_ENTRIES.replace(PUBLIC_COLUMNS, ENTRY_COLUMNS))
    seal = LedgerSeal(LEDGER_KEY)
    monkeypatch.setattr(f"{module}.public_entry_of", lambda row: entry_of(row, seal, lambda _: [], pruned_seq=0))


def whole_ledger(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant the former pages of the ledger and of receipts, which were made of whole entries."""
    for name in ("entry_records", "own_charges"):
        real = getattr(PostgresTransaction, name)

        def leaky(self: PostgresTransaction, *slot: int, real: Any = real, **page: Any) -> Any:
            list(self.entries(after=0, limit=page["limit"]))
            return real(self, *slot, **page)

        monkeypatch.setattr(PostgresTransaction, name, leaky)


DIGITS_BYTES = 64  # by so much sizes differ anyway: an entry's sum of charges is written in as many digits as it has


def former_encoding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant the former encoding: one norm where all happen to be equal."""

    def measure(release: Release) -> Measure:
        norms = norms_squared_in(release)
        return Measure.ONE_NORM if bool((norms == norms[0]).all()) else Measure.NORMS

    monkeypatch.setattr("service.writer.shards.shard.measure_of", measure)


PLANTS: Final = {
    "listing": (whole_listing, {"listing"}),
    "reuse": (whole_reuse, {"retry", "reuse"}),
    "ledger": (whole_ledger, {"another's receipts", "audit"}),
}


@pytest.mark.parametrize(
    ("plant", "leaks", "encoding"),
    [
        *(pytest.param(*PLANTS[name], "former", id=f"former-{name}") for name in PLANTS),
        *(pytest.param(*PLANTS[name], "present", id=f"present-{name}") for name in one_of([*PLANTS])),
    ],
)
def test_whole_entries_would_be_seen(
    new_database: Callable[[], str],
    monkeypatch: pytest.MonkeyPatch,
    plant: Callable[[pytest.MonkeyPatch], None],
    leaks: set[str],
    encoding: str,
) -> None:
    """A seeded leak: were entries read as they once were, a statement names columns that it must not.

    With the former encoding one person's value shows in the sizes too; with the present one, whose sizes are the same
    for a stretch of people, not even then.
    """
    plant(monkeypatch)
    if encoding == "former":
        former_encoding(monkeypatch)
    ours, theirs = lived(new_database(), ALIKE), lived(new_database(), "other value")
    assert differing(ours, theirs).keys() == (leaks if encoding == "former" else set()), differing(ours, theirs)
    if encoding == "former":
        for what in leaks:
            more = abs(sum(note.size for note in theirs[what]) - sum(note.size for note in ours[what]))
            assert more >= N // 4 - DIGITS_BYTES  # two bits for each person, in one piece or in none
    assert any(private_columns(ours[what]) for what in leaks)
