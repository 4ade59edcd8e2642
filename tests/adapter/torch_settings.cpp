#include "gmlake/adapter/torch_settings.hpp"

#include <doctest/doctest.h>

using namespace gmlake;

namespace {

struct spelling {
  char const* key;
  char const* variable;
};
constexpr spelling spellings[] = {{"preset", "GMLAKE_PRESET"},     {"limit", "GMLAKE_LIMIT"},
                                  {"chunk", "GMLAKE_CHUNK"},       {"small", "GMLAKE_SMALL"},
                                  {"wait", "GMLAKE_WAIT"},         {"rdma", "GMLAKE_RDMA"},
                                  {"plan", "GMLAKE_PLAN"},         {"vmm_defragment", "vmmDefragment"},
                                  {"auto_gc", "autoGC"},           {"frag_limit", "fragLimit"},
                                  {"host", "GMLAKE_HOST"},         {"swap_file", "GMLAKE_SWAP_FILE"},
                                  {"in_place", "GMLAKE_IN_PLACE"}, {"leave_mapped", "GMLAKE_LEAVE_MAPPED"},
                                  {"reuse_limit", "reuseLimit"},   {"defrag_level", "defragLevel"}};

[[nodiscard]] std::string set_environment(torch_settings_reader& r, std::vector<std::string> const& entries) {
  std::vector<char const*> all;
  for (std::string const& e : entries) all.push_back(e.c_str());
  all.push_back(nullptr);
  return r.read_environment(all.data());
}

/// A key set by keyword and in the environment alike: the same settings come of it.
[[nodiscard]] torch_settings set(std::string const& key, std::string const& value) {
  CAPTURE(key);
  CAPTURE(value);
  torch_settings_reader by_keyword;
  CHECK(by_keyword.set(key, value) == "");
  torch_settings_reader by_variable;
  for (spelling const& s : spellings) {
    if (key == s.key) CHECK(set_environment(by_variable, {std::string(s.variable) + "=" + value}) == "");
  }
  CHECK(by_keyword.text() == by_variable.text());
  CHECK(by_keyword.notes().empty());
  return by_keyword.settings();
}

/// The error names the key as it was spelt and the value, and what was set before stays.
void refuses(std::string const& key, std::string const& value) {
  for (spelling const& s : spellings) {
    if (key != s.key) continue;
    torch_settings_reader r;
    REQUIRE(r.set("limit", "7GiB") == "");
    REQUIRE(r.set("reuse_limit", "3") == "");
    REQUIRE(r.set("chunk", "16MiB") == "");
    std::string const before = r.text();
    std::string const wrong = r.set(key, value);
    CAPTURE(wrong);
    CHECK(wrong.find(key) != std::string::npos);
    CHECK(wrong.find("'" + value + "'") != std::string::npos);
    CHECK(r.text() == before);
    std::string const in_environment = set_environment(r, {std::string(s.variable) + "=" + value});
    CHECK(in_environment.find(s.variable) != std::string::npos);
    CHECK(in_environment.find("'" + value + "'") != std::string::npos);
    CHECK(r.text() == before);
  }
}

}  // namespace

TEST_CASE("without a word, PyTorch's users get the lake, all of the device, and no limits of GMLake's") {
  torch_settings const s = torch_settings_reader{}.settings();
  CHECK(s.preset == torch_settings::preset_kind::lake);
  CHECK(s.plan == torch_settings::auto_plan);
  CHECK_FALSE(s.limit);
  CHECK_FALSE(s.limit_fraction);
  CHECK_FALSE(s.chunk);
  CHECK_FALSE(s.small);
  CHECK_FALSE(s.wait);
  CHECK_FALSE(s.rdma);
  CHECK_FALSE(s.host);
  CHECK(s.swap_folder.empty());
  CHECK_FALSE(s.in_place);
  CHECK(s.leave_mapped);
  CHECK(s.stitch);
  CHECK_FALSE(s.idle_addresses);
  CHECK_FALSE(s.frag_limit);
  CHECK_FALSE(s.reuse_limit);
  CHECK_FALSE(s.defrag_level);
}

