"""Whether a dataset has answered with Laplace noise is read with every account that would otherwise have more to say.

Revision ID: 0026
Revises: 0025
"""

from alembic import op

revision = "0026"
down_revision = "0025"


def upgrade() -> None:
    """Add an index of the entries with Laplace noise: of a dataset that has none it is empty."""
    op.execute("CREATE INDEX ledger_laplace ON ledger (dataset_id) WHERE mechanism LIKE 'laplace %'")
