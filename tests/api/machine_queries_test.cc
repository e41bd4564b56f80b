// The functions of mlaprolog.h that tell about the machine, called wrongly and from several threads.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <thread>

#include "mlaprolog/mlaprolog.h"

namespace {

constexpr size_t kFarAway = std::numeric_limits<size_t>::max();

template <class Query>
struct QueryCase {
  using Function = mlap_status (*)(size_t, Query*);
  Function function;
  size_t count;
};

// What holds for both indexed queries.
template <class Query>
void ExpectRefusals(const char* name, const QueryCase<Query>& query) {
  SCOPED_TRACE(name);
  EXPECT_EQ(query.function(0, nullptr), MLAP_INVALID_ARGUMENT);
  EXPECT_NE(std::string(mlap_last_error()).find(name), std::string::npos);
  for (const size_t size : {size_t{0}, sizeof(Query) - 1, sizeof(Query) + 1, kFarAway}) {
    Query out = {};
    out.struct_size = size;
    EXPECT_EQ(query.function(0, &out), MLAP_INVALID_ARGUMENT) << size;
    EXPECT_NE(std::string(mlap_last_error()).find("struct_size"), std::string::npos) << mlap_last_error();
    EXPECT_EQ(out.name, nullptr);
    EXPECT_EQ(out.struct_size, size);
  }
  for (const size_t index : {query.count, query.count + 1, kFarAway}) {
    Query out = {};
    out.struct_size = sizeof(out);
    EXPECT_EQ(query.function(index, &out), MLAP_INVALID_ARGUMENT) << index;
    EXPECT_NE(std::string(mlap_last_error()).find("index"), std::string::npos) << mlap_last_error();
    EXPECT_EQ(out.name, nullptr);
  }
}

TEST(MachineQueries, RefuseWrongArguments) {
  ExpectRefusals<mlap_isa>("mlap_isa_at", {mlap_isa_at, mlap_isa_count()});
  ExpectRefusals<mlap_kernel>("mlap_kernel_at", {mlap_kernel_at, mlap_kernel_count()});
  EXPECT_EQ(mlap_chosen_isa(nullptr), MLAP_INVALID_ARGUMENT);
  EXPECT_NE(std::string(mlap_last_error()).find("mlap_chosen_isa"), std::string::npos);
  EXPECT_EQ(mlap_num_threads(nullptr), MLAP_INVALID_ARGUMENT);
  EXPECT_NE(std::string(mlap_last_error()).find("mlap_num_threads"), std::string::npos);
}

TEST(MachineQueries, TheChosenIsaIsUsable) {
  const char* chosen = nullptr;
  ASSERT_EQ(mlap_chosen_isa(&chosen), MLAP_OK) << mlap_last_error();
  bool found = false;
  for (size_t i = 0; i < mlap_isa_count(); ++i) {
    mlap_isa isa = {};
    isa.struct_size = sizeof(isa);
    ASSERT_EQ(mlap_isa_at(i, &isa), MLAP_OK);
    if (std::string(isa.name) == chosen) {
      found = true;
      EXPECT_TRUE(isa.is_usable);
    }
  }
  EXPECT_TRUE(found) << chosen;
}

TEST(MachineQueries, TheLastErrorBelongsToTheThread) {
  ASSERT_EQ(mlap_num_threads(nullptr), MLAP_INVALID_ARGUMENT);
  const std::string here = mlap_last_error();
  std::string there = "unset";
  std::string there_after = "unset";
  std::thread other([&] {
    there = mlap_last_error();
    mlap_chosen_isa(nullptr);
    there_after = mlap_last_error();
  });
  other.join();
  EXPECT_EQ(there, "");
  EXPECT_NE(there_after.find("mlap_chosen_isa"), std::string::npos);
  EXPECT_EQ(mlap_last_error(), here);
}

TEST(MachineQueries, ASuccessKeepsTheLastError) {
  ASSERT_EQ(mlap_num_threads(nullptr), MLAP_INVALID_ARGUMENT);
  const std::string before = mlap_last_error();
  int num_threads = 0;
  ASSERT_EQ(mlap_num_threads(&num_threads), MLAP_OK);
  EXPECT_EQ(mlap_last_error(), before);
}

}  // namespace
