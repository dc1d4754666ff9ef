"""What a template argument means at file level: local constants, aliases and parameters replaced by what they are."""

import itertools
import re
from collections.abc import Mapping, Sequence

from attrs import evolve, field, frozen
from tree_sitter import Node

from agent.source.document import Document
from agent.source.kernel import TemplateParameter
from agent.source.kernels import template_parameters
from agent.source.lexing import word_set
from agent.source.names import names_in

_BUILTIN = word_set(
    "dim3 size_t half half2 __half __half2 __nv_bfloat16 __nv_bfloat162 nv_bfloat16 nv_bfloat162 uint cuComplex "
    "cuFloatComplex cuDoubleComplex cufftComplex __nv_fp8_e4m3 __nv_fp8_e5m2 std cuda cub thrust nvcuda unsigned uchar "
    "CUtensorMap"
)
_VECTOR = re.compile(r"u?(?:char|short|int|long|longlong|float|double)[1-4]\Z|u?int(?:ptr|max|\d+)_t\Z")
_CHAIN = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?:\s*::\s*[A-Za-z_]\w*)*")
_DISPATCHED = re.compile(r"\b(?:AT|C10|TORCH)_DISPATCH_\w+")
_OPERATOR = re.compile(r"[-+/%?|&^!~]\s*\w|\*\s*[\w(]")
_DEPTH = 6
_MOST = 8
_INDEX = re.compile(r"(?i)idx|ind(?:ex|ices)|offset|int|size|count|\bI\b|len")
_WHOLE = re.compile(
    r"(?:const\s+)?(?:unsigned|signed|int|short|long|char|size_t|std::size_t|u?int\d+_t|uint|unsigned\s+int|\s)+"
)
_SIZES = (
    (re.compile(r"(?i)log"), "5"),
    (re.compile(r"(?i)warp"), "32"),
    (re.compile(r"(?i)vec|pack|unroll|item|iter|num|stage|rank|per"), "4"),
    (re.compile(r"(?i)dim|head"), "64"),
    (re.compile(r"(?i)block|thread|tile|width|size|bd|bm|bn|bk"), "32"),
)


@frozen
class Value:
    text: str
    assumed: tuple[str, ...] = ()


@frozen(eq=False)
class Scope:
    """Where an argument stands: at ``offset`` in ``function`` of ``document`` or, for a macro call at that place, in
    what it stands for (``expanded``). ``given`` are the names of the unit, each as file level has it, ``environment``
    tells what the function's own template parameters are."""

    document: Document
    function: Node | None
    given: Mapping[str, str]
    offset: int
    expanded: Document | None
    stand_ins: str
    inside: int = 0
    environment: Mapping[str, Value] = field(factory=dict)

    def within(self, environment: Mapping[str, Value]) -> "Scope":
        return evolve(self, environment=environment)

    def at(self, inside: int) -> "Scope":
        """At an offset of what the macro call stands for."""
        return evolve(self, inside=inside)

    def before(self) -> str:
        """The code of the function up to the place."""
        start = self.function.start_byte if self.function is not None else self.offset
        text = self.document.text[start : self.offset]
        text += self.expanded.text[: self.inside] if self.expanded is not None else b""
        return text.decode("utf-8", "replace")

    def parameters(self) -> Sequence[TemplateParameter]:
        """The template parameters of the function."""
        outer = self.function.parent if self.function is not None else None
        if outer is None or outer.type != "template_declaration":
            return ()
        return tuple(template_parameters(self.document.text, outer))


def resolved(scope: Scope, argument: str, parameter: TemplateParameter | None) -> list[Value]:
    """The argument in names that hold at file level: none where one of its names cannot be known."""
    return _resolved(scope, argument, parameter, 0)


