#include "health/messages/messages.h"

#include <doctest/doctest.h>

#include "health/messages/messages_test_support.h"

using namespace elastic::health;

TEST_CASE("orders and results of a check are read as they were written; what is none is not") {
  const SelfResult self{.port = 4711,
                        .key = "9f0c",
                        .compute_ms = 1.5,
                        .memory_gbps = 11.25,
                        .findings = {{Severity::kWarning, "it is small", "/dev/shm", "make it larger"},
                                     {Severity::kFatal, "it is down", "eth0", "plug it in", "link-down"}},
                        .unhealthy = "no memory",
                        .master_port = 4712,
                        .gpu = GpuVersions{.gpus = 8,
                                           .model = "NVIDIA H100",
                                           .driver = "580.65.06",
                                           .cuda = "13.0",
                                           .nccl = "2.28.9",
                                           .nccl_path = "/p/libnccl.so.2",
                                           .cublaslt = "13.0.0",
                                           .cublaslt_path = "/p/libcublasLt.so.13",
                                           .nearest_ports = {{"0000:1b:00.0", "PIX", "mlx5_0 port 1"},
                                                             {"0000:2b:00.0", "SYS", "mlx5_0 port 1"}}},
                        .gpu_figures = GpuFigures{.product_ms = 1.5,
                                                  .tflops = 700,
                                                  .memory_gbps = 2900,
                                                  .host_to_device_gbps = 55,
                                                  .device_to_host_gbps = 54,
                                                  .node_ms = 1.25,
                                                  .gathers = 8},
                        .gpu_failure = GpuFailure{.step = GpuStep::kGather, .why = "boom"}};
  CHECK(read_self_result(text_of(self)) == self);
  CHECK(read_self_result(text_of(SelfResult{})) == SelfResult{});
  const PairOrders orders = {
      .rank = 2,
      .tests = {
          {.with = 3, .name = "node3", .at = {"10.0.0.4", "fd77::1"}, .port = 4000, .key = "ab", .after = 2, .gpus = 8},
          {.with = 0, .master_port = 4713, .local_world_size = 8}}};
  CHECK(read_pair_orders(text_of(orders)) == orders);
  CHECK(read_pair_orders(text_of(PairOrders{})) == PairOrders{});
  CHECK(!read_pair_orders(R"({"tests":[]})"));
  CHECK(!read_pair_orders(R"({"rank":-1,"tests":[]})"));
  const PairResults results = {.tests = {{.with = 3,
                                          .ms = 4.5,
                                          .latency_us = 40,
                                          .clock_ms = -0.25,
                                          .gpu_ms = 1.5,
                                          .gpu_ranks = 16,
                                          .gpu_bytes = 1 << 26,
                                          .gpu_latency_us = 20.5},
                                         {.with = 2, .ms = 4.5, .gpu_failure = GatherFailure{"boom", true}},
                                         {.with = 4, .ms = 4.5, .gpu_failure = GatherFailure{}},
                                         {.with = 1, .why_not = "no answer in 5 s"}},
                               .findings = {{Severity::kWarning, "it counted errors", "eth0", "look at the cable"}}};
  CHECK(read_pair_results(text_of(results)) == results);
  for (const GpuStep step : {GpuStep::kOpen, GpuStep::kCompute, GpuStep::kGather}) {
    const SelfResult failed{.gpu_failure = GpuFailure{.step = step, .why = "boom"}};
    CHECK(read_self_result(text_of(failed)) == failed);
  }
  CHECK(!read_self_result(R"({"port":1,"gpu_failure":{"step":"dance"}})")->gpu_failure);
  CHECK(read_pair_results(text_of(PairResults{})) == PairResults{});
  CHECK(read_pair_results(R"({"tests":[{"with":3,"ms":4}]})") == PairResults{.tests = {{.with = 3, .ms = 4}}});
  const RingOrder ring = {.rank = 4,
                          .place = 1,
                          .members = 3,
                          .previous = {.with = 2, .name = "node2", .at = {"10.0.0.3"}, .port = 4002, .key = "cd"},
                          .next = {.with = 7, .at = {"10.0.0.8", "fd77::8"}, .port = 4007, .key = "ef", .after = 1}};
  CHECK(read_ring_order(text_of(ring)) == ring);
  for (const auto& [place, members] : {std::pair(3, 3), {-1, 3}, {0, 1}}) {
    RingOrder none = ring;
    none.place = place;
    none.members = members;
    CHECK(!read_ring_order(text_of(none)));
  }
  for (const RingResult& result :
       {RingResult{.ms = 21.5}, RingResult{.why_not = "no answer", .for_others = true}, RingResult{}}) {
    CHECK(read_ring_result(text_of(result)) == result);
    CHECK(!read_pair_results(text_of(result)));
  }
  CHECK(!read_ring_result(text_of(results)));
  CHECK(!read_ring_order(text_of(orders)));
  CHECK(!read_ring_result(R"({"all_gather":{"ms":0}})")->ms);
  for (const char* text : {"", "{", "[]", "1", "{\"tests\":1}", "{\"tests\":[1]}", "{\"tests\":[{\"with\":-1}]}",
                           "{\"tests\":[[[[[[]]]]]]}", "{\"port\":70000}", "{\"all_gather\":1}",
                           "{\"rank\":0,\"ring\":{}}", "{\"port\":\"1\"}"}) {
    CAPTURE(text);
    CHECK(!read_self_result(text));
    CHECK(!read_pair_orders(text));
    CHECK(!read_pair_results(text));
    CHECK(!read_ring_order(text));
    CHECK(!read_ring_result(text));
  }
}

