"""System calls by number, for the processors that NVIDIA's driver for Linux runs on (asm/unistd_64.h, asm-generic)."""

import platform

from attrs import frozen

_NONE = -1

_NEVER = {
    # another program, another process
    "execve": (59, 221), "execveat": (322, 281), "fork": (57, _NONE), "vfork": (58, _NONE), "ptrace": (101, 117),
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kill": (62, 129), "tkill": (200, 130),
    "pidfd_open": (434, 434), "pidfd_getfd": (438, 438), "pidfd_send_signal": (424, 424),
    # the network, and what would lead around these rules
    "socket": (41, 198), "io_uring_setup": (425, 425), "userfaultfd": (323, 282), "bpf": (321, 280),
    "perf_event_open": (298, 241),
    # files: none is made, renamed, linked, cut short, given away or taken away
    "creat": (85, _NONE), "truncate": (76, 45), "rename": (82, _NONE), "renameat": (264, 38), "renameat2": (316, 276),
    "unlink": (87, _NONE), "unlinkat": (263, 35), "rmdir": (84, _NONE), "mkdir": (83, _NONE), "mkdirat": (258, 34),
    "link": (86, _NONE), "linkat": (265, 37), "symlink": (88, _NONE), "symlinkat": (266, 36), "mknod": (133, _NONE),
    "mknodat": (259, 33), "chmod": (90, _NONE), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "chown": (92, _NONE), "fchown": (93, 55), "lchown": (94, _NONE), "fchownat": (260, 54), "setxattr": (188, 5),
    "lsetxattr": (189, 6), "fsetxattr": (190, 7), "open_by_handle_at": (304, 265),
    # the machine
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "setns": (308, 268),
    "unshare": (272, 97), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsmount": (432, 432), "mount_setattr": (442, 442), "add_key": (248, 217), "request_key": (249, 218),
    "keyctl": (250, 219), "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106),
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "reboot": (169, 142), "swapon": (167, 224),
    "swapoff": (168, 225),
}  # fmt: skip

_LOOKED_INTO = {
    "open": (2, _NONE), "openat": (257, 56), "clone": (56, 220), "tgkill": (234, 131), "prlimit64": (302, 261),
    "clone3": (435, 435), "openat2": (437, 437), "seccomp": (317, 277),
}  # fmt: skip


@frozen
class Calls:
    """``audit``: the processor as the kernel calls it. ``never``: numbers of what is refused whatever its arguments,
    ``number`` of the rest by name; ``least_foreign``: where another processor's calls begin, 0 for nowhere."""

    audit: int
    never: tuple[int, ...]
    number: dict[str, int]
    least_foreign: int


def calls(machine: str = "") -> Calls | None:
    """Those of this processor, or of ``machine``; None for one that is not known."""
    column = {"x86_64": 0, "aarch64": 1}.get(machine or platform.machine())
    if column is None:
        return None
    return Calls(
        (0xC000003E, 0xC00000B7)[column],
        tuple(numbers[column] for numbers in _NEVER.values() if numbers[column] != _NONE),
        {name: numbers[column] for name, numbers in _LOOKED_INTO.items() if numbers[column] != _NONE},
        (0x40000000, 0)[column],
    )
