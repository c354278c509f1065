#ifndef FULMEN_CORE_CLEAR_H_
#define FULMEN_CORE_CLEAR_H_

#include "core/problem.h"

namespace fulmen {

// Writes 0 (lse: -inf) to every row of the pass's outputs that belongs to no sequence: the tails of
// packed buffers, the gaps between them, rows past a used length. Host memory only.
void clear_rows_outside_sequences(const Problem& problem);

}  // namespace fulmen

#endif  // FULMEN_CORE_CLEAR_H_
