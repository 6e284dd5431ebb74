#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

// How a message is described: once, by a list of its members inside its struct, from which every form of the message
// follows.
//
//   struct StoreEndpoint {
//     std::string address;
//     std::uint16_t port = 0;
//     static void fields(auto& io, auto& v) {
//       io("address", v.address, at_most(limits::kAgentNameBytes));
//       io("port", v.port);
//     }
//   };
//
// `io` is an archive: it writes the members of `v`, which is const then, or reads into them, in the order of the list.
// JsonWriter and JsonReader (json_archive.h) are archives, and so are BinaryWriter and BinaryReader of the agent
// protocol (rendezvous/protocol/binary_archive.h). The name and the bounds of a member are the arguments of io(), and
//
//   each(io, ...)      several members without bounds
//   io.if_set(...)     a member that JSON has only where it is not its type's initial value: it may be missing, which
//                      keeps recordings short
//   io.at_end(...)     the same, and the bytes of a message end before it where it has its initial value, so that
//                      whoever does not use it sends no byte more. A member behind it would make it io.if_set()
//   io.must(...)       a member without which the message means nothing, even to a reader that forgives (JsonForm)
//
// A member that is a std::optional may be missing, too.
//
// A list is run from its beginning to its end, also by a reader, so that a member may depend on those before it. Where
// a struct is not to know of a form, as the coordinator's events know of no recording, a free function `fields(io, v)`
// in the struct's namespace has the list.
//
// The names of an enumeration's values are in an array that `names_of(value)` returns, a function beside the
// enumeration; those of a variant's alternatives likewise.
namespace elastic {

// The range of a number, or the most bytes of a text and items of a list.
struct Bounds {
  std::int64_t least = INT64_MIN;
  std::int64_t most = INT64_MAX;
};
constexpr Bounds at_most(std::size_t most) { return {0, static_cast<std::int64_t>(most)}; }

// In a list: several members without bounds. `more`: their names, each with its member.
void each(auto& io, const char* name, auto& member, auto&... more) {
  io(name, member);
  if constexpr (sizeof...(more) > 0) each(io, more...);
}

// Runs the list of a struct.
template <class Archive, class T>
void describe(Archive& io, T& value) {
  if constexpr (requires { T::fields(io, value); }) {
    T::fields(io, value);
  } else {
    fields(io, value);
  }
}

// In a free function's declaration: `void fields(auto& io, Is<ThatStruct> auto& v)`, for a const one, too.
template <class T, class U>
concept Is = std::same_as<std::remove_const_t<T>, U>;

}  // namespace elastic
