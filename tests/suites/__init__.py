"""Public suites of kernels whose faults are known: how each is read, and what the emulator says of it.

None of their code is part of this repository: folders are named by environment variables.
"""
