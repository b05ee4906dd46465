"""Sign-ins by an identity provider: the attempt, the role by claim, and the principal that a person becomes."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from service.ledger.model.api_keys import Pepper
from service.ledger.model.errors import InvalidRequest, NotFound
from service.ledger.model.rows import NO_KEY, PrincipalRecord
from service.ledger.model.views import Principal
from service.ledger.ports.store import StoreUnavailable
from service.workflows.principals import NAME_MAX, REMEMBERED_FOR, Principals
from service.workflows.provider_sign_ins import (
    ATTEMPT_FOR,
    AttemptExpired,
    ClaimRules,
    Grant,
    NoRole,
    ProviderSignIns,
    claim_of,
)
from service.workflows.replica import Replica, ReplicaOptions
from service.workflows.sign_ins import SignIns
from tests.factories import CLOCK, ask, open_replica, register, upload
from tests.memory.store import MemoryStore

PEPPER = Pepper(bytes(32))

INSTANT = timedelta(seconds=1)
RULES = ClaimRules(
    title="the town",
    grants={
        "all": Grant(role="curator"),
        "care": Grant(role="curator", dataset="care"),
        "research": Grant(
            role="analyst", dataset="care", allowance_rho=Decimal("0.5"), organisation="Uni", purpose="Study"
        ),
        "audit": Grant(role="auditor"),
        "patients": Grant(role="individual", dataset="care"),
        "gone": Grant(role="analyst", dataset="gone"),
    },
    role_claim="realm.roles",
    name_claim="name",
    individual_claim="patient",
)


class Told:
    """A provider that says what it is told to say."""

    issuer = "https://id.example"

    def __init__(self) -> None:
        self.said: dict[str, Any] = {"sub": "s-1", "name": "Ann", "realm": {"roles": ["staff", "research"]}}
        self.asked: list[tuple[str, str, str]] = []

    def authorization_url(self, *, state: str, nonce: str, verifier: str) -> str:
        self.asked.append((state, nonce, verifier))
        return f"https://id.example/?state={state}"

    def claims(self, code: str, *, nonce: str, verifier: str) -> Mapping[str, object]:
        assert (code, nonce, verifier) == ("code", *self.asked[-1][1:])
        return self.said


class Scene:
    """The dataset `care` of Ada and Ed, a provider, and a clock that can be moved."""

    def __init__(self, store: MemoryStore) -> None:
        self.store, self.told, self.now = store, Told(), CLOCK

    def clock(self) -> datetime:
        return self.now

    def open(self, replica: Replica) -> None:
        """Begin to sign in by the provider."""
        self.replica = replica
        assert replica.provider_sign_ins is not None
        self.provider = replica.provider_sign_ins

    def admit_by(self, rules: ClaimRules) -> None:
        """Grant roles by these rules from now on, as a process with other settings does."""
        self.provider = self.another_process(rules=rules)

    def signed_in(self, **said: Any) -> Principal:
        """The principal of a person of whom the provider says so."""
        self.told.said |= said
        _, attempt = self.provider.begin()
        return self.provider.complete(attempt, self.told.asked[-1][0], "code")

    def record(self, principal: Principal) -> PrincipalRecord:
        """The stored record of a principal."""
        found = self.store.principals.find(principal.id)
        assert found is not None
        return found

    def another_process(self, secret: bytes = bytes(32), *, rules: ClaimRules = RULES) -> ProviderSignIns:
        """Sign-ins of another process of the service; another pepper is another service."""
        return ProviderSignIns(
            self.told,
            rules,
            store=self.store,
            principals=self.replica.principals,
            pepper=Pepper(secret),
            clock=self.clock,
        )


@pytest.fixture
def scene(store: MemoryStore) -> Iterator[Scene]:
    """A replica of its own."""
    made = Scene(store)
    with open_replica(store, clock=made.clock, options=ReplicaOptions(provider=(made.told, RULES))) as replica:
        register(replica, "care")
        upload(replica, "people", [("ada", "NO", 41, 0), ("ed", "SE", 30, 0)], "care")
        made.open(replica)
        yield made


def test_a_person_is_the_same_principal_each_time(scene: Scene) -> None:
    """With the bounds of the grant, and no key; another subject is another principal."""
    first = scene.signed_in()
    assert (first.role, first.name, first.dataset) == ("analyst", "Ann", "care")
    assert first.allowance_units == 2**39
    record = scene.record(first)
    assert (record.key_hash, record.organisation, record.purpose) == (NO_KEY, "Uni", "Study")
    assert scene.signed_in(name="Renamed") == first
    assert scene.signed_in(sub="s-2").id != first.id


def test_nothing_of_the_subject_is_kept(scene: Scene) -> None:
    """The id does not tell it, nor does the record."""
    made = scene.signed_in(sub="ann@town.example", name=None)
    assert made.name == "ann@town.example"  # without a name there is nothing else to list
    named = scene.signed_in(sub="bob@town.example", name="Bob")
    assert "town.example" not in repr(scene.store.principals.find(named.id))


@pytest.mark.parametrize(
    ("roles", "role", "dataset"),
    [
        (["all"], "curator", None),
        ("all", "curator", None),
        (["care"], "curator", "care"),
        (["research", "care"], "curator", "care"),  # the order is the settings'
        (["audit", "other"], "auditor", None),
    ],
)
def test_the_first_value_with_a_grant_counts(scene: Scene, roles: object, role: str, dataset: str | None) -> None:
    """In the order of the settings; a claim may be one text or several."""
    made = scene.signed_in(realm={"roles": roles})
    assert (made.role, made.dataset, made.individual) == (role, dataset, None)


@pytest.mark.parametrize(
    "said",
    [
        {"realm": {"roles": []}},
        {"realm": {"roles": ["staff"]}},
        {"realm": {"roles": {"all": True}}},
        {"realm": {"roles": None}},
        {"realm": {"roles": [["all"], 7, None]}},
        {"realm": {}},
        {"realm": "all"},
        {"realm": None},
        {"realm": {"roles": ["gone"]}},  # a dataset that is not there
        {"realm": {"roles": ["patients"]}},
        {"realm": {"roles": ["patients"]}, "patient": ""},
        {"realm": {"roles": ["patients"]}, "patient": "nobody"},
        {"realm": {"roles": ["patients"]}, "patient": ["ada"]},
        {"realm": {"roles": ["patients"]}, "patient": True},
        {"realm": {"roles": ["patients"]}, "patient": "ada\0"},
        {"realm": {"roles": ["patients"]}, "patient": "x" * 1001},
    ],
)
def test_without_a_role_nobody_signs_in(scene: Scene, said: dict[str, object]) -> None:
    """And no principal is made."""
    before = len(scene.store.principal_records)
    with pytest.raises(NoRole):
        scene.signed_in(**said)
    assert len(scene.store.principal_records) == before


def test_an_individual_is_known_by_a_claim_and_by_nothing_else(scene: Scene) -> None:
    """Its name is its key; a claimed name is not taken."""
    ada = scene.signed_in(realm={"roles": ["patients"]}, patient="ada", name="The Curator")
    assert (ada.role, ada.dataset, ada.individual, ada.name) == ("individual", "care", "ada", "ada")
    assert scene.signed_in(patient="ed").individual == "ed"


def test_another_role_changes_the_principal(scene: Scene) -> None:
    """It makes no second, whatever roles follow each other; with the old role it is as it was."""
    first = scene.signed_in(patient="ada")
    count = len(scene.store.principal_records)
    for role in ("audit", "patients", "all", "care"):
        now = scene.signed_in(realm={"roles": [role]})
        grant = RULES.grants[role]
        individual = "ada" if role == "patients" else None
        assert (now.id, now.binding) == (first.id, (grant.role, grant.dataset, individual))
        assert now.allowance_units is None
    assert scene.signed_in(realm={"roles": ["research"]}) == first
    assert len(scene.store.principal_records) == count


def test_a_claimed_key_is_compared_as_the_dataset_compares_keys(scene: Scene) -> None:
    """Its other form is no other binding; a text that can be no key is nobody's."""
    register(scene.replica, "numbered", keys="number")
    upload(scene.replica, "people", [("007", "NO", 41, 0)], "numbered")
    scene.admit_by(replace(RULES, grants={"patients": Grant(role="individual", dataset="numbered")}))
    first = scene.signed_in(realm={"roles": ["patients"]}, patient="07")
    assert first.individual == "7"
    assert scene.signed_in(patient=7) == first
    with pytest.raises(NoRole, match="is not there"):
        scene.signed_in(patient="seven")


