"""The formula language, its checks and evaluation, model sources and the Python interface."""
