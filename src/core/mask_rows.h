// Masks as row intervals: which keys a row sees, and what a tile of rows x keys has to do about it.
#ifndef FULMEN_CORE_MASK_ROWS_H_
#define FULMEN_CORE_MASK_ROWS_H_

#include <cstdint>

#include "core/problem.h"

namespace fulmen {

// Ascending, disjoint, half open; empty when begin >= end. The second is empty unless a prefix
// stands apart from the causal or windowed keys.
struct RowKeys {
  int64_t begin0 = 0, end0 = 0;
  int64_t begin1 = 0, end1 = 0;

  bool contains(int64_t j) const { return (begin0 <= j && j < end0) || (begin1 <= j && j < end1); }
};

enum class TileKind {
  kHidden,  // no pair of the tile is visible: skip it
  kFull,    // every pair is visible: no mask work
  kMasked,  // look at each pair
};

struct KeyRange {
  int64_t begin = 0, end = 0;
};

// The mask of one sequence and query head. Cheap to make, read-only after that, so threads may
// share it. The problem must outlive it.
class TileMask {
 public:
  TileMask(const Problem& problem, const Sequence& sequence, int64_t head_q);

  // Causal, window, chunk, prefix and length only: the interval part of the mask.
  RowKeys interval(int64_t i) const;

  // The contract's definition, pair by pair, all masks.
  bool visible(int64_t i, int64_t j) const;

  // Keys outside the range are hidden from every row of [i_begin, i_end): a bound, not exact.
  KeyRange key_range(int64_t i_begin, int64_t i_end) const;

  // Rows outside the range see no key of [j_begin, j_end): a bound, not exact (for the backward).
  KeyRange row_range(int64_t j_begin, int64_t j_end) const;

  // Exact for interval masks and block lists that divide the tile; kMasked where it would cost more
  // than it saves to know.
  TileKind classify(int64_t i_begin, int64_t i_end, int64_t j_begin, int64_t j_end) const;

  // True when the mask is made of intervals alone: visible(i, j) == interval(i).contains(j).
  bool intervals_only() const { return intervals_only_; }

 private:
  bool visible_elementwise(int64_t i, int64_t j) const;
  bool block_listed(int64_t block_row, int64_t block_column) const;

  const Mask& mask_;
  int64_t batch_index_, head_, seqlen_q_, seqlen_k_, offset_;
  const int32_t* documents_q_ = nullptr;  // of this sequence, row stride document_stride_q_
  const int32_t* documents_k_ = nullptr;
  int64_t document_stride_q_ = 0, document_stride_k_ = 0;
  bool intervals_only_ = true;
};

}  // namespace fulmen

#endif  // FULMEN_CORE_MASK_ROWS_H_
