// The implementations, in the order in which they are tried.
#ifndef FULMEN_API_REGISTRY_H_
#define FULMEN_API_REGISTRY_H_

#include <span>
#include <string>
#include <string_view>

#include "core/implementation.h"

namespace fulmen {

std::span<const Implementation* const> registry();

// The implementation for `problem`: the one named in its execution, else the first that lacks
// nothing. A refusal names each one tried and what it lacked.
Status choose(const Problem& problem, const Implementation** chosen);

}  // namespace fulmen

#endif  // FULMEN_API_REGISTRY_H_
