"""Sign-ins by an identity provider: the attempt, the role by claim, and the principal that a person becomes."""

import io
from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from service.workflows.model.api_keys import Pepper
from service.workflows.model.errors import InvalidRequest
from service.workflows.model.rows import NO_KEY
from service.workflows.model.views import Principal
from service.workflows.ports.store import StoreUnavailable
from service.workflows.principals import NAME_MAX
from service.workflows.provider_sign_ins import (
    ATTEMPT_FOR,
    AttemptExpired,
    ClaimRules,
    Grant,
    NoRole,
    ProviderSignIns,
    claim_of,
)
from tests.api.world import World, build_world
from tests.factories import CLOCK

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
    """The dataset `care` with `ada` and others, and a provider."""

    def __init__(self) -> None:
        self.world: World = build_world()
        self.told, self.replica = Told(), self.world.replica
        self.replica.admit_by(self.told, RULES)
        assert self.replica.provider_sign_ins is not None
        self.provider: ProviderSignIns = self.replica.provider_sign_ins

    def signed_in(self, **said: Any) -> Principal:
        """The principal of a person of whom the provider says so."""
        self.told.said |= said
        _, attempt = self.provider.begin()
        return self.provider.complete(attempt, self.told.asked[-1][0], "code")


@pytest.fixture
def scene() -> Scene:
    """A replica of its own."""
    return Scene()


def test_a_person_is_the_same_principal_each_time(scene: Scene) -> None:
    """With the bounds of the grant, and no key; another subject is another principal."""
    first = scene.signed_in()
    assert (first.role, first.name, first.dataset) == ("analyst", "Ann", "care")
    assert first.allowance_units == 2**39
    record = scene.world.store.principals.find(first.id)
    assert record is not None
    assert (record.key_hash, record.organisation, record.purpose) == (NO_KEY, "Uni", "Study")
    assert scene.signed_in(name="Renamed") == first
    assert scene.signed_in(sub="s-2").id != first.id


def test_nothing_of_the_subject_is_kept(scene: Scene) -> None:
    """The id does not tell it, nor does the record."""
    made = scene.signed_in(sub="ann@town.example", name=None)
    assert made.name == "ann@town.example"  # without a name there is nothing else to list
    named = scene.signed_in(sub="bob@town.example", name="Bob")
    assert "town.example" not in repr(scene.world.store.principals.find(named.id))


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
    before = len(scene.world.store.principal_records)
    with pytest.raises(NoRole):
        scene.signed_in(**said)
    assert len(scene.world.store.principal_records) == before


def test_an_individual_is_known_by_a_claim_and_by_nothing_else(scene: Scene) -> None:
    """Its name is its key; a claimed name is not taken."""
    ada = scene.signed_in(realm={"roles": ["patients"]}, patient="ada", name="The Curator")
    assert (ada.role, ada.dataset, ada.individual, ada.name) == ("individual", "care", "ada", "ada")
    assert scene.signed_in(patient="ed").individual == "ed"


def test_another_role_is_another_principal(scene: Scene) -> None:
    """Records of the first stay true; with the old role it is the old principal again."""
    first = scene.signed_in()
    second = scene.signed_in(realm={"roles": ["audit"]})
    assert (first.id != second.id, first.role, second.role) == (True, "analyst", "auditor")
    assert scene.signed_in(realm={"roles": ["research"]}) == first


def test_a_revoked_principal_stays_revoked(scene: Scene) -> None:
    """Against the word of the provider; its sign-ins have ended."""
    made = scene.signed_in()
    token = scene.replica.sign_ins.begin(made)
    assert scene.replica.sign_ins.authenticate(token) == made
    scene.replica.principals.revoke(made.id)
    assert scene.replica.sign_ins.authenticate(token) is None
    with pytest.raises(NoRole):
        scene.signed_in()


def test_an_erased_individual_is_refused_until_it_is_there_again(scene: Scene) -> None:
    """Then by another principal; of the first only a tombstone is left."""
    patient = {"realm": {"roles": ["patients"]}, "patient": "ada"}
    first = scene.signed_in(**patient)
    scene.replica.curators.erase_individual("care", "ada")
    with pytest.raises(NoRole):
        scene.signed_in(**patient)
    scene.replica.curators.append_rows("care", "people", "text/csv", io.BytesIO(b"person_id,country,age\nada,NO,41\n"))
    second = scene.signed_in(**patient)
    assert (second.id != first.id, second.individual) == (True, "ada")
    assert scene.signed_in(**patient) == second


