"""A program on a terminal that can be typed at, read, and photographed."""

import subprocess
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

COLUMNS, LINES = 152, 34
FOREGROUND, BACKGROUND = (0xE0, 0xE2, 0xEA), (0x14, 0x16, 0x1B)  # Neovim's default dark colours
PAGE = """<!doctype html><meta charset="utf-8"><style>{stylesheet}
body {{ color: {foreground}; background: {background}; margin: 0 }}
pre {{ font: 12px/15px "DejaVu Sans Mono", monospace; margin: 0; padding: 8px }}</style><pre>{code}</pre>"""


class Terminal:
    """A tmux session of its own server, so that no other session is touched."""

    def __init__(self, command: list[str], folder: Path, name: str) -> None:
        self._tmux = ["tmux", "-L", name, "-f", "/dev/null"]
        size = ["-x", str(COLUMNS), "-y", str(LINES)]
        options = ["set", "-g", "default-terminal", "tmux-256color", ";", "set", "-ga", "terminal-overrides", ",*:RGB"]
        self._run(
            *options, ";", "set", "-g", "status", "off", ";", "new-session", "-d", "-c", str(folder), *size, *command
        )

    def _run(self, *arguments: str) -> str:
        return subprocess.run([*self._tmux, *arguments], capture_output=True, text=True, check=True).stdout

    def type(self, keys: str) -> None:
        """Types literal text; ``\\n`` is Enter and ``\\x1b`` is Escape."""
        self._run("send-keys", "-l", keys)

    def text(self) -> str:
        """What stands on the screen."""
        try:
            return self._run("capture-pane", "-p")
        except subprocess.CalledProcessError as error:
            return f"(the program ended: {error.stderr.strip()})"

    def wait(self, *words: str, without: str = "\0", seconds: float = 20) -> bool:
        """Whether all the words came to stand on the screen at once, and ``without`` did not stand there."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            text = self.text()
            if without not in text and all(word in text for word in words):
                return True
            time.sleep(0.1)
        return False

    def photograph(self, path: Path) -> None:
        """Writes the screen with its colours as a PNG."""
        console = Console(record=True, width=COLUMNS, file=open("/dev/null", "w"), legacy_windows=False)  # noqa: SIM115, PTH123
        console.print(Text.from_ansi(self._run("capture-pane", "-e", "-p")), soft_wrap=True)
        theme = TerminalTheme(BACKGROUND, FOREGROUND, [(0, 0, 0)] * 8)
        with TemporaryDirectory() as folder:
            page = Path(folder) / "screen.html"
            page.write_text(console.export_html(theme=theme, code_format=PAGE), encoding="utf-8")
            size = f"--window-size={COLUMNS * 7 + 76},{LINES * 15 + 16}"
            flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={folder}/p"]
            subprocess.run(
                ["chromium", *flags, size, f"--screenshot={path}", page.as_uri()], check=True, capture_output=True
            )

    def close(self) -> None:
        """Ends the program, if it has not ended already."""
        subprocess.run([*self._tmux, "kill-server"], capture_output=True, check=False)
