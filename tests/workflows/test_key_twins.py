"""Keys that differ in form alone are individuals of their own, of which the curator is told at the upload."""

import io
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from service.ledger.model.errors import InvalidRequest, NotFound
from service.ledger.model.journal import UploadRequest
from service.ledger.model.views import UploadReport
from service.query.keys import Key, KeyComparison
from service.workflows.key_twins import ROWS_NAMED_MAX
from service.workflows.replica import Replica
from tests.factories import open_replica, register
from tests.memory.store import MemoryStore

TWINS: Final = [
    ("7", "007"),
    ("Ada@x.org", "ada@x.org"),
    ("Jos\u00e9", "Jose\u0301"),
    ("\ufeffann", "ann"),
    ("100000", "1e+05"),
    ("6f9619ff-8b86-d011-b42d-00cf4fc964ff", "6F9619FF-8B86-D011-B42D-00CF4FC964FF"),
]
NAME: Final = "survey"
DIGIT: Final = {"type": "integer", "lower": 0, "upper": 9}


@dataclass
class Uploads:
    """Uploads to one dataset."""

    replica: Replica
    keys: KeyComparison = "exact"
    unknown: str = "create"
    told: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        tables: dict[str, Any] = {
            "people": {"kind": "individuals", "key": "id", "columns": {"age": DIGIT}},
            "visits": {"kind": "events", "key": "id", "unknown_individuals": self.unknown, "columns": {"day": DIGIT}},
        }
        register(self.replica, NAME, tables=tables, keys=self.keys)

    def send(self, table: str, *keys: str, **options: Any) -> UploadReport:
        """Send a row for each key; the words on twins are kept in `told`."""
        column = {"people": "age", "visits": "day"}[table]
        body = "\n".join([f"id,{column}", *(f"{key},3" for key in keys), ""]).encode()
        request = UploadRequest(table=table, content_type="text/csv", **options)
        report = self.replica.curators.upload(NAME, request, io.BytesIO(body)).report
        self.told = [each for each in report.warnings if "from another individual's" in each]
        return report

    def count(self) -> int:
        """How many individuals there are."""
        return self.replica.curators.dataset(NAME).individuals


@pytest.mark.parametrize(("one", "other"), TWINS)
def test_twins_of_one_upload_are_told_by_their_rows(one: str, other: str) -> None:
    """In both tables, without their keys."""
    for table in ("people", "visits"):
        with open_replica() as replica:
            uploads = Uploads(replica)
            uploads.send(table, one, "zoe", other)
            (words,) = uploads.told
            assert words.startswith("2 keys differ from another individual's only in case")
            assert "(rows 1, 3)" in words
            assert one not in words
            assert uploads.count() == 3


@pytest.mark.parametrize(("one", "other"), [*TWINS, *((b, a) for a, b in TWINS)])
def test_a_twin_of_an_earlier_upload_is_told(one: str, other: str) -> None:
    """Whichever came first, and from whichever table."""
    for first, second in (("people", "people"), ("people", "visits"), ("visits", "people")):
        with open_replica() as replica:
            uploads = Uploads(replica)
            uploads.send(first, one)
            assert uploads.told == []
            uploads.send(second, "zoe", "zoe" if second == "visits" else "yan", other)
            (words,) = uploads.told
            assert words.startswith("1 key differs")
            assert "(row 3)" in words


def test_a_known_key_is_told_no_more() -> None:
    """Its twin was told when it joined."""
    with open_replica() as replica:
        uploads = Uploads(replica)
        uploads.send("people", "7", "007")
        uploads.send("visits", "7", "007")
        assert uploads.told == []


def test_a_twin_among_dropped_rows_is_told_and_among_refused_rows_named() -> None:
    """The rows of a person whose key is written otherwise are not lost in silence."""
    with open_replica() as replica:
        uploads = Uploads(replica, unknown="reject")
        uploads.send("people", "007", "8")
        report = uploads.send("visits", "9", "8", "7", "7", unknown_individuals="drop")
        assert (report.rows, report.rows_unknown) == (1, 3)
        assert ["(row 3)" in words for words in uploads.told] == [True]
        with pytest.raises(InvalidRequest) as refused:
            uploads.send("visits", "9", "7")
        messages = [error.message for error in refused.value.errors]
        assert ["another individual's key differs" in message for message in messages] == [False, True]


