"""What compiling a kernel says about it: found in the background after a pause in typing, kept by its content."""
