"""Protection against a restored database: every commit is recorded by a witness before its answer leaves."""
