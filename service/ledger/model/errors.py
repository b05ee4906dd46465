"""Every refusal of a workflow; the api room turns each class into one HTTP status.

    WorkflowError
    ├── InvalidRequest       the request is malformed; names the field
    │   └── InvalidRows      rows of an upload are wrong; also has their numbers
    ├── KeyConflict          the idempotency key was used for another request
    ├── NotFound             unknown, or not this principal's to see (indistinguishable)
    │   └── UnknownDataset   the same of a dataset, by its name
    ├── NameTaken            the name exists already
    ├── DatasetMissing       a dataset of that name has answered queries, and the database lacks it
    ├── NotWaiting           no query waits under this key
    ├── QueryCancelled       the query was cancelled by its key before it began
    ├── RoleRequired         the request is for principals of another role; decided by the key and the route alone
    ├── AllowanceExceeded    the analyst's public worst-case allowance is used up
    ├── DatasetArchived      the dataset takes no query and no row any more; its curator has said so in public
    ├── DatasetNotEmpty      the dataset has a ledger and cannot be deleted
    ├── RateLimited          this principal asks too often; decided before anything is read
    ├── TooManyAtOnce        so many requests of this principal wait that no more are taken
    ├── TooManyStrangers     so many keys wait to be looked up that no more are taken
    ├── TooManyBytesSpooled  this principal's uploads hold as many bytes on disk as they may
    ├── TooManyParametersKept  as many bytes of parameters are kept for this analyst as may be
    ├── DiskFull             there is no room on disk for an upload
    ├── Busy                 no room before the deadline or in memory; decided on public grounds
    ├── Unavailable          the outcome is not known yet, or the database is away: retry with the same key
    │   └── RegistrationChanged  the dataset was extended while rows were read for it; the act is begun again
    ├── ClockImplausible     the clock of the service's machine is wrong by years
    └── Fenced               the dataset is closed until its curator reconciles it
        ├── WitnessLost      the same, because nothing is left that could tell
        └── LedgerDamaged    closed until its rows were restored and the process started again

No message here may depend on a record, a charge, a budget or the active set: analysts read them.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Annotated

from service.engine.ingest import ErrorCounts
from service.query.problems import FieldError
from service.query.schema import doc
from service.query.suggestions import no_dataset


class WorkflowError(Exception):
    """A refusal with a stable `slug` and a `title` for people; `str()` is the detail."""

    slug = "error"
    title = "The request was refused."
    retry_after_s: int | None = None
    """After how many seconds it may be asked again, at least one; None where waiting changes nothing."""

    def __init__(self, detail: str | None = None) -> None:
        """Keep `detail`, or fall back to the class's title."""
        super().__init__(detail or self.title)


