"""Arrays of a thread's own that are indexed by data: local memory by default, or a column of shared memory."""
