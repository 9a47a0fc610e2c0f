"""`python -m fitcheck`: the same as the `fitcheck` command."""

from fitcheck.cli.start import main

main()
