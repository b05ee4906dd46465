"""The web-visits under each rule: one count for each area, in the order of `areas.csv`, at (1, 1e-5).

    python -m loadtests.web_visits_rules [--docs] [--served]

The service answers in this process, in a dataset with `skip`; `ledger what-if` replays its ledger under each rule. With
`--docs` the table in docs/ledger.md and the picture docs/rules.png are made anew. With `--served` a service over HTTP
answers the same queries under each rule, and the shares are those of its ledger. A shortened contribution then counts
with the share of its length that was counted.
"""

import argparse
import gzip
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import orjson

from loadtests.rig import Rig, serving, throw_away_home
from service.cli.options import opened_service
from service.ledger.model.ledger_entry import LedgerEntry
from service.ledger.model.views import Rule
from service.ledger.ports.store import Store
from service.maintenance.supposed_replay import QueryOutcome, SupposedRule
from service.maintenance.what_if import WhatIf, what_if
from service.query.parse import parse_query
from service.workflows.replica import ReplicaOptions
from service.writer.admission.admission import Admission, MemoryBound
from sparing_demo.dataset import Area, WebVisits, read_web_visits
from tests.factories import analyst, open_replica, register
from tests.memory.store import MemoryStore

NAME: Final = "survey"
CAPACITY: Final = 100_000
MEMORY_BYTES: Final = 2**36
"""Memory that is reserved until responses have left, which they never do in this process."""
RULES: Final[Sequence[SupposedRule]] = ("skip", "drop", "clip")
SIGMAS: Final[Mapping[str, Callable[[int], float]]] = {
    "10 and 20 in turn": lambda number: 20.0 if number % 2 else 10.0,
    "10 throughout": lambda _: 10.0,
}
"""Sigma as a function of the query's number, which begins at 0."""
DOCS: Final = Path(__file__).parents[1] / "docs"
HEADER: Final = "| sigma | contributions | `skip` | `drop` | `clip` |"


@dataclass(frozen=True, kw_only=True)
class Replayed:
    """A ledger under one rule, and the contributions that each query touches and keeps."""

    found: WhatIf
    touched: Sequence[int]
    kept: Sequence[float]


def answered(data: WebVisits, sigma: Callable[[int], float], rule: SupposedRule = "skip") -> MemoryStore:
    """The store of a service that has answered every query under a rule."""
    store = MemoryStore()
    options = ReplicaOptions(admission=Admission(memory=MemoryBound(MEMORY_BYTES)))
    with open_replica(store, options=options) as replica:
        register(replica, **registration(data, NAME, rule))
        for table, content in uploads(data).items():
            replica.curators.append_rows(NAME, table, "text/csv", io.BytesIO(content))
        who, submit = analyst(replica), replica.analysts.submit
        queries = [parse_query(orjson.dumps(query_of(area, sigma(n), rule))) for n, area in enumerate(data.areas)]
        # All at once: they are answered in order, and made durable together.
        waiting = [submit(who, NAME, f"k{number}", query) for number, query in enumerate(queries)]
        order = [orjson.loads(each.result(timeout=60).body)["sequence"] for each in waiting]
        refuse_disorder(order)
    return store


def registration(data: WebVisits, name: str, rule: SupposedRule) -> dict[str, Any]:
    """The registration under a rule; clip is a rule of queries."""
    visits = {
        "kind": "events",
        "key": "person_id",
        "rows_per_individual": len(data.areas),
        "columns": {"area": {"type": "category", "categories": [area.id for area in data.areas]}},
    }
    return {
        "name": name,
        "guarantee": {"epsilon": "1", "delta": "1e-5"},
        "capacity": CAPACITY,
        "rule": dataset_rule(rule),
        "tables": {"people": {"kind": "individuals", "key": "person_id", "columns": {}}, "visits": visits},
    }


def dataset_rule(rule: SupposedRule) -> Rule:
    """The rule of the dataset. Clip queries are asked of a dataset with skip."""
    return "skip" if rule == "clip" else rule


def uploads(data: WebVisits) -> Mapping[str, bytes]:
    """The rows of both tables, as CSV."""
    people = "".join(f"{person}\n" for person in ("person_id", *data.people))
    with gzip.open(data.visits_file) as visits:
        return {"people": people.encode(), "visits": visits.read()}


def refuse_disorder(sequences: Sequence[int]) -> None:
    """Raise RuntimeError unless the queries were answered in their order."""
    if list(sequences) != list(range(1, len(sequences) + 1)):
        raise RuntimeError("the queries were not answered in their order")


def query_of(area: Area, sigma: float, rule: SupposedRule) -> dict[str, Any]:
    """A query for the number of people that have visited an area; skip stands for the rule of the dataset."""
    return {
        "version": 1,
        "from": "visits",
        "select": [{"count": {}}],
        "where": {"eq": [{"col": "area"}, area.id]},
        "per_individual": {"l2_clip": 1},
        "noise": {"sigma": sigma},
        "rule": "clip" if rule == "clip" else "skip",
        "reuse": False,
    }


def replayed(store: MemoryStore, rule: SupposedRule) -> Replayed:
    """The ledger of a store under a rule."""
    told: list[QueryOutcome] = []
    found = what_if(store, NAME, rule=rule, tell=told.append)
    return Replayed(
        found=found, touched=[each.counted + each.left_out for each in told], kept=[each.kept for each in told]
    )


Figures = Mapping[str, Mapping[SupposedRule, Replayed]]
"""Replayed ledgers by sigma and rule."""


