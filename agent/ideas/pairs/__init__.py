"""Kernels in which each thread meets every element of a list."""
