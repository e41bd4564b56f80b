// RoPE tables, and the order of rope columns.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "api/api_function.h"
#include "api/rope_angles.h"
#include "api/strided_copy.h"
#include "api/tensor_checks.h"
#include "base/bf16.h"
#include "base/float_environment.h"
#include "mlaprolog/mlaprolog.h"

namespace mlap {
namespace {

constexpr int64_t kLastPosition = int64_t{1} << 31;

// ---- Reordering ----

bool IsSamePlace(const mlap_tensor& a, const mlap_tensor& b) {
  const StridedView left = ViewOf(a);
  const StridedView right = ViewOf(b);
  return left.data == right.data && std::equal(left.strides, left.strides + left.dims.rank, right.strides);
}

Status CheckReorder(const mlap_tensor& from, int64_t group, int64_t rope, mlap_rope_order order, const mlap_tensor& to,
                    int output_dim) {
  TensorChecks checks;
  if (!checks.CheckStruct("from", from)) return checks.status();
  checks.CheckMemory("from", from, Access::kRead);
  if (FindDtype(from.dtype)->bytes > 4) checks.Refuse("from", "a type of 1, 2 or 4 bytes", DtypeText(from.dtype));
  if (from.layout == MLAP_FRACTAL_NZ) {
    checks.Refuse("from", "layout MLAP_ROW_MAJOR or MLAP_OUT_IN", "MLAP_FRACTAL_NZ", "unpack it first");
  }
  if (order != MLAP_HALF_TO_INTERLEAVED && order != MLAP_INTERLEAVED_TO_HALF) {
    checks.Refuse("order", "an mlap_rope_order", std::to_string(static_cast<int>(order)));
  }
  if (rope < 2 || rope % 2 != 0) checks.Refuse("rope", "an even number of columns, 2 at least", std::to_string(rope));
  if (group < rope) checks.Refuse("group", "rope columns at least", std::to_string(group));
  if (checks.ok() && from.dims[output_dim] % group != 0) {
    checks.Refuse("from", "outputs that are a multiple of group", std::to_string(from.dims[output_dim]));
  }
  if (!checks.CheckStruct("to", to)) return checks.status();
  checks.CheckDtype("to", to, from.dtype);
  checks.CheckDims("to", to, DimsOf(from));
  if (checks.ok() && to.layout != from.layout) checks.Refuse("to", "the layout of from", "another one");
  checks.CheckMemory("to", to, Access::kWrite);
  if (checks.ok() && !IsSamePlace(from, to)) checks.CheckApart("to", to, "from", from);
  return checks.status();
}

// The outputs [first, first + count) of a view.
StridedView Outputs(const StridedView& view, int dim, int64_t first, int64_t count, int64_t every) {
  StridedView part = view;
  part.data = view.data + first * view.strides[dim] * view.element_bytes;
  part.dims.size[dim] = count;
  part.strides[dim] = every * view.strides[dim];
  return part;
}

void Reorder(const StridedView& from, const StridedView& to, int dim, int64_t group, int64_t rope,
             mlap_rope_order order) {
  const int64_t half = rope / 2;
  Dims slice = from.dims;
  slice.size[dim] = rope;
  std::vector<char> memory(static_cast<size_t>(slice.Count() * from.element_bytes));
  for (int64_t first = 0; first < from.dims.size[dim]; first += group) {
    if (from.data != to.data) {
      CopyStrided(Outputs(from, dim, first, group - rope, 1), Outputs(to, dim, first, group - rope, 1));
    }
    const StridedView in = Outputs(from, dim, first + group - rope, rope, 1);
    const StridedView copy = DenseView(in, memory.data());
    const StridedView out = Outputs(to, dim, first + group - rope, rope, 1);
    CopyStrided(in, copy);
    for (const int64_t part : {0, 1}) {  // real, then imaginary
      const StridedView halves = Outputs(order == MLAP_HALF_TO_INTERLEAVED ? copy : out, dim, part * half, half, 1);
      const StridedView pairs = Outputs(order == MLAP_HALF_TO_INTERLEAVED ? out : copy, dim, part, half, 2);
      CopyStrided(order == MLAP_HALF_TO_INTERLEAVED ? halves : pairs,
                  order == MLAP_HALF_TO_INTERLEAVED ? pairs : halves);
    }
  }
}

// ---- Tables ----

Status CheckTableArgs(const mlap_rope_table_args& args) {
  struct Number {
    const char* name;
    double value;
    double above;
  };
  const bool is_yarn = args.factor > 1.0;
  const Number numbers[] = {{"base", args.base, 1.0},
                            {"factor", args.factor, 0.0},
                            {"original_max_position", is_yarn ? args.original_max_position : 1.0, 0.0},
                            {"beta_fast", is_yarn ? args.beta_fast : 1.0, 0.0},
                            {"beta_slow", is_yarn ? args.beta_slow : 1.0, 0.0},
                            {"mscale", is_yarn ? args.mscale : 1.0, -1e-300},
                            {"mscale_all_dim", is_yarn ? args.mscale_all_dim : 1.0, -1e-300}};
  TensorChecks checks;
  for (const Number& number : numbers) {
    if (number.value > number.above && number.value < 1e300) continue;
    checks.Refuse(number.name,
                  number.above > 0.5   ? "a number above 1"
                  : number.above < 0.0 ? "0 or more"
                                       : "a number above 0",
                  std::to_string(number.value), "mlap_rope_table_args_init sets defaults");
  }
  if (checks.ok() && (args.factor < 1.0)) {
    checks.Refuse("factor", "1 for plain RoPE, or more", std::to_string(args.factor));
  }
  if (args.rope_style < MLAP_ROPE_INTERLEAVED_TO_HALF || args.rope_style > MLAP_ROPE_INTERLEAVED) {
    checks.Refuse("rope_style", "a style with a rotation", std::to_string(static_cast<int>(args.rope_style)));
  }
  return checks.status();
}

constexpr int64_t kLargestRope = int64_t{1} << 28;

Status CheckTableTensors(const mlap_tensor& positions, const mlap_tensor& sin, const mlap_tensor& cos) {
  TensorChecks checks;
  if (!checks.CheckStruct("positions", positions)) return checks.status();
  if (positions.dtype != MLAP_INT32 && positions.dtype != MLAP_INT64) {
    checks.Refuse("positions", "INT32 or INT64", DtypeText(positions.dtype));
  }
  checks.CheckRank("positions", positions, {1, 2, 3});
  checks.CheckRowMajor("positions", positions);
  checks.CheckMemory("positions", positions, Access::kRead);
  if (!checks.CheckStruct("rope_sin", sin)) return checks.status();
  if (sin.dtype != MLAP_BF16 && sin.dtype != MLAP_FLOAT32) {
    checks.Refuse("rope_sin", "BF16 or FLOAT32", DtypeText(sin.dtype));
  }
  const int64_t rope = sin.dims[sin.rank - 1];
  if (rope < 2 || rope > kLargestRope || rope % 2 != 0) {
    checks.Refuse("rope_sin", "an even last dimension up to 2^28", DimsText(DimsOf(sin)));
  }
  if (!checks.ok()) return checks.status();
  const Dims dims = DimsOf(positions).Then({rope});
  checks.CheckStrided("rope_sin", sin, sin.dtype, dims, Access::kWrite);
  checks.CheckStrided("rope_cos", cos, sin.dtype, dims, Access::kWrite);
  if (checks.ok()) checks.CheckApart("rope_cos", cos, "rope_sin", sin);
  return checks.status();
}

double YarnScale(double factor, double mscale) { return 0.1 * mscale * std::log(factor) + 1.0; }

// One row of a table, as the table's type.
void StoreRow(const std::vector<float>& row, const StridedView& out) {
  StridedView in = out;
  if (out.element_bytes == 4) {
    in.data = reinterpret_cast<char*>(const_cast<float*>(row.data()));
    in.strides[0] = 1;
    CopyStrided(in, out);
    return;
  }
  for (size_t i = 0; i < row.size(); ++i) {
    const Bf16 value = RoundToBf16(row[i]);
    std::memcpy(out.data + static_cast<int64_t>(i) * out.strides[0] * out.element_bytes, &value, sizeof(value));
  }
}

mlap_status WriteTable(const mlap_rope_table_args& args, const mlap_tensor& positions, const mlap_tensor& rope_sin,
                       const mlap_tensor& rope_cos) {
  constexpr const char* kFunction = "mlap_rope_table";
  Status status = CheckTableArgs(args);
  if (status.ok()) status = CheckTableTensors(positions, rope_sin, rope_cos);
  if (!status.ok()) return FailFunction(kFunction, status);

  const DefaultFloatEnvironment environment;
  const StridedView in = ViewOf(positions);
  const int64_t count = in.dims.Count();
  if (count == 0) return MLAP_OK;
  std::vector<int64_t> dense(static_cast<size_t>(count));
  if (positions.dtype == MLAP_INT64) {
    CopyStrided(in, DenseView(in, dense.data()));
  } else {
    std::vector<int32_t> narrow(dense.size());
    CopyStrided(in, DenseView(in, narrow.data()));
    std::copy(narrow.begin(), narrow.end(), dense.begin());
  }
  for (int64_t t = 0; t < count; ++t) {
    const int64_t position = dense[static_cast<size_t>(t)];
    if (position >= 0 && position <= kLastPosition) continue;
    return FailWith(MLAP_INVALID_ARGUMENT, std::string(kFunction) + ": positions: expected 0 to 2^31, found " +
                                               std::to_string(position) + " at token " + std::to_string(t));
  }

  const int64_t rope = rope_sin.dims[rope_sin.rank - 1];
  const std::vector<double> frequencies =
      RopeFrequencies(rope, args.base, {args.factor, args.original_max_position, args.beta_fast, args.beta_slow});
  const double scale =
      args.factor > 1.0 ? YarnScale(args.factor, args.mscale) / YarnScale(args.factor, args.mscale_all_dim) : 1.0;
  const bool is_interleaved = args.rope_style == MLAP_ROPE_INTERLEAVED;
  std::vector<float> sin(static_cast<size_t>(rope)), cos(static_cast<size_t>(rope));

  // Row t of a table: the last dimension of the view whose other indices are those of token t.
  const auto row_of = [&](const mlap_tensor& table, int64_t t) {
    const StridedView view = ViewOf(table);
    StridedView row = view;
    const int last = view.dims.rank - 1;
    int64_t offset = 0;
    for (int i = last; i-- > 0;) {
      offset += t % view.dims.size[i] * view.strides[i];
      t /= view.dims.size[i];
    }
    row.data = view.data + offset * view.element_bytes;
    row.dims = {rope};
    row.strides[0] = view.strides[last];
    return row;
  };
  for (int64_t t = 0; t < count; ++t) {
    for (int64_t i = 0; i < rope; ++i) {
      const int64_t pair = is_interleaved ? i / 2 : i % (rope / 2);
      const Rotation rotation =
          RotationOf(static_cast<double>(dense[static_cast<size_t>(t)]) * frequencies[static_cast<size_t>(pair)]);
      sin[static_cast<size_t>(i)] = static_cast<float>(rotation.sin * scale);
      cos[static_cast<size_t>(i)] = static_cast<float>(rotation.cos * scale);
    }
    StoreRow(sin, row_of(rope_sin, t));
    StoreRow(cos, row_of(rope_cos, t));
  }
  return MLAP_OK;
}

}  // namespace
}  // namespace mlap

