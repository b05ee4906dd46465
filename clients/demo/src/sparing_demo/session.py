"""Curator, analyst and individual, each with a key of its own, who use only the Python client."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from sparing import Answer, Client, Dataset, NotFoundError, col, count
from sparing_demo.dataset import Area, WebVisits
from sparing_demo.report import Account, Keys
from sparing_demo.strategy import Chooser

DATASET = "web-visits"
EPSILON, DELTA = "1", "1e-6"
CAPACITY = 50_000  # public, and rounder than the number of people
ROWS_CAPACITY = 200_000  # public too; the data's description gives three areas a person as the average

# The noise is chosen from public numbers alone. (1, 1e-6) allows each person 0.028 rho, and a count at sigma costs
# whoever it touches 1 / (2 sigma^2): at sigma 18 the budget pays for 18 areas a person, six times the three that the
# data's description gives as the average. So hardly anybody runs out, while an accountant who must charge everybody
# for every query stops after 18 of 294. A smaller sigma would leave out more of the keenest visitors than its
# narrower error bars are worth.
SIGMA = 18.0
CLIP = 1.0  # one person is one visitor of an area, whatever the rows say


class NotTheDemo(Exception):
    """A dataset of the demo's name exists and holds something else."""


def prepare(curator: Client, data: WebVisits) -> Dataset:
    """Register the dataset and upload its rows, as far as this was not done before.

    Raises:
        NotTheDemo: the name is taken by another dataset.
        SparingError: the service refuses, or cannot be reached.
    """
    try:
        dataset = curator.datasets.get(dataset=DATASET)
    except NotFoundError:
        dataset = curator.datasets.create(
            name=DATASET, epsilon=EPSILON, delta=DELTA, capacity=CAPACITY, tables=_tables(data.areas)
        )
    if set(dataset.tables) != {"people", "visits"} or dataset.rows is None:
        raise NotTheDemo(f"a dataset called {DATASET} exists and is not the demo's; run the demo on another home")
    uploads: dict[str, bytes | Path] = {"people": data.people_csv(), "visits": data.visits_file}
    for table, file in uploads.items():
        if dataset.rows.get(table, 0) == 0:
            curator.datasets.upload(dataset=DATASET, table=table, file=file)
    return curator.datasets.get(dataset=DATASET)


def make_keys(curator: Client, *, individual: str) -> Keys:
    """Make keys for an analyst and for `individual`. Each run makes new ones, because a key is shown only once."""
    make = curator.principals.create
    return Keys(
        analyst=make(role="analyst", name="demo analyst", dataset=DATASET).key,
        individual=make(role="individual", name="demo individual", dataset=DATASET, individual=individual).key,
    )


def ask_everything(
    analyst: Client, areas: Iterable[Area], *, heard: Callable[[Area, Answer], None]
) -> Iterator[tuple[Area, Answer]]:
    """Ask one count for each area, the most promising area first. Each answer decides the next query.

    `heard` is called with each answer.
    """
    chooser = Chooser(areas)
    while (area := chooser.next_area()) is not None:
        answer = analyst.queries.ask(
            dataset=DATASET, select=count(), from_="visits", where=col("area") == area.id, l2_clip=CLIP, sigma=SIGMA
        )
        chooser.learn(area, answer.value)
        heard(area, answer)
        yield area, answer


def read_own_account(individual: Client, *, person: str, areas_visited: int) -> Account:
    """The account of the individual `person`; no other key shows it."""
    (budget,) = (found for found in individual.me.budgets() if found.dataset == DATASET)
    outcomes = Counter(receipt.outcome for receipt in individual.me.receipts(page_size=1000))
    return Account(
        person=person,
        areas_visited=areas_visited,
        promise_epsilon=budget.promise_epsilon,
        epsilon_so_far_time_uniform=budget.epsilon_so_far_time_uniform,
        share_spent=budget.share_spent,
        charged=outcomes["charged"],
        left_out=outcomes["left_out"],
        untouched=outcomes["untouched"],
    )


def _tables(areas: Iterable[Area]) -> dict[str, object]:
    declared = [area.id for area in areas]
    return {
        "people": {
            "kind": "individuals",
            "key": "person_id",
            "columns": {"part": {"type": "category", "categories": ["training", "test"]}},
        },
        "visits": {
            "kind": "events",
            "key": "person_id",
            "columns": {"area": {"type": "category", "categories": declared}},
            "rows_per_individual": len(declared),
            "rows_capacity": ROWS_CAPACITY,
            "unknown_individuals": "reject",
        },
    }
