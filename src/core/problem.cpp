#include "core/problem.h"

#include <algorithm>

namespace fulmen {
namespace {

int64_t length_at(const Tensor& lengths, int64_t b) {
  return static_cast<const int32_t*>(lengths.data)[b * lengths.strides[0]];
}

}  // namespace

Sequence Problem::sequence(int64_t b) const {
  Sequence sequence;
  sequence.index = b;
  const Sequences& lengths = args.sequences;
  if (packed_q()) {
    sequence.q_row = length_at(lengths.cu_seqlens_q, b);
    sequence.seqlen_q = length_at(lengths.cu_seqlens_q, b + 1) - sequence.q_row;
  } else {
    sequence.q_batch = b;
    sequence.seqlen_q = args.q.shape[1];
  }
  if (lengths.seqused_q.given()) sequence.seqlen_q = length_at(lengths.seqused_q, b);

  const KvCache& cache = args.cache;
  if (packed_k()) {
    sequence.k_row = length_at(lengths.cu_seqlens_k, b);
    sequence.seqlen_k = length_at(lengths.cu_seqlens_k, b + 1) - sequence.k_row;
  } else {
    sequence.k_batch = cache.cache_batch_idx.given() ? length_at(cache.cache_batch_idx, b) : b;
    sequence.seqlen_k = args.k.shape[1];
  }
  if (lengths.seqused_k.given()) sequence.seqlen_k = length_at(lengths.seqused_k, b);
  if (cache.cache_seqlens.given()) {
    sequence.seqlen_k = length_at(cache.cache_seqlens, b) + seqlen_new;
  }
  if (cache.leftpad.given()) {
    const int64_t leftpad = length_at(cache.leftpad, b);
    sequence.k_row += leftpad;
    sequence.seqlen_k -= leftpad;
  }
  if (paged()) {
    sequence.pages =
        static_cast<const int32_t*>(cache.page_table.data) + b * cache.page_table.strides[0];
  }
  return sequence;
}

KeyRun Problem::key_run(const Sequence& sequence, int64_t j) const {
  const int64_t row = sequence.k_row + j;
  if (sequence.pages == nullptr) return {sequence.k_batch, row, sequence.seqlen_k - j};
  const int64_t in_page = row % page_size;
  const int64_t stride = args.cache.page_table.strides[1];
  return {sequence.pages[row / page_size * stride], in_page,
          std::min(page_size - in_page, sequence.seqlen_k - j)};
}

}  // namespace fulmen
