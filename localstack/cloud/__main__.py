"""`python -m localstack.cloud`: see `localstack.cloud.server`."""

import sys

from localstack.cloud.server import main

sys.exit(main())
