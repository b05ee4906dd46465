"""The allocator keeps freed memory, which shows in how often the kernel has to bring a page."""

import subprocess
import sys

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
