"""The surroundings and the examples of every test, also where those of the clients run alone."""  # noqa: INP001 -- no package

from hypothesis import settings

from tests import profiles, surroundings
from tests.rotation import IS_WHOLE

surroundings.settle()
settings.load_profile(profiles.SOAK if IS_WHOLE else profiles.GATE)
