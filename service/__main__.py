"""`python -m service` is `sparing`."""

from service.cli import main

main()
