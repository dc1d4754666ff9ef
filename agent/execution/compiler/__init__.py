"""NVRTC in a child process: device slices in, PTX, cubin, resources and diagnostics out. Needs no GPU."""
