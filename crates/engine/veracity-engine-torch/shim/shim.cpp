// C interface to TorchScript and to exported programs (pt2), compiled on the user's machine against
// the torch that is there.
//
// Every function returns a status and, when it is not `kOk`, leaves a message for the calling
// thread. No C++ exception leaves this file. Nothing process-wide is changed: not the number of
// threads, not the executor mode, not the warning handler. While an exported program is loaded, and
// no longer, torch's log is turned down and its table of quick kernels is empty.
//
// Inputs are copied into tensors that torch owns, outputs are copied out. A module can therefore
// write into its inputs, reshape them or keep them for later without touching the caller's memory:
// a tensor that the module changed or kept is replaced before the next run.

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Logging.h>
#include <c10/util/Registry.h>
#include <caffe2/serialize/inline_container.h>
#include <caffe2/serialize/read_adapter_interface.h>
#include <dlfcn.h>
#include <sys/mman.h>
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/serialization/import.h>
#include <unistd.h>

// Not every torch that runs TorchScript can run exported programs without Python, and some that
// cannot have the header.
#if !defined(VERACITY_WITHOUT_PROGRAMS) && \
    __has_include(<torch/csrc/api/include/torch/nativert/ModelRunnerHandle.h>)
#include <torch/csrc/api/include/torch/nativert/ModelRunnerHandle.h>
#define VERACITY_RUNS_PROGRAMS 1
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

// Mirrored in `src/shim.rs`; raise the version with every change of this section.
extern "C" {

constexpr uint32_t kApiVersion = 3;

enum Status : int32_t {
  kOk = 0,
  kFailed = 1,
  kOutputMismatch = 2,
  kSignatureMismatch = 3,
  kUnavailable = 4,
};

enum Format : int32_t {
  kTorchScript = 0,
  kExportedProgram = 1,
};

// Row-major memory with a shape. `dtype` counts in the order of `kDtypes`.
struct Buffer {
  void* data;
  size_t bytes;
  const int64_t* dims;
  size_t rank;
  int32_t dtype;
};

// Where a model comes from and how it is to be run.
struct LoadRequest {
  const char* path;      // a file, or null when the model lies in memory
  const uint8_t* bytes;  // the model when `path` is null; only read during the call
  size_t len;
  int32_t cuda_index;  // negative for the CPU
  int32_t threads;     // inside one operator; at least 1
  int32_t optimize;    // 0 runs the graph as it was saved
  size_t inputs;       // how many the caller will bind
  size_t outputs;
  int32_t format;
};

struct Model;
}

namespace {

// ---------------------------------------------------------------------------------------- errors

thread_local std::string last_error;

// Thrown where another status than `kFailed` is meant.
struct Refused {
  Status status;
  std::string message;
};

int32_t Fail(Status status, const char* message) noexcept {
  try {
    last_error = message;
  } catch (...) {
    last_error.clear();  // out of memory: the status has to speak for itself
  }
  return status;
}

template <typename Work>
int32_t Guarded(Work work) noexcept {
  try {
    work();
    return kOk;
  } catch (const Refused& refused) {
    return Fail(refused.status, refused.message.c_str());
  } catch (const c10::Error& error) {
    return Fail(kFailed, error.what_without_backtrace());
  } catch (const std::exception& error) {
    return Fail(kFailed, error.what());
  } catch (...) {
    return Fail(kFailed, "torch threw something that is not an exception");
  }
}

// ------------------------------------------------------------------------------------------ state

constexpr std::pair<at::ScalarType, const char*> kDtypes[] = {
    {at::kHalf, "float16"},   {at::kBFloat16, "bfloat16"}, {at::kFloat, "float32"},
    {at::kDouble, "float64"}, {at::kChar, "int8"},         {at::kShort, "int16"},
    {at::kInt, "int32"},      {at::kLong, "int64"},        {at::kByte, "uint8"},
    {at::kUInt16, "uint16"},  {at::kUInt32, "uint32"},     {at::kUInt64, "uint64"},
    {at::kBool, "bool"},
};

struct Input {
  at::Tensor source;  // the caller's memory
  at::Tensor value;   // what the module gets
  void* value_data;
};

struct Bound {
  std::vector<Input> inputs;
  std::vector<at::Tensor> outputs;  // the caller's memory
};

// What a file holds.
class Callable {
 public:
  virtual ~Callable() = default;
  // Appends the tensors that the model gives for these inputs.
  virtual void Call(const std::vector<Input>& inputs, std::vector<at::Tensor>& results) = 0;
  // Drops what the model returned or was given.
  virtual void Forget() {}
};

}  // namespace

