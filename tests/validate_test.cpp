// Every refusal of the border: its code and its sentence.
#include "core/validate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace fulmen {
namespace {

// A dense float32 call that is right, over memory that is never touched.
struct Call {
  std::vector<float> memory = std::vector<float>(1 << 16);
  std::vector<int32_t> ints = std::vector<int32_t>(64);
  BackwardArgs args;

  AttentionArgs& forward() { return args.forward; }
  Tensor floats(std::initializer_list<int64_t> shape, int64_t place) {
    return make_tensor(memory.data() + place, DType::kFloat32, shape);
  }
  Tensor lengths(std::vector<int32_t> values) {
    const size_t start = used_ints;
    for (const int32_t value : values) ints[used_ints++] = value;
    return make_tensor(ints.data() + start, DType::kInt32, {static_cast<int64_t>(values.size())});
  }
  size_t used_ints = 0;
};

Call dense_call() {
  Call call;
  AttentionArgs& forward = call.forward();
  forward.q = call.floats({2, 5, 4, 16}, 0);
  forward.k = call.floats({2, 7, 2, 16}, 1000);
  forward.v = call.floats({2, 7, 2, 8}, 2000);
  forward.out = call.floats({2, 5, 4, 8}, 3000);
  forward.lse = call.floats({2, 4, 5}, 4000);
  call.args.dout = call.floats({2, 5, 4, 8}, 5000);
  call.args.dq = call.floats({2, 5, 4, 16}, 6000);
  call.args.dk = call.floats({2, 7, 2, 16}, 7000);
  call.args.dv = call.floats({2, 7, 2, 8}, 8000);
  return call;
}

Call packed_call() {
  Call call = dense_call();
  AttentionArgs& forward = call.forward();
  forward.q = call.floats({10, 4, 16}, 0);
  forward.k = call.floats({14, 2, 16}, 1000);
  forward.v = call.floats({14, 2, 8}, 2000);
  forward.out = call.floats({10, 4, 8}, 3000);
  forward.lse = call.floats({4, 10}, 4000);
  forward.sequences.cu_seqlens_q = call.lengths({0, 3, 10});
  forward.sequences.cu_seqlens_k = call.lengths({0, 7, 14});
  return call;
}

Call cache_call() {
  Call call = dense_call();
  call.forward().cache.cache_seqlens = call.lengths({6, 7});
  return call;
}

Call paged_call() {
  Call call = dense_call();
  AttentionArgs& forward = call.forward();
  forward.k = call.floats({6, 4, 2, 16}, 1000);
  forward.v = call.floats({6, 4, 2, 8}, 2000);
  forward.cache.cache_seqlens = call.lengths({6, 7});
  forward.cache.page_table = call.lengths({0, 1, 2, 3});
  forward.cache.page_table = make_tensor(forward.cache.page_table.data, DType::kInt32, {2, 2});
  return call;
}

enum class Border { kForward, kBackward };

struct Refusal {
  std::string name;
  Call (*make)();
  std::function<void(Call&)> spoil;
  std::string sentence;
  Border border = Border::kForward;
};

Status validate_call(Call& call, Border border) {
  Problem problem;
  return border == Border::kForward ? validate(call.forward(), DataRule::kNeeded, &problem)
                                    : validate(call.args, DataRule::kNeeded, &problem);
}

class RefusalTest : public testing::TestWithParam<Refusal> {};

TEST_P(RefusalTest, CodeAndSentence) {
  Call good = GetParam().make();
  ASSERT_EQ(validate_call(good, GetParam().border).message(), "");
  Call call = GetParam().make();
  GetParam().spoil(call);
  const Status status = validate_call(call, GetParam().border);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), GetParam().sentence);
}

