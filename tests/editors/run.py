"""run.py EDITORS SERVER [--pictures] [WORD]: drives real Neovim and real VS Code (code-server) against `SERVER serve`.

EDITORS is the folder that `install` filled. Each driver prints one line a check (`ok   NAME` or `FAIL NAME`); the last
line here adds them up. Everything that a run writes lies in EDITORS/run; `--pictures` also renews docs/images. WORD
leaves out the drivers without that word in their titles. The two editors are driven side by side,
each with a state folder of its own: an answer that one takes back is not the other's.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from json import dumps
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT))

from tests.models.endpoint import Endpoint, answer, serving  # noqa: E402 (a script knows its own folder only)
from tests.models.searching import by_question, in_turn  # noqa: E402

EXTENSION = ROOT / "editors" / "vscode"

CODE_SETTINGS = {
    "workbench.colorTheme": "Default Dark Modern",
    "workbench.startupEditor": "none",
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "workbench.tips.enabled": False,
    "editor.codeLens": True,
    "editor.inlayHints.enabled": "on",
    "editor.minimap.enabled": False,
    "diffEditor.renderSideBySide": True,
    "diffEditor.useInlineViewWhenSpaceIsLimited": False,
    "files.autoSave": "off",
    "git.enabled": False,
    "chat.disableAIFeatures": True,
    "telemetry.telemetryLevel": "off",
    "update.mode": "none",
    "extensions.autoCheckUpdates": False,
    "extensions.ignoreRecommendations": True,
}

SCRIPTS = (("session", 200), ("menu", 300), ("plan", 330), ("model", 150), ("index", 150), ("health", 60))
"""Headless Neovim: the script, and the seconds that it may take."""

KEY = "sk-editors-0123456789"
IDEA = """\
__global__ void scale_add(const float* x, float* y, float a, int rows, int cols) {
    int swapped = blockIdx.x * blockDim.x + threadIdx.y;
    int col = blockIdx.y * blockDim.y + threadIdx.x;
    if (swapped < rows && col < cols) {
        y[swapped * cols + col] = a * x[swapped * cols + col];
    }
}"""
"""What a language model makes of an idea in words."""


class Tally:
    """Counts of the checks that the drivers printed."""

    def __init__(self, only: str) -> None:
        self.passed = 0
        self.failed = 0
        self.only = only
        self.lock = threading.Lock()

    def check(self, name: str, holds: bool) -> None:
        self.count([f"{'ok  ' if holds else 'FAIL'} {name}"])

    def count(self, lines: list[str]) -> int:
        """Repeats the lines of a driver, and gives how many of them are failures."""
        failed = sum(line.startswith("FAIL ") for line in lines)
        with self.lock:
            print("\n".join(lines), flush=True)
            self.passed += sum(line.startswith("ok ") for line in lines)
            self.failed += failed
        return failed

    def drive(self, title: str, command: list[str], env: dict[str, str], seconds: float) -> None:
        """Runs one driver, repeats its lines, and adds one failure if it ended badly without saying which check."""
        start = time.monotonic()
        process = subprocess.Popen(
            command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        try:
            output, errors = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            stop(process)
            output, errors = process.communicate()
            output += f"\nFAIL {title}: no end after {seconds:.0f} s"
        lines = output.rstrip().splitlines()
        bad = any(line.startswith("FAIL ") for line in lines)
        if process.returncode != 0 and not bad:
            lines.append(f"FAIL {title} ended with {process.returncode}")
            bad = True
        if bad:
            lines += ["", *errors.rstrip().splitlines()]
        self.count([f"-- {title}", *lines, f"   {time.monotonic() - start:.1f} s"])


def stop(process: subprocess.Popen[str] | subprocess.Popen[bytes]) -> None:
    """Ends a process and all of its group."""
    for kind in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, kind)
            process.wait(5)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue


def workspace(folder: Path, endpoint: str = "") -> Path:
    """A fresh repository with the samples in it, as a user would open it, and with the model that its project names."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copy(HERE / "scale.cu", folder)
    shutil.copy(ROOT / "fixtures" / "scan.cu", folder)
    if endpoint:
        (folder / ".cuda-lsp.toml").write_text(f'[model]\nname = "scripted"\nendpoint = "{endpoint}"\n')
    git = ["git", "-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "commit.gpgsign=false"]
    for command in (
        ["init", "--quiet"],
        ["add", "scale.cu", "scan.cu"],
        ["commit", "--quiet", "--message", "the samples"],
    ):
        subprocess.run([*git, *command], cwd=folder, check=True)
    return folder


@contextmanager
def model(tally: Tally, title: str) -> Iterator[Endpoint]:
    """A language model with one idea. Afterwards it has to have been asked, with the key that the user gave."""
    told = {"title": "walk straight on", "why": "a warp reads neighbours", "risk": "none", "scope": "relaunch"}
    code = dumps({"code": IDEA, "plan": [], "rationale": "a warp reads neighbours"})
    with serving(by_question(answer(dumps({"ideas": [told]})), in_turn(code))) as endpoint:
        yield endpoint
        asked = {headers.get("authorization") for headers in endpoint.headers}
        tally.check(f"{title}: the model was asked, with the user's key", asked == {f"Bearer {KEY}"})
        tally.check(f"{title}: and told the idea", any("swap the indices" in str(one) for one in endpoint.requests))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def code_server(editors: Path, folder: Path, data: Path, server: str, env: dict[str, str]) -> Iterator[str]:
    """A running code-server with the packaged extension in it; gives its address."""
    shutil.rmtree(data, ignore_errors=True)
    for name in ("User", "Machine", "home"):
        (data / name).mkdir(parents=True)
    (data / "User" / "settings.json").write_text(dumps(CODE_SETTINGS))
    # code-server is a remote window: settings that name a program count only as machine settings.
    (data / "Machine" / "settings.json").write_text(dumps({"cuda-lsp.command": [server, "serve"]}))
    (data / "config.yaml").write_text("")
    port = free_port()
    # No gallery: an address where nothing listens keeps the editor from looking extensions up.
    env = env | {
        "HOME": str(data / "home"),
        "XDG_CONFIG_HOME": str(data / "home" / ".config"),
        "XDG_DATA_HOME": str(data / "home" / ".local"),
        "EXTENSIONS_GALLERY": dumps({"serviceUrl": "http://127.0.0.1:9"}),
    }
    base = [str(editors / "code-server/node_modules/.bin/code-server"), "--user-data-dir", str(data)]
    base += ["--extensions-dir", str(data / "extensions"), "--config", str(data / "config.yaml")]
    install = [*base, "--install-extension", str(EXTENSION / "dist" / "cuda-lsp.vsix")]
    with (data / "server.log").open("w") as log:
        subprocess.run(install, env=env, stdout=log, stderr=log, check=True, timeout=60)
        serve = [*base, "--auth", "none", "--bind-addr", f"127.0.0.1:{port}", "--disable-telemetry"]
        serve += ["--disable-update-check", "--disable-getting-started-override", "--disable-workspace-trust"]
        process = subprocess.Popen([*serve, str(folder)], env=env, stdout=log, stderr=log, start_new_session=True)
        try:
            address = f"http://127.0.0.1:{port}"
            wait_until_up(address, process, data / "server.log")
            yield address
        finally:
            stop(process)


def wait_until_up(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Returns when code-server answers.

    Raises:
        RuntimeError: it ended, or was silent for 30 seconds.
    """
    for _ in range(300):
        if process.poll() is not None:
            break
        try:
            with urllib.request.urlopen(f"{address}/healthz", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise RuntimeError("code-server did not come up:\n" + log.read_text()[-2000:])


def main() -> int:
    editors, server = Path(sys.argv[1]).resolve(), shutil.which(sys.argv[2])
    if server is None:
        print(f"FAIL no server at {sys.argv[2]}\n0 passed, 1 failed")
        return 1
    server = str(Path(server).absolute())
    out = editors / "run"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    env = os.environ | {
        "EDITORS": str(editors),
        "PATH": f"{editors / 'node'}:{os.environ['PATH']}",
        "CUDA_LSP": server,
        "PLUGIN": str(ROOT / "editors" / "neovim"),
        "HOME": str(out / "home"),
        "MODEL_KEY": KEY,
    }
    env.pop("CUDA_LSP_API_KEY", None)
    if "--pictures" in sys.argv:
        env["PICTURES"] = str(ROOT / "docs" / "images")
    words = [word for word in sys.argv[3:] if not word.startswith("-")]
    tally = Tally(words[0] if words else "")
    start = time.monotonic()
    with ThreadPoolExecutor() as pool:
        for driven in [
            pool.submit(neovim, tally, editors, out, env | {"XDG_STATE_HOME": str(out / "neovim-state")}),
            pool.submit(vscode, tally, editors, out, env | {"XDG_STATE_HOME": str(out / "vscode-state")}, server),
        ]:
            driven.result()
    print(f"-- all of it: {time.monotonic() - start:.0f} s\n{tally.passed} passed, {tally.failed} failed")
    return 1 if tally.failed or not tally.passed else 0


def neovim(tally: Tally, editors: Path, out: Path, env: dict[str, str]) -> None:
    nvim = str(editors / "tools/bin/nvim")
    for name, seconds in SCRIPTS:
        title = f"Neovim: {name}"
        if tally.only in title:
            script = ["--headless", "--clean", "--cmd", f"set rtp^={env['PLUGIN']}"]
            script += ["-l", str(HERE / f"neovim/{name}.lua")]
            with model(tally, title) if name == "model" else nullcontext() as endpoint:
                folder = workspace(out / f"neovim-{name}", endpoint.url if endpoint else "")
                told = {"WORKSPACE": str(folder)} | ({"CUDA_LSP_API_KEY": KEY} if endpoint else {})
                tally.drive(title, [nvim, *script], env | told, seconds)
    title = "Neovim: on a terminal"
    if tally.only in title:
        folder = workspace(out / "neovim-screen")
        tally.drive(title, [sys.executable, str(HERE / "neovim/screen.py"), nvim, str(folder), str(out)], env, 240)


def vscode(tally: Tally, editors: Path, out: Path, env: dict[str, str], server: str) -> None:
    node = str(editors / "node/node")
    title = "VS Code: in its extension host"
    if tally.only in title:
        folder = workspace(out / "vscode-host")
        with code_server(editors, folder, out / "host-data", server, env) as address:
            suite = [str(folder), str(EXTENSION), str(HERE / "vscode/suite.cjs"), str(out)]
            tally.drive(title, [node, str(HERE / "vscode/host.mjs"), address, *suite], env, 300)
    title = "VS Code: on the screen"
    if tally.only in title:
        with model(tally, title) as endpoint:
            folder, data = workspace(out / "vscode-screen", endpoint.url), out / "screen-data"
            with code_server(editors, folder, data, server, env) as address:
                screen = [node, str(HERE / "vscode/screen.mjs"), address, str(folder), str(out)]
                tally.drive(title, screen, env, 480)
            tally.check(f"{title}: the key is in no file of the editor", not holding(data, KEY.encode()))


def holding(folder: Path, text: bytes) -> list[Path]:
    """The files that hold a text."""
    return [file for file in folder.rglob("*") if file.is_file() and text in file.read_bytes()]


if __name__ == "__main__":
    sys.exit(main())
