"""L14: functions that the runtime no longer has."""

from collections.abc import Iterator

from tree_sitter import Node

from agent.analysis.host import HostFunction
from agent.analysis.rules.finding import Cost, Hit, Severity, hit
from agent.analysis.rules.mending import replaced
from agent.analysis.rules.registry import host_rule

KERNEL = "__global__ void step(float* x) { x[threadIdx.x] += 1.0f; }\n"
FIRES = (
    KERNEL
    + """\
void run(float* x) {
    step<<<1, 256>>>(x);
    cudaThreadSynchronize();  // L14
}
"""
)
PRESENT = (
    KERNEL
    + """\
void run(float* x) {
    step<<<1, 256>>>(x);
#if CUDART_VERSION < 4000
    cudaThreadSynchronize();
#else
    cudaDeviceSynchronize();
#endif
}
"""
)
INSTEAD = {
    "cudaThreadSynchronize": "cudaDeviceSynchronize",
    "cudaThreadExit": "cudaDeviceReset",
    "cudaThreadGetLimit": "cudaDeviceGetLimit",
    "cudaThreadSetLimit": "cudaDeviceSetLimit",
    "cudaThreadSetCacheConfig": "cudaDeviceSetCacheConfig",
}
GONE = {
    "cudaBindTexture": "texture objects",
    "cudaBindTexture2D": "texture objects",
    "cudaBindTextureToArray": "texture objects",
    "cudaUnbindTexture": "texture objects",
    "cudaConfigureCall": "cudaLaunchKernel",
    "cudaSetupArgument": "cudaLaunchKernel",
    "cudaMemcpyToArray": "cudaMemcpy2DToArray",
    "cudaMemcpyFromArray": "cudaMemcpy2DFromArray",
}


@host_rule(
    id="L14",
    name="removed-call",
    title="A function that the runtime no longer has",
    why="cudaThread... functions and texture references are deprecated, or gone from current toolkits.",
    cost=Cost.RESULT,
    severity=Severity.WARNING,
    silent_when=("it stands inside an #if",),
    fires=(FIRES,),
    silent=(PRESENT,),
)
def removed_call(host: HostFunction) -> Iterator[Hit]:
    for call in host.named(*INSTEAD, *GONE):
        if _conditional(call.node):
            continue
        instead = INSTEAD.get(call.name)
        name = call.node.child_by_field_name("function")
        mend = replaced(f"Write {instead}", (name, instead)) if instead is not None and name is not None else None
        yield hit(
            call.node,
            f"{call.name} is deprecated or gone in current toolkits: use {instead or GONE[call.name]}",
            mend=mend,
        )


def _conditional(node: Node) -> bool:
    above = node.parent
    while above is not None:
        if above.type.startswith("preproc_"):
            return True
        above = above.parent
    return False
