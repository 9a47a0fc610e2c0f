"""`python -m fitcheck`: the same as the `fitcheck` command."""

from fitcheck.cli.main import main

main()
