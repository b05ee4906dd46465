"""Every wait for a thread or for a free slot has an owner and a place: none goes through a pool that all share."""

import pytest

from tests.architecture.rules import Rule, imports
from tests.architecture.source import Module, calls, module, modules

POOLS = {"starlette.concurrency", "fastapi.concurrency", "anyio"}
"""The modules through which work comes to the default pool of threads."""
PLACE = "service/api/place.py"
HOPS = {"run_in_executor", "run_in_threadpool", "to_thread", "run_sync"}
OWNED = {"when_free": 2}
"""Calls that name the principal for whom they wait, and their number of arguments with it."""


def no_default_pool(found: Module) -> list[str]:
    """Hops to threads of the event loop are made by `service.api.place` alone."""
    if found.path == PLACE:
        return []
    imported = [f"{found.path}:{line} imports {name}" for line, name in imports(found) if name in POOLS]
    called = [f"{found.path}:{call.lineno} calls {name}" for call, name in calls(found) if _last(name) in HOPS]
    return imported + called


def no_wait_without_a_principal(found: Module) -> list[str]:
    """A wait for a free slot is in the turn of its principal, and counted."""
    return [
        f"{found.path}:{call.lineno} calls {name} without a principal"
        for call, text in calls(found)
        if (name := _last(text)) in OWNED and len(call.args) + len(call.keywords) < OWNED[name]
    ]


def _last(name: str) -> str:
    return name.rpartition(".")[2]


@pytest.mark.parametrize("rule", [no_default_pool, no_wait_without_a_principal])
def test_the_service_keeps_the_rule(rule: Rule) -> None:
    """No module breaks it."""
    assert [complaint for found in modules("service") for complaint in rule(found)] == []


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (no_default_pool, "from starlette.concurrency import run_in_threadpool"),
        (no_default_pool, "from anyio import to_thread"),
        (no_default_pool, "async def f():\n    await asyncio.to_thread(g)"),
        (no_default_pool, "loop.run_in_executor(None, g)"),
        (no_wait_without_a_principal, "self.when_free(act)"),
    ],
)
def test_each_rule_bites(rule: Rule, text: str) -> None:
    """A planted offence draws one complaint."""
    assert len(rule(module("service/api/routes/analyst.py", text))) == 1
    assert no_wait_without_a_principal(module("service/api/read_slots.py", "when_free(act, owner)")) == []
