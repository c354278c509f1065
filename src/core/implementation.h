#ifndef FULMEN_CORE_IMPLEMENTATION_H_
#define FULMEN_CORE_IMPLEMENTATION_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "core/problem.h"

namespace fulmen {

// Query rows x keys that one step works on. Zero: the implementation has no tiles.
struct TileShape {
  int64_t q = 0, k = 0;
};

// One way to compute attention. The border has validated the problem, appended new keys to the
// cache, turned q by the rotary table, and written 0 (lse -inf) to every row of the outputs that
// belongs to no sequence. What remains: every row and key of every Problem::sequence(b).
struct Implementation {
  std::string_view name;
  std::string_view what;  // one line for `fulmen info`
  Device device = Device::kCpu;

  // What keeps it from doing the problem ("head_dim above 256"), empty when nothing does.
  std::string (*lacks)(const Problem& problem) = nullptr;
  Status (*forward)(const Problem& problem) = nullptr;
  Status (*backward)(const Problem& problem) = nullptr;
  TileShape (*tile_shape)(const Problem& problem) = nullptr;
  // Host memory that it takes besides inputs and outputs, and the workspace that the caller owns.
  int64_t (*scratch_bytes)(const Problem& problem) = nullptr;
  size_t (*workspace_bytes)(const Problem& problem) = nullptr;  // null: none
};

}  // namespace fulmen

#endif  // FULMEN_CORE_IMPLEMENTATION_H_
