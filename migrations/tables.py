"""The schema as SQLAlchemy metadata, with which the suite compares the result of the migrations.

Queries are plain SQL in their adapters.
"""

from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Numeric,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.types import TypeEngine

METADATA: Final = MetaData()


def _required(name: str, kind: TypeEngine[Any], *, zero: bool = False) -> Column[Any]:
    return Column(name, kind, nullable=False, server_default=text("0") if zero else None)


def _dataset(*, primary_key: bool = True) -> Column[int]:
    return Column("dataset_id", Integer, ForeignKey("datasets.id"), primary_key=primary_key, autoincrement=False)


DATASETS: Final = Table(
    "datasets",
    METADATA,
    Column("id", Integer, Identity(always=True), primary_key=True),
    _required("name", Text()),
    Column("epsilon", Text),
    Column("delta", Text),
    _required("budget_units", BigInteger()),
    _required("limit_floor_units", BigInteger()),
    _required("capacity", BigInteger()),
    _required("rule", Text()),
    _required("accounting", JSONB()),
    _required("schema", JSONB()),
    _required("genesis", LargeBinary()),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("version", Integer, nullable=False, server_default=text("1")),
    Column("instance", Integer, nullable=False, server_default=text("1")),
    Column("archived_at", DateTime(timezone=True)),
    Column("monitor", JSONB),
    _required("salt", LargeBinary()),
    _required("keys", Text()),
    UniqueConstraint("name"),
)

_VERSION: Final = Column("version", Integer, primary_key=True, autoincrement=False)
_REPLACED: Final = (
    _required("until_seq", BigInteger()),
    _required("capacity", BigInteger()),
    _required("schema", JSONB()),
)
REGISTRATIONS: Final = Table("registrations", METADATA, _dataset(), _VERSION, *_REPLACED)

DELETIONS: Final = Table(
    "deletions", METADATA, Column("name", Text, primary_key=True), _required("datasets", Integer())
)

HEADS: Final = Table(
    "heads",
    METADATA,
    _dataset(),
    _required("seq", BigInteger(), zero=True),
    _required("hash", LargeBinary()),
    Column("epoch", Integer, nullable=False, server_default=text("1")),
    Column("fence", BigInteger, nullable=False, server_default=text("1")),
    _required("data_version", BigInteger(), zero=True),
    _required("slots", BigInteger(), zero=True),
    _required("worst_case_units", BigInteger(), zero=True),
    _required("checkpoint_seq", BigInteger(), zero=True),
    _required("journal_hash", LargeBinary()),
    _required("joining_units", BigInteger(), zero=True),
    _required("pruned_seq", BigInteger(), zero=True),
)

LEDGER: Final = Table(
    "ledger",
    METADATA,
    _dataset(),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("query_id", Uuid, nullable=False, unique=True),
    _required("analyst_id", Uuid()),
    _required("analyst", Text()),
    _required("epoch", Integer()),
    _required("canonical", LargeBinary()),
    _required("query_hash", Text()),
    _required("sigma", Double()),
    _required("grid_log2", Integer()),
    _required("dimension", Integer()),
    _required("worst_case_units", BigInteger()),
    _required("worst_case_total_units", BigInteger()),
    _required("charged_count", Integer()),
    _required("left_out_count", Integer()),
    _required("charged_units", Numeric()),
    _required("values", LargeBinary()),
    _required("asked_at", DateTime(timezone=True)),
    _required("previous_hash", LargeBinary()),
    _required("hash", LargeBinary()),
    _required("kind", Text()),
    _required("format", SmallInteger()),
    _required("mechanism", Text()),
    _required("values_digest", LargeBinary()),
    _required("salt", LargeBinary()),
    _required("pieces_digest", LargeBinary()),
    _required("private_digest", LargeBinary()),
    _required("answer_digest", LargeBinary()),
    _required("acts", BigInteger()),
    _required("acts_hash", LargeBinary()),
    _required("settled", LargeBinary()),
    Column("piece", LargeBinary),
    _required("first_digest", LargeBinary()),
    Column("sigmas", LargeBinary, nullable=False, server_default=text("''")),
    Index("ledger_reuse", "query_hash", "dataset_id", "epoch", "seq"),
    Index("ledger_burns", "dataset_id", "seq", postgresql_where=text("kind = 'burn'")),
    Index("ledger_ticks", "dataset_id", "seq", postgresql_where=text("mechanism LIKE 'gaussian prepaid %'")),
    Index("ledger_other_noise", "dataset_id", postgresql_where=text("mechanism NOT LIKE 'gaussian%'")),
)

PIECES: Final = Table(
    "pieces",
    METADATA,
    Column("dataset_id", Integer, primary_key=True, autoincrement=False),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("number", Integer, primary_key=True, autoincrement=False),
    _required("digest", LargeBinary()),
    Column("sealed", LargeBinary),
)

ANSWERS: Final = Table(
    "answers",
    METADATA,
    Column("dataset_id", Integer, primary_key=True, autoincrement=False),
    Column("principal_id", Uuid, primary_key=True),
    Column("idempotency_key", Text, primary_key=True),
    _required("request_hash", LargeBinary()),
    _required("seq", BigInteger()),
    _required("query_id", Uuid()),
    _required("body", LargeBinary()),
    _required("at", DateTime(timezone=True)),
    Column("asked_form", LargeBinary),
    ForeignKeyConstraint(["dataset_id", "seq"], ["ledger.dataset_id", "ledger.seq"]),
    # Keys by their bytes, COLLATE "C": of that a comparison with the database knows nothing.
    Index("answers_of_principal", "principal_id", "at", "dataset_id", "seq", "idempotency_key"),
)

