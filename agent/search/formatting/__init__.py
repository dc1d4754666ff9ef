"""What a rewrite writes, in the style of the user's ``.clang-format``."""
