"""Frozen values of the workflows: entries, pieces, rows and views, with no behaviour but their own arithmetic."""
