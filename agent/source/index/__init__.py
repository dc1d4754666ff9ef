"""What a file says about kernels that other files may ask about, and what many files say together."""
