"""fitcheck's counts beside what the installed transformers builds; needs the extra `measure`."""
