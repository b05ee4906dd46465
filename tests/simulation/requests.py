"""The requests of clients, and the effect of each on the reference."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from decimal import Decimal
from io import BytesIO
from random import Random
from typing import Any
from uuid import UUID
from zlib import crc32

import orjson

from service.ledger.model.analyst_views import StoredAnswer
from service.ledger.model.errors import InvalidRequest, NotFound
from service.ledger.model.views import Principal
from service.query.keys import Key
from service.query.parse import parse_query
from service.workflows.replica import Replica
from tests.laws.filter_world import AREAS, REDUCED, selecting
from tests.laws.reference import ReferenceDataset

DATASET = "survey"
ROWS_MAX = 6
TICKS = 60
"""More than a world asks."""
PEOPLE = tuple(f"p{n}" for n in range(6))
REGISTRATION: dict[str, Any] = {
    "name": DATASET,
    "guarantee": {"rho": "2"},
    "capacity": 50,
    "tables": {
        "people": {
            "kind": "individuals",
            "key": "person_id",
            "columns": {"age": {"type": "integer", "lower": 0, "upper": 9}, "limit_rho": {"type": "budget"}},
        },
        "visits": {
            "kind": "events",
            "key": "person_id",
            "rows_per_individual": ROWS_MAX,
            "unknown_individuals": "create",
            "columns": {"area": {"type": "category", "size": AREAS}},
        },
    },
}
MONITOR = {"rho": "0.0625", "ticks": TICKS, "share": 0.45}
MONITORED_LIMIT = "1"
"""The smallest limit where there is a monitor: its share of the budget must be less than what that leaves."""
Wait = Callable[["Future[StoredAnswer]"], StoredAnswer]
ANALYSTS = [
    Principal(id=UUID(int=n), role="analyst", name=f"analyst {n}", dataset=None, individual=None, allowance_units=units)
    for n, units in ((1, None), (2, None), (3, 2**40))
]


@dataclass(frozen=True, slots=True, eq=False)
class Ask:
    """A query under a key; sent repeatedly, to any replica, it has one answer."""

    analyst: Principal
    key: str
    kind: str
    number: int
    sigma: float  # of Laplace noise its scale
    reuse: bool
    is_laplace: bool = False

    def __str__(self) -> str:
        if self.kind == "tick":
            return f"{self.analyst.name} asks for a tick under {self.key}"
        noise = f"{'a Laplace scale' if self.is_laplace else 'sigma'} {self.sigma}"
        return f"{self.analyst.name} asks {self.kind}({self.number}) at {noise} under {self.key}"

    @property
    def body(self) -> bytes:
        """The query as an analyst writes it."""
        document: dict[str, Any] = {"version": 1, "select": [{"count": {}}]} | selecting(self.kind, self.number)
        if self.kind == "tick":
            return orjson.dumps(document)
        noise = {"mechanism": "laplace", "noise": {"scale": self.sigma}}
        document |= noise if self.is_laplace else {"noise": {"sigma": self.sigma}}
        if self.kind != "active":  # where it is left out, and so false
            document["reuse"] = self.reuse
        return orjson.dumps(document)

    def send(self, replica: Replica, wait: Wait) -> bytes:
        """Send it and wait."""
        return wait(replica.analysts.submit(self.analyst, DATASET, self.key, parse_query(self.body))).body


@dataclass(frozen=True, slots=True, eq=False)
class Upload:
    """An upload of rows; a refusal also resolves it."""

    table: str
    rows: tuple[tuple[object, ...], ...]

    def __str__(self) -> str:
        return f"a curator uploads {self.table} {self.rows}"

    def send(self, replica: Replica, wait: Wait) -> object:
        """Send it; an individual already present, or one with too many rows, resolves it."""
        header = {"people": "person_id,age,limit_rho", "visits": "person_id,area"}[self.table]
        lines = [header, *(",".join("" if cell is None else str(cell) for cell in row) for row in self.rows)]
        try:
            return replica.curators.append_rows(
                DATASET, self.table, "text/csv", BytesIO("\n".join(lines).encode() + b"\n")
            )
        except InvalidRequest as refusal:
            return refusal

    def apply(self, model: ReferenceDataset) -> None:
        """Apply the upload to the reference."""
        for row in self.rows:
            if self.table == "people":
                key, age, limit = row
                model.join(str(key), age, None if limit is None else int(Decimal(str(limit)) * 2**40))  # type: ignore[arg-type]
                continue
            key, area = str(row[0]), row[1]
            if key not in model.people or not model.people[key].present:
                model.join(key, None, None)
            model.people[key].areas.append(area)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, eq=False)
class Erase:
    """An erasure of an individual."""

    key: str

    def __str__(self) -> str:
        return f"a curator erases {self.key}"

    def send(self, replica: Replica, wait: Wait) -> object:
        """Send it; an absent individual resolves it."""
        try:
            replica.curators.erase_individual(DATASET, self.key)
        except NotFound as refusal:
            return refusal
        return None

    def apply(self, model: ReferenceDataset) -> None:
        """Erase the record in the reference; the account stays."""
        person = model.people[self.key]
        person.present, person.areas, person.age = False, [], None


@dataclass(frozen=True, slots=True, eq=False)
class Lower:
    """An individual lowers its limit."""

    key: str
    limit: str

    def __str__(self) -> str:
        return f"{self.key} lowers the limit to {self.limit}"

    def send(self, replica: Replica, wait: Wait) -> object:
        """Send it; a refusal resolves it."""
        try:
            return replica.individuals.lower_limit(individual(self.key), DATASET, limit_rho=Decimal(self.limit))
        except (InvalidRequest, NotFound) as refusal:
            return refusal

    def apply(self, model: ReferenceDataset) -> None:
        """Lower the limit in the reference; one below the spent total is refused, so that it is in no commit."""
        model.people[self.key].limit = int(Decimal(self.limit) * 2**40) - model.reserve


@dataclass(frozen=True, slots=True, eq=False)
class Pause:
    """An individual pauses, or ends a pause."""

    key: str
    paused: bool

    def __str__(self) -> str:
        return f"{self.key} {'pauses' if self.paused else 'resumes'}"

    def send(self, replica: Replica, wait: Wait) -> object:
        """Send it; an absent individual resolves it."""
        me = individual(self.key)
        try:
            return (
                replica.individuals.lower_limit(me, DATASET, pause=True)
                if self.paused
                else replica.individuals.resume(me, DATASET)
            )
        except NotFound as refusal:
            return refusal

    def apply(self, model: ReferenceDataset) -> None:
        """Pause or resume in the reference; the limit does not change."""
        model.people[self.key].paused = self.paused

    def changes(self, model: ReferenceDataset) -> bool:
        """Tell whether it changes the pause; otherwise no act is journalled."""
        return model.people[self.key].paused != self.paused


def individual(key: str) -> Principal:
    """The principal of an individual."""
    return Principal(
        id=UUID(int=99), role="individual", name=key, dataset=DATASET, individual=Key(key), allowance_units=None
    )


@dataclass(frozen=True, slots=True, eq=False)
class OpenEpoch:
    """A new epoch, in which no earlier answer is reused."""

    def __str__(self) -> str:
        return "a curator opens an epoch"

    def send(self, replica: Replica, wait: Wait) -> object:
        """Send it."""
        return replica.curators.open_epoch(DATASET)

    def apply(self, model: ReferenceDataset) -> None:
        """No account changes."""


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """A curator reads budgets and ledger."""

    def __str__(self) -> str:
        return "a curator reads budgets and ledger"

    def send(self, replica: Replica, wait: Wait) -> object:
        """Read, and check that no account is above its limit and that sequences have no gap."""
        for row in replica.curators.budgets(DATASET, cursor=None, limit=100).items:
            if row.spent_units > row.budget_units:
                raise RuntimeError(f"{row.key} is shown with {row.spent_units} spent of {row.budget_units}")
        shown = [row.sequence for row in replica.auditors.ledger(DATASET, cursor=None, limit=1000).items]
        if shown != list(range(len(shown), 0, -1)):
            raise RuntimeError(f"the ledger is shown as {shown}")
        return replica.overview.summary(DATASET)


Request = Ask | Upload | Erase | Lower | Pause | OpenEpoch | Look


def drawn(random: Random, number: int) -> Request:
    """A random request of a client."""
    key, kind = random.choice(PEOPLE), random.random()
    if kind < 0.62:
        others = random.choice(["older", "visits", "all"])
        asked = "active" if kind < 0.08 else others
        return Ask(
            analyst=ANALYSTS[number % len(ANALYSTS)],
            key=f"k{number // len(ANALYSTS)}",
            kind=asked,
            is_laplace=asked in {"older", "visits"} and number % 4 == 1,
            number=random.randrange(AREAS),
            sigma=random.choice([0.7, 1.0, 1.0, 3.0, 20.0]),
            reuse=random.random() < 0.4,
        )
    if kind < 0.70:
        return Upload("people", ((key, random.choice([None, 1, 2, 5, 9]), random.choice([None, "0.5"])),))
    if kind < 0.82:
        rows = [(random.choice(PEOPLE), random.randrange(AREAS)) for _ in range(random.randint(1, 4))]
        return Upload("visits", tuple(rows) * random.choice([1, 1, 1, ROWS_MAX + 1]))
    if kind < 0.88:
        return Erase(key)
    if kind < 0.92:
        limit = random.choice([None, "0.25", "1", "1.5"])
        return Pause(key, paused=kind < 0.90) if limit is None else Lower(key, limit)
    return OpenEpoch() if kind < 0.95 else Look()


def varied(request: Request, accounting: str, *, has_monitor: bool) -> Request:
    """The request that stands for one that was drawn, in a world with more kinds.

    Queries are also reduced, ticks, or of any accounting. Where there is a monitor, limits are no smaller than it lets
    them be, and noise is so small that budgets are soon used up.
    """
    if isinstance(request, Upload) and request.table == "people" and has_monitor:
        rows = tuple((key, age, None if limit is None else MONITORED_LIMIT) for key, age, limit in request.rows)
        return replace(request, rows=rows)
    if not isinstance(request, Ask):
        return request
    draw = crc32(str(request).encode())
    if accounting == "pure":
        kinds = {"all": "visits", "active": "frequent"}
        return replace(request, kind=kinds.get(request.kind, request.kind), is_laplace=True)
    if request.kind == "all":
        return replace(request, kind=("all", *REDUCED)[draw % 3])
    if has_monitor:
        request = replace(request, sigma=min(request.sigma, 1.0))
    if has_monitor and (draw % 4 > 0 if request.kind == "active" else draw % 8 == 1):
        return replace(request, kind="tick", is_laplace=False, reuse=False)
    if request.kind == "active":
        return request
    return replace(request, is_laplace=draw % 2 == 0)


def opening(random: Random) -> list[Request]:
    """The first requests, which register individuals."""
    people = [(key, random.randrange(10), random.choice([None, None, "0.5"])) for key in PEOPLE[: random.randint(2, 4)]]
    visits = [(person[0], random.randrange(AREAS)) for person in people for _ in range(random.randrange(3))]
    return [Upload("people", tuple(people)), *([Upload("visits", tuple(visits))] if visits else [])]
