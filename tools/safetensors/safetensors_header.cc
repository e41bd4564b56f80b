#include "safetensors_header.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "safetensors_error.h"

namespace mlap::tools {
namespace {

using nlohmann::json;

// Reads the header event by event: its form is fixed and shallow, so nothing that does not belong is ever stored.
//
//   {"__metadata__": {"key": "text", ...}, "tensor": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}, ...}
class HeaderReader {
 public:
  HeaderReader(std::string_view file, SafetensorsHeader* header) : file_(file), header_(header) {}

  bool start_object(size_t) {
    if (depth_ == 0 || (depth_ == 1 && !in_array_)) {
      ++depth_;
      keys_.clear();
      if (depth_ == 2) BeginTensor();
      return true;
    }
    Unexpected("an object");
  }

  bool key(std::string& name) {
    if (depth_ == 1) {
      tensor_ = name;
      in_metadata_ = name == "__metadata__";
      if (!names_.insert(name).second) Fail("expected one entry, found a duplicate key");
      return true;
    }
    field_ = name;
    if (!keys_.insert(name).second) {
      Fail(fmt::format("expected one '{0}', found a duplicate key '{0}'", OneLine(name)));
    }
    if (!in_metadata_ && name != "dtype" && name != "shape" && name != "data_offsets") {
      Fail(fmt::format("expected dtype, shape and data_offsets, found '{}'", OneLine(name)));
    }
    return true;
  }

  bool end_object() {
    if (depth_ == 2 && !in_metadata_) EndTensor();
    --depth_;
    return true;
  }

  bool start_array(size_t) {
    if (depth_ != 2 || in_array_ || in_metadata_ || field_ == "dtype") Unexpected("an array");
    in_array_ = true;
    numbers_.clear();
    return true;
  }

  bool end_array() {
    in_array_ = false;
    if (field_ == "shape") {
      entry_.shape.assign(numbers_.begin(), numbers_.end());
      return true;
    }
    if (numbers_.size() != 2) {
      Fail(fmt::format("expected data_offsets of 2 numbers, found {}", numbers_.size()));
    }
    entry_.begin = numbers_[0];
    entry_.end = numbers_[1];
    return true;
  }

  bool number_unsigned(uint64_t value) {
    if (!in_array_) Unexpected("a number");
    if (field_ == "shape" && value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      Fail(fmt::format("expected a shape of numbers below 2^63, found {}", value));
    }
    if (numbers_.size() == kSafetensorsMaxRank) {
      Fail(fmt::format("expected {} of at most {} numbers, found more", field_, kSafetensorsMaxRank));
    }
    numbers_.push_back(value);
    return true;
  }

  bool number_integer(int64_t value) { Unexpected(fmt::format("{}", value)); }
  bool number_float(double, const std::string& text) { Unexpected(OneLine(text)); }
  bool null() { Unexpected("null"); }
  bool boolean(bool value) { Unexpected(value ? "true" : "false"); }
  bool binary(json::binary_t&) { Unexpected("binary data"); }

  bool string(std::string& value) {
    if (depth_ == 2 && in_metadata_) {
      header_->metadata.emplace(field_, value);
      return true;
    }
    if (depth_ != 2 || in_array_ || field_ != "dtype") Unexpected(fmt::format("the text '{}'", OneLine(value)));
    const std::optional<Dtype> dtype = DtypeFromName(value);
    if (!dtype.has_value()) {
      Fail(fmt::format("expected a known dtype such as BF16, F32, I8 or I64, found '{}'", OneLine(value)));
    }
    entry_.dtype = *dtype;
    return true;
  }

  bool parse_error(size_t position, const std::string&, const json::exception&) {
    throw SafetensorsError(
        fmt::format("{}: header: expected JSON in UTF-8, found an error at its byte {}", file_, position));
  }

 private:
  [[noreturn]] void Fail(std::string_view what) const {
    if (depth_ == 0 || tensor_.empty()) throw SafetensorsError(fmt::format("{}: header: {}", file_, what));
    throw SafetensorsError(fmt::format("{}: tensor '{}': {}", file_, OneLine(tensor_), what));
  }

  [[noreturn]] void Unexpected(std::string_view found) const {
    if (depth_ == 0) Fail(fmt::format("expected an object, found {}", found));
    if (depth_ == 1) Fail(fmt::format("expected an object of dtype, shape and data_offsets, found {}", found));
    if (in_metadata_) Fail(fmt::format("expected texts only, found {} for '{}'", found, OneLine(field_)));
    const bool is_dtype = field_ == "dtype";
    Fail(fmt::format("expected {} of '{}', found {}", is_dtype ? "a name" : "an array of non-negative integers", field_,
                     found));
  }

  void BeginTensor() { entry_ = HeaderEntry(); }

  void EndTensor() {
    for (const char* field : {"dtype", "shape", "data_offsets"}) {
      if (!keys_.contains(field)) Fail(fmt::format("expected dtype, shape and data_offsets, found no {}", field));
    }
    if (entry_.begin > entry_.end) {
      Fail(fmt::format("expected data_offsets in ascending order, found [{}, {}]", entry_.begin, entry_.end));
    }
    const std::optional<uint64_t> bytes = TensorBytes();
    if (!bytes.has_value()) {
      Fail(fmt::format("expected a size below 2^63 bytes, found shape {}", ShapeText(entry_.shape)));
    }
    if (*bytes != entry_.end - entry_.begin) {
      Fail(fmt::format("expected {} bytes for {} {}, found {} in data_offsets [{}, {}]", *bytes,
                       DtypeName(entry_.dtype), ShapeText(entry_.shape), entry_.end - entry_.begin, entry_.begin,
                       entry_.end));
    }
    header_->tensors.emplace(tensor_, std::move(entry_));
  }

  // Nothing if the size does not fit into 63 bits.
  std::optional<uint64_t> TensorBytes() const {
    for (const int64_t dim : entry_.shape) {
      if (dim == 0) return 0;
    }
    int64_t bytes = static_cast<int64_t>(DtypeBytes(entry_.dtype));
    for (const int64_t dim : entry_.shape) {
      if (__builtin_mul_overflow(bytes, dim, &bytes)) return std::nullopt;
    }
    return static_cast<uint64_t>(bytes);
  }

  std::string_view file_;
  SafetensorsHeader* header_;
  int depth_ = 0;  // of objects
  bool in_array_ = false;
  bool in_metadata_ = false;
  std::string tensor_;
  std::string field_;
  std::set<std::string, std::less<>> names_;
  std::set<std::string, std::less<>> keys_;
  std::vector<uint64_t> numbers_;
  HeaderEntry entry_;
};

}  // namespace

SafetensorsHeader ParseSafetensorsHeader(std::string_view file, std::string_view text) {
  SafetensorsHeader header;
  HeaderReader reader(file, &header);
  json::sax_parse(text.begin(), text.end(), &reader);
  return header;
}

}  // namespace mlap::tools
