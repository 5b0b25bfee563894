#define TORCH_ASSERT_ONLY_METHOD_OPERATORS
#include <ATen/ExpandUtils.h>
#include <ATen/ScalarOps.h>
#include <ATen/native/BinaryOps.h>
#include <ATen/native/mps/OperationUtils.h>

#ifndef AT_PER_OPERATOR_HEADERS
#include <ATen/Functions.h>
#include <ATen/NativeFunctions.h>
#else
#include <ATen/ops/atan2_native.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/eq_native.h>
#include <ATen/ops/floor_divide_native.h>
#include <ATen/ops/fmod_native.h>
#include <ATen/ops/hypot_native.h>
#include <ATen/ops/lerp_native.h>
#include <ATen/ops/logaddexp_native.h>
#include <ATen/ops/lt_native.h>
#include <ATen/ops/remainder_native.h>
#include <ATen/ops/result_type.h>
#endif

namespace at::native {
namespace mps {

struct BinaryOpCachedGraph : public MPSCachedGraph {
  BinaryOpCachedGraph(MPSGraph* graph) : MPSCachedGraph(graph) {}
  MPSGraphTensor *primaryTensor = nil, *secondaryTensor = nil;
  MPSGraphTensor *alphaTensor = nil, *outputTensor = nil;
};

typedef MPSGraphTensor* (^BinaryOpBlock)(BinaryOpCachedGraph*, MPSGraphTensor*, MPSGraphTensor*);
#define BinaryOpFn(graph, primary, secondary) \
  MPSGraphTensor*(mps::BinaryOpCachedGraph * graph, MPSGraphTensor * primary, MPSGraphTensor * secondary)

// `alpha` is read only by blocks that set alphaTensor
static void binaryOpTensor(const Tensor& self,
                           const Tensor& other,
                           const Scalar& alpha,
                           const Tensor& output_,
                           const std::string& op_name,
                           BinaryOpBlock binaryBlock) {
  const auto new_size = at::infer_size(self.sizes(), other.sizes());
  if (!output_.sizes().equals(new_size)) {
    output_.resize_(new_size);
  }
  if (output_.numel() == 0) {
    return;
  }

  MPSStream* mpsStream = getCurrentMPSStream();
  const bool needsCopyToOutput = needsGather(output_);
  const Tensor output = needsCopyToOutput ? at::empty_like(output_, MemoryFormat::Contiguous) : output_;

  const auto inputDataType = self.scalar_type();
  const auto otherDataType = other.scalar_type();
  const auto outputDataType = output_.scalar_type();
  auto common_dtype = at::result_type(self, other);
  // Integers are computed in the type of the output when that is floating
  if (isIntegralType(common_dtype, /*includeBool=*/true) && isFloatingType(outputDataType)) {
    common_dtype = outputDataType;
  }

  @autoreleasepool {
    const auto key = op_name + getTensorsStringKey({self, other, output});
    auto cachedGraph = LookUpOrCreateCachedGraph<BinaryOpCachedGraph>(key, [&](auto mpsGraph, auto newCachedGraph) {
      newCachedGraph->primaryTensor = mpsGraphRankedPlaceHolder(mpsGraph, self);
      newCachedGraph->secondaryTensor = mpsGraphRankedPlaceHolder(mpsGraph, other);

      MPSGraphTensor* primaryCastTensor = castMPSTensor(mpsGraph, newCachedGraph->primaryTensor, common_dtype);
      MPSGraphTensor* secondaryCastTensor = castMPSTensor(mpsGraph, newCachedGraph->secondaryTensor, common_dtype);
      MPSGraphTensor* resultTensor = binaryBlock(newCachedGraph, primaryCastTensor, secondaryCastTensor);
      newCachedGraph->outputTensor = castMPSTensor(mpsGraph, resultTensor, outputDataType);
    });

    NSMutableDictionary* feeds = [[NSMutableDictionary new] autorelease];
    Placeholder selfPlaceholder, otherPlaceholder;
    MPSScalar self_scalar, other_scalar, alpha_scalar;
    // A tensor on the CPU is a scalar, and fed by value
    if (self.dim() == 0 && !self.is_mps()) {
      self_scalar = getMPSScalar(self.item(), inputDataType);
      feeds[cachedGraph->primaryTensor] = getMPSGraphTensorFromScalar(mpsStream, self_scalar);
    } else {
      selfPlaceholder = Placeholder(cachedGraph->primaryTensor, self, getMPSScalarType(inputDataType));
      feeds[selfPlaceholder.getMPSGraphTensor()] = selfPlaceholder.getMPSGraphTensorData();
    }
    if (other.dim() == 0 && !other.is_mps()) {
      other_scalar = getMPSScalar(other.item(), otherDataType);
      feeds[cachedGraph->secondaryTensor] = getMPSGraphTensorFromScalar(mpsStream, other_scalar);
    } else {
      otherPlaceholder = Placeholder(cachedGraph->secondaryTensor, other, getMPSScalarType(otherDataType));
      feeds[otherPlaceholder.getMPSGraphTensor()] = otherPlaceholder.getMPSGraphTensorData();
    }
    if (cachedGraph->alphaTensor) {
      alpha_scalar = getMPSScalar(alpha, common_dtype);
      feeds[cachedGraph->alphaTensor] = getMPSGraphTensorFromScalar(mpsStream, alpha_scalar);
    }

    Placeholder outputPlaceholder = Placeholder(cachedGraph->outputTensor, output);
    runMPSGraph(mpsStream, cachedGraph->graph(), feeds, outputPlaceholder);
  }
  if (needsCopyToOutput) {
    output_.copy_(output);
  }
}

static void binaryOpScalar(const Tensor& self,
                           const Scalar& other,
                           const Scalar& alpha,
                           const Tensor& output,
                           const std::string& op_name,
                           BinaryOpBlock binaryBlock) {
  binaryOpTensor(self, wrapped_scalar_tensor(other), alpha, output, op_name, binaryBlock);
}

// The quotient rounded as asked or, for the two remainders, what is left of self after that many times other.
static void div_mode_template(const Tensor& self,
                              const Tensor& other,
                              std::optional<std::string_view> rounding_mode,
                              const Tensor& output,
                              const std::string& op_name) {
  BinaryOpBlock div_mode_op_block = ^BinaryOpFn(cachedGraph, primaryCastTensor, secondaryCastTensor) {
    MPSGraph* mpsGraph = cachedGraph->graph();
    bool isFloatInput = ([primaryCastTensor dataType] & MPSDataTypeFloatBit) != 0;
    if (!isFloatInput) {
      primaryCastTensor = [mpsGraph castTensor:primaryCastTensor toType:MPSDataTypeFloat32 name:@"primaryCastTensor"];
      secondaryCastTensor = [mpsGraph castTensor:secondaryCastTensor
                                          toType:MPSDataTypeFloat32
                                            name:@"secondaryCastTensor"];
    }
    MPSGraphTensor* divTensor = [mpsGraph divisionWithPrimaryTensor:primaryCastTensor
                                                    secondaryTensor:secondaryCastTensor
                                                               name:nil];
    if (!rounding_mode.has_value()) {
      return divTensor;
    }
    MPSGraphTensor* roundTensor = *rounding_mode == "trunc" ? [mpsGraph truncateWithTensor:divTensor name:nil]
                                                            : [mpsGraph floorWithTensor:divTensor name:nil];
    if (op_name == "fmod_mps_out" || op_name == "remainder_out_mps") {
      auto mulTensor = [mpsGraph multiplicationWithPrimaryTensor:roundTensor
                                                 secondaryTensor:secondaryCastTensor
                                                            name:nil];
      return [mpsGraph subtractionWithPrimaryTensor:primaryCastTensor secondaryTensor:mulTensor name:nil];
    }
    return roundTensor;
  };
  binaryOpTensor(self, other, Scalar(1.0), output, op_name, div_mode_op_block);
}

} // namespace mps

#define CREATE_MPS_STRUCTURED_BOOLEAN_OP_FUNC(func_out, func_stub, other_type)                    \
  TORCH_IMPL_FUNC(func_out)(const Tensor& self, const other_type& other, const Tensor& output) {  \
    mps::binaryOp##other_type(self,                                                               \
                              other,                                                              \
                              Scalar(1.0),                                                        \
                              output,                                                             \
                              #func_stub,                                                         \
                              ^BinaryOpFn(cachedGraph, primaryCastTensor, secondaryCastTensor) {  \
                                MPSGraph* mpsGraph = cachedGraph->graph();                        \
                                return [mpsGraph func_stub##WithPrimaryTensor:primaryCastTensor   \
                                                              secondaryTensor:secondaryCastTensor \
                                                                         name:nil];               \
                              });                                                                 \
  }

