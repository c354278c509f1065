// The border: a call becomes a Problem here or is refused with one sentence. Nothing below checks
// arguments again.
#ifndef FULMEN_CORE_VALIDATE_H_
#define FULMEN_CORE_VALIDATE_H_

#include "core/problem.h"

namespace fulmen {

enum class DataRule {
  kNeeded,      // a call: every tensor has its memory
  kShapesOnly,  // a question: q, k, v, outputs may have none
};

// Everything but out and lse, which the two passes treat differently.
Status validate_inputs(const AttentionArgs& args, DataRule rule, Problem* problem);

Status validate(const AttentionArgs& args, DataRule rule, Problem* problem);
Status validate(const BackwardArgs& args, DataRule rule, Problem* problem);

// Parts of validate. Lengths, page tables and block lists are read only where the host can.
Status validate_lengths(Problem* problem);  // also finds the longest sequences
Status validate_mask(const Problem& problem);
Status validate_cache(const Problem& problem);

}  // namespace fulmen

#endif  // FULMEN_CORE_VALIDATE_H_
