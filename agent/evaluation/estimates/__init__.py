"""Estimated speed: counted work on the published figures of a card."""
