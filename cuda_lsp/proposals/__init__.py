"""Rewrites that were proved, from the first word of them to what the user made of them."""
