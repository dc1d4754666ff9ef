"""Measured speed: races, their statistics, a card's own counters and floor."""
