"""Seeded bugs, each put alone in a copy of the tree, where a test of it must fail: `make mutants`.

`search` finds the quickest tests that see each bug, `settle` writes them and moved functions into the tables.
"""

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.mutants import tables
from tests.mutants.mutant import ROOT, Mutant
from tests.mutants.search import Recording, Search, best_killers
from tests.mutants.trials import Journal, digest_of, digest_of_tree, trial

VERDICTS = ROOT / "build" / "mutants.jsonl"
KILLERS = ROOT / "build" / "killers.jsonl"
UNMUTATED_SECONDS_MAX = 3600


def main() -> int:
    """Judge, search or settle. 1 unless all mutants were killed."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("command", nargs="?", choices=["run", "search", "settle"], default="run")
    parser.add_argument("recorded", nargs="*", type=Path, help="search: coverage data with contexts, and a junit.xml")
    parser.add_argument("--only", default="", help="names that contain this text")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--again", action="store_true", help="forget the results of earlier runs of this tree")
    options = parser.parse_args()
    mutants = [mutant for mutant in tables.read() if options.only in mutant.name]
    if not mutants:
        parser.error(f"no mutant has {options.only!r} in its name")
    if options.command == "settle":
        return settle(tables.read())
    journal = Journal(KILLERS if options.command == "search" else VERDICTS, digest_of_tree(), is_new=options.again)
    if options.command == "search":
        search = Search(Recording(*options.recorded), journal)
        with ThreadPoolExecutor(options.jobs) as pool:
            for line in pool.map(search.killers_of, mutants):
                _say(line)
        return 0
    return judge(mutants, journal, options.jobs)


def judge(mutants: list[Mutant], journal: Journal, jobs: int) -> int:
    """Run the unmutated tests, then every mutant; print the table. 1 unless all were killed."""
    killed = {line["digest"] for line in journal.lines if line.get("killed_by")}
    left = [mutant for mutant in mutants if digest_of(mutant) not in killed]  # a survivor is tried again
    if len(left) < len(mutants):
        _say(f"{len(mutants) - len(left)} of {len(mutants)} were killed in this tree before; --again begins anew")
    if not _is_sound({node for mutant in left for node in mutant.killed_by}, journal, jobs):
        return 1
    _say("| mutant | where | killed by | seconds |\n|---|---|---|---|")
    with ThreadPoolExecutor(jobs) as pool:
        survivors = [line for line in pool.map(lambda mutant: _judge(mutant, journal), left) if not line["killed_by"]]
    _say(f"\n{len(mutants) - len(survivors)}/{len(mutants)} mutants killed")
    for line in survivors:
        _say(f"\n{line['mutant']} SURVIVED\n{line['said']}")
    return 1 if survivors else 0


def settle(mutants: list[Mutant]) -> int:
    """Write the tables anew: sorted, with functions where they are now, and with the killers that were found."""
    results = Journal(KILLERS, tree=None).lines
    settled = [replace(mutant.followed(ROOT), killed_by=best_killers(mutant, results)) for mutant in mutants]
    tables.write(settled)
    changed = sum(before != after for before, after in zip(mutants, settled, strict=True))
    _say(f"{changed} of {len(mutants)} mutants changed")
    return 0


def _is_sound(nodes: set[str], journal: Journal, jobs: int) -> bool:
    """Tell whether all these tests pass without any mutant."""
    left = sorted(nodes.difference(*(line["sound"] for line in journal.lines if "sound" in line)))
    files = {node for node in left if "::" not in node}
    left = [node for node in left if node in files or node.partition("::")[0] not in files]
    if not left:
        return True
    unmutated = trial(None, left, seconds_max=UNMUTATED_SECONDS_MAX, workers=min(jobs, len(left)))
    if unmutated.is_green:
        journal.add(sound=sorted(nodes))
    else:
        _say(f"the tests do not pass without any mutant:\n{unmutated.said}")
    return unmutated.is_green


def _judge(mutant: Mutant, journal: Journal) -> dict[str, Any]:
    """The first test that fails kills the mutant; the table grows as the verdicts come."""
    seconds, said, killer = 0.0, "", None
    for node in mutant.killed_by:
        tried = trial(mutant, [node])
        seconds, said = seconds + tried.seconds, said + tried.said
        if tried.failed:
            killer, said = node, ""
            break
    shown = killer.removeprefix("tests/") if killer else "**nothing**"
    _say(f"| {mutant.name} | {mutant.where} | {shown} | {seconds:.1f} |")
    return journal.add(mutant=mutant.name, digest=digest_of(mutant), killed_by=killer, seconds=seconds, said=said)


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