TEST_CASE("every key means the same by keyword and in the environment") {
  CHECK(set("preset", "gmlake").preset == torch_settings::preset_kind::gmlake);
  CHECK(set("preset", "lake").preset == torch_settings::preset_kind::lake);
  CHECK(set("limit", "30GiB").limit == 30_GiB);
  CHECK(set("chunk", "32MiB").chunk == 32_MiB);
  CHECK_FALSE(set("chunk", "adaptive").chunk);
  CHECK(set("small", "512KiB").small == 512_KiB);
  CHECK(set("small", "0").small == bytes{0});
  CHECK(set("wait", "0").wait == false);
  CHECK(set("wait", "1").wait == true);
  CHECK(set("plan", "off").plan == torch_settings::no_plan);
  CHECK(set("plan", "auto").plan == torch_settings::auto_plan);
  CHECK(set("plan", "/tmp/a.plan").plan == torch_settings::saved_plan);
  CHECK(set("plan", "/tmp/a.plan").plan_file == "/tmp/a.plan");
  CHECK(set("host", "64GiB").host == 64_GiB);
  CHECK(set("swap_file", "/scratch:200GiB").swap_folder == "/scratch");
  CHECK(set("swap_file", "/scratch:200GiB").swap_file == 200_GiB);
  CHECK(set("swap_file", "/a:b:1GiB").swap_folder == "/a:b");
  CHECK(set("in_place", "1").in_place);
  CHECK_FALSE(set("leave_mapped", "0").leave_mapped);
  CHECK_FALSE(set("in_place", "0").in_place);
  CHECK(set("rdma", "1").rdma);
  CHECK_FALSE(set("rdma", "0").rdma);
  CHECK_FALSE(set("vmm_defragment", "0").stitch);
  CHECK(set("vmm_defragment", "1").stitch);
  CHECK(set("auto_gc", "500").idle_addresses == 500_GiB);
  CHECK(set("auto_gc", "0.5").idle_addresses == 512_MiB);
  CHECK(set("auto_gc", "0").idle_addresses == bytes{0});
  CHECK(set("frag_limit", "536870912").frag_limit == 512_MiB);
  CHECK(set("frag_limit", "0").frag_limit == 0);
  CHECK(set("reuse_limit", "1.5").reuse_limit == 1.5);
  CHECK(set("reuse_limit", "1").reuse_limit == 1.0);
  CHECK(set("defrag_level", "0").defrag_level == 0);
  CHECK(set("defrag_level", "1").defrag_level == 1);
  CHECK(set("defrag_level", "2").defrag_level == 2);
}

TEST_CASE("sizes have binary and decimal units, or none") {
  struct {
    char const* text;
    bytes size;
  } const sizes[] = {{"1", 1},      {"4096", 4096},      {"12B", 12},     {"3KiB", 3_KiB},      {"3K", 3_KiB},
                     {"3KB", 3000}, {"2MiB", 2_MiB},     {"2M", 2_MiB},   {"2MB", 2000000},     {"5GiB", 5_GiB},
                     {"5G", 5_GiB}, {"5GB", 5000000000}, {"1TiB", 1_TiB}, {"1.5GiB", 1536_MiB}, {"0.5KiB", 512},
                     {"1e3", 1000}, {".25GiB", 256_MiB}};
  for (auto const& [text, size] : sizes) CHECK(set("limit", text).limit == size);
}

TEST_CASE("a part of the device takes the place of a size, and the other way round") {
  torch_settings_reader r;
  CHECK(r.set("limit", "30GiB") == "");
  CHECK(r.set("limit", "90%") == "");
  CHECK_FALSE(r.settings().limit);
  REQUIRE(r.settings().limit_fraction);
  CHECK(*r.settings().limit_fraction == doctest::Approx(0.9));
  CHECK(r.set("limit", "1GiB") == "");
  CHECK_FALSE(r.settings().limit_fraction);
  CHECK(r.settings().limit == 1_GiB);
  CHECK(*set("limit", "100%").limit_fraction == 1.0);
  CHECK(*set("limit", "12.5%").limit_fraction == 0.125);
}

TEST_CASE("chunks can be made adaptive again") {
  torch_settings_reader r;
  CHECK(r.set("chunk", "64MiB") == "");
  CHECK(r.set("chunk", "adaptive") == "");
  CHECK_FALSE(r.settings().chunk);
}

TEST_CASE("a wrong value is an error that says what is wanted, and changes nothing") {
  for (char const* value : {"", "Lake", "pytorch", "lake ", "gmlake,lake"}) refuses("preset", value);
  for (char const* value : {"", "/scratch", ":1GiB", "/scratch:", "/scratch:0", "/scratch:much"})
    refuses("swap_file", value);
  for (char const* key : {"limit", "chunk", "small", "frag_limit", "host"}) {
    for (char const* value : {"", "GiB", "-1", "-5GiB", "5 GiB", "5gib", "5GiBs", "many", "nan", "inf", "infGiB",
                              "1e30", "99999999TiB", "0.5", "+5", " 5", "0x10", "1e400"}) {
      refuses(key, value);
    }
  }
  for (char const* key : {"limit", "chunk", "host"}) refuses(key, "0");
  for (char const* value : {"0%", "-5%", "101%", "%", "ten%", "nan%", "inf%", "5%%", "5 %"}) refuses("limit", value);
  for (char const* key : {"wait", "rdma", "vmm_defragment", "in_place", "leave_mapped"}) {
    for (char const* value : {"", "2", "-1", "true", "yes", "01", "1 "}) refuses(key, value);
  }
  for (char const* value : {"", "-1", "5GiB", "many", "inf", "nan", "1e7", " 5"}) refuses("auto_gc", value);
  for (char const* value : {"", "-1", "0.5", "10", "1x", "nan", "yes"}) refuses("defrag_level", value);
  for (char const* value : {"", "0", "0.99", "-3", "inf", "nan", "2x"}) refuses("reuse_limit", value);
  torch_settings_reader r;
  CHECK(r.set("limit", "x") == "gmlake: limit is to be a size such as 30GiB, or a part such as 90%, not 'x'");
  CHECK(r.set("reuse_limit", "0").find("at least 1") != std::string::npos);
}

