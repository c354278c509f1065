#include <array>
#include <string_view>
#include <utility>

#include "core/check.h"
#include "core/validate.h"

namespace fulmen {
namespace {

Status check_documents(const Problem& p) {
  const Mask& mask = p.args.mask;
  if (!mask.document_ids_q.given() && !mask.document_ids_k.given()) return {};
  const std::array<std::pair<std::string_view, const Tensor*>, 2> sides{
      {{"document_ids_q", &mask.document_ids_q}, {"document_ids_k", &mask.document_ids_k}}};
  for (const auto& [name, ids] : sides) {
    FULMEN_RETURN_IF_ERROR(check_tensor(*ids, {.name = name, .dtypes = {DType::kInt32}}));
    const bool is_q = ids == &mask.document_ids_q;
    const Tensor& rows = is_q ? p.args.q : p.args.k;
    if (is_q ? p.packed_q() : p.packed_k()) {
      FULMEN_RETURN_IF_ERROR(check_shape(*ids, name, {rows.shape[0]}, "[total]"));
    } else if (is_q || !p.paged()) {
      FULMEN_RETURN_IF_ERROR(check_shape(*ids, name, {p.batch, rows.shape[1]}, "[batch, seqlen]"));
    } else {
      const int64_t capacity = p.args.cache.page_table.shape[1] * p.page_size;
      FULMEN_RETURN_IF_ERROR(check_shape(*ids, name, {p.batch, capacity}, "[batch, capacity]"));
    }
  }
  return {};
}

Status check_block_list(const Problem& p) {
  const Mask& mask = p.args.mask;
  if (!mask.block_counts.given() && !mask.block_indices.given()) return {};
  if (mask.block_q < 1 || mask.block_k < 1) {
    return invalid("block_q is ", mask.block_q, " and block_k ", mask.block_k,
                   "; both must be at least 1 with a block list");
  }
  for (const auto& [name, tensor] : {std::pair{"block_counts", &mask.block_counts},
                                     std::pair{"block_indices", &mask.block_indices}}) {
    FULMEN_RETURN_IF_ERROR(check_tensor(*tensor, {.name = name, .dtypes = {DType::kInt32}}));
    const int64_t q_blocks = (p.max_seqlen_q + mask.block_q - 1) / mask.block_q;
    const int rank = tensor == &mask.block_counts ? 3 : 4;
    const auto& shape = mask.block_counts.shape;
    if (tensor->rank != rank || (tensor->shape[0] != 1 && tensor->shape[0] != p.batch) ||
        (tensor->shape[1] != 1 && tensor->shape[1] != p.heads_q) || tensor->shape[2] < q_blocks ||
        tensor->shape[0] != shape[0] || tensor->shape[1] != shape[1] ||
        tensor->shape[2] != shape[2]) {
      return invalid(name, " has shape ", shape_text(*tensor), "; it must be [", p.batch, " or 1, ",
                     p.heads_q, " or 1, ", q_blocks, rank == 4 ? ", max_blocks]" : "]");
    }
  }
  return {};
}

// Columns ascend without repeats and exist; else looking a block up by bisection would lie.
Status check_block_row(const Problem& p, int64_t count, const int32_t* columns, int64_t stride) {
  const int64_t k_blocks = (p.max_seqlen_k + p.args.mask.block_k - 1) / p.args.mask.block_k;
  const int64_t max_blocks = p.args.mask.block_indices.shape[3];
  if (count < 0 || count > max_blocks) {
    return invalid("block_counts holds ", count, "; it must be 0 to max_blocks = ", max_blocks);
  }
  int64_t previous = -1;
  for (int64_t n = 0; n < count; ++n) {
    const int64_t column = columns[n * stride];
    if (column <= previous || column >= k_blocks) {
      return invalid("block_indices holds ", column, " after ", previous,
                     "; a row must ascend without repeats and stay below ", k_blocks);
    }
    previous = column;
  }
  return {};
}

Status check_block_contents(const Problem& p) {
  const Tensor& counts = p.args.mask.block_counts;
  const Tensor& indices = p.args.mask.block_indices;
  for (int64_t b = 0; b < counts.shape[0]; ++b) {
    for (int64_t h = 0; h < counts.shape[1]; ++h) {
      for (int64_t row = 0; row < counts.shape[2]; ++row) {
        const int64_t count = static_cast<const int32_t*>(
            counts.data)[b * counts.strides[0] + h * counts.strides[1] + row * counts.strides[2]];
        const int64_t at =
            b * indices.strides[0] + h * indices.strides[1] + row * indices.strides[2];
        FULMEN_RETURN_IF_ERROR(check_block_row(
            p, count, static_cast<const int32_t*>(indices.data) + at, indices.strides[3]));
      }
    }
  }
  return {};
}

}  // namespace

Status validate_mask(const Problem& p) {
  const Mask& mask = p.args.mask;
  for (const auto& [side, width] :
       {std::pair{"left", mask.window_left}, std::pair{"right", mask.window_right}}) {
    if (width < -1) {
      return invalid("window ", side, " is ", width, "; it must be -1 (unlimited) or at least 0");
    }
  }
  if (mask.attention_chunk < 0) {
    return invalid("attention_chunk is ", mask.attention_chunk, "; it must be 0 (off) or positive");
  }
  if (mask.prefix < 0) return invalid("prefix is ", mask.prefix, "; it must be at least 0");
  FULMEN_RETURN_IF_ERROR(check_documents(p));
  if (mask.boolean.given()) {
    FULMEN_RETURN_IF_ERROR(check_tensor(mask.boolean, {.name = "mask", .dtypes = {DType::kBool}}));
    FULMEN_RETURN_IF_ERROR(check_broadcast_shape(mask.boolean, "mask", p));
  }
  FULMEN_RETURN_IF_ERROR(check_block_list(p));
  const bool host_reads_list = mask.block_counts.given() && p.args.q.device == Device::kCpu;
  return host_reads_list ? check_block_contents(p) : Status{};
}

}  // namespace fulmen
