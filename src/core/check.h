// What the border's checks are written with: one sentence for the first fault found.
#ifndef FULMEN_CORE_CHECK_H_
#define FULMEN_CORE_CHECK_H_

#include <initializer_list>
#include <sstream>
#include <string>
#include <string_view>

#include "core/problem.h"

namespace fulmen {

template <typename... Parts>
std::string sentence(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  return text.str();
}

template <typename... Parts>
Status invalid(const Parts&... parts) {
  return {StatusCode::kInvalidArgument, sentence(parts...)};
}

std::string_view name_of(DType dtype);

// "[2, 128, 8, 64]"
std::string shape_text(const Tensor& tensor);

class DTypeSet {
 public:
  DTypeSet(std::initializer_list<DType> dtypes) {
    for (const DType dtype : dtypes) bits_ |= bit(dtype);
  }
  bool contains(DType dtype) const { return (bits_ & bit(dtype)) != 0; }
  std::string text() const;  // "float32 or bfloat16"

 private:
  static uint32_t bit(DType dtype) { return 1u << static_cast<int32_t>(dtype); }
  uint32_t bits_ = 0;
};

// A tensor argument with what it may be.
struct TensorRule {
  std::string_view name;
  DTypeSet dtypes;
  bool contiguous_rows = false;  // last stride must be 1
  bool written = false;          // an output: no element may stand in two places
  bool may_be_null = false;      // a question about shapes (explain): no data needed
};

// Everything about one tensor that can be said without looking at the others.
Status check_tensor(const Tensor& tensor, const TensorRule& rule);

// The tensor's shape is `expected`, told as `meaning` ("[batch, seqlen_q, heads_q, head_dim]").
Status check_shape(const Tensor& tensor, std::string_view name,
                   std::initializer_list<int64_t> expected, std::string_view meaning);

Status check_same_shape(const Tensor& tensor, std::string_view name, const Tensor& like,
                        std::string_view like_name);

// [batch|1, heads_q|1, seqlen_q|1, seqlen_k]; where lengths vary the last two may be longer.
Status check_broadcast_shape(const Tensor& tensor, std::string_view name, const Problem& problem);

#define FULMEN_RETURN_IF_ERROR(expression)                                      \
  do {                                                                          \
    if (::fulmen::Status status_ = (expression); !status_.ok()) return status_; \
  } while (false)

}  // namespace fulmen

#endif  // FULMEN_CORE_CHECK_H_
