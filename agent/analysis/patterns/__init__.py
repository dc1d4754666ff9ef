"""Recognisers of whole idioms. Each says None for what it does not know for certain."""
