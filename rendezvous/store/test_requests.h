#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/store/codec.h"

// Requests as a PyTorch client sends them, for the unit tests of this folder.
namespace elastic::store::test {

inline const std::string kHello("\x00\xCE\xF7\x85\x3C", 5);

inline std::string op(Op which) { return std::string(1, static_cast<char>(which)); }

inline std::string i64(std::int64_t number) {
  std::string out;
  put_i64(out, number);
  return out;
}

inline std::string text(std::string_view content) {
  std::string out;
  put_string(out, content);
  return out;
}

inline std::string key_list(const std::vector<std::string>& keys) {
  std::string out = i64(static_cast<std::int64_t>(keys.size()));
  for (const std::string& key : keys) out += text(key);
  return out;
}

inline std::string set(std::string_view key, std::string_view value) {
  return op(Op::kSet) + text(key) + text(value);
}
inline std::string get(std::string_view key) { return op(Op::kGet) + text(key); }
inline std::string add(std::string_view key, std::int64_t delta) {
  return op(Op::kAdd) + text(key) + i64(delta);
}
inline std::string wait(const std::vector<std::string>& keys) {
  return op(Op::kWait) + key_list(keys);
}
inline std::string ping(std::string_view nonce) { return op(Op::kPing) + std::string(nonce); }

}  // namespace elastic::store::test
