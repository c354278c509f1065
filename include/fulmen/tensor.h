#ifndef FULMEN_TENSOR_H_
#define FULMEN_TENSOR_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace fulmen {

// The numbers are part of the C ABI (fulmen_dtype in c_api.h).
enum class DType : int32_t {
  kFloat32 = 0,
  kFloat64 = 1,
  kFloat16 = 2,
  kBFloat16 = 3,
  kFloat8E4M3 = 4,
  kInt8 = 5,
  kInt32 = 6,
  kBool = 7,  // one byte, zero is false
};

constexpr int64_t size_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return 8;
    case DType::kFloat32:
    case DType::kInt32:
      return 4;
    case DType::kFloat16:
    case DType::kBFloat16:
      return 2;
    default:
      return 1;
  }
}

enum class Device : int32_t { kCpu = 0, kCuda = 1 };

inline constexpr int kMaxRank = 4;

// A view of memory that the caller owns. rank 0 means "not given". Strides are in elements; stride
// 0 repeats. Inputs are never written through `data`.
struct Tensor {
  void* data = nullptr;
  DType dtype = DType::kFloat32;
  int32_t rank = 0;
  std::array<int64_t, kMaxRank> shape{};
  std::array<int64_t, kMaxRank> strides{};
  Device device = Device::kCpu;
  int32_t device_index = 0;

  bool given() const { return rank > 0; }
};

// A contiguous (row-major) tensor over `data`.
inline Tensor make_tensor(const void* data, DType dtype, std::initializer_list<int64_t> shape) {
  Tensor tensor;
  tensor.data = const_cast<void*>(data);
  tensor.dtype = dtype;
  for (int64_t extent : shape) {
    if (tensor.rank < kMaxRank) tensor.shape[tensor.rank++] = extent;
  }
  int64_t stride = 1;
  for (int dim = tensor.rank - 1; dim >= 0; --dim) {
    tensor.strides[dim] = stride;
    stride *= tensor.shape[dim];
  }
  return tensor;
}

}  // namespace fulmen

#endif  // FULMEN_TENSOR_H_