class InvalidRequest(WorkflowError):
    """The request is malformed; `errors` name the fields, first problem first."""

    slug = "invalid-request"
    title = "The request is not valid."

    def __init__(self, *errors: FieldError) -> None:
        """Raise with at least one field error."""
        super().__init__("; ".join(f"{error.field}: {error.message}" for error in errors[:3]))
        self.errors = errors

    @classmethod
    def of(cls, field: str, message: str) -> "InvalidRequest":
        """The common case: one field, one sentence."""
        return cls(FieldError(field=field, message=message))


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonOverLimit:
    """An individual with more rows than the schema allows: those it would hold, and those too many."""

    key: Annotated[str, doc("The individual's key.")]
    rows: Annotated[int, doc("How many rows it would have.")]
    excess: Annotated[int, doc("How many of them are too many.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class OverLimit:
    """The individuals with more rows than the schema allows."""

    individuals: Annotated[int, doc("How many individuals have too many rows.")]
    excess: Annotated[int, doc("How many rows are too many, of all of them together.")]
    first: Annotated[tuple[PersonOverLimit, ...], doc("The first of the individuals.")]


class InvalidRows(InvalidRequest):
    """Rows of an upload are wrong: `counts` are all of them in numbers. For the curator that sent them alone."""

    def __init__(self, errors: Sequence[FieldError], counts: ErrorCounts, over_limit: OverLimit | None = None) -> None:
        """Raise with at least one field error; the text names no individual."""
        super().__init__(*errors)
        self.counts, self.over_limit = counts, over_limit


class KeyConflict(WorkflowError):
    """The idempotency key already belongs to a different request of this analyst."""

    slug = "idempotency-key-reused"
    title = "This Idempotency-Key was used for another request; use a new key for a new request."


class NotFound(WorkflowError):
    """There is no such thing, or it is not yours to see; no response distinguishes the two."""

    slug = "not-found"
    title = "There is nothing here."


class UnknownDataset(NotFound):
    """There is no dataset of that name, or it is not this principal's to use; `names` are those that are."""

    def __init__(self, name: str, names: Collection[str] = ()) -> None:
        """Name the dataset, and the nearest of the principal's own."""
        super().__init__(no_dataset(name, names))
        self.name = name


class NameTaken(WorkflowError):
    """A dataset, table row or principal of that name exists already."""

    slug = "name-taken"
    title = "That name is taken."


class DatasetMissing(WorkflowError):
    """A dataset of that name was witnessed outside the database, which lacks it: it was probably put back."""

    slug = "dataset-missing"
    title = (
        "A dataset of that name has been used here, and the database lacks it, probably since a backup was put back."
        " Have a newer backup put back, or take another name: what individuals have spent is not known there."
    )


class NotWaiting(WorkflowError):
    """No query of this analyst waits under this key: it has begun, is answered or refused, or was never asked."""

    slug = "query-not-waiting"
    title = "No query waits under this Idempotency-Key: it has begun, or there is none."


class QueryCancelled(WorkflowError):
    """The analyst cancelled the query before it began; nothing was charged, and the key is free."""

    slug = "query-cancelled"
    title = "The query was cancelled before it began; nothing was charged."


class RoleRequired(WorkflowError):
    """The request is for principals of another role, or for those that are bound to no dataset."""

    slug = "role-required"
    title = "Your key does not have the role that this request needs."

    def __init__(self, *roles: str, for_all_datasets: bool = False) -> None:
        """Name the roles of the request; at least one."""
        bounds = ", for all datasets" if for_all_datasets else ""
        super().__init__(f"This request needs a key with the role {' or '.join(sorted(roles))}{bounds}.")


class AllowanceExceeded(WorkflowError):
    """The worst-case cost of this query exceeds what is left of the analyst's allowance (public numbers only)."""

    slug = "allowance-exceeded"
    title = "The query's worst-case cost exceeds what is left of your allowance."


class DatasetArchived(WorkflowError):
    """The dataset is archived, a public act: it takes no query and no row any more."""

    slug = "dataset-archived"
    title = "This dataset is archived: it takes no queries and no rows any more."


class DatasetNotEmpty(WorkflowError):
    """The dataset has a ledger, and is kept with it."""

    slug = "dataset-not-empty"
    title = "This dataset has answered queries, and its ledger is kept; archive it instead."


class _TooMuch(WorkflowError):
    """More was asked than there is room for."""

    def __init__(self, retry_after_s: int = 1, detail: str | None = None) -> None:
        """Say after how many seconds to come back, at least one."""
        super().__init__(detail)
        self.retry_after_s = max(retry_after_s, 1)


class RateLimited(_TooMuch):
    """The principal asks too often. `retry_after_s` comes from its own requests alone."""

    slug = "rate-limited"
    title = "Too many requests with this key; retry later, a query with the same Idempotency-Key."


class Busy(_TooMuch):
    """No room for the request before its deadline. `retry_after_s` comes from arrivals and public costs alone."""

    slug = "busy"
    title = "Too many requests are waiting; retry with the same Idempotency-Key."


class TooManyAtOnce(_TooMuch):
    """The principal has as many requests waiting as it may. Its own requests alone count."""

    slug = "too-many-at-once"
    title = "Too many requests with this key wait at once; retry when some of them are answered."

    def __init__(self, awaited: str, most: int) -> None:
        """Name what is waited for, and how many may wait."""
        super().__init__(detail=f"At most {most} requests with one key may wait at once for {awaited}; retry later.")


class TooManyStrangers(_TooMuch):
    """No more credentials that were not recognised lately may wait to be looked up."""

    slug = "too-many-strangers"
    title = "Too many keys that were not recognised lately wait to be looked up; retry later."

    def __init__(self, most: int) -> None:
        """Say how many may wait."""
        super().__init__(detail=f"At most {most} keys that were not recognised lately may wait at once; retry later.")


class TooManyBytesSpooled(_TooMuch):
    """The principal's uploads hold as many bytes on disk as they may. Counts its own bytes alone."""

    slug = "too-many-bytes-spooled"
    title = "Uploads with this key hold as many bytes as they may; retry when one of them has ended."

    def __init__(self, most: int) -> None:
        """Name the limit."""
        super().__init__(
            detail=f"Uploads with one key may hold at most {most} bytes on disk at once, those that gzip unpacks to"
            " included (SPARING_SPOOL_BYTES_MAX); retry when one of them has ended, or send smaller files."
        )


class TooManyParametersKept(_TooMuch):
    """The analyst has as many bytes of parameters kept in the dataset as it may. Its own requests alone count."""

    slug = "too-many-parameters-kept"
    title = "As many parameters are kept for this key in this dataset as may be; the query was not asked."

    def __init__(self, most: int) -> None:
        """Name the limit."""
        super().__init__(
            detail=f"At most {most} bytes of parameters are kept for one analyst in one dataset, each array with 4096"
            " at least (SPARING_PARAMETERS_BYTES_MAX); name arrays that are kept by their hashes, or ask the operator."
        )


class _RetryLater(WorkflowError):
    """A refusal that time cures; `retry_after_s` is a constant, never a function of load or data."""

    retry_after_s = 1


class DiskFull(_RetryLater):
    """There is no room on disk for an upload."""

    slug = "disk-full"
    title = "The folder of uploads (TMPDIR) is full or cannot be written; ask the operator, or retry later."

    @staticmethod
    def of_all(most: int) -> str:
        """The text for uploads that together reach their bound while the folder still has room."""
        return f"All uploads hold at most {most} bytes on disk at once (SPARING_SPOOL_BYTES_TOTAL_MAX); retry later."


class Unavailable(_RetryLater):
    """The database is away or the outcome of a commit is not known yet."""

    slug = "unavailable"
    title = "The service cannot answer now; retry with the same Idempotency-Key."


class RegistrationChanged(Unavailable):
    """The dataset was extended while rows were read for it. No caller sees this while the act can begin again."""


class ClockImplausible(_RetryLater):
    """The clock of the service's machine shows a time at which this version cannot run. Nothing is dated by it."""

    slug = "clock-implausible"
    title = "The service's clock is wrong by years, and nothing is done until it is right; tell the operator."


class Fenced(_RetryLater):
    """The database is behind what was released before: closed until the curator reconciles."""

    slug = "ledger-rollback"
    title = "This dataset is closed: its database is behind the answers already released."


class WitnessLost(Fenced):
    """Nothing outside the database says how far it had come: closed until the curator states what to burn."""

    slug = "witness-lost"
    title = "This dataset is closed: nothing outside its database says how far its ledger had come."


class LedgerDamaged(Fenced):
    """Rows of the ledger are not what was written: closed until they are restored, and the process starts again."""

    slug = "ledger-damaged"
    title = "This dataset is closed: its ledger is damaged."
