"""Tiles and register blocks for nests whose threads share operands."""
