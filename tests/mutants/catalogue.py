"""Every seeded bug, in the order of the rooms."""

from tests.mutants import arithmetic, cache, edges, events

MUTANTS = [*arithmetic.MUTANTS, *events.MUTANTS, *edges.MUTANTS, *cache.MUTANTS]
