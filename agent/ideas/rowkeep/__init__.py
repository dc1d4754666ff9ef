"""The parts of keeping a row on chip: which rows are worth it, what a block can hold, and how passes read it."""
