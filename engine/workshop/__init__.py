"""What a person needs who changes rule files: find, read, check, try and compare them.

Nothing here is imported to answer a question; the commands are in `cli/rules/`.
"""
