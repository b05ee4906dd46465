"""The command `python -m service`, which is the same as `sparing`."""

from service.cli.app import main

main()
