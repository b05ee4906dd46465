"""224 ledger entries under frozen entropy: each with its answer, its hashes and the receipts of three people.

A line holds the dataset, the query, and the facts. A dataset is made anew for its queries, which are asked in order.
"""

import io
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count, cycle, groupby, islice
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from pydantic import TypeAdapter

from service.ledger.model.errors import WorkflowError
from service.ledger.model.individual_views import Receipt
from service.ledger.model.views import Principal
from service.query.parse import query_of
from service.query.problems import QueryProblem
from service.workflows.datasets import Registration
from service.workflows.queries.submit import compiled
from service.workflows.replica import Replica
from tests.factories import open_replica
from tests.golden.drawing import DATASETS, ITEMS, MONITORED, PURE, Json, drawn, drawn_composite
from tests.golden.net import Net
from tests.golden.queries import ACCOUNTINGS, MONITOR, record_of
from tests.laws.node_world import TABLES, crowd
from tests.memory.store import MemoryStore
from tests.waiting import PATIENCE_S

OF_DATASET: Final = 20
COMPOSITES_OF_DATASET: Final = 3
"""They come after all others of their dataset."""
TRIED: Final = 400
"""The queries that are tried for one line: one in five is for the dataset."""
RULES: Final = ("skip", "drop")
DIMENSION_MAX: Final = 12
SHOWN: Final = ("p0", "p5", "p9")
LIMITS: Final = (0.002, 0.05, 1, None, 0.4)
"""The limits of individuals, in turn: some cannot pay for a query, and some not for the next."""
FLOOR: Final = 0.3
"""The least limit where there is a monitor, which keeps a part of each."""
ANALYST: Final = Principal(
    id=UUID(int=1), role="analyst", name="ana", dataset=None, individual=None, allowance_units=None
)
_FACTS: Final = (
    *("format", "kind", "mechanism", "query_hash", "sigma", "grid_log2", "worst_case_units", "worst_case_total_units"),
    *("charged_count", "left_out_count", "charged_units", "epoch", "acts"),
)
_HASHES: Final = ("hash", "values_digest", "pieces_digest", "private_digest", "answer_digest")
_RECEIPT: Final = TypeAdapter(Receipt)
Name = tuple[str, str]
"""The accounting and the rule of a dataset."""


@contextmanager
def _registered(accounting: str, rule: str) -> Iterator[tuple[Replica, MemoryStore]]:
    """A dataset of a crowd with limits of their own, under entropy that is the same each time."""
    store = MemoryStore()
    stated: Any = ACCOUNTINGS[accounting]
    guarantee = {"epsilon": "4"} if accounting == "pure" else {"rho": "1"}
    document = {"name": "golden", "guarantee": guarantee, "capacity": 1000, "tables": TABLES, "rule": rule}
    monitored = {"monitor": MONITOR, "limit_floor_rho": str(FLOOR)} if accounting == MONITORED else {}
    document |= {"accounting": stated} | monitored
    with open_replica(store) as replica:
        replica.curators.register(Registration.model_validate(document))
        yield replica, store


class _Dataset:
    """One dataset, of which queries are asked in order."""

    def __init__(self, replica: Replica, store: MemoryStore, *, floor: float) -> None:
        """Individuals' limits are `floor` at least."""
        self._replica, self._store, self.seq = replica, store, 0
        limits = [each and max(each, floor) for each in LIMITS]
        people = [(f"p{number}", *each) for number, each in enumerate(crowd().values())]
        rows = [{"person_id": key, **row, "limit_rho": limits[n % 5]} for n, (key, row, _) in enumerate(people)]
        visits = [{"person_id": key, **row} for key, _, owned in people for row in owned]
        for table, records in (("people", rows), ("visits", visits)):
            body = io.BytesIO("\n".join(json.dumps(each) for each in records).encode())
            accept = records[0].keys() - {"person_id"}  # some values are out of their domains
            replica.curators.append_rows("golden", table, "application/x-ndjson", body, accept=accept)

    def asked(self, document: object) -> Json | None:
        """The facts of the entry that a query makes; None where it is refused, or answered by an earlier one."""
        try:
            query = query_of(document)
            promise = self._replica.analysts.submit(ANALYST, "golden", f"key-{self.seq}", query)
            answer = promise.result(timeout=PATIENCE_S)
        except (QueryProblem, WorkflowError):
            return None
        if answer.sequence == self.seq:
            return None
        self.seq = answer.sequence
        with self._store.transaction(1, lock=False) as transaction:
            (entry,) = transaction.entries(after=self.seq - 1, limit=1)
        return {
            "answer": json.loads(answer.body),
            "entry": {name: getattr(entry, name) for name in _FACTS}
            | {name: getattr(entry, name).hex() for name in _HASHES},
            "receipts": {key: self._receipt(key) for key in SHOWN},
        }

    def _receipt(self, key: str) -> Json:
        """The cost of the last query to one individual; the query itself is in the answer."""
        (receipt,) = self._replica.curators.receipts("golden", key, cursor=None, limit=1).items
        shown: Json = _RECEIPT.dump_python(receipt, mode="json")
        return {name: shown[name] for name in ("words", "charged_rho", "asked_rho", "outcome")}


def _dataset(name: Name, replica: Replica, store: MemoryStore) -> _Dataset:
    return _Dataset(replica, store, floor=FLOOR if name[0] == MONITORED else 0)


def _line(name: Name, document: object, facts: Json | None) -> str:
    return json.dumps(
        {"dataset": list(name), "query": document, **(facts or {"refused": True})},
        ensure_ascii=False,
        separators=(",", ":"),
    )


def _drawn() -> Iterator[str]:
    """For each dataset so many queries, of each item that it answers in turn."""
    numbers = {item: count(place, len(ITEMS)) for place, item in enumerate(ITEMS)}
    composites = count()
    for name in ((accounting, rule) for accounting in DATASETS for rule in RULES):
        with _registered(*name) as opened:
            dataset = _dataset(name, *opened)
            lines = (_answered(dataset, name, islice(numbers[item], TRIED)) for item in cycle(ITEMS))
            yield from islice(filter(None, lines), OF_DATASET)
            for _ in range(0 if name[0] == PURE else COMPOSITES_OF_DATASET):
                yield _answered(dataset, name, composites, drawn_composite) or ""


def _answered(
    dataset: _Dataset, name: Name, numbers: Iterator[int], of: Callable[[int], tuple[str, Json]] = drawn
) -> str | None:
    """The line of the first of these queries that the dataset answers."""
    for number in numbers:
        accounting, document = of(number)
        if accounting == name[0] and _is_short(document) and (facts := dataset.asked(document)) is not None:
            return _line(name, document, facts)
    return None


def _is_short(document: Json) -> bool:
    """Tell whether it has an answer of a few numbers."""
    try:
        return compiled(query_of(document), record_of(MONITORED)).dimension <= DIMENSION_MAX
    except (QueryProblem, WorkflowError):
        return True


def _renewed(lines: Sequence[str]) -> Iterator[str]:
    """The lines of the same queries on datasets that are made anew."""
    kept = [json.loads(line) for line in lines]
    for name, own in groupby(kept, key=lambda line: (line["dataset"][0], line["dataset"][1])):
        with _registered(*name) as opened:
            dataset = _dataset(name, *opened)
            for each in own:
                yield _line(name, each["query"], dataset.asked(each["query"]))


NET: Final = Net(file=Path(__file__).parent / "data" / "entries.jsonl", drawn=_drawn, renewed=_renewed)
