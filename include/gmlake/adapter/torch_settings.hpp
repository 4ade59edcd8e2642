#pragma once
/// What a PyTorch user can set, by keyword or in the environment, and what each key means. A key that nobody knows and
/// a value that makes no sense are errors that list what there is.
///
/// | key | environment | value |
/// | --- | --- | --- |
/// | `preset` | `GMLAKE_PRESET` | `lake` (default) or `gmlake` |
/// | `limit` | `GMLAKE_LIMIT` | memory a device at most: `30GiB`, or `90%` of it |
/// | `chunk` | `GMLAKE_CHUNK` | size of all chunks; `adaptive` (default; 2 MiB with preset `gmlake`) |
/// | `small` | `GMLAKE_SMALL` | requests up to this size get chunks apart: `256KiB` |
/// | `wait` | `GMLAKE_WAIT` | `1`: streams wait for each other rather than that memory grows (default of `lake`); `0` |
/// | `plan` | `GMLAKE_PLAN` | `auto`: steps that repeat are planned (default of `lake`); `off`; a file of plans |
/// | `host` | `GMLAKE_HOST` | pinned host memory at most, for what leaves the device: `64GiB`; default half of all |
/// | `swap_file` | `GMLAKE_SWAP_FILE` | a folder and a size, for what that has no room for: `/scratch:200GiB` |
/// | `in_place` | `GMLAKE_IN_PLACE` | `1`: absent memory is served from the host, slowly |
/// | `leave_mapped` | `GMLAKE_LEAVE_MAPPED` | `0`: absent memory is always unmapped, though it comes back more slowly |
/// | `rdma` | `GMLAKE_RDMA` | `1`: network cards may reach the memory |
/// | `vmm_defragment` | `vmmDefragment` | `0`: never stitch |
/// | `auto_gc` | `autoGC` | addresses that idle stitches may take, GiB |
/// | `frag_limit` | `fragLimit` | smaller requests are never stitched; bytes |
/// | `reuse_limit` | `reuseLimit` | an idle stitch serves requests down to its size divided by this |
/// | `defrag_level` | `defragLevel` | `0` stitches whenever free memory suffices, `1` only once growth has failed |
///
/// The second column's last five are GMLake's own variables. Of PyTorch's (`PYTORCH_CUDA_ALLOC_CONF`,
/// `PYTORCH_ALLOC_CONF`), `per_process_memory_fraction` is a limit here too; those about pinned host memory concern
/// another allocator, which goes on obeying them; the others are noted and passed over.

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gmlake/core/types.hpp"

namespace gmlake {

struct torch_settings {
  enum class preset_kind : std::uint8_t { lake, gmlake };

  enum plan_kind : std::uint8_t { no_plan, auto_plan, saved_plan };

