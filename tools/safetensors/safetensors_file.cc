#include "safetensors_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "safetensors_header.h"

namespace mlap::tools {
namespace {

constexpr size_t kLengthBytes = 8;

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() {
    if (fd_ >= 0) close(fd_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

// What a LoadedFile's tensors point into.
struct Storage {
  Storage() = default;
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  ~Storage() {
    if (mapping != nullptr) munmap(mapping, mapping_bytes);
  }
  void* mapping = nullptr;
  size_t mapping_bytes = 0;
  // Copies: of a whole image, or of tensors that are not aligned to their elements in the file.
  std::vector<std::vector<std::byte>> copies;
};

uint64_t LittleEndian64(std::span<const std::byte> bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) value |= std::to_integer<uint64_t>(bytes[i]) << (8 * i);
  return value;
}

}  // namespace

LoadedFile LoadedFile::Open(const std::string& path) {
  LoadedFile file;
  file.name_ = OneLine(path, 4096);
  const auto fail = [&file](const std::string& what) {
    throw SafetensorsError(fmt::format("{}: {}", file.name_, what));
  };
  // Without O_NONBLOCK a named pipe would hold the program up.
  const FileDescriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status = {};
  if (fd.get() < 0 || fstat(fd.get(), &status) != 0) {
    fail(fmt::format("expected a readable file, found: {}", std::strerror(errno)));
  }
  if (!S_ISREG(status.st_mode)) fail("expected a regular file, found a directory or a device");

  auto storage = std::make_shared<Storage>();
  const auto size = static_cast<size_t>(status.st_size);
  if (size > 0) {
    void* mapping = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
    if (mapping == MAP_FAILED) fail(fmt::format("expected to map {} bytes, found: {}", size, std::strerror(errno)));
    storage->mapping = mapping;
    storage->mapping_bytes = size;
  }
  file.storage_ = storage;
  file.Load({static_cast<const std::byte*>(storage->mapping), size});
  return file;
}

LoadedFile LoadedFile::FromBytes(std::string_view name, std::span<const std::byte> bytes) {
  LoadedFile file;
  file.name_ = OneLine(name, 4096);
  auto storage = std::make_shared<Storage>();
  storage->copies.emplace_back(bytes.begin(), bytes.end());
  file.storage_ = storage;
  file.Load(storage->copies.front());
  return file;
}

void LoadedFile::Load(std::span<const std::byte> image) {
  if (image.size() < kLengthBytes) {
    throw SafetensorsError(
        fmt::format("{}: expected a header length of 8 bytes, found a file of {} bytes", name_, image.size()));
  }
  const uint64_t header_bytes = LittleEndian64(image);
  if (header_bytes > kSafetensorsMaxHeaderBytes) {
    throw SafetensorsError(fmt::format("{}: expected a header of at most {} bytes, found a header length of {}", name_,
                                       kSafetensorsMaxHeaderBytes, header_bytes));
  }
  if (header_bytes > image.size() - kLengthBytes) {
    throw SafetensorsError(fmt::format("{}: expected a header of {} bytes, found {}: the file is truncated", name_,
                                       header_bytes, image.size() - kLengthBytes));
  }
  const auto json = image.subspan(kLengthBytes, static_cast<size_t>(header_bytes));
  SafetensorsHeader header = ParseSafetensorsHeader(name_, {reinterpret_cast<const char*>(json.data()), json.size()});
  metadata_ = std::move(header.metadata);

  const auto data = image.subspan(kLengthBytes + static_cast<size_t>(header_bytes));
  auto aligned = std::make_shared<Storage>();
  for (auto& [tensor_name, entry] : header.tensors) {
    if (entry.end > data.size()) {
      throw SafetensorsError(fmt::format("{}: tensor '{}': expected bytes up to {}, found {}: the file is truncated",
                                         name_, OneLine(tensor_name), entry.end, data.size()));
    }
    TensorView view;
    view.dtype = entry.dtype;
    view.shape = std::move(entry.shape);
    view.num_bytes = static_cast<size_t>(entry.end - entry.begin);
    view.bytes = data.data() + entry.begin;
    if (reinterpret_cast<uintptr_t>(view.bytes) % DtypeBytes(view.dtype) != 0) {
      aligned->copies.emplace_back(view.bytes, view.bytes + view.num_bytes);
      view.bytes = aligned->copies.back().data();
    }
    tensors_.emplace(tensor_name, std::move(view));
  }
  if (!aligned->copies.empty()) {
    using Both = std::pair<std::shared_ptr<const void>, std::shared_ptr<const void>>;
    storage_ = std::make_shared<const Both>(storage_, aligned);
  }
}

const TensorView* LoadedFile::Find(std::string_view tensor_name) const {
  const auto found = tensors_.find(tensor_name);
  return found == tensors_.end() ? nullptr : &found->second;
}

const TensorView& LoadedFile::Tensor(std::string_view tensor_name) const {
  const TensorView* view = Find(tensor_name);
  if (view == nullptr) {
    throw SafetensorsError(
        fmt::format("{}: tensor '{}': expected in the file, found none of that name", name_, OneLine(tensor_name)));
  }
  return *view;
}

}  // namespace mlap::tools
