"""Executes PTX on the CPU and sees what a GPU hides: faults with line and thread, counted traffic."""