CREATE_MPS_STRUCTURED_BOOLEAN_OP_FUNC(eq_scalar_out_mps, equal, Scalar)
CREATE_MPS_STRUCTURED_BOOLEAN_OP_FUNC(eq_tensor_out_mps, equal, Tensor)
CREATE_MPS_STRUCTURED_BOOLEAN_OP_FUNC(lt_scalar_out_mps, lessThan, Scalar)
CREATE_MPS_STRUCTURED_BOOLEAN_OP_FUNC(lt_tensor_out_mps, lessThan, Tensor)

TORCH_IMPL_FUNC(atan2_out_mps)(const Tensor& self, const Tensor& other, const Tensor& output) {
  TORCH_CHECK(self.scalar_type() != ScalarType::Long, "MPS does not support atan2 op with int64 input");
  mps::binaryOpTensor(
      self, other, Scalar(1.0), output, "atan2", ^BinaryOpFn(cachedGraph, primaryCastTensor, secondaryCastTensor) {
        MPSGraph* mpsGraph = cachedGraph->graph();
        return [mpsGraph atan2WithPrimaryTensor:primaryCastTensor secondaryTensor:secondaryCastTensor name:nil];
      });
}

TORCH_IMPL_FUNC(hypot_out_mps)(const Tensor& self, const Tensor& other, const Tensor& output) {
  mps::BinaryOpBlock hypot_op_block = ^BinaryOpFn(cachedGraph, primaryCastTensor, secondaryCastTensor) {
    MPSGraph* mpsGraph = cachedGraph->graph();
    MPSGraphTensor* twoTensor = [mpsGraph constantWithScalar:2.0 shape:@[ @1 ] dataType:primaryCastTensor.dataType];
    MPSGraphTensor* primarySquareTensor = [mpsGraph powerWithPrimaryTensor:primaryCastTensor
                                                           secondaryTensor:twoTensor
                                                                      name:nil];
    MPSGraphTensor* secondarySquareTensor = [mpsGraph powerWithPrimaryTensor:secondaryCastTensor
                                                             secondaryTensor:twoTensor
                                                                        name:nil];
    MPSGraphTensor* sumTensor = [mpsGraph additionWithPrimaryTensor:primarySquareTensor
                                                    secondaryTensor:secondarySquareTensor
                                                               name:nil];
    return [mpsGraph squareRootWithTensor:sumTensor name:nil];
  };
  mps::binaryOpTensor(self, other, Scalar(1.0), output, "hypot_out_mps", hypot_op_block);
}

