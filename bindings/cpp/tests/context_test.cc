#include "include/api/context.h"

#include <cstdlib>
#include <memory>
#include <string>

#include "src/build_request.h"
#include "src/failure.h"
#include "tests/check.h"

using mindspore::AscendDeviceInfo;
using mindspore::Context;
using mindspore::CPUDeviceInfo;
using mindspore::DeviceInfoContext;
using mindspore::GPUDeviceInfo;

TEST(AContextLeavesEverythingToTheMachineAtFirst) {
  Context context;
  CHECK_EQ(context.GetThreadNum(), 0);
  CHECK_EQ(context.GetInterOpParallelNum(), 0);
  CHECK_EQ(context.GetThreadAffinityMode(), 0);
  CHECK(context.GetThreadAffinityCoreList().empty());
  CHECK_EQ(context.GetGroupInfoFile(), "");
  CHECK(context.MutableDeviceInfo().empty());
}

TEST(AContextKeepsWhatIsSet) {
  Context context;
  context.SetThreadNum(3);
  context.SetInterOpParallelNum(2);
  context.SetThreadAffinity(2);
  context.SetThreadAffinity({0, 1});
  context.SetGroupInfoFile("ranks.json");
  CHECK_EQ(context.GetThreadNum(), 3);
  CHECK_EQ(context.GetInterOpParallelNum(), 2);
  CHECK_EQ(context.GetThreadAffinityMode(), 2);
  CHECK_EQ(context.GetThreadAffinityCoreList(), (std::vector<int32_t>{0, 1}));
  CHECK_EQ(context.GetGroupInfoFile(), "ranks.json");
}

TEST(AnUnknownAffinityIsNone) {
  Context context;
  context.SetThreadAffinity(1);
  context.SetThreadAffinity(3);
  CHECK_EQ(context.GetThreadAffinityMode(), 0);
  context.SetThreadAffinity(1);
  context.SetThreadAffinity(-1);
  CHECK_EQ(context.GetThreadAffinityMode(), 0);
}

TEST(CopiesOfAContextShareTheirState) {
  Context context;
  Context copy = context;
  copy.SetThreadNum(7);
  copy.MutableDeviceInfo().push_back(std::make_shared<CPUDeviceInfo>());
  CHECK_EQ(context.GetThreadNum(), 7);
  CHECK_EQ(context.MutableDeviceInfo().size(), size_t{1});
}

TEST(AGpuBehindTheCpuIsRefused) {
  for (auto kind : {mslite::BuildRequest::kModel, mslite::BuildRequest::kRunner}) {
    mslite::BuildRequest request;
    request.kind = kind;
    Context right;
    right.MutableDeviceInfo().push_back(std::make_shared<GPUDeviceInfo>());
    right.MutableDeviceInfo().push_back(std::make_shared<CPUDeviceInfo>());
    mslite::AddContext(right, &request);
    CHECK_EQ(request.settings.front().second, "gpu");

    Context wrong;
    wrong.MutableDeviceInfo().push_back(std::make_shared<CPUDeviceInfo>());
    wrong.MutableDeviceInfo().push_back(std::make_shared<AscendDeviceInfo>());
    wrong.MutableDeviceInfo().push_back(std::make_shared<GPUDeviceInfo>());
    std::string text;
    try {
      mslite::AddContext(wrong, &request);
    } catch (const mslite::Failure &failure) {
      text = failure.what();
    }
    CHECK(text.find("device 2 of the context is a GPU behind the CPU") != std::string::npos);
  }
}

TEST(WhatAContextDoesNotSupportIsNotSet) {
  Context context;
  context.SetEnableParallel(true);
  context.SetBuiltInDelegate(mindspore::kNNAPI);
  context.SetMultiModalHW(true);
  context.SetDelegate(nullptr);
  context.set_delegate(nullptr);
  CHECK(!context.GetEnableParallel());
  CHECK_EQ(context.GetBuiltInDelegate(), mindspore::kNoDelegate);
  CHECK(!context.GetMultiModalHW());
  CHECK(context.GetDelegate() == nullptr);
  CHECK(context.get_delegate() == nullptr);
}

TEST(ADeviceIsCastToItsOwnKindOnly) {
  const std::shared_ptr<DeviceInfoContext> device = std::make_shared<GPUDeviceInfo>();
  CHECK(device->Cast<GPUDeviceInfo>() == device);
  CHECK(device->Cast<CPUDeviceInfo>() == nullptr);
  CHECK_EQ(device->GetDeviceType(), mindspore::kGPU);
  CHECK_EQ(CPUDeviceInfo().GetDeviceType(), mindspore::kCPU);
  CHECK_EQ(AscendDeviceInfo().GetDeviceType(), mindspore::kAscend);
  CHECK_EQ(mindspore::KirinNPUDeviceInfo().GetDeviceType(), mindspore::kKirinNPU);
  CHECK_EQ(mindspore::AutoDeviceInfo().GetDeviceType(), mindspore::kAllDevice);
}

