#pragma once
/// Sees every operator that PyTorch dispatches, before it runs and after: above autograd, where those made of others
/// have been taken apart, on every thread that has it switched on and in the backward passes that these begin.
///
/// It is a fallback of the dispatcher's, for a key of its own that is switched on for a thread
/// (TESTING_ONLY_GenericMode, which PyTorch leaves to experiments such as this). Kernels that PyTorch does not dispatch
/// are not seen. What Python makes of an operator isn't either, since PyTorch hides all from this key that is above
/// Python's: of tensors that wrap others (DTensor, jagged ones), a mode of Python's own sees it (`watch_wrapped`); of
/// other modes' and subclasses' doings, only the operator as a whole is.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <ATen/SparseCsrTensorUtils.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <torch/library.h>

namespace gmlake {

/// Memory that an operator uses: where a tensor's storage begins.
struct torch_operand {
  void const* begin = nullptr;
  int device = 0;  ///< of the watched type
  bool reads = false;
  bool writes = false;
  bool lingers = false;  ///< other streams may use it still when the operator has been launched, as collectives do
};

/// Who is told. Calls come from the operator's thread; what they throw is the operator's error.
class torch_operator_watcher {
 public:
  /// What kind of device counts.
  c10::DeviceType watched = c10::DeviceType::CUDA;

  virtual ~torch_operator_watcher() = default;
  /// It is about to run, and uses these.
  virtual void begins(std::vector<torch_operand> const& uses) = 0;
  /// It has run, and has made these.
  virtual void made(std::vector<torch_operand> const& results) = 0;
  /// That was it; also where something was thrown after it began.
  virtual void ends() noexcept = 0;
};

class torch_operators {
 public:
  static constexpr c10::DispatchKey key = c10::DispatchKey::TESTING_ONLY_GenericMode;

  /// Null: nobody. One at a time, which outlives all operators that it sees.
  static std::atomic<torch_operator_watcher*>& watcher() noexcept { return watcher_; }
  /// Whether this thread's operators are seen, and those of its backward passes.
  static void watch(bool on) { c10::impl::tls_set_dispatch_key_included(key, on); }

  /// The mode that this thread is in now is asked, from now on, for what becomes of operators on tensors that wrap
  /// others. Lives as long as the process.
  static void watch_wrapped() {
    using modes = c10::impl::TorchDispatchModeTLS;
    TORCH_CHECK(modes::stack_len() > 0, "gmlake: no mode of PyTorch's dispatch is on");
    // The last one may be in use by another thread.
    wrapped_.store(new mode(modes::get_stack_at(modes::stack_len() - 1)), std::memory_order_release);
  }

  /// Operators that run nothing themselves, of those that are known by now, pass the key by at no cost. The
  /// registrations last as long as what is returned.
  [[nodiscard]] static std::vector<c10::RegistrationHandleRAII> pass_by() {
    std::vector<c10::RegistrationHandleRAII> all;
    c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
    for (c10::OperatorName const& name : dispatcher.getAllOpNames()) {
      std::optional<c10::OperatorHandle> const op = dispatcher.findOp(name);
      if (!op || !op->hasSchema() || read(*op, op->schema()).how == form::runs) continue;
      all.push_back(dispatcher.registerImpl(name, key, c10::KernelFunction::makeFallthrough(), std::nullopt, nullptr,
                                            "gmlake: runs nothing"));
    }
    return all;
  }

