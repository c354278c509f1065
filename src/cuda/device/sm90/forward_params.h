// The contract between the sm_90a forward kernel and whoever launches it. Includes nothing, so that
// host C++20 and NVRTC both read it.
//
// The unit that instantiates a kernel (compile with NVRTC 12.9 or newer, flags below):
//
//   #include "sm90/forward.cuh"
//   extern "C" __global__ void __launch_bounds__(384, 1)
//   fulmen_forward_sm90_bf16_d128_causal_128x128(
//       const __grid_constant__ fulmen::sm90::ForwardParams params) {
//     constexpr fulmen::sm90::ForwardConfig kConfig{
//         .type = fulmen::sm90::ElementType::kBf16, .mask = fulmen::sm90::MaskKind::kCausal,
//         .head_dim = 128, .head_dim_v = 128, .consumers = 2, .keys = 128};
//     fulmen::sm90::forward<kConfig>(params);
//   }
//
// - Flags: -std=c++20 -arch=sm_90a -default-device. Include names are relative to src/cuda/device
//   ("sm90/forward.cuh", "tile/...", "ptx/..."): give NVRTC that folder, or these names as headers.
// - __launch_bounds__(block_threads(config), 1): the 1 is needed, setmaxnreg depends on it.
// - Launch: block = block_threads(config), grid = min(multiprocessors, work_tiles(config, params))
//   in x alone (persistent, any grid >= 1 is right; a larger one than the multiprocessors wastes),
//   dynamic shared memory = shared_bytes(config) (raise
//   CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES), no workspace, no cluster, nothing to zero.
//
// Tensor maps: all three 4-D, CU_TENSOR_MAP_SWIZZLE_128B, no interleave, element strides 1,
// L2 promotion 128 B, out-of-bounds fill zero (NONE), element type bf16 or fp16.
//   dims  (innermost first): {head_dim, rows, heads, batch}; the tensor's true head_dim (a multiple
//         of 8), which may be less than the config's: the box clips and reads zeros there.
//         q: rows = seqlen_q, heads = heads_q. k, v: rows = seqlen_k, heads = heads_kv; v has its
//         own head_dim_v. Packed sequences: rows = total_q or total_k, batch = 1.
//   strides in bytes of rows, heads, batch: multiples of 16, less than 2^40 (the driver's rule).
//         A dimension of size 1 may carry any legal stride. Base pointers are 16-byte aligned.
//   box   q: {64, 64 * consumers, 1, 1};  k and v: {64, keys, 1, 1}.
// No dimension may be 0: a call with batch, heads or seqlen_q 0 does not launch; with seqlen_k 0
// (or total_k 0) the launcher fills out with 0 and lse with -inf (or the sink) itself, or encodes
// any valid one-row map and launches with seqlen_k = 0.
#pragma once

namespace fulmen::sm90 {

// A CUtensorMap, opaque here.
struct alignas(64) TensorMap {
  unsigned char bytes[128];
};

enum class ElementType { kBf16, kFp16 };

enum class BiasType { kNone, kElement, kFloat32 };

// Which visibility rules the machine code knows.
enum class MaskKind {
  kFull,       // keys below the sequence's used length
  kCausal,     // and causal (both alignments) and window_right; no window_left, chunk or prefix
  kInterval,   // every run-time field of Mask below
  kDocuments,  // kInterval and doc_q[row] == doc_k[key]
};

// Everything that changes machine code. Defaults suit head_dim 128; use tuned_forward().
struct ForwardConfig {
  ElementType type = ElementType::kBf16;
  MaskKind mask = MaskKind::kFull;
  int head_dim = 128;               // of q and k as computed: 64, 96, 128, 192 or 256
  int head_dim_v = 128;             // of v and out as computed: 64, 96, 128, 192 or 256
  bool softcap = false;             // scores pass c * tanh(s / c)
  bool alibi = false;               // slopes from alibi_slopes
  bool sink = false;                // sinks from sinks
  bool boolean = false;             // a boolean mask, read from memory
  BiasType bias = BiasType::kNone;  // an additive bias, read from memory

  int consumers = 2;            // warpgroups of 64 query rows: 1, 2 or 3
  int keys = 128;               // keys of a block, a multiple of 16
  int stages = 2;               // of the K ring and of the V ring
  int q_stages = 2;             // query tiles in shared memory: 2 loads the next one early
  bool q_in_registers = false;  // Q fragments stay in registers
  bool ping_pong = false;       // consumers take turns to issue their matrix products
  bool cross_tile = true;       // the next tile's first Q.K runs under this tile's epilogue
  bool stale_maximum = true;    // inner blocks keep the maximum; overflowed tiles are done again
};

// Run-time part of the interval masks, as fulmen::Mask has them. offset = used key length - used
// query length of the sequence.
struct Mask {
  int causal;  // 1: key <= row + offset, or key <= row with top_left
  int top_left;
  int window_left;   // keys at or right of row + offset - window_left; -1: no limit
  int window_right;  // keys at or left of row + offset + window_right; -1: no limit
  int chunk;         // attention_chunk; 0: none
  int prefix;        // the first keys pass causal and window; 0: none
};

struct ForwardParams {
  TensorMap q_map;  // see the top of this file
  TensorMap k_map;
  TensorMap v_map;

  void* out;  // [batch, seqlen_q, heads_q, head_dim_v] by the strides, 16-byte aligned
  float*
      lse;  // [batch, heads_q, seqlen_q] or packed [heads_q, total_q], last stride 1; may be null

