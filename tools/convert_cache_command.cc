// `mlaprolog convert-cache`
#include <fmt/ranges.h>
#include <mlaprolog/mlaprolog.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "commands.h"
#include "native_tensor.h"
#include "option_parsing.h"
#include "output_path.h"
#include "prolog_case.h"
#include "safetensors_error.h"
#include "tool_error.h"

namespace mlap::tools {
namespace {

constexpr const char* kConvertCacheFooter =
    R"(Forms:
  PA_BSND      pages of rows, (BlockNum, BlockSize, 1, width)
  PA_NZ        the same shape, each page as [width / C0][BlockSize][C0]
  cann         rows of bytes: Hckv 8-bit values, Dr bf16 of the rope part, a float for every 128 values (656 bytes)
  flashmla     the same rows with the floats before the rope part
  split        three tensors: NAME.values, NAME.rope, NAME.scales

Between PA_BSND and PA_NZ, and between cann, flashmla and split; only per-group caches have rows of the latter. Values
are moved, never changed. All other tensors and the metadata are copied.

Between page orders all of kv_cache, kr_cache, expected.kv_cache and expected.kr_cache that the file has are converted.
If it has the metadata cache_mode, as cases and results do, that must have the order of --from, becomes that of --to,
and holds for all of them: --tensor may not leave one out.

Examples:
  mlaprolog new-case case.safetensors --heads 8
  mlaprolog convert-cache case.safetensors nz.safetensors --from PA_BSND --to PA_NZ
  mlaprolog new-case groups.safetensors --heads 8 --scenario partial-kv-per-group
  mlaprolog convert-cache groups.safetensors flashmla.safetensors --from cann --to flashmla)";

struct ConvertOptions {
  std::string input_path;
  std::string output_path;
  std::string from;
  std::string to;
  std::vector<std::string> tensors;  // none: the caches that the forms are of
  int64_t kv_rank = 512;
  int64_t rope = 64;
  bool force = false;
};

constexpr const char* kPageForms[] = {"PA_BSND", "PA_NZ"};
constexpr const char* kRowForms[] = {"cann", "flashmla", "split"};
enum RowForm { kCann, kFlashMla, kSplit, kNoRowForm = -1 };

template <size_t count>
int PlaceOf(const std::string& form, const char* const (&forms)[count]) {
  for (size_t i = 0; i < count; ++i) {
    if (form == forms[i]) return static_cast<int>(i);
  }
  return -1;
}

void Require(const std::string& name, mlap_status status) {
  if (status != MLAP_OK) Fail("tensor '{}': {}", name, mlap_last_error());
}

CaseTensor Reshaped(const CaseTensor& like, Dtype dtype, int64_t width) {
  std::vector<int64_t> shape = like.view.shape;
  shape.back() = width;
  std::byte* bytes = nullptr;
  return NewTensor(dtype, std::move(shape), &bytes);
}

// What the metadata cache_mode of a case is in either order of pages.
struct PageModes {
  const char* modes[2];
};
constexpr PageModes kPageModes[] = {{{"PA_BSND", "PA_NZ"}}, {{"PA_BLK_BSND", "PA_BLK_NZ"}}};
constexpr const char* kCaches[] = {"kv_cache", "kr_cache", "expected.kv_cache", "expected.kr_cache"};

// The file's tensors and metadata in their new form.
class Converter {
 public:
  Converter(const ConvertOptions& options, const LoadedFile& file)
      : options_(options), metadata_(file.metadata().begin(), file.metadata().end()) {
    for (const auto& [name, view] : file.tensors()) tensors_[name] = {view, file.storage()};
  }

  const TensorMap& tensors() const { return tensors_; }
  const std::map<std::string, std::string, std::less<>>& metadata() const { return metadata_; }

