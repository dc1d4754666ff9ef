"""What single lines of a kernel cost, and where they lose precision."""
