// Malformed files: each gives one line that names what is wrong.
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "safetensors_image.h"

namespace mlap::tools {
namespace {

using test::ErrorOf;
using test::MakeImage;

struct Malformed {
  const char* name;
  std::string header;
  std::vector<std::string> words;  // that the error contains
  size_t num_data = 8;
};

std::ostream& operator<<(std::ostream& out, const Malformed& malformed) { return out << malformed.name; }

std::string Repeat(std::string_view text, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += text;
  return out;
}

std::string Entry(std::string_view fields) { return "{\"weight_dq\":{" + std::string(fields) + "}}"; }

const Malformed kMalformed[] = {
    {"NoHeader", "", {"header", "JSON"}},
    {"NotJson", "{\"weight_dq\":", {"header", "JSON"}},
    {"TrailingText", "{} x", {"header", "JSON"}},
    {"NotUtf8", "{\"\xff\":{}}", {"header", "JSON"}},
    {"Array", "[]", {"header", "an object", "an array"}},
    {"Number", "17", {"header", "an object", "a number"}},
    {"Null", "null", {"header", "an object", "null"}},
    {"DeepArrays", Repeat("[", 1000000), {"header", "an array"}},
    {"DeepObjects", Repeat("{\"a\":", 1000000), {"tensor 'a'", "'a'"}},
    {"DeepShape", "{\"weight_dq\":{\"shape\":" + Repeat("[", 1000000), {"weight_dq", "shape", "an array"}},
    {"TensorIsNumber", "{\"weight_dq\":3}", {"weight_dq", "an object", "a number"}},
    {"TensorIsArray", "{\"weight_dq\":[]}", {"weight_dq", "an object", "an array"}},
    {"DuplicateTensor",
     R"({"weight_dq":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"weight_dq":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
     {"weight_dq", "duplicate"}},
    {"DuplicateField", Entry(R"("dtype":"U8","dtype":"U8")"), {"weight_dq", "duplicate", "dtype"}},
    {"UnknownField", Entry(R"("dtype":"U8","stride":[1])"), {"weight_dq", "stride"}},
    {"NoDtype", Entry(R"("shape":[1],"data_offsets":[0,1])"), {"weight_dq", "no dtype"}},
    {"NoShape", Entry(R"("dtype":"U8","data_offsets":[0,1])"), {"weight_dq", "no shape"}},
    {"NoOffsets", Entry(R"("dtype":"U8","shape":[1])"), {"weight_dq", "no data_offsets"}},
    {"EmptyEntry", Entry(""), {"weight_dq", "no dtype"}},
    {"UnknownDtype", Entry(R"("dtype":"F4","shape":[1],"data_offsets":[0,1])"), {"weight_dq", "dtype", "F4"}},
    {"DtypeIsNumber", Entry(R"("dtype":3)"), {"weight_dq", "dtype", "a number"}},
    {"DtypeIsArray", Entry(R"("dtype":["U8"])"), {"weight_dq", "dtype", "an array"}},
    {"ShapeIsNumber", Entry(R"("shape":3)"), {"weight_dq", "shape", "a number"}},
    {"ShapeIsText", Entry(R"("shape":"3")"), {"weight_dq", "shape", "text"}},
    {"ShapeIsNull", Entry(R"("shape":null)"), {"weight_dq", "shape", "null"}},
    {"NegativeSize", Entry(R"("shape":[-1])"), {"weight_dq", "shape", "-1"}},
    {"FractionalSize", Entry(R"("shape":[1.5])"), {"weight_dq", "shape", "1.5"}},
    {"HugeSize", Entry(R"("shape":[18446744073709551615])"), {"weight_dq", "shape", "18446744073709551615"}},
    {"HugerSize", Entry(R"("shape":[99999999999999999999])"), {"weight_dq", "shape", "99999999999999999999"}},
    {"TextInShape", Entry(R"("shape":["1"])"), {"weight_dq", "shape", "text"}},
    {"TooManyDimensions", Entry("\"shape\":[1" + Repeat(",1", 100) + "]"), {"weight_dq", "shape", "32"}},
    {"Size2To60",
     Entry(R"("dtype":"F64","shape":[1152921504606846976],"data_offsets":[0,8])"),
     {"weight_dq", "below 2^63", "1152921504606846976"}},
    {"ProductOverflows",
     Entry(R"("dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0])"),
     {"weight_dq", "below 2^63", "4294967296"}},
    {"OneOffset", Entry(R"("dtype":"U8","shape":[1],"data_offsets":[0])"), {"weight_dq", "data_offsets", "1"}},
    {"ThreeOffsets", Entry(R"("dtype":"U8","shape":[1],"data_offsets":[0,1,2])"), {"weight_dq", "data_offsets", "3"}},
    {"NegativeOffset", Entry(R"("dtype":"U8","shape":[1],"data_offsets":[-1,0])"), {"weight_dq", "data_offsets", "-1"}},
    {"OffsetsDescend", Entry(R"("dtype":"U8","shape":[1],"data_offsets":[2,1])"), {"weight_dq", "[2, 1]"}},
    {"WrongByteCount", Entry(R"("dtype":"F32","shape":[2],"data_offsets":[0,7])"), {"weight_dq", "8", "7", "F32 (2)"}},
    {"PastTheEnd", Entry(R"("dtype":"F32","shape":[3],"data_offsets":[0,12])"), {"weight_dq", "12", "8", "truncated"}},
    {"OffsetsOverflow",
     Entry(R"("dtype":"U8","shape":[8],"data_offsets":[18446744073709551600,18446744073709551608])"),
     {"weight_dq", "18446744073709551608", "truncated"}},
    {"MetadataIsText", R"({"__metadata__":"x"})", {"__metadata__", "an object"}},
    {"MetadataHoldsNumber", R"({"__metadata__":{"seed":1}})", {"__metadata__", "seed", "texts"}},
    {"MetadataHoldsObject", R"({"__metadata__":{"seed":{}}})", {"__metadata__", "an object"}},
    {"DuplicateMetadataKey", R"({"__metadata__":{"a":"1","a":"2"}})", {"__metadata__", "duplicate", "'a'"}},
    {"DuplicateMetadata", R"({"__metadata__":{},"__metadata__":{}})", {"__metadata__", "duplicate"}},
    {"NameWithNewline", "{\"a\\nb\":3}", {"a\\x0ab"}},
};

class SafetensorsMalformedTest : public ::testing::TestWithParam<Malformed> {};

TEST_P(SafetensorsMalformedTest, IsRefusedOnOneLine) {
  const Malformed& malformed = GetParam();
  const std::string error = ErrorOf("case file", MakeImage(malformed.header, malformed.num_data));
  EXPECT_EQ(error.rfind("case file: ", 0), 0u) << error;
  for (const std::string& word : malformed.words)
    EXPECT_NE(error.find(word), std::string::npos) << word << "\n" << error;
  EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  EXPECT_LT(error.size(), 600u) << error;
}

INSTANTIATE_TEST_SUITE_P(Headers, SafetensorsMalformedTest, ::testing::ValuesIn(kMalformed),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(SafetensorsEdgeTest, LengthsAreChecked) {
  std::vector<std::byte> image = MakeImage("{}", 0);
  image[0] = std::byte{3};
  EXPECT_NE(ErrorOf("f", image).find("header of 3 bytes, found 2: the file is truncated"), std::string::npos);
  image[7] = std::byte{0xff};
  EXPECT_NE(ErrorOf("f", image).find("found a header length of 18374686479671623683"), std::string::npos);
  image.resize(7);
  EXPECT_NE(ErrorOf("f", image).find("found a file of 7 bytes"), std::string::npos);
}

TEST(SafetensorsEdgeTest, EveryTruncationIsRefused) {
  const std::vector<std::byte> image = MakeImage(
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"U8","shape":[3],"data_offsets":[8,11]}})",
      11);
  ASSERT_EQ(ErrorOf("f", image), "");
  for (size_t size = 0; size < image.size(); ++size) {
    EXPECT_NE(ErrorOf("f", {image.begin(), image.begin() + static_cast<std::ptrdiff_t>(size)}), "") << size;
  }
}

TEST(SafetensorsEdgeTest, WhatTheFormatAllowsIsRead) {
  EXPECT_EQ(ErrorOf("f", MakeImage("{}", 0)), "");
  EXPECT_EQ(ErrorOf("f", MakeImage("  {}   ", 5)), "");
  // A size of 0 makes the others irrelevant; regions may overlap.
  EXPECT_EQ(ErrorOf("f", MakeImage(R"({"a":{"dtype":"F64","shape":[0,9223372036854775807,3],"data_offsets":[0,0]},
      "b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"c":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
                                   3)),
            "");
}

}  // namespace
}  // namespace mlap::tools
