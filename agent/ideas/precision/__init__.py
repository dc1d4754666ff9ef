"""Arithmetic that costs more than its result needs: doubles by accident, divisions and powers with cheaper forms."""
