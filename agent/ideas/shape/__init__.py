"""Kernels that run in blocks of any shape, and launches whose shape leaves the card idle."""
