"""The parts of staging records: which stores make up a warp's run of memory, and how they are written as one."""
