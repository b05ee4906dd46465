"""The imports of a start, their order, and the settings of the garbage collector and the allocator."""

import gc
import subprocess
import sys

from service.run.serve import collect_rarely


def test_the_collector_looks_rarely_and_never_at_what_a_start_has_made() -> None:
    """At young objects; for older ones its own rules stand. A start leaves it at rest."""
    before = gc.get_threshold()
    gc.disable()
    try:
        collect_rarely()
        assert gc.get_threshold() == (10_000, *before[1:])
        assert gc.isenabled()
        assert gc.get_freeze_count() > 10_000
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)


def test_servers_are_under_way_before_most_is_imported() -> None:
    """The imports before the launch of servers are a third of all; a missing numpy shows that the rest waits."""
    lines = (
        "import sys, service.cli.app, service.run.serve",
        "print('numpy' in sys.modules, 'service.workflows.replica' in sys.modules, 'uvicorn' in sys.modules)",
        "import service.run.adapters",
        "print('numpy' in sys.modules, 'service.workflows.replica' in sys.modules, 'uvicorn' in sys.modules)",
    )
    printed = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True)
    assert printed.stdout.split() == ["False", "False", "False", "True", "True", "False"]


def test_a_start_does_not_import_what_reads_uploads() -> None:
    """It is imported when connections are taken, or by the first upload."""
    lines = (
        "import sys, service.run.serve, service.run.uvicorn_server, service.workflows.replica",
        "print('pyarrow' in sys.modules)",
        "service.ledger.ports.row_reader.ReaderHere().open()",
        "print('pyarrow.parquet' in sys.modules)",
    )
    printed = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True)
    assert printed.stdout.split() == ["False", "True"]


PROGRAM = """
import resource, sys
from service.run.serve import keep_freed_memory
if sys.argv[1] == "kept":
    print(keep_freed_memory())
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        block = bytearray(8 * 2**20)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
faults()
print(faults())
"""


def printed(how: str) -> list[str]:
    """The output of a process of its own."""
    ran = subprocess.run([sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, check=True)
    return ran.stdout.split()


def test_large_blocks_are_not_given_back_to_the_kernel() -> None:
    """Twenty blocks of eight megabytes bring hardly any page anew, and tens of thousands otherwise."""
    accepted, faults = printed("kept")
    assert accepted == "True"
    assert 20 * int(faults) < int(printed("plain")[0])
