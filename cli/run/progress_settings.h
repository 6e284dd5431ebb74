#pragma once

#include <string>
#include <vector>

namespace elastic::run {

// How the progress of workers is seen (docs/progress.md).
struct ProgressSettings {
  std::string pattern = {};         // --progress-pattern; empty: none
  bool reads_metrics_file = false;  // --progress-from=dlrover, --auto-tunning: workers are given DLRover's variable
  bool serves_nvrx = false;         // --progress-from=nvrx: workers are given the sockets of NVRx's client
  std::vector<std::string> nvrx_sections = {};  // that the client may name
  std::string parent = {};                      // where the directory of this launch is made; empty: nowhere
};

}  // namespace elastic::run
