"""The search for the quickest tests that see a seeded bug, among those that reach its lines in a recorded run."""

import ast
import re
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from coverage import CoverageData

from tests.mutants.mutant import DoesNotApply, Mutant, Place
from tests.mutants.source import definitions
from tests.mutants.trials import SECONDS_MAX, Journal, digest_of, trial

KILLERS_MAX = 3
SEARCH_SECONDS_MAX = 300
ANCHOR = "/service/__init__.py"
IN_A_TEST = "|run"


class Recording:
    """The tests that reach each line of the code, and the seconds of each test."""

    def __init__(self, data: Path, report: Path) -> None:
        self._data = CoverageData(basename=str(data))
        self._data.read()
        self._contexts = lru_cache(maxsize=8)(self._data.contexts_by_lineno)
        self._files = self._data.measured_files()
        self.root = Path(next(file for file in self._files if file.endswith(ANCHOR)).removesuffix(ANCHOR))
        self._seconds: defaultdict[tuple[str, str], float] = defaultdict(float)
        for case in ET.parse(report).iter("testcase"):  # noqa: S314 - of our own run
            name = case.get("name", "")
            for counted in {name, _function(name)}:
                self._seconds[case.get("classname", ""), counted] += float(case.get("time", 0))
        self._cases = Counter(map(_function, _tests(self._data.measured_contexts())))

    def reaching(self, mutant: Mutant) -> dict[str, list[str]]:
        """The test files that may see the mutant, quickest first, each with its tests that reach the changed lines.

        What is run at the import of its module has no tests of its own: those that reach its uses stand for them.
        """
        place = mutant.place(self.root)
        nodes = self._at(place.file, _statement_lines(place.text, _lines(place.text, *place.span)))
        if not nodes or not _is_in_function(place):
            nodes |= {node for file, lines in self._uses(mutant, place) for node in self._at(file, lines)}
        grouped: dict[str, set[str]] = defaultdict(set)
        for node in [*self._whole(nodes), *mutant.killed_by]:
            grouped[node.partition("::")[0]].add(node)
        ordered = sorted(grouped.items(), key=lambda item: (sum(map(self.seconds, item[1])), item[0]))
        return {file: sorted(found - {file}) or [file] for file, found in ordered}

    def seconds(self, node: str) -> float:
        """How long a test took; all cases of a function together, and 0 for one that was not recorded."""
        function = _function(node)
        file, *names = function.split("::")
        name = names.pop() if names else ""
        return self._seconds.get((".".join([_module(file), *names]), name + node.removeprefix(function)), 0.0)

    def _at(self, file: str, lines: set[int]) -> set[str]:
        contexts = self._contexts(str(self.root / file))
        return {node for line in lines for node in _tests(contexts.get(line, []))}

    def _whole(self, nodes: set[str]) -> Iterator[str]:
        """A function of tests in place of its cases where all of them are among the nodes."""
        cases = defaultdict(list)
        for node in nodes:
            cases[_function(node)].append(node)
        for function, found in cases.items():
            yield from [function] if len(found) == self._cases[function] else found

    def _uses(self, mutant: Mutant, place: Place) -> Iterator[tuple[str, set[int]]]:
        """The lines of the definition itself, and those of all statements that name it."""
        spans = definitions(place.text).get(mutant.definition, ())
        yield place.file, {line for span in spans for line in _lines(place.text, span.start, span.end)}
        name = re.compile(rf"\b{re.escape(mutant.definition.rpartition('.')[2])}\b")
        for path in map(Path, sorted(self._files) if mutant.definition else ()):
            text = path.read_text()
            lines = [number for number, line in enumerate(text.split("\n"), 1) if name.search(line)]
            if lines:
                yield path.relative_to(self.root).as_posix(), _statement_lines(text, lines)


class Search:
    """Runs of the candidates of each mutant, quickest first, until three files of tests have killed it."""

    def __init__(self, recording: Recording, journal: Journal) -> None:
        self._recording = recording
        self._journal = journal
        self._known = {(line["digest"], line["tests"]): line for line in journal.lines}

    def killers_of(self, mutant: Mutant) -> str:
        """Try the candidates, and say how it ended."""
        killers, spent_s = 0, 0.0
        try:
            candidates = self._recording.reaching(mutant)
        except DoesNotApply as error:
            return str(error)
        present = {node.partition("::")[0] for node in mutant.killed_by}
        for file, nodes in candidates.items():
            is_late = spent_s >= SEARCH_SECONDS_MAX and (killers or file not in present)
            if killers < KILLERS_MAX and not is_late:
                line = self._known.get((key_of(mutant), file)) or self._tried(mutant, file, nodes)
                killers, spent_s = killers + bool(line["killer"]), spent_s + line["seconds"]
        return f"{mutant.name}: {killers} killers among {len(candidates)} files, {spent_s:.0f} s"

    def _tried(self, mutant: Mutant, file: str, nodes: list[str]) -> dict[str, Any]:
        tried = trial(mutant, nodes, seconds_max=SECONDS_MAX)
        killer = None
        if tried.failed:
            classname, name = tried.failed[0]
            classes = classname.removeprefix(_module(file)).split(".")[1:]
            killer = "::".join([file, *classes, _function(name)])
        return self._journal.add(
            mutant=mutant.name,
            digest=key_of(mutant),
            tests=file,
            killer=killer,
            killer_s=(self._recording.seconds(killer) or tried.seconds) if killer else 0.0,
            is_green=tried.is_green,
            seconds=tried.seconds,
        )


def best_killers(mutant: Mutant, lines: Iterable[dict[str, Any]]) -> tuple[str, ...]:
    """The quickest killers of a mutant among the results of a search, then those that it has and were not refuted."""
    tried = [line for line in lines if line["digest"] == key_of(mutant)]
    found = {line["killer"]: line for line in sorted(tried, key=lambda line: line["killer_s"]) if line["killer"]}
    refuted = {line["tests"] for line in tried if line["killer"] or line["is_green"]}
    present = [node for node in mutant.killed_by if node.partition("::")[0] not in refuted]
    return tuple([*found, *present][:KILLERS_MAX]) or mutant.killed_by


def key_of(mutant: Mutant) -> str:
    """The mutant alone, wherever its function is and whatever kills it."""
    return digest_of(mutant.name, mutant.find, mutant.put)


def _tests(contexts: Iterable[str]) -> Iterator[str]:
    return (context.removesuffix(IN_A_TEST) for context in contexts if context.endswith(IN_A_TEST))


def _function(node: str) -> str:
    return node.partition("[")[0]


def _module(file: str) -> str:
    return file.removesuffix(".py").replace("/", ".")


def _lines(text: str, start: int, end: int) -> range:
    return range(text.count("\n", 0, start) + 1, text.count("\n", 0, max(start, end - 1)) + 2)


def _statement_lines(text: str, lines: Iterable[int]) -> set[int]:
    """All lines of the statements on these lines; of a statement with a body, those of its head."""
    found = set(lines)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            last = body[0].lineno - 1 if body else node.end_lineno
            statement = set(range(node.lineno, max(node.lineno, last or 0) + 1))
            found |= statement if statement & found else set()
    return found


def _is_in_function(place: Place) -> bool:
    """Tell whether the change is within the body of a function."""
    first = _lines(place.text, *place.span)[0]
    functions = [
        node for node in ast.walk(ast.parse(place.text)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return any(node.body[0].lineno <= first <= (node.end_lineno or 0) for node in functions)
