"""Authentication: API keys are recognised, remembered for a second, and forgotten at once when revoked here."""

from datetime import datetime, timedelta
from decimal import Decimal
from uuid import UUID

import pytest

from service.ledger.model.api_keys import Pepper
from service.ledger.model.errors import InvalidRequest, NotFound
from service.ledger.model.rows import PrincipalFilter, PrincipalRecord
from service.ledger.model.views import Asker
from service.workflows.principals import EXPIRY_END, REMEMBERED_FOR, Principals
from service.workflows.sign_ins import SignIns
from tests.factories import CLOCK, ask, open_replica
from tests.memory.store import MemoryPrincipals, MemoryStore
from tests.workflows.surveys import surveyed


class CountedPrincipals(MemoryPrincipals):
    """A table that counts look-ups of principals."""

    looked_up = 0

    def find(self, principal_id: UUID) -> PrincipalRecord | None:
        self.looked_up += 1
        return super().find(principal_id)


class LookupCountingStore(MemoryStore):
    """A store with such a table."""

    def __init__(self) -> None:
        super().__init__()
        self.principals: CountedPrincipals = CountedPrincipals(self)

    @property
    def looked_up(self) -> int:
        """The number of look-ups."""
        return self.principals.looked_up


class World:
    """Principals over a counting store, and a clock that can be moved."""

    def __init__(self) -> None:
        self.store = LookupCountingStore()
        self.now = CLOCK
        self.principals = Principals(store=self.store, pepper=Pepper(bytes(32)), clock=lambda: self.now)
        self.sign_ins = SignIns(
            store=self.store, principals=self.principals, pepper=Pepper(bytes(32)), clock=lambda: self.now
        )


@pytest.fixture
def world() -> World:
    """Principals over a counting store."""
    return World()


def test_a_key_is_recognised_and_no_other(world: World) -> None:
    """A wrong secret, an unknown id and a malformed key all give None."""
    principal, key = world.principals.create(role="analyst", name="ana")
    assert world.principals.authenticate_all([key])[0] == principal
    for wrong in (key[:-1], key + "x", "sparing_" + "0" * 32 + "_x", "sparing__", "", "bearer", key.replace("_", "-")):
        assert world.principals.authenticate_all([wrong])[0] is None
        assert world.principals.remembered(wrong) is None


def test_a_recognised_key_is_remembered_for_a_moment_only(world: World) -> None:
    """Within a second the database is not asked; later, and before the first time, memory gives None."""
    principal, key = world.principals.create(role="analyst", name="ana")
    assert world.principals.remembered(key) is None
    world.principals.authenticate_all([key])[0]
    before = world.store.looked_up
    assert world.principals.remembered(key) == principal
    assert world.principals.remembered(key[:-1]) is None
    world.now += REMEMBERED_FOR
    assert world.principals.remembered(key) is None
    world.now -= REMEMBERED_FOR + timedelta(seconds=1)
    assert world.principals.remembered(key) is None
    assert world.store.looked_up == before


def test_a_key_revoked_here_stops_at_once(world: World) -> None:
    """Revoking forgets the key; revoking it again raises NotFound."""
    principal, key = world.principals.create(role="analyst", name="ana")
    world.principals.authenticate_all([key])[0]
    world.principals.revoke(principal.id)
    assert world.principals.remembered(key) is None
    assert world.principals.authenticate_all([key])[0] is None
    with pytest.raises(NotFound):
        world.principals.revoke(principal.id)


@pytest.mark.parametrize(
    ("field", "wish"),
    [
        ("name", {"role": "analyst", "name": ""}),
        ("name", {"role": "analyst", "name": "a\nb"}),
        ("individual", {"role": "individual", "name": "i", "dataset": "d"}),
        ("individual", {"role": "analyst", "name": "a", "individual": "i"}),
        ("dataset", {"role": "individual", "name": "i", "individual": "i"}),
        ("dataset", {"role": "analyst", "name": "a", "dataset": "nothing"}),
        ("allowance_rho", {"role": "curator", "name": "c", "allowance_rho": 1}),
        ("allowance_rho", {"role": "analyst", "name": "a", "allowance_rho": -1}),
    ],
)
def test_a_principal_that_makes_no_sense_names_the_field(world: World, field: str, wish: dict[str, object]) -> None:
    """No principal is created."""
    with pytest.raises(InvalidRequest) as refusal:
        world.principals.create(**wish)  # type: ignore[arg-type]  # that is the point
    assert refusal.value.errors[0].field == field
    assert world.principals.listed(cursor=None, limit=10).items == ()


def test_an_expired_key_is_unknown_also_where_it_is_remembered(world: World) -> None:
    """From the instant of the expiry on; before it the key works."""
    _, key = world.principals.create(role="analyst", name="ana", expires_at=CLOCK + REMEMBERED_FOR / 2)
    assert world.principals.authenticate_all([key])[0] is not None
    assert world.principals.remembered(key) is not None
    world.now = CLOCK + REMEMBERED_FOR / 2
    assert world.principals.remembered(key) is None
    assert world.principals.authenticate_all([key])[0] is None


def test_a_replaced_key_ends_the_old_one_and_its_sign_ins(world: World) -> None:
    """At once in this process; the new key is the same principal's."""
    principal, key = world.principals.create(role="curator", name="cy")
    token = world.sign_ins.begin(principal)
    assert world.sign_ins.authenticate_all([token])[0] == principal
    same, new = world.principals.replace_key(principal.id)
    assert (same.id, same) == (principal.id, world.principals.authenticate_all([new])[0])
    assert world.principals.remembered(key) is None
    assert world.principals.authenticate_all([key])[0] is None
    assert world.sign_ins.remembered(token) is None
    assert world.sign_ins.authenticate_all([token])[0] is None