  preset_kind preset = preset_kind::lake;
  plan_kind plan = auto_plan;
  std::string plan_file;                 ///< for `saved_plan`
  std::optional<bytes> limit;            ///< a device
  std::optional<double> limit_fraction;  ///< of a device's memory
  std::optional<bytes> host;             ///< pinned, for what leaves the device
  std::string swap_folder;               ///< of the file below pinned memory; empty: none
  bytes swap_file = 0;                   ///< its size at most
  bool in_place = false;                 ///< absent memory is served from the host
  bool leave_mapped = true;              ///< what schedules move stays mapped while it is away
  std::optional<bytes> chunk;            ///< of all chunks
  std::optional<bytes> small;            ///< `pool_options::small_limit`
  std::optional<bool> wait;              ///< for streams before growing; the preset's own way otherwise
  bool rdma = false;
  bool stitch = true;                   ///< vmmDefragment
  std::optional<bytes> idle_addresses;  ///< autoGC
  std::optional<bytes> frag_limit;
  std::optional<double> reuse_limit;
  std::optional<int> defrag_level;
};

namespace detail::torch_text {

inline bool set_fraction(torch_settings& s, double part) {
  if (!(part >= 0 && part <= 1)) return false;
  s.limit.reset();
  s.limit_fraction = part;
  return true;
}

[[nodiscard]] inline bool to_flag(std::string_view v, bool& flag) {
  if (v != "0" && v != "1") return false;
  flag = v == "1";
  return true;
}
[[nodiscard]] inline std::optional<double> to_number(std::string_view v) {
  double n = 0;
  auto const [end, wrong] = std::from_chars(v.data(), v.data() + v.size(), n);
  if (wrong != std::errc{} || end != v.data() + v.size() || !std::isfinite(n)) return {};
  return n;
}
/// A positive number of bytes, with or without a unit.
[[nodiscard]] inline std::optional<bytes> to_size(std::string_view v) {
  double n = 0;
  auto const [end, wrong] = std::from_chars(v.data(), v.data() + v.size(), n);
  if (wrong != std::errc{} || !std::isfinite(n)) return {};
  std::string_view const unit = v.substr(static_cast<std::size_t>(end - v.data()));
  static constexpr std::array<std::pair<std::string_view, double>, 12> units = {{{"", 1},
                                                                                 {"B", 1},
                                                                                 {"KiB", 0x1p10},
                                                                                 {"MiB", 0x1p20},
                                                                                 {"GiB", 0x1p30},
                                                                                 {"TiB", 0x1p40},
                                                                                 {"K", 0x1p10},
                                                                                 {"M", 0x1p20},
                                                                                 {"G", 0x1p30},
                                                                                 {"KB", 1e3},
                                                                                 {"MB", 1e6},
                                                                                 {"GB", 1e9}}};
  for (auto const& [name, factor] : units) {
    if (unit != name) continue;
    double const size = n * factor;
    if (!(size >= 1 && size < 0x1p60)) return {};
    return static_cast<bytes>(size);
  }
  return {};
}

/// As PyTorch reads its own.
[[nodiscard]] inline std::string without_spaces(std::string_view v) {
  std::string out(v);
  std::erase_if(out, [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); });
  return out;
}

/// A request grows the pool by a chunk at least.
inline constexpr bytes largest_chunk = 4_GiB;

struct key {
  std::string_view name;
  std::string_view variable;
  std::string_view form;  ///< of its value, for the error
  bool (*read)(torch_settings&, std::string_view);
};

inline constexpr std::array keys = {
    key{"preset", "GMLAKE_PRESET", "lake or gmlake",
        [](torch_settings& s, std::string_view v) {
          if (v != "lake" && v != "gmlake") return false;
          s.preset = v == "lake" ? torch_settings::preset_kind::lake : torch_settings::preset_kind::gmlake;
          return true;
        }},
    key{"limit", "GMLAKE_LIMIT", "a size such as 30GiB, or a part such as 90%",
        [](torch_settings& s, std::string_view v) {
          if (!v.empty() && v.back() == '%') {
            std::optional<double> const part = to_number(v.substr(0, v.size() - 1));
            return part && *part > 0 && set_fraction(s, *part / 100);
          }
          s.limit_fraction.reset();
          return bool(s.limit = to_size(v));
        }},
    key{"chunk", "GMLAKE_CHUNK", "a size such as 32MiB, 4GiB at most, or adaptive",
        [](torch_settings& s, std::string_view v) {
          s.chunk.reset();
          return v == "adaptive" || ((s.chunk = to_size(v)) && *s.chunk <= largest_chunk);
        }},
    key{"small", "GMLAKE_SMALL", "a size such as 256KiB",
        [](torch_settings& s, std::string_view v) {
          return v == "0" ? (s.small = 0, true) : bool(s.small = to_size(v));
        }},
    key{"wait", "GMLAKE_WAIT", "0 or 1",
        [](torch_settings& s, std::string_view v) { return to_flag(v, s.wait.emplace()); }},
    key{"plan", "GMLAKE_PLAN", "auto, off or a file's path",
        [](torch_settings& s, std::string_view v) {
          s.plan = v == "off"    ? torch_settings::no_plan
                   : v == "auto" ? torch_settings::auto_plan
                                 : torch_settings::saved_plan;
          s.plan_file = s.plan == torch_settings::saved_plan ? v : std::string_view{};
          return !v.empty();
        }},
    key{"host", "GMLAKE_HOST", "a size such as 64GiB",
        [](torch_settings& s, std::string_view v) { return bool(s.host = to_size(v)); }},
    key{"swap_file", "GMLAKE_SWAP_FILE", "a folder and a size such as /scratch:200GiB",
        [](torch_settings& s, std::string_view v) {
          std::size_t const colon = v.rfind(':');
          if (colon == 0 || colon == std::string_view::npos) return false;
          std::optional<bytes> const size = to_size(v.substr(colon + 1));
          if (!size) return false;
          s.swap_folder = v.substr(0, colon);
          s.swap_file = *size;
          return true;
        }},
    key{"in_place", "GMLAKE_IN_PLACE", "0 or 1",
        [](torch_settings& s, std::string_view v) { return to_flag(v, s.in_place); }},
    key{"leave_mapped", "GMLAKE_LEAVE_MAPPED", "0 or 1",
        [](torch_settings& s, std::string_view v) { return to_flag(v, s.leave_mapped); }},
    key{"rdma", "GMLAKE_RDMA", "0 or 1", [](torch_settings& s, std::string_view v) { return to_flag(v, s.rdma); }},
    key{"vmm_defragment", "vmmDefragment", "0 or 1",
        [](torch_settings& s, std::string_view v) { return to_flag(v, s.stitch); }},
    key{"auto_gc", "autoGC", "a number of GiB",
        [](torch_settings& s, std::string_view v) {
          std::optional<double> const gibibytes = to_number(v);
          if (!gibibytes || *gibibytes < 0 || *gibibytes > 1e6) return false;
          s.idle_addresses = static_cast<bytes>(*gibibytes * 0x1p30);
          return true;
        }},
    key{"frag_limit", "fragLimit", "a size in bytes",
        [](torch_settings& s, std::string_view v) {
          s.frag_limit = v == "0" ? std::optional<bytes>(0) : to_size(v);
          return s.frag_limit.has_value();
        }},
    key{"reuse_limit", "reuseLimit", "a number of at least 1",
        [](torch_settings& s, std::string_view v) {
          s.reuse_limit = to_number(v);
          return s.reuse_limit && *s.reuse_limit >= 1;
        }},
    key{"defrag_level", "defragLevel", "0, 1 or more",
        [](torch_settings& s, std::string_view v) {
          std::optional<double> const level = to_number(v);
          if (!level || *level < 0 || *level > 9 || *level != std::floor(*level)) return false;
          s.defrag_level = static_cast<int>(*level);
          return true;
        }},
};
/// Variables that the Python package reads.
inline constexpr std::array<std::string_view, 4> package_variables = {"GMLAKE_LEVEL", "GMLAKE_RECORD", "GMLAKE_REPORT",
                                                                      "GMLAKE_AUTOSTART"};

}  // namespace detail::torch_text

