#include "core/validate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "core/check.h"

namespace fulmen {
namespace {

constexpr int64_t kMaxHeadDim = 256;
constexpr int64_t kLatentHeadDim = 576;  // latent attention (MLA): 576 for q and k, 512 for v
constexpr int64_t kMaxHeadDimV = 512;

// Wider than this, a window reaches past every key that can exist: the same as unlimited.
constexpr int64_t kUnlimitedWindow = int64_t{1} << 40;

Rows rows_of(const Tensor& t) {
  if (t.rank == 4) return {t.data, t.dtype, t.strides[0], t.strides[1], t.strides[2]};
  return {t.data, t.dtype, 0, t.strides[0], t.strides[1]};
}

RowValues row_values_of(const Tensor& t) {
  if (!t.given()) return {};
  if (t.rank == 3) return {t.data, t.dtype, t.strides[0], t.strides[2], t.strides[1]};
  return {t.data, t.dtype, 0, t.strides[1], t.strides[0]};
}

TensorRule operand(std::string_view name, DType dtype, DataRule rule) {
  return {.name = name,
          .dtypes = {dtype},
          .contiguous_rows = true,
          .may_be_null = rule == DataRule::kShapesOnly};
}

Status check_q(const AttentionArgs& args, DataRule rule) {
  FULMEN_RETURN_IF_ERROR(check_tensor(
      args.q, {.name = "q",
               .dtypes = {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16},
               .contiguous_rows = true,
               .may_be_null = rule == DataRule::kShapesOnly}));
  const bool packed = args.sequences.cu_seqlens_q.given();
  if (args.q.rank != (packed ? 3 : 4)) {
    return invalid("q has shape ", shape_text(args.q), "; it must be ",
                   packed ? "[total_q, heads_q, head_dim], since cu_seqlens_q is given"
                          : "[batch, seqlen_q, heads_q, head_dim]; give cu_seqlens_q for packed "
                            "sequences");
  }
  return {};
}

// The sizes that everything else is checked against.
Status read_sizes(const AttentionArgs& args, DataRule rule, Problem* problem) {
  FULMEN_RETURN_IF_ERROR(check_q(args, rule));
  FULMEN_RETURN_IF_ERROR(check_tensor(args.k, operand("k", args.q.dtype, rule)));
  FULMEN_RETURN_IF_ERROR(check_tensor(args.v, operand("v", args.q.dtype, rule)));
  const int k_rank = args.sequences.cu_seqlens_k.given() ? 3 : 4;
  for (const auto& [name, tensor] : {std::pair{"k", &args.k}, std::pair{"v", &args.v}}) {
    if (tensor->rank != k_rank) {
      return invalid(name, " has shape ", shape_text(*tensor), "; it must be ",
                     k_rank == 3 ? "[total_k, heads_kv, head_dim], since cu_seqlens_k is given"
                                 : "[batch, seqlen_k, heads_kv, head_dim]");
    }
  }
  problem->dtype = args.q.dtype;
  problem->heads_q = args.q.shape[args.q.rank - 2];
  problem->head_dim = args.q.shape[args.q.rank - 1];
  problem->heads_kv = args.k.shape[k_rank - 2];
  problem->head_dim_v = args.v.shape[k_rank - 1];
  problem->seqlen_new = args.cache.k_new.given() ? args.cache.k_new.shape[1] : 0;
  problem->page_size = args.cache.page_table.given() ? args.k.shape[1] : 0;
  if (problem->packed_q()) {
    problem->batch = std::max<int64_t>(args.sequences.cu_seqlens_q.shape[0] - 1, 0);
  } else {
    problem->batch = args.q.shape[0];
  }
  return {};
}

Status check_head_sizes(const Problem& p) {
  const bool latent = p.head_dim == kLatentHeadDim && p.head_dim_v == kMaxHeadDimV;
  if (!latent && (p.head_dim < 8 || p.head_dim % 8 != 0 || p.head_dim > kMaxHeadDim)) {
    return invalid("head_dim is ", p.head_dim,
                   "; it must be a multiple of 8 from 8 to 256, or 576 with head_dim_v 512");
  }
  if (p.head_dim_v < 8 || p.head_dim_v % 8 != 0 || p.head_dim_v > kMaxHeadDimV) {
    return invalid("head_dim_v is ", p.head_dim_v, "; it must be a multiple of 8 from 8 to 512");
  }
  if (p.heads_kv < 1 || p.heads_q < 1 || p.heads_q % p.heads_kv != 0) {
    return invalid("heads_q is ", p.heads_q, " and heads_kv ", p.heads_kv,
                   "; heads_q must be a positive multiple of heads_kv (if they look like lengths, ",
                   "the layout is [batch, heads, seqlen, head_dim]: pass its strides)");
  }
  return {};
}

Status check_kv_shapes(const Problem& p) {
  const Tensor& k = p.args.k;
  const Tensor& v = p.args.v;
  if (k.shape[k.rank - 1] != p.head_dim) {
    return invalid("k has head_dim ", k.shape[k.rank - 1], " and q ", p.head_dim,
                   "; they must be equal");
  }
  if (k.rank == 3) {
    return check_shape(v, "v", {k.shape[0], p.heads_kv, p.head_dim_v},
                       "[total_k, heads_kv, head_dim_v]");
  }
  FULMEN_RETURN_IF_ERROR(check_shape(v, "v", {k.shape[0], k.shape[1], p.heads_kv, p.head_dim_v},
                                     "[batch, seqlen_k, heads_kv, head_dim_v] like k"));
  const bool batch_is_free = p.paged() || p.args.cache.cache_batch_idx.given();
  if (!batch_is_free && k.shape[0] != p.batch) {
    return invalid("k has batch ", k.shape[0], " and q ", p.batch, "; they must be equal");
  }
  return {};
}

// out, dout, dq: rows of q with `dim` columns.
Status check_rows_like_q(const Problem& p, const Tensor& t, std::string_view name, int64_t dim) {
  const Tensor& q = p.args.q;
  if (q.rank == 3) {
    return check_shape(t, name, {q.shape[0], p.heads_q, dim}, "[total_q, heads_q, dim] for q");
  }
  return check_shape(t, name, {q.shape[0], q.shape[1], p.heads_q, dim},
                     "[batch, seqlen_q, heads_q, dim] for q");
}

Status check_row_values(const Problem& p, const Tensor& t, std::string_view name, bool written,
                        DataRule rule) {
  const DType dtype = p.dtype == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  FULMEN_RETURN_IF_ERROR(check_tensor(t, {.name = name,
                                          .dtypes = {dtype},
                                          .written = written,
                                          .may_be_null = rule == DataRule::kShapesOnly}));
  const Tensor& q = p.args.q;
  if (q.rank == 3) {
    return check_shape(t, name, {p.heads_q, q.shape[0]}, "[heads_q, total_q]");
  }
  return check_shape(t, name, {p.batch, p.heads_q, q.shape[1]}, "[batch, heads_q, seqlen_q]");
}

Status check_output(const Problem& p, const Tensor& t, std::string_view name, DataRule rule) {
  return check_tensor(t, {.name = name,
                          .dtypes = {p.dtype},
                          .contiguous_rows = true,
                          .written = true,
                          .may_be_null = rule == DataRule::kShapesOnly});
}

Status check_per_head(const Problem& p, const Tensor& t, std::string_view name, bool with_batch,
                      bool written) {
  FULMEN_RETURN_IF_ERROR(
      check_tensor(t, {.name = name, .dtypes = {DType::kFloat32}, .written = written}));
  if (with_batch && t.rank == 2) {
    return check_shape(t, name, {p.batch, p.heads_q}, "[batch, heads_q] or [heads_q]");
  }
  return check_shape(t, name, {p.heads_q},
                     with_batch ? "[heads_q] or [batch, heads_q]" : "[heads_q]");
}

Status check_bias(const Problem& p, const Tensor& bias, std::string_view name, bool written) {
  FULMEN_RETURN_IF_ERROR(
      check_tensor(bias, {.name = name, .dtypes = {DType::kFloat32, p.dtype}, .written = written}));
  return check_broadcast_shape(bias, name, p);
}

Status check_scores(const Problem& p) {
  const Scores& scores = p.args.scores;
  if (!std::isfinite(p.scale)) return invalid("scale is not finite; give a finite number");
  if (!(scores.softcap >= 0) || !std::isfinite(scores.softcap)) {
    return invalid("softcap is ", scores.softcap, "; it must be 0 (off) or positive and finite");
  }
  if (scores.alibi_slopes.given()) {
    FULMEN_RETURN_IF_ERROR(check_per_head(p, scores.alibi_slopes, "alibi_slopes", true, false));
  }
  if (scores.sinks.given()) {
    FULMEN_RETURN_IF_ERROR(check_per_head(p, scores.sinks, "sinks", false, false));
  }
  if (scores.bias.given()) {
    FULMEN_RETURN_IF_ERROR(check_bias(p, scores.bias, "bias", false));
  }
  if (!(p.args.dropout.p >= 0 && p.args.dropout.p < 1)) {
    return invalid("dropout p is ", p.args.dropout.p, "; it must be at least 0 and below 1");
  }
  return {};
}

Status check_execution(const Problem& p) {
  const Execution& execution = p.args.execution;
  if (execution.num_splits < 0) {
    return invalid("num_splits is ", execution.num_splits, "; it must be 0 (chosen) or positive");
  }
  if (execution.num_threads < 0) {
    return invalid("num_threads is ", execution.num_threads, "; it must be 0 (all) or positive");
  }
  return {};
}

Status check_devices(const AttentionArgs& args, std::initializer_list<const Tensor*> more) {
  const Tensor& q = args.q;
  const auto same = [&q](const Tensor& t) {
    return !t.given() || (t.device == q.device && t.device_index == q.device_index);
  };
  for (const Tensor* t : {&args.k,
                          &args.v,
                          &args.out,
                          &args.lse,
                          &args.scores.bias,
                          &args.scores.alibi_slopes,
                          &args.scores.sinks,
                          &args.mask.boolean,
                          &args.mask.document_ids_q,
                          &args.mask.document_ids_k,
                          &args.mask.block_counts,
                          &args.mask.block_indices,
                          &args.sequences.cu_seqlens_q,
                          &args.sequences.cu_seqlens_k,
                          &args.sequences.seqused_q,
                          &args.sequences.seqused_k,
                          &args.cache.cache_seqlens,
                          &args.cache.k_new,
                          &args.cache.v_new,
                          &args.cache.page_table,
                          &args.cache.cache_batch_idx,
                          &args.cache.leftpad,
                          &args.cache.rotary_cos,
                          &args.cache.rotary_sin}) {
    if (!same(*t)) return invalid("the tensors lie on different devices; move them to one");
  }
  for (const Tensor* t : more) {
    if (!same(*t)) return invalid("the tensors lie on different devices; move them to one");
  }
  return {};
}

Status check_not_aliased(std::string_view name, const Tensor& output, const AttentionArgs& args) {
  for (const auto& [input_name, input] :
       {std::pair{"q", &args.q}, std::pair{"k", &args.k}, std::pair{"v", &args.v}}) {
    if (output.data != nullptr && output.data == input->data) {
      return invalid(name, " and ", input_name, " share memory; give ", name, " its own");
    }
  }
  return {};
}

Status validate_gradients(const BackwardArgs& args, DataRule rule, const Problem& p) {
  const AttentionArgs& forward = args.forward;
  FULMEN_RETURN_IF_ERROR(check_tensor(args.dout, operand("dout", p.dtype, rule)));
  FULMEN_RETURN_IF_ERROR(check_rows_like_q(p, args.dout, "dout", p.head_dim_v));
  if (args.dlse.given()) {
    FULMEN_RETURN_IF_ERROR(check_row_values(p, args.dlse, "dlse", false, rule));
  }
  FULMEN_RETURN_IF_ERROR(check_output(p, args.dq, "dq", rule));
  FULMEN_RETURN_IF_ERROR(check_output(p, args.dk, "dk", rule));
  FULMEN_RETURN_IF_ERROR(check_output(p, args.dv, "dv", rule));
  FULMEN_RETURN_IF_ERROR(check_rows_like_q(p, args.dq, "dq", p.head_dim));
  FULMEN_RETURN_IF_ERROR(check_same_shape(args.dk, "dk", forward.k, "k"));
  FULMEN_RETURN_IF_ERROR(check_same_shape(args.dv, "dv", forward.v, "v"));
  for (const auto& [name, gradient] :
       {std::pair{"dq", &args.dq}, std::pair{"dk", &args.dk}, std::pair{"dv", &args.dv}}) {
    FULMEN_RETURN_IF_ERROR(check_not_aliased(name, *gradient, forward));
  }
  if (args.dbias.given()) {
    if (!forward.scores.bias.given()) return invalid("dbias is asked for, but no bias is given");
    FULMEN_RETURN_IF_ERROR(check_bias(p, args.dbias, "dbias", true));
    FULMEN_RETURN_IF_ERROR(check_same_shape(args.dbias, "dbias", forward.scores.bias, "bias"));
  }
  if (args.dsinks.given()) {
    if (!forward.scores.sinks.given())
      return invalid("dsinks is asked for, but no sinks are given");
    FULMEN_RETURN_IF_ERROR(check_per_head(p, args.dsinks, "dsinks", false, true));
  }
  if (args.dalibi_slopes.given()) {
    const Tensor& slopes = forward.scores.alibi_slopes;
    if (!slopes.given()) {
      return invalid("dalibi_slopes is asked for, but no alibi_slopes are given");
    }
    FULMEN_RETURN_IF_ERROR(check_per_head(p, args.dalibi_slopes, "dalibi_slopes", true, true));
    FULMEN_RETURN_IF_ERROR(
        check_same_shape(args.dalibi_slopes, "dalibi_slopes", slopes, "alibi_slopes"));
  }
  return {};
}

}  // namespace

Status validate_inputs(const AttentionArgs& args, DataRule rule, Problem* problem) {
  FULMEN_RETURN_IF_ERROR(check_devices(args, {}));
  *problem = {};
  problem->args = args;
  Mask& mask = problem->args.mask;
  if (mask.window_left > kUnlimitedWindow) mask.window_left = -1;
  if (mask.window_right > kUnlimitedWindow) mask.window_right = -1;
  FULMEN_RETURN_IF_ERROR(read_sizes(args, rule, problem));
  FULMEN_RETURN_IF_ERROR(check_head_sizes(*problem));
  problem->group = problem->heads_q / problem->heads_kv;
  problem->scale = std::isnan(args.scores.scale)
                       ? 1.0 / std::sqrt(static_cast<double>(problem->head_dim))
                       : args.scores.scale;
  FULMEN_RETURN_IF_ERROR(check_kv_shapes(*problem));
  FULMEN_RETURN_IF_ERROR(validate_lengths(problem));
  FULMEN_RETURN_IF_ERROR(check_scores(*problem));
  FULMEN_RETURN_IF_ERROR(validate_mask(*problem));
  FULMEN_RETURN_IF_ERROR(check_execution(*problem));
  problem->q = rows_of(args.q);
  problem->k = rows_of(args.k);
  problem->v = rows_of(args.v);
  problem->out = rows_of(args.out);
  problem->lse = row_values_of(args.lse);
  return validate_cache(*problem);
}

Status validate(const AttentionArgs& args, DataRule rule, Problem* problem) {
  FULMEN_RETURN_IF_ERROR(validate_inputs(args, rule, problem));
  FULMEN_RETURN_IF_ERROR(check_output(*problem, args.out, "out", rule));
  FULMEN_RETURN_IF_ERROR(check_rows_like_q(*problem, args.out, "out", problem->head_dim_v));
  FULMEN_RETURN_IF_ERROR(check_not_aliased("out", args.out, args));
  if (args.lse.given()) {
    FULMEN_RETURN_IF_ERROR(check_row_values(*problem, args.lse, "lse", true, rule));
  }
  return {};
}

Status validate(const BackwardArgs& args, DataRule rule, Problem* problem) {
  const AttentionArgs& forward = args.forward;
  if (forward.cache.cache_seqlens.given()) {
    return invalid("the backward pass takes no KV cache; give k and v themselves");
  }
  FULMEN_RETURN_IF_ERROR(validate_inputs(forward, rule, problem));
  FULMEN_RETURN_IF_ERROR(
      check_devices(forward, {&args.dout, &args.dlse, &args.dq, &args.dk, &args.dv, &args.dbias,
                              &args.dsinks, &args.dalibi_slopes}));
  problem->pass = Pass::kBackward;
  FULMEN_RETURN_IF_ERROR(check_tensor(forward.out, operand("out", problem->dtype, rule)));
  FULMEN_RETURN_IF_ERROR(check_rows_like_q(*problem, forward.out, "out", problem->head_dim_v));
  FULMEN_RETURN_IF_ERROR(check_row_values(*problem, forward.lse, "lse", false, rule));
  FULMEN_RETURN_IF_ERROR(validate_gradients(args, rule, *problem));
  FULMEN_RETURN_IF_ERROR(
      check_devices(forward, {&args.dout, &args.dlse, &args.dq, &args.dk, &args.dv, &args.dbias,
                              &args.dsinks, &args.dalibi_slopes}));
  problem->grads = args;
  problem->grads.forward = {};
  problem->dout = rows_of(args.dout);
  problem->dlse = row_values_of(args.dlse);
  problem->dq = rows_of(args.dq);
  problem->dk = rows_of(args.dk);
  problem->dv = rows_of(args.dv);
  return {};
}

}  // namespace fulmen
