"""How many examples of each law are drawn, and how; a plugin of pytest too, for tests that lie beside the clients."""

from typing import Final

from hypothesis import HealthCheck, Phase, settings

GATE: Final = "gate"
SOAK: Final = "soak"
SEEDED: Final = "seeded"

# The gate draws the same examples every time, and asks no clock. A soak draws anew, by the seed that its command names.
settings.register_profile(GATE, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile(SOAK, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
# For `make mutants`: a seeded bug wants to be seen, not explained with the smallest example.
settings.register_profile(
    SEEDED,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.generate],
)
