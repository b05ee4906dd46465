"""The places of an application, and the place of each route."""

import asyncio
from inspect import isasyncgenfunction, iscoroutinefunction
from typing import Any

import pytest
from fastapi.dependencies.models import Dependant
from fastapi.routing import iter_route_contexts

from service.api.places import KINDS, Kind, PlaceBounds, Places, PlacesOfLoops, Running
from tests.api.route_table import ROUTES
from tests.api.world import World


def test_each_event_loop_has_places_of_its_own() -> None:
    """And the same ones each time."""
    places = PlacesOfLoops(PlaceBounds(waiting_max=5))

    async def found() -> tuple[bool, int | None]:
        return places.here() is places.here(), places.here().changes.waiting_max

    assert [asyncio.run(found()) for _ in range(2)] == [(True, 5)] * 2


def test_no_route_runs_anything_in_the_default_pool(world: World) -> None:
    """Its endpoint and all dependencies are coroutines, the framework's own too."""
    found = [each.dependant for each in iter_route_contexts(world.app.routes) if isinstance(each.dependant, Dependant)]
    assert len(found) >= len(ROUTES)
    assert [each.call for top in found for each in _all_of(top) if not _is_coroutine(each.call)] == []


def _all_of(dependant: Dependant) -> list[Dependant]:
    return [dependant, *(each for within in dependant.dependencies for each in _all_of(within))]


def _is_coroutine(call: object) -> bool:
    return any(
        is_one(each)
        for each in (call, getattr(call, "__call__", None))  # noqa: B004 - a guard is an object that is called
        for is_one in (iscoroutinefunction, isasyncgenfunction)
    )


@pytest.mark.parametrize(
    ("role", "method", "path", "kind"),
    [
        ("analyst", "GET", "/v1/queries", "reads"),
        ("curator", "GET", "/v1/datasets/care/acts", "reads"),
        ("curator", "GET", "/v1/datasets/care/record?individual=ada", "reads"),
        ("curator", "GET", "/v1/datasets/care/budgets/summary", "long_reads"),
        ("curator", "POST", "/v1/datasets/care/epochs", "acts"),
        ("individual", "POST", "/v1/me/budgets/care/resume", "acts"),
        ("individual", "POST", "/v1/me/erasure/care", "acts"),
        ("curator", "POST", "/v1/session", "sign_ins"),
    ],
)
async def test_a_route_waits_where_it_belongs(
    world: World, monkeypatch: pytest.MonkeyPatch, role: str, method: str, path: str, kind: str
) -> None:
    """By what it does, and for whom."""
    asked: list[object] = []
    of = Places.of

    def noted(self: Places, kind: Kind, **more: Any) -> Running:
        asked.append((kind, more["role"], str(more["owner"])))
        return of(self, kind, **more)

    monkeypatch.setattr(Places, "of", noted)
    assert (await world.call(role, method, path)).is_success
    assert asked == [(kind, role, world.ids[role])]


def test_the_table_of_kinds_names_operations_alone(world: World) -> None:
    """A renamed route keeps its place."""
    names = {each.name for each in iter_route_contexts(world.app.routes)}
    assert KINDS.keys() - names == set()
