"""The single writer of one dataset: queue, group commit, and the state in memory."""
