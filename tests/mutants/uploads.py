"""Seeded bugs of uploads: keys, limits of rows, dry runs, packed bodies, and what data frames write."""

from tests.mutants.mutant import Mutant

KEYED = "tests/workflows/test_keyed_uploads.py"
UPLOADS = "tests/workflows/test_uploads.py"
LIMITS = "tests/workflows/test_uploads.py"
ROUTES = "tests/api/routes/test_curator.py::TestRows"

MUTANTS = [
    Mutant(
        name="upload keys looked up too early",
        incident="An upload times out, its repeat comes while the first still runs, and every row is stored twice.",
        file="service/workflows/uploads.py",
        find="        stored = _stored(transaction, address, digest)\n        if",
        put="        stored = None\n        if",
        killed_by=f"{KEYED}::test_requests_under_one_key_at_once_store_one_upload",
    ),
    Mutant(
        name="upload key without its bytes",
        incident="A corrected file is sent under the old key: the old report comes back, and the new rows are lost.",
        file="service/workflows/uploads.py",
        find="    if found.digest != digest:\n",
        put="    if not found.digest:\n",
        killed_by=f"{KEYED}::test_a_key_belongs_to_one_upload",
    ),
    Mutant(
        name="upload digest without the pepper",
        incident="The database alone confirms a guess of an erased person's row.",
        file="service/workflows/model/api_keys.py",
        find='return self._mac(b"upload", dataset_id.to_bytes(8, "big") + content)',
        put='return hmac.new(b"", content, "sha256").digest()',
        killed_by=f"{KEYED}::test_the_record_of_an_upload_cannot_confirm_a_guessed_row",
    ),
    Mutant(
        name="rows truncated by the order of the file",
        incident="Which rows of a person are kept depends on where others stand in the file.",
        file="service/workflows/uploads.py",
        find="np.lexsort([*contents, slots[over]])",
        put="np.lexsort([over, slots[over]])",
        killed_by=f"{LIMITS}::test_the_order_of_the_upload_does_not_count",
    ),
    Mutant(
        name="truncation forgets stored rows",
        incident="Each upload of a person's rows may bring as many again: the bound behind every charge is false.",
        file="service/workflows/uploads.py",
        find="kept[ordered[place >= limit - stored_before]] = False",
        put="kept[ordered[place >= limit]] = False",
        killed_by=f"{UPLOADS}::test_truncation_keeps_as_many_rows_as_fit",
    ),
    Mutant(
        name="rows that share a number are taken for the same",
        incident="A row is dropped as a repeat because another has the same hash by chance.",
        file="service/engine/ingest/repeats.py",
        find="        is_same &= column[order[1:]] == column[order[:-1]]\n",
        put="        is_same &= column[order[1:]].dtype == column.dtype\n",
        killed_by="tests/engine/ingest/test_repeats.py::test_rows_that_share_a_mixed_number_are_compared",
    ),
    Mutant(
        name="rows of unknown individuals are dropped and not counted",
        incident="A file with a wrong column of keys is stored as nothing, and the report says that all is well.",
        file="service/workflows/uploads.py",
        find="            self.rows_unknown = int(is_unknown.sum())\n            if self.rows_unknown:\n",
        put="            if is_unknown.any():\n",
        killed_by=f"{UPLOADS}::test_rows_of_unknown_individuals_are_dropped_and_counted[reject]",
    ),
    Mutant(
        name="a dry run stores",
        incident="A curator tries a file first and has its rows twice.",
        file="service/workflows/uploads.py",
        find="        if request.is_dry_run:\n            return Settled(result=report)\n",
        put="",
        killed_by=f"{UPLOADS}::test_a_dry_run_checks_everything_and_stores_nothing",
    ),
    Mutant(
        name="gzip without a bound",
        incident="A megabyte of zeros in gzip fills the disk.",
        file="service/api/uploads.py",
        find="if target.tell() + len(piece) > bytes_max:",
        put="if bytes_max < 0:",
        killed_by=f"{ROUTES}::test_a_packed_body_is_bounded_and_whole",
    ),
    Mutant(
        name="doubles cut to integers",
        incident="An age of 44.5 becomes 44, and no report says so.",
        file="service/engine/ingest/columns.py",
        find="wrong = ~missing & (values != np.trunc(values))",
        put="wrong = ~missing & (values != values)",
        killed_by="tests/engine/ingest/test_frames.py::test_a_double_that_is_no_whole_number_is_named",
    ),
    Mutant(
        name="wrong rows counted up to the twentieth",
        incident="A curator mends twenty rows, and finds the next twenty, a thousand times.",
        file="service/engine/ingest/problems.py",
        find="group.rows += max(where.size - PROBLEMS_MAX, 0)",
        put="group.rows += 0",
        killed_by="tests/engine/ingest/test_problems.py::test_all_wrong_rows_are_counted_and_grouped",
    ),
]
