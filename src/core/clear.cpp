#include "core/clear.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace fulmen {
namespace {

struct RowSpan {
  int64_t batch, begin, end;
};

void zero(const Rows& rows, const RowSpan& span, int64_t heads, int64_t dim) {
  for (int64_t row = span.begin; row < span.end; ++row) {
    for (int64_t head = 0; head < heads; ++head) {
      std::memset(rows.bytes_at(span.batch, row, head), 0,
                  static_cast<size_t>(dim * size_of(rows.dtype)));
    }
  }
}

void set_empty(const RowValues& lse, const RowSpan& span, int64_t heads) {
  if (lse.data == nullptr) return;
  for (int64_t row = span.begin; row < span.end; ++row) {
    for (int64_t head = 0; head < heads; ++head) {
      lse.set(span.batch, row, head, -std::numeric_limits<double>::infinity());
    }
  }
}

// Calls visit(RowSpan) for the rows of a tensor that no sequence has. Packed sequences ascend, so
// what lies between the end of one and the start of the next is a gap.
template <typename Visit>
void for_each_gap(const Problem& problem, bool queries, const Visit& visit) {
  const Tensor& tensor = queries ? problem.args.q : problem.args.k;
  const bool packed = queries ? problem.packed_q() : problem.packed_k();
  int64_t covered = 0;
  for (int64_t b = 0; b < problem.batch; ++b) {
    const Sequence sequence = problem.sequence(b);
    const int64_t row = queries ? sequence.q_row : sequence.k_row;
    const int64_t end = row + (queries ? sequence.seqlen_q : sequence.seqlen_k);
    if (packed) {
      visit(RowSpan{0, covered, row});
      covered = std::max(covered, end);
    } else {
      visit(RowSpan{b, end, tensor.shape[1]});
    }
  }
  if (packed) visit(RowSpan{0, covered, tensor.shape[0]});
}

}  // namespace

void clear_rows_outside_sequences(const Problem& problem) {
  const int64_t heads_q = problem.heads_q;
  const int64_t heads_kv = problem.heads_kv;
  if (problem.pass == Pass::kForward) {
    for_each_gap(problem, true, [&](const RowSpan& span) {
      zero(problem.out, span, heads_q, problem.head_dim_v);
      set_empty(problem.lse, span, heads_q);
    });
    return;
  }
  for_each_gap(problem, true,
               [&](const RowSpan& span) { zero(problem.dq, span, heads_q, problem.head_dim); });
  for_each_gap(problem, false, [&](const RowSpan& span) {
    zero(problem.dk, span, heads_kv, problem.head_dim);
    zero(problem.dv, span, heads_kv, problem.head_dim_v);
  });
}

}  // namespace fulmen
