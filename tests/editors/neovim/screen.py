"""screen.py NVIM WORKSPACE OUT: Neovim on a real terminal, typed at as a user does, and photographed."""

import os
import signal
import sys
from pathlib import Path

from terminal import Terminal

START = """
vim.opt.termguicolors = true
vim.api.nvim_set_hl(0, 'LspCodeLens', { link = 'Comment' })
vim.api.nvim_set_hl(0, 'LspInlayHint', { link = 'Comment' })
vim.diagnostic.config({ virtual_lines = { current_line = true } })
vim.lsp.config('cuda_lsp', { cmd = { vim.env.CUDA_LSP, 'serve' } })
"""


def main() -> int:
    # The terminal is a process of its own: when this one is told to end, it has to be closed first.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    nvim, workspace, out = str(Path(sys.argv[1]).absolute()), Path(sys.argv[2]), Path(sys.argv[3])
    pictures = Path(os.environ.get("PICTURES", str(out)))
    init = out / "init.lua"
    init.write_text(START)
    command = [
        "env",
        "TERM=tmux-256color",
        "COLORTERM=truecolor",
        nvim,
        "--clean",
        "--cmd",
        f"set rtp^={os.environ['PLUGIN']}",
        "--cmd",
        f"luafile {init}",
        "scale.cu",
    ]
    terminal = Terminal(command, workspace, f"cuda-lsp-{os.getpid()}")
    failed = 0

    def check(name: str, holds: bool) -> None:
        nonlocal failed
        failed += not holds
        print(f"{'ok  ' if holds else 'FAIL'} {name}" + ("" if holds else f"\n{terminal.text()}"), flush=True)

    try:
        check("terminal: the lens stands on the kernel", terminal.wait("on sm_", "1 hint", "Suggest ideas | Optimize"))
        terminal.type(":7\r")
        counted = "x[row * cols + col]; 16 sectors per request (4 would do)"
        check("terminal: a counted fact stands at the end of its line", terminal.wait(counted, seconds=120))
        hint = "threadIdx.y the column: 16 sectors per request, 4 with x and y exchanged\n"
        check("terminal: the whole hint of the line, once", terminal.wait(hint))
        terminal.type(":CudaLsp optimize\r")
        check("terminal: the widths of optimizing are a menu", terminal.wait("the launch may change"))
        terminal.type("2\r")
        check("terminal: progress is shown", terminal.wait("(cancel)", "Optimizing scale_add:"))
        check("terminal: the lens offers a review", terminal.wait(": Review", seconds=90))
        check("terminal: and says so without asking for Enter", terminal.wait(":CudaLsp review"))
        terminal.photograph(pictures / "neovim-lens.png")
        terminal.type(":CudaLsp review\r")
        check(
            "terminal: a diff with its verdict",
            terminal.wait("threadIdx.y;", "same precision", "a accept", "rewrite/scale.cu"),
        )
        terminal.photograph(pictures / "neovim-review.png")
        terminal.type("a")
        check("terminal: accepted", terminal.wait("blockDim.x + threadIdx.y;", without="a accept"))
        terminal.type(":w\r")
        check("terminal: saved", terminal.wait("written"))
        check("terminal: the file is the rewrite", "blockDim.x + threadIdx.y;" in (workspace / "scale.cu").read_text())
    finally:
        terminal.close()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
