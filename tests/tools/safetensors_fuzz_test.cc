// Random damage to a valid file: it is read or refused on one line, never anything else.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "safetensors_file.h"
#include "safetensors_image.h"

namespace mlap::tools {
namespace {

constexpr const char* kHeader = R"({"__metadata__":{"scenario":"partial","heads":"3"},)"
                                R"("weight_dq":{"dtype":"BF16","shape":[1,2,16,2],"data_offsets":[8,136]},)"
                                R"("cache_index":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},)"
                                R"("kv_cache":{"dtype":"I8","shape":[0,16,1,64],"data_offsets":[136,136]}})";

// Texts whose insertion leads further than that of random bytes.
constexpr const char* kTokens[] = {"{",
                                   "}",
                                   "[",
                                   "]",
                                   ",",
                                   ":",
                                   "\"",
                                   "null",
                                   "-1",
                                   "1e9",
                                   "0",
                                   "true",
                                   "\"U8\"",
                                   "\\u",
                                   "\"F64\"",
                                   "[[[[[",
                                   "{{{",
                                   "9223372036854775807",
                                   "18446744073709551615",
                                   "\"shape\":",
                                   "\"__metadata__\":",
                                   "\xff",
                                   "\x00"};

void Mutate(std::mt19937_64* random, std::vector<std::byte>* image) {
  const auto below = [random](size_t bound) { return bound == 0 ? 0 : static_cast<size_t>((*random)() % bound); };
  const auto at = [&](size_t position) { return image->begin() + static_cast<std::ptrdiff_t>(position); };
  switch (below(6)) {
    case 0:
      if (!image->empty()) (*image)[below(image->size())] ^= static_cast<std::byte>(1u << below(8));
      break;
    case 1:
      if (!image->empty()) (*image)[below(image->size())] = static_cast<std::byte>(below(256));
      break;
    case 2:
      image->resize(below(image->size() + 1));
      break;
    case 3: {
      const std::string token = kTokens[below(std::size(kTokens))];
      const size_t position = below(image->size() + 1);
      for (size_t i = 0; i < token.size(); ++i) image->insert(at(position + i), static_cast<std::byte>(token[i]));
      break;
    }
    case 4: {
      const size_t begin = below(image->size() + 1);
      image->erase(at(begin), at(begin + below(std::min<size_t>(image->size() - begin, 40) + 1)));
      break;
    }
    default: {
      const size_t begin = below(image->size() + 1);
      const size_t size = below(std::min<size_t>(image->size() - begin, 60) + 1);
      const std::vector<std::byte> part(at(begin), at(begin + size));
      image->insert(at(below(image->size() + 1)), part.begin(), part.end());
    }
  }
}

// The length field follows the header's in half of the cases, so that damage reaches the JSON reader.
void RepairLength(std::vector<std::byte>* image, size_t num_data) {
  if (image->size() < 8 + num_data) return;
  const size_t length = image->size() - 8 - num_data;
  for (int i = 0; i < 8; ++i) (*image)[static_cast<size_t>(i)] = static_cast<std::byte>(length >> (8 * i));
}

TEST(SafetensorsFuzzTest, DamageIsReadOrRefused) {
  constexpr size_t kNumData = 136;
  const std::vector<std::byte> valid = test::MakeImage(kHeader, kNumData);
  ASSERT_EQ(test::ErrorOf("f", valid), "");
  std::mt19937_64 random(20240607);
  int num_read = 0;
  int num_refused = 0;
  unsigned checksum = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::byte> image = valid;
    for (size_t i = random() % 4 + 1; i > 0; --i) Mutate(&random, &image);
    if (round % 2 == 0) RepairLength(&image, kNumData);
    try {
      const LoadedFile file = LoadedFile::FromBytes("f", image);
      ++num_read;
      for (const auto& [name, view] : file.tensors()) {
        size_t expected = DtypeBytes(view.dtype);
        for (const int64_t dim : view.shape) expected *= static_cast<size_t>(dim);
        ASSERT_EQ(view.num_bytes, expected) << round;
        for (size_t i = 0; i < view.num_bytes; ++i) checksum += std::to_integer<unsigned>(view.bytes[i]);
      }
    } catch (const SafetensorsError& error) {
      ++num_refused;
      ASSERT_EQ(std::string(error.what()).find_first_of("\n\r"), std::string::npos) << error.what();
      ASSERT_LT(std::string(error.what()).size(), 2000u);
    }
  }
  // Both happen, or the test tests little.
  EXPECT_GT(num_read, 1000) << checksum;
  EXPECT_GT(num_refused, 5000);
}

}  // namespace
}  // namespace mlap::tools
