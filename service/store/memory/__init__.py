"""The in-memory twin of the Postgres store: the same port, the same contract suite, nothing durable."""
