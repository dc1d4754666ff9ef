"""CUDA text -> kernels, launches, device slices, edits. The ground floor: imports nothing of ours."""
