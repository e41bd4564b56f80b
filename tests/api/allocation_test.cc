// A call that is not larger than an earlier one of its context allocates nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

#include "api/native_call.h"

namespace {

std::atomic<int64_t> num_allocations{0};

}  // namespace

// The library's allocations come here, too: a program's operator new serves all its libraries.
// Not inlined: the compiler would see a pair of new and free, and warn.
__attribute__((noinline)) void* operator new(size_t size) {
  ++num_allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
__attribute__((noinline)) void operator delete(void* memory) noexcept { std::free(memory); }
__attribute__((noinline)) void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace mlap::test {
namespace {

uint64_t WorkspaceBytes(const mlap_context* context) {
  mlap_context_facts facts = {};
  facts.struct_size = sizeof(facts);
  EXPECT_EQ(mlap_context_query(context, &facts), MLAP_OK) << mlap_last_error();
  return facts.workspace_bytes;
}

class Allocations : public testing::TestWithParam<CallOptions> {};
INSTANTIATE_TEST_SUITE_P(Calls, Allocations, testing::ValuesIn(AllCalls()), CallName);

TEST_P(Allocations, NoneAfterTheFirstCall) {
  const int64_t before_context = num_allocations;
  const mlap_context_args args = {sizeof(mlap_context_args), 2, nullptr};
  mlap_context* context = nullptr;
  ASSERT_EQ(mlap_context_create(&args, &context), MLAP_OK) << mlap_last_error();
  EXPECT_GT(num_allocations, before_context) << "allocations of the library are not seen";

  NativeCall call(GetParam());
  // Strided tensors go through the workspace: here token_x, whose tokens are all the first one.
  call.args.token_x.strides[call.args.token_x.rank - 1] = 1;
  ASSERT_EQ(call.Run(context), MLAP_OK) << mlap_last_error();
  const uint64_t workspace = WorkspaceBytes(context);
  EXPECT_GT(workspace, 0u);

  const int64_t before = num_allocations;
  for (int repeat = 0; repeat < 3; ++repeat) ASSERT_EQ(call.Run(context), MLAP_OK);
  EXPECT_EQ(num_allocations, before);
  EXPECT_EQ(WorkspaceBytes(context), workspace);
  EXPECT_EQ(mlap_context_destroy(context), MLAP_OK);
}

TEST(WorkspaceGrowth, OnlyLargerCallsGrowIt) {
  mlap_context* context = nullptr;
  ASSERT_EQ(mlap_context_create(nullptr, &context), MLAP_OK) << mlap_last_error();
  int64_t most_tokens = 0;
  for (const int64_t tokens : {8, 3, 64, 1, 64, 8}) {
    CallOptions options;
    options.tokens = tokens;
    options.pages = 17;
    NativeCall call(options);
    const uint64_t before = WorkspaceBytes(context);
    ASSERT_EQ(call.Run(context), MLAP_OK) << mlap_last_error();
    const uint64_t after = WorkspaceBytes(context);
    EXPECT_EQ(after > before, tokens > most_tokens) << tokens << " tokens";
    most_tokens = std::max(most_tokens, tokens);
  }
  EXPECT_EQ(mlap_context_destroy(context), MLAP_OK);
}

}  // namespace
}  // namespace mlap::test
