"""Measured rows, and how far the estimate is from them."""
