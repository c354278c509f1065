// A validated attention call. Built once, at the border (validate.h); below it only assertions.
#ifndef FULMEN_CORE_PROBLEM_H_
#define FULMEN_CORE_PROBLEM_H_

#include <cstdint>

#include "fulmen/attention.h"

namespace fulmen {

enum class Pass { kForward, kBackward };

// Rows of [batch, seqlen, heads, dim] (packed: batch index 0, row counted over the whole buffer).
// Strides in elements; the last dimension is contiguous.
struct Rows {
  void* data = nullptr;
  DType dtype = DType::kFloat32;
  int64_t stride_batch = 0, stride_row = 0, stride_head = 0;

  int64_t offset(int64_t batch, int64_t row, int64_t head) const {
    return batch * stride_batch + row * stride_row + head * stride_head;
  }
  template <typename T>
  T* at(int64_t batch, int64_t row, int64_t head) const {
    return static_cast<T*>(data) + offset(batch, row, head);
  }
  char* bytes_at(int64_t batch, int64_t row, int64_t head) const {
    return static_cast<char*>(data) + offset(batch, row, head) * size_of(dtype);
  }
};

// One value a row and head (lse, dlse): float32, or float64 for float64 problems.
struct RowValues {
  void* data = nullptr;  // null: not asked for
  DType dtype = DType::kFloat32;
  int64_t stride_batch = 0, stride_row = 0, stride_head = 0;

  double get(int64_t batch, int64_t row, int64_t head) const {
    const int64_t at = batch * stride_batch + row * stride_row + head * stride_head;
    return dtype == DType::kFloat64 ? static_cast<const double*>(data)[at]
                                    : static_cast<double>(static_cast<const float*>(data)[at]);
  }
  void set(int64_t batch, int64_t row, int64_t head, double value) const {
    const int64_t at = batch * stride_batch + row * stride_row + head * stride_head;
    if (dtype == DType::kFloat64) {
      static_cast<double*>(data)[at] = value;
    } else {
      static_cast<float*>(data)[at] = static_cast<float>(value);
    }
  }
};

// Sequence b as this call sees it: used lengths, and where its row 0 and key 0 are.
struct Sequence {
  int64_t index = 0;  // b, also the batch index of masks, bias and dropout
  int64_t seqlen_q = 0, seqlen_k = 0;
  int64_t q_batch = 0, q_row = 0;  // query row i is q.at(q_batch, q_row + i, head)
  int64_t k_batch = 0, k_row = 0;  // key j is k.at(k_batch, k_row + j, head) unless paged
  const int32_t* pages = nullptr;  // paged: key j is in page pages[(k_row + j) / page_size]

  int64_t offset() const { return seqlen_k - seqlen_q; }
};

// Where key j is, and how many keys from j on follow it with k's (and v's) row stride.
struct KeyRun {
  int64_t batch, row, count;
};

struct Problem {
  Pass pass = Pass::kForward;
  AttentionArgs args;  // as given, for masks and options
  BackwardArgs grads;  // backward only; grads.forward is left empty (see args)

  DType dtype = DType::kFloat32;  // of q
  int64_t batch = 0, heads_q = 0, heads_kv = 0, head_dim = 0, head_dim_v = 0;
  int64_t group = 1;                           // heads_q / heads_kv
  int64_t max_seqlen_q = 0, max_seqlen_k = 0;  // no sequence is longer
  int64_t page_size = 0;                       // 0: not paged
  int64_t seqlen_new = 0;                      // keys appended before attention
  double scale = 1;
  int num_threads = 1;

  Rows q, k, v, out;
  RowValues lse;
  Rows dout, dq, dk, dv;
  RowValues dlse;

  bool packed_q() const { return args.sequences.cu_seqlens_q.given(); }
  bool packed_k() const { return args.sequences.cu_seqlens_k.given(); }
  bool paged() const { return page_size > 0; }

  // The lengths must be readable by the host. seqlen_k counts appended keys, without left padding.
  Sequence sequence(int64_t b) const;

  // Key `j` of `sequence`, 0 <= j < seqlen_k.
  KeyRun key_run(const Sequence& sequence, int64_t j) const;

  int64_t kv_head(int64_t head_q) const { return head_q / group; }
};

// element [b|0, h|0, i|0, j] of a tensor [batch|1, heads|1, seqlen_q|1, seqlen_k] (bias, boolean).
inline int64_t broadcast_offset(const Tensor& t, int64_t b, int64_t h, int64_t i, int64_t j) {
  return (t.shape[0] > 1 ? b * t.strides[0] : 0) + (t.shape[1] > 1 ? h * t.strides[1] : 0) +
         (t.shape[2] > 1 ? i * t.strides[2] : 0) + j * t.strides[3];
}

}  // namespace fulmen

#endif  // FULMEN_CORE_PROBLEM_H_
