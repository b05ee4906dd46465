"""How the laws of the pure rooms run: a slow machine is not a broken law."""

from hypothesis import settings

settings.register_profile("without_deadline", deadline=None)
settings.load_profile("without_deadline")