/// Reads settings from several places, later ones over earlier ones.
class torch_settings_reader {
 public:
  /// What has been read.
  [[nodiscard]] torch_settings const& settings() const noexcept { return settings_; }
  /// What the user should be told, one line each.
  [[nodiscard]] std::vector<std::string> const& notes() const noexcept { return notes_; }

  /// One key by keyword. Returns what is wrong, or nothing. Throws `std::bad_alloc`, as all here.
  [[nodiscard]] std::string set(std::string_view name, std::string_view value) {
    for (key const& k : detail::torch_text::keys) {
      if (k.name == name) return read(k, name, value);
    }
    return "gmlake: no setting is named '" + std::string(name) + "'; there are: " + known(&key::name);
  }

  /// All of an environment: `NAME=value` entries up to a null pointer.
  [[nodiscard]] std::string read_environment(char const* const* entries) {
    std::string wrong;
    // PyTorch reads the first of its variables that is set, be it to nothing. Ours go before them, wherever they stand.
    for (std::string_view const pytorchs : {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"}) {
      bool there = false;
      each_variable(entries, [&](std::string_view name, std::string_view value) {
        if (name != pytorchs) return;
        there = true;
        if (wrong.empty()) wrong = read_pytorch(name, detail::torch_text::without_spaces(value));
      });
      if (there) break;
    }
    each_variable(entries, [&](std::string_view name, std::string_view value) {
      if (wrong.empty()) wrong = read_variable(name, value);
    });
    return wrong;
  }

  /// The settings in force, as `key=value` lines.
  [[nodiscard]] std::string text() const {
    torch_settings const& s = settings_;
    auto const size = [](std::optional<bytes> const& n, char const* otherwise) {
      return n ? std::to_string(*n) : std::string(otherwise);
    };
    auto const number = [](auto const& n, char const* otherwise) {
      return n ? std::to_string(*n) : std::string(otherwise);
    };
    std::string out = std::string("preset=") + (s.preset == torch_settings::preset_kind::lake ? "lake" : "gmlake");
    out += "\nlimit=" + (s.limit_fraction ? std::to_string(100 * *s.limit_fraction) + "%" : size(s.limit, ""));
    out += "\nchunk=" + size(s.chunk, "adaptive") + "\nsmall=" + size(s.small, "262144");
    out += std::string("\nwait=") + (s.wait.value_or(s.preset == torch_settings::preset_kind::lake) ? "1" : "0") +
           "\nrdma=" + (s.rdma ? "1" : "0");
    out += "\nhost=" + size(s.host, "half") + "\nswap_file=" + s.swap_folder;
    if (!s.swap_folder.empty()) out += ":" + std::to_string(s.swap_file);
    out += std::string("\nin_place=") + (s.in_place ? "1" : "0") + "\nleave_mapped=" + (s.leave_mapped ? "1" : "0");
    bool const plans = s.plan != torch_settings::no_plan && s.preset == torch_settings::preset_kind::lake;
    out += "\nplan=" + (!plans ? "off" : s.plan == torch_settings::auto_plan ? "auto" : s.plan_file);
    out += std::string("\nvmm_defragment=") + (s.stitch ? "1" : "0") +
           "\nauto_gc=" + (s.idle_addresses ? std::to_string(*s.idle_addresses >> 30) : std::string{});
    out += "\nfrag_limit=" + size(s.frag_limit, "") + "\nreuse_limit=" + number(s.reuse_limit, "");
    return out + "\ndefrag_level=" + number(s.defrag_level, "") + "\n";
  }

 private:
  using key = detail::torch_text::key;

  [[nodiscard]] std::string read(key const& k, std::string_view name, std::string_view value) {
    torch_settings changed = settings_;
    if (!k.read(changed, value)) {
      return "gmlake: " + std::string(name) + " is to be " + std::string(k.form) + ", not '" + std::string(value) + "'";
    }
    settings_ = changed;
    return {};
  }

  [[nodiscard]] std::string read_variable(std::string_view name, std::string_view value) {
    for (key const& k : detail::torch_text::keys) {
      if (k.variable == name) return read(k, name, value);
    }
    if (!name.starts_with("GMLAKE_")) return {};
    for (std::string_view const known_variable : detail::torch_text::package_variables) {
      if (name == known_variable) return {};
    }
    std::string all = known(&key::variable);
    for (std::string_view const v : detail::torch_text::package_variables) (all += ", ") += v;
    return "gmlake: no variable is named '" + std::string(name) + "'; there are: " + all;
  }

  template <std::invocable<std::string_view, std::string_view> F>
  static void each_variable(char const* const* entries, F&& f) {
    for (char const* const* at = entries; at != nullptr && *at != nullptr; ++at) {
      std::string_view const entry = *at;
      std::size_t const equals = entry.find('=');
      if (equals != std::string_view::npos) f(entry.substr(0, equals), entry.substr(equals + 1));
    }
  }

  /// `key:value,key:[a,b],…`, without spaces
  [[nodiscard]] std::string read_pytorch(std::string_view variable, std::string_view text) {
    while (!text.empty()) {
      std::size_t depth = 0, end = 0;
      for (; end < text.size() && (text[end] != ',' || depth > 0); ++end) {
        if (text[end] == '[') ++depth;
        if (text[end] == ']' && depth > 0) --depth;
      }
      std::string_view const item = text.substr(0, end);
      text.remove_prefix(std::min(text.size(), end + 1));
      std::size_t const colon = item.find(':');
      std::string_view const name = item.substr(0, colon);
      std::string_view const value = colon == std::string_view::npos ? std::string_view{} : item.substr(colon + 1);
      if (name == "per_process_memory_fraction") {
        std::optional<double> const part = detail::torch_text::to_number(value);
        if (!part || !detail::torch_text::set_fraction(settings_, *part)) {
          return "gmlake: " + std::string(variable) + ": per_process_memory_fraction is invalid: from 0 to 1, not '" +
                 std::string(value) + "'";
        }
      } else if (!name.empty() && !name.starts_with("pinned_")) {
        notes_.push_back("gmlake: '" + std::string(name) + "' in " + std::string(variable) +
                         " is about PyTorch's own allocator and has no effect on gmlake");
      }
    }
    return {};
  }

  [[nodiscard]] static std::string known(std::string_view key::* column) {
    std::string all;
    for (key const& k : detail::torch_text::keys) (all += all.empty() ? "" : ", ") += k.*column;
    return all;
  }

  torch_settings settings_;
  std::vector<std::string> notes_;
};

}  // namespace gmlake
