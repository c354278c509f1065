// Flash Attention: softmax(scale * Q K^T) V without the [seqlen_q, seqlen_k] matrices, after
// Dao et al. 2022 (arXiv:2205.14135) and Dao 2023 (arXiv:2307.08691).
#ifndef FULMEN_ATTENTION_H_
#define FULMEN_ATTENTION_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "fulmen/export.h"
#include "fulmen/mask.h"
#include "fulmen/status.h"
#include "fulmen/tensor.h"

namespace fulmen {

// What is added to or done with s = scale * (q_i . k_j), in this order: softcap, ALiBi, bias.
struct Scores {
  double scale = std::numeric_limits<double>::quiet_NaN();  // NaN: 1 / sqrt(head_dim)
  double softcap = 0;                                       // c > 0: s = c * tanh(s / c)
  Tensor alibi_slopes;  // [heads_q] or [batch, heads_q], float32: s -= slope * |i + offset - j|
  Tensor bias;   // [batch|1, heads_q|1, seqlen_q|1, seqlen_k], float32 or q's type, added to s
  Tensor sinks;  // [heads_q], float32: adds exp(sink) to the denominator of every row of the head
};

// P is dropped with probability p after the softmax, the rest scaled by 1 / (1 - p). The mask is a
// function of (seed, offset, batch, head, row, key) alone.
struct Dropout {
  double p = 0;
  uint64_t seed = 0;
  uint64_t offset = 0;
};

// Packed sequences and used lengths, all int32.
struct Sequences {
  Tensor cu_seqlens_q, cu_seqlens_k;  // [batch + 1]; given: q, k, v are packed [total, heads, dim]
  Tensor seqused_q, seqused_k;        // [batch]; rows and keys past the used length do not exist
  int64_t max_seqlen_q = 0, max_seqlen_k = 0;  // 0: found from cu_seqlens (host lengths only)
};

// Decoding. With cache_seqlens given, k and v of AttentionArgs are the cache:
// [batch_cache, capacity, heads_kv, head_dim], or with a page_table [pages, page_size, heads_kv,
// head_dim], page_size a power of two.
struct KvCache {
  Tensor cache_seqlens;    // [batch], int32: keys in use before this call
  Tensor k_new, v_new;     // [batch, seqlen_new, heads_kv, head_dim]: appended, then seen
  Tensor page_table;       // [batch, max_pages], int32; entries past the used length are not read
  Tensor cache_batch_idx;  // [batch], int32: which cache row belongs to sequence b
  Tensor leftpad;          // [batch], int32: the first real key of sequence b
  Tensor rotary_cos,
      rotary_sin;  // [positions, rotary_dim / 2], float32 or q's type: turns q row i
                   // by position i + offset, new key t by cache_seqlens - leftpad + t
  bool rotary_interleaved = false;  // pairs (2n, 2n+1); otherwise (n, n + rotary_dim / 2)
};

// How to do it; never what the result is.
struct Execution {
  std::string_view implementation;  // empty: the best that can do the call
  bool deterministic = false;       // backward: bit-identical from run to run
  bool batch_invariant = false;     // a sequence's bits do not depend on the rest of the batch
  int32_t num_splits = 0;           // key splits in decoding; 0: chosen
  int32_t num_threads = 0;          // CPU; 0: OMP_NUM_THREADS, else all
  void* stream = nullptr;           // GPU: the CUstream that the work is ordered in
  void* workspace = nullptr;        // GPU: device memory, at least workspace_bytes(args)
  size_t workspace_bytes = 0;
};

// One attention call. Dense: q [batch, seqlen_q, heads_q, head_dim]; packed: [total_q, heads_q,
// head_dim]. Any strides whose last is 1. float32 | float16 | bfloat16 | float64.
struct AttentionArgs {
  Tensor q;  // heads_q a multiple of heads_kv; query head h reads KV head h / (heads_q / heads_kv)
  Tensor k;  // [batch, seqlen_k, heads_kv, head_dim], packed [total_k, ...], or the cache
  Tensor v;  // [batch, seqlen_k, heads_kv, head_dim_v]
  Tensor out;  // [batch, seqlen_q, heads_q, head_dim_v], type of q; written whole
  Tensor lse;  // optional: [batch, heads_q, seqlen_q] ([heads_q, total_q] packed), float32 (float64
               // for float64 q); log of the denominator, natural; -inf for a row that sees no key
  Scores scores;
  Mask mask;
  Dropout dropout;
  Sequences sequences;
  KvCache cache;
  Execution execution;
};

// The forward call (out and lse are inputs here) and what comes back. dq, dk, dv are required and
// written whole; dbias, dsinks, dalibi_slopes are optional and written, not added to.
struct BackwardArgs {
  AttentionArgs forward;
  Tensor dout;           // shape and type of out
  Tensor dlse;           // optional, shape and type of lse
  Tensor dq, dk, dv;     // shapes and types of q, k, v
  Tensor dbias;          // shape of bias, float32 or q's type; summed over broadcast dimensions
  Tensor dsinks;         // [heads_q], float32
  Tensor dalibi_slopes;  // shape of alibi_slopes, float32
};

// out = softmax(scores) V and its lse, as SEMANTICS (docs/contract.md) defines them. Blocks until
// done on a CPU; on a GPU ordered in the stream. Errors: kInvalidArgument, kUnsupported,
// kOutOfMemory, kCudaError; nothing is written when a call is refused.
FULMEN_API Status attention_forward(const AttentionArgs& args);

// Gradients by recomputation of P from q, k and lse; no [seqlen_q, seqlen_k] buffer.
FULMEN_API Status attention_backward(const BackwardArgs& args);

// Joins attention over disjoint sets of keys: lse = log sum exp(lse_n), out = sum exp(lse_n - lse)
// out_n. outs: n tensors [batch, seqlen_q, heads_q, head_dim_v]; lses: n tensors [batch, heads_q,
// seqlen_q] (packed: [total_q, ...], [heads_q, total_q]). A partial result of lse -inf changes
// nothing, whatever its out holds.
FULMEN_API Status merge_states(const std::vector<Tensor>& outs, const std::vector<Tensor>& lses,
                               const Tensor& out, const Tensor& lse);

// Looks for faults in a cache call whose lengths live where a call can't check them for free: page
// ids outside the pool, lengths above the capacity, slots out of range. Ok, or the first fault.
FULMEN_API Status check_cache(const AttentionArgs& args);

// Device memory that a call needs in execution.workspace; 0 on a CPU.
FULMEN_API Status workspace_bytes(const AttentionArgs& args, size_t* bytes);
FULMEN_API Status workspace_bytes(const BackwardArgs& args, size_t* bytes);

// What the call would do and why, as a JSON object: implementation and why, tiles, blocks computed,
// masked, skipped, FLOPs, bytes by the I/O model, peak memory. Tensor data is read only where the
// mask needs it; `data` of q, k, v, out may be null. tile_q, tile_k: 0 for the implementation's
// own.
FULMEN_API Status explain(const AttentionArgs& args, int64_t tile_q, int64_t tile_k,
                          std::string* json);

// Names of the implementations in the order in which they are tried, the best first.
FULMEN_API std::vector<std::string> implementations();

// Version, instruction sets, threads, GPUs and caches, as a JSON object.
FULMEN_API std::string info();

FULMEN_API std::string_view version();

}  // namespace fulmen

#endif  // FULMEN_ATTENTION_H_
