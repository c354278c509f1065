// Scalar conversions between the float types, round to nearest even, NaN kept.
#ifndef FULMEN_CORE_CONVERT_H_
#define FULMEN_CORE_CONVERT_H_

#include <bit>
#include <cstdint>

#include "fulmen/tensor.h"

namespace fulmen {

struct BFloat16 {
  uint16_t bits;
};
struct Float16 {
  uint16_t bits;
};

inline float to_float(BFloat16 x) { return std::bit_cast<float>(uint32_t{x.bits} << 16); }

inline BFloat16 to_bfloat16(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {static_cast<uint16_t>((bits >> 16) | 0x40u)};
  return {static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}

inline float to_float(Float16 x) {
  const uint32_t sign = uint32_t{x.bits & 0x8000u} << 16;
  const uint32_t magnitude = x.bits & 0x7fffu;
  if (magnitude >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | (magnitude << 13));
  // 2^112 moves the exponent from float16's bias to float32's, subnormals included.
  const float value = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(value));
}

inline Float16 to_float16(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {
    return {static_cast<uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu))};
  }
  if (magnitude >= 0x477ff000u) return {static_cast<uint16_t>(sign | 0x7c00u)};  // rounds to inf
  if (magnitude < 0x38800000u) {  // subnormal: adding 0.5 leaves the rounded bits in the low end
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return {static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u))};
  }
  const uint32_t rounded = magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u);
  return {static_cast<uint16_t>(sign | (rounded >> 13))};
}

// Element `at` of a float tensor's memory, whatever its float type.
inline double load_element(const void* data, DType dtype, int64_t at) {
  switch (dtype) {
    case DType::kFloat64:
      return static_cast<const double*>(data)[at];
    case DType::kFloat16:
      return to_float(static_cast<const Float16*>(data)[at]);
    case DType::kBFloat16:
      return to_float(static_cast<const BFloat16*>(data)[at]);
    default:
      return static_cast<const float*>(data)[at];
  }
}

inline void store_element(void* data, DType dtype, int64_t at, double value) {
  switch (dtype) {
    case DType::kFloat64:
      static_cast<double*>(data)[at] = value;
      return;
    case DType::kFloat16:
      static_cast<Float16*>(data)[at] = to_float16(static_cast<float>(value));
      return;
    case DType::kBFloat16:
      static_cast<BFloat16*>(data)[at] = to_bfloat16(static_cast<float>(value));
      return;
    default:
      static_cast<float*>(data)[at] = static_cast<float>(value);
  }
}

}  // namespace fulmen

#endif  // FULMEN_CORE_CONVERT_H_
