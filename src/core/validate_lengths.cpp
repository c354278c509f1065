#include <algorithm>
#include <string_view>
#include <vector>

#include "core/check.h"
#include "core/validate.h"

namespace fulmen {
namespace {

int64_t at(const Tensor& lengths, int64_t n) {
  return static_cast<const int32_t*>(lengths.data)[n * lengths.strides[0]];
}

bool host_reads(const Tensor& t) { return t.given() && t.device == Device::kCpu; }

// cu_seqlens: [batch + 1], int32, from 0 or more up to at most `total`, never falling.
Status check_cu_seqlens(const Tensor& cu, std::string_view name, int64_t total) {
  FULMEN_RETURN_IF_ERROR(check_tensor(cu, {.name = name, .dtypes = {DType::kInt32}}));
  if (cu.rank != 1 || cu.shape[0] < 1) {
    return invalid(name, " has shape ", shape_text(cu), "; it must be [batch + 1]");
  }
  if (!host_reads(cu)) return {};
  int64_t previous = 0;
  for (int64_t n = 0; n < cu.shape[0]; ++n) {
    const int64_t start = at(cu, n);
    if (start < previous || start > total) {
      return invalid(name, "[", n, "] is ", start, "; the values must not fall and must stay ",
                     "between 0 and the ", total, " rows of the buffer");
    }
    previous = start;
  }
  return {};
}

Status check_lengths(const Tensor& lengths, std::string_view name, int64_t batch) {
  FULMEN_RETURN_IF_ERROR(check_tensor(lengths, {.name = name, .dtypes = {DType::kInt32}}));
  return check_shape(lengths, name, {batch}, "[batch]");
}

// The used length of each sequence lies within what it may hold: its slot, or `capacity`.
Status check_used(const Problem& p, const Tensor& used, std::string_view name, const Tensor& cu,
                  int64_t capacity) {
  if (!used.given()) return {};
  FULMEN_RETURN_IF_ERROR(check_lengths(used, name, p.batch));
  if (!host_reads(used)) return {};
  for (int64_t b = 0; b < p.batch; ++b) {
    const int64_t room = cu.given() ? at(cu, b + 1) - at(cu, b) : capacity;
    if (at(used, b) < 0 || at(used, b) > room) {
      return invalid(name, "[", b, "] is ", at(used, b), "; it must be 0 to ", room,
                     ", the length of that sequence");
    }
  }
  return {};
}

// `stated` (0: none) is a promise that no sequence is longer.
Status longest(const Problem& p, const Tensor& cu, int64_t dense_length, int64_t stated,
               std::string_view name, int64_t* result) {
  if (stated < 0) return invalid(name, " is ", stated, "; it must be 0 (found) or positive");
  *result = dense_length;
  if (!cu.given()) return {};
  if (!host_reads(cu)) {
    if (stated == 0 && p.batch > 0) {
      return invalid(name, " must be given when cu_seqlens lies on a device");
    }
    *result = stated;
    return {};
  }
  *result = 0;
  for (int64_t b = 0; b < p.batch; ++b) *result = std::max(*result, at(cu, b + 1) - at(cu, b));
  if (stated > 0 && stated < *result) {
    return invalid(name, " is ", stated, ", but a sequence has ", *result,
                   "; give the true maximum or leave it out");
  }
  return {};
}

int64_t capacity_of(const Problem& p) {
  return p.paged() ? p.args.cache.page_table.shape[1] * p.page_size : p.args.k.shape[1];
}

Status check_cache_lengths(Problem* p) {
  const KvCache& cache = p->args.cache;
  FULMEN_RETURN_IF_ERROR(check_lengths(cache.cache_seqlens, "cache_seqlens", p->batch));
  if (cache.leftpad.given()) {
    FULMEN_RETURN_IF_ERROR(check_lengths(cache.leftpad, "leftpad", p->batch));
  }
  const int64_t capacity = capacity_of(*p);
  p->max_seqlen_k = capacity;
  if (!host_reads(cache.cache_seqlens)) return {};
  p->max_seqlen_k = 0;
  for (int64_t b = 0; b < p->batch; ++b) {
    const int64_t used = at(cache.cache_seqlens, b);
    const int64_t leftpad = cache.leftpad.given() ? at(cache.leftpad, b) : 0;
    if (used < 0 || used > capacity - p->seqlen_new) {
      return invalid("cache_seqlens[", b, "] is ", used, " and ", p->seqlen_new,
                     " keys are appended; together they must fit the capacity of ", capacity);
    }
    if (leftpad < 0 || leftpad > used) {
      return invalid("leftpad[", b, "] is ", leftpad, "; it must be 0 to cache_seqlens = ", used);
    }
    p->max_seqlen_k = std::max(p->max_seqlen_k, used + p->seqlen_new - leftpad);
  }
  return {};
}

Status check_page_table_shape(const Problem& p) {
  const Tensor& table = p.args.cache.page_table;
  if (!table.given()) return {};
  FULMEN_RETURN_IF_ERROR(check_tensor(table, {.name = "page_table", .dtypes = {DType::kInt32}}));
  if (table.rank != 2 || table.shape[0] != p.batch) {
    return invalid("page_table has shape ", shape_text(table), "; it must be [", p.batch,
                   ", max_pages]");
  }
  if (p.page_size < 1 || (p.page_size & (p.page_size - 1)) != 0) {
    return invalid("the page size is ", p.page_size, " (k's second dimension); it must be a ",
                   "power of two");
  }
  return {};
}

}  // namespace

Status validate_lengths(Problem* problem) {
  Problem& p = *problem;
  const Sequences& lengths = p.args.sequences;
  const KvCache& cache = p.args.cache;
  if (p.packed_q()) {
    FULMEN_RETURN_IF_ERROR(
        check_cu_seqlens(lengths.cu_seqlens_q, "cu_seqlens_q", p.args.q.shape[0]));
  }
  if (p.packed_k()) {
    if (cache.cache_seqlens.given() || cache.page_table.given()) {
      return invalid("cu_seqlens_k is for packed k and v; a KV cache has cache_seqlens instead");
    }
    FULMEN_RETURN_IF_ERROR(
        check_cu_seqlens(lengths.cu_seqlens_k, "cu_seqlens_k", p.args.k.shape[0]));
    FULMEN_RETURN_IF_ERROR(
        check_shape(lengths.cu_seqlens_k, "cu_seqlens_k", {p.batch + 1}, "[batch + 1]"));
  }
  const int64_t length_q = p.packed_q() ? 0 : p.args.q.shape[1];
  const int64_t length_k = p.packed_k() ? 0 : p.args.k.shape[1];
  FULMEN_RETURN_IF_ERROR(longest(p, lengths.cu_seqlens_q, length_q, lengths.max_seqlen_q,
                                 "max_seqlen_q", &p.max_seqlen_q));
  FULMEN_RETURN_IF_ERROR(longest(p, lengths.cu_seqlens_k, length_k, lengths.max_seqlen_k,
                                 "max_seqlen_k", &p.max_seqlen_k));
  FULMEN_RETURN_IF_ERROR(
      check_used(p, lengths.seqused_q, "seqused_q", lengths.cu_seqlens_q, length_q));
  FULMEN_RETURN_IF_ERROR(
      check_used(p, lengths.seqused_k, "seqused_k", lengths.cu_seqlens_k, length_k));
  FULMEN_RETURN_IF_ERROR(check_page_table_shape(p));
  if (cache.cache_seqlens.given()) {
    if (lengths.seqused_k.given()) {
      return invalid("seqused_k and cache_seqlens say the same thing; give cache_seqlens alone");
    }
    return check_cache_lengths(problem);
  }
  for (const auto& [name, tensor] :
       {std::pair{"k_new", &cache.k_new}, std::pair{"v_new", &cache.v_new},
        std::pair{"page_table", &cache.page_table}, std::pair{"leftpad", &cache.leftpad},
        std::pair{"cache_batch_idx", &cache.cache_batch_idx},
        std::pair{"rotary_cos", &cache.rotary_cos}, std::pair{"rotary_sin", &cache.rotary_sin}}) {
    if (tensor->given()) return invalid(name, " needs cache_seqlens");
  }
  return {};
}

}  // namespace fulmen