struct Model {
  std::unique_ptr<Callable> callable;
  c10::Device device;
  int threads;
  bool optimize;
  std::vector<Bound> bindings;
  std::vector<at::Tensor> results;  // kept, so that a run does not grow it again
};

namespace {

// ------------------------------------------------------------------------------- scopes of a call

// Torch writes warnings to stderr; a library has no business there.
class Quiet {
 public:
  Quiet() : guard_(&handler_) {}

 private:
  struct Handler : c10::WarningHandler {
    void process(const c10::Warning&) override {}
  };
  Handler handler_;
  c10::WarningUtils::WarningHandlerGuard guard_;
};

// Sets the number of threads for work started by this thread, and puts it back. OpenMP and MKL
// keep that number per thread; `at::set_num_threads` would change the whole process and rebuild a
// thread pool, so it is only used where torch was built without OpenMP.
class Threads {
 public:
  explicit Threads(int wanted) : wanted_(wanted), before_(at::get_num_threads()) {
    if (before_ != wanted_) {
      Set(wanted_);
    }
    if (mkl() != nullptr) {
      mkl_before_ = mkl()(wanted_);
    }
  }
  ~Threads() {
    if (mkl() != nullptr) {
      mkl()(mkl_before_);
    }
    if (before_ != wanted_) {
      Set(before_);
    }
  }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  using SetOmp = void (*)(int);
  using SetMkl = int (*)(int);

  static void Set(int count) {
    if (omp() != nullptr) {
      omp()(count);
    } else {
      at::set_num_threads(count);
    }
  }
  // The function of the library that torch itself is linked to: a process may hold two OpenMPs.
  static void* Symbol(const char* name) {
    void* torch = dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);
    return torch == nullptr ? nullptr : dlsym(torch, name);
  }
  static SetOmp omp() {
    static const auto found = reinterpret_cast<SetOmp>(Symbol("omp_set_num_threads"));
    return found;
  }
  static SetMkl mkl() {
    static const auto found = reinterpret_cast<SetMkl>(Symbol("MKL_Set_Num_Threads_Local"));
    return found;
  }

  int wanted_;
  int before_;
  int mkl_before_ = 0;
};

// ---------------------------------------------------------------------------------------- results

std::string Counted(size_t count, const char* noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

[[noreturn]] void RefuseOutput(const std::string& message) {
  throw Refused{kOutputMismatch, message};
}

// Results nest no deeper than this; every model seen so far returns a flat tuple.
constexpr int kMaxDepth = 16;

// Appends every tensor of a result, in order.
void Flatten(const c10::IValue& value, std::vector<at::Tensor>& flat, int depth) {
  if (value.isTensor()) {
    flat.push_back(value.toTensor());
  } else if (depth == 0) {
    RefuseOutput("the result nests deeper than " + std::to_string(kMaxDepth) + " levels");
  } else if (value.isTuple()) {
    for (const auto& element : value.toTupleRef().elements()) {
      Flatten(element, flat, depth - 1);
    }
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) {
      flat.push_back(tensor);
    }
  } else if (value.isList()) {
    for (const c10::IValue& element : value.toListRef()) {
      Flatten(element, flat, depth - 1);
    }
  } else {
    RefuseOutput("output " + std::to_string(flat.size()) + " is a " + value.tagKind() +
                 ", not a tensor");
  }
}

