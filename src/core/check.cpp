#include "core/check.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

namespace fulmen {
namespace {

// Tensors this large can't exist, and offsets into smaller ones never overflow 64 bits.
constexpr int64_t kMaxElements = int64_t{1} << 56;

bool known(DType dtype) { return dtype >= DType::kFloat32 && dtype <= DType::kBool; }

// Elements and the furthest offset both stay far from overflow.
Status check_extent(const Tensor& tensor, std::string_view name) {
  int64_t elements = 1;
  int64_t reach = 0;
  for (int dim = 0; dim < tensor.rank; ++dim) {
    const int64_t extent = tensor.shape[dim];
    const int64_t stride = tensor.strides[dim];
    if (extent < 0) return invalid(name, " has a negative size in shape ", shape_text(tensor));
    if (extent > 0 && elements > kMaxElements / extent) {
      return invalid(name, " of shape ", shape_text(tensor), " is larger than any memory");
    }
    elements *= extent;
    if (stride == std::numeric_limits<int64_t>::min() ||
        (extent > 1 && std::abs(stride) > (kMaxElements - reach) / (extent - 1))) {
      return invalid(name, " has stride ", stride, " in dimension ", dim,
                     ", which reaches further than any memory");
    }
    if (extent > 1) reach += std::abs(stride) * (extent - 1);
  }
  return {};
}

}  // namespace

std::string DTypeSet::text() const {
  std::string text;
  for (auto n = static_cast<int32_t>(DType::kFloat32); n <= static_cast<int32_t>(DType::kBool);
       ++n) {
    const auto dtype = static_cast<DType>(n);
    if (contains(dtype)) text += sentence(text.empty() ? "" : " or ", name_of(dtype));
  }
  return text;
}

std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return "float32";
    case DType::kFloat64:
      return "float64";
    case DType::kFloat16:
      return "float16";
    case DType::kBFloat16:
      return "bfloat16";
    case DType::kFloat8E4M3:
      return "float8_e4m3";
    case DType::kInt8:
      return "int8";
    case DType::kInt32:
      return "int32";
    case DType::kBool:
      return "bool";
  }
  return "an unknown type";
}

std::string shape_text(const Tensor& tensor) {
  std::string text = "[";
  for (int dim = 0; dim < tensor.rank; ++dim) {
    if (dim > 0) text += ", ";
    text += std::to_string(tensor.shape[dim]);
  }
  return text + "]";
}

Status check_tensor(const Tensor& tensor, const TensorRule& rule) {
  if (tensor.rank < 1 || tensor.rank > kMaxRank) {
    return invalid(rule.name, tensor.rank == 0 ? " is missing" : " has a rank outside 1 to 4");
  }
  if (!known(tensor.dtype) || !rule.dtypes.contains(tensor.dtype)) {
    return invalid(rule.name, " is ", name_of(tensor.dtype), "; it must be ", rule.dtypes.text());
  }
  FULMEN_RETURN_IF_ERROR(check_extent(tensor, rule.name));
  const auto shape_end = tensor.shape.begin() + tensor.rank;
  const bool empty = std::find(tensor.shape.begin(), shape_end, 0) != shape_end;
  if (rule.contiguous_rows && tensor.shape[tensor.rank - 1] > 1 &&
      tensor.strides[tensor.rank - 1] != 1) {
    return invalid(rule.name, " has stride ", tensor.strides[tensor.rank - 1],
                   " in its last dimension; it must be 1: make the last dimension contiguous");
  }
  for (int dim = 0; rule.written && dim < tensor.rank; ++dim) {
    if (tensor.shape[dim] > 1 && tensor.strides[dim] == 0) {
      return invalid(rule.name, " is written, so it may not be expanded: its stride is 0 in ",
                     "dimension ", dim);
    }
  }
  if (tensor.data == nullptr && !empty && !rule.may_be_null) {
    return invalid(rule.name, " of shape ", shape_text(tensor), " has no data (a null pointer)");
  }
  if (reinterpret_cast<uintptr_t>(tensor.data) % static_cast<uintptr_t>(size_of(tensor.dtype))) {
    return invalid(rule.name, " is not aligned to its elements of ", size_of(tensor.dtype),
                   " bytes");
  }
  return {};
}

Status check_shape(const Tensor& tensor, std::string_view name,
                   std::initializer_list<int64_t> expected, std::string_view meaning) {
  Tensor want;
  for (const int64_t extent : expected) want.shape[want.rank++] = extent;
  const auto begin = tensor.shape.begin();
  if (tensor.rank == want.rank && std::equal(begin, begin + want.rank, want.shape.begin()))
    return {};
  return invalid(name, " has shape ", shape_text(tensor), "; it must be ", meaning, " = ",
                 shape_text(want));
}

Status check_same_shape(const Tensor& tensor, std::string_view name, const Tensor& like,
                        std::string_view like_name) {
  if (tensor.rank == like.rank &&
      std::equal(tensor.shape.begin(), tensor.shape.begin() + like.rank, like.shape.begin())) {
    return {};
  }
  return invalid(name, " has shape ", shape_text(tensor), "; it must be ", shape_text(like),
                 " like ", like_name);
}

Status check_broadcast_shape(const Tensor& tensor, std::string_view name, const Problem& problem) {
  const bool exact =
      !problem.packed_q() && !problem.packed_k() && !problem.args.cache.cache_seqlens.given();
  const auto fits = [exact](int64_t extent, int64_t want) {
    return exact ? extent == want : extent >= want;
  };
  const auto& shape = tensor.shape;
  if (tensor.rank == 4 && (shape[0] == 1 || shape[0] == problem.batch) &&
      (shape[1] == 1 || shape[1] == problem.heads_q) &&
      (shape[2] == 1 || fits(shape[2], problem.max_seqlen_q)) &&
      fits(shape[3], problem.max_seqlen_k)) {
    return {};
  }
  return invalid(name, " has shape ", shape_text(tensor), "; it must be [", problem.batch,
                 " or 1, ", problem.heads_q, " or 1, ", problem.max_seqlen_q, " or 1, ",
                 problem.max_seqlen_k, "]", exact ? "" : " or longer in the last two");
}

}  // namespace fulmen