mlap_status mlap_rope_reorder(const mlap_tensor* from, int64_t group, int64_t rope, mlap_rope_order order,
                              const mlap_tensor* to) {
  constexpr const char* kFunction = "mlap_rope_reorder";
  return mlap::Guarded(kFunction, [&] {
    mlap_status status = mlap::CheckPlace(kFunction, "from", from);
    if (status == MLAP_OK) status = mlap::CheckPlace(kFunction, "to", to);
    if (status != MLAP_OK) return status;
    const int dim = from->layout == MLAP_OUT_IN ? 0 : std::clamp(from->rank, 1, MLAP_MAX_RANK) - 1;
    const mlap::Status checked = mlap::CheckReorder(*from, group, rope, order, *to, dim);
    if (!checked.ok()) return mlap::FailFunction(kFunction, checked);
    if (mlap::DimsOf(*from).Count() == 0) return MLAP_OK;
    mlap::Reorder(mlap::ViewOf(*from), mlap::ViewOf(*to), dim, group, rope, order);
    return MLAP_OK;
  });
}

void mlap_rope_table_args_init(mlap_rope_table_args* args) {
  if (args == nullptr) return;
  *args = {sizeof(*args), 10000.0, MLAP_ROPE_INTERLEAVED_TO_HALF, 1.0, 4096.0, 32.0, 1.0, 1.0, 1.0};
}

mlap_status mlap_rope_table(const mlap_rope_table_args* args, const mlap_tensor* positions, const mlap_tensor* rope_sin,
                            const mlap_tensor* rope_cos) {
  constexpr const char* kFunction = "mlap_rope_table";
  return mlap::Guarded(kFunction, [&] {
    mlap_status status = mlap::CheckStructSize(kFunction, "args", args);
    if (status == MLAP_OK) status = mlap::CheckPlace(kFunction, "positions", positions);
    if (status == MLAP_OK) status = mlap::CheckPlace(kFunction, "rope_sin", rope_sin);
    if (status == MLAP_OK) status = mlap::CheckPlace(kFunction, "rope_cos", rope_cos);
    return status == MLAP_OK ? mlap::WriteTable(*args, *positions, *rope_sin, *rope_cos) : status;
  });
}
