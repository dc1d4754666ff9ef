"""Which kernels of a code base have how far to go: each is compiled, counted in the emulator, and ranked."""