def test_another_individual_changes_the_principal(scene: Scene) -> None:
    """A sign-in for the first is not good for the second."""
    ada = scene.signed_in(realm={"roles": ["patients"]}, patient="ada")
    token = scene.replica.sign_ins.begin(ada)
    ed = scene.signed_in(patient="ed")
    assert (ed.id, ed.individual, ed.name) == (ada.id, "ed", "ed")
    assert scene.replica.sign_ins.authenticate_all([token])[0] is None


def test_a_change_of_role_ends_the_sign_ins_of_the_former_one(scene: Scene) -> None:
    """In this process at once; with the same role they go on. None begins for the role that was."""
    first = scene.signed_in()
    token = scene.replica.sign_ins.begin(first)
    assert scene.replica.sign_ins.authenticate_all([token])[0] == first
    scene.signed_in()
    assert scene.replica.sign_ins.remembered(token) == first
    second = scene.signed_in(realm={"roles": ["audit"]})
    assert scene.replica.sign_ins.remembered(token) is None
    assert scene.replica.sign_ins.authenticate_all([token])[0] is None
    with pytest.raises(NotFound):
        scene.replica.sign_ins.begin(first)
    assert scene.replica.sign_ins.authenticate_all([scene.replica.sign_ins.begin(second)])[0] == second


