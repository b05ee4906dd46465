"""docs/architecture.md and docs/tour.md are true: paths, rooms, drawing and walk are held against the code."""

import ast
import re
import subprocess
import sys
import textwrap
from collections.abc import Mapping

import pytest

from tests.architecture.draw_rooms import PICTURE, drawing
from tests.architecture.rules import FOLDERS_IN_ORDER, MAY_IMPORT
from tests.architecture.source import ROOT, modules, text_of

MAP = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
TOUR = (ROOT / "docs" / "tour.md").read_text(encoding="utf-8")
STATIONS = re.findall(r"^\| (\d+) \| [^|]+ \| `(service/[\w/]+\.py)` `([\w.]+)` \|$", MAP, re.MULTILINE)
EDGES = re.findall(r"^  (\w+) --> (\w+)$", MAP, re.MULTILINE)
THREADS = re.findall(r"^\| (`[^|]+`) \| [^|]+ \| `([\w/]+\.py)` \|$", MAP, re.MULTILINE)


@pytest.mark.parametrize("page", [MAP, TOUR], ids=["architecture.md", "tour.md"])
def test_every_path_exists(page: str) -> None:
    """A path in backticks is a file or a folder of the repository."""
    named = set(re.findall(r"`((?:service|tests|migrations|clients|loadtests)/[\w/.]*)`", page))

    assert len(named) > 10
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []


def test_the_tour_answers_twenty_questions_each_with_a_path() -> None:
    """A question without a path would be answered by prose alone."""
    answers = re.findall(r"^\d+\. \*\*[^*]+\?\*\* (.+)$", TOUR, re.MULTILINE)

    assert len(answers) == 20
    assert all(re.search(r"`[\w/]+/[\w.]*`", answer) for answer in answers)


def test_the_table_of_rooms_is_the_rule_of_imports() -> None:
    """Every room and exactly the rooms that it may import."""
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| ([\w, ]+) \|$", MAP, re.MULTILINE)
    shown = {room: frozenset() if rooms == "nothing" else frozenset(rooms.split(", ")) for room, rooms in rows}

    assert shown == MAY_IMPORT


def test_the_order_inside_each_room_is_the_rule() -> None:
    """The folders are named in the order that the rule enforces."""
    lines = re.findall(r"^The folders of `(\w+)`, in their order: (.+)$", MAP, re.MULTILINE)

    assert {
        room: re.findall(r"`(\w+)` \(", line.replace("`store`", "store")) for room, line in lines
    } == FOLDERS_IN_ORDER


def test_the_modules_beside_the_folders_of_workflows_are_all_named() -> None:
    """The use cases, the facades, and the one that wires them."""
    (line,) = re.findall(r"^After them come the use cases (.+)$", MAP, re.MULTILINE)
    beside = {path.stem for path in (ROOT / "service" / "workflows").glob("[!_]*.py")}

    assert sorted(re.findall(r"`(\w+)`", line)) == sorted(beside)


@pytest.mark.parametrize(("owner", "part"), EDGES)
def test_each_arrow_of_the_drawing_is_in_the_code(owner: str, part: str) -> None:
    """The module that defines the first class names the second."""
    (module,) = [each for each in modules("service") if owner in _classes(each.tree)]

    assert part in {node.id for node in ast.walk(module.tree) if isinstance(node, ast.Name)}
    assert any(part in _classes(each.tree) for each in modules("service"))


def _classes(tree: ast.Module) -> set[str]:
    return {node.name for node in tree.body if isinstance(node, ast.ClassDef)}


@pytest.mark.parametrize(("names", "path"), THREADS)
def test_each_thread_has_its_name_where_it_is_started(names: str, path: str) -> None:
    """The fixed part of the name stands in the file, or in one that calls it."""
    module = path.removesuffix(".py").replace("/", ".")
    callers = "".join(
        each.text for each in modules("service", "clients/ray/src") if each.path == path or module in each.text
    )
    for name in re.findall(r"`([a-z-]+)", names):
        assert re.search(rf'"{name.rstrip("-")}\b', callers), name


def test_each_thread_of_the_code_is_in_the_table() -> None:
    """And the table has no other but the main thread, which the operating system starts."""
    listed = [name for names, _ in THREADS for name in re.findall(r"`([^`]+)`", names)]

    assert sorted(listed) == sorted(
        set().union(*(_thread_names(each.tree) for each in modules("service", "clients/ray/src")))
    )


