#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cli/run/http_place.h"
#include "src/base/result.h"
#include "src/net/http/reader.h"
#include "src/net/loop.h"
#include "src/net/names.h"
#include "src/net/tcp.h"

namespace elastic::run {

struct HttpAnswer {
  int status = 0;
  std::string location = {};  // of a 307: the URL where the same is to be asked
  std::string body;
};

// What to do about a program at a place of --status that is no elastic-run.
inline constexpr const char* kNotOurs = "name the endpoint of a job, or the --http-port of a node";

// The command that wants the answer.
struct AskedBy {
  std::string option = "--status";  // that names the place, for errors
  std::int64_t answer_ms = 10'000;  // how long the answer may take
};

// One request to an elastic-run, and its answer: looks up the host, connects to the first of its addresses that can be
// reached, sends the request and reads the answer.
class HttpExchange {
 public:
  // The answer, whatever its status; or why there is none, or none of an elastic-run.
  using OnDone = std::function<void(Result<HttpAnswer>)>;

  // `request` is all bytes of a request whose answer ends the connection. `on_done` is called once, in a later turn of
  // the loop; it must not destroy this object.
  HttpExchange(net::Loop& loop, HttpPlace place, std::string request, OnDone on_done, AskedBy by = {});

 private:
  void try_next();
  void ask(std::unique_ptr<net::Stream> stream);
  void read(std::span<const std::uint8_t> bytes);
  void judge(net::http::ResponseReader::Step step);
  void fail_with(std::string reason, std::string remedy);
  void done(Result<HttpAnswer> result);

  net::Loop& loop_;
  HttpPlace place_;
  std::string request_;
  OnDone on_done_;
  AskedBy by_;
  net::Resolver resolver_;
  std::vector<std::string> addresses_;  // tried from the last to the first
  std::string problem_ = "it has no address";
  std::unique_ptr<net::Connector> connector_;
  std::unique_ptr<net::Stream> stream_;
  net::http::ResponseReader reader_;
  bool has_spoken_ = false;
  net::Timer patience_;
};

}  // namespace elastic::run
