"""How many examples of each law are drawn, and how; a plugin of pytest too, for tests that lie beside the clients."""

from typing import Final

from hypothesis import Phase, settings

ANEW: Final = "anew"
JUDGED: Final = "judged"
SEEDED: Final = "seeded"

# Laws are drawn anew at every run, except where a submission is judged: there the same commit gives the same verdict.
settings.register_profile(ANEW, deadline=None)
settings.register_profile(JUDGED, deadline=None, derandomize=True)
# For `make mutants`: a seeded bug wants to be seen, not explained with the smallest example.
settings.register_profile(SEEDED, deadline=None, derandomize=True, phases=[Phase.explicit, Phase.generate])
