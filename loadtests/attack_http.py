"""An attack on the framing of requests: does any form of smuggling give one principal another's answer or act?

    python -m loadtests.attack_http [--quick] [--only workers-2] [--answers 100000] [--checkout PATH]

Three honest principals ask without a pause, and each answer is judged by its content (`loadtests.honest`). Beside them
an analyst with a key sends every known form of smuggling by raw sockets (`loadtests.smuggling`), to one process, to two
workers, to two replicas on one home, and to two workers behind nginx and haproxy where these are installed.

Four numbers must be nought. They count answers that reach another principal, requests that an owner ran and no client
sent, acts that no client asked for, and queries that were charged though they never came whole. The metrics of all
processes show the second: routes that only hidden requests name, and more requests of the honest principals than these
sent. The exit status is 1 if a number is not nought, and 2 if nothing was forwarded where it had to be.

A front may read a malformed head as one without a length, as RFC 9112 allows. It then takes the hidden request for the
attacker's next one, which counts as sent if it is answered on the same connection.

Every run is a line in tests/records/attack_http.jsonl.
"""

import argparse
import asyncio
import random
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
import uvloop

from loadtests import honest
from loadtests.fronts import FRONTS, fronted, program
from loadtests.honest import Principals, Seen
from loadtests.raw_http import Address, Cut, Wire
from loadtests.records import keep_record
from loadtests.rig import Rig, client, serving, throw_away_home
from loadtests.smuggling import CUT_SIGMA, DATASET, HIDDEN_ROUTES, Attacker, Form, forms

SEED: Final = 43
ATTACKERS: Final = 12
PATIENCE_S: Final = 0.25
"""How long an attacker waits for a reply that may never come."""
MINUTES_MAX: Final = 20
_COUNTED: Final = re.compile(r'^sparing_(?:other_)?requests_total\{route="([^"]+)",status="\d+"\} (\S+)$', re.MULTILINE)
_HIDDEN_ANSWER: Final = b'"allowance_rho":'
_SHARED_ROUTES: Final = frozenset({"POST /v1/datasets/{dataset}/queries"})
"""Routes of the honest principals to which the attacker also sends requests."""


@dataclass(frozen=True, kw_only=True)
class Arrangement:
    """Processes behind one or several addresses."""

    workers: int = 1
    replicas: int = 1
    front: str | None = None


ARRANGEMENTS: Final = {
    "workers-1": Arrangement(),
    "workers-2": Arrangement(workers=2),
    "replicas-2": Arrangement(replicas=2),
    "nginx": Arrangement(workers=2, front="nginx"),
    "haproxy": Arrangement(workers=2, front="haproxy"),
}


@dataclass(kw_only=True)
class Outcome:
    """The outcome of an attack on one arrangement."""

    seen: Seen = field(default_factory=Seen)
    tried: Counter[str] = field(default_factory=Counter)
    told: Counter[str] = field(default_factory=Counter)
    leaked: list[str] = field(default_factory=list)
    split: int = 0
    """How many hidden requests a front read as the next of the attacker's own connection, and answered there."""
    ran: dict[str, int] = field(default_factory=dict)
    acts: list[str] = field(default_factory=list)
    forwarded: int = 0

    @property
    def crossings(self) -> int:
        """The number of things that must not happen."""
        return len(self.seen.wrong) + len(self.leaked) + sum(self.ran.values()) + len(self.acts)

    def figures(self) -> dict[str, Any]:
        """The figures for the record."""
        return {
            "honest_answers": self.seen.answers,
            "answers_of_another": len(self.seen.wrong),
            "leaked_to_attacker": len(self.leaked),
            "ran_unsent": self.ran,
            "split_by_front": self.split,
            "acts": self.acts,
            "refused": dict(self.seen.refused),
            "forwarded": self.forwarded,
            "tried": dict(self.tried),
            "told": dict(self.told),
        }


@dataclass(frozen=True, kw_only=True)
class Ground:
    """A served arrangement."""

    rig: Rig
    addresses: Sequence[Address]
    metrics: Sequence[str]
    is_fronted: bool

    def counted(self) -> Counter[str]:
        """The requests of all processes by route."""
        counts: Counter[str] = Counter()
        for url in self.metrics:
            for route, number in _COUNTED.findall(httpx.get(url, trust_env=False).text):
                counts[route] += int(float(number))
        return counts


