"""Seeded bugs of vectors: whose numbers are read, in which steps, and what is left when they change or go."""

from tests.mutants.mutant import Mutant

BLOCKS = "tests/engine/test_vectors.py"
INGEST = "tests/engine/ingest/test_vectors.py"
FEATURES = "tests/query/test_features.py"
READ = "tests/engine/test_features.py"

MUTANTS = [
    Mutant(
        name="a block of vectors is written to",
        incident="A query that is under way reads some vectors of before a correction and some of after it.",
        file="service/engine/vectors.py",
        find="self.coding.missing(BLOCK_SLOTS) if held is None else held.copy()",
        put="self.coding.missing(BLOCK_SLOTS) if held is None else held",
        killed_by=f"{BLOCKS}::test_a_change_makes_what_a_fresh_column_would_be",
    ),
    Mutant(
        name="an erased individual's vector stays",
        incident="An erased individual is still in memory, and in answers once its slot is given back.",
        file="service/engine/vectors.py",
        find="            block[emptied[gone] % BLOCK_SLOTS] = 0\n",
        put="",
        killed_by=f"{BLOCKS}::test_a_dataset_holds_vectors_beside_its_columns",
    ),
    Mutant(
        name="vectors go to the slots in the order of the upload",
        incident="One individual has another's image.",
        file="service/engine/vectors.py",
        find="rows[order[came]]",
        put="rows[came]",
        killed_by=f"{BLOCKS}::test_a_change_makes_what_a_fresh_column_would_be",
    ),
    Mutant(
        name="an individual without a vector is in the gradient",
        incident="Its features are those of an image of zeros.",
        file="service/engine/features.py",
        find="            np.logical_and(known[stretch], rows[:, 0], out=known[stretch])\n",
        put="",
        killed_by=f"{READ}::test_vectors_are_read_from_any_stretch_of_slots",
    ),
    Mutant(
        name="vectors are read from the first slot on",
        incident="The individuals of every later stretch have the images of the first ones.",
        file="service/engine/products.py",
        find="reader.read(view, touched.index)",
        put="reader.read(view, slice(0, touched.size))",
        killed_by="tests/laws/test_separability.py::test_a_vector_is_the_same_wherever_runs_end[vectors]",
    ),
    Mutant(
        name="vectors of listed slots are those of the first of each block",
        incident="An individual that an index found is predicted by another's image.",
        file="service/engine/vectors.py",
        find="block.take(places[begin:end], axis=0)",
        put="block[: end - begin]",
        killed_by=f"{READ}::test_vectors_of_listed_slots_are_those_of_the_stretch",
    ),
    Mutant(
        name="the bound of a vector in a prediction is that of its largest number",
        incident="A prediction is larger than its declared bounds, and so is a sum of it.",
        file="service/query/predictions.py",
        find="own.sum() if isinstance(part, Vector) else own.max()",
        put="own.max()",
        killed_by="tests/query/test_predictions.py"
        "::test_the_bounds_of_a_prediction_by_a_vector_are_those_of_all_its_numbers",
    ),
    Mutant(
        name="the numbers of a vector are not shifted",
        incident="Beside finer features a vector counts for a fraction of itself, and is charged for all of it.",
        file="service/engine/features.py",
        find="        out *= 2.0**part.shift\n",
        put="        pass\n",
        killed_by=f"{READ}::test_vectors_stand_beside_other_features_in_their_order",
    ),
    Mutant(
        name="a vector counts as one feature in the longest record",
        incident="The worst case of a query is that of one number, and a clip binds that should not.",
        file="service/query/features.py",
        find="(part.largest, part.size if isinstance(part, Vector) else 1)",
        put="(part.largest, 1)",
        killed_by=f"{FEATURES}::test_a_vector_alone_may_be_read_in_its_own_steps",
    ),
    Mutant(
        name="the common step is coarser than the vector's",
        incident="Numbers of a vector are rounded.",
        file="service/query/features.py",
        find="return min([*steps, self._exponent() - bits])",
        put="return self._exponent() - bits",
        killed_by=f"{FEATURES}::test_vectors_are_brought_to_a_common_step_by_shifts_to_the_left",
    ),
    Mutant(
        name="a list of another length is filled up",
        incident="A vector that lost some of its numbers is stored as if it had them.",
        file="service/engine/ingest/vectors.py",
        find='    report(lengths != column.length, f"must be a list of {column.length} numbers")\n',
        put="",
        killed_by=f"{INGEST}::test_a_list_that_is_no_vector_is_named_by_row",
    ),
    Mutant(
        name="numbers in lists are not counted before they are decoded",
        incident="A kilobyte of Parquet stands for gigabytes.",
        file="service/engine/ingest/columnar.py",
        find="        size.announce(0, sum(listed))\n",
        put="",
        killed_by=f"{INGEST}::test_a_parquet_file_of_many_numbers_is_refused_by_what_it_says_of_itself",
    ),
    Mutant(
        name="vectors are read from Postgres by the blocks of their rows",
        incident="A value of more than a gibibyte ends the load of a dataset of long vectors.",
        file="service/store/postgres/data_tables.py",
        find="max(min(VECTOR_BYTES_AT_ONCE // max(BLOCK_ROWS_MAX * self.vector_bytes, 1), BLOCKS_AT_ONCE), 1)",
        put="BLOCKS_AT_ONCE",
        killed_by="tests/store/postgres/test_data_tables.py::test_vectors_are_read_in_pieces_of_their_own_bytes",
    ),
    Mutant(
        name="the vectors of a registration are not bounded",
        incident="A dataset that fills the memory of its server is registered.",
        file="service/workflows/datasets.py",
        find="            if taken > bytes_max:\n",
        put="            if taken > bytes_max * 2**32:\n",
        killed_by="tests/workflows/test_datasets.py::test_vectors_that_could_take_too_much_are_refused_by_column",
    ),
    Mutant(
        name="the own record in binary is shorter without a vector",
        incident="Whoever counts bytes on the way learns whether an individual has a vector.",
        file="service/workflows/reads/own_record.py",
        find="{name: np.full(length, np.nan) for name, length in lengths.items()}",
        put="{name: np.full(0, np.nan) for name, length in lengths.items()}",
        killed_by="tests/workflows/reads/test_own_record.py"
        "::test_vectors_are_arrays_of_their_own_and_as_long_for_everybody",
    ),
]
