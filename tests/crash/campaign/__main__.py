"""`python -m tests.crash.campaign`: see `command.py`."""

import sys

from tests.crash.campaign.command import main

sys.exit(main(sys.argv[1:]))
