"""HTML and SVG put together so that no text can become markup: what is no :class:`Markup` is escaped."""

import html
import unicodedata
from collections.abc import Iterable


class Markup(str):
    """Text that is markup already. Only :func:`element` and :func:`joined` make it."""

    __slots__ = ()


Child = str | Iterable[str]
_EMPTY = frozenset({"meta", "br", "rect", "line", "circle", "path"})
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
_BLANKS = str.maketrans("\n\r\t", "   ")


def element(tag: str, /, *children: Child, **attributes: str | float | None) -> Markup:
    """``<tag attributes>children</tag>``. Attributes that are None are left out; ``_`` in their names stands for
    ``-``, and one at the end for nothing (``class_``)."""
    told = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escaped(_short(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    body = joined(*children)
    return Markup(f"<{tag}{told}/>" if tag in _EMPTY and not body else f"<{tag}{told}>{body}</{tag}>")


def joined(*children: Child) -> Markup:
    """The children one after the other."""
    return Markup("".join(_one(child) for child in children))


def escaped(text: str) -> str:
    """Text as it may stand in markup: no character of its own means anything, and no invisible one reorders it."""
    plain = text.translate(_BLANKS)
    visible = "".join("\ufffd" if unicodedata.category(one) in _INVISIBLE else one for one in plain)
    return html.escape(visible)


def _one(child: Child) -> str:
    if isinstance(child, Markup):
        return child
    return escaped(child) if isinstance(child, str) else joined(*child)


def _short(value: str | float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
