// `mlaprolog convert-cache`
#include <fmt/ranges.h>
#include <mlaprolog/mlaprolog.h>

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

constexpr const char* kFooter =
    R"(Forms:
  PA_BSND      pages of rows, (BlockNum, BlockSize, 1, width)
  PA_NZ        the same shape, each page as [width / C0][BlockSize][C0]
  cann         rows of bytes: Hckv 8-bit values, Dr bf16 of the rope part, a float for every 128 values (656 bytes)
  flashmla     the same rows with the floats before the rope part
  split        three tensors: NAME.values, NAME.rope, NAME.scales

Between PA_BSND and PA_NZ, and between cann, flashmla and split. Values are moved, never changed. All other tensors and
the metadata are copied.

Examples:
  mlaprolog convert-cache in.safetensors out.safetensors --from PA_BSND --to PA_NZ --tensor kv_cache --tensor kr_cache
  mlaprolog convert-cache in.safetensors out.safetensors --from cann --to split)";

struct ConvertOptions {
  std::string input_path;
  std::string output_path;
  std::string from;
  std::string to;
  std::vector<std::string> tensors = {"kv_cache"};
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

// The file's tensors in their new form.
class Converter {
 public:
  Converter(const ConvertOptions& options, TensorMap tensors) : options_(options), tensors_(std::move(tensors)) {}

  TensorMap Convert() {
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
    for (const std::string& name : options_.tensors) {
      if (from_pages >= 0) {
        ConvertPages(name, from_pages, to_pages);
      } else {
        ConvertRows(name, static_cast<RowForm>(from_rows), static_cast<RowForm>(to_rows));
      }
    }
    return std::move(tensors_);
  }

 private:
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
      const CaseTensor& old = Find(name);
      CaseTensor converted = Reshaped(old, old.view.dtype, old.view.shape.back());
      const mlap_tensor in = NativeTensor(old.view), out = NativeTensor(converted.view);
      Require(name, mlap_cache_rows_reorder(&in, order(from), &out, order(to), options_.kv_rank, options_.rope));
      tensors_[name] = converted;
    } else if (to == kSplit) {
      const CaseTensor old = Find(name);
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
};

int ConvertCache(const ConvertOptions& options) {
  RequireOtherFile("OUT", options.output_path, options.input_path);
  if (!options.force) RequireNewFile("OUT", options.output_path, "--force replaces it");
  RequireWritable("OUT", options.output_path);
  const LoadedFile file = LoadedFile::Open(options.input_path);
  TensorMap tensors;
  for (const auto& [name, view] : file.tensors()) tensors[name] = {view, file.storage()};
  SaveTensors(options.output_path, Converter(options, std::move(tensors)).Convert(), file.metadata());
  fmt::print("{}\n  {} from {} to {}\n", options.output_path, fmt::join(options.tensors, ", "), options.from,
             options.to);
  return kExitDone;
}

}  // namespace

void AddConvertCacheCommand(CLI::App* app, CommandAction* action) {
  auto options = std::make_shared<ConvertOptions>();
  CLI::App* verb = app->add_subcommand("convert-cache", "Convert a cache between orders of bytes");
  verb->footer(kFooter);
  verb->add_option("IN", options->input_path, "A .safetensors file")->type_name("FILE")->required();
  verb->add_option("OUT", options->output_path, "The .safetensors file to write")->type_name("FILE")->required();
  verb->add_option("--from", options->from, "The form it has")->type_name("FORM")->required();
  verb->add_option("--to", options->to, "The form to give it")->type_name("FORM")->required();
  verb->add_option("--tensor", options->tensors, "The cache; may be given again")
      ->type_name("NAME")
      ->capture_default_str();
  AddWholeNumber(verb, "--kv-rank", &options->kv_rank, 1, int64_t{1} << 28, "Hckv, for cann, flashmla and split")
      ->capture_default_str();
  AddWholeNumber(verb, "--rope", &options->rope, 1, int64_t{1} << 28, "Dr, likewise")->capture_default_str();
  AddFlag(verb, "--force", &options->force, "Replace OUT if it exists");
  verb->callback([options, action] { *action = [options] { return ConvertCache(*options); }; });
}

}  // namespace mlap::tools
