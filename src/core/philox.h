// Dropout's random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as
// 1, 2, 3", SC 2011), a function of position alone, so every backend, tile and split agrees.
#ifndef FULMEN_CORE_PHILOX_H_
#define FULMEN_CORE_PHILOX_H_

#include <array>
#include <cstdint>

namespace fulmen {

inline std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, uint32_t key0,
                                          uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53u} * counter[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57u} * counter[2];
    counter = {
        static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key0, static_cast<uint32_t>(product1),
        static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key1, static_cast<uint32_t>(product0)};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return counter;
}

// The random words of keys 4 * key_quad .. 4 * key_quad + 3 for one row. `stream` is batch index *
// heads_q + query head. Counter: (key_quad, row, stream, low offset); key: seed, with the high word
// of offset mixed into its high word.
inline std::array<uint32_t, 4> dropout_words(uint64_t seed, uint64_t offset, uint64_t stream,
                                             uint64_t row, uint64_t key_quad) {
  return philox4x32({static_cast<uint32_t>(key_quad), static_cast<uint32_t>(row),
                     static_cast<uint32_t>(stream), static_cast<uint32_t>(offset)},
                    static_cast<uint32_t>(seed),
                    static_cast<uint32_t>(seed >> 32) ^ static_cast<uint32_t>(offset >> 32));
}

// A pair is kept when its word is at or above the threshold.
inline uint32_t dropout_threshold(double p) { return static_cast<uint32_t>(p * 4294967296.0); }

inline bool dropout_keeps(uint64_t seed, uint64_t offset, uint64_t stream, uint64_t row,
                          uint64_t key, uint32_t threshold) {
  return dropout_words(seed, offset, stream, row, key / 4)[key % 4] >= threshold;
}

}  // namespace fulmen

#endif  // FULMEN_CORE_PHILOX_H_
