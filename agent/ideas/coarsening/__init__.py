"""Several outputs a thread, where neighbours along one axis load the same elements."""