TEST(EveryDeviceHasAProvider) {
  CPUDeviceInfo device;
  CHECK_EQ(device.GetProvider(), "");
  CHECK_EQ(device.GetProviderDevice(), "");
  device.SetProvider("ge");
  device.SetProviderDevice("CPU");
  CHECK_EQ(device.GetProvider(), "ge");
  CHECK_EQ(device.GetProviderDevice(), "CPU");
  CHECK(device.GetAllocator() == nullptr);
}

TEST(TheCPUCanBeAskedForHalfPrecision) {
  CPUDeviceInfo device;
  CHECK(!device.GetEnableFP16());
  device.SetEnableFP16(true);
  CHECK(device.GetEnableFP16());
}

TEST(ThePrecisionOfAGPUIsOneSettingWithTwoNames) {
  GPUDeviceInfo device;
  CHECK_EQ(device.GetPrecisionMode(), "");
  CHECK(!device.GetEnableFP16());
  device.SetPrecisionMode("preferred_fp16");
  CHECK(device.GetEnableFP16());
  device.SetEnableFP16(false);
  CHECK_EQ(device.GetPrecisionMode(), "enforce_fp32");
  device.SetPrecisionMode("origin");
  CHECK_EQ(device.GetPrecisionMode(), "enforce_fp32");
  device.SetEnableFP16(true);
  CHECK_EQ(device.GetPrecisionMode(), "preferred_fp16");
}

TEST(TheLauncherOfMPITellsRankAndSize) {
  const GPUDeviceInfo device;
  for (const char *name :
       {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE"}) {
    unsetenv(name);
  }
  CHECK_EQ(device.GetRankID(), 0);
  CHECK_EQ(device.GetGroupSize(), 1);
  setenv("PMI_RANK", "2", 1);
  setenv("PMI_SIZE", "4", 1);
  CHECK_EQ(device.GetRankID(), 2);
  CHECK_EQ(device.GetGroupSize(), 4);
  setenv("OMPI_COMM_WORLD_RANK", "5", 1);
  CHECK_EQ(device.GetRankID(), 5);
  setenv("OMPI_COMM_WORLD_RANK", "five", 1);
  CHECK_EQ(device.GetRankID(), 2);
  setenv("OMPI_COMM_WORLD_RANK", "-1", 1);
  CHECK_EQ(device.GetRankID(), 2);
  for (const char *name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMI_SIZE"}) unsetenv(name);
}

TEST(AnAscendKeepsItsSettings) {
  AscendDeviceInfo device;
  CHECK_EQ(device.GetDeviceID(), 0u);
  CHECK_EQ(device.GetRankID(), 0u);
  CHECK_EQ(device.GetPrecisionMode(), "");
  CHECK_EQ(device.GetDynamicBatchSize(), "");
  CHECK(device.GetOutputType() == mindspore::DataType::kTypeUnknown);
  device.SetDeviceID(3);
  device.SetRankID(1);
  device.SetPrecisionMode("enforce_fp16");
  device.SetDynamicBatchSize({1, 2, 4});
  device.SetInputShapeMap({{0, {1, 3}}});
  device.SetInputShape("x:1,3");
  device.SetInputFormat("NCHW");
  device.SetInsertOpConfigPath("aipp.cfg");
  device.SetDynamicImageSize("66,88;32,64");
  device.SetOpSelectImplMode("high_precision");
  device.SetFusionSwitchConfigPath("fusion.cfg");
  device.SetBufferOptimizeMode("off_optimize");
  device.SetOutputType(mindspore::DataType::kNumberTypeFloat16);
  CHECK_EQ(device.GetDeviceID(), 3u);
  CHECK_EQ(device.GetRankID(), 1u);
  CHECK_EQ(device.GetPrecisionMode(), "enforce_fp16");
  CHECK_EQ(device.GetDynamicBatchSize(), "1,2,4");
  const auto shapes = device.GetInputShapeMap();
  CHECK_EQ(shapes.at(0), (std::vector<int>{1, 3}));
  CHECK_EQ(device.GetInputShape(), "x:1,3");
  CHECK_EQ(device.GetInputFormat(), "NCHW");
  CHECK_EQ(device.GetInsertOpConfigPath(), "aipp.cfg");
  CHECK_EQ(device.GetDynamicImageSize(), "66,88;32,64");
  CHECK_EQ(device.GetOpSelectImplMode(), "high_precision");
  CHECK_EQ(device.GetFusionSwitchConfigPath(), "fusion.cfg");
  CHECK_EQ(device.GetBufferOptimizeMode(), "off_optimize");
  CHECK(device.GetOutputType() == mindspore::DataType::kNumberTypeFloat16);
}
