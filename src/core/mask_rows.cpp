#include "core/mask_rows.h"

#include <algorithm>

namespace fulmen {
namespace {

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

RowKeys clipped(RowKeys keys, int64_t begin, int64_t end) {
  keys.begin0 = std::max(keys.begin0, begin);
  keys.end0 = std::min(keys.end0, end);
  keys.begin1 = std::max(keys.begin1, begin);
  keys.end1 = std::min(keys.end1, end);
  if (keys.begin1 >= keys.end1) keys.begin1 = keys.end1 = 0;
  if (keys.begin0 >= keys.end0) return {keys.begin1, keys.end1, 0, 0};
  return keys;
}

// The documents of rows or keys [begin, end): their smallest and largest id.
struct DocumentSpan {
  int32_t low, high;
};

DocumentSpan document_span(const int32_t* ids, int64_t stride, int64_t begin, int64_t end) {
  DocumentSpan span{ids[begin * stride], ids[begin * stride]};
  for (int64_t n = begin + 1; n < end; ++n) {
    span.low = std::min(span.low, ids[n * stride]);
    span.high = std::max(span.high, ids[n * stride]);
  }
  return span;
}

}  // namespace

TileMask::TileMask(const Problem& problem, const Sequence& sequence, int64_t head_q)
    : mask_(problem.args.mask),
      batch_index_(sequence.index),
      head_(head_q),
      seqlen_q_(sequence.seqlen_q),
      seqlen_k_(sequence.seqlen_k),
      offset_(sequence.offset()) {
  if (mask_.document_ids_q.given()) {
    const auto ids = [](const Tensor& t, int64_t batch, int64_t row) {
      const int64_t at =
          t.rank == 2 ? batch * t.strides[0] + row * t.strides[1] : row * t.strides[0];
      return static_cast<const int32_t*>(t.data) + at;
    };
    documents_q_ = ids(mask_.document_ids_q, sequence.index, sequence.q_row);
    documents_k_ =
        ids(mask_.document_ids_k, sequence.index, problem.packed_k() ? sequence.k_row : 0);
    document_stride_q_ = mask_.document_ids_q.strides[mask_.document_ids_q.rank - 1];
    document_stride_k_ = mask_.document_ids_k.strides[mask_.document_ids_k.rank - 1];
  }
  intervals_only_ =
      documents_q_ == nullptr && !mask_.boolean.given() && !mask_.block_counts.given();
}

RowKeys TileMask::interval(int64_t i) const {
  int64_t begin = 0;
  int64_t end = seqlen_k_;
  if (mask_.causal) {
    const bool top_left = mask_.causal_alignment == CausalAlignment::kTopLeft;
    end = std::min(end, i + (top_left ? 0 : offset_) + 1);
  }
  if (mask_.window_left >= 0) begin = std::max(begin, i + offset_ - mask_.window_left);
  // A right window wide enough to reach past every key must not overflow the sum.
  if (mask_.window_right >= 0 && mask_.window_right < seqlen_k_ - i - offset_) {
    end = std::min(end, i + offset_ + mask_.window_right + 1);
  }
  RowKeys keys{begin, std::max(begin, end), 0, 0};
  if (mask_.prefix > 0) {
    const int64_t prefix = std::min(mask_.prefix, seqlen_k_);
    if (begin >= end) {
      keys = {0, prefix, 0, 0};
    } else if (begin <= prefix) {
      keys = {0, std::max(prefix, end), 0, 0};
    } else {
      keys = {0, prefix, begin, end};
    }
  }
  if (mask_.attention_chunk > 0) {
    const int64_t chunk = floor_div(i + offset_, mask_.attention_chunk);
    // Rows before key 0 live in chunks that no key has.
    if (chunk < 0) return {};
    const int64_t first = chunk * mask_.attention_chunk;
    const int64_t last =
        mask_.attention_chunk < seqlen_k_ - first ? first + mask_.attention_chunk : seqlen_k_;
    return clipped(keys, first, last);
  }
  return clipped(keys, 0, seqlen_k_);
}

bool TileMask::visible(int64_t i, int64_t j) const {
  return interval(i).contains(j) && (intervals_only_ || visible_elementwise(i, j));
}

bool TileMask::visible_elementwise(int64_t i, int64_t j) const {
  if (documents_q_ != nullptr &&
      documents_q_[i * document_stride_q_] != documents_k_[j * document_stride_k_]) {
    return false;
  }
  if (mask_.boolean.given() &&
      static_cast<const uint8_t*>(
          mask_.boolean.data)[broadcast_offset(mask_.boolean, batch_index_, head_, i, j)] == 0) {
    return false;
  }
  return !mask_.block_counts.given() || block_listed(i / mask_.block_q, j / mask_.block_k);
}

bool TileMask::block_listed(int64_t block_row, int64_t block_column) const {
  const Tensor& counts = mask_.block_counts;
  const Tensor& indices = mask_.block_indices;
  const int64_t count_at = (counts.shape[0] > 1 ? batch_index_ * counts.strides[0] : 0) +
                           (counts.shape[1] > 1 ? head_ * counts.strides[1] : 0) +
                           block_row * counts.strides[2];
  const int64_t row_at = (indices.shape[0] > 1 ? batch_index_ * indices.strides[0] : 0) +
                         (indices.shape[1] > 1 ? head_ * indices.strides[1] : 0) +
                         block_row * indices.strides[2];
  const auto* listed = static_cast<const int32_t*>(indices.data);
  int64_t low = 0;
  int64_t high = static_cast<const int32_t*>(counts.data)[count_at];
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    const int32_t column = listed[row_at + middle * indices.strides[3]];
    if (column == block_column) return true;
    if (column < block_column) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return false;
}

// Begin and end of an interval never fall as i grows (a prefix only lowers the begin to 0), so the
// first and last row bound every row between them, empty rows apart.
KeyRange TileMask::key_range(int64_t i_begin, int64_t i_end) const {
  KeyRange range{seqlen_k_, 0};
  const auto widen = [&range](const RowKeys& keys) {
    if (keys.begin0 >= keys.end0) return;
    range.begin = std::min(range.begin, keys.begin0);
    range.end = std::max(range.end, std::max(keys.end0, keys.end1));
  };
  // An empty first row may hide behind it rows that start earlier than the last row does.
  int64_t i = i_begin;
  while (i < i_end && interval(i).begin0 >= interval(i).end0) ++i;
  if (i < i_end) widen(interval(i));
  i = i_end - 1;
  while (i > i_begin && interval(i).begin0 >= interval(i).end0) --i;
  if (i >= i_begin) widen(interval(i));
  return range.begin < range.end ? range : KeyRange{};
}

KeyRange TileMask::row_range(int64_t j_begin, int64_t j_end) const {
  int64_t begin = 0;
  int64_t end = seqlen_q_;
  if (mask_.causal) {
    const bool top_left = mask_.causal_alignment == CausalAlignment::kTopLeft;
    begin = std::max(begin, j_begin - (top_left ? 0 : offset_));
  }
  if (mask_.window_right >= 0 && mask_.window_right < j_begin - offset_) {
    begin = std::max(begin, j_begin - offset_ - mask_.window_right);
  }
  if (mask_.window_left >= 0 && mask_.window_left < end - (j_end - 1 - offset_)) {
    end = std::min(end, j_end - 1 - offset_ + mask_.window_left + 1);
  }
  if (mask_.prefix > 0 && j_begin < mask_.prefix) {
    begin = 0;
    end = seqlen_q_;
  }
  if (mask_.attention_chunk > 0) {
    const int64_t chunk = mask_.attention_chunk;
    begin = std::max(begin, j_begin / chunk * chunk - offset_);
    const int64_t last_chunk = (j_end - 1) / chunk;
    if (chunk < seqlen_k_ - last_chunk * chunk) {
      end = std::min(end, (last_chunk + 1) * chunk - offset_);
    }
  }
  return begin < end ? KeyRange{begin, end} : KeyRange{};
}

TileKind TileMask::classify(int64_t i_begin, int64_t i_end, int64_t j_begin, int64_t j_end) const {
  bool any = false;
  bool all = true;
  for (int64_t i = i_begin; i < i_end && (all || !any); ++i) {
    const RowKeys keys = interval(i);
    const bool inside = (keys.begin0 <= j_begin && j_end <= keys.end0) ||
                        (keys.begin1 <= j_begin && j_end <= keys.end1);
    const bool touches = (keys.begin0 < j_end && j_begin < keys.end0) ||
                         (keys.begin1 < j_end && j_begin < keys.end1);
    all = all && inside;
    any = any || touches;
  }
  if (!any) return TileKind::kHidden;
  if (intervals_only_) return all ? TileKind::kFull : TileKind::kMasked;
  if (documents_q_ != nullptr) {
    const DocumentSpan q = document_span(documents_q_, document_stride_q_, i_begin, i_end);
    const DocumentSpan k = document_span(documents_k_, document_stride_k_, j_begin, j_end);
    if (q.high < k.low || k.high < q.low) return TileKind::kHidden;
    all = all && q.low == q.high && k.low == k.high;
  }
  if (mask_.block_counts.given()) {
    bool any_listed = false;
    const int64_t last_row = (i_end - 1) / mask_.block_q;
    const int64_t last_column = (j_end - 1) / mask_.block_k;
    for (int64_t row = i_begin / mask_.block_q; row <= last_row; ++row) {
      for (int64_t column = j_begin / mask_.block_k; column <= last_column; ++column) {
        const bool listed = block_listed(row, column);
        any_listed = any_listed || listed;
        all = all && listed;
      }
    }
    if (!any_listed) return TileKind::kHidden;
  }
  if (mask_.boolean.given()) return TileKind::kMasked;
  return all ? TileKind::kFull : TileKind::kMasked;
}

}  // namespace fulmen
