"""Products on the tensor cores, through the C++ interface of ``mma.h``."""
