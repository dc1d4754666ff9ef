"""Blocks that reduce one element a thread and add the result to a common one: fewer blocks, with more elements each."""
