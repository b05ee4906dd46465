"""The recorded facts hold: plans and refusals, ledger entries with their receipts, and responses, byte for byte.

`python -m tests.golden renew` records what the service does now, and prints each difference for the commit's message.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from functools import cache
from typing import Any, Final

import pytest

from tests.api.route_table import ROUTES
from tests.golden import entries, queries, requests
from tests.golden.__main__ import NETS
from tests.golden.differences import differences
from tests.golden.drawing import COMPOSITES, DATASETS, ITEMS, MONITORED, PURE
from tests.golden.net import Net

BYTES_MAX: Final = 3 * 2**20
PLAIN: Final = {
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 X86_V3 AVX512_ICL",
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX2,-FMA,-FMA4",
}
"""A processor without AVX512, AVX2 and FMA, for numpy and for the mathematics of the C library."""


@cache
def records(net: Net) -> list[dict[str, Any]]:
    """The recorded cases."""
    return [json.loads(line) for line in net.lines()]


@pytest.mark.parametrize("net", NETS, ids=lambda net: net.file.stem)
def test_what_is_recorded_still_holds(net: Net) -> None:
    """Each difference is named by its line and its path."""
    assert differences(net.lines(), list(net.renewed(net.lines()))) == []


def test_the_same_bytes_come_from_a_processor_without_vectors() -> None:
    """A sum in another order, or a fused product, would show in the last digit."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.golden", "compare", "queries", "entries"],
        env={**os.environ, **PLAIN},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "queries.jsonl: 0 differences\nentries.jsonl: 0 differences\n", done.stderr


def test_every_item_is_planned_and_refused_under_every_accounting() -> None:
    """But for those that a pure guarantee cannot have, and a tick without a monitor."""
    found = {
        (name, record["dataset"], "plan" in record)
        for record in records(queries.NET)
        if isinstance(record["query"].get("select"), list)
        for item in record["query"]["select"]
        if isinstance(item, dict)
        for name in item
    }
    impossible = {(item, PURE, True) for item in ("active", "gradient", "moments", *COMPOSITES)}
    impossible |= {("exhausted", dataset, True) for dataset in DATASETS if dataset != MONITORED}
    every = {
        (item, dataset, planned)
        for item in (*ITEMS[:-1], *COMPOSITES)
        for dataset in DATASETS
        for planned in (True, False)
    }
    assert every - found == impossible


def test_every_noise_is_planned() -> None:
    """Also a list with one for each item, and parts of a worst case."""
    planned = [record["query"].get("noise", {}) for record in records(queries.NET) if "plan" in record]
    names = {name for noise in planned for name in noise}
    assert names == {"sigma", "rho", "share", "half_width", "confidence", "scale", "weights", "prepaid"}
    assert any(isinstance(noise.get("sigma"), list) and len(noise["sigma"]) > 1 for noise in planned)


def test_every_form_is_planned() -> None:
    """Each member of the language that changes a plan, and each rule."""
    planned = [record["query"] for record in records(queries.NET) if "plan" in record]
    forms = Counter(name for query in planned for name in query if query[name])
    wanted = {"from", "where", "group_by", "per_individual", "rule", "reduce", "mechanism", "reuse"}
    assert wanted <= {*forms}
    assert any((query.get("per_individual") or {}).get("rows") for query in planned)


def test_refusals_are_of_many_kinds() -> None:
    """By their words, without what they quote."""
    kinds = {
        "".join(each for each in message if not each.isdigit())[:40]
        for record in records(queries.NET)
        if "refused" in record
        for message in record["refused"].values()
    }
    assert len(kinds) > 80
    assert len(records(queries.NET)) == queries.COUNT + queries.COMPOSITE_COUNT


def test_entries_charge_shorten_and_leave_out() -> None:
    """Under every accounting and both rules of a dataset."""
    found = {
        (tuple(record["dataset"]), receipt["outcome"])
        for record in records(entries.NET)
        for receipt in record["receipts"].values()
    }
    assert {outcome for _, outcome in found} == {"charged", "left_out", "shortened", "untouched"}
    assert {name for name, _ in found} == {(dataset, rule) for dataset in DATASETS for rule in entries.RULES}
    composites = entries.COMPOSITES_OF_DATASET * (len(DATASETS) - 1)
    assert len(records(entries.NET)) == (entries.OF_DATASET * len(DATASETS) + composites) * len(entries.RULES)
    mechanisms = {record["entry"]["mechanism"].split()[0] for record in records(entries.NET)}
    assert mechanisms == {"gaussian", "laplace"}


def test_every_route_is_asked_in_every_way() -> None:
    """With responses of success and of refusal."""
    asked, shown = records(requests.NET), records(requests.EXAMPLES)
    assert len(asked) == len(ROUTES) * len(requests.WAYS)
    assert {each["route"] for each in shown} > {each["route"] for each in asked}
    statuses = Counter(record["status"] // 100 for record in asked + shown)
    assert min(statuses[2], statuses[4]) > 40
    assert statuses[5] == 0


def test_the_files_stay_small() -> None:
    """A person can read a difference of them."""
    assert sum(net.file.stat().st_size for net in NETS) <= BYTES_MAX


def test_a_difference_is_named_by_line_and_path() -> None:
    """Also one of order, of type, and of number."""
    kept = ['{"a":{"b":1,"c":[1,2]}}', '{"a":1,"b":2}', '{"a":1}', '{"a":1}']
    found = ['{"a":{"b":2,"c":[1,2]}}', '{"b":2,"a":1}', '{"a":1.0}']
    assert differences(kept, found) == [
        "1: a.b: 1 -> 2",
        '2:  (order): ["a", "b"] -> ["b", "a"]',
        "3: a: 1 -> 1.0",
        "4 lines -> 3 lines",
    ]
    assert differences(kept, kept) == []
    assert differences(['{"a":1}'], ['{"b":1}']) == ["1: a: 1 -> nothing", "1: b: nothing -> 1"]
