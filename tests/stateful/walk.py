"""A random walk over the whole interface: principals of all roles, their keys and cookies, and several datasets.

Each step is one request, or a few at once, that an operation of the contract could get: mostly one that should work,
else with a credential that has ended, of another role or dataset, with a damaged body or an odd parameter. The walk
knows each principal, so that it can say of each request whether it must be refused, and how.
"""

import asyncio
import json
from collections import Counter, deque
from dataclasses import dataclass, field
from random import Random
from typing import Final
from urllib.parse import quote, urlencode

from service.maintenance.verify.report import verify_all
from tests.api.route_table import ROUTES, Route
from tests.api.world import World, build_world
from tests.stateful import bodies
from tests.stateful.asgi import Request, Response, answer_of

OF_ALL_DATASETS: Final = frozenset(
    {
        *("POST /v1/datasets", "DELETE /v1/datasets/{dataset}", "POST /v1/principals", "GET /v1/principals"),
        *("PATCH /v1/principals/{principal}", "DELETE /v1/principals/{principal}"),
        *("POST /v1/principals/{principal}/key", "POST /v1/files/preview"),
    }
)
"""Operations that a curator who is bound to one dataset is refused."""
CHANGES_PRINCIPALS: Final = frozenset(
    {
        *("DELETE /v1/datasets/{dataset}", "DELETE /v1/principals/{principal}", "POST /v1/principals/{principal}/key"),
        *("DELETE /v1/datasets/{dataset}/individual", "DELETE /v1/session"),
    }
)
WEIGHTS: Final = {
    "POST /v1/datasets/{dataset}/queries": 12.0,
    "POST /v1/datasets/{dataset}/queries/batch": 4.0,
    "POST /v1/datasets/{dataset}/tables/{table}/rows": 5.0,
    "POST /v1/datasets": 3.0,
    "POST /v1/principals": 4.0,
    "POST /v1/session": 4.0,
    "POST /v1/datasets/{dataset}/individuals/keys": 3.0,
    "POST /v1/datasets/{dataset}/archive": 0.1,
    "DELETE /v1/datasets/{dataset}": 0.4,
    "DELETE /v1/principals/{principal}": 0.7,
    "DELETE /v1/datasets/{dataset}/individual": 0.5,
    "POST /v1/datasets/{dataset}/verification": 0.3,
    "POST /v1/datasets/{dataset}/forecast": 0.5,
}
SOUGHT: Final = 5.0
"""The weight that an operation has in addition until it succeeds, in a walk that seeks successes."""
ENDINGS: Final = {str(each) for each in ROUTES if each.method == "DELETE"} | {"POST /v1/datasets/{dataset}/archive"}
OTHERS: Final = {str(each) for each in ROUTES if each.status < 300} - ENDINGS
HOLDERS_MAX: Final = 60
STEPS: Final = 2_500
"""Those of a walk of the soak."""


@dataclass(slots=True, eq=False)
class Holder:
    """A principal as the walk knows it."""

    id: str
    role: str
    dataset: str | None
    individual: str | None
    has_ended: bool = False