std::vector<Refusal> operand_refusals() {
  return {
      {"q_missing", dense_call, [](Call& c) { c.forward().q = {}; }, "q is missing"},
      {"q_rank", dense_call,
       [](Call& c) {
         c.forward().q = c.floats({5, 4, 16}, 0);
       },
       "q has shape [5, 4, 16]; it must be [batch, seqlen_q, heads_q, head_dim]; give "
       "cu_seqlens_q for packed sequences"},
      {"q_type", dense_call, [](Call& c) { c.forward().q.dtype = DType::kInt32; },
       "q is int32; it must be float32 or float64 or float16 or bfloat16"},
      {"unknown_type", dense_call, [](Call& c) { c.forward().q.dtype = static_cast<DType>(99); },
       "q is an unknown type; it must be float32 or float64 or float16 or bfloat16"},
      {"mixed_types", dense_call, [](Call& c) { c.forward().k.dtype = DType::kBFloat16; },
       "k is bfloat16; it must be float32"},
      {"last_stride", dense_call, [](Call& c) { c.forward().v.strides[3] = 2; },
       "v has stride 2 in its last dimension; it must be 1: make the last dimension contiguous"},
      {"null", dense_call, [](Call& c) { c.forward().k.data = nullptr; },
       "k of shape [2, 7, 2, 16] has no data (a null pointer)"},
      {"misaligned", dense_call,
       [](Call& c) { c.forward().k.data = static_cast<char*>(c.forward().k.data) + 1; },
       "k is not aligned to its elements of 4 bytes"},
      {"negative_size", dense_call, [](Call& c) { c.forward().q.shape[1] = -5; },
       "q has a negative size in shape [2, -5, 4, 16]"},
      {"huge", dense_call, [](Call& c) { c.forward().q.shape[1] = int64_t{1} << 60; },
       "q of shape [2, 1152921504606846976, 4, 16] is larger than any memory"},
      {"far_stride", dense_call, [](Call& c) { c.forward().q.strides[0] = int64_t{1} << 61; },
       "q has stride 2305843009213693952 in dimension 0, which reaches further than any memory"},
      {"devices", dense_call, [](Call& c) { c.forward().k.device = Device::kCuda; },
       "the tensors lie on different devices; move them to one"},
      {"two_gpus", dense_call, [](Call& c) { c.forward().k.device_index = 1; },
       "the tensors lie on different devices; move them to one"},
      {"head_dim_0", dense_call,
       [](Call& c) { c.forward().q.shape[3] = c.forward().k.shape[3] = 0; },
       "head_dim is 0; it must be a multiple of 8 from 8 to 256, or 576 with head_dim_v 512"},
      {"head_dim_7", dense_call, [](Call& c) { c.forward().q.shape[3] = 7; },
       "head_dim is 7; it must be a multiple of 8 from 8 to 256, or 576 with head_dim_v 512"},
      {"head_dim_576", dense_call, [](Call& c) { c.forward().q.shape[3] = 576; },
       "head_dim is 576; it must be a multiple of 8 from 8 to 256, or 576 with head_dim_v 512"},
      {"head_dim_v", dense_call, [](Call& c) { c.forward().v.shape[3] = 4; },
       "head_dim_v is 4; it must be a multiple of 8 from 8 to 512"},
      {"heads", dense_call, [](Call& c) { c.forward().q.shape[2] = 3; },
       "heads_q is 3 and heads_kv 2; heads_q must be a positive multiple of heads_kv (if they look "
       "like lengths, the layout is [batch, heads, seqlen, head_dim]: pass its strides)"},
      {"k_head_dim", dense_call, [](Call& c) { c.forward().k.shape[3] = 8; },
       "k has head_dim 8 and q 16; they must be equal"},
      {"v_shape", dense_call, [](Call& c) { c.forward().v.shape[1] = 6; },
       "v has shape [2, 6, 2, 8]; it must be [batch, seqlen_k, heads_kv, head_dim_v] like k = "
       "[2, 7, 2, 8]"},
      {"batch", dense_call, [](Call& c) { c.forward().k.shape[0] = c.forward().v.shape[0] = 1; },
       "k has batch 1 and q 2; they must be equal"},
      {"out_shape", dense_call,
       [](Call& c) {
         c.forward().out = c.floats({2, 5, 4, 16}, 3000);
       },
       "out has shape [2, 5, 4, 16]; it must be [batch, seqlen_q, heads_q, dim] for q = "
       "[2, 5, 4, 8]"},
      {"out_type", dense_call, [](Call& c) { c.forward().out.dtype = DType::kFloat16; },
       "out is float16; it must be float32"},
      {"out_expanded", dense_call, [](Call& c) { c.forward().out.strides[1] = 0; },
       "out is written, so it may not be expanded: its stride is 0 in dimension 1"},
      {"out_is_q", dense_call, [](Call& c) { c.forward().out.data = c.forward().q.data; },
       "out and q share memory; give out its own"},
      {"lse_shape", dense_call,
       [](Call& c) {
         c.forward().lse = c.floats({2, 5, 4}, 4000);
       },
       "lse has shape [2, 5, 4]; it must be [batch, heads_q, seqlen_q] = [2, 4, 5]"},
  };
}

