#include <algorithm>
#include <array>
#include <numeric>

#include "format.hpp"
#include "report.hpp"

namespace gmlake::tools {
namespace {

/// The page's width in the map's units, a handful for each pixel of a large screen: nothing finer is drawn.
constexpr std::size_t units = 6000;
constexpr std::size_t largest_stitches = 60;  ///< drawn; the smaller ones are counted
constexpr std::size_t largest_ribbons = 600;

/// Home addresses laid end to end, so that gaps between reservations take no room.
class homes {
 public:
  explicit homes(pool_snapshot const& s) {
    for (chunk_snapshot const& c : s.chunks) {
      if (c.home != address{}) add(c.home, c.size);
    }
    if (ranges_.empty()) {
      for (block_snapshot const& b : s.blocks) {
        if (b.state != block_state::hole) add(b.begin, b.size);
      }
    }
  }
  [[nodiscard]] bytes length() const noexcept { return length_; }

  /// Where an address lies, in bytes from the left. Those outside are drawn to the nearest range above.
  [[nodiscard]] bytes at(address a) const noexcept {
    auto next =
        std::upper_bound(ranges_.begin(), ranges_.end(), a, [](address x, range const& r) { return x < r.end; });
    if (next == ranges_.end()) return length_;
    return next->offset + (a > next->begin ? a - next->begin : 0);
  }

 private:
  struct range {
    address begin, end;
    bytes offset;
  };
  void add(address begin, bytes size) {
    if (!ranges_.empty() && ranges_.back().end == begin) ranges_.back().end = begin + size;
    else ranges_.push_back({begin, begin + size, length_});
    length_ += size;
  }
  std::vector<range> ranges_;
  bytes length_ = 0;
};

enum shade : std::size_t { free_memory, pending, live, taken, shades };
constexpr std::array<char const*, shades> shade_names = {"free", "pending", "live", "taken"};

shade shade_of(block_snapshot const& b) {
  switch (b.state) {
    case block_state::live: return live;
    case block_state::taken: return taken;
    default: return b.pending ? pending : free_memory;
  }
}

class map_drawing {
 public:
  map_drawing(pool_snapshot const& s, bytes width) : snapshot_(s), homes_(s), width_(static_cast<double>(width)) {}

  /// Each unit of the strip in the shade that most of it has.
  [[nodiscard]] std::string strip() const {
    std::size_t const cells = std::max<std::size_t>(1, static_cast<std::size_t>(x(homes_.length())));
    std::vector<std::array<double, shades>> cover(cells);
    for (block_snapshot const& b : snapshot_.blocks) {
      if (b.state != block_state::hole)
        spread(cover, x(homes_.at(b.begin)), x(homes_.at(b.begin + b.size)), shade_of(b));
    }
    std::array<std::string, shades> paths;
    for (std::size_t begin = 0; begin < cells;) {
      std::size_t end = begin;
      auto const most = [&](std::size_t i) {
        return std::max_element(cover[i].begin(), cover[i].end()) - cover[i].begin();
      };
      auto const which = most(begin);
      while (end < cells && most(end) == which) ++end;
      paths[static_cast<std::size_t>(which)] +=
          "M" + std::to_string(begin) + " 0H" + std::to_string(end) + "V30H" + std::to_string(begin) + "Z";
      begin = end;
    }
    std::string out;
    for (std::size_t i = 0; i < shades; ++i) {
      if (!paths[i].empty()) out += std::string("<path class=\"") + shade_names[i] + "\" d=\"" + paths[i] + "\"/>";
    }
    return out;
  }

  /// The largest live stitches as bars, and ribbons from their extents down to them.
  [[nodiscard]] std::string stitches() const {
    std::vector<stitch_snapshot const*> drawn;
    for (stitch_snapshot const& s : snapshot_.stitches) {
      if (s.live && !s.vacated) drawn.push_back(&s);
    }
    std::sort(drawn.begin(), drawn.end(), [](auto const* a, auto const* b) { return a->size > b->size; });
    if (drawn.size() > largest_stitches) drawn.resize(largest_stitches);
    // From left to right as their extents lie on average, so that few ribbons cross.
    std::sort(drawn.begin(), drawn.end(), [this](auto const* a, auto const* b) { return middle(*a) < middle(*b); });

    bytes total = 0;
    for (auto const* s : drawn) total += s->size;
    double const spare = std::max(0.0, x(homes_.length()) - x(total));
    // Spread over the strip, each near what it is made of.
    double const gap = drawn.empty() ? 0 : spare / static_cast<double>(drawn.size());
    double left = gap / 2;
    std::string out;
    std::size_t ribbons = 0;
    for (auto const* s : drawn) {
      out += "<g class=\"stitch\"><title>one block of " + readable(s->size) + " from " +
             std::to_string(s->extents.size()) + (s->extents.size() == 1 ? " extent" : " extents") + "</title>";
      double below = left;
      for (extent_snapshot const& e : joined(s->extents)) {
        if (ribbons++ < largest_ribbons)
          out += ribbon(x(homes_.at(e.home)), x(homes_.at(e.home + e.size)), below, below + x(e.size));
        below += x(e.size);
      }
      out += "<path class=\"bar\" d=\"M" + fixed(left, 1) + " 118H" + fixed(below, 1) + "V140H" + fixed(left, 1) +
             "Z\"/></g>";
      left = below + gap;
    }
    return out;
  }

