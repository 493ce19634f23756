"""`python -m nodus.cli`."""

from nodus.cli.main import main

main()
