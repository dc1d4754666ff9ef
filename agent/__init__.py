"""From a CUDA kernel to a verified faster kernel. Knows no editor.

The folders are floors: each imports only from the folders below it. From the ground up:
``source``, ``workload``, ``analysis``, ``execution``, ``inference``, then ``evaluation`` beside
``models`` and ``ideas``, and ``search`` on top. ``import-linter`` holds the floors in CI.
"""