  // Packed sequences: both or neither. Row tables of batch + 1 entries, in device memory.
  const int* cu_seqlens_q;
  const int* cu_seqlens_k;
  // Used lengths [batch], clamped to the allocated ones; may be null. Rows of out past the used
  // query length are written 0, of lse -inf.
  const int* used_q;
  const int* used_k;

  const float* alibi_slopes;  // [batch or 1, heads_q]; alibi_batch_stride 0 broadcasts
  const float* sinks;         // [heads_q]
  const void* bias;  // [batch, heads_q, seqlen_q, seqlen_k], element type; strides may be 0
  const int* doc_q;  // [batch, seqlen_q] (packed: [total_q])
  const int* doc_k;  // [batch, seqlen_k] (packed: [total_k])

  long long out_batch_stride;  // elements, multiples of 8 (out is written 16 bytes at a time)
  long long out_row_stride;
  long long out_head_stride;
  long long lse_batch_stride;
  long long lse_head_stride;
  long long alibi_batch_stride;
  long long bias_batch_stride;
  long long bias_head_stride;
  long long bias_row_stride;
  long long boolean_batch_stride;
  long long boolean_head_stride;
  long long boolean_row_stride;
  long long doc_q_batch_stride;
  long long doc_k_batch_stride;

  int batch;
  int heads_q;
  int heads_kv;
  int seqlen_q;    // packed: the largest sequence (an upper bound is right too)
  int seqlen_k;    // packed: unused
  int total_q;     // packed: rows of q and out; rows past cu_seqlens_q[batch] are written 0, -inf
  int head_dim_v;  // true one, a multiple of 8, at most the config's
  int head_group;  // heads walked together so that their K and V stay in L2: head_group() below
  int tiles;       // work_tiles() below
  Mask mask;
  float scale;     // softmax scale; negative only where softcap, alibi or bias is compiled in
  float softcap;   // c of the softcap
  int force_redo;  // tests: every tile counts as overflowed and is done again
};

constexpr int block_threads(const ForwardConfig& c) { return 128 * (c.consumers + 1); }

constexpr int padded64(int n) { return (n + 63) / 64 * 64; }

constexpr int q_tile_bytes(const ForwardConfig& c) {
  const int d = c.head_dim > c.head_dim_v ? c.head_dim : c.head_dim_v;  // out is staged in it
  return 64 * c.consumers * padded64(d) * 2;
}
constexpr int k_tile_bytes(const ForwardConfig& c) { return c.keys * padded64(c.head_dim) * 2; }
constexpr int v_tile_bytes(const ForwardConfig& c) { return c.keys * padded64(c.head_dim_v) * 2; }

// Dynamic shared memory, with 1024 bytes to align by and 1024 for barriers and flags.
constexpr int shared_bytes(const ForwardConfig& c) {
  return c.q_stages * q_tile_bytes(c) + c.stages * (k_tile_bytes(c) + v_tile_bytes(c)) + 2048;
}

// Query tiles of a launch. Packed: an upper bound from the largest sequence and the total.
constexpr int work_tiles(const ForwardConfig& c, const ForwardParams& p) {
  const long long rows = 64 * c.consumers;
  const long long per_sequence = (p.seqlen_q + rows - 1) / rows;
  long long tiles = per_sequence * p.batch * p.heads_q;
  if (p.cu_seqlens_q != nullptr) {
    const long long by_total = (p.total_q / rows + p.batch) * p.heads_q;
    if (by_total < tiles) tiles = by_total;
  }
  return static_cast<int>(tiles);
}

// Heads walked together: as many as keep K and V within 32 MB of L2 (8 MB: -3 to -7 % causal,
// H200, trial of 2026-11).
constexpr int head_group(const ForwardConfig& c, const ForwardParams& p) {
  const long long bytes_per_head = 2LL * p.seqlen_k * (c.head_dim + c.head_dim_v);
  const long long heads_per_kv = p.heads_kv > 0 ? p.heads_q / p.heads_kv : 1;
  const long long heads = p.batch * static_cast<long long>(p.heads_q);
  long long group = bytes_per_head > 0 ? (32LL << 20) / bytes_per_head * heads_per_kv : heads;
  if (group < heads_per_kv) group = heads_per_kv;
  if (group > heads) group = heads;
  return group < 1 ? 1 : static_cast<int>(group);
}

// The tile that measured best for a shape (docs/kernels/forward-sm90.md has the figures). Fill in
// type, mask, head_dim, head_dim_v and the score options; the tile fields are set here.
constexpr ForwardConfig tuned_forward(ForwardConfig c) {
  const int d = c.head_dim > c.head_dim_v ? c.head_dim : c.head_dim_v;
  const bool masked = c.mask != MaskKind::kFull;
  const bool scores = c.softcap || c.alibi || c.boolean || c.bias != BiasType::kNone ||
                      c.mask == MaskKind::kDocuments;
  c.stages = 2;
  c.consumers = 2;
  c.keys = 128;
  c.q_stages = 2;
  c.ping_pong = true;
  c.stale_maximum = !scores;
  if (d <= 64) {
    c.consumers = 3;
  } else if (d <= 128) {
    c.q_in_registers = !scores;
    c.ping_pong = masked;
  } else if (d <= 192) {
    c.keys = 96;
    c.q_stages = 1;
    c.cross_tile = false;
  } else {
    c.keys = masked ? 64 : 80;
    c.q_stages = 1;
    c.cross_tile = false;
  }
  return c;
}

// head_dim as computed for a tensor's head_dim; 0 when there is none.
constexpr int computed_head_dim(int head_dim) {
  constexpr int kSizes[] = {64, 96, 128, 192, 256};
  for (int size : kSizes) {
    if (head_dim <= size) return size;
  }
  return 0;
}

}  // namespace fulmen::sm90
