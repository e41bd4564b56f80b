// Contexts and weights handles: made-up and destroyed ones, two threads on one context, many contexts at once.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "api/native_call.h"

namespace mlap::test {
namespace {

mlap_context* NewContext(int32_t num_threads, const char* max_isa = nullptr) {
  const mlap_context_args args = {sizeof(mlap_context_args), num_threads, max_isa};
  mlap_context* context = nullptr;
  EXPECT_EQ(mlap_context_create(&args, &context), MLAP_OK) << mlap_last_error();
  return context;
}

// The last refusal names the field and says what to do.
bool ErrorNames(const std::string& word) {
  const std::string text = mlap_last_error();
  return text.find(word) != std::string::npos && text.find("; ") != std::string::npos;
}

TEST(Handles, WhatIsNoHandleIsRefusedEverywhere) {
  mlap_context* const good = NewContext(1);
  mlap_context* const destroyed = NewContext(1);
  EXPECT_EQ(mlap_context_destroy(destroyed), MLAP_OK);
  NativeCall call(CallOptions{});
  mlap_weights* const weights = call.Weights();
  mlap_weights* destroyed_weights = nullptr;
  ASSERT_EQ(mlap_weights_create(&call.weights_args, &destroyed_weights), MLAP_OK) << mlap_last_error();
  EXPECT_EQ(mlap_weights_destroy(destroyed_weights), MLAP_OK);
  int something = 0;
  const auto before = call.WritableBytes();

  mlap_context_facts context_facts = {};
  context_facts.struct_size = sizeof(context_facts);
  for (mlap_context* bad : {static_cast<mlap_context*>(nullptr), destroyed, reinterpret_cast<mlap_context*>(&something),
                            reinterpret_cast<mlap_context*>(weights)}) {
    EXPECT_EQ(mlap_run(bad, weights, &call.args), MLAP_INVALID_ARGUMENT);
    EXPECT_TRUE(ErrorNames("context")) << mlap_last_error();
    EXPECT_EQ(mlap_context_query(bad, &context_facts), MLAP_INVALID_ARGUMENT);
    EXPECT_TRUE(ErrorNames("context")) << mlap_last_error();
    if (bad == nullptr) continue;
    EXPECT_EQ(mlap_context_destroy(bad), MLAP_INVALID_ARGUMENT);
    EXPECT_TRUE(ErrorNames("context")) << mlap_last_error();
  }
  mlap_weights_facts weights_facts = {};
  weights_facts.struct_size = sizeof(weights_facts);
  mlap_exact_results results = {};
  results.struct_size = sizeof(results);
  for (mlap_weights* bad : {static_cast<mlap_weights*>(nullptr), destroyed_weights,
                            reinterpret_cast<mlap_weights*>(&something), reinterpret_cast<mlap_weights*>(good)}) {
    EXPECT_EQ(mlap_run(good, bad, &call.args), MLAP_INVALID_ARGUMENT);
    EXPECT_TRUE(ErrorNames("weights")) << mlap_last_error();
    EXPECT_EQ(mlap_reference_run(bad, &call.args, nullptr), MLAP_INVALID_ARGUMENT);
    EXPECT_TRUE(ErrorNames("weights")) << mlap_last_error();
    EXPECT_EQ(mlap_exact_run(bad, &call.args, &results), MLAP_INVALID_ARGUMENT);
    EXPECT_TRUE(ErrorNames("weights")) << mlap_last_error();
    EXPECT_EQ(mlap_weights_query(bad, &weights_facts), MLAP_INVALID_ARGUMENT);
    EXPECT_TRUE(ErrorNames("weights")) << mlap_last_error();
    if (bad == nullptr) continue;
    EXPECT_EQ(mlap_weights_destroy(bad), MLAP_INVALID_ARGUMENT);
  }
  EXPECT_EQ(mlap_context_destroy(nullptr), MLAP_OK);
  EXPECT_EQ(mlap_weights_destroy(nullptr), MLAP_OK);
  EXPECT_EQ(call.WritableBytes(), before);
  EXPECT_EQ(mlap_context_destroy(good), MLAP_OK);
}

TEST(Handles, PlacesThatAreNull) {
  NativeCall call(CallOptions{});
  EXPECT_EQ(mlap_context_create(nullptr, nullptr), MLAP_INVALID_ARGUMENT);
  EXPECT_TRUE(ErrorNames("context")) << mlap_last_error();
  EXPECT_EQ(mlap_weights_create(&call.weights_args, nullptr), MLAP_INVALID_ARGUMENT);
  EXPECT_TRUE(ErrorNames("weights")) << mlap_last_error();
  mlap_weights* weights = nullptr;
  EXPECT_EQ(mlap_weights_create(nullptr, &weights), MLAP_INVALID_ARGUMENT);
  EXPECT_TRUE(ErrorNames("args")) << mlap_last_error();
  mlap_weights_args_init(nullptr);
  mlap_run_args_init(nullptr);
  mlap_context* const context = NewContext(1);
  EXPECT_EQ(mlap_run(context, call.Weights(), nullptr), MLAP_INVALID_ARGUMENT);
  EXPECT_EQ(mlap_context_query(context, nullptr), MLAP_INVALID_ARGUMENT);
  EXPECT_EQ(mlap_weights_query(call.Weights(), nullptr), MLAP_INVALID_ARGUMENT);
  EXPECT_EQ(mlap_context_destroy(context), MLAP_OK);
}

TEST(Handles, ContextArguments) {
  struct Case {
    int32_t num_threads;
    const char* max_isa;
    const char* name;
  };
  mlap_context* context = nullptr;
  for (const Case& bad : {Case{-1, nullptr, "num_threads"}, Case{1025, nullptr, "num_threads"},
                          Case{INT32_MIN, nullptr, "num_threads"}, Case{1, "nonsense", "max_isa"}}) {
    const mlap_context_args args = {sizeof(mlap_context_args), bad.num_threads, bad.max_isa};
    EXPECT_EQ(mlap_context_create(&args, &context), MLAP_INVALID_ARGUMENT);
    EXPECT_TRUE(ErrorNames(bad.name)) << mlap_last_error();
    EXPECT_FALSE(ErrorNames("MLAP_MAX_ISA")) << mlap_last_error();
  }
  EXPECT_EQ(context, nullptr);

  mlap_context_facts facts = {};
  facts.struct_size = sizeof(facts);
  mlap_context* const scalar = NewContext(3, "scalar");
  ASSERT_EQ(mlap_context_query(scalar, &facts), MLAP_OK) << mlap_last_error();
  EXPECT_STREQ(facts.isa, "scalar");
  EXPECT_EQ(facts.num_threads, 3);
  EXPECT_EQ(facts.workspace_bytes, 0u);
  EXPECT_EQ(mlap_context_destroy(scalar), MLAP_OK);

  mlap_context* const usual = NewContext(0);
  ASSERT_EQ(mlap_context_query(usual, &facts), MLAP_OK) << mlap_last_error();
  const char* chosen = nullptr;
  int num_threads = 0;
  ASSERT_EQ(mlap_chosen_isa(&chosen), MLAP_OK);
  ASSERT_EQ(mlap_num_threads(&num_threads), MLAP_OK);
  EXPECT_STREQ(facts.isa, chosen);
  EXPECT_EQ(facts.num_threads, num_threads);
  EXPECT_EQ(mlap_context_destroy(usual), MLAP_OK);
}

TEST(Handles, WeightsTellWhatTheyAre) {
  for (const CallOptions& options : AllCalls()) {
    SCOPED_TRACE(testing::PrintToString(options));
    NativeCall call(options);
    mlap_weights_facts facts = {};
    facts.struct_size = sizeof(facts);
    ASSERT_NE(call.Weights(), nullptr) << mlap_last_error();
    ASSERT_EQ(mlap_weights_query(call.Weights(), &facts), MLAP_OK) << mlap_last_error();
    EXPECT_EQ(facts.weight_quant, options.weights);
    EXPECT_EQ(facts.ownership, MLAP_COPY);
    EXPECT_EQ(facts.dims.hidden, NativeCall::kHidden);
    EXPECT_EQ(facts.dims.q_rank, options.has_low_rank ? NativeCall::kQRank : 0);
    EXPECT_EQ(facts.dims.heads, NativeCall::kHeads);
    EXPECT_EQ(facts.dims.nope, NativeCall::kNope);
    EXPECT_EQ(facts.dims.rope, NativeCall::kRope);
    EXPECT_EQ(facts.dims.kv_rank, NativeCall::kKvRank);
    EXPECT_GT(facts.owned_bytes, 0u);
    call.weights_args.ownership = MLAP_BORROW;
    mlap_weights* borrowed = nullptr;
    ASSERT_EQ(mlap_weights_create(&call.weights_args, &borrowed), MLAP_OK) << mlap_last_error();
    ASSERT_EQ(mlap_weights_query(borrowed, &facts), MLAP_OK) << mlap_last_error();
    EXPECT_EQ(facts.owned_bytes, 0u);
    EXPECT_EQ(mlap_weights_destroy(borrowed), MLAP_OK);
  }
}

// Runs `body` on that many threads at once.
void OnThreads(int count, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(body, i);
  for (std::thread& thread : threads) thread.join();
}

TEST(Handles, ContextsOfTheirOwnRunAtOnce) {
  constexpr int kThreads = 4;
  NativeCall expected(CallOptions{});
  mlap_context* const first = NewContext(1);
  ASSERT_EQ(expected.Run(first), MLAP_OK) << mlap_last_error();
  NativeCall shared(CallOptions{});
  mlap_weights* const weights = shared.Weights();
  std::vector<std::unique_ptr<NativeCall>> calls;
  for (int i = 0; i < kThreads; ++i) calls.push_back(std::make_unique<NativeCall>(CallOptions{}));
  OnThreads(kThreads, [&](int i) {
    mlap_context* const context = NewContext(1 + i % 2);
    for (int repeat = 0; repeat < 20; ++repeat) {
      EXPECT_EQ(mlap_run(context, weights, &calls[static_cast<size_t>(i)]->args), MLAP_OK) << mlap_last_error();
    }
    EXPECT_EQ(mlap_context_destroy(context), MLAP_OK) << mlap_last_error();
  });
  for (const auto& call : calls) EXPECT_EQ(call->WritableBytes(), expected.WritableBytes());
  EXPECT_EQ(mlap_context_destroy(first), MLAP_OK);
}

TEST(Handles, OneContextServesOneCallAtATime) {
  CallOptions large;
  large.tokens = 512;
  large.pages = 129;
  mlap_context* const context = NewContext(1);
  std::vector<std::unique_ptr<NativeCall>> calls;
  for (int i = 0; i < 2; ++i) {
    calls.push_back(std::make_unique<NativeCall>(large));
    ASSERT_NE(calls.back()->Weights(), nullptr) << mlap_last_error();
  }
  std::atomic<bool> was_busy{false};
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  OnThreads(2, [&](int i) {
    while (!was_busy && std::chrono::steady_clock::now() < end) {
      const mlap_status status = calls[static_cast<size_t>(i)]->Run(context);
      if (status == MLAP_BUSY) {
        EXPECT_TRUE(ErrorNames("context")) << mlap_last_error();
        was_busy = true;
      } else {
        EXPECT_EQ(status, MLAP_OK) << mlap_last_error();
      }
    }
  });
  EXPECT_TRUE(was_busy);
  // The refused call has done no harm.
  for (const auto& call : calls) EXPECT_EQ(call->Run(context), MLAP_OK) << mlap_last_error();
  EXPECT_EQ(calls[0]->WritableBytes(), calls[1]->WritableBytes());
  EXPECT_EQ(mlap_context_destroy(context), MLAP_OK);
}

// Its threads stayed in the parent; the child does their work, and leaves them alone at the end.
TEST(Handles, AContextWorksInAForkedChild) {
  mlap_context* const context = NewContext(3);
  NativeCall expected(CallOptions{});
  ASSERT_EQ(mlap_run(context, expected.Weights(), &expected.args), MLAP_OK) << mlap_last_error();
  // The threads of the pool sleep, and would be waited for when it is destroyed.
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  NativeCall call(CallOptions{});
  mlap_weights* const weights = call.Weights();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(60);
    const bool runs = mlap_run(context, weights, &call.args) == MLAP_OK;
    const bool is_same = call.WritableBytes() == expected.WritableBytes();
    const bool ends = mlap_context_destroy(context) == MLAP_OK;
    _exit(runs && is_same && ends ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(mlap_context_destroy(context), MLAP_OK);
}

TEST(Handles, WeightsMayBeDestroyedWhileACallUsesThem) {
  CallOptions large;
  large.tokens = 256;
  large.pages = 65;
  NativeCall expected(large);
  mlap_context* const context = NewContext(2);
  ASSERT_EQ(expected.Run(context), MLAP_OK) << mlap_last_error();
  for (int repeat = 0; repeat < 20; ++repeat) {
    NativeCall call(large);
    mlap_weights* weights = nullptr;
    ASSERT_EQ(mlap_weights_create(&call.weights_args, &weights), MLAP_OK) << mlap_last_error();
    mlap_status status = MLAP_OK;
    std::thread runner([&] { status = mlap_run(context, weights, &call.args); });
    EXPECT_EQ(mlap_weights_destroy(weights), MLAP_OK);
    runner.join();
    // Either it came before, or the handle was gone.
    if (status == MLAP_OK) {
      EXPECT_EQ(call.WritableBytes(), expected.WritableBytes());
    } else {
      EXPECT_EQ(status, MLAP_INVALID_ARGUMENT);
    }
  }
  EXPECT_EQ(mlap_context_destroy(context), MLAP_OK);
}

}  // namespace
}  // namespace mlap::test
