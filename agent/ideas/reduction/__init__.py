"""The parts of the warp-shuffle reduction: where a tree stands, what may replace it, and the helpers it is replaced
by."""
