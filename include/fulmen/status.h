#ifndef FULMEN_STATUS_H_
#define FULMEN_STATUS_H_

#include <cstdint>
#include <string>
#include <utility>

namespace fulmen {

// The numbers are part of the C ABI (fulmen_status_code in c_api.h).
enum class StatusCode : int32_t {
  kOk = 0,
  kInvalidArgument = 1,  // the call contradicts the contract
  kUnsupported = 2,      // legal, but no allowed implementation can do it
  kOutOfMemory = 3,      // the message says how many bytes were asked for
  kCudaError = 4,        // driver or NVRTC; the message names the kernel
  kInternal = 5,         // a fault of Fulmen
};

// The result of every fallible call. A failed call has written nothing, unless it says so itself.
// The message is one sentence: what was given, what is allowed, what to do.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

}  // namespace fulmen

#endif  // FULMEN_STATUS_H_
