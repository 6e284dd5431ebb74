#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/run/evidence_order.h"
#include "health/hang/hang_facts.h"
#include "health/stacks/look.h"

// The files of a collection of evidence.
namespace elastic::run {

struct EvidenceFile {
  std::string path;
  std::string text;
};

// What was seen, as files in the order's directory: the stacks for people, and all as JSON. `lines` is what the parts
// say besides.
//   NODE_round_3_1_stacks.txt, NODE_round_3_1_evidence.json
std::vector<EvidenceFile> evidence_files(const EvidenceOrder& order, const hang::NodeFacts& facts,
                                         const std::vector<stacks::RankLook>& looks,
                                         const std::vector<std::string>& lines);

// The same of dumps that were asked for later, as JSON.
//   NODE_round_3_1_dumps.json
std::vector<EvidenceFile> dumps_file(const EvidenceOrder& order, const hang::NodeFacts& facts,
                                     const std::vector<std::string>& lines);

// Makes the directory and writes the files. Returns what went wrong, as a clause; empty if nothing did.
std::string write_evidence(const std::string& directory, const std::vector<EvidenceFile>& files);

}  // namespace elastic::run
