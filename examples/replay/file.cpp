#include "file.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <vector>

#include <zlib.h>

namespace gmlake::tools {
namespace {

constexpr std::size_t piece_size = std::size_t{1} << 18;

struct closing {
  void operator()(std::FILE* f) const noexcept { (void)std::fclose(f); }
};
using file = std::unique_ptr<std::FILE, closing>;

/// zlib's state, told to expect gzip's header and trailer.
class inflater {
 public:
  inflater() : ready_(inflateInit2(&state_, MAX_WBITS + 16) == Z_OK) {}
  inflater(inflater const&) = delete;
  inflater& operator=(inflater const&) = delete;
  ~inflater() {
    if (ready_) (void)inflateEnd(&state_);
  }

  /// Unpacks one piece of the file and hands on what comes of it. False: stop, for the reason in `wrong`, if any.
  bool feed(std::string_view packed, sink const& take, std::string& wrong) {
    if (!ready_) return wrong = "zlib can't start", false;
    state_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
    state_.avail_in = static_cast<uInt>(packed.size());
    do {
      if (at_end_ && state_.avail_in != 0) {
        if (inflateReset(&state_) != Z_OK) return wrong = "zlib can't restart", false;
        at_end_ = false;
      }
      state_.next_out = reinterpret_cast<Bytef*>(out_.data());
      state_.avail_out = static_cast<uInt>(out_.size());
      int const code = inflate(&state_, Z_NO_FLUSH);
      if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR) {
        return wrong = std::string("corrupt gzip data: ") + (state_.msg != nullptr ? state_.msg : zError(code)), false;
      }
      at_end_ = code == Z_STREAM_END;
      if (!take({out_.data(), out_.size() - state_.avail_out})) return false;
    } while (state_.avail_in != 0 || state_.avail_out == 0);
    return true;
  }
  [[nodiscard]] bool at_end() const noexcept { return at_end_; }

 private:
  z_stream state_{};
  bool ready_ = false;
  bool at_end_ = false;
  std::vector<char> out_ = std::vector<char>(piece_size);
};

}  // namespace

std::string read_file(std::string const& path, sink const& take) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return "is a directory";
  file const in(std::fopen(path.c_str(), "rb"));
  if (!in) return std::strerror(errno);
  std::vector<char> buffer(piece_size);
  std::unique_ptr<inflater> packed;
  std::string wrong;
  for (bool first = true;; first = false) {
    std::size_t const got = std::fread(buffer.data(), 1, buffer.size(), in.get());
    if (std::ferror(in.get()) != 0) return std::strerror(errno);
    std::string_view const piece(buffer.data(), got);
    if (first && piece.starts_with("\x1f\x8b")) packed = std::make_unique<inflater>();
    if (got == 0) break;
    if (packed ? !packed->feed(piece, take, wrong) : !take(piece)) return wrong;
  }
  return packed && !packed->at_end() ? "truncated gzip data" : "";
}

}  // namespace gmlake::tools
