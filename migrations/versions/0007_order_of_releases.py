"""The index of a principal's replies has the whole order in which they are listed.

It ended with the query's random id, so that the replies of one second came in no order of theirs; and two replies that
show one entry stood in one place, of which a page that ended there lost one.

Revision ID: 0007
Revises: 0006
"""

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Forward. Keys compare by their bytes, whatever order the database has for texts."""
    op.execute("DROP INDEX answers_of_principal")
    op.execute(
        'CREATE INDEX answers_of_principal ON answers (principal_id, at, dataset_id, seq, idempotency_key COLLATE "C")'
    )


def downgrade() -> None:
    """Back."""
    op.execute("DROP INDEX answers_of_principal")
    op.execute("CREATE INDEX answers_of_principal ON answers (principal_id, at, query_id)")
