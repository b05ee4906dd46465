"""The bar of a batch."""

from typing import Any

import httpx
import pytest

from sparing import Client


def test_a_bar_is_drawn_on_standard_error(answer: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """After each request, on one line, which ends with the last."""

    def serve(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json={"answers": [answer] * request.content.count(b"idempotency_key")})

    questions: Any = [{"dataset": "d", "sigma": 1}] * 3
    with Client(base_url="http://s", api_key="k", transport=httpx.MockTransport(serve)) as client:
        assert len(list(client.queries.batch(questions, batch_size=2, progress=True))) == 3
        assert len(list(client.queries.batch(questions, progress=False))) == 3
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == f"\r[{'#' * 20}{'.' * 10}] 2 of 3 queries\r[{'#' * 30}] 3 of 3 queries\n"


def test_a_wrong_progress_names_itself() -> None:
    """Before anything is sent."""
    questions: Any = [{"dataset": "d", "sigma": 1}]
    wrong: Any = "yes"
    with Client(base_url="http://s", api_key="k") as client, pytest.raises(TypeError, match="progress takes"):
        client.queries.batch(questions, progress=wrong)