def test_an_erased_individual_has_no_twins() -> None:
    """Its key and its plain form are gone."""
    with open_replica() as replica:
        uploads = Uploads(replica)
        uploads.send("people", "Ada")
        replica.curators.erase_individual(NAME, "Ada")
        uploads.send("people", "ada")
        assert uploads.told == []
        uploads.send("people", "Ada")
        assert len(uploads.told) == 1


def test_a_dry_run_tells_of_twins() -> None:
    """And keeps nothing."""
    with open_replica() as replica:
        uploads = Uploads(replica)
        uploads.send("people", "Ada", "ada", is_dry_run=True)
        assert len(uploads.told) == 1
        assert uploads.count() == 0


def test_of_many_twins_some_rows_are_named() -> None:
    """The report stays short."""
    with open_replica() as replica:
        uploads = Uploads(replica)
        uploads.send("people", *(f"{zero}{n}" for n in range(1, 21) for zero in ("", "0")))
        (words,) = uploads.told
        assert words.startswith("40 keys differ")
        assert f"{ROWS_NAMED_MAX}, ...)" in words


@pytest.mark.parametrize(
    ("keys", "forms"),
    [
        ("caseless", ("Ada@X.org", "ADA@x.ORG", "ada@x.org")),
        ("number", ("007", "7.0", "+7")),
        ("uuid", ("{6F9619FF-8B86-D011-B42D-00CF4FC964FF}", "6f9619ff8b86d011b42d00cf4fc964ff")),
    ],
)
def test_the_forms_of_one_key_are_one_individual(keys: KeyComparison, forms: tuple[str, ...]) -> None:
    """At uploads to both tables, and wherever a curator names it; once erased it keeps what it has spent."""
    store = MemoryStore()
    with open_replica(store) as replica:
        uploads, curators = Uploads(replica, keys=keys), replica.curators
        for form in forms:
            uploads.send("visits", form)
        with pytest.raises(InvalidRequest, match="is registered already"):
            uploads.send("people", forms[0])
        assert (uploads.count(), uploads.told) == (1, [])
        stored = {curators.account(NAME, form).key for form in forms}
        assert stored == {key for row in curators.budgets(NAME, cursor=None, limit=9).items for key in [row.key]}
        for form in forms:
            curators.correct(NAME, form, {"age": 4})
            assert curators.record(NAME, form) == curators.record(NAME, forms[0])
            assert curators.divergence(NAME, form) == curators.divergence(NAME, forms[0])
            assert curators.receipts(NAME, form, cursor=None, limit=9).items == ()
            principal, _ = replica.principals.create(role="individual", name="x", dataset=NAME, individual=form)
            assert {principal.individual} == stored
            ((key, _),) = replica.principals.create_individuals(NAME, [form])
            assert {key} == stored
        with pytest.raises(InvalidRequest, match="1 are named twice"):
            replica.principals.create_individuals(NAME, forms[:2])
        curators.erase_individual(NAME, forms[-1])
        assert uploads.count() == 0
        uploads.send("people", forms[0])
        assert curators.account(NAME, forms[1]).key in stored
        assert store.head(1).slots == 1


def test_a_text_that_can_be_no_key_is_nobody() -> None:
    """Wherever it is named."""
    with open_replica() as replica:
        uploads, curators = Uploads(replica, keys="number"), replica.curators
        uploads.send("people", "7")
        for ask in (curators.account, curators.record, curators.divergence, curators.erase_individual):
            with pytest.raises(NotFound):
                ask(NAME, "seven")
        with pytest.raises(NotFound):
            curators.correct(NAME, "seven", {"age": 1})
        with pytest.raises(InvalidRequest, match="no such individual"):
            replica.principals.create(role="individual", name="x", dataset=NAME, individual="seven")
        with pytest.raises(InvalidRequest, match="1 are not in the dataset, the first of them seven"):
            replica.principals.create_individuals(NAME, ["7", "seven"])


def test_a_person_is_in_one_fold_whatever_the_form_of_its_key() -> None:
    """Digests are those of keys as they are compared."""
    found = []
    ways: list[tuple[KeyComparison, str]] = [("caseless", "ADA"), ("exact", "ada")]
    for keys, form in ways:
        store = MemoryStore()
        with open_replica(store) as replica:
            Uploads(replica, keys=keys).send("people", form)
            with store.transaction(1, lock=False) as transaction:
                assert transaction.slots_of([Key("ada")]).tolist() == [0]
                found.append({name: codes.tolist() for name, codes in transaction.records("people")[1].items()})
    assert found[0] == found[1]
