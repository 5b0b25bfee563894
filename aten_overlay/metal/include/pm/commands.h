// Structures of <metal_stdlib> that kernels fill for draws, dispatches and tessellation that the host code asks for.
#pragma once

struct MTLDispatchThreadgroupsIndirectArguments {
  uint threadgroupsPerGrid[3];
};
struct MTLStageInRegionIndirectArguments {
  uint stageInOrigin[3];
  uint stageInSize[3];
};
struct MTLDrawPrimitivesIndirectArguments {
  uint vertexCount, instanceCount, vertexStart, baseInstance;
};
struct MTLDrawIndexedPrimitivesIndirectArguments {
  uint indexCount, instanceCount, indexStart;
  int baseVertex;
  uint baseInstance;
};
struct MTLDrawPatchIndirectArguments {
  uint patchCount, instanceCount, patchStart, baseInstance;
};
struct MTLIndirectCommandBufferExecutionRange {
  uint location, length;
};
struct MTLQuadTessellationFactorsHalf {
  half edgeTessellationFactor[4];
  half insideTessellationFactor[2];
};
struct MTLTriangleTessellationFactorsHalf {
  half edgeTessellationFactor[3];
  half insideTessellationFactor;
};
