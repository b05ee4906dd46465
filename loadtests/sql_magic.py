"""Asks a running service through the SQLAlchemy path of a notebook's `%sql`: `python -m loadtests.sql_magic`.

ipython-sql knows nothing of Sparing: it takes the URL of any database, inspects nothing, and sends the cell's text. It
is installed into an environment of its own, and its packages are put on the path. The exit status is 1 if a cell is not
answered within its error bars, or a statement that writes is not refused.
"""

import os
import subprocess
import sys
from importlib import import_module

import pyarrow.compute as pc

from loadtests.peers.child import HOMES, ROOT
from loadtests.peers.install import Library, install, run
from loadtests.rig import people, register_people, serving, throw_away_home

TOOL = Library(name="magic", sources=())
COUNT = 20_000
CELL = "SELECT COUNT(*) AS n, SUM(age) AS years, AVG(age) AS mean FROM people WHERE age >= 40"


def main() -> int:
    """Start a service with people, and run the cells in the other environment."""
    reason = install(TOOL, homes=HOMES, runner=run)
    if reason:
        print(f"ipython-sql {reason}", flush=True)
        return 1
    (site,) = (HOMES / TOOL.name / ".venv").glob("lib/python*/site-packages")
    path = os.pathsep.join([str(ROOT), str(site), os.environ.get("PYTHONPATH", "")])
    with throw_away_home() as home, serving(home) as rig:
        register_people(rig, COUNT)
        key = rig.analyst.headers["Authorization"].removeprefix("Bearer ")
        url = f"{rig.url.replace('http://', f'sparing+http://:{key}@')}/million?share=0.2"
        command = [sys.executable, "-W", "ignore", "-m", "loadtests.sql_magic", url]
        return subprocess.run(command, check=False, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}).returncode


def cells(url: str) -> int:
    """Run the cells in this process. The table must contain the truth, and making a table must be refused."""
    shell = import_module("IPython.core.interactiveshell").InteractiveShell.instance()  # of the other environment
    shell.run_line_magic("load_ext", "sql")
    table = shell.run_cell_magic("sql", url, CELL).DataFrame()
    refused = shell.run_cell_magic("sql", url, "DELETE FROM people WHERE age > 90")
    print(table.to_string(), flush=True)
    ages = people(COUNT).column("age")
    ages = ages.filter(pc.greater_equal(ages, 40))
    truth = {"n": len(ages), "years": pc.sum(ages).as_py()}
    row = table.iloc[0]
    is_held = all(abs(row[name] - number) <= 2 * row[f"{name}_half_width"] for name, number in truth.items())
    is_held = is_held and row["mean_low"] - 1 <= truth["years"] / truth["n"] <= row["mean_high"] + 1
    print("held" if is_held else f"not held: {truth}", "refused" if refused is None else "not refused", flush=True)
    return 0 if is_held and refused is None else 1


if __name__ == "__main__":
    sys.exit(cells(sys.argv[1]) if len(sys.argv) > 1 else main())
