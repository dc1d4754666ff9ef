"""What an editor or a shell talks to. It translates, and decides nothing about CUDA."""

__version__ = "0.1.0"
