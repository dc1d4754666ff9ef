"""Data flow over a kernel's syntax tree. Counted facts come in as data; nothing here runs code."""