def test_changes_take_effect_on_the_next_request(world: World) -> None:
    """Only what is named changes; a revoked or unknown principal cannot be changed; bad facts name their field."""
    principal, key = world.principals.create(role="analyst", name="ana", allowance_rho=Decimal(1), purpose="health")
    row = world.principals.change(principal.id, {"allowance_rho": Decimal(2), "organisation": "Institute"})
    assert (row.allowance_rho, row.organisation, row.purpose, row.name) == ("2", "Institute", "health", "ana")
    found = world.principals.authenticate_all([key])[0]
    assert found is not None
    assert found.allowance_units == 2 << 40
    assert world.principals.change(principal.id, {"allowance_rho": None, "purpose": None}).allowance_rho is None
    for field, wrong in (("name", ""), ("purpose", "x" * 201), ("organisation", "a\nb"), ("expires_at", CLOCK)):
        with pytest.raises(InvalidRequest) as refused:
            world.principals.change(principal.id, {field: wrong})
        assert refused.value.errors[0].field == field
    world.principals.revoke(principal.id)
    for gone in (principal.id, UUID(int=1)):
        with pytest.raises(NotFound):
            world.principals.change(gone, {"name": "eve"})
    with pytest.raises(NotFound):
        world.principals.replace_key(principal.id)


def test_many_individuals_get_keys_or_none_does() -> None:
    """A key for each; an absent or repeated individual refuses all and is named."""
    with surveyed(people=[(f"p{n}", "NO", 40, 10) for n in range(5)]) as replica:
        made = replica.principals.create_individuals("survey", ["p1", "p3"])
        assert [individual for individual, _ in made] == ["p1", "p3"]
        holders = [replica.principals.authenticate_all([key])[0] for _, key in made]
        assert [holder and (holder.role, holder.dataset, holder.individual) for holder in holders] == [
            ("individual", "survey", "p1"),
            ("individual", "survey", "p3"),
        ]
        before = replica.principals.listed(cursor=None, limit=100).items
        for wrong, told in ((["p1", "eve", "zed"], "2 are not in the dataset"), (["p2", "p2"], "1 are named twice")):
            with pytest.raises(InvalidRequest, match=told):
                replica.principals.create_individuals("survey", wrong)
        with pytest.raises(InvalidRequest):
            replica.principals.create_individuals("survey", [])
        assert replica.principals.listed(cursor=None, limit=100).items == before


def test_a_receipt_says_for_whom_a_query_was_asked_and_not_its_analysts_name() -> None:
    """It has the words by which the curator describes the analyst now."""
    with surveyed(people=[("ann", "NO", 40, 10)]) as replica:
        who, _ = replica.principals.create(role="analyst", name="secret name", organisation="Institute")
        ask(replica, who, "a")
        own, _ = replica.principals.create(role="individual", name="ann", dataset="survey", individual="ann")
        (receipt,) = replica.individuals.receipts(own, cursor=None, limit=9).items
        assert receipt.asker == Asker(organisation="Institute", purpose=None)
        assert "secret name" not in repr(receipt)
        replica.principals.change(who.id, {"purpose": "health"})
        (receipt,) = replica.curators.receipts("survey", "ann", cursor=None, limit=9).items
        assert receipt.asker == Asker(organisation="Institute", purpose="health")


def test_the_analysts_of_a_dataset_are_listed_with_their_worst_cases() -> None:
    """Those bound to another dataset are not."""
    with surveyed(people=[("ann", "NO", 40, 10)]) as replica:
        asking, _ = replica.principals.create(role="analyst", name="ana", dataset="survey", allowance_rho=Decimal(1))
        replica.principals.create(role="analyst", name="bo")
        replica.principals.create(role="auditor", name="cy")
        ask(replica, asking, "a")
        rows = replica.principals.analysts_of("survey")
        assert [(row.name, row.allowance_rho, Decimal(row.worst_case_spent_rho) > 0) for row in rows] == [
            ("ana", "1", True),
            ("bo", None, False),
        ]
        with pytest.raises(NotFound):
            replica.principals.analysts_of("nowhere")


def test_a_search_of_principals_goes_on_behind_pages_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each page looks at so many principals, matching or not."""
    monkeypatch.setattr("service.workflows.principals.SEARCHED_MAX", 2)
    only = PrincipalFilter(words=("c",))
    with open_replica(MemoryStore()) as replica:
        for name in "abcde":
            replica.principals.create(role="auditor", name=name)
        pages = [replica.principals.listed(cursor=None, limit=9, only=only)]
        while pages[-1].next is not None:
            pages.append(replica.principals.listed(cursor=pages[-1].next, limit=9, only=only))
    assert len(pages) == 3
    assert [row.name for page in pages for row in page.items] == ["c"]


@pytest.mark.parametrize(
    ("expires_at", "fault"),
    [
        (CLOCK, "lies in the past"),
        (EXPIRY_END, "must lie before the year 9999"),
        (datetime.fromisoformat("9999-12-31T23:59:59-14:00"), "must lie before the year 9999"),
    ],
)
def test_a_key_ends_in_a_year_that_every_zone_can_write(world: World, expires_at: datetime, fault: str) -> None:
    """A date that is of the year 10000 in the database's zone could be stored, and never read again."""
    with pytest.raises(InvalidRequest) as refused:
        world.principals.create(role="auditor", name="eve", expires_at=expires_at)
    assert [(error.field, error.message) for error in refused.value.errors] == [("expires_at", fault)]
    assert world.store.principals.listed(after=None, limit=1) == []
