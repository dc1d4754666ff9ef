"""The local card, driven from disposable child processes. Importing this needs no GPU and makes no context."""

from agent.execution.gpu.device import Gpu, open_gpu, why_no_gpu

__all__ = ["Gpu", "open_gpu", "why_no_gpu"]
