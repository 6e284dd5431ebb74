#include "src/net/munge.h"

#include <munge.h>

#include <climits>
#include <cstdlib>
#include <memory>
#include <utility>

namespace elastic::net::munge {
namespace {

struct DestroyContext {
  void operator()(munge_ctx* context) const { munge_ctx_destroy(context); }
};
using Context = std::unique_ptr<munge_ctx, DestroyContext>;

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

Context context_of(const std::string& socket) {
  Context context(munge_ctx_create());
  if (context && !socket.empty()) munge_ctx_set(context.get(), MUNGE_OPT_SOCKET, socket.c_str());
  return context;
}

std::unexpected<Error> failed(const char* what, const Context& context, munge_err_t error) {
  const char* more = context ? munge_ctx_strerror(context.get()) : nullptr;
  return fail(what, more != nullptr ? more : munge_strerror(error));
}

}  // namespace

Result<std::string> encode(const std::string& socket, const std::string& payload, std::optional<uid_t> only_for) {
  constexpr const char* kWhat = "munged cannot make a credential";
  const Context context = context_of(socket);
  if (!context || payload.size() > INT_MAX) return fail(kWhat, "no memory");
  // The payload may be a secret, and a site's default may be not to encipher at all.
  munge_ctx_set(context.get(), MUNGE_OPT_CIPHER_TYPE, static_cast<int>(MUNGE_CIPHER_AES256));
  munge_ctx_set(context.get(), MUNGE_OPT_MAC_TYPE, static_cast<int>(MUNGE_MAC_SHA256));
  if (only_for) munge_ctx_set(context.get(), MUNGE_OPT_UID_RESTRICTION, *only_for);
  char* made = nullptr;
  const munge_err_t error = munge_encode(&made, context.get(), payload.data(), static_cast<int>(payload.size()));
  const std::unique_ptr<char, Free> credential(made);
  if (error != EMUNGE_SUCCESS || !credential) return failed(kWhat, context, error);
  return std::string(credential.get());
}

Result<Decoded> decode(const std::string& socket, const std::string& credential) {
  constexpr const char* kWhat = "munged cannot decode the credential";
  const Context context = context_of(socket);
  if (!context) return fail(kWhat, "no memory");
  void* found = nullptr;
  int size = 0;
  uid_t uid = 0;
  gid_t gid = 0;
  const munge_err_t error = munge_decode(credential.c_str(), context.get(), &found, &size, &uid, &gid);
  // Some errors return a payload, too; it must be freed, and not used.
  const std::unique_ptr<void, Free> payload(found);
  if (error != EMUNGE_SUCCESS) return failed(kWhat, context, error);
  // Anybody on the way could have read a credential that is not enciphered.
  int cipher = MUNGE_CIPHER_NONE;
  munge_ctx_get(context.get(), MUNGE_OPT_CIPHER_TYPE, &cipher);
  if (cipher == MUNGE_CIPHER_NONE) return fail(kWhat, "it is not encrypted");
  return Decoded{payload && size > 0
                     ? std::string(static_cast<const char*>(payload.get()), static_cast<std::size_t>(size))
                     : std::string(),
                 uid};
}

}  // namespace elastic::net::munge
