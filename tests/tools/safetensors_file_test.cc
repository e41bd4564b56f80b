#include "safetensors_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "safetensors_image.h"
#include "safetensors_writer.h"

namespace mlap::tools {
namespace {

using test::MakeImage;

class SafetensorsFileTest : public ::testing::Test {
 protected:
  SafetensorsFileTest() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    directory_ = std::filesystem::temp_directory_path() /
                 ("mlap_safetensors_" + std::string(test->name()) + "_" + std::to_string(getpid()));
    std::filesystem::create_directories(directory_);
  }
  ~SafetensorsFileTest() override { std::filesystem::remove_all(directory_); }

  std::string Path(const char* name) const { return (directory_ / name).string(); }

  static TensorView View(Dtype dtype, std::vector<int64_t> shape, const std::vector<std::byte>& bytes) {
    return {dtype, std::move(shape), bytes.data(), bytes.size()};
  }

  std::filesystem::path directory_;
};

std::vector<std::byte> Pattern(size_t size) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 37 + 11);
  return bytes;
}

TEST_F(SafetensorsFileTest, WhatIsWrittenIsReadBack) {
  const std::vector<std::byte> bf16 = Pattern(2 * 6);
  const std::vector<std::byte> int8 = Pattern(7);
  const std::vector<std::byte> int64 = Pattern(8);
  const std::vector<std::byte> nothing;
  WriteSafetensors(Path("a"), {{"scenario", "non_quant"}, {"quote", "\"\n\xc3\xa9"}},
                   {{"x", View(Dtype::kBF16, {2, 3}, bf16)},
                    {"i8", View(Dtype::kI8, {7}, int8)},
                    {"scalar", View(Dtype::kI64, {}, int64)},
                    {"empty", View(Dtype::kF32, {0, 5}, nothing)}});
  const LoadedFile file = LoadedFile::Open(Path("a"));
  EXPECT_EQ(file.tensors().size(), 4u);
  EXPECT_EQ(file.metadata().at("scenario"), "non_quant");
  EXPECT_EQ(file.metadata().at("quote"), "\"\n\xc3\xa9");
  EXPECT_EQ(file.Tensor("x").dtype, Dtype::kBF16);
  EXPECT_EQ(file.Tensor("x").shape, (std::vector<int64_t>{2, 3}));
  ASSERT_EQ(file.Tensor("x").num_bytes, bf16.size());
  EXPECT_EQ(std::memcmp(file.Tensor("x").bytes, bf16.data(), bf16.size()), 0);
  ASSERT_EQ(file.Tensor("i8").num_bytes, int8.size());
  EXPECT_EQ(std::memcmp(file.Tensor("i8").bytes, int8.data(), int8.size()), 0);
  EXPECT_TRUE(file.Tensor("scalar").shape.empty());
  ASSERT_EQ(file.Tensor("scalar").num_bytes, 8u);
  EXPECT_EQ(file.Tensor("empty").num_bytes, 0u);
  EXPECT_EQ(file.Find("y"), nullptr);
  EXPECT_FALSE(std::filesystem::exists(Path("a.part")));
}

TEST_F(SafetensorsFileTest, BytesDependOnContentsOnly) {
  const std::vector<std::byte> a = Pattern(4);
  const std::vector<std::byte> b = Pattern(3);
  const auto read = [](const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  WriteSafetensors(Path("1"), {}, {{"a", View(Dtype::kF32, {1}, a)}, {"b", View(Dtype::kI8, {3}, b)}});
  WriteSafetensors(Path("2"), {}, {{"b", View(Dtype::kI8, {3}, b)}, {"a", View(Dtype::kF32, {1}, a)}});
  EXPECT_EQ(read(Path("1")), read(Path("2")));
}

TEST_F(SafetensorsFileTest, TensorsAreAlignedWhateverTheFile) {
  const auto image = MakeImage(
      R"({"i":{"dtype":"I8","shape":[1],"data_offsets":[0,1]},"x":{"dtype":"F64","shape":[2],"data_offsets":[1,17]}})",
      17);
  const LoadedFile file = LoadedFile::FromBytes("odd", image);
  const TensorView& x = file.Tensor("x");
  EXPECT_EQ(reinterpret_cast<uintptr_t>(x.bytes) % 8, 0u);
  for (size_t i = 0; i < 16; ++i) EXPECT_EQ(std::to_integer<size_t>(x.bytes[i]), i + 1);
}

TEST_F(SafetensorsFileTest, CopiesShareTheBytes) {
  const auto image = MakeImage(R"({"x":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 4);
  std::shared_ptr<const void> storage;
  const std::byte* bytes = nullptr;
  {
    const LoadedFile file = LoadedFile::FromBytes("image", image);
    const LoadedFile copy = file;
    EXPECT_EQ(copy.Tensor("x").bytes, file.Tensor("x").bytes);
    storage = copy.storage();
    bytes = copy.Tensor("x").bytes;
  }
  EXPECT_EQ(std::to_integer<int>(bytes[3]), 3);
}

TEST_F(SafetensorsFileTest, MissingTensorIsNamed) {
  const LoadedFile file = LoadedFile::FromBytes("some file", MakeImage("{}", 0));
  try {
    file.Tensor("weight_dq");
    FAIL();
  } catch (const SafetensorsError& error) {
    EXPECT_STREQ(error.what(), "some file: tensor 'weight_dq': expected in the file, found none of that name");
  }
}

TEST_F(SafetensorsFileTest, UnreadableFilesAreNamed) {
  const auto error_of = [](const std::string& path) -> std::string {
    try {
      LoadedFile::Open(path);
    } catch (const SafetensorsError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(error_of(Path("absent")).find("absent: expected a readable file, found: No such file"), std::string::npos);
  EXPECT_NE(error_of(directory_.string()).find("expected a regular file"), std::string::npos);
  EXPECT_NE(error_of("/dev/zero").find("/dev/zero: expected a regular file"), std::string::npos);
  std::ofstream(Path("empty")).close();
  EXPECT_NE(error_of(Path("empty")).find("found a file of 0 bytes"), std::string::npos);
}

TEST_F(SafetensorsFileTest, WriterRefusesWhatItCannotWrite) {
  const std::vector<std::byte> bytes = Pattern(4);
  const TensorView view = View(Dtype::kF32, {1}, bytes);
  const auto error_of = [&](const std::string& path, std::vector<NamedTensor> tensors) -> std::string {
    try {
      WriteSafetensors(path, {}, std::move(tensors));
    } catch (const SafetensorsError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(error_of(Path("no/such/directory"), {{"x", view}}).find("expected to write the file"), std::string::npos);
  EXPECT_NE(error_of(Path("a"), {{"x", view}, {"x", view}}).find("tensor 'x'"), std::string::npos);
  EXPECT_NE(error_of(Path("a"), {{"x", View(Dtype::kF32, {2}, bytes)}}).find("expected 8 bytes"), std::string::npos);
  EXPECT_NE(error_of("/dev/full", {{"x", view}}).find("No space left"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(Path("a")));
}

}  // namespace
}  // namespace mlap::tools
