"""The world that the api's tests call."""

from collections.abc import AsyncIterator

import pytest
from fastapi import FastAPI

from tests.api.slotted import Slotted
from tests.api.world import World, build_world


@pytest.fixture(scope="session")
def shared_app() -> FastAPI:
    """One application for all worlds of a worker, so that its routes are built once."""
    built = build_world()
    built.replica.close()
    return built.app


@pytest.fixture
async def world(shared_app: FastAPI) -> AsyncIterator[World]:
    """A fresh small world behind HTTP."""
    built = build_world(app=shared_app)
    yield built
    await built.close()


@pytest.fixture
async def slotted() -> AsyncIterator[Slotted]:
    """A fresh world at the beginning of a slot, with one entry in its ledger."""
    made = Slotted()
    yield made
    await made.world.close()
