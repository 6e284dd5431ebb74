#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "rendezvous/protocol/binary_archive.h"
#include "rendezvous/protocol/messages.h"

// Random messages for tests: every field is drawn from a source of numbers and texts.
namespace elastic::protocol::test {

// Random numbers from a seed (splitmix64).
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}
  std::uint64_t number() {
    state_ += 0x9E3779B97F4A7C15;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9;
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB;
    return mixed ^ mixed >> 31;
  }
  // A text of any bytes; most texts are short.
  std::string text(std::size_t limit) {
    const std::uint64_t kind = number() % 16;
    std::string text(kind == 0 ? limit : number() % 20, '\0');
    for (char& byte : text) byte = static_cast<char>(number());
    // The last byte is not part of a longer character, so that a text of the limit is not shortened.
    if (!text.empty()) text.back() = 'z';
    return text;
  }

 private:
  std::uint64_t state_;
};

// Makes whole messages: an archive that draws each field of their lists. A Source has number() and text(limit), as Dice
// does.
template <class Source>
class Maker : public BinaryArchive<Maker<Source>> {
 public:
  explicit Maker(Source& source) : source_(source) {}

  // The variant's alternative `index`, modulo their number.
  template <class Variant>
  Variant message(std::size_t index) {
    return make<Variant>(index % std::variant_size_v<typename Variant::variant>,
                         std::make_index_sequence<std::variant_size_v<typename Variant::variant>>());
  }

  // A part of a message, or of a frame of the session.
  template <class Part>
  Part part() {
    Part made{};
    field(made);
    return made;
  }

  void stamped(const char* name, auto& value) { (*this)(name, value); }

  template <std::integral T>
  void field(T& number, auto...) {
    number = std::same_as<T, bool> ? source_.number() % 2 == 1 : static_cast<T>(source_.number());
  }
  template <class T>
  requires std::is_enum_v<T>
  void field(T& value) { value = static_cast<T>(source_.number() % names_of(value).size()); }
  template <class T>
  void field(std::optional<T>& value, auto... bounds) {
    if (source_.number() % 2 == 1) field(value.emplace(), bounds...);
  }
  template <class T>
  requires std::is_class_v<T>
  void field(T& part) { T::fields(*this, part); }
  void field(std::string& text, Bounds bounds) { text = source_.text(static_cast<std::size_t>(bounds.most)); }
  template <class T>
  void field(std::vector<T>& items, Bounds bounds) {
    items.resize(source_.number() % 16 == 0 ? static_cast<std::size_t>(bounds.most) : source_.number() % 4);
    for (T& item : items) field(item);
  }

 private:
  template <class Variant, std::size_t... kIndexes>
  Variant make(std::size_t index, std::index_sequence<kIndexes...>) {
    Variant made;
    static_cast<void>(((index == kIndexes && (draw(made.template emplace<kIndexes>()), true)) || ...));
    return made;
  }
  template <class Message>
  void draw(Message& message) {
    Message::fields(*this, message);
  }

  Source& source_;
};

}  // namespace elastic::protocol::test