@dataclass(slots=True, eq=False)
class Credential:
    """A key, or a cookie with its name; without `is_certain`, simultaneous requests leave open whether it stands."""

    text: str
    holder: Holder
    is_cookie: bool = False
    has_ended: bool = False
    is_certain: bool = True

    def is_valid(self) -> bool:
        """Tell whether the credential is its principal's."""
        return not (self.has_ended or self.holder.has_ended)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A request with the facts by which its answer is judged."""

    route: Route
    request: Request
    credential: Credential | None
    dataset: str
    names: dict[str, str]
    is_odd: bool  # its path or method is none of the route's
    is_marked: bool  # with the header that a request by cookie has to carry

    def __str__(self) -> str:
        who = self.credential.holder if self.credential else "nobody"
        return f"{self.request}\n    by {who}, {self.credential}"


@dataclass(kw_only=True)
class Walk:
    """The state of a walk, and its next steps.

    Without `has_crowds`, no two requests are at the same time. Where it `seeks_successes`, an operation that has not
    succeeded yet is drawn more often, and what ends things comes after the others, so that the walk reaches all of them
    whatever else changes in what it draws.
    """

    world: World
    random: Random
    has_crowds: bool
    seeks_successes: bool = False
    credentials: list[Credential] = field(init=False, default_factory=list)
    datasets: list[str] = field(init=False, default_factory=lambda: ["care"])
    queries: dict[str, set[str]] = field(init=False, default_factory=dict)  # the analysts that were answered with it
    cursors: list[str] = field(init=False, default_factory=lambda: ["", "x", "1"])
    last: deque[str] = field(init=False, default_factory=lambda: deque(maxlen=12))
    answered: Counter[tuple[str, int]] = field(init=False, default_factory=Counter)
    succeeded: set[str] = field(init=False, default_factory=set)
    steps: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        for role in ("curator", "analyst", "auditor", "individual"):
            bound = ("care", "ada") if role == "individual" else (None, None)
            holder = Holder(self.world.ids[role], role, *bound)
            self.credentials.append(Credential(self.world.keys[role], holder))
        self.queries[self.world.query_id] = {self.world.ids["analyst"]}

    async def go(self, steps: int) -> None:
        """Take so many steps. Raises AssertionError with the last ones for an answer that is not allowed."""
        while self.steps < steps:
            count = self.random.randint(2, 5) if self.has_crowds and self.random.random() < 0.03 else 1
            taken = [self._drawn() for _ in range(count)]
            if sum(str(each.route) in CHANGES_PRINCIPALS for each in taken) > 1:
                continue
            responses = await asyncio.gather(*(answer_of(self.world.app, each.request) for each in taken))
            self.steps += count
            for step, response in zip(taken, responses, strict=True):
                self.last.append(f"{step}\n    -> {response.status} {response.body[:300]!r}")
                self._judge(step, response, is_alone=count == 1)
            for step, response in zip(taken, responses, strict=True):
                if response.status < 300:
                    self._learn(step, response, is_alone=count == 1)

    # Judging

    def _judge(self, step: Step, response: Response, *, is_alone: bool) -> None:
        route, status = str(step.route), response.status
        self.answered[route, status] += 1
        if status < 300 and step.request.method == step.route.method:
            self.succeeded.add(route)
        self._claim(status < 500, "is a failure")
        if status >= 400:
            document = response.document()
            self._claim(response.headers["content-type"] == "application/problem+json", "is no problem document")
            self._claim(document["status"] == status and document["request_id"], "tells another status or no request")
        if is_alone and (step.credential is None or step.credential.is_certain):
            self._judge_standing(step, response)

    def _judge_standing(self, step: Step, response: Response) -> None:
        """Hold the answer against the credential."""
        refusals, status = self._refusals(step), response.status
        if refusals is not None:
            self._claim(status in refusals, f"should be refused with {sorted(refusals)}")
        elif status in {401, 403} and not step.is_odd:
            self._claim(response.document()["type"] in FOR_LACK_OF_BUDGET, "is refused to a principal that it is for")

    def _refusals(self, step: Step) -> set[int] | None:
        """The statuses with one of which it must be refused; None where it may be answered."""
        credential = step.credential
        if step.is_odd:
            return {401, 403, 404, 405, 422} if credential is None else None
        if credential is None or not (credential.is_valid() or credential.is_cookie):
            return {401}
        if credential.is_cookie and step.request.method != "GET" and not step.is_marked:
            return {403}
        if not credential.is_valid():
            return {401}
        if credential.is_cookie and str(step.route) == "POST /v1/session":  # a sign-in needs the key
            return {401, 422}  # a parameter that it does not read is told before
        holder = credential.holder
        if holder.dataset is not None and "{dataset}" in step.route.template and step.dataset != holder.dataset:
            return {404}
        if holder.role not in step.route.roles or (holder.dataset is not None and str(step.route) in OF_ALL_DATASETS):
            return {403}
        asked_by = self.queries.get(step.names["query_id"])
        is_of_another = "{query_id}" in step.route.template and asked_by is not None and holder.id not in asked_by
        return {404, 422} if is_of_another else None  # as above

    def _claim(self, holds: object, complaint: str) -> None:
        if not holds:
            raise AssertionError(f"the last answer {complaint}:\n" + "\n".join(self.last))

    # Learning from what was answered

    def _learn(self, step: Step, response: Response, *, is_alone: bool) -> None:
        document = response.document()
        if isinstance(document, dict) and document.get("next"):
            self.cursors = [*self.cursors[-20:], str(document["next"])]
        learn = {
            "POST /v1/datasets": self._learn_dataset,
            "POST /v1/principals": self._learn_principal,
            "POST /v1/datasets/{dataset}/individuals/keys": self._learn_individuals,
            "POST /v1/principals/{principal}/key": self._learn_key,
            "POST /v1/datasets/{dataset}/queries": self._learn_answer,
            "POST /v1/datasets/{dataset}/queries/batch": self._learn_batch,
        }.get(str(step.route))
        if learn is not None and not step.is_odd:
            learn(step, response)
        elif step.route.template == "/v1/session":
            self._learn_session(step, response, is_alone=is_alone)
        elif step.route.method == "DELETE":
            self._learn_end(step)

    def _learn_dataset(self, _: Step, response: Response) -> None:
        self.datasets.append(response.document()["name"])

    def _learn_principal(self, _: Step, response: Response) -> None:
        made = response.document()
        self._add(Credential(made["key"], Holder(made["id"], made["role"], made["dataset"], made["individual"])))

    def _learn_individuals(self, step: Step, response: Response) -> None:
        for made in response.document():
            self._add(Credential(made["api_key"], Holder("", "individual", step.dataset, made["individual"])))

    def _learn_key(self, step: Step, response: Response) -> None:
        self._end(principal=step.names["principal"])
        self._learn_principal(step, response)

    def _learn_answer(self, step: Step, response: Response) -> None:
        if step.credential is not None:
            self.queries.setdefault(response.headers["x-query-id"], set()).add(step.credential.holder.id)

    def _learn_batch(self, step: Step, response: Response) -> None:
        for answer in response.document()["answers"]:
            if "id" in answer and step.credential is not None:
                self.queries.setdefault(answer["id"], set()).add(step.credential.holder.id)

    def _learn_end(self, step: Step) -> None:
        match step.route.template:
            case "/v1/datasets/{dataset}":
                self.datasets = [name for name in self.datasets if name != step.dataset]
                self._end(dataset=step.dataset)
            case "/v1/datasets/{dataset}/individual":
                self._end(dataset=step.dataset, individual=step.names["individual"])
            case "/v1/principals/{principal}":
                self._end(principal=step.names["principal"])
            case _:
                pass

    def _learn_session(self, step: Step, response: Response, *, is_alone: bool) -> None:
        credential = step.credential
        if credential is None:
            return
        if step.request.method == "POST":
            cookie = response.headers["set-cookie"].split(";")[0]
            self._add(Credential(cookie, credential.holder, is_cookie=True, is_certain=is_alone))
        if step.request.method in {"POST", "DELETE"} and credential.is_cookie:  # a browser has one sign-in
            credential.has_ended = True

    def _end(self, **facts: str) -> None:
        """No principal with these facts is one any more."""
        for credential in self.credentials:
            holder = credential.holder
            known = {"dataset": holder.dataset, "individual": holder.individual, "principal": holder.id}
            holder.has_ended |= all(known[name] == value for name, value in facts.items())

    def _add(self, credential: Credential) -> None:
        self.credentials.append(credential)
        if len(self.credentials) > HOLDERS_MAX:
            self.credentials.pop(self.random.randrange(4, HOLDERS_MAX))

    # Drawing

    def _drawn(self) -> Step:
        random = self.random
        route = random.choices(ROUTES, [self._weight(str(each)) for each in ROUTES])[0]
        credential = self._credential_for(route)
        names = self._names(credential)
        path = route.template.format(**{name: quote(value, safe="") for name, value in names.items()})
        is_odd = any(names[name] in bodies.ODD_TEXTS for name in names if "{" + name + "}" in route.template)
        method = random.choice(["PUT", "HEAD", "OPTIONS", "POST"]) if random.random() < 0.01 else route.method
        is_marked = random.random() < 0.9
        headers = dict(route.headers)
        if credential is not None:
            headers |= sent_with(credential, is_marked=is_marked)
        elif random.random() < 0.8:
            headers["Authorization"] = random.choice(["Bearer nothing", "Bearer ", "Basic x", "bearer a b", "Bearer é"])
        headers |= self._odd_headers(route)
        return Step(
            route=route,
            request=Request(
                method=method,
                target=path + self._parameters(route, names["individual"]),
                headers=tuple((name, value) for name, value in headers.items()),
                body=self._body(route),
            ),
            credential=credential,
            dataset=names["dataset"],
            names=names,
            is_odd=is_odd or method != route.method,
            is_marked=is_marked,
        )

    def _weight(self, route: str) -> float:
        weight = WEIGHTS.get(route, 1.0)
        if not self.seeks_successes or route in self.succeeded:
            return weight
        return 0.0 if route in ENDINGS and not self.succeeded >= OTHERS else weight + SOUGHT

    def _credential_for(self, route: Route) -> Credential | None:
        """Mostly one that the route is for."""
        chance = self.random.random()
        if chance < 0.05:
            return None
        fit = [each for each in self.credentials if each.holder.role in route.roles and each.is_valid()]
        return self.random.choice(fit if chance < 0.8 and fit else self.credentials)

    def _names(self, credential: Credential | None) -> dict[str, str]:
        random, holder = self.random, credential.holder if credential else None
        own = holder.dataset if holder is not None and random.random() < 0.9 else None
        roots = [each.holder for each in self.credentials[:4]]
        principals = [each.holder.id for each in self.credentials if each.holder.id and each.holder not in roots]
        names = {
            "dataset": own or random.choice([*self.datasets, "care", "nowhere"]),
            "table": random.choice(["people", "people", "visits", "none"]),
            "individual": random.choice(bodies.KEYS),
            "query_id": random.choice([*list(self.queries)[-30:], self.world.query_id, "none"]),
            "principal": random.choice(principals or ["none"]),
        }
        if random.random() < 0.02:
            names[random.choice(list(names))] = random.choice(bodies.ODD_TEXTS)
        return names

    def _parameters(self, route: Route, individual: str) -> str:
        random, given = self.random, dict(route.options.get("params", {}))
        if route.names_individual():
            given["individual"] = individual
        if route.method == "GET" and random.random() < 0.3:
            given["limit"] = random.choice([1, 2, 5, 200, 1000, 0, "x"])
        if route.method == "GET" and random.random() < 0.3:
            given["cursor"] = random.choice(self.cursors)
        if random.random() < 0.1:
            name = random.choice(["role", "dataset", "search", "analyst", "dry_run", "delimiter", "x"])
            given[name] = random.choice(["true", "curator", "care", "refuse", *bodies.ODD_TEXTS])
        return f"?{urlencode(given)}" if given else ""

    def _odd_headers(self, route: Route) -> dict[str, str]:
        random, headers = self.random, {}
        if "Idempotency-Key" in route.headers:
            headers["Idempotency-Key"] = f"k{random.randrange(400)}"
        if random.random() < 0.02:
            headers["Idempotency-Key"] = random.choice(["", "k" * 200, "k1"])
        if random.random() < 0.02:
            kinds = ["text/csv", "application/json", "text/plain", "", "application/vnd.apache.parquet"]
            headers["Content-Type"] = random.choice(kinds)
        if random.random() < 0.02:
            headers["Accept"] = random.choice(["application/x-npz", "*/*", "text/html", "x"])
        if random.random() < 0.01:
            headers["Content-Encoding"] = random.choice(["gzip", "br", ""])
        return headers

    def _body(self, route: Route) -> bytes:
        made = bodies.MAKERS.get(str(route), bodies.nothing)(self.random, self.datasets)
        body = made if isinstance(made, bytes) else json.dumps(made).encode()
        return bodies.damaged(self.random, body) if self.random.random() < 0.15 else body


FOR_LACK_OF_BUDGET: Final = ("urn:sparing:problem:allowance-exceeded",)
"""Refusals with 403 that principals of the right role meet too."""


def sent_with(credential: Credential, *, is_marked: bool) -> dict[str, str]:
    """The headers of a key, or of a cookie as a page sends it."""
    if not credential.is_cookie:
        return {"Authorization": f"Bearer {credential.text}"}
    cookie = {"Cookie": credential.text}
    return cookie | {"X-Sparing-Request": "1"} if is_marked else cookie


async def walked(
    number: int, steps: int = STEPS, *, has_crowds: bool = True, seeks_successes: bool = False
) -> Counter[tuple[str, int]]:
    """One walk; the statuses of each operation. Raises AssertionError for an answer that is not allowed."""
    world = build_world()
    try:
        walk = Walk(world=world, random=Random(number), has_crowds=has_crowds, seeks_successes=seeks_successes)
        await walk.go(steps)
        assert [report.findings for report in verify_all(world.store) if report.findings] == []
    finally:
        world.replica.close()
    return walk.answered
