"""Queries of analysts: submission, preview, answers already given, releases."""
