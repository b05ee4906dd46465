"""The parts of a workflow's view that each reader gets."""

from dataclasses import fields
from uuid import uuid4

from service.ledger.model.views import (
    AuditedRow,
    CuratorDataset,
    CuratorDatasetRow,
    DatasetRow,
    LedgerRow,
    NewPrincipal,
    Principal,
    PublicDataset,
)
from service.workflows.principals import shown


def test_an_audited_row_lacks_the_counts_of_people_and_nothing_else() -> None:
    """A field added to the ledger has to be decided on here."""
    names = {each.name for each in fields(LedgerRow)} - {each.name for each in fields(AuditedRow)}
    assert names == {"charged", "left_out"}


def test_a_curators_dataset_is_the_public_part_and_the_counts() -> None:
    """A field added for curators has to be decided on here."""
    names = {each.name for each in fields(CuratorDataset)} - {each.name for each in fields(PublicDataset)}
    assert names == {"sequence", "individuals", "rows", "warnings"}
    listed = {each.name for each in fields(CuratorDatasetRow)} - {each.name for each in fields(DatasetRow)}
    assert listed == {"sequence", "individuals"}


def test_a_listed_dataset_has_the_names_of_its_tables_in_the_place_of_its_schema() -> None:
    """A schema may have a megabyte: every other public fact is listed."""
    assert {each.name for each in fields(PublicDataset)} ^ {each.name for each in fields(DatasetRow)} == {
        "tables",
        "table_names",
    }


def test_a_new_key_does_not_show_itself() -> None:
    """A log of the reply would otherwise hold it."""
    principal = Principal(id=uuid4(), role="analyst", name="x", dataset=None, individual=None, allowance_units=2**39)
    made = shown(NewPrincipal, principal, key="sparing_secret")
    assert made.allowance_rho == "0.5"
    assert "sparing_secret" not in repr(made)