TEST_CASE("a key that nobody knows is an error that lists those there are") {
  torch_settings_reader r;
  for (char const* name : {"limits", "", "GMLAKE_LIMIT", "Limit", "vmmDefragment"}) {
    std::string const wrong = r.set(name, "1");
    CAPTURE(wrong);
    CHECK(wrong.find("'" + std::string(name) + "'") != std::string::npos);
    for (spelling const& s : spellings) CHECK(wrong.find(s.key) != std::string::npos);
  }
  CHECK(r.text() == torch_settings_reader{}.text());
}

TEST_CASE("a variable that begins as gmlake's and is none is an error that lists those there are") {
  torch_settings_reader r;
  std::string const wrong = set_environment(r, {"GMLAKE_LIMITS=1"});
  CHECK(wrong.find("'GMLAKE_LIMITS'") != std::string::npos);
  for (spelling const& s : spellings) CHECK(wrong.find(s.variable) != std::string::npos);
  for (char const* v : {"GMLAKE_LEVEL", "GMLAKE_RECORD", "GMLAKE_REPORT", "GMLAKE_AUTOSTART"}) {
    CHECK(wrong.find(v) != std::string::npos);
    CHECK(set_environment(r, {std::string(v) + "=whatever"}) == "");
  }
  CHECK(r.text() == torch_settings_reader{}.text());
}

TEST_CASE("an environment without settings is none of gmlake's business") {
  torch_settings_reader r;
  CHECK(r.read_environment(nullptr) == "");
  CHECK(set_environment(r, {}) == "");
  CHECK(set_environment(
            r, {"HOME=/root", "PATH=a=b", "limit=5", "NONSENSE", "", "=x", "gmlake_limit=1", "XGMLAKE_LIMIT=1"}) == "");
  CHECK(r.text() == torch_settings_reader{}.text());
  CHECK(r.notes().empty());
}

TEST_CASE("what is read later goes over what was read before") {
  torch_settings_reader r;
  CHECK(set_environment(r, {"GMLAKE_LIMIT=1GiB", "GMLAKE_WAIT=0", "GMLAKE_LIMIT=2GiB"}) == "");
  CHECK(r.settings().limit == 2_GiB);
  CHECK(r.set("limit", "3GiB") == "");
  CHECK(r.settings().limit == 3_GiB);
  CHECK(r.settings().wait == false);
}

