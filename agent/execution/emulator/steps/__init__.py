"""What each kind of instruction does to the lanes of a batch."""
