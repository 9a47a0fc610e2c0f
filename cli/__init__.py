"""The command line: options, and how an answer is printed."""