TEST_CASE("of PyTorch's own variables only the memory fraction counts, and the rest is noted") {
  for (char const* variable : {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"}) {
    CAPTURE(variable);
    torch_settings_reader r;
    CHECK(set_environment(
              r, {std::string(variable) + "=roundup_power2_divisions:[256:1,512:2,>:4],per_process_memory_fraction:0.5,"
                                          "pinned_use_cuda_host_register:True,pinned_num_register_threads:8,"
                                          "expandable_segments:True,garbage_collection_threshold:0.8"}) == "");
    REQUIRE(r.settings().limit_fraction);
    CHECK(*r.settings().limit_fraction == 0.5);
    REQUIRE(r.notes().size() == 3);
    CHECK(r.notes()[0].find("'roundup_power2_divisions'") != std::string::npos);
    CHECK(r.notes()[1].find("'expandable_segments'") != std::string::npos);
    CHECK(r.notes()[2].find("'garbage_collection_threshold'") != std::string::npos);
    for (std::string const& n : r.notes()) CHECK(n.find(variable) != std::string::npos);
  }
}

TEST_CASE("lists in brackets are one value, nested, unfinished or empty") {
  struct {
    char const* value;
    std::size_t notes;
    bool fraction;
  } const all[] = {{"", 0, false},
                   {",", 0, false},
                   {"a:[1,2,[3,4],5],per_process_memory_fraction:0.5", 1, true},
                   {"a:[1,per_process_memory_fraction:0.5", 1, false},
                   {"a:1],per_process_memory_fraction:0.5", 1, true},
                   {"per_process_memory_fraction:0.5,", 0, true},
                   {",,per_process_memory_fraction:1", 0, true},
                   {"per_process_memory_fraction:0.0", 0, true},
                   {"backend", 1, false}};
  for (auto const& [value, notes, fraction] : all) {
    std::string const shown(value);
    CAPTURE(shown);
    torch_settings_reader r;
    CHECK(set_environment(r, {std::string("PYTORCH_ALLOC_CONF=") + value}) == "");
    CHECK(r.notes().size() == notes);
    CHECK(r.settings().limit_fraction.has_value() == fraction);
  }
}

TEST_CASE("a memory fraction that is none is an error that names the variable, and changes nothing") {
  for (char const* value : {"", "-0.5", "1.01", "half", "50%", "nan", "inf"}) {
    CAPTURE(value);
    torch_settings_reader r;
    REQUIRE(r.set("limit", "5GiB") == "");
    std::string const before = r.text();
    std::string const wrong =
        set_environment(r, {std::string("PYTORCH_CUDA_ALLOC_CONF=per_process_memory_fraction:") + value});
    CHECK(wrong.find("PYTORCH_CUDA_ALLOC_CONF") != std::string::npos);
    CHECK(wrong.find("per_process_memory_fraction") != std::string::npos);
    CHECK(r.text() == before);
  }
}

TEST_CASE("spaces in PyTorch's variables mean nothing, as PyTorch has it") {
  for (char const* value : {"expandable_segments:True, per_process_memory_fraction: 0.5",
                            "expandable_segments:True,\n\tper_process_memory_fraction:0.5\r\n",
                            " per_process_memory_fraction : 0.5 ,expandable_segments:True\v\f"}) {
    CAPTURE(value);
    torch_settings_reader r;
    CHECK(set_environment(r, {std::string("PYTORCH_CUDA_ALLOC_CONF=") + value}) == "");
    CHECK(r.settings().limit_fraction == 0.5);
    REQUIRE(r.notes().size() == 1);
    CHECK(r.notes()[0].find("'expandable_segments'") != std::string::npos);
  }
}

TEST_CASE("of PyTorch's variables the first counts if it is set, be it to nothing, and the second else") {
  std::string const first = "PYTORCH_CUDA_ALLOC_CONF=", second = "PYTORCH_ALLOC_CONF=";
  std::string const half = "per_process_memory_fraction:0.5", most = "per_process_memory_fraction:0.9";
  for (bool const turned : {false, true}) {
    CAPTURE(turned);
    auto const read = [&](std::string one, std::string other) {
      torch_settings_reader r;
      if (turned) std::swap(one, other);
      CHECK(set_environment(r, {one, other}) == "");
      return r.settings().limit_fraction;
    };
    CHECK(read(first + half, second + most) == 0.5);
    CHECK(read(first + most, second + half) == 0.9);
    CHECK(read(first, second + most) == std::nullopt);
    CHECK(read("A=b", second + most) == 0.9);
    CHECK(read("GMLAKE_LIMIT=90%", first + half) == 0.9);
  }
}

TEST_CASE("a chunk so large that one would be the whole device is refused") {
  torch_settings_reader r;
  CHECK(r.set("chunk", "4GiB") == "");
  CHECK(r.settings().chunk == 4_GiB);
  CHECK(r.set("chunk", "5GiB").find("4GiB at most") != std::string::npos);
  CHECK(r.settings().chunk == 4_GiB);
}

TEST_CASE("the settings in force are told as lines of key and value, every key once") {
  torch_settings_reader r;
  for (char const* line : {"limit=50%", "preset=gmlake", "auto_gc=7", "defrag_level=1", "chunk=8MiB"}) {
    std::string const l = line;
    CHECK(r.set(l.substr(0, l.find('=')), l.substr(l.find('=') + 1)) == "");
  }
  std::string const text = "\n" + r.text();
  for (spelling const& s : spellings) {
    std::string const key = std::string("\n") + s.key + "=";
    std::size_t const at = text.find(key);
    CAPTURE(key);
    CHECK(at != std::string::npos);
    CHECK(text.find(key, at + 1) == std::string::npos);
  }
  CHECK(text.find("\npreset=gmlake\n") != std::string::npos);
  CHECK(text.find("\nlimit=50.000000%\n") != std::string::npos);
  CHECK(text.find("\nauto_gc=7\n") != std::string::npos);
  CHECK(text.find("\nchunk=8388608\n") != std::string::npos);
  CHECK(text.find("\nsmall=262144\n") != std::string::npos);
  CHECK(text.back() == '\n');
}
