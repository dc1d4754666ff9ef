"""Copies into shared memory that go on while the block computes."""
