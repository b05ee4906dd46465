"""Seeded bugs of pages and changed registrations: cookies, sign-ins, forecasts, summaries, alarms, own records."""

from tests.mutants.mutant import Mutant

CREDENTIALS = "tests/api/test_auth.py"
SIGN_INS = "tests/workflows/test_sign_ins.py"
FORECAST = "tests/workflows/reads/test_forecast.py"
POINTS = "tests/workflows/maintenance/test_summary_points.py"
CHANGES = "tests/contracts/test_registrations.py"

MUTANTS = [
    Mutant(
        name="cookie that scripts can read",
        incident="One script in a page takes a curator's session away with it.",
        file="service/api/auth.py",
        find='token, path="/", secure=name == COOKIE, httponly=True',
        put='token, path="/", secure=name == COOKIE, httponly=False',
        killed_by=f"{CREDENTIALS}::test_the_cookie_is_for_this_origin_and_no_script",
    ),
    Mutant(
        name="form of another site",
        incident="A page elsewhere erases a person with the curator's cookie.",
        file="service/api/auth.py",
        find="if request.method not in _SAFE and REQUEST_HEADER not in request.headers:",
        put="if request.method in _SAFE and REQUEST_HEADER in request.headers and False:",
        killed_by=f"{CREDENTIALS}::test_a_request_that_another_site_may_have_caused_is_refused",
    ),
    Mutant(
        name="sign-in without an end",
        incident="A cookie taken from a laptop works for as long as it is used.",
        file="service/workflows/sign_ins.py",
        find="now < min(sign_in.expires_at, sign_in.began_at + LONGEST)",
        put="now < found.expires_at",
        killed_by=f"{SIGN_INS}::test_a_sign_in_ends_after_half_a_day_however_it_is_used",
    ),
    Mutant(
        name="sign-out that is remembered",
        incident="After a sign-out the cookie opens the pages for another second.",
        file="service/workflows/sign_ins.py",
        find="        self._remembered.pop(token_hash, None)\n",
        put="",
        killed_by=f"{SIGN_INS}::test_a_sign_in_is_remembered_for_a_second_and_ends_at_once_with_a_sign_out",
    ),
    Mutant(
        name="sign-in that outlives its key",
        incident="A revoked curator stays signed in.",
        file="service/workflows/principals.py",
        find="if record is not None and self._is_good(record, claim, now):",
        put="if record is not None:",
        killed_by=f"{SIGN_INS}::test_a_revoked_key_ends_its_sign_ins_at_once",
    ),
    Mutant(
        name="forecast one query too far",
        incident="The cliff comes one query before the curator expects it.",
        file="service/workflows/reads/forecast.py",
        find='side="right"',
        put='side="left"',
        killed_by=f"{FORECAST}::test_the_curve_is_what_happens",
    ),
    Mutant(
        name="forecast that forgets pauses",
        incident="Paused people count as active, and the cliff seems farther than it is.",
        file="service/workflows/reads/forecast.py",
        find="np.where((taken.paused | taken.dropped)[slots], 0, payable // np.maximum(units, 1))",
        put="payable // np.maximum(units, 1)",
        killed_by=f"{FORECAST}::test_the_curve_is_what_happens",
    ),
    Mutant(
        name="alarm that rings for ever",
        incident="The log repeats one alarm every ten seconds until nobody reads it.",
        file="service/workflows/maintenance/summary_points.py",
        find="if alarm is None or alarm.rang_seq is not None or not",
        put="if alarm is None or not",
        killed_by=f"{POINTS}::test_the_alarm_rings_once",
    ),
    Mutant(
        name="summary of another position",
        incident="The dashboard shows budgets from before the last query as those of now.",
        file="service/workflows/overview.py",
        find="if held is not None and held.place == place:",
        put="if held is not None:",
        killed_by="tests/workflows/reads/test_budget_summary.py"
        "::test_a_summary_of_this_position_is_taken_from_the_cache_and_of_no_other",
    ),
    Mutant(
        name="extension without a new epoch",
        incident="A process goes on with the tables of before, and stores codes that mean something else now.",
        file="service/workflows/registration_changes.py",
        find='transaction.journal("extend", detail, epoch=epoch)\n            state.after_commit(state.invalidate_all)',
        put='transaction.journal("extend", detail)',
        killed_by=f"{CHANGES}::test_what_was_asked_before_an_extension_is_kept_and_what_was_added_can_be_asked",
    ),
    Mutant(
        name="archived dataset that takes rows",
        incident="A dataset said to be closed keeps growing.",
        file="service/workflows/registration_changes.py",
        find="            transaction.set_registration(archived)\n",
        put="",
        killed_by=f"{CHANGES}::test_an_archived_dataset_keeps_its_ledger_and_takes_nothing",
    ),
    Mutant(
        name="own record read with all others",
        incident="An individual learns from the time of its own page how many people there are, one by one.",
        file="service/store/postgres/snapshot.py",
        find="(of.size == 1 or RUN_SLOTS * runs_in(of)",
        put="(RUN_SLOTS * runs_in(of)",
        killed_by="tests/leaks/test_statements.py::test_one_person_changes_no_statement[present]",
    ),
]
