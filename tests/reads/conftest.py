"""The tests of this room share a replica with one dataset of three people."""

from tests.workflows.fixtures import ana, entropy, replica, rows, store

__all__ = ["ana", "entropy", "replica", "rows", "store"]