def test_another_process_knows_the_former_role_for_a_second_at_most(scene: Scene) -> None:
    """It has recognised the sign-in a moment before the change."""
    principals = Principals(store=scene.store, pepper=PEPPER, clock=scene.clock, has_provider=True)
    other = SignIns(store=scene.store, principals=principals, pepper=PEPPER, clock=scene.clock)
    first = scene.signed_in()
    token = scene.replica.sign_ins.begin(first)
    assert other.authenticate_all([token])[0] == first
    scene.signed_in(realm={"roles": ["audit"]})
    assert other.standing_all([token]) == [None]
    scene.now += REMEMBERED_FOR
    assert (other.remembered(token), other.authenticate_all([token])[0]) == (None, None)


def test_a_role_without_its_bounds_changes_nothing(scene: Scene) -> None:
    """The person is refused, and keeps the role that it had with the sign-ins."""
    first = scene.signed_in()
    token = scene.replica.sign_ins.begin(first)
    for said in ({"realm": {"roles": ["gone"]}}, {"realm": {"roles": ["patients"]}, "patient": "nobody"}):
        with pytest.raises(NoRole):
            scene.signed_in(**said)
    assert scene.replica.sign_ins.authenticate_all([token])[0] == first


def test_what_a_curator_has_set_outlasts_a_change_of_role(scene: Scene) -> None:
    """An end, a lower allowance on another dataset, and the words in which individuals are told who asked."""
    end = datetime(2100, 1, 1, tzinfo=UTC)
    made = scene.signed_in()
    scene.replica.principals.change(made.id, {"expires_at": end, "allowance_rho": Decimal("0.25")})
    wide = {**RULES.grants, "research": Grant(role="analyst", allowance_rho=Decimal("0.5"), organisation="New")}
    scene.admit_by(replace(RULES, grants=wide))
    moved = scene.signed_in()
    assert (moved.binding, moved.allowance_units) == (("analyst", None, None), 2**38)
    scene.signed_in(realm={"roles": ["audit"]})
    record = scene.record(made)
    assert (record.expires_at, record.organisation, record.allowance_units) == (end, "New", None)