def figures(data: WebVisits) -> Figures:
    """Every ledger under every rule."""
    stores = {name: answered(data, sigma) for name, sigma in SIGMAS.items()}
    return {name: {rule: replayed(store, rule) for rule in RULES} for name, store in stores.items()}


def kept_in(entry: LedgerEntry) -> float:
    """The contributions that an entry counts, a shortened one by the share of its length; by the norms of the entry."""
    if entry.charged_count == 0:
        return 0.0
    quantities = entry.quantities()
    if quantities.norms_before is None:
        return float(np.count_nonzero(quantities.active))
    counted, asked = quantities.amounts[quantities.active], quantities.norms_before[quantities.active]
    return float(np.sqrt(counted / asked).sum())


def kept_by(store: Store, name: str) -> list[float]:
    """The contributions that each query of a dataset has counted."""
    record = store.dataset(name)
    if record is None:
        raise RuntimeError(f"there is no dataset {name}")
    with store.transaction(record.id, lock=False) as transaction:
        return [kept_in(entry) for entry in transaction.entries(after=0)]


def served(data: WebVisits) -> dict[str, dict[SupposedRule, list[float]]]:
    """The contributions that each query has counted in a service over HTTP, by sigma and rule."""
    named = {(sigma, rule): f"{rule}-{number}" for number, sigma in enumerate(SIGMAS) for rule in RULES}
    with throw_away_home() as home, serving(home, environment={"SPARING_RELEASE_SLOT_MS": "0"}) as rig:
        for (sigma, rule), name in named.items():
            ask_all(rig, data, name, sigma=SIGMAS[sigma], rule=rule)
        with opened_service(home) as opened:
            return {sigma: {rule: kept_by(opened.store, named[sigma, rule]) for rule in RULES} for sigma in SIGMAS}


def ask_all(rig: Rig, data: WebVisits, name: str, *, sigma: Callable[[int], float], rule: SupposedRule) -> None:
    """Register a dataset, upload all rows and ask every query."""
    path, headers = f"/v1/datasets/{name}", {"Content-Type": "text/csv"}
    rig.curator.post("/v1/datasets", json=registration(data, name, rule)).raise_for_status()
    for table_name, content in uploads(data).items():
        rows = f"{path}/tables/{table_name}/rows"
        rig.curator.post(rows, content=content, headers=headers).raise_for_status()
    sequences = []
    for number, area in enumerate(data.areas):
        query, key = query_of(area, sigma(number), rule), {"Idempotency-Key": f"{name}-{number}"}
        answer = rig.analyst.post(f"{path}/queries", json=query, headers=key).raise_for_status()
        sequences.append(answer.json()["sequence"])
    refuse_disorder(sequences)


def table_of(contributions: int, shares: Mapping[str, Sequence[float]]) -> str:
    """Shares under each rule, by sigma, as a table in Markdown."""
    lines = [HEADER, "|---|---|---|---|---|"]
    for name, by_rule in shares.items():
        cells = " | ".join(f"{100 * share:.3f} %" for share in by_rule)
        lines.append(f"| {name} | {contributions:,} | {cells} |")
    return "\n".join(lines)


def table(found: Figures) -> str:
    """The shares of contributions kept, as a table in Markdown."""
    (contributions,) = {each.found.contributions for by_rule in found.values() for each in by_rule.values()}
    shares = {name: [each.found.share_kept for each in by_rule.values()] for name, by_rule in found.items()}
    return table_of(contributions, shares)


def with_table(document: str, made: str) -> str:
    """The document with its table replaced by the one `made`. Raises ValueError if it has no table."""
    begin = document.index(HEADER)
    return document[:begin] + made + document[document.index("\n\n", begin) :]


def draw(found: Figures, where: Path) -> None:
    """Draw the share of all contributions lost so far, query by query, with one panel for each choice of sigma."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - drawn only where it is asked for
    from matplotlib.figure import Figure  # noqa: PLC0415 - as above

    figure = Figure(figsize=(9.6, 3.6), dpi=144, layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(found), sharey=True)
    styles: Mapping[SupposedRule, Literal["-", "--", ":"]] = {"skip": "-", "drop": "--", "clip": ":"}
    for axes, (name, by_rule) in zip(panels, found.items(), strict=True):
        for rule, each in by_rule.items():
            lost = np.cumsum(np.array(each.touched) - np.array(each.kept)) / each.found.contributions
            axes.plot(np.arange(1, lost.size + 1), 100 * lost, styles[rule], label=f"{rule}: {100 * lost[-1]:.2f} %")
        axes.set_title(f"sigma {name}", loc="left", fontsize=11)
        axes.set_xlabel("question, in the order of areas.csv")
        axes.legend(frameon=False, loc="upper left")
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("contributions lost so far, % of all")
    figure.savefig(where, format="png", metadata={"Software": None})


def main() -> None:
    """Print the table, and write the table and the picture if that is asked."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--docs", action="store_true", help="write the table and the picture to docs")
    parser.add_argument("--served", action="store_true", help="by a service over HTTP, whose ledger is read")
    wished = parser.parse_args()
    data = read_web_visits()
    if wished.served:
        kept = served(data)
        shares = {name: [sum(each) / len(data.visits) for each in by_rule.values()] for name, by_rule in kept.items()}
        print(table_of(len(data.visits), shares))
        return
    found = figures(data)
    made = table(found)
    print(made)
    if wished.docs:
        page = DOCS / "ledger.md"
        page.write_text(with_table(page.read_text(encoding="utf-8"), made), encoding="utf-8")
        draw(found, DOCS / "rules.png")


if __name__ == "__main__":
    main()
