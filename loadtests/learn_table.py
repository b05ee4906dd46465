"""The area under the curve that a private logistic regression loses on a generated table, beside one without privacy.

python -m loadtests.learn_table [--people N] [--share S] [--runs N]

The table has 42 features: 20 correlated numbers, 2 booleans, and 20 values of three categories. The fit is that of
`sparing.learn` with its defaults, against the fake service with noise; individuals of the same law are kept out of it
to judge both fits. The budget is (1, 1e-5).
"""

import argparse
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparing import col, feature, one_hot
from sparing._design import Design
from sparing.learn import LogisticRegression
from sparing.testing import FakeService

Doubles = NDArray[np.float64]

NUMBERS, SIZES = 20, (4, 7, 9)
KEPT_OUT = 20_000
BOUND = 3.0


def tables() -> dict[str, Any]:
    """The public schema."""
    columns: dict[str, Any] = {f"x{n}": {"type": "real", "lower": -BOUND, "upper": BOUND} for n in range(NUMBERS)}
    columns |= {f"b{n}": {"type": "boolean"} for n in range(2)}
    columns |= {f"c{n}": {"type": "category", "size": size} for n, size in enumerate(SIZES)}
    return {"people": {"kind": "individuals", "key": "person_id", "columns": columns | {"left": {"type": "boolean"}}}}


def features() -> list[Any]:
    """The features, each at most 1 by the declared bounds."""
    numbers = [feature(col(f"x{n}") * (1 / BOUND)) for n in range(NUMBERS)]
    return [*numbers, feature("b0"), feature("b1"), *[one_hot(f"c{n}") for n in range(len(SIZES))]]


def drawn(people: int, rng: np.random.Generator) -> dict[str, list[Any]]:
    """The columns of people, of whom about a fifth left."""
    mixed = np.eye(NUMBERS) + 0.15 * rng.normal(size=(NUMBERS, NUMBERS))
    numbers = np.clip(rng.normal(size=(people, NUMBERS)) @ mixed, -BOUND, BOUND)
    booleans = rng.random((people, 2)) < (0.3, 0.6)
    codes = [rng.choice(size, people, p=rng.dirichlet(np.full(size, 3.0))) for size in SIZES]
    argument = numbers @ rng.normal(0, 0.3, NUMBERS) + booleans @ rng.normal(0, 0.5, 2)
    argument += sum(rng.normal(0, 0.5, size)[code] for size, code in zip(SIZES, codes, strict=True))
    argument += -np.quantile(argument, 0.5) - 1.6
    table: dict[str, list[Any]] = {"person_id": list(range(people))}
    table |= {f"x{n}": numbers[:, n].tolist() for n in range(NUMBERS)}
    table |= {f"b{n}": booleans[:, n].tolist() for n in range(2)}
    table |= {f"c{n}": code.tolist() for n, code in enumerate(codes)}
    return table | {"left": (rng.random(people) < 1 / (1 + np.exp(-argument))).tolist()}


def without_privacy(rows: Doubles, left: Doubles) -> Doubles:
    """The parameters of a logistic regression by Newton's method."""
    at = np.zeros(rows.shape[1])
    for _ in range(30):
        odds = 1 / (1 + np.exp(-rows @ at))
        hessian = (rows * (odds * (1 - odds))[:, None]).T @ rows + 1e-3 * np.eye(len(at))
        at = at - np.linalg.solve(hessian, rows.T @ (odds - left) + 1e-3 * at)
    return at


def area(scores: Doubles, left: Doubles) -> float:
    """The share of pairs, of one who left and one who stayed, in which the one who left has the higher score."""
    order = np.argsort(scores, kind="stable")
    ranks = np.empty(len(scores))
    ranks[order] = np.arange(1, len(scores) + 1)
    count = left.sum()
    return float((ranks[left == 1].sum() - count * (count + 1) / 2) / (count * (len(left) - count)))


def main() -> None:
    """Print the area without privacy and, for each run, that of the private fit."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--people", type=int, default=50_000)
    options.add_argument("--share", type=float, default=0.05)
    options.add_argument("--runs", type=int, default=5)
    asked = options.parse_args()
    losses = []
    for run in range(asked.runs):
        table = drawn(asked.people + KEPT_OUT, np.random.default_rng(run))
        fitted = {name: column[: asked.people] for name, column in table.items()}
        kept = {name: column[asked.people :] for name, column in table.items()}
        with FakeService(noise=True, seed=run) as fake:
            rows = [dict(zip(fitted, row, strict=True)) for row in zip(*fitted.values(), strict=True)]
            fake.add_dataset("churn", tables(), rows={"people": rows}, epsilon=1, delta="1e-5", capacity=asked.people)
            started = time.monotonic()
            model = LogisticRegression(features(), "left").fit(fake.client().dataset("churn"), share=asked.share)
            took_s, queries = time.monotonic() - started, len(fake.queries)
        design = Design(features(), tables()["people"]["columns"])
        own, judged = (np.hstack([design.matrix(each), np.ones((len(each["left"]), 1))]) for each in (fitted, kept))
        exact = without_privacy(own, np.array(fitted["left"], dtype="float64"))
        left = np.array(kept["left"], dtype="float64")
        best, private = area(judged @ exact, left), area(model.decision_function(kept), left)
        losses.append(best - private)
        print(
            f"run {run}: {queries} queries in {took_s:.1f} s, {np.mean(fitted['left']):.0%} left,"
            f" area {best:.4f} without privacy, {private:.4f} with it, {best - private:.4f} less"
        )
    print(f"of {asked.runs} runs: mean {np.mean(losses):.4f} less, at most {max(losses):.4f}")


if __name__ == "__main__":
    main()