 private:
  [[nodiscard]] double x(bytes n) const noexcept {
    return static_cast<double>(n) / width_ * static_cast<double>(units);
  }

  static void spread(std::vector<std::array<double, shades>>& cover, double begin, double end, shade s) {
    end = std::min(end, static_cast<double>(cover.size()));
    for (auto i = static_cast<std::size_t>(begin); i < cover.size() && static_cast<double>(i) < end; ++i) {
      double const cell = static_cast<double>(i);
      cover[i][s] += std::min(end, cell + 1) - std::max(begin, cell);
    }
  }

  [[nodiscard]] double middle(stitch_snapshot const& s) const {
    double sum = 0;
    for (extent_snapshot const& e : s.extents) sum += x(homes_.at(e.home)) * static_cast<double>(e.size);
    return sum / static_cast<double>(s.size);
  }

  /// Extents that are neighbours in the lake and in the view are one ribbon.
  static std::vector<extent_snapshot> joined(std::vector<extent_snapshot> const& extents) {
    std::vector<extent_snapshot> out;
    for (extent_snapshot const& e : extents) {
      if (!out.empty() && out.back().home + out.back().size == e.home) out.back().size += e.size;
      else out.push_back(e);
    }
    return out;
  }

  static std::string ribbon(double a, double b, double c, double d) {
    auto const f = [](double v) { return fixed(v, 1); };
    return "<path class=\"ribbon\" d=\"M" + f(a) + " 30C" + f(a) + " 78 " + f(c) + " 70 " + f(c) + " 118H" + f(d) +
           "C" + f(d) + " 70 " + f(b) + " 78 " + f(b) + " 30Z\"/>";
  }

  pool_snapshot const& snapshot_;
  homes homes_;
  double width_;
};

struct tally {
  std::size_t count = 0;
  bytes size = 0;
};

tally stitches_of(pool_snapshot const& s, bool wanted) {
  tally t;
  for (stitch_snapshot const& v : s.stitches) {
    if (v.live != wanted) continue;
    ++t.count;
    t.size += v.size;
  }
  return t;
}

std::string sentence(pool_snapshot const& s) {
  auto const in = [&](block_state wanted) {
    return std::accumulate(s.blocks.begin(), s.blocks.end(), bytes{0},
                           [&](bytes sum, block_snapshot const& b) { return sum + (b.state == wanted ? b.size : 0); });
  };
  tally const live = stitches_of(s, true), idle = stitches_of(s, false);
  std::string out = readable(mapped_length(s)) + ": " + readable(in(block_state::live)) + " live";
  if (live.count != 0)
    out += ", " + readable(live.size) + " in " + grouped(live.count) + (live.count == 1 ? " stitch" : " stitches");
  out += ", " + readable(in(block_state::free)) + " free";
  if (idle.count != 0)
    out += "; " + grouped(idle.count) + (idle.count == 1 ? " idle stitch" : " idle stitches") + " kept";
  if (live.count > largest_stitches) out += "; the " + std::to_string(largest_stitches) + " largest stitches are drawn";
  return out;
}

}  // namespace

bytes mapped_length(pool_snapshot const& s) noexcept {
  return std::accumulate(s.chunks.begin(), s.chunks.end(), bytes{0},
                         [](bytes sum, chunk_snapshot const& c) { return sum + c.size; });
}

std::string render_map(report_run const& r, bytes width) {
  map_drawing const drawing(*r.peak, width);
  std::string const stitches = drawing.stitches();
  char const* const high = stitches.empty() ? "30" : "140";
  return "<figure class=\"map\"><figcaption><b>" + escaped(r.name) + "</b><span>" + sentence(*r.peak) +
         "</span></figcaption><svg class=\"" + (stitches.empty() ? "flat" : "deep") + "\" viewBox=\"0 0 " +
         std::to_string(units) + " " + high + "\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"" +
         escaped(r.name) + ": memory by address at the peak\">" + drawing.strip() + stitches + "</svg></figure>";
}

}  // namespace gmlake::tools