// ------------------------------------------------------------------------------------ TorchScript

class MemoryReader : public caffe2::serialize::ReadAdapterInterface {
 public:
  MemoryReader(const uint8_t* bytes, size_t len) : bytes_(bytes), len_(len) {}
  size_t size() const override { return len_; }
  size_t read(uint64_t position, void* target, size_t count, const char*) const override {
    if (position >= len_) {
      return 0;
    }
    count = std::min(count, len_ - static_cast<size_t>(position));
    std::memcpy(target, bytes_ + position, count);
    return count;
  }

 private:
  const uint8_t* bytes_;
  size_t len_;
};

torch::jit::Module ReadModule(const LoadRequest& request, c10::Device device) {
  if (request.path != nullptr) {
    return torch::jit::load(std::string(request.path), device);
  }
  return torch::jit::load(std::make_shared<MemoryReader>(request.bytes, request.len), device);
}

bool IsCompared(const torch::jit::Value* value) {
  const auto compares = [](const torch::jit::Use& use) {
    return use.user->kind() == c10::aten::eq || use.user->kind() == c10::aten::ne;
  };
  return std::any_of(value->uses().begin(), value->uses().end(), compares);
}

// Appends the constants that name a device to make tensors on, those of inner blocks too.
void NamedDevices(torch::jit::Block* block, std::vector<torch::jit::Node*>& found) {
  for (torch::jit::Node* node : block->nodes()) {
    if (node->kind() == torch::jit::prim::Constant &&
        node->output()->type()->kind() == c10::TypeKind::DeviceObjType &&
        !IsCompared(node->output())) {
      found.push_back(node);
    }
    for (torch::jit::Block* inner : node->blocks()) {
      NamedDevices(inner, found);
    }
  }
}

// Lets the code make tensors on this device; torch has moved only those that the module holds.
//
// The code names the devices that it was recorded on. In code for a GPU, the CPU is meant where it
// is named; code that names no other device was made on the CPU. What it compares devices with
// stays. The Python front does the same.
void PlaceCode(torch::jit::Function& forward, c10::Device device) {
  auto* function = torch::jit::tryToGraphFunction(forward);
  if (function == nullptr) {
    return;
  }
  const auto graph = function->graph();
  torch::jit::Inline(*graph);
  std::vector<torch::jit::Node*> named;
  NamedDevices(graph->block(), named);
  const auto named_on = [](const torch::jit::Node* node) {
    return c10::Device(node->s(torch::jit::attr::value)).type();
  };
  const auto is_gpu = [&](const auto* node) { return named_on(node) == c10::kCUDA; };
  const auto from =
      std::any_of(named.begin(), named.end(), is_gpu) ? c10::kCUDA : c10::DeviceType::CPU;
  for (torch::jit::Node* node : named) {
    if (named_on(node) == from) {
      node->s_(torch::jit::attr::value, device.str());
    }
  }
}

// Checks the arguments of `forward` against the inputs, and returns the defaults of the rest.
std::vector<c10::IValue> MatchArguments(const c10::FunctionSchema& schema, size_t inputs) {
  const auto& arguments = schema.arguments();  // the first one is the module itself
  const size_t accepted = arguments.size() - 1;
  if (inputs > accepted) {
    throw Refused{kSignatureMismatch, "`forward` takes " + Counted(accepted, "argument") + ", " +
                                          Counted(inputs, "input") + " declared"};
  }
  std::vector<c10::IValue> defaults;
  for (size_t index = 0; index < accepted; ++index) {
    const c10::Argument& argument = arguments[index + 1];
    if (index >= inputs && !argument.default_value().has_value()) {
      throw Refused{kSignatureMismatch, "argument `" + argument.name() +
                                            "` of `forward` has no declared input and no default"};
    }
    if (index >= inputs) {
      defaults.push_back(*argument.default_value());
    } else if (!c10::TensorType::get()->isSubtypeOf(*argument.type())) {
      throw Refused{kSignatureMismatch, "argument `" + argument.name() + "` of `forward` is a " +
                                            argument.type()->repr_str() + ", not a tensor"};
    }
  }
  return defaults;
}

