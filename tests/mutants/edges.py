"""Seeded bugs of the store and of the edge: locks, fences, epochs, and what a reader may see."""

from tests.mutants.mutant import Mutant

CONTRACT = "tests/contracts/test_store.py"
SCHEMA = "tests/store/postgres/test_schema.py"
LISTINGS = "tests/contracts/test_listings.py"

MUTANTS = [
    Mutant(
        name="an erased person's principals keep the key",
        incident="Somebody asks to be erased, and the key that names them stays in the table of principals.",
        file="service/store/postgres/transaction.py",
        find="revoked_at = coalesce(p.revoked_at, now()), individual = NULL, name = %s",
        put="revoked_at = coalesce(p.revoked_at, now()), name = %s",
        killed_by=f"{CONTRACT}::test_an_erased_individuals_principals_are_revoked_and_blanked[postgres]",
    ),
    Mutant(
        name="an erased person's key is remembered",
        incident="For a second after an erasure the erased person's API key still opens.",
        file="service/workflows/curator.py",
        find="        self._principals.forget_individual(dataset, key)\n",
        put="",
        killed_by="tests/api/routes/test_individual.py::test_an_erased_individual_is_told_nothing",
    ),
    Mutant(
        name="no row lock",
        incident="Two replicas read the same head and both believe that the last unit is theirs.",
        file="service/store/postgres/registrations.py",
        find='LOCK_HEAD: Final = " FOR UPDATE"',
        put='LOCK_HEAD: Final = ""',
        killed_by=f"{CONTRACT}::test_two_writers_wait_for_each_other",
    ),
    Mutant(
        name="head not checked",
        incident="A writer that slept through a failover appends on a head that has moved.",
        file="service/store/postgres/append.py",
        find=" AND hash = $6 AND fence = $7 AND",
        put=" AND hash = $6 AND fence >= $7 AND",
        killed_by=f"{SCHEMA}::test_a_writer_that_was_fenced_off_appends_nothing",
    ),
    Mutant(
        name="worst cases beyond a bigint",
        incident="Two queries of one analyst, each at the most that one can cost, and no batch with a third commits.",
        file="service/store/postgres/append.py",
        find="units = worst_cases.units + least(excluded.units, {CHARGE_UNITS_MAX} - worst_cases.units))",
        put="units = least(worst_cases.units + excluded.units, {CHARGE_UNITS_MAX}))",
        killed_by=f"{CONTRACT}::test_an_analysts_worst_cases_saturate",
    ),
    Mutant(
        name="reuse across epochs",
        incident="An answer about last year's people is served as this year's.",
        file="service/store/postgres/transaction.py",
        find=">= (asked_hash, of_dataset, this_epoch, 0)",
        put=">= (asked_hash, of_dataset, 0, 0)",
        killed_by=f"{CONTRACT}::test_the_newest_entry_of_this_epoch_is_reused",
    ),
    Mutant(
        name="an append opens an epoch",
        incident="Every upload ends reuse: averaging by appending a row.",
        file="service/store/postgres/transaction.py",
        find="epoch = coalesce(%s, epoch)",
        put="epoch = coalesce(%s, epoch + 1)",
        killed_by=f"{CONTRACT}::test_the_journal_moves_the_data_version_and_the_epoch",
    ),
    Mutant(
        name="an append moves no version",
        incident="Other replicas never learn of new or erased people.",
        file="service/store/postgres/transaction.py",
        find='"data_version = data_version + 1,',
        put='"data_version = data_version + 0,',
        killed_by=f"{CONTRACT}::test_the_journal_moves_the_data_version_and_the_epoch",
    ),
    Mutant(
        name="a limit that rises in the database",
        incident="A late writer puts back the higher limit that an individual had lowered.",
        file="service/store/postgres/transaction.py",
        find=" AND slot = %s AND limit_units >= %s",
        put=" AND slot = %s AND limit_units >= 0 * %s",
        killed_by=f"{CONTRACT}::test_a_limit_only_falls",
    ),
    Mutant(
        name="asynchronous commit accepted",
        incident="A power cut forgets charges whose answers were read.",
        file="service/store/postgres/sessions.py",
        find='("fsync", "full_page_writes", "synchronous_commit")',
        put='("full_page_writes",)',
        killed_by=f"{SCHEMA}::test_a_forgetful_database_is_refused",
    ),
    Mutant(
        name="another's release by its id",
        incident="Whoever learns a query id reads the answer.",
        file="service/store/postgres/listings.py",
        find="WHERE a.principal_id = %s AND",
        put="WHERE (a.principal_id = %s OR true) AND",
        killed_by=f"{CONTRACT}::test_own_answers_are_found_newest_first_and_by_query",
    ),
    Mutant(
        name="how many paid, in the answer",
        incident="The active set's size is an unaccounted release in every reply.",
        file="service/workflows/writer/batch.py",
        find='        "reused": reused,\n',
        put='        "reused": reused,\n        "charged": entry.charged_count,\n',
        killed_by="tests/leaks/test_neighbours.py::test_one_person_moves_nothing_but_the_values",
    ),
    Mutant(
        name="count in a header",
        incident="The same through the sequence of a header.",
        file="service/api/responses.py",
        find="    return Released(body, media_type, answer.query_id, ticket)\n",
        put="    released = Released(body, media_type, answer.query_id, ticket)\n"
        '    released.headers["X-Sum"] = str(int(abs(answer.values().sum())))\n'
        "    return released\n",
        killed_by="tests/leaks/test_neighbours.py::test_one_person_moves_nothing_but_the_values",
    ),
    Mutant(
        name="exception text in a problem",
        incident="A 500 quotes the row that it stumbled over.",
        file="service/api/middleware/request_limits.py",
        find='            report_incident(error, f"request_id={request_id_of(scope)}")\n',
        put='            report_incident(error, f"request_id={request_id_of(scope)}")\n'
        "            if not exchange.has_begun:\n"
        "                said = HTTPException(500, str(error))\n"
        "                from service.api.problems import Refusal\n"
        '                shown = Refusal("internal-error", said.detail)\n'
        "                await response_of(shown, request_id_of(scope))(scope, receive, send)\n"
        "                return\n",
        killed_by="tests/api/test_problems.py::test_an_incident_has_it_too",
    ),
    Mutant(
        name="analysts see counts",
        incident="How many people a dataset holds is anybody's to read.",
        file="service/api/routes/datasets.py",
        find="        return replica.analysts.dataset(caller, dataset)\n",
        put="        replica.analysts.dataset(caller, dataset)\n",
        killed_by="tests/api/routes/test_datasets.py::test_an_analysts_view_does_not_move_with_the_data",
    ),
    Mutant(
        name="auditors see who paid",
        incident="Counts of people charged and left out go to whoever checks the chain.",
        file="service/api/routes/auditor.py",
        find='if caller.role == "curator":',
        put='if caller.role in ("curator", "auditor"):',
        killed_by="tests/api/routes/test_auditor.py::test_an_auditor_sees_everything_else",
    ),
    Mutant(
        name="a revoked key still opens",
        incident="Somebody who has left goes on asking.",
        file="service/workflows/principals.py",
        find="if not record.is_valid(now) or not compare_digest(",
        put="if not compare_digest(",
        killed_by="tests/api/routes/test_curator.py::TestPrincipals::test_a_revoked_key_stops_at_once",
    ),
    Mutant(
        name="an erasure says whose it was",
        incident="Whoever was erased and has come back is shown to have been away.",
        file="service/store/postgres/listings.py",
        find=" AND act <> 'erase') AS page",
        put=") AS page",
        killed_by=f"{LISTINGS}::test_acts_are_listed_newest_first_with_their_individuals[postgres]",
    ),
    Mutant(
        name="the log of acts finds the erased by their slot",
        incident="An erased person's limit is shown under the key of whoever is next in the table.",
        file="tests/memory/tables.py",
        find='people.get(act.detail.get("slot", -1))',
        put="next((each for each in people.values() if each.key is not None), None)",
        killed_by="tests/workflows/reads/test_act_log.py::test_an_erased_key_does_not_come_back",
    ),
    Mutant(
        name="the log tells all of an act",
        incident="What a later kind of act keeps for replicas alone is shown to curators.",
        file="service/workflows/reads/act_log.py",
        find="plain = {name: detail[name] for name in _TOLD.get(act, ()) if name in detail}",
        put="plain = {name: detail[name] for name in detail if name not in _TOLD_AS_RHO.get(act, {})}",
        killed_by="tests/workflows/reads/test_act_log.py::test_an_act_of_an_unknown_kind_is_listed_without_detail",
    ),
    Mutant(
        name="names of others' datasets suggested",
        incident="A key of one dataset finds out by misspelt names which others there are.",
        file="service/api/auth.py",
        find="raise UnknownDataset(asked, [own])",
        put="raise UnknownDataset(asked, current_replica(request).registry.names())",
        killed_by="tests/api/test_auth.py::TestEveryRoute::test_a_key_is_told_of_no_dataset_but_its_own",
    ),
    Mutant(
        name="an answer of other groups is reused",
        incident="An earlier version's answer has a number less than the labels beside it.",
        file="service/query/plan.py",
        find="(grid_log2, dimension, sigmas) == (self.grid_log2, self.dimension, self.item_sigmas)",
        put="(grid_log2, sigmas) == (self.grid_log2, self.item_sigmas)",
        killed_by="tests/workflows/writer/test_batch.py::test_an_answer_of_other_groups_is_not_reused",
    ),
]