def test_threads_are_found_by_the_ways_in_which_they_are_started() -> None:
    """The name as it stands in the call, whose varying part is the dataset; of a queue, that of the class."""
    text = """
        Thread(target=work, name="one")
        threading.Thread(target=work, name=f"two-{record.name}", daemon=True)
        in_background(task, name=f"three-{dataset}")
        self._begin_thread(self._run, "four")
        ThreadPoolExecutor(2, thread_name_prefix="five")
        class Queue(JobQueue[int]):
            name = "six"
        """
    expected = {"one", "two-<dataset>", "three-<dataset>", "four", "five", "six"}
    assert _thread_names(ast.parse(textwrap.dedent(text))) == expected

    with pytest.raises(LookupError):
        _thread_names(ast.parse("Thread(target=work)"))


# The functions that start a thread, with the place or the keyword of its name.
_STARTERS: Mapping[str, int | str] = {
    "Thread": "name",
    "Keeper": "name",
    "LastingThread": "name",
    "ThreadPoolExecutor": "thread_name_prefix",
    "_begin_thread": 1,
    "_started_thread": 1,
    "in_background": "name",
    "on_own_thread": "name",
}


def _thread_names(tree: ast.AST) -> set[str]:
    """The names of the threads that a module starts. Raises LookupError for one without a name.

    Inside a function that starts a thread for others the name is an argument, and its callers are looked at.
    """
    names = set()
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef) and node.name in _STARTERS:
            continue
        if isinstance(node, ast.Call) and (starter := text_of(node.func).rpartition(".")[2]) in _STARTERS:
            names.add(_name_in(node, _STARTERS[starter]))
        if isinstance(node, ast.ClassDef) and any(text_of(base).startswith("JobQueue[") for base in node.bases):
            names |= {ast.literal_eval(each.value) for each in node.body if isinstance(each, ast.Assign)}
        names |= _thread_names(node)
    return names - {_QUEUES_OWN}


_QUEUES_OWN = "self.name"


def _name_in(call: ast.Call, place: int | str) -> str:
    if isinstance(place, int):
        name = call.args[place]
    else:
        name = next((each.value for each in call.keywords if each.arg == place), ast.Constant(None))
    match name:
        case ast.Constant(value=str() as text):
            return text
        case ast.JoinedStr(values=[ast.Constant(value=str() as text), ast.FormattedValue()]):
            return f"{text}<dataset>"
        case ast.Attribute() if ast.unparse(name) == _QUEUES_OWN:
            return _QUEUES_OWN
    raise LookupError(ast.unparse(call))


def test_the_picture_of_the_rooms_is_drawn_from_the_imports() -> None:
    """The command that the page names has nothing to write."""
    assert PICTURE.read_text(encoding="utf-8") == drawing()


def test_the_walk_has_its_stations() -> None:
    """Twenty-four, numbered without a gap."""
    assert [int(number) for number, _, _ in STATIONS] == list(range(1, 25))


def test_a_traced_query_passes_the_stations_in_order() -> None:
    """One query to a real server, on embedded Postgres and Valkey, with release slots.

    It is no longer than the page says, so that a change that lengthens the way of each query is seen. A loaded machine
    makes answers late, which takes functions of its own: the functions that up to five traces share count.
    """
    said = re.search(r"at most (\d+) files, (\d+) functions and (\d+) calls", MAP)
    assert said is not None
    bounds = [int(most) for most in said.groups()]
    visits = _traced()
    for _ in range(4):
        if _within(bounds, visits):
            break
        again = _traced()
        visits = {place: min(calls, again[place]) for place, calls in visits.items() if place in again}
    visited = list(visits)
    places = [visited.index((path, name)) if (path, name) in visited else None for _, path, name in STATIONS]

    assert None not in places, [station for station, place in zip(STATIONS, places, strict=True) if place is None]
    assert places == sorted(place for place in places if place is not None)
    assert _within(bounds, visits), _figures(visits)


def _traced() -> dict[tuple[str, ...], int]:
    """The functions of a query of a new text, with their files, in order, and how often each is called."""
    command = [sys.executable, "-m", "loadtests.trace_query", "--list"]
    out = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    lines = [line.split() for line in out.splitlines()[1:]]
    return {(path, name): int(calls) for path, name, calls in lines}


def _figures(visits: Mapping[tuple[str, ...], int]) -> list[int]:
    return [len({path for path, _ in visits}), len(visits), sum(visits.values())]


def _within(bounds: list[int], visits: Mapping[tuple[str, ...], int]) -> bool:
    return all(traced <= most for traced, most in zip(_figures(visits), bounds, strict=True))
