// mlaprolog.hpp: handles as objects, failures as exceptions.
#include <gtest/gtest.h>

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "api/native_call.h"
#include "mlaprolog/mlaprolog.hpp"

namespace mlap::test {
namespace {

static_assert(!std::is_copy_constructible_v<Context> && std::is_nothrow_move_constructible_v<Context>);
static_assert(!std::is_copy_constructible_v<Weights> && std::is_nothrow_move_assignable_v<Weights>);

TEST(CxxWrapper, RunsAsTheCInterfaceDoes) {
  NativeCall plain(CallOptions{});
  NativeCall wrapped(CallOptions{});
  Context context(2);
  ASSERT_EQ(plain.Run(context.get()), MLAP_OK) << mlap_last_error();
  const Weights weights(wrapped.weights_args);
  context.Run(weights, wrapped.args);
  EXPECT_EQ(wrapped.WritableBytes(), plain.WritableBytes());
  EXPECT_EQ(weights.facts().dims.heads, NativeCall::kHeads);
  EXPECT_EQ(context.facts().num_threads, 2);

  NativeCall reference(CallOptions{});
  RunReference(weights, reference.args, &reference.intermediates);
  const mlap_comparison comparison = Compare(wrapped.args.query, reference.args.query, MLAP_STANDARD_STAGED);
  EXPECT_TRUE(comparison.is_passed) << comparison.verdict;
}

TEST(CxxWrapper, FailuresAreExceptions) {
  NativeCall call(CallOptions{});
  Context context(1);
  const Weights weights(call.weights_args);
  call.args.query.dims[0] = 77;
  try {
    context.Run(weights, call.args);
    FAIL() << "no exception";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), MLAP_INVALID_ARGUMENT);
    EXPECT_NE(std::string(error.what()).find("query"), std::string::npos) << error.what();
  }
  EXPECT_THROW(Context{-1}, Error);
  EXPECT_THROW(Weights{WeightsArgs()}, Error);
}

TEST(CxxWrapper, MovedObjectsKeepTheirHandles) {
  NativeCall call(CallOptions{});
  Context first(1);
  Context second(std::move(first));
  Weights weights(call.weights_args);
  Weights other(std::move(weights));
  second.Run(other, call.args);
  EXPECT_THROW(first.Run(other, call.args), Error);  // NOLINT(bugprone-use-after-move): what it does is the question
  first = std::move(second);
  weights = std::move(other);
  first.Run(weights, call.args);
}

TEST(CxxWrapper, TensorsAreWhatTheyAreCalled) {
  std::vector<uint16_t> data(24);
  const mlap_tensor tensor = StridedTensor(data.data(), MLAP_BF16, {2, 3}, {12, 4});
  EXPECT_EQ(tensor.data, data.data());
  EXPECT_EQ(tensor.rank, 2);
  EXPECT_EQ(tensor.dims[1], 3);
  EXPECT_EQ(tensor.strides[0], 12);
  EXPECT_EQ(Matrix(data.data(), MLAP_BF16, 4, 6, MLAP_OUT_IN).layout, MLAP_OUT_IN);
  EXPECT_EQ(Tensor(nullptr, MLAP_BF16, {1, 2, 3, 4, 5}).rank, 5);  // for the library to refuse
  EXPECT_EQ(RunArgs().kc_scale, 1.0);
  EXPECT_EQ(RopeTableArgs().base, 10000.0);
}

}  // namespace
}  // namespace mlap::test
