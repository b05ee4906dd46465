"""Runs the public DB-API 2.0 compliance suite on `sparing.dbapi`: `python -m loadtests.compliance`.

The suite exists as source alone, which the locks of .venv do not hold. So it is built in an environment of its own, and
its one module is put on the path.
"""

import os
import subprocess
import sys

from loadtests.peers.child import HOMES, ROOT
from loadtests.peers.install import Library, install, run

SUITE = Library(name="compliance", sources=("dbapi-compliance",))


def main() -> int:
    """Run the suite and return its exit status; 1 where it cannot be installed."""
    reason = install(SUITE, homes=HOMES, runner=run)
    if reason:
        print(f"The compliance suite {reason}", flush=True)
        return 1
    (site,) = (HOMES / SUITE.name / ".venv").glob("lib/python*/site-packages")
    path = os.pathsep.join([str(ROOT), str(site), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "loadtests.compliance_suite"]
    return subprocess.run(command, check=False, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}).returncode


if __name__ == "__main__":
    sys.exit(main())
