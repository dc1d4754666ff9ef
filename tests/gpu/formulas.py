"""The originals of ``tests/attacks`` as PyTorch says them, for evaluators whose references are written in it.

Each formula is over the inputs by name, ``{size}`` stands for a declared size. Those that are missing have no formula:
several outputs, whole numbers in, or elements that are left as they were.
"""

FORMULAS = {
    "scale": "1.5 * x + 0.25",
    "bounded": "1.5 * x + 0.25",
    "rowsum": "x.view({rows}, {cols}).sum(1)",
    "bounded sum": "x.view({rows}, {cols}).sum(1)",
    "kahan": "x.view({rows}, {cols}).sum(1)",
    "halves": "x.view({rows}, {cols}).sum(1)",
    "total": "x.sum().view(1)",
    "softmax": "torch.softmax(x.view({rows}, {cols}), 1).view(-1)",
    "matmul": "(a.view({n}, {n}) @ b.view({n}, {n})).view(-1)",
    "argmax": "torch.argmax(x.view({rows}, {cols}), 1).to(torch.int32)",
    "blur": "0.25 * nn.functional.pad(x, (1, 0))[:-1] + 0.5 * x + 0.25 * nn.functional.pad(x, (0, 1))[1:]",
    "chain": "0.5 * (2.0 * x * x) + 1.0",
    "clip": "torch.clamp(x, min=0.0)",
    "growth": "torch.expm1(x)",
    "gelu": "nn.functional.gelu(x, approximate='tanh')",
    "flags": "(x > 3.0).any().view(1).to(torch.int32)",
}
"""By the original's name."""