std::vector<Refusal> option_refusals() {
  const double inf = std::numeric_limits<double>::infinity();
  return {
      {"scale", dense_call, [inf](Call& c) { c.forward().scores.scale = inf; },
       "scale is not finite; give a finite number"},
      {"softcap", dense_call, [](Call& c) { c.forward().scores.softcap = -1; },
       "softcap is -1; it must be 0 (off) or positive and finite"},
      {"slopes", dense_call, [](Call& c) { c.forward().scores.alibi_slopes = c.floats({3}, 9000); },
       "alibi_slopes has shape [3]; it must be [heads_q] or [batch, heads_q] = [4]"},
      {"sinks", dense_call,
       [](Call& c) {
         c.forward().scores.sinks = c.floats({2, 4}, 9000);
       },
       "sinks has shape [2, 4]; it must be [heads_q] = [4]"},
      {"bias", dense_call,
       [](Call& c) {
         c.forward().scores.bias = c.floats({1, 1, 5, 6}, 9000);
       },
       "bias has shape [1, 1, 5, 6]; it must be [2 or 1, 4 or 1, 5 or 1, 7]"},
      {"dropout", dense_call, [](Call& c) { c.forward().dropout.p = 1; },
       "dropout p is 1; it must be at least 0 and below 1"},
      {"dropout_nan", dense_call, [](Call& c) { c.forward().dropout.p = std::nan(""); },
       "dropout p is nan; it must be at least 0 and below 1"},
      {"window", dense_call,
       [](Call& c) {
         c.forward().mask.window_left = -1;
         c.forward().mask.window_right = -3;
       },
       "window right is -3; it must be -1 (unlimited) or at least 0"},
      {"chunk", dense_call, [](Call& c) { c.forward().mask.attention_chunk = -1; },
       "attention_chunk is -1; it must be 0 (off) or positive"},
      {"prefix", dense_call, [](Call& c) { c.forward().mask.prefix = -1; },
       "prefix is -1; it must be at least 0"},
      {"documents_half", dense_call,
       [](Call& c) {
         c.forward().mask.document_ids_q = make_tensor(c.ints.data(), DType::kInt32, {2, 5});
       },
       "document_ids_k is missing"},
      {"documents_shape", dense_call,
       [](Call& c) {
         c.forward().mask.document_ids_q = make_tensor(c.ints.data(), DType::kInt32, {2, 6});
         c.forward().mask.document_ids_k = make_tensor(c.ints.data(), DType::kInt32, {2, 7});
       },
       "document_ids_q has shape [2, 6]; it must be [batch, seqlen] = [2, 5]"},
      {"mask_type", dense_call,
       [](Call& c) {
         c.forward().mask.boolean = c.floats({1, 1, 5, 7}, 9000);
       },
       "mask is float32; it must be bool"},
      {"block_size", dense_call,
       [](Call& c) {
         c.forward().mask.block_counts = make_tensor(c.ints.data(), DType::kInt32, {1, 1, 2});
       },
       "block_q is 0 and block_k 0; both must be at least 1 with a block list"},
      {"block_order", dense_call,
       [](Call& c) {
         Mask& mask = c.forward().mask;
         mask.block_q = mask.block_k = 4;
         mask.block_counts = c.lengths({2, 2});
         mask.block_counts = make_tensor(mask.block_counts.data, DType::kInt32, {1, 1, 2});
         mask.block_indices = c.lengths({0, 1, 1, 0});
         mask.block_indices = make_tensor(mask.block_indices.data, DType::kInt32, {1, 1, 2, 2});
       },
       "block_indices holds 0 after 1; a row must ascend without repeats and stay below 2"},
      {"block_count", dense_call,
       [](Call& c) {
         Mask& mask = c.forward().mask;
         mask.block_q = mask.block_k = 4;
         mask.block_counts = c.lengths({3, 0});
         mask.block_counts = make_tensor(mask.block_counts.data, DType::kInt32, {1, 1, 2});
         mask.block_indices = make_tensor(c.ints.data(), DType::kInt32, {1, 1, 2, 2});
       },
       "block_counts holds 3; it must be 0 to max_blocks = 2"},
      {"splits", dense_call, [](Call& c) { c.forward().execution.num_splits = -1; },
       "num_splits is -1; it must be 0 (chosen) or positive"},
      {"threads", dense_call, [](Call& c) { c.forward().execution.num_threads = -2; },
       "num_threads is -2; it must be 0 (all) or positive"},
  };
}

