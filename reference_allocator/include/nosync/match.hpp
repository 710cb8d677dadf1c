// Checks a tensor against what a kernel body needs, before anything is launched.
//
//   Size rows("B"), channels = Size("D").multiple_of(2);
//   Match(x, "x").shape({rows, channels}).strides({any, 1}).dtype({BF16}).device(dev).align(4).verify();
//
// A chain collects demands; `verify()` checks them in a fixed order: rank, shape, strides, dtype, device, align,
// overlap. It throws `Mismatch` and never aborts. Without a stride list the tensor must be contiguous. Host only,
// C++17 and the standard library; nothing here launches, allocates on a device or waits.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace nosync {

// Type and device codes are those of DLPack, https://dmlc.github.io/dlpack/latest/c_api.html
struct DType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;

  bool operator==(const DType& other) const {
    return code == other.code && bits == other.bits && lanes == other.lanes;
  }
};

struct Dev {
  int32_t type;
  int32_t index;  // -1 in a restriction: any device of the type
};

inline constexpr DType I32{0, 32, 1}, I64{0, 64, 1}, F32{2, 32, 1}, BF16{4, 16, 1}, BOOL{6, 8, 1};
inline constexpr Dev CPU{1, -1}, CUDA{2, -1};

inline std::string spelled(DType type) {
  static constexpr const char* kinds[] = {"int", "uint", "float", "handle", "bfloat", "complex", "bool"};
  if (type == BOOL) return "bool";
  const std::string kind = type.code < 7 ? kinds[type.code] : "type" + std::to_string(type.code) + "_";
  return kind + std::to_string(type.bits) + (type.lanes == 1 ? "" : "x" + std::to_string(type.lanes));
}

inline std::string spelled(Dev device) {
  const std::string kind = device.type == 1   ? "cpu"
                           : device.type == 2 ? "cuda"
                                              : "device" + std::to_string(device.type);
  return device.type != 2 || device.index < 0 ? kind : kind + ":" + std::to_string(device.index);
}

// A tensor as a caller describes it. It owns nothing. `strides` count elements; null means row-major.
struct TensorView {
  void* data;
  int32_t ndim;
  const int64_t* shape;
  const int64_t* strides;
  DType dtype;
  Dev device;
  uint64_t byte_offset;

  int64_t size(int32_t dim) const { return shape[dim]; }

  int64_t stride(int32_t dim) const {
    if (strides != nullptr) return strides[dim];
    int64_t step = 1;
    for (int32_t i = ndim - 1; i > dim; --i) step *= shape[i];
    return step;
  }

  bool empty() const { return std::find(shape, shape + ndim, 0) != shape + ndim; }

  void* data_ptr() const { return data == nullptr ? nullptr : static_cast<char*>(data) + byte_offset; }

  int64_t item_bytes() const { return (static_cast<int64_t>(dtype.bits) * dtype.lanes + 7) / 8; }

  std::string text() const {
    std::string sizes, steps;
    for (int32_t i = 0; i < ndim; ++i) {
      sizes += (i ? "," : "") + std::to_string(size(i));
      steps += (i ? "," : "") + std::to_string(stride(i));
    }
    return spelled(dtype) + "[" + sizes + "]{" + steps + "}@" + spelled(device);
  }
};

// A demand that a tensor does not meet. `kind` is rank, shape, stride, dtype, device, align or overlap; `dim` is -1
// and `symbol` empty where the failure has none.
class Mismatch : public std::exception {
 public:
  std::string kind, name, symbol, expected, got, text;
  int32_t dim;

  Mismatch(std::string kind_, std::string name_, int32_t dim_, std::string symbol_, std::string expected_,
           std::string got_, const TensorView& tensor, const std::string& place)
      : kind(std::move(kind_)),
        name(std::move(name_)),
        symbol(std::move(symbol_)),
        expected(std::move(expected_)),
        got(std::move(got_)),
        dim(dim_) {
    text = "match(" + name + "): " + kind + (dim < 0 ? "" : "#" + std::to_string(dim)) +
           (symbol.empty() ? "" : "('" + symbol + "')") + ": expected " + expected + ", got " + got + "; tensor " +
           tensor.text() + " (" + place + ")";
  }

  const char* what() const noexcept override { return text.c_str(); }
};

