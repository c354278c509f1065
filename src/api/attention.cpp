#include "fulmen/attention.h"

#include <omp.h>

#include <new>

#include "api/registry.h"
#include "core/clear.h"
#include "core/validate.h"

namespace fulmen {
namespace {

// Nothing may throw across the border; the standard library's containers throw this one.
template <typename Call>
Status without_exceptions(const Call& call) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return {StatusCode::kOutOfMemory, "the host is out of memory"};
  }
}

void resolve_threads(Problem* problem) {
  const int32_t asked = problem->args.execution.num_threads;
  problem->num_threads = asked > 0 ? asked : omp_get_max_threads();
}

template <typename Args>
Status prepare(const Args& args, DataRule rule, Problem* problem, const Implementation** chosen) {
  if (Status status = validate(args, rule, problem); !status.ok()) return status;
  resolve_threads(problem);
  return choose(*problem, chosen);
}

template <typename Args>
Status workspace_of(const Args& args, size_t* bytes) {
  Problem problem;
  const Implementation* chosen = nullptr;
  if (Status status = prepare(args, DataRule::kShapesOnly, &problem, &chosen); !status.ok()) {
    return status;
  }
  *bytes = chosen->workspace_bytes == nullptr ? 0 : chosen->workspace_bytes(problem);
  return {};
}

Status forward(const AttentionArgs& args) {
  Problem problem;
  const Implementation* chosen = nullptr;
  if (Status status = prepare(args, DataRule::kNeeded, &problem, &chosen); !status.ok()) {
    return status;
  }
  if (chosen->device != Device::kCpu) return chosen->forward(problem);
  clear_rows_outside_sequences(problem);
  return chosen->forward(problem);
}

Status backward(const BackwardArgs& args) {
  Problem problem;
  const Implementation* chosen = nullptr;
  if (Status status = prepare(args, DataRule::kNeeded, &problem, &chosen); !status.ok()) {
    return status;
  }
  if (chosen->device == Device::kCpu) clear_rows_outside_sequences(problem);
  return chosen->backward(problem);
}

}  // namespace

Status attention_forward(const AttentionArgs& args) {
  return without_exceptions([&args] { return forward(args); });
}

Status attention_backward(const BackwardArgs& args) {
  return without_exceptions([&args] { return backward(args); });
}

Status check_cache(const AttentionArgs& args) {
  return without_exceptions([&args] {
    Problem problem;
    return validate_inputs(args, DataRule::kShapesOnly, &problem);
  });
}

Status workspace_bytes(const AttentionArgs& args, size_t* bytes) {
  return without_exceptions([&] { return workspace_of(args, bytes); });
}

Status workspace_bytes(const BackwardArgs& args, size_t* bytes) {
  return without_exceptions([&] { return workspace_of(args, bytes); });
}

std::vector<std::string> implementations() {
  std::vector<std::string> names;
  for (const Implementation* implementation : registry()) names.emplace_back(implementation->name);
  return names;
}

}  // namespace fulmen