  /// The fallback.
  static void run(c10::OperatorHandle const& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
    c10::DispatchKeySet const below = keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, key);
    torch_operator_watcher* const w = watcher_.load(std::memory_order_acquire);
    form const& f = form_of(op);
    if (w == nullptr || f.how == form::taken_apart || below.has_any(comes_again)) {
      return op.redispatchBoxed(below, stack);
    }
    if (f.how == form::makes_view) {
      c10::impl::ExcludeDispatchKeyGuard const unseen(key);
      return op.redispatchBoxed(below, stack);
    }
    std::vector<torch_operand>& uses = taken();
    bool wraps = false;
    auto const arguments = torch::jit::last(*stack, f.writes.size());
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      each_tensor(arguments[i], [&](at::Tensor const& t) {
        wraps = wraps || (t.key_set().has(c10::DispatchKey::Python) && storage_of(t, t.device().type()) == nullptr);
        note(uses, t, w->watched, true, f.writes[i], f.lingers);
      });
    }
    if (wraps && below.has(c10::DispatchKey::Python)) {
      inside const them;
      return op.redispatchBoxed(below, stack);
    }
    operation const one(*w, uses);
    {
      c10::impl::ExcludeDispatchKeyGuard const unseen(key);
      op.redispatchBoxed(below, stack);
    }
    std::vector<torch_operand>& results = made();
    for (c10::IValue const& v : torch::jit::last(*stack, f.returns)) {
      each_tensor(v, [&](at::Tensor const& t) {
        bool const given = std::ranges::find(uses, storage_of(t, w->watched), &torch_operand::begin) != uses.end();
        if (!given) note(results, t, w->watched, false, true, f.lingers);
      });
    }
    if (!results.empty()) w->made(results);
  }

 private:
  /// Who of these is next runs others in the operator's place, or the same once more: on what a tensor wraps, and on
  /// copies in another precision, which may have been kept from before. All that comes by here then.
  static constexpr c10::DispatchKeySet comes_again =
      c10::autocast_dispatch_keyset | c10::functorch_transforms_ks |
      c10::DispatchKeySet({c10::DispatchKey::FuncTorchDynamicLayerFrontMode, c10::DispatchKey::Functionalize,
                           c10::DispatchKey::BatchedNestedTensor});

  /// What an operator's schema tells.
  struct form {
    enum kind : std::uint8_t {
      runs,
      taken_apart,  ///< made of others, which come by here themselves
      makes_view,   ///< of its arguments' memory, which it leaves alone
    };
    kind how = runs;
    std::vector<bool> writes;  ///< by argument
    std::size_t returns = 0;
    bool lingers = false;  ///< see `torch_operand`
  };

  using mode = std::shared_ptr<c10::impl::PyObject_TorchDispatchMode>;

  /// The mode that sees wrapped tensors is on.
  struct inside {
    inside() {
      mode const* const m = wrapped_.load(std::memory_order_acquire);
      if (m != nullptr) c10::impl::TorchDispatchModeTLS::push_non_infra_mode_onto_stack(*m);
      on = m != nullptr;
    }
    inside(inside const&) = delete;
    inside& operator=(inside const&) = delete;
    ~inside() {
      if (on) (void)c10::impl::TorchDispatchModeTLS::pop_stack();
    }
    bool on = false;
  };

  /// Begins and ends.
  struct operation {
    operation(torch_operator_watcher& w, std::vector<torch_operand> const& uses) : watcher(&w) {
      try {
        w.begins(uses);
      } catch (...) {
        w.ends();
        throw;
      }
    }
    operation(operation const&) = delete;
    operation& operator=(operation const&) = delete;
    ~operation() { watcher->ends(); }
    torch_operator_watcher* watcher;
  };

  [[nodiscard]] static form const& form_of(c10::OperatorHandle const& op) {
    static thread_local std::unordered_map<c10::FunctionSchema const*, form> known;
    c10::FunctionSchema const& schema = op.schema();
    auto const [there, fresh] = known.try_emplace(&schema);
    if (fresh) there->second = read(op, schema);
    return there->second;
  }
  [[nodiscard]] static form read(c10::OperatorHandle const& op, c10::FunctionSchema const& schema) {
    form f;
    for (c10::Argument const& a : schema.arguments()) {
      f.writes.push_back(a.alias_info() != nullptr && a.alias_info()->isWrite());
    }
    f.returns = schema.returns().size();
    bool aliases = f.returns > 0;
    for (c10::Argument const& r : schema.returns()) {
      aliases = aliases && r.alias_info() != nullptr && !r.alias_info()->isWrite();
    }
    std::string_view const space = op.operator_name().getNamespace().value_or(std::string_view{});
    f.lingers = space == "c10d" || space == "symm_mem" || space.starts_with("_c10d_functional");
    // Some of those made of others have kernels of their own for some devices; and what an extension registers for no
    // device in particular may launch kernels itself.
    bool const composite = op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) &&
                           !op.hasKernelForDispatchKey(c10::DispatchKey::CUDA) && (space == "aten" || space == "prim");
    f.how = composite ? form::taken_apart : aliases ? form::makes_view : form::runs;
    return f;
  }

  template <class F>
  static void each_tensor(c10::IValue const& v, F&& f) {
    if (v.isTensor()) {
      if (at::Tensor const& t = v.toTensor(); t.defined()) each_part(t, f);
    } else if (v.isList()) {
      for (c10::IValue const& one : v.toListRef()) each_tensor(one, f);
    }
  }

  /// Calls f for the tensors whose memory is a tensor's: the parts of one that is sparse, or else itself.
  template <class F>
  static void each_part(at::Tensor const& t, F&& f) {
    c10::Layout const layout = t.layout();
    if (layout != c10::kSparse && !at::sparse_csr::is_sparse_compressed(layout)) return f(t);
    c10::impl::ExcludeDispatchKeyGuard const unseen(key);
    if (layout == c10::kSparse) {
      f(t._indices());
      f(t._values());
      return;
    }
    bool const by_row = layout == c10::kSparseCsr || layout == c10::kSparseBsr;
    f(by_row ? t.crow_indices() : t.ccol_indices());
    f(by_row ? t.col_indices() : t.row_indices());
    f(t.values());
  }

  /// Null for tensors that have no memory of that kind.
  [[nodiscard]] static void const* storage_of(at::Tensor const& t, c10::DeviceType kind) {
    if (t.device().type() != kind || !t.has_storage()) return nullptr;
    return t.unsafeGetTensorImpl()->unsafe_storage().data();
  }
  static void note(std::vector<torch_operand>& all, at::Tensor const& t, c10::DeviceType kind, bool reads, bool writes,
                   bool lingers) {
    void const* const begin = storage_of(t, kind);
    if (begin == nullptr) return;
    for (std::size_t i = all.size(); i > 0 && all.size() - i < looked_back; --i) {
      torch_operand& u = all[i - 1];
      if (u.begin != begin) continue;
      u.reads = u.reads || reads;
      u.writes = u.writes || writes;
      return;
    }
    all.push_back({begin, t.device().index(), reads, writes, lingers});
  }

  /// Operators on lists have hundreds of operands: what is named again further on is told twice.
  static constexpr std::size_t looked_back = 16;

  /// Empty ones, whose memory is used again by this thread's next operator.
  [[nodiscard]] static std::vector<torch_operand>& taken() {
    static thread_local std::vector<torch_operand> all;
    all.clear();
    return all;
  }
  [[nodiscard]] static std::vector<torch_operand>& made() {
    static thread_local std::vector<torch_operand> all;
    all.clear();
    return all;
  }

  static inline std::atomic<torch_operator_watcher*> watcher_{nullptr};
  static inline std::atomic<mode const*> wrapped_{nullptr};
};

}  // namespace gmlake