// A size or stride shared by several matches: bound at first sight, compared afterwards.
class Size {
 public:
  explicit Size(std::string name) : name_(std::move(name)) {}
  Size(std::string name, int64_t value) : name_(std::move(name)), bound_(true), value_(value) {}

  Size&& multiple_of(int64_t factor) && { return factor_ = factor, std::move(*this); }
  Size&& between(int64_t least, int64_t most) && { return least_ = least, most_ = most, std::move(*this); }

  const std::string& name() const { return name_; }
  int64_t value() const { return value_; }  // 0 before the first match

  // Binds or compares; the text of what was expected, empty where `value` fits.
  std::string bind_or_check(int64_t value) {
    if (bound_) return value == value_ ? "" : std::to_string(value_);
    if (value < least_ || value > most_) {
      const bool open = most_ == std::numeric_limits<int64_t>::max();
      return open ? "at least " + std::to_string(least_) : std::to_string(least_) + ".." + std::to_string(most_);
    }
    if (value % factor_ != 0) return "a multiple of " + std::to_string(factor_);
    bound_ = true;
    value_ = value;
    return "";
  }

 private:
  std::string name_;
  bool bound_ = false;
  int64_t value_ = 0;
  int64_t factor_ = 1;
  int64_t least_ = 0;
  int64_t most_ = std::numeric_limits<int64_t>::max();
};

// An element type shared by several matches.
class TypeSymbol {
 public:
  explicit TypeSymbol(std::string name) : name_(std::move(name)) {}
  const std::string& name() const { return name_; }

  std::string bind_or_check(DType type) {
    if (bound_ && !(type == value_)) return spelled(value_);
    bound_ = true;
    value_ = type;
    return "";
  }

 private:
  std::string name_;
  bool bound_ = false;
  DType value_{};
};

// The device of a launch, shared by its matches: a restriction that only ever shrinks, then one device.
class Device {
 public:
  explicit Device(std::string name) : name_(std::move(name)) {}
  Device(std::string name, std::initializer_list<Dev> allowed) : name_(std::move(name)) { restrict_to(allowed); }

  const std::string& name() const { return name_; }

  // Intersects. Attaching to a match without a list leaves the restriction alone: it is never widened.
  void restrict_to(const std::vector<Dev>& allowed) {
    if (!restricted_) {
      restricted_ = true;
      allowed_ = allowed;
      return;
    }
    std::vector<Dev> both;
    for (const Dev& mine : allowed_) {
      for (const Dev& theirs : allowed) {
        if (mine.type == theirs.type && (mine.index < 0 || theirs.index < 0 || mine.index == theirs.index)) {
          both.push_back({mine.type, std::max(mine.index, theirs.index)});
        }
      }
    }
    allowed_ = both;
  }

  std::string bind_or_check(Dev device) {
    if (restricted_) {
      const auto admits = [&](const Dev& one) {
        return one.type == device.type && (one.index < 0 || one.index == device.index);
      };
      if (std::none_of(allowed_.begin(), allowed_.end(), admits)) return allowed_text();
    }
    if (bound_ && (value_.type != device.type || value_.index != device.index)) return spelled(value_);
    bound_ = true;
    value_ = device;
    return "";
  }

 private:
  std::string allowed_text() const {
    std::string text;
    for (const Dev& one : allowed_) text += (text.empty() ? "" : " or ") + spelled(one);
    return text.empty() ? "no device" : text;
  }

  std::string name_;
  bool restricted_ = false;
  bool bound_ = false;
  std::vector<Dev> allowed_;
  Dev value_{};
};

struct Any {};
inline constexpr Any any{};

// One entry of a shape or stride list.
struct Entry {
  bool wild = false;
  int64_t literal = 0;
  Size* symbol = nullptr;

  Entry(Any) : wild(true) {}
  Entry(int64_t value) : literal(value) {}
  Entry(Size& size) : symbol(&size) {}
};

// First and last byte that a tensor may touch; empty tensors touch none.
struct Span {
  intptr_t first;
  intptr_t last;
};

inline Span bytes_of(const TensorView& tensor) {
  intptr_t low = reinterpret_cast<intptr_t>(tensor.data_ptr()), high = low;
  for (int32_t i = 0; i < tensor.ndim; ++i) {
    const int64_t reach = (tensor.size(i) - 1) * tensor.stride(i) * tensor.item_bytes();
    (reach < 0 ? low : high) += reach;
  }
  return {low, high + tensor.item_bytes() - 1};
}

