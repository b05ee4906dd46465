"""Seeded bugs of ownership and forwarding: two owners at once, keys for strangers, work that nobody may do twice."""

from tests.mutants.mutant import Mutant

MUTANTS = [
    Mutant(
        name="a lease counts from the reply",
        incident="A renewal is slow on its way, and two processes work on a dataset in two timetables.",
        file="service/workflows/replication/ownership.py",
        find="return _Known(lease.replica, sent + left_s)",
        put="return _Known(lease.replica, self._clock() + left_s)",
        killed_by="tests/workflows/replication/test_ownership.py::test_a_process_stops_being_the_owner_before_another_can_be",
    ),
    Mutant(
        name="a lease that is in force is taken",
        incident="Every process takes the dataset from the other with every request, and loads it again and again.",
        file="service/store/postgres/leases.py",
        find="WHERE held.replica = excluded.replica OR held.expires_at <= clock_timestamp()",
        put="WHERE held.replica = excluded.replica OR held.expires_at > clock_timestamp()",
        killed_by="tests/contracts/test_leases.py::test_a_dataset_belongs_to_the_first_claimant[postgres]",
    ),
    Mutant(
        name="everybody works on everything",
        incident="A process loads a dataset that another owns, and each shows the other's durations.",
        file="service/workflows/writer/registry.py",
        find="if not self.admits(record.id):",
        put="if self.admits(record.id) is None:",
        killed_by="tests/workflows/replication/test_ownership.py::test_a_replica_works_only_on_what_it_owns",
    ),
    Mutant(
        name="a moved dataset stays in memory",
        incident="A process that has lost a dataset catches up with its new owner for ever, and takes its processor.",
        file="service/workflows/replication/ownership.py",
        find="        if elsewhere:\n            self._moved(elsewhere)",
        put="        if not leases:\n            self._moved(elsewhere)",
        killed_by="tests/workflows/replication/test_ownership.py::test_a_writer_is_closed_when_its_dataset_has_moved",
    ),
    Mutant(
        name="keys for whoever answers",
        incident="A stale lease names an address that is another program's by now, and API keys are sent there.",
        file="service/api/forwarding/exchange.py",
        find="if not self._ownership.is_proof(replica, challenge.hex().encode(), proof):",
        put="if not proof:",
        killed_by="tests/api/forwarding/test_exchange.py::test_nothing_is_sent_to_a_process_without_a_proof",
    ),
    Mutant(
        name="forwarding without end",
        incident="Two processes that each take the other for the owner send a request to and fro until it times out.",
        file="service/api/forwarding/middleware.py",
        find='elif any(name == HOP_HEADER for name, _ in scope["headers"]):',
        put='elif any(name == HOP_HEADER.upper() for name, _ in scope["headers"]):',
        killed_by="tests/api/forwarding/test_middleware.py::test_a_request_is_forwarded_once",
    ),
    Mutant(
        name="a broken answer is asked for again",
        incident="An upload whose owner died in the middle is placed a second time by the next owner.",
        file="service/api/forwarding/exchange.py",
        find="                    raise Unavailable from None",
        put="                    return False",
        killed_by="tests/api/forwarding/test_exchange.py::test_an_owner_that_dies_before_it_answers_may_have_worked",
    ),
    Mutant(
        name="a stranger is forwarded",
        incident="A dataset's existence shows in how long a wrong key takes to be refused.",
        file="service/api/forwarding/middleware.py",
        find="""        if principal is None:
            return None
        named = _NAMED.fullmatch(scope["path"])
        name = principal.dataset or (named and named[1])
""",
        put="""        named = _NAMED.fullmatch(scope["path"])
        name = (principal and principal.dataset) or (named and named[1])
""",
        killed_by="tests/api/forwarding/test_middleware.py::test_what_concerns_no_dataset_that_the_caller_may_name_is_answered_here",
    ),
]
