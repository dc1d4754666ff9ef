"""Several neighbouring elements a thread, moved by one instruction: where that is possible, and how it is written."""