// Whether the byte intervals of two tensors are apart. Views that interleave are taken to overlap.
inline bool disjoint(const TensorView& a, const TensorView& b) {
  if (a.empty() || b.empty()) return true;
  const Span one = bytes_of(a), other = bytes_of(b);
  return one.last < other.first || other.last < one.first;
}

// Whether two tensors name the same elements at the same places, so that an elementwise body may write in place.
inline bool same_elements(const TensorView& a, const TensorView& b) {
  if (a.data_ptr() != b.data_ptr() || a.ndim != b.ndim || !(a.dtype == b.dtype)) return false;
  for (int32_t i = 0; i < a.ndim; ++i) {
    if (a.size(i) != b.size(i) || (a.size(i) > 1 && a.stride(i) != b.stride(i))) return false;
  }
  return true;
}

class Match {
 public:
  Match(const TensorView& tensor, const char* name, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : tensor_(tensor), name_(name), file_(file), line_(line) {}

  [[nodiscard]] Match& shape(std::initializer_list<Entry> entries) { return shape_ = entries, *this; }
  [[nodiscard]] Match& strides(std::initializer_list<Entry> entries) {
    return has_strides_ = true, strides_ = entries, *this;
  }
  [[nodiscard]] Match& dtype(std::initializer_list<DType> allowed) { return dtypes_ = allowed, *this; }
  [[nodiscard]] Match& dtype(TypeSymbol& symbol) { return type_symbol_ = &symbol, *this; }
  [[nodiscard]] Match& device(Device& device) { return device_ = &device, *this; }
  [[nodiscard]] Match& device(Device& device, std::initializer_list<Dev> allowed) {
    device.restrict_to(allowed);
    return device_ = &device, *this;
  }
  // The base address and every stride but the last are multiples of so many bytes.
  [[nodiscard]] Match& align(int64_t bytes) { return align_ = bytes, *this; }
  [[nodiscard]] Match& no_self_overlap() { return no_self_overlap_ = true, *this; }
  // The extent is launched on grid.y, which ends at 65535 (CUDA programming guide, compute capabilities).
  [[nodiscard]] Match& range_u16_grid(int32_t dim) { return grid_dim_ = dim, *this; }
  [[nodiscard]] Match& disjoint_from(const TensorView& other, const char* name) {
    return apart_.push_back({&other, name, false}), *this;
  }
  // Like `disjoint_from`, but the very same elements are admitted: the body reads each before it writes it.
  [[nodiscard]] Match& same_or_disjoint_from(const TensorView& other, const char* name) {
    return apart_.push_back({&other, name, true}), *this;
  }

  void verify() {
    check_shape();
    check_strides();
    if (!dtypes_.empty() && std::find(dtypes_.begin(), dtypes_.end(), tensor_.dtype) == dtypes_.end()) {
      std::string allowed;
      for (const DType& type : dtypes_) allowed += (allowed.empty() ? "" : " or ") + spelled(type);
      fail("dtype", -1, "", allowed, spelled(tensor_.dtype));
    }
    if (type_symbol_ != nullptr) {
      const std::string expected = type_symbol_->bind_or_check(tensor_.dtype);
      if (!expected.empty()) fail("dtype", -1, type_symbol_->name(), expected, spelled(tensor_.dtype));
    }
    if (device_ != nullptr) {
      const std::string expected = device_->bind_or_check(tensor_.device);
      if (!expected.empty()) fail("device", -1, device_->name(), expected, spelled(tensor_.device));
    }
    if (tensor_.empty()) return;  // nothing is touched: a null pointer and any stride will do
    check_alignment();
    if (no_self_overlap_) check_self_overlap();
    for (const Other& other : apart_) {
      if (!disjoint(tensor_, *other.tensor) && !(other.same_too && same_elements(tensor_, *other.tensor))) {
        fail("overlap", -1, "", std::string("memory apart from ") + other.name, other.tensor->text());
      }
    }
  }

 private:
  struct Other {
    const TensorView* tensor;
    const char* name;
    bool same_too;
  };

  void check_shape() {
    const auto rank = static_cast<int32_t>(shape_.size());
    if (tensor_.ndim != rank) fail("rank", -1, "", std::to_string(rank), std::to_string(tensor_.ndim));
    for (int32_t i = 0; i < rank; ++i) compare("shape", i, shape_[static_cast<size_t>(i)], tensor_.size(i), true);
    if (grid_dim_ >= 0 && tensor_.size(grid_dim_) > 65535) {
      fail("shape", grid_dim_, "", "at most 65535", std::to_string(tensor_.size(grid_dim_)));
    }
  }

  void check_strides() {
    if (has_strides_) {
      if (strides_.size() != shape_.size()) {
        fail("rank", -1, "", std::to_string(shape_.size()) + " strides", std::to_string(strides_.size()));
      }
      for (int32_t i = 0; i < tensor_.ndim; ++i) {
        compare("stride", i, strides_[static_cast<size_t>(i)], tensor_.stride(i), tensor_.size(i) > 1);
      }
      return;
    }
    int64_t dense = 1;
    for (int32_t i = tensor_.ndim - 1; i >= 0 && !tensor_.empty(); --i) {
      compare("stride", i, Entry(dense), tensor_.stride(i), tensor_.size(i) > 1);
      dense *= tensor_.size(i);
    }
  }

  // Frameworks differ in the stride they store for an extent of 0 or 1, so it is not `compared`, only bound.
  void compare(const char* kind, int32_t dim, const Entry& entry, int64_t got, bool compared) {
    if (entry.wild) return;
    if (entry.symbol != nullptr) {
      const std::string expected = entry.symbol->bind_or_check(got);
      if (compared && !expected.empty()) fail(kind, dim, entry.symbol->name(), expected, std::to_string(got));
    } else if (compared && entry.literal != got) {
      fail(kind, dim, "", std::to_string(entry.literal), std::to_string(got));
    }
  }

  void check_alignment() {
    const auto address = reinterpret_cast<uintptr_t>(tensor_.data_ptr());
    const std::string wanted = "a multiple of " + std::to_string(align_) + " bytes";
    if (address == 0) fail("align", -1, "", "an address", "null");
    if (address % static_cast<uintptr_t>(align_) != 0) {
      fail("align", -1, "", wanted, std::to_string(address % static_cast<uintptr_t>(align_)) + " bytes past one");
    }
    for (int32_t i = 0; i + 1 < tensor_.ndim; ++i) {
      const int64_t step = tensor_.stride(i) * tensor_.item_bytes();
      if (tensor_.size(i) > 1 && step % align_ != 0) fail("align", i, "", wanted, std::to_string(step) + " bytes");
    }
  }

  // From the innermost stride outwards, each must step over all that the smaller ones reach.
  void check_self_overlap() {
    std::vector<std::pair<int64_t, int32_t>> steps;
    for (int32_t i = 0; i < tensor_.ndim; ++i) {
      if (tensor_.size(i) > 1) steps.emplace_back(std::abs(tensor_.stride(i)), i);
    }
    std::sort(steps.begin(), steps.end());
    int64_t reach = 1;
    for (const auto& [step, dim] : steps) {
      if (step < reach) {
        // A step of 0 sorts before the dimensions it collides with: say what it would have to clear.
        const int64_t least = step == 0 ? inner_reach(dim) : reach;
        fail("overlap", dim, "", "a stride of at least " + std::to_string(least), std::to_string(tensor_.stride(dim)));
      }
      reach += (tensor_.size(dim) - 1) * step;
    }
  }

  int64_t inner_reach(int32_t dim) const {
    int64_t reach = 1;
    for (int32_t i = dim + 1; i < tensor_.ndim; ++i) reach += (tensor_.size(i) - 1) * std::abs(tensor_.stride(i));
    return reach;
  }

  [[noreturn]] void fail(const char* kind, int32_t dim, const std::string& symbol, const std::string& expected,
                         const std::string& got) const {
    const char* slash = std::strrchr(file_, '/');
    const std::string place = std::string(slash == nullptr ? file_ : slash + 1) + ":" + std::to_string(line_);
    throw Mismatch(kind, name_, dim, symbol, expected, got, tensor_, place);
  }

  const TensorView& tensor_;
  const char* name_;
  const char* file_;
  int line_;
  std::vector<Entry> shape_, strides_;
  bool has_strides_ = false;
  std::vector<DType> dtypes_;
  TypeSymbol* type_symbol_ = nullptr;
  Device* device_ = nullptr;
  int64_t align_ = 1;
  bool no_self_overlap_ = false;
  int32_t grid_dim_ = -1;
  std::vector<Other> apart_;
};

}  // namespace nosync
