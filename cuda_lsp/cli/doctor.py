"""``cuda-lsp doctor``: what this machine can do, what is missing, and the command that mends it."""

import json
import os
from pathlib import Path

import click

from agent.execution.machine import Capability, capabilities
from agent.execution.sass import disassembler
from agent.inference.capture.building import find_compiler
from agent.inference.capture.cupti import NEWEST, find_cupti
from agent.inference.capture.errors import CaptureError
from agent.models.keys import find_key, is_loopback
from agent.models.settings import read_model
from agent.workload.database import NAME, entries_of, near
from agent.workload.settings import SettingsError, read_settings
from cuda_lsp.answers import answer, project_of
from cuda_lsp.terminal.exits import Exit
from cuda_lsp.terminal.output import envelope

_SAID = {
    True: "allowed for good",
    False: "not asked in this project, as you said in the editor",
    None: "you are asked before anything is sent",
}


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output (docs/json.md).")
def command(as_json: bool) -> int:
    """Say what this machine can do, what is missing, and the command that mends it."""
    found = (*capabilities(), _disassembler(), _recorder(), _build(), _model())
    code = Exit.OK if all(capability.present for capability in found if capability.required) else Exit.MACHINE
    if as_json:
        click.echo(json.dumps(envelope("doctor", code, capabilities=found)))
        return code
    width = max(len(capability.name) for capability in found)
    for capability in found:
        mark = "yes" if capability.present else "NO " if capability.required else "no "
        click.echo(f"{mark}  {capability.name:<{width}}  {capability.detail}")
        if not capability.present and capability.mend:
            click.echo(f"     {'':<{width}}  mend: {capability.mend}")
    return code


def _disassembler() -> Capability:
    """What `cuda-lsp profile --sass` needs."""
    found = disassembler()
    if found is None:
        return Capability("nvdisasm", False, "machine code is not shown", "pip install nvidia-cuda-nvdisasm")
    return Capability("nvdisasm", True, str(found))


def _recorder() -> Capability:
    """What `cuda-lsp capture` needs beside a card. Nothing is built."""
    try:
        cupti, compiler = find_cupti(NEWEST), find_compiler()
    except CaptureError as error:
        return Capability("capture", False, "launches cannot be recorded", str(error))
    version = ".".join(map(str, cupti.version))
    return Capability("capture", True, f"CUPTI of CUDA {version}, {compiler}")


def _build() -> Capability:
    """The database of compiler flags for the project in this folder."""
    _, database = next(near(Path.cwd()), (None, None))
    if database is None:
        missing = "none here: flags come from directives and .cuda-lsp.toml alone"
        return Capability(NAME, False, missing, "cmake -DCMAKE_EXPORT_COMPILE_COMMANDS=ON, or bear -- make")
    found = entries_of(database)
    if isinstance(found, str):
        return Capability(NAME, False, found, "build the project anew, or name the flags in .cuda-lsp.toml")
    return Capability(NAME, True, f"{database}, {found} CUDA file{'' if found == 1 else 's'}")


def _model() -> Capability:
    """Which language model the project in this folder names. It is not asked."""
    try:
        settings = read_settings(Path.cwd())
        stated = read_model(settings.model, settings.path)
    except SettingsError as error:
        return Capability("language model", False, str(error), "correct the settings")
    if not stated.name or not stated.endpoint:
        missing = "none is set: ideas come from the catalogue alone"
        return Capability("language model", False, missing, "name one under [model] in .cuda-lsp.toml (docs/models.md)")
    key = find_key(stated.endpoint, os.environ)
    said = answer(stated.endpoint, project_of(settings.path))
    parts = [
        f"{stated.name} at {stated.endpoint}{' (this machine)' if is_loopback(stated.endpoint) else ''}",
        f"key from {key.origin}" if key.value else "no key",
        _SAID[said],
    ]
    return Capability("language model", True, ", ".join(parts))
