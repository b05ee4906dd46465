"""The one error of `service.query`.

Every fault of a query is a `QueryProblem`. An analyst reads it, so that everything it says is a function of the request
and the public schema alone.
"""

from dataclasses import dataclass

_QUOTED_MAX = 60  # characters; a message names what was sent, it does not send it all back


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldError:
    """One thing that is wrong, and where: `field` is a path into the request such as `where.and[0].ge[1]`."""

    field: str  # dotted and bracketed; "body" is the document as a whole
    message: str  # one sentence for the analyst, without the field


class QueryProblem(ValueError):
    """A query that cannot be asked; `errors` name the fields. Correct them and ask again: nothing was charged."""

    def __init__(self, *errors: FieldError) -> None:
        """Raise with at least one field error."""
        super().__init__("; ".join(f"{error.field}: {error.message}" for error in errors[:3]))
        self.errors = errors

    @classmethod
    def of(cls, field: str, message: str) -> "QueryProblem":
        """A problem with one field and one sentence, the common case."""
        return cls(FieldError(field=field, message=message))


def quoted(value: object) -> str:
    """The sent value, safe to show anywhere: short, and in ASCII so that a lone surrogate cannot break the reply."""
    text = ascii(value)
    return text if len(text) <= _QUOTED_MAX else f"{text[:_QUOTED_MAX]}..."
