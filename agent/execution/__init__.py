"""Where device code runs: the compiler, the CPU emulator, background GPU processes."""
