"""Loops in steps that only the launch knows, which the compiler takes one turn at a time."""
