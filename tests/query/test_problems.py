"""The errors that an analyst sees."""

from service.query.problems import FieldError, QueryProblem, quoted


def test_a_problem_names_its_fields_and_reads_as_a_sentence() -> None:
    """The errors are kept whole; the text shows the first three."""
    errors = [FieldError(field=f"select[{place}]", message="is odd") for place in range(4)]
    problem = QueryProblem(*errors)

    assert problem.errors == tuple(errors)
    assert str(problem) == "select[0]: is odd; select[1]: is odd; select[2]: is odd"
    assert QueryProblem.of("from", "is odd").errors == (FieldError(field="from", message="is odd"),)


def test_what_was_sent_is_quoted_short_and_in_ascii() -> None:
    """A message can be encoded whatever was sent, and does not send a megabyte back."""
    assert quoted("NO") == "'NO'"
    assert quoted("\ud800") == r"'\ud800'"
    assert quoted("ø" * 1000).isascii()
    assert len(quoted("x" * 1_000_000)) < 100
