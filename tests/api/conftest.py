"""The world that the api's tests call."""

from collections.abc import AsyncIterator

import pytest

from tests.api.world import World, build_world


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """A fresh small world behind HTTP."""
    built = build_world()
    yield built
    await built.client.aclose()
    built.replica.close()