  // Returns the names of the caches it has converted.
  std::vector<std::string> Convert() {
    const int from_pages = PlaceOf(options_.from, kPageForms);
    const int to_pages = PlaceOf(options_.to, kPageForms);
    const int from_rows = PlaceOf(options_.from, kRowForms);
    const int to_rows = PlaceOf(options_.to, kRowForms);
    for (const auto& [option, form, is_known] : {std::tuple{"--from", options_.from, from_pages >= 0 || from_rows >= 0},
                                                 std::tuple{"--to", options_.to, to_pages >= 0 || to_rows >= 0}}) {
      if (!is_known) {
        Fail("{}: expected one of {}, {}, found '{}'", option, fmt::join(kPageForms, ", "), fmt::join(kRowForms, ", "),
             OneLine(form));
      }
    }
    if ((from_pages >= 0) != (to_pages >= 0)) {
      Fail("--to: expected one of {} from {}, found {}",
           from_pages >= 0 ? fmt::format("{}", fmt::join(kPageForms, ", "))
                           : fmt::format("{}", fmt::join(kRowForms, ", ")),
           options_.from, options_.to);
    }
    std::vector<std::string> names = options_.tensors;
    std::sort(names.begin(), names.end());  // a name given twice must not be converted twice
    names.erase(std::unique(names.begin(), names.end()), names.end());
    if (names.empty() && from_pages >= 0) names = Caches();
    if (names.empty()) names = {"kv_cache"};
    if (from_pages >= 0) ChangeCacheMode(names, from_pages, to_pages);
    for (const std::string& name : names) {
      if (from_pages >= 0) {
        ConvertPages(name, from_pages, to_pages);
      } else {
        ConvertRows(name, static_cast<RowForm>(from_rows), static_cast<RowForm>(to_rows));
      }
    }
    return names;
  }

 private:
  std::vector<std::string> Caches() const {
    std::vector<std::string> names;
    for (const char* name : kCaches) {
      if (tensors_.contains(name)) names.emplace_back(name);
    }
    return names;
  }

  // The mode is one for all caches of a case.
  void ChangeCacheMode(const std::vector<std::string>& names, int from, int to) {
    const auto mode = metadata_.find("cache_mode");
    if (mode == metadata_.end()) return;
    const auto is_converted = [&names](const std::string& name) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    const std::vector<std::string> caches = Caches();
    if (std::none_of(caches.begin(), caches.end(), is_converted)) return;
    for (const std::string& cache : caches) {
      if (is_converted(cache)) continue;
      Fail(
          "--tensor: expected {}, whose order the metadata cache_mode says for all of them, found {}; leave --tensor "
          "out",
          fmt::join(caches, ", "), OneLine(fmt::format("{}", fmt::join(names, ", "))));
    }
    for (const PageModes& page : kPageModes) {
      if (mode->second != page.modes[from]) continue;
      mode->second = page.modes[to];
      return;
    }
    Fail("--from: expected the order of the metadata cache_mode, which is {}, found {}", OneLine(mode->second),
         options_.from);
  }

  const CaseTensor& Find(const std::string& name) const {
    const auto found = tensors_.find(name);
    if (found == tensors_.end())
      Fail("{}: tensor '{}': expected in the file, found none", options_.input_path, OneLine(name));
    if (!NativeDtype(found->second.view.dtype).has_value() || found->second.view.shape.empty() ||
        found->second.view.shape.size() > MLAP_MAX_RANK) {
      Fail("tensor '{}': expected a cache, found {} {}", OneLine(name), DtypeName(found->second.view.dtype),
           ShapeText(found->second.view.shape));
    }
    return found->second;
  }

  // A cache whose rows have values, rope part and scales behind each other.
  const CaseTensor& FindRows(const std::string& name, int64_t row_bytes) const {
    const CaseTensor& found = Find(name);
    if (DtypeBytes(found.view.dtype) != 1 || found.view.shape.back() != row_bytes) {
      Fail(
          "tensor '{}': expected rows of {} bytes, found {} {}; only per-group caches have rows in the forms {}, sizes "
          "other than theirs take --kv-rank and --rope",
          OneLine(name), row_bytes, DtypeName(found.view.dtype), ShapeText(found.view.shape),
          fmt::join(kRowForms, ", "));
    }
    return found;
  }

  void ConvertPages(const std::string& name, int from, int to) {
    const CaseTensor& old = Find(name);
    std::byte* bytes = nullptr;
    CaseTensor converted = NewTensor(old.view.dtype, old.view.shape, &bytes);
    const mlap_tensor in = NativeTensor(old.view), out = NativeTensor(converted.view);
    Require(name,
            mlap_cache_convert(&in, from == 1 ? MLAP_PA_NZ : MLAP_PA_BSND, &out, to == 1 ? MLAP_PA_NZ : MLAP_PA_BSND));
    tensors_[name] = converted;
  }