TEST_CASE("a result is read as the phase wants it, and a node outside of the ring answers as in a phase of pairs") {
  const std::string self = text_of(SelfResult{});
  const std::string pairs = text_of(PairResults{});
  const std::string ring = text_of(RingResult{.ms = 1});
  CHECK(read_check_result(kSelfPhase, self) == CheckResult(SelfResult{}));
  for (const std::uint32_t phase : {kFirstPairsPhase, kSecondPairsPhase, kThirdPairsPhase}) {
    CAPTURE(phase);
    CHECK(read_check_result(phase, pairs) == CheckResult(PairResults{}));
    CHECK(!read_check_result(phase, self));
    CHECK(!read_check_result(phase, ring));
  }
  CHECK(read_check_result(kRingPhase, ring) == CheckResult(RingResult{.ms = 1}));
  CHECK(read_check_result(kRingPhase, pairs) == CheckResult(PairResults{}));
  for (const std::string& text : {pairs, ring}) CHECK(!read_check_result(kSelfPhase, text));
}

TEST_CASE("of an order that was not carried out every test has failed, for the same reason") {
  CHECK(text_of_failed(PairOrders{.rank = 0, .tests = {{.with = 3}, {.with = 5}}}, "boom") ==
        text_of(PairResults{.tests = {{.with = 3, .why_not = "boom"}, {.with = 5, .why_not = "boom"}}}));
  CHECK(text_of_failed(RingOrder{}, "boom") == text_of(RingResult{.why_not = "boom"}));
}

TEST_CASE("a finding of no known severity, and a negative time, are left out") {
  const auto self = read_self_result(R"({"port":1,"compute_ms":-1,"findings":[{"severity":"dire","what":"x"},3]})");
  REQUIRE(self);
  CHECK(self->findings.empty());
  CHECK(!self->compute_ms);
}

TEST_CASE("of the other's external probe nothing is said where it has none") {
  CHECK(text_of(PairOrders{.rank = 1, .tests = {{.with = 0, .local_world_size = 8}}}).find("world") ==
        std::string::npos);
  CHECK(text_of(SelfResult{}) == R"({"port":0,"key":""})");
}