def _resolved(scope: Scope, argument: str, parameter: TemplateParameter | None, depth: int) -> list[Value]:
    if depth > _DEPTH:
        return []
    heads: dict[str, list[Value]] = {}
    for chain in _CHAIN.findall(argument):
        names = [part.strip() for part in chain.split("::")]
        head = names[0]
        if head in heads or not names_in(head.encode()) or head in _BUILTIN or _VECTOR.match(head):
            continue
        values = _meanings(scope, names, depth)
        if not values and argument.strip() == head:
            values = _assumed(scope, head, parameter)
        if not values:
            return []
        heads[head] = values
    results = []
    for chosen in itertools.islice(itertools.product(*heads.values()), _MOST):
        meaning = dict(zip(heads, chosen, strict=True))
        text = _CHAIN.sub(lambda match, known=meaning: _put_in(match.group(), known), argument)  # type: ignore[misc]
        results.append(Value(text, tuple(text for value in chosen for text in value.assumed)))
    return results


def _put_in(chain: str, meaning: Mapping[str, Value]) -> str:
    head, colons, rest = chain.partition("::")
    value = meaning.get(head.strip())
    return chain if value is None else f"{value.text}{colons}{rest}"


def _meanings(scope: Scope, names: Sequence[str], depth: int) -> list[Value]:
    """What the first of some names that are joined by ``::`` stands for."""
    head = names[0]
    known = scope.environment.get(head)
    if known is not None:
        return [known]
    local = _local(scope, head)
    if local is not None:
        values = _resolved(scope, local, None, depth + 1)
        computed = _OPERATOR.search(local)
        return [Value(f"({value.text})" if computed else value.text, value.assumed) for value in values]
    parameters = {parameter.name: parameter for parameter in scope.parameters()}
    if head in parameters:
        return _assumed(scope, head, parameters[head])
    if head in scope.given:
        return [Value(scope.given[head])]
    if any(name in scope.given for name in names):
        return [Value(head)]
    # a constant of a header that is not read, such as an enumerator of CUB
    return [Value(head)] if head.isupper() and b"using namespace" in scope.document.text else []


def _local(scope: Scope, name: str) -> str | None:
    """The value of the last constant or alias by that name before the place, as it is written."""
    word = re.escape(name)
    found = None
    for match in re.finditer(
        rf"\busing\s+{word}\s*=\s*(?:typename\s+)?([^;]+);|\btypedef\s+(?:typename\s+)?([^;]+?)\s+{word}\s*;|"
        rf"\bconst(?:expr)?\s+(?:static\s+)?(?:[\w:]+\s+){{1,3}}{word}\s*(?:=\s*([^;,{{}}]+?)|{{([^;{{}}]*)}})\s*[;,]|"
        rf"\benum\s*(?::\s*\w+\s*)?{{\s*{word}\s*=\s*([^,;}}]+)\s*}}",
        scope.before(),
    ):
        found = next(filter(None, match.groups()), None)
    return " ".join(found.split()) if found and found.strip() != name else None


def _assumed(scope: Scope, name: str, parameter: TemplateParameter | None) -> list[Value]:
    if name == "scalar_t" and _DISPATCHED.search(scope.before()):
        return [Value("float"), Value("double")]  # what PyTorch's macros name among others, all of them
    if not scope.stand_ins or parameter is None:
        return []
    value = stand_in(evolve(parameter, name=name), scope.given, scope.stand_ins)
    return [value] if value is not None else []


def stand_in(parameter: TemplateParameter, given: Mapping[str, str], kind: str) -> Value | None:
    """Something that may be put in for a template parameter that nothing in sight fixes, and the words that say so.

    ``kind`` is a type, or ``1`` for the smallest numbers that may do, with ``float``.
    """
    name = parameter.name or "an unnamed parameter"
    if parameter.kind == "type":
        text = "int" if _INDEX.search(parameter.name) else "float" if kind == "1" else kind
    elif parameter.type.strip() == "bool":
        text = "false"
    elif _WHOLE.fullmatch(parameter.type.strip()):
        text = "1" if kind == "1" else next((size for one, size in _SIZES if one.search(parameter.name)), "4")
    elif parameter.type.strip() in given:
        text = f"({given[parameter.type.strip()]})0"
    else:
        return None
    return Value(text, (f"{name} = {text}",))
