"""A row that one thread walks over, handed to several lanes or to a whole block."""
