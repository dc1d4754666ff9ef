"""What ideas share that look at a kernel as the work of one thread behind tests: its pieces, and how far its launches
reach."""
