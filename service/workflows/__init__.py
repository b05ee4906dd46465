"""ROOM 5: the order of events. Register, append, answer, read budgets, erase, verify; ports are declared here. No SQL, no HTTP."""