TORCH_IMPL_FUNC(logaddexp_out_mps)(const Tensor& self, const Tensor& other, const Tensor& output) {
  mps::BinaryOpBlock logaddexp_op_block = ^BinaryOpFn(cachedGraph, primaryCastTensor, secondaryCastTensor) {
    MPSGraph* mpsGraph = cachedGraph->graph();
    MPSGraphTensor* maxTensor = [mpsGraph maximumWithPrimaryTensor:primaryCastTensor
                                                   secondaryTensor:secondaryCastTensor
                                                              name:nil];
    MPSGraphTensor* differenceTensor = [mpsGraph subtractionWithPrimaryTensor:primaryCastTensor
                                                              secondaryTensor:secondaryCastTensor
                                                                         name:nil];
    MPSGraphTensor* negatedTensor = [mpsGraph negativeWithTensor:[mpsGraph absoluteWithTensor:differenceTensor name:nil]
                                                            name:nil];
    return
        [mpsGraph additionWithPrimaryTensor:maxTensor
                            secondaryTensor:mps::log1p(mpsGraph, [mpsGraph exponentWithTensor:negatedTensor name:nil])
                                       name:nil];
  };
  mps::binaryOpTensor(self, other, Scalar(1.0), output, "logaddexp_out_mps", logaddexp_op_block);
}

TORCH_IMPL_FUNC(lerp_Scalar_mps)(const Tensor& self, const Tensor& end, const Scalar& weight, const Tensor& out) {
  mps::BinaryOpBlock lerp_op_block = ^BinaryOpFn(cachedGraph, primaryCastTensor, secondaryCastTensor) {
    MPSGraph* mpsGraph = cachedGraph->graph();
    cachedGraph->alphaTensor = mps::mpsGraphRankedPlaceHolder(mpsGraph, primaryCastTensor.dataType, @[ @1 ]);
    MPSGraphTensor* differenceTensor = [mpsGraph subtractionWithPrimaryTensor:secondaryCastTensor
                                                              secondaryTensor:primaryCastTensor
                                                                         name:nil];
    MPSGraphTensor* stepTensor = [mpsGraph multiplicationWithPrimaryTensor:differenceTensor
                                                           secondaryTensor:cachedGraph->alphaTensor
                                                                      name:nil];
    return [mpsGraph additionWithPrimaryTensor:primaryCastTensor secondaryTensor:stepTensor name:nil];
  };
  mps::binaryOpTensor(self, end, weight, out, "lerp_Scalar_mps", lerp_op_block);
}

TORCH_IMPL_FUNC(remainder_out_mps)(const Tensor& self, const Tensor& other, const Tensor& output) {
  mps::div_mode_template(self, other, "floor", output, "remainder_out_mps");
}

TORCH_IMPL_FUNC(fmod_mps_out)(const Tensor& self, const Tensor& other, const Tensor& output) {
  mps::div_mode_template(self, other, "trunc", output, "fmod_mps_out");
}

Tensor& floor_divide_out_mps(const Tensor& self, const Tensor& other, Tensor& result) {
  mps::div_mode_template(self, other, "floor", result, "floor_divide_out");
  return result;
}

Tensor floor_divide_mps(const Tensor& self, const Tensor& other) {
  Tensor result = at::empty({0}, self.options().dtype(at::result_type(self, other)));
  return floor_divide_out_mps(self, other, result);
}

Tensor& floor_divide_mps_(Tensor& self, const Tensor& other) {
  return floor_divide_out_mps(self, other, self);
}

} // namespace at::native
