"""The rooms import inward only, and the pure ones stay pure."""

import pytest

from tests.architecture import rules
from tests.architecture.source import ROOT, module, modules

MEMORY = "service.engine.memory"


def complaints(rule: rules.Rule, *roots: str) -> list[str]:
    """Everything a rule has to say about the folders named."""
    return [complaint for found in modules(*roots) for complaint in rule(found)]


@pytest.mark.parametrize(
    "rule",
    [
        rules.inward_only,
        rules.folders_in_order,
        rules.foreign_packages_at_home,
        rules.pure,
        rules.core_imports_little,
        rules.items_by_their_facts,
        rules.arrays_behind_the_state,
        rules.no_assert,
        rules.no_base_http_middleware,
    ],
)
def test_the_service_keeps_the_rule(rule: rules.Rule) -> None:
    """No module of the service breaks the rule."""
    assert complaints(rule, "service") == []


@pytest.mark.parametrize("rule", [rules.no_word_for_everybody])
def test_everything_we_write_keeps_the_rule(rule: rules.Rule) -> None:
    """Neither server, client, migration, test nor benchmark breaks the rule."""
    assert complaints(rule, "service", "clients", "migrations", "tests", "loadtests", ".ci", "docs") == []


def test_the_client_does_without_the_service() -> None:
    """But for its estimates, its fake and its research; a device runs the core alone."""
    packages = [f"clients/{name}/src" for name in ("python", "demo", "audit", "local")]
    assert complaints(rules.client_without_the_service, *packages) == []
    assert complaints(rules.estimates_need_nothing, "clients/python/src", "service/query") == []


def test_shards_on_ray_import_what_an_adapter_may() -> None:
    """The rooms of `store`, and `store` itself."""
    found = [name for each in modules("clients/ray/src") for _, name in rules.imports(each)]
    rooms = {name.split(".")[1] for name in found if name.startswith("service.")}
    assert "ledger" in rooms
    assert rooms <= rules.MAY_IMPORT["store"] | {"store"}


def test_the_accountants_of_research_are_pure_and_tested() -> None:
    """Each of its modules has a test file of its name."""
    found = modules("clients/python/src/sparing/research")
    names = {each.path.removeprefix(rules.RESEARCH) for each in found} - {"__init__.py"}
    assert names
    assert complaints(rules.pure, "clients/python/src/sparing/research") == []
    tests = ROOT / "clients/python/tests/research"
    assert [name for name in sorted(names) if not (tests / f"test_{name}").exists()] == []


def test_no_test_module_imports_from_another() -> None:
    """A helper that two modules need is a module without `test_`."""
    assert complaints(rules.no_import_from_a_test_module, "tests", "loadtests", "clients") == []


def test_a_test_file_named_after_a_module_lies_where_the_module_does() -> None:
    """Tests mirror the source; a file of another name is named after a behaviour of several modules."""
    sources = [each.path for each in modules("service")]
    tests = [each.path for each in modules("tests") if "/test_" in each.path]
    assert rules.misplaced_tests(tests, sources) == []
    assert rules.misplaced_tests(["tests/core/test_plan.py"], ["service/core/deep/plan.py"]) == [
        "tests/core/test_plan.py has the name of service/core/deep/plan.py"
    ]


def test_each_module_has_a_test_file_of_its_name_or_is_named_with_its_tests() -> None:
    """A reader who changes a module finds its tests by its path, or in one short table."""
    sources = [each.path for each in modules("service")]
    tests = [each.path for each in modules("tests")]
    assert rules.untested_modules(tests, sources) == []
    assert rules.idle_patterns(tests, sources) == []
    assert [path for path in rules.COVERS if not (ROOT / path).exists()] == []


def test_the_table_of_tests_neither_hides_a_new_module_nor_outlives_an_old_one() -> None:
    """A pattern of a folder covers all in it, a name one module; a pattern is idle once each has a file of its own."""
    new, old = "service/query/plan.py", "service/query/language.py"
    assert rules.untested_modules([], [new, old, "service/cli/new.py", "service/cli/deep/new.py"]) == [
        "service/query/plan.py:1 has no tests/query/test_plan.py, and no pattern in COVERS",
        "service/cli/deep/new.py:1 has no tests/cli/deep/test_new.py, and no pattern in COVERS",
    ]
    assert rules.untested_modules(["tests/query/test_plan.py"], [new, "service/query/__init__.py"]) == []
    assert "query/language" not in rules.idle_patterns([], [old])
    assert "query/language" in rules.idle_patterns(["tests/query/test_language.py"], [old])


