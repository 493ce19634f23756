"""`python -m localstack up|down|status|logs|deploy|clean`."""

import sys

from localstack.command import main

sys.exit(main(sys.argv[1:]))
