"""Compares what the service does with what is recorded, or records it anew.

python -m tests.golden compare [queries ...]   prints each difference; the exit status is 1 if there is one
python -m tests.golden renew [queries ...]     prints them too, and records what the service does now
python -m tests.golden draw [queries ...]      draws other cases, and records them
"""

import argparse
import sys
from collections.abc import Sequence
from typing import Final

from tests.golden import entries, queries, requests
from tests.golden.differences import differences
from tests.golden.net import Net

NETS: Final = (queries.NET, entries.NET, requests.NET, requests.EXAMPLES)


def main() -> int:
    """Do what is asked for each file."""
    by_name = {net.file.stem: net for net in NETS}
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
    parser.add_argument("act", choices=["compare", "renew", "draw"])
    parser.add_argument("names", nargs="*", help=", ".join(by_name))
    options = parser.parse_args()
    if unknown := [name for name in options.names if name not in by_name]:
        parser.error(f"there is no {unknown[0]}: choose from {', '.join(by_name)}")
    nets = [by_name[name] for name in options.names or by_name]
    return 1 if sum(_done(net, options.act) for net in nets) and options.act == "compare" else 0


def _done(net: Net, act: str) -> int:
    """The number of differences."""
    kept = net.lines() if net.file.exists() else []
    lines = list(net.drawn() if act == "draw" else net.renewed(kept))
    found: Sequence[str] = differences(kept, lines)
    for each in found if act != "draw" else ():
        _say(f"{net.file.name}:{each}")
    _say(f"{net.file.name}: {len(found)} differences")
    if act != "compare":
        net.file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return len(found)


def _say(text: str | None) -> None:
    sys.stdout.write(f"{text}\n")


if __name__ == "__main__":
    sys.exit(main())
