"""In-memory twins of store, cache and witness, held to the same contract suites; nothing that ships imports them."""