def test_a_principal_of_the_provider_has_no_key(scene: Scene) -> None:
    """None opens it, and none is handed out for it."""
    made = scene.signed_in()
    for secret in ("", "x"):
        assert scene.replica.principals.authenticate(f"sparing_{made.id.hex}_{secret}") is None
    with pytest.raises(InvalidRequest, match="no key"):
        scene.replica.principals.replace_key(made.id)


def test_without_the_provider_its_sign_ins_end(scene: Scene) -> None:
    """A start without its settings knows no principal without a key."""
    token = scene.replica.sign_ins.begin(scene.signed_in())
    assert scene.replica.sign_ins.authenticate(token) is not None
    scene.replica.principals.has_provider = False
    assert scene.replica.sign_ins.authenticate(token) is None
    assert scene.replica.sign_ins.standing_all([token]) == [None]


class Clocked:
    """An attempt, and a clock that can be moved; another pepper is another service."""

    def __init__(self, scene: Scene) -> None:
        self.now, self.scene = CLOCK, scene

    def provider(self, secret: bytes = bytes(32)) -> ProviderSignIns:
        replica = self.scene.replica
        return ProviderSignIns(
            self.scene.told,
            RULES,
            store=self.scene.world.store,
            principals=replica.principals,
            pepper=Pepper(secret),
            clock=lambda: self.now,
        )


def test_an_answer_belongs_to_its_attempt_for_ten_minutes(scene: Scene) -> None:
    """Any process with the pepper takes it; another state, attempt, time or pepper does not fit."""
    clocked = Clocked(scene)
    _, attempt = clocked.provider().begin()
    state, nonce, verifier = scene.told.asked[-1]
    assert len({state, nonce, verifier}) == 3
    assert not any(each in attempt for each in (state, nonce, verifier))
    assert 43 <= len(verifier) <= 128  # RFC 7636
    assert clocked.provider().owns(attempt, state)
    begun, _, drawn = attempt.partition(".")
    for wrong in ("", ".", drawn, f"{int(begun) + 1}.{drawn}", f"{attempt}x", "9" * 12 + ".x", "²." + drawn, "x" * 200):
        assert not clocked.provider().owns(wrong, state)
    for wrong in ("", state[:-1], "ø", nonce):
        assert not clocked.provider().owns(attempt, wrong)
    assert not clocked.provider(b"\1" * 32).owns(attempt, state)
    clocked.now += ATTEMPT_FOR - INSTANT
    assert clocked.provider().owns(attempt, state)
    clocked.now += INSTANT
    assert not clocked.provider().owns(attempt, state)
    with pytest.raises(AttemptExpired):
        clocked.provider().complete(attempt, state, "code")
    assert clocked.provider().begin()[1] != attempt


def test_an_attempt_is_redeemed_once(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """For as long as it could come back; a crowd makes the oldest forgotten, and no list grows."""
    monkeypatch.setattr("service.workflows.provider_sign_ins.RETURNED_MAX", 2)
    clocked = Clocked(scene)
    provider = clocked.provider()
    attempts = [(provider.begin()[1], scene.told.asked[-1][0]) for _ in range(3)]
    assert not provider.redeem(attempts[0][0], "junk")
    assert [provider.redeem(*attempts[0]) for _ in range(3)] == [True, False, False]
    assert [provider.redeem(*each) for each in attempts[1:]] == [True, True]
    assert [provider.redeem(*attempts[n]) for n in (2, 0)] == [False, True]  # the oldest was forgotten
    clocked.now += ATTEMPT_FOR
    assert not provider.redeem(*attempts[2])


def test_two_processes_may_make_the_same_principal_at_once(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """The slower one takes what is there; a database that is away is an error."""
    made = scene.signed_in()
    record = scene.world.store.principal_records.pop(made.id)

    def lose(_: object) -> None:
        scene.world.store.principal_records[record.id] = record
        raise StoreUnavailable("UniqueViolation")

    monkeypatch.setattr(scene.replica.principals, "introduce", lose)
    assert scene.signed_in() == made
    del scene.world.store.principal_records[made.id]

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
