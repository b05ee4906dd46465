"""Every seeded bug, in the order of the rooms."""

from tests.mutants import (
    arithmetic,
    cache,
    counters,
    edges,
    events,
    faults,
    owners,
    pages,
    pauses,
    rewriting,
    schedule,
    starting,
    statements,
    uploads,
    verifying,
    witness,
)

MUTANTS = [
    *arithmetic.MUTANTS,
    *events.MUTANTS,
    *edges.MUTANTS,
    *schedule.MUTANTS,
    *cache.MUTANTS,
    *faults.MUTANTS,
    *witness.MUTANTS,
    *owners.MUTANTS,
    *statements.MUTANTS,
    *verifying.MUTANTS,
    *pauses.MUTANTS,
    *counters.MUTANTS,
    *rewriting.MUTANTS,
    *starting.MUTANTS,
    *uploads.MUTANTS,
    *pages.MUTANTS,
]
