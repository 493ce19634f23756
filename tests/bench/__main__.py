"""`python -m tests.bench`."""

import sys

from tests.bench.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
