#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/store/requests.h"

// Requests as a PyTorch client sends them, each as a string, for the unit tests of this folder.
namespace elastic::store::test {

// The bytes that one of the put_ functions appends.
template <class... Parameters, class... Arguments>
std::string made_by(void (*put)(std::string&, Parameters...), const Arguments&... arguments) {
  std::string out;
  put(out, arguments...);
  return out;
}

inline const std::string kHello = made_by(put_hello);

inline std::string op(Op which) { return std::string(1, static_cast<char>(which)); }
inline std::string i64(std::int64_t number) { return made_by(put_i64, number); }
inline std::string text(std::string_view content) { return made_by(put_string, content); }

inline std::string key_list(const std::vector<std::string>& keys) {
  std::string out = i64(static_cast<std::int64_t>(keys.size()));
  for (const std::string& key : keys) out += text(key);
  return out;
}

inline std::string set(std::string_view key, std::string_view value) { return made_by(put_set, key, value); }
inline std::string get(std::string_view key) { return made_by(put_get, key); }
inline std::string add(std::string_view key, std::int64_t delta) { return made_by(put_add, key, delta); }
inline std::string wait(const std::vector<std::string>& keys) { return made_by(put_wait, keys); }
inline std::string ping(std::string_view nonce) { return op(Op::kPing) + std::string(nonce); }

}  // namespace elastic::store::test
