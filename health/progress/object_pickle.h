#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"

namespace elastic::progress {

// A message that a Python process has pickled, in protocol 2 to 5, as a tree. Nothing is imported, called or built:
// classes are their names, and an object is its class, the arguments that made it, and its state. All opcodes of plain
// objects, containers and scalars are read, and any other is refused. Its memory and time are in proportion to its
// bytes.
class ObjectPickle {
 public:
  enum class Kind : std::uint8_t {
    kNone,
    kBool,
    kInteger,
    kFloat,
    kText,
    kBytes,
    kSequence,  // a list, a tuple or a set
    kDict,
    kClass,
    kObject,
  };

 private:
  struct Node {
    Kind kind = Kind::kNone;
    std::uint64_t bits = 0;         // a number
    std::string text = {};          // a text, bytes; of a class "module name"
    std::vector<std::size_t> held;  // a container's values; a dictionary's: key, value, key, value; an object's class,
                                    // arguments and, if it has one, state
  };

 public:
  // A value of a pickle that outlives it. A value may contain itself: whoever reads one goes down a path of known
  // length.
  class Value {
   public:
    Kind kind() const { return node().kind; }
    std::optional<std::int64_t> as_integer() const;
    std::optional<std::string_view> as_text() const;
    // "module name" of a class, or of an object's class; empty: it is neither.
    std::string_view class_name() const;
    // How many values a list, a tuple or a set has; 0 for others.
    std::size_t items() const { return kind() == Kind::kSequence ? node().held.size() : 0; }
    // One of them; nothing: there are not so many.
    std::optional<Value> item(std::size_t index) const;
    // What an object was made with: a tuple. Nothing: it is no object.
    std::optional<Value> arguments() const;
    // An attribute of an object; nothing: it has none of this name.
    std::optional<Value> attribute(std::string_view name) const;

   private:
    friend class ObjectPickle;
    Value(const ObjectPickle& pickle, std::size_t index) : pickle_(&pickle), index_(index) {}
    const Node& node() const { return pickle_->nodes_[index_]; }
    const ObjectPickle* pickle_;
    std::size_t index_;
  };

  // Reads a whole message. Fails on an opcode that no message has (and names it), on one that does not fit the
  // values before it, and where the message ends before its end, or goes on behind it.
  static Result<ObjectPickle> read(std::string_view bytes);

  Value root() const { return Value(*this, root_); }

 private:
  friend class ObjectReader;
  std::vector<Node> nodes_;
  std::size_t root_ = 0;
};

}  // namespace elastic::progress
