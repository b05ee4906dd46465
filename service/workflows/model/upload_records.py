"""Uploads: a request for one, its outcome, and the record of one under an idempotency key."""

from dataclasses import dataclass, fields
from typing import Literal

from service.workflows.model.rows import Address
from service.workflows.model.views import UploadReport

RowsOverLimit = Literal["refuse", "truncate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadRequest:
    """The table, type and options of an upload; `address` is the principal and its idempotency key, if any."""

    table: str
    content_type: str
    delimiter: str = ","
    rows_over_limit: RowsOverLimit = "refuse"
    is_dry_run: bool = False
    address: Address | None = None

    def options(self) -> dict[str, str]:
        """All that changes the effect of the same bytes. Defaults are left out: a later option changes no digest."""
        said = {"table": self.table, "content_type": self.content_type}
        stated = {"delimiter": self.delimiter, "rows_over_limit": self.rows_over_limit}
        defaults = {field.name: field.default for field in fields(self)}
        return said | {name: value for name, value in stated.items() if value != defaults[name]}


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadRecord:
    """A stored upload: principal and idempotency key, a keyed digest of what was sent, and the report as JSON."""

    address: Address
    digest: bytes
    report: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadOutcome:
    """The report of an upload, and whether it was stored by an earlier request under the same key."""

    report: UploadReport
    is_repeat: bool = False
