#include "include/api/context.h"

#include "src/log.h"

namespace mindspore {
namespace {
void Unsupported(const char *function) {
  mslite::LogError(std::string("Context::") + function + " is not supported; nothing is set");
}
}  // namespace

struct Context::Data {
  int32_t thread_num = 0;
  int32_t inter_op_parallel_num = 0;
  int affinity_mode = 0;
  std::vector<int> core_list;
  std::vector<char> group_info_file;
  std::vector<std::shared_ptr<DeviceInfoContext>> devices;
};

Context::Context() : data_(std::make_shared<Data>()) {}
Context::~Context() = default;

void Context::SetThreadNum(int32_t thread_num) { data_->thread_num = thread_num; }
int32_t Context::GetThreadNum() const { return data_->thread_num; }

void Context::SetInterOpParallelNum(int32_t parallel_num) {
  data_->inter_op_parallel_num = parallel_num;
}
int32_t Context::GetInterOpParallelNum() const { return data_->inter_op_parallel_num; }

void Context::SetThreadAffinity(int mode) {
  if (mode < 0 || mode > 2) {
    mslite::LogWarning("Context::SetThreadAffinity: got mode " + std::to_string(mode) +
                       ", wanted 0 (any core), 1 (big cores first) or 2 (little cores first); "
                       "taken for 0");
    mode = 0;
  }
  data_->affinity_mode = mode;
}
int Context::GetThreadAffinityMode() const { return data_->affinity_mode; }

void Context::SetThreadAffinity(const std::vector<int> &core_list) { data_->core_list = core_list; }
std::vector<int32_t> Context::GetThreadAffinityCoreList() const { return data_->core_list; }

void Context::SetGroupInfoFile(const std::vector<char> &group_info_file) {
  data_->group_info_file = group_info_file;
}
std::vector<char> Context::GetGroupInfoFileChar() const { return data_->group_info_file; }

std::vector<std::shared_ptr<DeviceInfoContext>> &Context::MutableDeviceInfo() {
  return data_->devices;
}

void Context::SetEnableParallel(bool) { Unsupported("SetEnableParallel"); }
bool Context::GetEnableParallel() const { return false; }
void Context::SetBuiltInDelegate(DelegateMode) { Unsupported("SetBuiltInDelegate"); }
DelegateMode Context::GetBuiltInDelegate() const { return kNoDelegate; }
void Context::set_delegate(const std::shared_ptr<AbstractDelegate> &) {
  Unsupported("set_delegate");
}
std::shared_ptr<AbstractDelegate> Context::get_delegate() const { return nullptr; }
void Context::SetDelegate(const std::shared_ptr<Delegate> &) { Unsupported("SetDelegate"); }
std::shared_ptr<Delegate> Context::GetDelegate() const { return nullptr; }
void Context::SetMultiModalHW(bool) { Unsupported("SetMultiModalHW"); }
bool Context::GetMultiModalHW() const { return false; }
}  // namespace mindspore
