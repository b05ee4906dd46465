"""A column that is not as declared is told, and stored only where it is accepted by name."""

import pytest

from service.ledger.model.errors import InvalidRequest
from tests.factories import open_replica, register
from tests.workflows.sent_uploads import send, visited


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("country", "no ", "3 of 40 values are no declared category and would be NULL, 3 of them 'NO' but for case"),
        ("country", "Norge", "3 of 40 values are no declared category and would be NULL"),
        ("age", "32000", "3 of 40 values are outside 0 to 120 and would be moved to the nearer bound"),
    ],
)
def test_a_column_that_is_not_as_declared_is_stored_only_where_it_is_accepted(
    column: str, value: str, words: str
) -> None:
    """More than a twentieth of its values: a dry run warns, and an upload is refused until the column is named."""
    values = {"country": ["NO"] * 40, "age": ["30"] * 40}
    values[column][:3] = [value] * 3
    listed = zip(values["country"], values["age"], strict=True)
    rows = "person_id,country,age,spend\n" + "".join(f"p{n},{c},{a},1\n" for n, (c, a) in enumerate(listed))
    with visited() as replica:
        (warning,) = send(replica, rows, table="people", is_dry_run=True).warnings
        assert warning.startswith(f"{column}: {words}")
        with pytest.raises(InvalidRequest) as refused:
            send(replica, rows, table="people")
        (error,) = refused.value.errors
        assert error.field == f"rows.{column}"
        assert error.message == f"{warning.removeprefix(f'{column}: ')}; to store them so, state accept={column}"
        assert replica.curators.dataset("survey").individuals == 0
        with pytest.raises(InvalidRequest, match="accept names a column that is not declared"):
            send(replica, rows, table="people", accept=("contry",))
        assert send(replica, rows, table="people", accept=(column,)).warnings == (warning,)


@pytest.mark.parametrize(("known", "is_stored"), [(20, True), (19, False)])
def test_a_twentieth_that_is_not_as_declared_is_counted(known: int, *, is_stored: bool) -> None:
    """One value of twenty is; missing values are not among them."""
    ages = [500, *[30] * (known - 1), *[""] * 9]
    rows = "person_id,country,age,spend\n" + "".join(f"p{n},NO,{age},1\n" for n, age in enumerate(ages))
    with visited() as replica:
        if is_stored:
            report = send(replica, rows, table="people")
            assert (report.clipped["age"], report.warnings) == (1, ())
            return
        with pytest.raises(InvalidRequest, match=f"1 of {known} values are outside 0 to 120"):
            send(replica, rows, table="people")


def test_times_without_a_zone_are_said_to_count_as_utc() -> None:
    """Once for an upload, by column."""
    columns = {"at": {"type": "datetime", "lower": "2026-01-01T00:00:00Z", "upper": "2026-12-31T00:00:00Z"}}
    with open_replica() as replica:
        register(replica, tables={"people": {"kind": "individuals", "key": "person_id", "columns": columns}})
        naive = send(replica, "person_id,at\na,2026-03-31 10:00\nb,2026-03-31 11:00\n", table="people")
        assert naive.warnings == ("times without a zone count as UTC: at",)
        assert send(replica, "person_id,at\nc,2026-03-31 10:00Z\n", table="people").warnings == ()
