"""Background work: one job per kernel, a fair queue, processes that can be killed at any moment."""

from cuda_lsp.jobs.job import Job, JobRefused, Text
from cuda_lsp.jobs.jobs import Jobs

__all__ = ["Job", "JobRefused", "Jobs", "Text"]