def test_no_two_classes_share_a_name() -> None:
    """A class is found by its name alone."""
    assert rules.one_class_for_each_name(modules("service")) == []
    twice = [module(f"service/core/{name}.py", "class Plan: ...") for name in ("one", "two")]
    assert rules.one_class_for_each_name(twice) == [
        "service/core/one.py:1 Plan is a class in service/core/two.py:1 too"
    ]


@pytest.mark.parametrize(
    "room",
    ["core", "accounting", "query", "engine", "ledger", "writer", "reads", "maintenance", "workflows", "store", "api"],
)
def test_every_room_is_there(room: str) -> None:
    """The rooms of the architecture exist, so that no rule above holds for want of anything to check."""
    assert modules(f"service/{room}")


@pytest.mark.parametrize(
    ("rule", "path", "text"),
    [
        (rules.inward_only, "service/core/charge.py", "from service.query.plan import Plan"),
        (rules.inward_only, "service/core/charge.py", "from service import store"),
        (rules.inward_only, "service/query/plan.py", "import service.engine.memory"),
        (rules.inward_only, "service/api/routes/analyst.py", "def f():\n    from service.store import postgres"),
        (rules.inward_only, "service/store/postgres.py", "from service.api import app"),
        (rules.inward_only, "service/workflows/replica.py", "from service.run.serve import build"),
        (rules.inward_only, "service/engine/memory.py", "from .evaluate import contributions"),
        (rules.inward_only, "service/cellar/wine.py", "import math"),
        (rules.folders_in_order, "service/ledger/model/rows.py", "import service.ledger.ports.store"),
        (rules.folders_in_order, "service/writer/shards/shard.py", "import service.writer.queue"),
        (rules.inward_only, "service/writer/queue.py", "import service.workflows.uploads"),
        (rules.folders_in_order, "service/workflows/uploads.py", "import service.workflows.curator"),
        (rules.folders_in_order, "service/workflows/curator.py", "import service.workflows.replica"),
        (rules.foreign_packages_at_home, "service/workflows/replica.py", "import psycopg.rows"),
        (rules.foreign_packages_at_home, "service/store/shards/process.py", "import ray"),
        (rules.foreign_packages_at_home, "service/store/shards/process.py", "import sparing_ray.shards"),
        (rules.foreign_packages_at_home, "service/workflows/replica.py", "from fastapi import HTTPException"),
        (rules.foreign_packages_at_home, "service/store/postgres.py", "from starlette.requests import Request"),
        (rules.pure, "service/core/noise.py", "import os"),
        (rules.pure, "service/query/parse.py", "import logging"),
        (rules.pure, "service/accounting/statements.py", "async def f(): ..."),
        (rules.pure, "service/core/noise.py", "import numpy as np\nnp.random.default_rng()"),
        (rules.pure, "service/core/noise.py", "def f():\n    print(1)"),
        (rules.pure, "service/core/noise.py", "def f():\n    global x"),
        (rules.pure, f"{rules.RESEARCH}noise_grid.py", "import os"),
        (rules.core_imports_little, "service/core/charge.py", "import pydantic"),
        (rules.estimates_need_nothing, "service/query/estimates.py", "import numpy as np"),
        (rules.estimates_need_nothing, f"{rules.ROOMS_OF_THE_CLIENT}estimates.py", "import service.query.plan"),
        (rules.items_by_their_facts, "service/query/plan.py", "from service.query.items.count import Count"),
        (rules.client_without_the_service, "clients/python/src/sparing/testing.py", "import service.core.noise"),
        (rules.client_without_the_service, "clients/python/src/sparing/_client.py", "import sparing._rooms.fake"),
        (rules.client_without_the_service, "clients/python/src/sparing/testing.py", "import sparing._rooms.core"),
        (rules.client_without_the_service, f"{rules.RESEARCH}descent.py", "import sparing._rooms.fake"),
        (rules.client_without_the_service, f"{rules.ROOMS_OF_THE_CLIENT}fake.py", "from service.store import postgres"),
        (rules.client_without_the_service, f"{rules.ROOMS_OF_THE_CLIENT}research.py", "import service.query.plan"),
        (rules.client_without_the_service, "clients/python/src/sparing/fake.py", "import service.core.noise"),
        (rules.client_without_the_service, "clients/local/src/sparing_local/device.py", "import service.core.noise"),
        (rules.arrays_behind_the_state, "service/reads/forecast.py", f"from {MEMORY} import DatasetMemory"),
        (rules.arrays_behind_the_state, "service/reads/forecast.py", f"import {MEMORY}"),
        (rules.arrays_behind_the_state, "service/reads/forecast.py", "from service.engine import memory"),
        (rules.arrays_behind_the_state, "service/reads/forecast.py", "def f(memory: 'DatasetMemory'): ..."),
        (rules.arrays_behind_the_state, "service/store/rows.py", "from service.core.renyi_filter import Accounts"),
        (rules.arrays_behind_the_state, "service/workflows/uploads.py", "self.state.memory"),
        (rules.arrays_behind_the_state, "service/workflows/uploads.py", "self.memory = base.memory"),
        (rules.arrays_behind_the_state, "service/writer/batch.py", "self.state.memory.accounts"),
        (rules.arrays_behind_the_state, "service/workflows/curator.py", "base.memory.changed(emptied=slots)"),
        (rules.arrays_behind_the_state, "service/workflows/curator.py", "def f(of: BaseVersion):\n    of.memory"),
        (rules.arrays_behind_the_state, "service/workflows/uploads.py", "view: RecordsView\nview._memory.accounts"),
        (rules.arrays_behind_the_state, "service/maintenance/reconcile.py", "state.accounts.room"),
        (rules.arrays_behind_the_state, "service/maintenance/reconcile.py", "DatasetState(record).accounts"),
        (rules.arrays_behind_the_state, "service/reads/act_log.py", "s = DatasetState(r)\ns.counters"),
        (rules.arrays_behind_the_state, "service/workflows/overview.py", "writer.look(lambda seen: seen.memory)"),
        (rules.no_import_from_a_test_module, "tests/core/test_charge.py", "from tests.core.test_noise import x"),
        (rules.no_assert, "service/core/charge.py", "assert True"),
        (
            rules.no_base_http_middleware,
            "service/api/app.py",
            "from starlette.middleware.base import BaseHTTPMiddleware",
        ),
        (rules.no_base_http_middleware, "service/api/app.py", "@app.middleware('http')\ndef f(): ..."),
        (rules.no_word_for_everybody, "service/api/app.py", "def get_user(): ..."),
        (rules.no_word_for_everybody, "service/api/app.py", "class UserView: ..."),
        (rules.no_word_for_everybody, "service/api/app.py", "def f(user_id): ..."),
        (rules.no_word_for_everybody, "service/api/app.py", "self.users = 1"),
    ],
)
def test_each_rule_bites(rule: rules.Rule, path: str, text: str) -> None:
    """A planted offence draws exactly one complaint, which names the file."""
    (complaint,) = rule(module(path, text))

    assert complaint.startswith(f"{path}:")


