"""The bounds of an upload: rows, bytes once decoded and bytes of keys, each refused before it is exceeded."""

import pytest

from service.engine.ingest import RowsProblem, upload_size
from service.engine.ingest.upload_size import UploadBounds, UploadSize
from tests.engine.ingest.uploads import NDJSON, PEOPLE, VISITS, csv, ndjson, read_within, with_limits

ROW_BYTES = {"visits": 2 * (4 + 2) + 72, "people": 2 * (4 + 1 + 1 + 8 + 1) + 72, "limits": 2 * (4 + 8) + 72}
STEADY_BYTES = 2**26


@pytest.mark.parametrize(("table", "name"), [(VISITS, "visits"), (PEOPLE, "people"), (with_limits(), "limits")])
def test_rows_are_admitted_up_to_their_memory_and_no_further(table: object, name: str) -> None:
    """Announced, before anything is decoded, and kept, with the bytes of their keys."""
    rows = 1000
    bounds = UploadBounds(memory_bytes=STEADY_BYTES + rows * ROW_BYTES[name] + 2 * 500)
    size = UploadSize(table, bounds)  # type: ignore[arg-type]
    size.announce(rows)
    size.keep(rows - 1, 500)
    size.keep(1, 0)
    with pytest.raises(RowsProblem, match="1001 rows or more, with keys of 500 bytes so far, need"):
        size.announce(1)
    with pytest.raises(RowsProblem, match="split it"):
        size.keep(0, 1)


def test_decoded_bytes_add_up() -> None:
    """Over all pieces; what a file says of itself counts before it is decoded."""
    size = UploadSize(VISITS, UploadBounds(decoded_bytes=100))
    size.decode(60)
    size.announce(1, 40)
    with pytest.raises(RowsProblem, match="101 bytes or more once decoded, and an upload may take 100"):
        size.announce(1, 41)
    with pytest.raises(RowsProblem, match="once decoded"):
        size.decode(41)


def test_the_keys_fit_in_one_array(monkeypatch: pytest.MonkeyPatch) -> None:
    """However much memory there is."""
    monkeypatch.setattr(upload_size, "KEYS_BYTES_MAX", 10)
    size = UploadSize(VISITS, UploadBounds(memory_bytes=2**40))
    size.keep(2, 10)
    with pytest.raises(RowsProblem, match="the keys take more than 10 bytes"):
        size.keep(1, 1)


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (csv("a,1", "b,2", "c,3", header="id,item"), "text/csv"),
        (ndjson(("a", 1), ("b", 2), names=("id", "item")), NDJSON),
    ],
)
def test_text_is_bounded_by_its_rows(body: bytes, content_type: str) -> None:
    """Row by row as it is read."""
    with pytest.raises(RowsProblem, match="rows or more"):
        read_within(body, content_type, VISITS, UploadBounds(memory_bytes=STEADY_BYTES + ROW_BYTES["visits"]))
