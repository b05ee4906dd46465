"""No test asks for the hour, for the speed of the machine or for luck, as far as a syntax tree shows.

A wait for another thread or process is one of `tests.waiting`; instants, delays and seeds are constants of a test.
"""

import ast
from collections.abc import Iterator

import pytest

from tests.architecture.rules import Rule
from tests.architecture.source import Module, calls, module, modules, nodes, text_of

ROOTS = ("tests", *(f"clients/{name}/tests" for name in ("audit", "demo", "papers", "python")))
CLOCKS = {f"time.{name}{ns}" for name in ("time", "monotonic", "perf_counter", "process_time") for ns in ("", "_ns")}
CLOCKS |= {"datetime.now", "datetime.utcnow", "datetime.today", "date.today"}
MAY_READ_CLOCKS = {
    "tests/waiting.py",
    "tests/api/world.py",  # a service's clock, unless a test gives it another
    "tests/contracts/stores.py",  # beside Postgres, which has the machine's
    "tests/memory/cache.py",
    "tests/memory/tables.py",
    "tests/memory/transaction.py",
    "tests/providers.py",
    "tests/e2e/surveys.py",  # an expiry, for a service in a process of its own
    "tests/faults/breaking.py",  # the order of what clients of several processes saw
    "tests/faults/cutting.py",
    "tests/faults/replicas.py",
    "tests/leaks/crowd.py",
    "tests/run/raw_server.py",
    "tests/mutants/trials.py",  # the seconds of a trial, for a table
    "tests/simulation/__main__.py",
}
"""Helpers that wait or measure for a report, and fakes with the machine's clock until a test gives them another."""
MAY_SLEEP = {
    "tests/waiting.py",
    "tests/api/slotted.py",  # between looks at threads that have no event
    "tests/e2e/asking.py",  # clients that think
    "tests/faults/falling.py",  # faults that come at drawn instants
    "tests/faults/meddling.py",
    "tests/faults/stopping.py",
    "tests/gil_probe.py",
    "tests/run/raw_server.py",  # a client that sends slowly
}
SLEEPS = {"time.sleep", "asyncio.sleep", "anyio.sleep"}
WAITS = {"result", "exception", "wait", "join", "acquire", "communicate", "run", "create_connection", "urlopen"}
GENERATORS = {"Random", "default_rng", "RandomState", "PCG64"}
MODULES_OF_DICE = ("random.", "np.random.", "numpy.random.")
OF_THE_ENVIRONMENT = {"os.getenv", "os.environ.get", "os.environ.setdefault"}
MAY_READ_THE_ENVIRONMENT = {
    "tests/rotation.py",  # the turn of a soak
    "tests/surroundings.py",  # the locale and the zone of `make surroundings`
    "tests/waiting.py",  # the patience of a seeded bug's trial
    "tests/faults/replicas.py",  # the path of programs, for a child
    "tests/dashboard/browser.py",  # the path of a browser
}
LOGGED = {"caplog.records", "caplog.messages", "caplog.text", "caplog.record_tuples"}
"""All lines of a test, those of servers and libraries beside it among them."""


def clocks(found: Module) -> list[str]:
    """No test reads a clock of the machine: it counts, has a clock of its own, or waits for a condition."""
    if found.path in MAY_READ_CLOCKS:
        return []
    return [
        f"{found.path}:{node.lineno} reads {text_of(node)}"
        for node in nodes(found)
        if isinstance(node, ast.Attribute) and text_of(node) in CLOCKS
    ]


def sleeps(found: Module) -> list[str]:
    """No test hopes that a pause is long enough; to let an event loop turn once is no pause."""
    if found.path in MAY_SLEEP:
        return []
    return [
        f"{found.path}:{call.lineno} sleeps"
        for call, name in calls(found)
        if name in SLEEPS and [ast.unparse(each) for each in call.args] != ["0"]
    ]


def short_patience(found: Module) -> list[str]:
    """Every wait has the limit of `tests.waiting`, which only a failure reaches; a shorter one judges the machine."""
    return [
        f"{found.path}:{call.lineno} waits {ast.unparse(each.value)} s"
        for call, name in calls(found)
        for each in call.keywords
        if name.rpartition(".")[2] in WAITS and each.arg == "timeout" and isinstance(each.value, ast.Constant)
        if isinstance(each.value.value, int | float) and each.value.value >= 1
    ]