@contextmanager
def served(arrangement: Arrangement, checkout: Path | None) -> Iterator[Ground]:
    """Serve an arrangement on loopback during the block."""
    environment = {"SPARING_METRICS_PORT": "0", "SPARING_WORKERS": str(arrangement.workers)}
    with ExitStack() as stack:
        home = stack.enter_context(throw_away_home())
        rigs = [
            stack.enter_context(serving(home, environment=environment, checkout=checkout))
            for _ in range(arrangement.replicas)
        ]
        outputs = [rig.process.stdout for rig in rigs for _ in range(arrangement.workers)]
        metrics = [output.readline().split()[1] for output in outputs if output is not None]
        addresses: list[Address] = [
            (parts.hostname or "", parts.port or 80) for parts in (urlsplit(r.url) for r in rigs)
        ]
        if arrangement.front is not None:
            folder = home / "front"
            folder.mkdir()
            addresses = [stack.enter_context(fronted(arrangement.front, addresses, folder))]
        is_fronted = arrangement.front is not None
        yield Ground(rig=rigs[0], addresses=addresses, metrics=metrics, is_fronted=is_fronted)


def attack(ground: Ground, answers: int, *, step: int) -> Outcome:
    """Ask and attack until each `step`-th form was tried and `answers` answers came.

    Then look at what the owner did.
    """
    principals, outcome = honest.prepare(ground.rig), Outcome()
    with client(ground.rig.url, principals.analyst) as analyst:
        for sigma in honest.SIGMAS:
            query = {"version": 1, "select": [{"count": {}}], "noise": {"sigma": sigma}, "reuse": False}
            path, headers = f"/v1/datasets/{DATASET}/queries", {"Idempotency-Key": f"honest-{sigma}"}
            analyst.post(path, json=query, headers=headers).raise_for_status()
    every = [*forms(Attacker(key=principals.attacker))][::step]
    before = ground.counted()
    uvloop.run(_both(ground, principals, every, answers, outcome))
    counted = ground.counted() - before
    outcome.forwarded = counted["forwarded"]
    if ground.is_fronted:
        counted[HIDDEN_ROUTES[0]] -= outcome.split
    outcome.ran = unsent(counted, outcome.seen)
    outcome.acts = [*_acts(ground.rig, principals)]
    return outcome


def unsent(counted: Counter[str], seen: Seen) -> dict[str, int]:
    """How many requests a process ran that no client sent, by route."""
    hidden = {route: counted[route] for route in HIDDEN_ROUTES}
    excess = {route: counted[route] - sent for route, sent in seen.sent.items() if route not in _SHARED_ROUTES}
    return {route: number for route, number in (hidden | excess).items() if number > 0}


def _acts(rig: Rig, principals: Principals) -> Iterator[str]:
    """Effects that no client has asked for."""
    with client(rig.url, principals.individual) as individual:
        if individual.get(f"/v1/me/erasure/{DATASET}").json()["requested"]:
            yield "an individual asks to be erased"
    if rig.curator.get(f"/v1/datasets/{DATASET}/verification").json()["state"] != "never":
        yield "a verification was begun"
    if rig.curator.get(f"/v1/datasets/{DATASET}").json()["individuals"] != honest.PEOPLE:
        yield "the number of individuals has changed"
    with client(rig.url, principals.attacker) as attacker:
        charged = attacker.get("/v1/queries").json()["items"]
    yield from (
        f"a query that was cut was charged: sigma {each['sigma']}" for each in charged if each["sigma"] == CUT_SIGMA
    )


async def _both(ground: Ground, principals: Principals, every: Sequence[Form], answers: int, outcome: Outcome) -> None:
    is_over = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(honest.ask_all(ground.addresses, principals, outcome.seen, is_over))
        try:
            await _attack_in_turns(ground.addresses, every, answers, outcome)
        finally:
            is_over.set()


