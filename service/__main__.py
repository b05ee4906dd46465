"""`python -m service` is `sparing`."""

from service.cli.app import main

main()
