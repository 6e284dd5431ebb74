#include "cli/run/evidence_files.h"

#include <sys/stat.h>

#include <cerrno>

#include "cli/run/whole_file.h"
#include "health/stacks/document.h"
#include "src/base/json.h"
#include "src/base/json_archive.h"
#include "src/base/result.h"
#include "src/base/text.h"

namespace elastic::run {
namespace {

constexpr std::size_t kNameBytes = 100;

// A node's name as a part of a file's name.
std::string file_name_of(const std::string& node) {
  std::string name = node.substr(0, kNameBytes);
  for (char& c : name) {
    const bool is_plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
    if (!is_plain) c = '_';
  }
  return name.empty() || name.front() == '.' ? "node" + name : name;
}

// What the files of a collection begin with.
std::string stem_of(const EvidenceOrder& order) {
  return format("{}/{}_round_{}_{}", order.directory, file_name_of(order.node), order.round, order.collection);
}

Json json_of(const EvidenceOrder& order, const hang::NodeFacts& facts, const std::vector<std::string>& lines) {
  Json list = Json::array();
  for (const std::string& line : lines) list.push(Json(line));
  Json json = Json::object();
  json.set("round", order.round).set("collection", order.collection).set("node", order.node);
  json.set("facts", write_json(facts, JsonForm::kPlain)).set("lines", std::move(list));
  return json;
}

}  // namespace

std::vector<EvidenceFile> evidence_files(const EvidenceOrder& order, const hang::NodeFacts& facts,
                                         const std::vector<stacks::RankLook>& looks,
                                         const std::vector<std::string>& lines) {
  const stacks::StacksDocument document{.all = stacks::grouped(looks)};
  std::string page = stacks::page_of(document);
  if (!lines.empty()) page += "\n" + join(lines, "\n") + "\n";
  Json json = json_of(order, facts, lines);
  json.set("stacks", stacks::json_of(document));
  const std::string stem = stem_of(order);
  return {{stem + "_stacks.txt", std::move(page)}, {stem + "_evidence.json", json.dump() + "\n"}};
}

std::vector<EvidenceFile> dumps_file(const EvidenceOrder& order, const hang::NodeFacts& facts,
                                     const std::vector<std::string>& lines) {
  return {{stem_of(order) + "_dumps.json", json_of(order, facts, lines).dump() + "\n"}};
}

std::string write_evidence(const std::string& directory, const std::vector<EvidenceFile>& files) {
  // As the directories of logs: what other users may see of it is up to the umask.
  if (mkdir(directory.c_str(), 0777) != 0 && errno != EEXIST) {
    return format("cannot make {}: {}", printable(directory), errno_text(errno));
  }
  for (const EvidenceFile& file : files) {
    if (const int error = replace_file(file.path, file.text); error != 0) {
      return format("cannot write {}: {}", printable(file.path), errno_text(error));
    }
  }
  return {};
}

}  // namespace elastic::run
