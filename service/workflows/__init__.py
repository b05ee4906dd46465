"""The order of events: register, append, answer, read, erase, verify. The ports are declared here; no SQL, no HTTP."""
