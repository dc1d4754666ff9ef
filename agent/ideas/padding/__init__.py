"""Arrays in shared memory whose lanes meet in one bank: what that costs, and how the elements are spread."""
