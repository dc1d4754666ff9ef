"""What the right answer is, and how sure that is."""
