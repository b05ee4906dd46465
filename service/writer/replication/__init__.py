"""Replicas of one dataset: exchange of commits, ownership, and changes made elsewhere."""
