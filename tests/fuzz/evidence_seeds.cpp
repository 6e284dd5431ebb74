// The seeds of the evidence fuzzer: makes them, and plays files as the fuzzer does. What PyTorch has dumped is among
// them.
//
//   evidence_seeds --write DIRECTORY   writes the seeds, into DIRECTORY/quick
//   evidence_seeds --check DIRECTORY   the files there are the seeds, and each of them plays
//   evidence_seeds FILE ...            plays files

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "health/evidence/pickle_test_support.h"
#include "health/evidence/ras_test_support.h"
#include "health/progress/nvrx_test_support.h"
#include "src/base/text.h"
#include "tests/fuzz/evidence_input.h"
#include "tests/fuzz/seed_files.h"

namespace elastic {
namespace {

using namespace evidence::test;
using namespace evidence_input;

constexpr std::uint8_t kAllButOne256th = 255;
const std::string kZero(1, '\0');

class Seeds {
 public:
  void add(const std::string& name, Reader reader, std::uint8_t settings, std::string_view content) {
    seeds_["quick/" + name] = make(reader, settings, content);
  }
  const seed_files::Seeds& all() const { return seeds_; }

 private:
  seed_files::Seeds seeds_;
};

void add_dumps(Seeds& seeds) {
  for (const int rank : {0, 1}) {
    const std::string path = format("{}/rank-{}", FLIGHT_RECORDINGS, rank);
    seeds.add(format("recorded_{}", rank), kPickle, static_cast<std::uint8_t>(100 * rank),
              seed_files::content_of(path + ".pickle"));
    const std::string json = seed_files::content_of(path + ".json");
    seeds.add(format("recorded_json_{}", rank), kJson, 0, json);
    seeds.add(format("control_{}", rank), kControl, static_cast<std::uint8_t>(7 * rank),
              format("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{}", json.size(), json));
  }
  seeds.add("control_absent", kControl, 1, "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno");
  const std::string entry = dict({text("record_id"),
                                  small(1),
                                  text("pg_id"),
                                  small(0),
                                  text("process_group"),
                                  pair(text("0"), text("default_pg")),
                                  text("collective_seq_id"),
                                  number(1904),
                                  text("p2p_seq_id"),
                                  small(3),
                                  text("profiling_name"),
                                  text("nccl:send 1->2"),
                                  text("input_sizes"),
                                  list({list({small(4), small(2)}), list({})}),
                                  text("input_dtypes"),
                                  list({text("Float")}),
                                  text("state"),
                                  text("started"),
                                  text("retired"),
                                  kFalse,
                                  text("is_p2p"),
                                  kTrue,
                                  text("duration_ms"),
                                  real(1.5)});
  const std::string config = dict(
      {text("0"), dict({text("name"), text("0"), text("desc"), text("default_pg"), text("ranks"), text("[0, 1]")})});
  const std::string status = dict({text("0"), dict({text("last_enqueued_collective"), number(-1)})});
  const std::string dump =
      whole(dict({text("version"), text("2.4"), text("pg_config"), config, text("pg_status"), status, text("entries"),
                  list({entry + std::string("q\0", 2), std::string("h\0", 2), entry})}));
  seeds.add("p2p", kPickle, kAllButOne256th, dump);
  seeds.add("p2p_cut", kPickle, 128, dump.substr(0, dump.size() - 20));
  seeds.add("long_recall", kPickle, 0, whole(list({text("x") + "r" + little_endian(0, 4), "j" + little_endian(0, 4)})));
  seeds.add("in_itself", kPickle, 0, kBegin + std::string("]q\0(](h\0ee.", 11));
  seeds.add("global", kPickle, 0, kBegin + "cposix\nsystem\nq\x01X\x04\x00\x00\x00trueq\x02\x85q\x03Rq\x04.");
  seeds.add("deep", kPickle, 0, kBegin + "](](](](](](](](](](](](](](](](](](");
  seeds.add(
      "json", kJson, 0,
      R"({"version":"2.10","pg_status":{"0":{"last_enqueued_collective":"5"}},"entries":[{"record_id":1,"pg_id":0,)"
      R"("process_group":["0","x"],"collective_seq_id":4,"state":"completed","input_sizes":[[2,2],[]],)"
      R"("retired":true}]})");
}

void add_ras(Seeds& seeds) {
  const auto job = [](std::int64_t launched, bool leaves_out_commas) {
    return report_json(
        {{.hash = "0x1f",
          .ranks = {{.rank = 0, .pid = 100, .all_reduces = 10}, {.rank = 1, .pid = 101, .all_reduces = launched}},
          .missing = {{.rank = 2, .pid = 7, .is_dead = true}}}},
        leaves_out_commas);
  };
  seeds.add("ras_lags", kRasReports, 0, job(9, false) + kZero + job(9, false));
  seeds.add("ras_moves", kRasReports, 0, job(9, true) + kZero + job(10, false));
  const std::string mismatch =
      "#0-0 (27a0) MISMATCH\n  Communicator ranks have different AllReduce operation counts\n"
      "  26 ranks have launched up to operation 6650\n  2 ranks have not launched any operations\n"
      "  Rank 0 -- GPU 0 managed by process 483072 on node 172.16.64.210\n"
      "  Rank 3 has launched up to operation 6 -- GPU 0 managed by process 4 on node 10.0.0.1\n\n";
  const std::string as_text = report_text(
      "INCOMPLETE\n  Missing communicator data from 1 job process\n  Process 9 on node 10.0.0.2 "
      "managing GPU 5\n\n#0-0 (27a0) INCOMPLETE\n  Missing communicator data from 2 ranks\n"
      "  Rank 17 -- GPU 5 managed by process 9 on node 10.0.0.2\n\n",
      mismatch + "TIMEOUT\n  Encountered 3 communication timeouts\n");
  seeds.add("ras_text", kRasReports, 0, as_text + kZero + as_text);
  seeds.add("ras_text_cut", kRasReports, 0, as_text.substr(0, as_text.size() / 2));
  seeds.add("ras_answers", kRasAnswers, 1, "SERVER PROTOCOL 2\nOK\nOK\n{\"communicators\":[]}\n");
  seeds.add("ras_answers_old", kRasAnswers, 7,
            "SERVER PROTOCOL 2\r\nok\r\nERROR: Unknown command\r\nNCCL version 2.27.3\n");
  seeds.add("ras_refuses", kRasAnswers, 2, "SERVER PROTOCOL 2\nOK\nOK\nERROR: Unknown command\nmore");
  seeds.add("ras_stranger", kRasAnswers, 3, "HTTP/1.1 400 Bad Request\r\n\r\n");
}

void add_node(Seeds& seeds) {
  const std::string process = "4711 (a) b) S 1 2 3 0 -1 4194304 4318 0 3 0 120 34 0 0 20 0 12 0 8214 1048576" + kZero +
                              "Name:\tx\nState:\tD (disk sleep)\nNSpid:\t4711\t17\n" + kZero + "futex_do_wait" + kZero +
                              "202 0x7f1c 0x189\n" + kZero + "rchar: 10\nwchar: 2\nread_bytes: 0\nwrite_bytes: 4096\n";
  seeds.add("process", kProcess, 200, process + kZero + process);
  seeds.add("process_gone", kProcess, 0, process);
  seeds.add("store", kStore, 4,
            "/init/\n/default_pg/0//cpu//0/0\n/default_pg/0//cpu//0/2" + kZero +
                "/default_pg/0//cpu//0/1\n/default_pg/0//cpu//0/1\n/worker/1/default_pg/3//cuda//1/0\n/x");
}

void add_nvrx(Seeds& seeds) {
  using namespace progress::test;
  std::string all;
  for (const auto& each : {kAuthkey, kInit, kHeartbeat, kOpenStep, kCloseStep, kCloseAll, kTimeouts}) {
    all += framed(each);
  }
  seeds.add("nvrx", kNvrx, 7, all);
  seeds.add("nvrx_cut", kNvrx, 1, all.substr(0, all.size() - 20));
  seeds.add("nvrx_iteration", kNvrx, 0, framed(kInit) + framed(kOpenStep118) + framed(kOpenStep118));
  seeds.add("nvrx_request", kNvrx, 0, framed(kExclude));
  seeds.add("nvrx_long", kNvrx, 3, "\xff\xff\xff\xff");
  seeds.add("nvrx_global", kNvrx, 0,
            framed(bytes("\x80\x02"
                         "cposix\nsystem\nX\004\000\000\000true\x85R.")));
}

void add_timers(Seeds& seeds) {
  const auto request = [](int pid, std::string_view scope, std::string_view time, int signal) {
    return format("{{\"version\": 1, \"pid\": {}, \"scope_id\": \"{}\", \"expiration_time\": {}, \"signal\": {}}}\n",
                  pid, scope, time, signal);
  };
  const std::string all = request(7, "train.py#12", "1.25", 9) + request(7, "inner", "1.5", 0) +
                          request(7, "inner", "-1", 0) + request(8, "train.py#12", "2", 15);
  seeds.add("timers", kTimers, 7, all);
  seeds.add("timers_garbage", kTimers, 1,
            "hello\n{}\n[[[[\n{\"version\": 1, \"pid\": " + all + request(9, "x", "1e300", 65) + "end");
}

seed_files::Seeds make_seeds() {
  Seeds seeds;
  add_timers(seeds);
  add_nvrx(seeds);
  add_dumps(seeds);
  add_ras(seeds);
  add_node(seeds);
  return seeds.all();
}

}  // namespace
}  // namespace elastic

int main(int count, char** arguments) {
  return elastic::seed_files::run("evidence_seeds", elastic::make_seeds(), count, arguments);
}