// How many tensors a result of this type holds, when the type says it.
std::optional<size_t> TensorCount(const c10::Type& type, int depth) {
  if (type.kind() == c10::TypeKind::TensorType) {
    return 1;
  }
  const auto* tuple = type.castRaw<c10::TupleType>();
  if (tuple == nullptr || depth == 0) {
    return std::nullopt;
  }
  size_t count = 0;
  for (const auto& element : tuple->elements()) {
    const auto inner = TensorCount(*element, depth - 1);
    if (!inner.has_value()) {
      return std::nullopt;
    }
    count += *inner;
  }
  return count;
}

void MatchResults(const c10::FunctionSchema& schema, size_t outputs) {
  if (schema.returns().size() != 1) {
    return;
  }
  const auto count = TensorCount(*schema.returns()[0].type(), kMaxDepth);
  if (count.has_value() && *count != outputs) {
    throw Refused{kSignatureMismatch, "`forward` returns " + Counted(*count, "tensor") + ", " +
                                          Counted(outputs, "output") + " declared"};
  }
}

class Script : public Callable {
 public:
  Script(const LoadRequest& request, c10::Device device) : module_(ReadModule(request, device)) {
    module_.eval();
    const auto method = module_.find_method("forward");
    if (!method.has_value()) {
      throw Refused{kSignatureMismatch, "the module has no method `forward`"};
    }
    forward_ = &method->function();
    PlaceCode(*forward_, device);
    defaults_ = MatchArguments(forward_->getSchema(), request.inputs);
    MatchResults(forward_->getSchema(), request.outputs);
    // The profiling executor compiles again during the first runs, and what it fuses then may round
    // differently: step 1 and step 3 would not agree. The simple one is as fast on the CPU.
    auto* graph = torch::jit::tryToGraphFunction(*forward_);
    if (graph != nullptr && request.optimize != 0) {
      graph->_set_initial_executor_execution_mode(torch::jit::ExecutorExecutionMode::SIMPLE);
    }
  }

  void Call(const std::vector<Input>& inputs, std::vector<at::Tensor>& results) override {
    stack_.emplace_back(module_._ivalue());
    for (const Input& input : inputs) {
      stack_.emplace_back(input.value);
    }
    stack_.insert(stack_.end(), defaults_.begin(), defaults_.end());
    forward_->run(stack_);
    Flatten(stack_.back(), results, kMaxDepth);
  }

  void Forget() override { stack_.clear(); }

 private:
  torch::jit::Module module_;
  torch::jit::Function* forward_;
  std::vector<c10::IValue> defaults_;  // of the arguments that no port feeds
  c10::Stack stack_;                   // kept, so that a run does not grow it again
};

// ------------------------------------------------------------------------------ exported programs

#ifdef VERACITY_RUNS_PROGRAMS