std::vector<Refusal> length_refusals() {
  return {
      {"cu_falls", packed_call, [](Call& c) { c.ints[1] = 11; },
       "cu_seqlens_q[1] is 11; the values must not fall and must stay between 0 and the 10 rows of "
       "the buffer"},
      {"cu_order", packed_call, [](Call& c) { c.ints[0] = 4; },
       "cu_seqlens_q[1] is 3; the values must not fall and must stay between 0 and the 10 rows of "
       "the buffer"},
      {"cu_batch", packed_call, [](Call& c) { c.forward().sequences.cu_seqlens_k.shape[0] = 2; },
       "cu_seqlens_k has shape [2]; it must be [batch + 1] = [3]"},
      {"max_seqlen", packed_call, [](Call& c) { c.forward().sequences.max_seqlen_q = 6; },
       "max_seqlen_q is 6, but a sequence has 7; give the true maximum or leave it out"},
      {"seqused", dense_call,
       [](Call& c) {
         c.forward().sequences.seqused_k = c.lengths({7, 8});
       },
       "seqused_k[1] is 8; it must be 0 to 7, the length of that sequence"},
      {"cache_full", cache_call,
       [](Call& c) {
         c.forward().cache.k_new = c.floats({2, 1, 2, 16}, 9000);
         c.forward().cache.v_new = c.floats({2, 1, 2, 8}, 9500);
       },
       "cache_seqlens[1] is 7 and 1 keys are appended; together they must fit the capacity of 7"},
      {"leftpad", cache_call,
       [](Call& c) {
         c.forward().cache.leftpad = c.lengths({7, 0});
       },
       "leftpad[0] is 7; it must be 0 to cache_seqlens = 6"},
      {"leftpad_alone", dense_call,
       [](Call& c) {
         c.forward().cache.leftpad = c.lengths({1, 1});
       },
       "leftpad needs cache_seqlens"},
      {"half_append", cache_call,
       [](Call& c) {
         c.ints[1] = 5;
         c.forward().cache.k_new = c.floats({2, 1, 2, 16}, 9000);
       },
       "v_new is missing"},
      {"slot", cache_call,
       [](Call& c) {
         c.forward().cache.cache_batch_idx = c.lengths({0, 2});
       },
       "cache_batch_idx[1] is 2; the cache has rows 0 to 1"},
      {"slot_twice", cache_call,
       [](Call& c) {
         c.ints[1] = 5;
         c.forward().cache.cache_batch_idx = c.lengths({1, 1});
         c.forward().cache.k_new = c.floats({2, 1, 2, 16}, 9000);
         c.forward().cache.v_new = c.floats({2, 1, 2, 8}, 9500);
       },
       "cache_batch_idx holds 1 twice; appended keys would overwrite each other"},
      {"rotary_short", cache_call,
       [](Call& c) {
         c.forward().cache.rotary_cos = c.floats({6, 8}, 9000);
         c.forward().cache.rotary_sin = c.floats({6, 8}, 9500);
       },
       "rotary_cos has 6 positions, but a sequence has 7 keys; give a longer table"},
      {"rotary_wide", cache_call,
       [](Call& c) {
         c.forward().cache.rotary_cos = c.floats({9, 9}, 9000);
         c.forward().cache.rotary_sin = c.floats({9, 9}, 9500);
       },
       "rotary_cos has shape [9, 9]; it must be [positions, rotary_dim / 2] with rotary_dim at "
       "most head_dim = 16"},
      {"page_id", paged_call, [](Call& c) { c.ints[3] = 6; },
       "page_table[0, 1] is 6; the pool has pages 0 to 5"},
      {"page_size", paged_call,
       [](Call& c) { c.forward().k.shape[1] = c.forward().v.shape[1] = 3; },
       "the page size is 3 (k's second dimension); it must be a power of two"},
      {"cache_backward", dense_call,
       [](Call& c) {
         c.forward().cache.cache_seqlens = c.lengths({6, 7});
       },
       "the backward pass takes no KV cache; give k and v themselves", Border::kBackward},
      {"lse_missing", dense_call, [](Call& c) { c.forward().lse = {}; }, "lse is missing",
       Border::kBackward},
      {"dk_shape", dense_call,
       [](Call& c) {
         c.args.dk = c.floats({2, 7, 4, 16}, 7000);
       },
       "dk has shape [2, 7, 4, 16]; it must be [2, 7, 2, 16] like k", Border::kBackward},
      {"dq_type", dense_call, [](Call& c) { c.args.dq.dtype = DType::kFloat64; },
       "dq is float64; it must be float32", Border::kBackward},
      {"dbias", dense_call,
       [](Call& c) {
         c.args.dbias = c.floats({1, 1, 5, 7}, 9000);
       },
       "dbias is asked for, but no bias is given", Border::kBackward},
      {"dsinks", dense_call, [](Call& c) { c.args.dsinks = c.floats({4}, 9000); },
       "dsinks is asked for, but no sinks are given", Border::kBackward},
      {"dslopes", dense_call, [](Call& c) { c.args.dalibi_slopes = c.floats({4}, 9000); },
       "dalibi_slopes is asked for, but no alibi_slopes are given", Border::kBackward},
      {"dout_missing", dense_call, [](Call& c) { c.args.dout = {}; }, "dout is missing",
       Border::kBackward},
  };
}

