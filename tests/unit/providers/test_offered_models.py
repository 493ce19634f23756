"""What the line worker holds of the providers' secret never shows."""

import json

from nodus_core.conversations.context import ModelChoice
from nodus_core.providers.offered import OfferedModels


def test_the_secret_of_the_providers_does_not_show_in_a_log_or_a_traceback() -> None:
    key = "sk-nobody-may-see-this"
    secret = json.dumps({"anthropic": {"apiKey": key}})
    offered = OfferedModels(lambda: secret)
    assert offered.families(ModelChoice("Nodus"))
    assert key not in repr(vars(offered))
