#include "api/registry.h"

#include <array>

#include "core/check.h"

namespace fulmen {
namespace {

std::string_view device_name(Device device) { return device == Device::kCpu ? "the CPU" : "a GPU"; }

// What keeps `implementation` from doing the problem; empty: nothing.
std::string lack_of(const Implementation& implementation, const Problem& problem) {
  if (implementation.device != problem.args.q.device) {
    return sentence("runs on ", device_name(implementation.device), " only");
  }
  if (problem.pass == Pass::kBackward && implementation.backward == nullptr) {
    return "has no backward pass";
  }
  return implementation.lacks(problem);
}

}  // namespace

std::span<const Implementation* const> registry() {
  static const std::array<const Implementation*, 0> kBestFirst{};
  return kBestFirst;
}

Status choose(const Problem& problem, const Implementation** chosen) {
  const std::string_view wanted = problem.args.execution.implementation;
  std::string tried;
  for (const Implementation* implementation : registry()) {
    if (!wanted.empty() && implementation->name != wanted) continue;
    const std::string lack = lack_of(*implementation, problem);
    if (lack.empty()) {
      *chosen = implementation;
      return {};
    }
    tried += sentence(tried.empty() ? "" : "; ", implementation->name, " ", lack);
  }
  if (!tried.empty()) {
    return {StatusCode::kUnsupported, "no implementation can do this call: " + tried};
  }
  std::string names;
  for (const Implementation* implementation : registry()) {
    names += sentence(names.empty() ? "" : ", ", implementation->name);
  }
  return invalid("there is no implementation named '", wanted, "'; there are ", names);
}

}  // namespace fulmen