def fresh_dice(found: Module) -> list[str]:
    """Every generator of a test has a seed, and none is shared by all of a process."""
    imported = {alias.name for node in nodes(found) if isinstance(node, ast.Import) for alias in node.names}
    shared = MODULES_OF_DICE if "random" in imported else MODULES_OF_DICE[1:]
    return [
        f"{found.path}:{call.lineno} draws anew by {name}"
        for call, name in calls(found)
        if "(" not in name
        and (not [*call.args, *call.keywords] if name.rpartition(".")[2] in GENERATORS else name.startswith(shared))
    ]


def seeds_of_the_environment(found: Module) -> list[str]:
    """The inputs of a test are the tree's: no variable of the environment chooses them."""
    if found.path in MAY_READ_THE_ENVIRONMENT:
        return []
    return [
        f"{found.path}:{call.lineno} reads the environment" for call, name in calls(found) if name in OF_THE_ENVIRONMENT
    ]


def whole_logs(found: Module) -> list[str]:
    """No test compares all that was logged: it names the lines that must be there, or those of one logger."""
    return [
        f"{found.path}:{node.lineno} compares {text_of(part)}"
        for node in nodes(found)
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq)
        for part in _taken_whole(node)
        if text_of(part) in LOGGED
    ]


def _taken_whole(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of an expression, but those that another comparison or the condition of a loop chooses from."""
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.Compare) or (isinstance(child, ast.comprehension) and child.ifs)):
            yield child
            yield from _taken_whole(child)


def processes_by_name(found: Module) -> list[str]:
    """A test ends and counts its own children alone: others of the same name may be another run's."""
    words = ("pgrep", "pkill", "killall", "pidof")
    return [
        f"{found.path}:{node.lineno} looks for processes by name"
        for node in nodes(found)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.split(" ")[0] in words
    ]


RULES: list[Rule] = [
    clocks,
    sleeps,
    short_patience,
    fresh_dice,
    seeds_of_the_environment,
    whole_logs,
    processes_by_name,
]


@pytest.mark.parametrize("rule", RULES)
def test_no_verdict_depends_on_luck(rule: Rule) -> None:
    """In the tests of the service and of the clients."""
    found = [each for each in modules(*ROOTS) if each.path != "tests/architecture/test_steady.py"]
    assert [complaint for each in found for complaint in rule(each)] == []


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (clocks, "def f():\n assert time.monotonic() < 3"),
        (clocks, "answered(clock=time.time)"),
        (clocks, "datetime.now(UTC)"),
        (sleeps, "time.sleep(0.1)"),
        (sleeps, "async def f():\n await asyncio.sleep(PAUSE_S)"),
        (short_patience, "promise.result(timeout=30)"),
        (fresh_dice, "import numpy as np\nnp.random.default_rng()"),
        (fresh_dice, "from random import Random\nRandom()"),
        (fresh_dice, "import random\nrandom.shuffle(rows)"),
        (fresh_dice, "import numpy as np\nnp.random.normal(size=3)"),
        (seeds_of_the_environment, "seed = int(os.environ.get('SEED', '0'))"),
        (whole_logs, "assert caplog.messages == ['it started']"),
        (whole_logs, "assert (count, caplog.records == []) == (0, True)"),
        (whole_logs, "assert (len(dropped), len(caplog.records)) == (1, 1)"),
        (whole_logs, "assert [record.name for record in caplog.records] == ['sparing']"),
        (processes_by_name, "run(['pkill', '-f', 'sparing'])"),
    ],
)
def test_each_rule_bites(rule: Rule, text: str) -> None:
    """A planted offence draws one complaint."""
    (complaint,) = rule(module("tests/test_here.py", text))
    assert complaint.startswith("tests/test_here.py:")


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (sleeps, "async def f():\n await asyncio.sleep(0)"),
        (short_patience, "promise.result(timeout=PATIENCE_S)\nqueue.get(timeout=0)"),
        (fresh_dice, "from random import Random\ndef f(random):\n Random(3)\n random.random()"),
        (whole_logs, "assert [each for each in caplog.messages if 'disk' in each] == []"),
        (whole_logs, "assert ('disk' in caplog.text) == is_full"),
    ],
)
def test_what_is_steady_draws_no_complaint(rule: Rule, text: str) -> None:
    """A turn of the event loop, a generator that was handed in, and the lines about one thing."""
    assert rule(module("tests/test_here.py", text)) == []
