"""Scans (prefix sums): from one launch for each doubling to three."""
