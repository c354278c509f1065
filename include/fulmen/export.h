#ifndef FULMEN_EXPORT_H_
#define FULMEN_EXPORT_H_

// Marks the public API: everything else in the shared library is hidden.
#if defined(_WIN32)
#define FULMEN_API
#else
#define FULMEN_API __attribute__((visibility("default")))
#endif

#endif  // FULMEN_EXPORT_H_