def test_a_revoked_principal_gets_no_other_role(scene: Scene) -> None:
    """A revocation is the person's: no role of the provider's goes around it."""
    made = scene.signed_in()
    scene.replica.principals.revoke(made.id)
    for role in ("all", "audit", "care", "research"):
        with pytest.raises(NoRole, match="revoked"):
            scene.signed_in(realm={"roles": [role]})
    record = scene.record(made)
    assert record.binding == made.binding


def test_a_revocation_that_comes_during_a_change_of_role_stands(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store changes no revoked principal, and the sign-in is refused."""
    made = scene.signed_in()
    rebind = scene.replica.principals.rebind

    def revoke_first(record: PrincipalRecord) -> bool:
        scene.replica.principals.revoke(made.id)
        return rebind(record)

    monkeypatch.setattr(scene.replica.principals, "rebind", revoke_first)
    with pytest.raises(NoRole):
        scene.signed_in(realm={"roles": ["all"]})


def test_an_allowance_is_not_renewed_by_a_change_of_role(scene: Scene) -> None:
    """The worst cases of the same person go on; its releases are shown on the dataset that it is bound to."""
    first = scene.signed_in()
    asked = ask(scene.replica, first, "k", "care")
    before = scene.replica.analysts.allowances(first)
    scene.signed_in(realm={"roles": ["all"]})
    again = scene.signed_in(realm={"roles": ["research"]})
    assert (Decimal(before[0].spent_rho) > 0, scene.replica.analysts.allowances(again)) == (True, before)
    page = scene.replica.analysts.releases(again, cursor=None, limit=10)
    assert [each.dataset for each in page.items] == ["care"]
    elsewhere = replace(again, dataset="town")
    assert scene.replica.analysts.releases(elsewhere, cursor=None, limit=10).items == ()
    assert scene.replica.analysts.release(again, page.items[0].id).body == asked.body
    with pytest.raises(NotFound):
        scene.replica.analysts.release(elsewhere, page.items[0].id)


def test_a_revoked_principal_stays_revoked(scene: Scene) -> None:
    """Against the word of the provider; its sign-ins have ended."""
    made = scene.signed_in()
    token = scene.replica.sign_ins.begin(made)
    assert scene.replica.sign_ins.authenticate_all([token])[0] == made
    scene.replica.principals.revoke(made.id)
    assert scene.replica.sign_ins.authenticate_all([token])[0] is None
    with pytest.raises(NoRole):
        scene.signed_in()


def test_an_erased_individual_is_refused_until_it_is_there_again(scene: Scene) -> None:
    """Then by another principal; of the first only a tombstone is left."""
    patient = {"realm": {"roles": ["patients"]}, "patient": "ada"}
    first = scene.signed_in(**patient)
    scene.replica.curators.erase_individual("care", "ada")
    with pytest.raises(NoRole):
        scene.signed_in(**patient)
    upload(scene.replica, "people", [("ada", "NO", 41, 0)], "care")
    second = scene.signed_in(**patient)
    assert (second.id != first.id, second.individual) == (True, "ada")
    assert scene.signed_in(**patient) == second


def test_a_principal_of_the_provider_has_no_key(scene: Scene) -> None:
    """No key opens it, and none is handed out for it."""
    made = scene.signed_in()
    for secret in ("", "x"):
        assert scene.replica.principals.authenticate_all([f"sparing_{made.id.hex}_{secret}"])[0] is None
    with pytest.raises(InvalidRequest, match="no key"):
        scene.replica.principals.replace_key(made.id)


def test_without_the_provider_its_sign_ins_end(scene: Scene) -> None:
    """A start without its settings knows no principal without a key."""
    token = scene.replica.sign_ins.begin(scene.signed_in())
    assert scene.replica.sign_ins.authenticate_all([token])[0] is not None
    with open_replica(scene.store, clock=scene.clock) as later:
        assert later.sign_ins.authenticate_all([token])[0] is None
        assert later.sign_ins.standing_all([token]) == [None]


def test_an_answer_belongs_to_its_attempt_for_ten_minutes(scene: Scene) -> None:
    """Any process with the pepper takes it; another state, attempt, time or pepper does not fit."""
    _, attempt = scene.another_process().begin()
    state, nonce, verifier = scene.told.asked[-1]
    assert len({state, nonce, verifier}) == 3
    assert not any(each in attempt for each in (state, nonce, verifier))
    assert 43 <= len(verifier) <= 128  # RFC 7636
    assert scene.another_process().owns(attempt, state)
    begun, _, drawn = attempt.partition(".")
    for wrong in ("", ".", drawn, f"{int(begun) + 1}.{drawn}", f"{attempt}x", "9" * 12 + ".x", "²." + drawn, "x" * 200):
        assert not scene.another_process().owns(wrong, state)
    for wrong in ("", state[:-1], "ø", nonce):
        assert not scene.another_process().owns(attempt, wrong)
    assert not scene.another_process(b"\1" * 32).owns(attempt, state)
    scene.now += ATTEMPT_FOR - INSTANT
    assert scene.another_process().owns(attempt, state)
    scene.now += INSTANT
    assert not scene.another_process().owns(attempt, state)
    with pytest.raises(AttemptExpired):
        scene.another_process().complete(attempt, state, "code")
    assert scene.another_process().begin()[1] != attempt


def test_an_attempt_is_redeemed_once(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """For as long as it could come back; a crowd makes the oldest forgotten, and no list grows."""
    monkeypatch.setattr("service.workflows.provider_sign_ins.RETURNED_MAX", 2)
    provider = scene.another_process()
    attempts = [(provider.begin()[1], scene.told.asked[-1][0]) for _ in range(3)]
    assert not provider.redeem(attempts[0][0], "junk")
    assert [provider.redeem(*attempts[0]) for _ in range(3)] == [True, False, False]
    assert [provider.redeem(*each) for each in attempts[1:]] == [True, True]
    assert [provider.redeem(*attempts[n]) for n in (2, 0)] == [False, True]  # the oldest was forgotten
    scene.now += ATTEMPT_FOR
    assert not provider.redeem(*attempts[2])


def test_two_processes_may_make_the_same_principal_at_once(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """The slower one takes what is there; a database that is away is an error."""
    made = scene.signed_in()
    record = scene.store.principal_records.pop(made.id)

    def lose(_: object) -> None:
        scene.store.principal_records[record.id] = record
        raise StoreUnavailable("UniqueViolation")

    monkeypatch.setattr(scene.replica.principals, "introduce", lose)
    assert scene.signed_in() == made
    del scene.store.principal_records[made.id]

    def fail(_: object) -> None:
        raise StoreUnavailable("away")

    monkeypatch.setattr(scene.replica.principals, "introduce", fail)
    with pytest.raises(StoreUnavailable):
        scene.signed_in()


@pytest.mark.parametrize(
    ("told", "name"),
    [
        ("Ann Ångström", "Ann Ångström"),
        (" \u202eAnn\n", "Ann"),
        ("erased", "s-1"),
        ("", "s-1"),
        (7, "s-1"),
        (None, "s-1"),
        ("x" * 500, "x" * NAME_MAX),
    ],
)
def test_a_name_is_printable_and_of_bounded_length(scene: Scene, told: object, name: str) -> None:
    """A subject stands in for one that is not."""
    assert scene.signed_in(name=told).name == name


def test_a_claim_is_found_by_its_name_or_its_path() -> None:
    """A name with points of its own goes first."""
    claims = {"https://town.example/roles": 1, "a": {"b": {"c": 2}}, "a.b": 3}
    assert [claim_of(claims, name) for name in ("https://town.example/roles", "a.b.c", "a.b", "a.x", "", "x")] == [
        1,
        2,
        3,
        None,
        None,
        None,
    ]
