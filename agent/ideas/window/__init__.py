"""The parts of windows in shared memory: which part of an array a block's windows reach over, and how it is brought."""
