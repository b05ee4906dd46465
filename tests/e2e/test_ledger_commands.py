"""`sparing ledger rebuild-answer` and `prune` beside a running service, as docs/ledger.md tells them."""

from tests.e2e.homes import SurveyHome
from tests.e2e.http_calls import ask, client, spent_units
from tests.e2e.processes import refusal, said, served, sparing

REBUILD = ["ledger", "rebuild-answer", "--dataset", "survey", "--sequence", "1", "--no-reuse", "--key"]
PRUNE = ["ledger", "prune", "--dataset", "survey", "--before"]


def test_a_deleted_answer_is_put_back_and_a_ledger_pruned_while_the_service_runs(answered_home: SurveyHome) -> None:
    """A wrong key gets nothing; then the key replays the same bytes, no individual is charged, and all is sound.

    A bound that makes no sense is refused with the forms that it may have; the service goes on after a pruning.
    """
    home, curator_key, analyst_key = answered_home.path, answered_home.curator_key, answered_home.analyst_key
    with answered_home.owned() as owner:
        assert owner.execute("DELETE FROM answers WHERE idempotency_key = 'k1'").rowcount == 1

    with served(home) as running:
        before = spent_units(running.url, curator_key)
        found = sparing("ledger", "verify", home=home)
        assert found.returncode == 1
        assert found.stdout.endswith(", 1 findings\n")
        assert "survey: ledger row 1: the answer to it is missing from answers\n" in found.stderr
        wrong = refusal(sparing(*REBUILD, "k2", home=home))
        assert wrong == "sparing: key: ledger row 1 was not asked under this key\n"
        for done in ("is there again", "was there already"):
            right = said(sparing(*REBUILD, "k1", home=home))
            assert right == f"survey: the answer to ledger row 1 {done}; nothing was charged\n"
        assert ask(running.url, analyst_key, "k1").content == answered_home.answers[0]
        assert spent_units(running.url, curator_key) == before
        assert sparing("ledger", "verify", home=home).returncode == 0

        forms = "before must be a sequence, or a date or time such as 2026-01-31 or 2026-01-31T12:00"
        assert refusal(sparing(*PRUNE, "yesterday", home=home)) == f"sparing: {forms}\n"
        nothing = refusal(sparing(*PRUNE, "1999-12-31", home=home))
        assert nothing == "sparing: before: no checkpoint covers an entry that could be pruned\n"
        assert ask(running.url, analyst_key, "k4").status_code == 200
        pruned = sparing(*PRUNE, "3", home=home)
        told = "survey: pruned up to sequence 2; before, up to 0\n"
        assert (pruned.returncode, pruned.stdout, pruned.stderr) == (0, told, "")
        assert ask(running.url, analyst_key, "k5").status_code == 200
        assert ask(running.url, analyst_key, "k1").content == answered_home.answers[0]
        with client(running.url, curator_key) as curator:
            acts = curator.get("/v1/datasets/survey/acts").raise_for_status().json()["items"]
        assert [(act["act"], act["detail"]) for act in acts[:1]] == [("prune", {"seq": 2})]
        later = sparing(*PRUNE, "2199-01-01", home=home)
        assert later.stdout == "survey: pruned up to sequence 3; before, up to 2\n"
        assert sparing("ledger", "verify", home=home).returncode == 0