// A file without a place in a folder, for bytes that lie in memory: torch reads programs by name.
class MemoryFile {
 public:
  MemoryFile(const uint8_t* bytes, size_t len) : descriptor_(memfd_create("veracity.pt2", 0)) {
    TORCH_CHECK(descriptor_ >= 0, "no file can be made in memory");
    for (size_t written = 0; written < len;) {
      const ssize_t count = write(descriptor_, bytes + written, len - written);
      if (count <= 0) {
        close(descriptor_);
        TORCH_CHECK(false, "the model does not fit into memory");
      }
      written += static_cast<size_t>(count);
    }
  }
  ~MemoryFile() { close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string Path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

// Torch logs which operators have no quick path, which is nobody's business either.
class QuietLog {
 public:
  QuietLog() : before_(FLAGS_caffe2_log_level) { FLAGS_caffe2_log_level = 2; }
  ~QuietLog() { FLAGS_caffe2_log_level = before_; }
  QuietLog(const QuietLog&) = delete;
  QuietLog& operator=(const QuietLog&) = delete;

 private:
  int before_;
};

}  // namespace

// Torch's own table of kernels that its runner of exported programs prefers to those of the
// dispatcher. It has no header; where a torch has no such table, the address is null.
namespace torch::nativert {
class Node;
class OpKernel;
__attribute__((weak)) c10::Registry<std::string, std::unique_ptr<OpKernel>, const Node*>*
StaticallyDispatchedCPUKernelRegistry();
}  // namespace torch::nativert

namespace {

using QuickKernels =
    std::remove_pointer_t<decltype(torch::nativert::StaticallyDispatchedCPUKernelRegistry())>;
using KernelTable = std::unordered_map<std::string, QuickKernels::Creator>;

// A registry only grows, so its table is reached past `private`: an explicit instantiation may name
// any member.
KernelTable& TableOf(QuickKernels& kernels);
template <KernelTable QuickKernels::*Member>
struct Reach {
  friend KernelTable& TableOf(QuickKernels& kernels) { return kernels.*Member; }
};
template struct Reach<&QuickKernels::registry_>;

// Quick kernels shape their outputs by hand and get strides wrong: from a slice or an expanded value
// they give memory that is not its own. While this lives, torch finds none and takes the operators
// that Python runs. Kernels are chosen while a program is loaded.
class NoQuickKernels {
 public:
  NoQuickKernels() : lock_(Mutex()) {
    if (torch::nativert::StaticallyDispatchedCPUKernelRegistry != nullptr) {
      table_ = &TableOf(*torch::nativert::StaticallyDispatchedCPUKernelRegistry());
      table_->swap(kept_);
    }
  }
  ~NoQuickKernels() {
    if (table_ != nullptr) {
      table_->swap(kept_);
    }
  }
  NoQuickKernels(const NoQuickKernels&) = delete;
  NoQuickKernels& operator=(const NoQuickKernels&) = delete;

 private:
  // Two that overlap would give the table back too early.
  static std::mutex& Mutex() {
    static std::mutex mutex;
    return mutex;
  }
  std::lock_guard<std::mutex> lock_;
  KernelTable* table_ = nullptr;
  KernelTable kept_;
};

// How `torch.export.save` calls the one program of a file.
constexpr const char* kProgramName = "model";

// What the files about weights and constants say of where a tensor begins in its memory.
constexpr const char* kOffset = "\"storage_offset\"";

bool HasOffset(std::string_view description) {
  for (size_t at = description.find(kOffset); at != std::string_view::npos;
       at = description.find(kOffset, at + 1)) {
    const size_t digit = description.find_first_of("0123456789", at);
    if (digit != std::string_view::npos && description[digit] != '0') {
      return true;
    }
  }
  return false;
}

// Torch's runner reads every weight and constant from the start of its memory. A program that holds
// parts of others would run, and give other numbers.
void RefuseOffsets(const std::string& path) {
  caffe2::serialize::PyTorchStreamReader reader(path);
  for (const std::string name : {"data/weights/model_weights_config.json",
                                 "data/constants/model_constants_config.json"}) {
    if (!reader.hasRecord(name)) {
      continue;
    }
    const auto [data, size] = reader.getRecord(name);
    if (HasOffset({static_cast<const char*>(data.get()), size})) {
      throw Refused{kSignatureMismatch,
                    "the program holds tensors that are parts of others, which torch's own runner "
                    "reads from the wrong place: export it with Veracity, or clone them before"};
    }
  }
}

class ExportedProgram : public Callable {
 public:
  explicit ExportedProgram(const LoadRequest& request) {
    const QuietLog quiet;
    if (request.path == nullptr) {
      file_.emplace(request.bytes, request.len);
    }
    const std::string path = file_.has_value() ? file_->Path() : std::string(request.path);
    RefuseOffsets(path);
    const NoQuickKernels as_in_python;
    runner_.emplace(path, kProgramName);
  }

