"""One file per rule. To add one, add a file: nothing else names it."""
