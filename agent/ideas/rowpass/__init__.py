"""The parts of pass fusion: which two passes over a row can be one, and how that one is written."""
