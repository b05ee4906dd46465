"""The attacks on framing and on shared resources: their judges find what they look for."""

from collections import Counter
from itertools import pairwise
from typing import Any, Final

import pytest

from loadtests import attack_load
from loadtests.attack_http import unsent
from loadtests.attack_rows import ROWS
from loadtests.honest import PEOPLE, Principals, Request, Seen
from loadtests.others import Waits
from loadtests.raw_http import Reply
from loadtests.smuggling import HIDDEN_ROUTES, Attacker, forms

FAMILIES: Final = frozenset(
    {
        "nominated headers", "CL.TE, TE.CL, TE.TE", "CL.0 and early replies", "lengths", "chunks and trailers",
        "lines, NUL and folds", "expect and upgrade", "targets and hosts", "versions", "pipelines",
        "clients that leave", "cuts",
    }
)  # fmt: skip
KEYS: Final = Principals(curator="c", analyst="a", individual="i", attacker="x")


def right(request: Request) -> Any:
    """The right answer to a request of an honest principal."""
    target = request.data.split(b" ")[1].decode()
    if "POST" in request.route:
        return {"sigma": float(request.data.rpartition(b'"sigma": ')[2].partition(b"}")[0]), "values": [1]}
    if "limit" in target:
        item = {"spent_units": 1, "words": "count", "charged_rho": "1"}
        return {"items": [item] * int(target.rpartition("=")[2])}
    if request.route == "GET /v1/me/budgets":
        return [{"dataset": "d", "paused": False}]
    return {"name": target.rpartition("/")[2], "individuals": PEOPLE}


def test_an_answer_to_another_request_is_found_by_its_content() -> None:
    """The own answer fits, and that of the request before or after does not."""
    for requests in KEYS.requests().values():
        for request, following in pairwise(requests):
            assert request.fits(right(request))
            seen = Seen()
            body = b"{}" if right(request) == right(following) else str(right(following)).replace("'", '"').encode()
            seen.take("one", request, Reply(status=200, head=b"", body=body))
            assert (seen.answers, len(seen.wrong)) == (1, 1)


@pytest.mark.parametrize(("status", "wrong"), [(503, 0), (404, 1), (202, 1)])
def test_a_refusal_for_want_of_room_is_nobodys_answer(status: int, wrong: int) -> None:
    """Another status than 200 is an answer to another request, but for those of a busy service."""
    seen = Seen()
    request = KEYS.requests()["curator"][0]
    seen.take("curator", request, Reply(status=status, head=b"", body=b"{}"))
    assert (len(seen.wrong), seen.refused.total()) == (wrong, 1 - wrong)


def test_every_family_of_forms_carries_the_hidden_requests() -> None:
    """The bytes are the same each time; each hidden request is in forms of each family but the cuts."""
    every = [*forms(Attacker(key="x"))]
    assert every == [*forms(Attacker(key="x"))]
    assert {form.family for form in every} == FAMILIES
    for route in HIDDEN_ROUTES:
        start = route.replace("{dataset}", "d").encode()
        assert {form.family for form in every if start in b"".join(form.pieces)} == FAMILIES - {"cuts"}


def test_requests_that_no_client_sent_are_counted() -> None:
    """Hidden routes count whole, routes of the honest by their excess; lost requests are no excess."""
    seen = Seen(sent=Counter({"GET /v1/queries": 5, "GET /v1/me/budgets": 5}))
    counted = Counter({HIDDEN_ROUTES[0]: 1, "GET /v1/queries": 7, "GET /v1/me/budgets": 4})
    assert unsent(counted, seen) == {HIDDEN_ROUTES[0]: 1, "GET /v1/queries": 2}


def test_what_an_attacker_is_told_is_judged() -> None:
    """Something must be refused in words, and an error of the service is never right."""
    row = ROWS["ones"]
    assert row.complaints(Counter({"422 invalid-request": 1})) == []
    assert row.complaints(Counter({"200": 3})) == ["nothing was refused"]
    assert row.complaints(Counter({"429 busy": 1, "503 unavailable": 2})) == ["2 told 503 unavailable"]


def test_waits_are_judged_beside_the_quiet_ones() -> None:
    """A quarter of a second at the 99th percentile, twice the quiet wait on a busy machine."""
    slow = {"/livez": Waits(taken_s=[0.01] * 90 + [0.4] * 10, told=Counter({"200": 100}))}
    quiet, busy = ({"/livez": Waits(taken_s=[each])} for each in (0.01, 0.3))
    assert attack_load.complaints(quiet, slow, 0) == ["/livez waits 0.40 s"]
    assert attack_load.complaints(busy, slow, 0) == []
    assert attack_load.complaints(busy, slow, 2 * 10**8) == ["memory grows by 200 MB"]