  void Call(const std::vector<Input>& inputs, std::vector<at::Tensor>& results) override {
    std::vector<c10::IValue> values;
    values.reserve(inputs.size());
    for (const Input& input : inputs) {
      values.emplace_back(input.value);
    }
    for (const c10::IValue& value : runner_->runWithFlatInputsAndOutputs(std::move(values))) {
      Flatten(value, results, kMaxDepth);
    }
  }

 private:
  std::optional<MemoryFile> file_;  // outlives the runner, which may read from it
  std::optional<torch::nativert::ModelRunnerHandle> runner_;
};

std::unique_ptr<Callable> ReadProgram(const LoadRequest& request) {
  return std::make_unique<ExportedProgram>(request);
}

#else

std::unique_ptr<Callable> ReadProgram(const LoadRequest&) {
  throw Refused{kUnavailable, "this torch cannot run exported programs without Python"};
}

#endif

// ---------------------------------------------------------------------------------------- loading

std::unique_ptr<Model> Load(const LoadRequest& request) {
  const c10::Device device = request.cuda_index < 0
                                 ? c10::Device(c10::kCPU)
                                 : c10::Device(c10::kCUDA, static_cast<int8_t>(request.cuda_index));
  std::unique_ptr<Callable> callable = request.format == kExportedProgram
                                           ? ReadProgram(request)
                                           : std::make_unique<Script>(request, device);
  return std::unique_ptr<Model>(new Model{std::move(callable), device, request.threads,
                                          request.optimize != 0, {}, {}});
}

// ---------------------------------------------------------------------------------------- binding

at::Tensor View(const Buffer& buffer) {
  constexpr int32_t known = sizeof(kDtypes) / sizeof(kDtypes[0]);
  TORCH_CHECK(buffer.dtype >= 0 && buffer.dtype < known, "unknown dtype ", buffer.dtype);
  const c10::IntArrayRef dims(buffer.dims, buffer.rank);
  at::Tensor view = at::from_blob(buffer.data, dims, kDtypes[buffer.dtype].first);
  TORCH_CHECK(view.nbytes() == buffer.bytes, buffer.bytes, " bytes do not fill shape ", dims);
  return view;
}

Bound Bind(const Buffer* inputs, size_t input_count, const Buffer* outputs, size_t output_count) {
  Bound bound;
  for (size_t index = 0; index < input_count; ++index) {
    bound.inputs.push_back(Input{View(inputs[index]), at::Tensor(), nullptr});
  }
  for (size_t index = 0; index < output_count; ++index) {
    bound.outputs.push_back(View(outputs[index]));
  }
  return bound;
}

// ---------------------------------------------------------------------------------------- running

// Whether the tensor given to the module in the last run is still ours alone and as it was.
bool IsUntouched(const Input& input) {
  const at::Tensor& value = input.value;
  return value.defined() && value.use_count() == 1 && value.storage().use_count() == 1 &&
         value.const_data_ptr() == input.value_data && value.sizes() == input.source.sizes() &&
         value.is_contiguous() && value.scalar_type() == input.source.scalar_type() &&
         !value.requires_grad();
}

void Feed(Input& input, c10::Device device) {
  if (!IsUntouched(input)) {
    input.value = at::empty(input.source.sizes(), input.source.options().device(device));
    input.value_data = input.value.mutable_data_ptr();
  }
  if (device.is_cpu()) {
    std::memcpy(input.value_data, input.source.const_data_ptr(), input.source.nbytes());
  } else {
    input.value.copy_(input.source);
  }
}

std::string Describe(const at::Tensor& tensor) {
  std::ostringstream text;
  const auto* known = std::find_if(std::begin(kDtypes), std::end(kDtypes), [&](const auto& entry) {
    return entry.first == tensor.scalar_type();
  });
  if (known != std::end(kDtypes)) {
    text << known->second;
  } else {
    text << tensor.scalar_type();
  }
  text << " [";
  for (int64_t axis = 0; axis < tensor.dim(); ++axis) {
    text << (axis == 0 ? "" : ", ") << tensor.size(axis);
  }
  text << "]";
  return text.str();
}

void MatchOutputs(const std::vector<at::Tensor>& results, const std::vector<at::Tensor>& declared,
                  int64_t* port) {
  if (results.size() != declared.size()) {
    RefuseOutput("the model returned " + Counted(results.size(), "tensor") + ", " +
                 Counted(declared.size(), "output") + " declared");
  }
  for (size_t index = 0; index < results.size(); ++index) {
    const at::Tensor& result = results[index];
    *port = static_cast<int64_t>(index);
    if (!result.defined() || result.layout() != c10::kStrided) {
      RefuseOutput("output " + std::to_string(index) + " is not a dense tensor");
    }
    if (result.scalar_type() != declared[index].scalar_type() ||
        result.sizes() != declared[index].sizes()) {
      RefuseOutput("output " + std::to_string(index) + " is " + Describe(result) +
                   ", declared is " + Describe(declared[index]));
    }
  }
  *port = -1;
}

void CopyOut(const at::Tensor& result, at::Tensor& target) {
  if (result.device().is_cpu() && result.is_contiguous() && !result.is_neg()) {
    std::memcpy(target.mutable_data_ptr(), result.const_data_ptr(), target.nbytes());
  } else {
    target.copy_(result);
  }
}

void Run(Model& model, Bound& bound, int64_t* port) {
  const c10::InferenceMode inference;
  const Quiet quiet;
  const Threads threads(model.threads);
  const torch::jit::GraphOptimizerEnabledGuard optimizer(model.optimize);
  std::optional<c10::DeviceGuard> device;
  if (!model.device.is_cpu()) {
    device.emplace(model.device);
  }
  for (Input& input : bound.inputs) {
    Feed(input, model.device);
  }
  model.callable->Call(bound.inputs, model.results);
  MatchOutputs(model.results, bound.outputs, port);
  for (size_t index = 0; index < bound.outputs.size(); ++index) {
    CopyOut(model.results[index], bound.outputs[index]);
  }
}

}  // namespace

// -------------------------------------------------------------------------------------- interface

#pragma GCC visibility push(default)
extern "C" {

uint32_t veracity_torch_api_version() { return kApiVersion; }

// Message of the last call of this thread that failed; valid until the next call.
const char* veracity_torch_last_error() { return last_error.c_str(); }

// How many GPUs torch can use; 0 when its CUDA library is not loaded.
int32_t veracity_torch_cuda_devices(int32_t* count) {
  return Guarded([&] {
    const auto* implementation =
        c10::impl::device_guard_impl_registry[static_cast<size_t>(c10::kCUDA)].load();
    *count = implementation == nullptr ? 0 : implementation->deviceCount();
  });
}

// Threads that torch would use in this thread, outside of a run.
int32_t veracity_torch_threads() { return at::get_num_threads(); }

int32_t veracity_torch_load(const LoadRequest* request, Model** model) {
  return Guarded([&] {
    const Quiet quiet;
    *model = Load(*request).release();
  });
}

// The memory must live as long as the model.
int32_t veracity_torch_bind(Model* model, const Buffer* inputs, size_t input_count,
                            const Buffer* outputs, size_t output_count, size_t* binding) {
  return Guarded([&] {
    model->bindings.push_back(Bind(inputs, input_count, outputs, output_count));
    *binding = model->bindings.size() - 1;
  });
}

// Runs once. `port` is set to the output that a `kOutputMismatch` is about, else to -1.
int32_t veracity_torch_run(Model* model, size_t binding, int64_t* port) {
  *port = -1;
  const int32_t status = Guarded([&] { Run(*model, model->bindings.at(binding), port); });
  // Also after a failure: what the module returned or was given must not outlive the run.
  model->callable->Forget();
  model->results.clear();
  return status;
}

void veracity_torch_free(Model* model) {
  Guarded([&] { delete model; });
}

}  // extern "C"
#pragma GCC visibility pop
