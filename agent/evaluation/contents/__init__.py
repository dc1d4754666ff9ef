"""What is tried: values, places and sizes that a program names or that hide a fault."""