async def _attack_in_turns(addresses: Sequence[Address], every: Sequence[Form], answers: int, outcome: Outcome) -> None:
    """Try all forms in a random order, again and again, until `answers` honest answers have come."""
    source, until = random.Random(SEED), time.monotonic() + 60 * MINUTES_MAX
    queue: list[Form] = []
    is_tried_whole = False

    async def keep_attacking(number: int) -> None:
        nonlocal is_tried_whole
        while time.monotonic() < until:
            if not queue:
                if is_tried_whole and outcome.seen.answers >= answers:
                    return
                is_tried_whole = outcome.tried.total() > 0
                queue.extend(source.sample(every, len(every)))
            if is_tried_whole and outcome.seen.answers >= answers:
                return
            await _try(addresses[number % len(addresses)], queue.pop(), outcome)

    await asyncio.gather(*(keep_attacking(number) for number in range(ATTACKERS)))


async def _try(address: Address, form: Form, outcome: Outcome) -> None:
    """Send one form, and look at what comes back."""
    outcome.tried[form.family] += 1
    try:
        wire = await Wire.to(address)
    except Cut:
        outcome.told["no connection"] += 1
        return
    came = b""
    try:
        for piece in form.pieces:
            wire.writer.write(piece)
            await asyncio.sleep(0.002 if len(form.pieces) > 1 else 0)
        if form.is_cut:
            await asyncio.sleep(0.001)
        elif form.is_closed:
            wire.writer.write_eof()
        if not form.is_cut:
            while data := await asyncio.wait_for(wire.reader.read(2**16), PATIENCE_S):
                came += data
    except (OSError, RuntimeError, TimeoutError):
        pass
    finally:
        wire.reset()
    outcome.told[came[9:12].decode("latin-1") or "nothing"] += 1
    if came.count(b"HTTP/1.1 ") > 1:
        outcome.split += came.count(_HIDDEN_ANSWER)
    outcome.leaked += [f"{form.name}: {came[:200]!r}" for secret in honest.SECRETS if secret in came][:1]


def main() -> int:
    """Attack every arrangement, print a table and keep a record."""
    parser = argparse.ArgumentParser(prog="python -m loadtests.attack_http", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a fifth of the forms, a few minutes")
    parser.add_argument("--only", choices=ARRANGEMENTS, default=None)
    parser.add_argument("--answers", type=int, default=None, help="honest answers of all arrangements, 100,000")
    parser.add_argument("--checkout", type=Path, default=None, help="another tree of the service, to attack that")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is stopped
    absent = [name for name in FRONTS if program(name) is None]
    names = [name for name in ARRANGEMENTS if options.only in (None, name) and name not in absent]
    answers = (options.answers or (1_000 if options.quick else 100_000)) // len(names) + 1
    outcomes: dict[str, Outcome] = {}
    for name in names:
        with served(ARRANGEMENTS[name], options.checkout) as ground:
            outcomes[name] = attack(ground, answers, step=5 if options.quick else 1)
        _print(name, outcomes[name])
    if absent:
        print(f"not installed, and not tried: {', '.join(absent)}")
    figures = {name: outcome.figures() for name, outcome in outcomes.items()}
    kept = {"is_quick": options.quick, "seed": SEED, "absent": absent, "arrangements": figures}
    keep_record("attack_http", kept, checkout=options.checkout)
    total = sum(outcome.seen.answers for outcome in outcomes.values())
    crossings = sum(outcome.crossings for outcome in outcomes.values())
    print(f"{crossings} crossings beside {total} honest answers")
    if crossings:
        return 1
    is_vacuous = any(outcomes[name].forwarded == 0 for name in names if name != "workers-1")
    return 2 if is_vacuous else 0


def _print(name: str, outcome: Outcome) -> None:
    seen = outcome.seen
    print(f"\n{name}: {seen.answers} honest answers, {len(seen.wrong)} of another, {outcome.forwarded} forwarded")
    print(f"  told to the attacker: {dict(outcome.told.most_common())}; to the honest: {dict(seen.refused)}")
    for family, number in outcome.tried.items():
        print(f"  {family:<24}{number:>8} tried")
    print(f"  run unsent: {outcome.ran or 0}; acts: {outcome.acts or 0}; leaked: {len(outcome.leaked)}")
    if outcome.split:
        print(f"  answered on the attacker's own connection: {outcome.split}")
    for told in (*seen.wrong[:3], *outcome.leaked[:3]):
        print(f"    {told}")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
