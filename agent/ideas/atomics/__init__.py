"""Atomics to global memory, done for a whole block at once."""
