"""How packs come and go: each checked for itself, or whole ones that are known to be there and aligned."""

from attrs import frozen

from agent.ideas.rewriting import fresh_name
from agent.ideas.view import View

PACK = """\
// `width` neighbouring elements, which one instruction moves (several, beyond 16 bytes).
template <typename T, int width>
struct alignas(sizeof(T) * width < 16 ? sizeof(T) * width : 16) {pack} {{
    T v[width];
}};
"""
LOAD = """
// The elements from `first` on: whole where all are there and aligned, else the first `count` one by one.
template <int width, typename T>
__device__ __forceinline__ {pack}<T, width> {load}(const T* first, long long count) {{
    if (count >= width && (size_t)first % alignof({pack}<T, width>) == 0) {{
        return *reinterpret_cast<const {pack}<T, width>*>(first);
    }}
    {pack}<T, width> some = {{}};
    #pragma unroll
    for (int k = 0; k < width; ++k) {{
        if (k < count) some.v[k] = first[k];
    }}
    return some;
}}
"""
STORE = """\
// Writes elements from `first` on: whole where there is room for all and it is aligned, else the first `count` alone.
template <int width, typename T>
__device__ __forceinline__ void {store}(T* first, const {pack}<T, width>& values, long long count) {{
    if (count >= width && (size_t)first % alignof({pack}<T, width>) == 0) {{
        *reinterpret_cast<{pack}<T, width>*>(first) = values;
        return;
    }}
    #pragma unroll
    for (int k = 0; k < width; ++k) {{
        if (k < count) first[k] = values.v[k];
    }}
}}
"""
WHOLE = """
// The elements from `first` on as one pack: all of them are there, and aligned.
template <int width, typename T>
__device__ __forceinline__ {pack}<T, width>& {load}(T* first) {{
    return *reinterpret_cast<{pack}<T, width>*>(first);
}}

template <int width, typename T>
__device__ __forceinline__ const {pack}<T, width>& {load}(const T* first) {{
    return *reinterpret_cast<const {pack}<T, width>*>(first);
}}
"""


@frozen
class Moving:
    """``whole``: the packs are known to be there and aligned; else each is moved as far as it can be. ``put`` is not
    used for whole ones."""

    width: int
    whole: bool
    pack: str
    get: str
    put: str

    def load(self, address: str, count: str) -> str:
        """The pack at an address, of which ``count`` elements are there."""
        return f"{self.get}<{self.width}>({address})" if self.whole else f"{self.get}<{self.width}>({address}, {count})"

    def store(self, address: str, name: str, count: str) -> str:
        if self.whole:
            return f"{self.get}<{self.width}>({address}) = {name};"
        return f"{self.put}({address}, {name}, {count});"

    def helpers(self, stores: bool) -> tuple[str, ...]:
        names = {"pack": self.pack, "load": self.get, "store": self.put}
        if self.whole:
            return ((PACK + WHOLE).format(**names),)
        return (PACK + LOAD).format(**names), *((STORE.format(**names),) if stores else ())


def moving(view: View, width: int, whole: bool) -> Moving:
    names = ("Pack", "pack_at" if whole else "load_pack", "store_pack")
    return Moving(width, whole, *(fresh_name(name, view.document) for name in names))