@pytest.mark.parametrize(
    ("rule", "path", "text"),
    [
        (
            rules.inward_only,
            "service/engine/evaluate.py",
            "from service.query.plan import Plan\nfrom service.core import charge",
        ),
        (rules.folders_in_order, "service/writer/queue.py", "import service.writer.shards.shard"),
        (rules.inward_only, "service/cli/app.py", "from service.store import postgres"),
        (rules.foreign_packages_at_home, "service/store/postgres.py", "import psycopg"),
        (rules.pure, "service/engine/ingest.py", "import io"),
        (rules.arrays_behind_the_state, "service/writer/shards/shard.py", "self.state.memory.accounts"),
        (
            rules.arrays_behind_the_state,
            "service/workflows/uploads.py",
            f"from {MEMORY} import SlotCodes\nstate.put(x)",
        ),
        (rules.arrays_behind_the_state, "service/workflows/curator.py", "accounts.budgets(stored.accounts)"),
        (
            rules.client_without_the_service,
            f"{rules.ROOMS_OF_THE_CLIENT}fake.py",
            "from service.core.noise import Entropy",
        ),
        (rules.client_without_the_service, f"{rules.ROOMS_OF_THE_CLIENT}research.py", "import service.core.charge"),
        (rules.client_without_the_service, "clients/python/src/sparing/testing.py", "import sparing._rooms.fake"),
        (rules.client_without_the_service, f"{rules.RESEARCH}descent.py", "import sparing._rooms.research"),
        (rules.no_word_for_everybody, "service/store/postgres.py", "connect(user='sparing')\nuserdata_free = 1"),
    ],
)
def test_no_rule_bites_the_innocent(rule: rules.Rule, path: str, text: str) -> None:
    """Allowed code draws no complaint, up to the last line allowed."""
    assert rule(module(path, text)) == []