KEYED_UPLOADS: Final = Table(
    "keyed_uploads",
    METADATA,
    _dataset(),
    Column("principal_id", Uuid, primary_key=True),
    Column("idempotency_key", Text, primary_key=True),
    _required("digest", LargeBinary()),
    _required("report", LargeBinary()),
)

PARAMETERS: Final = Table(
    "parameters",
    METADATA,
    _dataset(),
    Column("principal_id", Uuid, primary_key=True),
    Column("sha256", LargeBinary, primary_key=True),
    _required("classes", Integer()),
    _required("numbers", LargeBinary()),
)

WORST_CASES: Final = Table(
    "worst_cases",
    METADATA,
    _dataset(),
    Column("principal_id", Uuid, primary_key=True),
    _required("units", BigInteger()),
)

INDIVIDUALS: Final = Table(
    "individuals",
    METADATA,
    Column("dataset_id", Integer, primary_key=True, autoincrement=False),
    Column("slot", Integer, primary_key=True, autoincrement=False),
    Column("key", Text),
    Column("tombstone", LargeBinary),
    _required("limit_units", BigInteger()),
    Column("paused", Boolean, nullable=False, server_default=text("false")),
    Column("plain", Text),
    Index("individuals_plain", "dataset_id", "plain", postgresql_where=text("plain IS NOT NULL")),
    Index("individuals_key", "dataset_id", "key", unique=True, postgresql_where=text("key IS NOT NULL")),
    Index(
        "individuals_tombstone", "dataset_id", "tombstone", unique=True, postgresql_where=text("tombstone IS NOT NULL")
    ),
)

PAGES: Final = Table(
    "pages",
    METADATA,
    _dataset(),
    Column("page", Integer, primary_key=True, autoincrement=False),
    _required("seq", BigInteger()),
    _required("spent", LargeBinary()),
    _required("charged", LargeBinary()),
    _required("left_out", LargeBinary()),
    Column("ticks", LargeBinary, nullable=False, server_default=text("''")),
)

PRUNED_TOTALS: Final = PAGES.to_metadata(METADATA, name="pruned_totals")

AMENDMENTS: Final = Table(
    "amendments",
    METADATA,
    Column("dataset_id", Integer, primary_key=True, autoincrement=False),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("erasure", BigInteger, primary_key=True, autoincrement=False),
    _required("old_digest", LargeBinary()),
    _required("new_digest", LargeBinary()),
)

JOURNAL: Final = Table(
    "journal",
    METADATA,
    _dataset(),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    _required("at_seq", BigInteger()),
    _required("act", Text()),
    _required("detail", JSONB()),
    _required("at", DateTime(timezone=True)),
    _required("previous_hash", LargeBinary()),
    _required("hash", LargeBinary()),
    Index("journal_acts", "dataset_id", "act", "number"),
    Index("journal_slots", "dataset_id", text("(detail ->> 'slot')"), "number"),
)

PRINCIPALS: Final = Table(
    "principals",
    METADATA,
    Column("id", Uuid, primary_key=True),
    _required("role", Text()),
    _required("name", Text()),
    Column("dataset", Text, ForeignKey("datasets.name")),
    Column("individual", Text),
    Column("allowance_units", BigInteger),
    _required("key_hash", LargeBinary()),
    _required("created_at", DateTime(timezone=True)),
    Column("revoked_at", DateTime(timezone=True)),
    Column("organisation", Text),
    Column("purpose", Text),
    Column("expires_at", DateTime(timezone=True)),
    Index("principals_individual", "dataset", "individual", postgresql_where=text("individual IS NOT NULL")),
)

SIGN_INS: Final = Table(
    "sign_ins",
    METADATA,
    Column("token_hash", LargeBinary, primary_key=True),
    Column("principal_id", Uuid, ForeignKey("principals.id", ondelete="CASCADE"), nullable=False),
    _required("key_hash", LargeBinary()),
    _required("began_at", DateTime(timezone=True)),
    _required("expires_at", DateTime(timezone=True)),
    Index("sign_ins_expiry", "expires_at"),
    Index("sign_ins_principal", "principal_id"),
)

SUMMARY_POINTS: Final = Table(
    "summary_points",
    METADATA,
    _dataset(),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    _required("at", DateTime(timezone=True)),
    _required("detail", JSONB()),
)

ALARMS: Final = Table("alarms", METADATA, _dataset(), _required("share", Double()), Column("rang_seq", BigInteger))

PEPPER: Final = Table(
    "pepper",
    METADATA,
    Column("is_only", Boolean, primary_key=True, server_default=text("true")),
    _required("salt", LargeBinary()),
    _required("proof", LargeBinary()),
)

DATASET_OWNERS: Final = Table(
    "dataset_owners",
    METADATA,
    _dataset(),
    _required("replica", Uuid()),
    _required("url", Text()),
    Column("expires_at", DateTime(timezone=True), nullable=False),
)
