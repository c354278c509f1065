#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/validate.h"

namespace fulmen {
namespace {

Status check_new_keys(const Problem& p) {
  const KvCache& cache = p.args.cache;
  if (!cache.k_new.given() && !cache.v_new.given()) return {};
  for (const auto& [name, tensor, dim] :
       {std::tuple<std::string_view, const Tensor*, int64_t>{"k_new", &cache.k_new, p.head_dim},
        std::tuple<std::string_view, const Tensor*, int64_t>{"v_new", &cache.v_new,
                                                             p.head_dim_v}}) {
    FULMEN_RETURN_IF_ERROR(
        check_tensor(*tensor, {.name = name, .dtypes = {p.dtype}, .contiguous_rows = true}));
    FULMEN_RETURN_IF_ERROR(check_shape(*tensor, name, {p.batch, p.seqlen_new, p.heads_kv, dim},
                                       "[batch, seqlen_new, heads_kv, dim]"));
  }
  for (const auto& [name, tensor] : {std::pair{"k", &p.args.k}, std::pair{"v", &p.args.v}}) {
    FULMEN_RETURN_IF_ERROR(check_tensor(*tensor, {.name = name,
                                                  .dtypes = {p.dtype},
                                                  .contiguous_rows = true,
                                                  .written = true,
                                                  .may_be_null = true}));
  }
  return {};
}

Status check_rotary(const Problem& p) {
  const KvCache& cache = p.args.cache;
  if (!cache.rotary_cos.given() && !cache.rotary_sin.given()) return {};
  for (const auto& [name, tensor] :
       {std::pair{"rotary_cos", &cache.rotary_cos}, std::pair{"rotary_sin", &cache.rotary_sin}}) {
    FULMEN_RETURN_IF_ERROR(check_tensor(
        *tensor, {.name = name, .dtypes = {DType::kFloat32, p.dtype}, .contiguous_rows = true}));
    if (tensor->rank != 2 || tensor->shape[1] < 1 || 2 * tensor->shape[1] > p.head_dim) {
      return invalid(name, " has shape ", shape_text(*tensor),
                     "; it must be [positions, rotary_dim / 2] with rotary_dim at most head_dim = ",
                     p.head_dim);
    }
  }
  FULMEN_RETURN_IF_ERROR(
      check_same_shape(cache.rotary_sin, "rotary_sin", cache.rotary_cos, "rotary_cos"));
  if (cache.rotary_sin.dtype != cache.rotary_cos.dtype) {
    return invalid("rotary_cos and rotary_sin have different types; give them the same");
  }
  if (cache.rotary_cos.shape[0] < p.max_seqlen_k) {
    return invalid("rotary_cos has ", cache.rotary_cos.shape[0], " positions, but a sequence has ",
                   p.max_seqlen_k, " keys; give a longer table");
  }
  return {};
}

// Query row i stands at position i + offset of the table, so offset may not be negative.
Status check_rotary_positions(const Problem& p) {
  if (!p.args.cache.rotary_cos.given()) return {};
  for (int64_t b = 0; b < p.batch; ++b) {
    const Sequence sequence = p.sequence(b);
    if (sequence.offset() < 0) {
      return invalid("sequence ", b, " has ", sequence.seqlen_q, " query rows and ",
                     sequence.seqlen_k, " keys; rotary needs at least as many keys as rows");
    }
  }
  return {};
}

Status check_slots(const Problem& p) {
  const Tensor& slots = p.args.cache.cache_batch_idx;
  if (!slots.given()) return {};
  if (p.paged()) return invalid("cache_batch_idx and page_table exclude each other; give one");
  FULMEN_RETURN_IF_ERROR(
      check_tensor(slots, {.name = "cache_batch_idx", .dtypes = {DType::kInt32}}));
  FULMEN_RETURN_IF_ERROR(check_shape(slots, "cache_batch_idx", {p.batch}, "[batch]"));
  if (slots.device != Device::kCpu) return {};
  std::vector<bool> taken(static_cast<size_t>(p.args.k.shape[0]));
  for (int64_t b = 0; b < p.batch; ++b) {
    const int64_t slot = static_cast<const int32_t*>(slots.data)[b * slots.strides[0]];
    if (slot < 0 || slot >= p.args.k.shape[0]) {
      return invalid("cache_batch_idx[", b, "] is ", slot, "; the cache has rows 0 to ",
                     p.args.k.shape[0] - 1);
    }
    if (p.seqlen_new > 0 && taken[static_cast<size_t>(slot)]) {
      return invalid("cache_batch_idx holds ", slot, " twice; appended keys would overwrite each ",
                     "other");
    }
    taken[static_cast<size_t>(slot)] = true;
  }
  return {};
}

// Entries up to the used length name pages of the pool; the rest is never read.
Status check_pages(const Problem& p) {
  const Tensor& table = p.args.cache.page_table;
  for (int64_t b = 0; b < p.batch; ++b) {
    const Sequence sequence = p.sequence(b);
    const int64_t first = sequence.k_row / p.page_size;
    const int64_t end = (sequence.k_row + sequence.seqlen_k + p.page_size - 1) / p.page_size;
    for (int64_t n = first; n < end; ++n) {
      const int64_t page = sequence.pages[n * table.strides[1]];
      if (page < 0 || page >= p.args.k.shape[0]) {
        return invalid("page_table[", b, ", ", n, "] is ", page, "; the pool has pages 0 to ",
                       p.args.k.shape[0] - 1);
      }
    }
  }
  return {};
}

}  // namespace

Status validate_cache(const Problem& p) {
  if (!p.args.cache.cache_seqlens.given()) return {};
  FULMEN_RETURN_IF_ERROR(check_new_keys(p));
  FULMEN_RETURN_IF_ERROR(check_rotary(p));
  FULMEN_RETURN_IF_ERROR(check_slots(p));
  if (p.args.cache.cache_seqlens.device != Device::kCpu) return {};
  FULMEN_RETURN_IF_ERROR(check_rotary_positions(p));
  return p.paged() ? check_pages(p) : Status{};
}

}  // namespace fulmen
