"""What the original promises, and a checker that is tested before any candidate."""
