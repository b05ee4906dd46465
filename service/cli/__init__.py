"""The command line, `sparing`."""
