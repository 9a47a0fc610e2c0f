"""Configurations of other programs, read by the mappings in `profiles/importers/`.

`document.py` reads a file and keeps the place of every key, `commands.py` the words of a command;
`mapping.py` reads a mapping, `recognising.py` finds the one that a document is for, and
`applying.py` puts keys into flags. Nothing here knows a program, a key or a flag by its name.
"""
