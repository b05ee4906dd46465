"""Every seeded bug, in the order of the rooms."""

from tests.mutants import arithmetic, cache, edges, events, faults, witness

MUTANTS = [*arithmetic.MUTANTS, *events.MUTANTS, *edges.MUTANTS, *cache.MUTANTS, *faults.MUTANTS, *witness.MUTANTS]
