#ifndef FULMEN_MASK_H_
#define FULMEN_MASK_H_

#include <cstdint>

#include "fulmen/tensor.h"

namespace fulmen {

enum class CausalAlignment : int32_t { kBottomRight = 0, kTopLeft = 1 };

// Which keys a query row sees. With offset = seqlen_k - seqlen_q of the sequence (used lengths),
// row i sees key j when all of these hold:
//   j < prefix, or (causal and window):
//     causal: j <= i + offset (kBottomRight) or j <= i (kTopLeft)
//     window: i + offset - window_left <= j <= i + offset + window_right
//   attention_chunk c > 0: floor((i + offset) / c) == floor(j / c)
//   document_ids: q[i] == k[j]
//   boolean: the element is true
//   blocks: the block pair (i / block_q, j / block_k) is listed
// i and j count within their sequence; with left padding j counts from the first real key.
struct Mask {
  bool causal = false;
  CausalAlignment causal_alignment = CausalAlignment::kBottomRight;
  int64_t window_left = -1;     // keys before the row itself; -1: unlimited
  int64_t window_right = -1;    // keys after it; -1: unlimited
  int64_t attention_chunk = 0;  // 0: off
  int64_t prefix = 0;           // the first `prefix` keys pass causal and window for every row

  // document_ids_q: [batch, seqlen_q] ([total_q] packed), int32; document_ids_k likewise.
  Tensor document_ids_q, document_ids_k;

  // boolean: [batch|1, heads_q|1, seqlen_q|1, seqlen_k], bool, true is visible.
  Tensor boolean;

  // Block-sparse list. block_counts: [batch|1, heads_q|1, q_blocks], int32, how many key blocks
  // query block n sees; block_indices: [batch|1, heads_q|1, q_blocks, max_blocks], int32, which
  // ones (the first block_counts of a row, ascending, without repeats; the rest is never read).
  Tensor block_counts, block_indices;
  int64_t block_q = 0, block_k = 0;
};

}  // namespace fulmen

#endif  // FULMEN_MASK_H_
