"""How much the property tests try: the same examples each time, more of them when asked.

NODUS_PROPERTY_EXAMPLES names a number of examples for each test; they are then drawn anew in every run.
"""

import os

from hypothesis import HealthCheck, Phase, settings

_SLOW = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
_WANTED = os.environ.get("NODUS_PROPERTY_EXAMPLES")

settings.register_profile(
    "same",
    derandomize=True,
    max_examples=120,
    stateful_step_count=16,
    deadline=None,
    database=None,
    suppress_health_check=_SLOW,
    phases=[Phase.explicit, Phase.generate],
)
settings.register_profile(
    "search",
    max_examples=int(_WANTED or 1000),
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=_SLOW,
    print_blob=True,
)
settings.load_profile("search" if _WANTED else "same")