  void ConvertRows(const std::string& name, RowForm from, RowForm to) {
    const std::string parts[] = {name + ".values", name + ".rope", name + ".scales"};
    const int64_t groups = (options_.kv_rank + 127) / 128;
    const int64_t row_bytes = options_.kv_rank + 2 * options_.rope + 4 * groups;
    const auto order = [](RowForm form) { return form == kCann ? MLAP_ROW_CANN : MLAP_ROW_FLASHMLA; };
    if (from == kSplit && to == kSplit) return;
    if (from != kSplit && to != kSplit) {
      const CaseTensor& old = FindRows(name, row_bytes);
      CaseTensor converted = Reshaped(old, old.view.dtype, old.view.shape.back());
      const mlap_tensor in = NativeTensor(old.view), out = NativeTensor(converted.view);
      Require(name, mlap_cache_rows_reorder(&in, order(from), &out, order(to), options_.kv_rank, options_.rope));
      tensors_[name] = converted;
    } else if (to == kSplit) {
      const CaseTensor old = FindRows(name, row_bytes);
      const CaseTensor apart[] = {Reshaped(old, old.view.dtype, options_.kv_rank),
                                  Reshaped(old, Dtype::kBF16, options_.rope), Reshaped(old, Dtype::kF32, groups)};
      const mlap_tensor in = NativeTensor(old.view), values = NativeTensor(apart[0].view),
                        rope = NativeTensor(apart[1].view), scales = NativeTensor(apart[2].view);
      Require(name, mlap_cache_rows_split(&in, order(from), &values, &rope, &scales));
      tensors_.erase(name);
      for (int i = 0; i < 3; ++i) tensors_[parts[i]] = apart[i];
    } else {
      const CaseTensor values = Find(parts[0]), rope = Find(parts[1]), scales = Find(parts[2]);
      CaseTensor rows = Reshaped(values, values.view.dtype, row_bytes);
      const mlap_tensor v = NativeTensor(values.view), r = NativeTensor(rope.view), s = NativeTensor(scales.view),
                        out = NativeTensor(rows.view);
      Require(name, mlap_cache_rows_join(&v, &r, &s, &out, order(to)));
      for (const std::string& part : parts) tensors_.erase(part);
      tensors_[name] = rows;
    }
  }

  const ConvertOptions& options_;
  TensorMap tensors_;
  std::map<std::string, std::string, std::less<>> metadata_;
};

int ConvertCache(const ConvertOptions& options) {
  RequireOtherFile("OUT", options.output_path, options.input_path);
  if (!options.force) RequireNewFile("OUT", options.output_path, "--force replaces it");
  RequireWritable("OUT", options.output_path);
  const LoadedFile file = LoadedFile::Open(options.input_path);
  Converter converter(options, file);
  const std::vector<std::string> names = converter.Convert();
  SaveTensors(options.output_path, converter.tensors(), converter.metadata());
  fmt::print("{}\n  {} from {} to {}\n", options.output_path, fmt::join(names, ", "), options.from, options.to);
  return kExitDone;
}

}  // namespace

void AddConvertCacheCommand(CLI::App* app, CommandAction* action) {
  auto options = std::make_shared<ConvertOptions>();
  CLI::App* verb = app->add_subcommand("convert-cache", "Convert a cache between orders of bytes");
  verb->footer(kConvertCacheFooter);
  verb->add_option("IN", options->input_path, "A .safetensors file")->type_name("FILE")->required();
  verb->add_option("OUT", options->output_path, "The .safetensors file to write")->type_name("FILE")->required();
  verb->add_option("--from", options->from, "The form it has")->type_name("FORM")->required();
  verb->add_option("--to", options->to, "The form to give it")->type_name("FORM")->required();
  verb->add_option("--tensor", options->tensors,
                   "Convert this one only; may be given again. Else kv_cache, and between page orders all caches")
      ->type_name("NAME");
  AddWholeNumber(verb, "--kv-rank", &options->kv_rank, 1, int64_t{1} << 28, "Hckv, for cann, flashmla and split")
      ->capture_default_str();
  AddWholeNumber(verb, "--rope", &options->rope, 1, int64_t{1} << 28, "Dr, likewise")->capture_default_str();
  AddFlag(verb, "--force", &options->force, "Replace OUT if it exists");
  verb->callback([options, action] { *action = [options] { return ConvertCache(*options); }; });
}

}  // namespace mlap::tools