std::string refusal_name(const testing::TestParamInfo<Refusal>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Operands, RefusalTest, testing::ValuesIn(operand_refusals()),
                         refusal_name);
INSTANTIATE_TEST_SUITE_P(Options, RefusalTest, testing::ValuesIn(option_refusals()), refusal_name);
INSTANTIATE_TEST_SUITE_P(Lengths, RefusalTest, testing::ValuesIn(length_refusals()), refusal_name);

TEST(Validate, EntriesPastTheUsedLengthAreNeverRead) {
  Call call = paged_call();
  call.ints[0] = 3;   // the first sequence needs one page of four
  call.ints[3] = -1;  // its second entry may hold anything
  Problem problem;
  EXPECT_EQ(validate(call.forward(), DataRule::kNeeded, &problem).message(), "");
}

TEST(Validate, EmptySizesAreLegal) {
  Call call = dense_call();
  AttentionArgs& forward = call.forward();
  for (Tensor* t : {&forward.k, &forward.v}) t->shape[1] = 0;
  Problem problem;
  EXPECT_EQ(validate(forward, DataRule::kNeeded, &problem).message(), "");
  EXPECT_EQ(problem.max_seqlen_k, 0);
}

TEST(Validate, HugeWindowsAreUnlimited) {
  Call call = dense_call();
  call.forward().mask.window_left = std::numeric_limits<int64_t>::max();
  Problem problem;
  ASSERT_TRUE(validate(call.forward(), DataRule::kNeeded, &problem).ok());
  EXPECT_EQ(problem.args.mask.window_left, -1);
}

}  // namespace
}  // namespace fulmen
