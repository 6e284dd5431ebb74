#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "health/stacks/groups.h"
#include "src/base/json.h"
#include "src/base/result.h"

// What --stacks prints.
namespace elastic::stacks {

struct NodeAnswer {
  std::string name;
  std::string problem = {};  // why its workers' stacks are not here, as a clause; empty: they are

  static void fields(auto& io, auto& v) { each(io, "name", v.name, "problem", v.problem); }
};

struct StacksDocument {
  std::string run_id = {};  // of the job; empty: it is not known
  Groups all = {};
  std::vector<NodeAnswer> nodes = {};
  std::vector<std::string> notes = {};  // what could not be read, as sentences

  static void fields(auto& io, auto& v) {
    each(io, "run_id", v.run_id, "nodes", v.nodes, "notes", v.notes);
    Groups::fields(io, v.all);
  }
};

Json json_of(const StacksDocument& document);
// Reads the same. Fails where it is another document.
Result<StacksDocument> read_document(std::string_view text);

// A page for people: the workers' stacks grouped, the odd ones first; then their other threads, and the processes that
// they have started.
std::string page_of(const StacksDocument& document);

}  // namespace elastic::stacks
